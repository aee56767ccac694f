/* Threads: creation, join, keys, mutexes, condition variables, barriers, read-write locks, semaphores. */
#include <sched.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/guest/test.h"

static int counter;

static void *count_once(void *arg)
{
    ADD(counter, 1);
    return arg;
}

TEST(thread_create_join_1000)
{
    STORE(counter, 0);
    for (int i = 0; i < 1000; i++) {
        void *result = NULL;
        pthread_t t = start(count_once, (void *)(intptr_t)i);
        CHECK(pthread_join(t, &result) == 0);
        CHECK(result == (void *)(intptr_t)i);
    }
    CHECK(LOAD(counter) == 1000);
}

static pthread_mutex_t gate_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_cond = PTHREAD_COND_INITIALIZER;
static bool gate_open;

static void *pass_gate(void *arg)
{
    pthread_mutex_lock(&gate_mutex);
    while (!gate_open) {
        pthread_cond_wait(&gate_cond, &gate_mutex);
    }
    counter++;
    pthread_mutex_unlock(&gate_mutex);
    return arg;
}

TEST(thread_1000_at_once)
{
    static pthread_t threads[1000];
    counter = 0;
    gate_open = false;
    for (int i = 0; i < 1000; i++) {
        threads[i] = start(pass_gate, NULL);
    }
    pthread_mutex_lock(&gate_mutex);
    gate_open = true;
    pthread_cond_broadcast(&gate_cond);
    pthread_mutex_unlock(&gate_mutex);
    for (int i = 0; i < 1000; i++) {
        join(threads[i]);
    }
    CHECK(counter == 1000);
}

static long mutex_counter;
static pthread_mutex_t count_mutex = PTHREAD_MUTEX_INITIALIZER;

static void *mutex_worker(void *arg)
{
    for (int i = 0; i < 5000; i++) {
        pthread_mutex_lock(&count_mutex);
        mutex_counter++;
        pthread_mutex_unlock(&count_mutex);
    }
    return arg;
}

TEST(thread_mutex_contended)
{
    pthread_t t[8];
    mutex_counter = 0;
    for (int i = 0; i < 8; i++) {
        t[i] = start(mutex_worker, NULL);
    }
    for (int i = 0; i < 8; i++) {
        join(t[i]);
    }
    CHECK(mutex_counter == 8 * 5000);
}

/* ---- producer and consumer over condition variables ---- */

#define QUEUE 16
static int queue[QUEUE], queue_head, queue_tail;
static pthread_mutex_t queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t not_empty = PTHREAD_COND_INITIALIZER, not_full = PTHREAD_COND_INITIALIZER;
static long consumed_sum;

static void put(int value)
{
    pthread_mutex_lock(&queue_mutex);
    while (queue_tail - queue_head == QUEUE) {
        pthread_cond_wait(&not_full, &queue_mutex);
    }
    queue[queue_tail++ % QUEUE] = value;
    pthread_cond_signal(&not_empty);
    pthread_mutex_unlock(&queue_mutex);
}

static void *consumer(void *arg)
{
    for (;;) {
        pthread_mutex_lock(&queue_mutex);
        while (queue_tail == queue_head) {
            pthread_cond_wait(&not_empty, &queue_mutex);
        }
        int value = queue[queue_head++ % QUEUE];
        pthread_cond_signal(&not_full);
        pthread_mutex_unlock(&queue_mutex);
        if (value < 0) {
            return arg;
        }
        ADD(consumed_sum, value);
    }
}

TEST(thread_cond_producer_consumer)
{
    pthread_t t[4];
    long sum = 0;
    consumed_sum = 0;
    for (int i = 0; i < 4; i++) {
        t[i] = start(consumer, NULL);
    }
    for (int i = 1; i <= 5000; i++) {
        put(i);
        sum += i;
    }
    for (int i = 0; i < 4; i++) {
        put(-1);
    }
    for (int i = 0; i < 4; i++) {
        join(t[i]);
    }
    CHECK(consumed_sum == sum);
}

TEST(thread_cond_timedwait)
{
    pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += 20000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&m);
    CHECK(pthread_cond_timedwait(&c, &m, &ts) == ETIMEDOUT);
    pthread_mutex_unlock(&m);
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    CHECK(now.tv_sec > ts.tv_sec || (now.tv_sec == ts.tv_sec && now.tv_nsec >= ts.tv_nsec));
}

static pthread_barrier_t barrier;
static int barrier_serial, barrier_phase[4];

static void *barrier_worker(void *arg)
{
    int self = (int)(intptr_t)arg;
    for (int round = 1; round <= 200; round++) {
        STORE(barrier_phase[self], round);
        int r = pthread_barrier_wait(&barrier);
        if (r == PTHREAD_BARRIER_SERIAL_THREAD) {
            ADD(barrier_serial, 1);
        } else {
            CHECK(r == 0);
        }
        for (int i = 0; i < 4; i++) {
            CHECK(LOAD(barrier_phase[i]) >= round);
        }
        pthread_barrier_wait(&barrier);
    }
    return NULL;
}

TEST(thread_barrier)
{
    pthread_t t[4];
    barrier_serial = 0;
    CHECK(pthread_barrier_init(&barrier, NULL, 4) == 0);
    for (int i = 0; i < 4; i++) {
        t[i] = start(barrier_worker, (void *)(intptr_t)i);
    }
    for (int i = 0; i < 4; i++) {
        join(t[i]);
    }
    CHECK(barrier_serial == 200);
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static int rw_value, rw_copy;

static void *rw_worker(void *arg)
{
    bool writer = arg;
    for (int i = 0; i < 2000; i++) {
        if (writer) {
            pthread_rwlock_wrlock(&rwlock);
            rw_value++;
            rw_copy++;
        } else {
            pthread_rwlock_rdlock(&rwlock);
            CHECK(rw_value == rw_copy);
        }
        pthread_rwlock_unlock(&rwlock);
    }
    return NULL;
}

TEST(thread_rwlock)
{
    pthread_t t[6];
    rw_value = rw_copy = 0;
    for (int i = 0; i < 6; i++) {
        t[i] = start(rw_worker, (void *)(intptr_t)(i < 2));
    }
    for (int i = 0; i < 6; i++) {
        join(t[i]);
    }
    CHECK(rw_value == 4000);
}

static sem_t semaphore, semaphore_back;

static void *sem_worker(void *arg)
{
    for (int i = 0; i < 2000; i++) {
        sem_wait(&semaphore);
        sem_post(&semaphore_back);
    }
    return arg;
}

TEST(thread_semaphore_ping_pong)
{
    sem_init(&semaphore, 0, 0);
    sem_init(&semaphore_back, 0, 0);
    pthread_t t = start(sem_worker, NULL);
    for (int i = 0; i < 2000; i++) {
        sem_post(&semaphore);
        sem_wait(&semaphore_back);
    }
    join(t);
    int value;
    CHECK(sem_getvalue(&semaphore, &value) == 0 && value == 0);
}

/* ---- thread-local storage, keys, once ---- */

static __thread int tls_value = 7;
static pthread_key_t key;
static int destroyed;

static void destroy(void *value)
{
    ADD(destroyed, *(int *)value);
}

static void *tls_worker(void *arg)
{
    static int one = 1;
    CHECK(tls_value == 7);
    tls_value = (int)(intptr_t)arg;
    pthread_setspecific(key, &one);
    for (int i = 0; i < 50; i++) {
        sched_yield();
        CHECK(tls_value == (int)(intptr_t)arg);
        CHECK(pthread_getspecific(key) == &one);
    }
    return NULL;
}

TEST(thread_tls_and_keys)
{
    pthread_t t[8];
    destroyed = 0;
    CHECK(pthread_key_create(&key, destroy) == 0);
    for (int i = 0; i < 8; i++) {
        t[i] = start(tls_worker, (void *)(intptr_t)(100 + i));
    }
    for (int i = 0; i < 8; i++) {
        join(t[i]);
    }
    CHECK(destroyed == 8);
    CHECK(tls_value == 7);
    pthread_key_delete(key);
}

static int once_count;

static void once_fn(void)
{
    ADD(once_count, 1);
}

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *once_worker(void *arg)
{
    pthread_once(&once, once_fn);
    CHECK(LOAD(once_count) == 1);
    return arg;
}

TEST(thread_once)
{
    pthread_t t[8];
    for (int i = 0; i < 8; i++) {
        t[i] = start(once_worker, NULL);
    }
    for (int i = 0; i < 8; i++) {
        join(t[i]);
    }
    CHECK(once_count == 1);
}

/* ---- robust mutexes ---- */

static pthread_mutex_t robust;

static void *die_with_mutex(void *arg)
{
    pthread_mutex_lock(&robust);
    return arg;
}

TEST(thread_robust_mutex_owner_died)
{
    pthread_mutexattr_t attr;
    pthread_mutexattr_init(&attr);
    pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
    CHECK(pthread_mutex_init(&robust, &attr) == 0);
    join(start(die_with_mutex, NULL));
    CHECK(pthread_mutex_lock(&robust) == EOWNERDEAD);
    CHECK(pthread_mutex_consistent(&robust) == 0);
    CHECK(pthread_mutex_unlock(&robust) == 0);
    CHECK(pthread_mutex_lock(&robust) == 0);
    CHECK(pthread_mutex_unlock(&robust) == 0);
}

TEST(thread_names)
{
    char name[16] = "";
    CHECK(pthread_setname_np(pthread_self(), "tester") == 0);
    CHECK(pthread_getname_np(pthread_self(), name, sizeof(name)) == 0);
    CHECK(strcmp(name, "tester") == 0);
    CHECK(pthread_setname_np(pthread_self(), "a name that is too long") == ERANGE);
}

TEST(thread_detached_exit)
{
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    STORE(counter, 0);
    for (int i = 0; i < 50; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, &attr, count_once, NULL) == 0);
    }
    CHECK(WAIT_UNTIL(LOAD(counter) == 50));
}

static void *fpu_worker(void *arg)
{
    double x = (double)(intptr_t)arg, want = 0, sum = 0;
    for (int i = 0; i < 20000; i++) {
        sum += x / (i + 1);
        if (i % 1000 == 0) {
            sched_yield();
        }
    }
    for (int i = 0; i < 20000; i++) {
        want += x / (i + 1);
    }
    CHECK(sum == want);
    return NULL;
}

TEST(thread_fpu_state_is_kept)
{
    pthread_t t[8];
    for (int i = 0; i < 8; i++) {
        t[i] = start(fpu_worker, (void *)(intptr_t)(i + 1));
    }
    for (int i = 0; i < 8; i++) {
        join(t[i]);
    }
}

#define RAW_FLAGS (CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_CHILD_CLEARTID)

static int exit_at_once(void *arg)
{
    (void)arg;
    return 0;
}

/* The word that a thread's exit clears is a lock word to the C library: other CPUs compare and swap it meanwhile, and a half
 * cleared one would look like another owner's. That it is cleared by one access shows where half of it cannot be written:
 * then nothing is. */
TEST(thread_exit_clears_its_word_at_once)
{
    static _Alignas(16) char stack[16384];
    long page = sysconf(_SC_PAGESIZE);
    char *pages = mmap(NULL, (size_t)page * 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED);
    if (pages == MAP_FAILED) {
        return;
    }
    char *whole = pages + page / 2, *split = pages + page - 2;
    memset(whole, 'x', 4);
    memset(split, 'x', 4);
    CHECK(mprotect(pages + page, (size_t)page, PROT_NONE) == 0);
    CHECK(clone(exit_at_once, stack + sizeof(stack), RAW_FLAGS, NULL, NULL, NULL, whole) > 0);
    CHECK(WAIT_UNTIL(LOAD(*(uint32_t *)(void *)whole) == 0));
    int tid = clone(exit_at_once, stack + sizeof(stack), RAW_FLAGS, NULL, NULL, NULL, split);
    CHECK(tid > 0);
    CHECK(WAIT_UNTIL(syscall(SYS_tkill, tid, 0) == -1 && errno == ESRCH));
    CHECK(split[0] == 'x' && split[1] == 'x');
    munmap(pages, (size_t)page * 2);
}
