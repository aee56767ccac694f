/* Futexes over a scheduler of pthreads: a thread is a pthread with a token, and a CPU of its own. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include "core/kern/futex.h"
#include "core/kern/signal.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"

#define THREADS 8

/* ---- the fake scheduler ---- */

struct thread {
    struct thread_head head;
    pthread_mutex_t mutex;
    pthread_cond_t cond;
    bool token, parked, interrupted, time_out;
};

static struct thread threads[THREADS + 1];

static void become(u32 n)
{
    fake_cpu_set(n);
    this_cpu()->current = &threads[n];
}

enum park_result thread_park(u64 deadline_ns, enum wait_kind kind, u64 object)
{
    struct thread *t = current_thread();
    enum park_result result = PARK_WOKEN;
    (void)kind;
    (void)object;
    pthread_mutex_lock(&t->mutex);
    t->parked = true;
    while (!t->token && !t->interrupted && !(t->time_out && deadline_ns != NO_DEADLINE)) {
        pthread_cond_wait(&t->cond, &t->mutex);
    }
    t->parked = false;
    if (t->token) {
        t->token = false;
    } else if (t->interrupted) {
        result = PARK_INTERRUPTED;
    } else {
        result = PARK_TIMEOUT;
        t->time_out = false; /* not before: a deadline that has passed stays passed when a token ends the park */
    }
    pthread_mutex_unlock(&t->mutex);
    return result;
}

static void poke(struct thread *t, bool *what)
{
    pthread_mutex_lock(&t->mutex);
    *what = true;
    pthread_cond_signal(&t->cond);
    pthread_mutex_unlock(&t->mutex);
}

void thread_unpark_batch(struct thread *t, struct wake_batch *b)
{
    b->wakes++;
    poke(t, &t->token);
}

void wake_batch_flush(struct wake_batch *b)
{
    (void)b;
    preempt_enable();
}

void thread_yield(void)
{
    sched_yield();
}

bool signal_wait_ends(void)
{
    return true;
}

void preempt_enable_slow(void)
{
}

/* Application memory is the test's own; one address is not mapped. */
#define UNMAPPED 0x1000ull

bool arch_load_app(u64 addr, u32 *value)
{
    if (addr == UNMAPPED) {
        return false;
    }
    *value = __atomic_load_n((u32 *)(uintptr_t)addr, __ATOMIC_SEQ_CST);
    return true;
}

bool arch_cmpxchg_app(u64 addr, u32 expected, u32 desired, u32 *old)
{
    *old = expected;
    __atomic_compare_exchange_n((u32 *)(uintptr_t)addr, old, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    return true;
}

/* ---- helpers ---- */

static u32 word, word2;

static u64 at(u32 *w)
{
    return (u64)(uintptr_t)w;
}

static int setup(void **state)
{
    static bool once;
    (void)state;
    fake_reset_cpus();
    if (!once) {
        futex_init();
        once = true;
    }
    for (u32 i = 0; i <= THREADS; i++) {
        memset(&threads[i], 0, sizeof(threads[i]));
        pthread_mutex_init(&threads[i].mutex, NULL);
        pthread_cond_init(&threads[i].cond, NULL);
    }
    become(THREADS);
    word = word2 = 0;
    return 0;
}

struct job {
    u32 cpu;
    u64 addr, deadline_ns;
    u32 expected, bitset;
    i64 result;
    pthread_t pthread;
};

static void *wait_job(void *arg)
{
    struct job *j = arg;
    become(j->cpu);
    j->result = futex_wait(j->addr, j->expected, j->bitset, j->deadline_ns);
    return NULL;
}

static void start_waiter(struct job *j, u32 cpu, u32 *w, u32 bitset, u64 deadline_ns)
{
    *j = (struct job){ cpu, at(w), deadline_ns, 0, bitset, 99, 0 };
    pthread_create(&j->pthread, NULL, wait_job, j);
    struct thread *t = &threads[cpu];
    for (bool parked = false; !parked; sched_yield()) {
        pthread_mutex_lock(&t->mutex);
        parked = t->parked;
        pthread_mutex_unlock(&t->mutex);
    }
}

static i64 finish(struct job *j)
{
    pthread_join(j->pthread, NULL);
    return j->result;
}

/* ---- tests ---- */

static void wrong_arguments(void **state)
{
    (void)state;
    word = 5;
    assert_int_equal(futex_wait(at(&word), 4, FUTEX_BITSET_ANY, NO_DEADLINE), -EAGAIN);
    assert_int_equal(futex_wait(at(&word) + 1, 5, FUTEX_BITSET_ANY, NO_DEADLINE), -EINVAL);
    assert_int_equal(futex_wait(at(&word), 5, 0, NO_DEADLINE), -EINVAL);
    assert_int_equal(futex_wait(UNMAPPED, 5, FUTEX_BITSET_ANY, NO_DEADLINE), -EFAULT);
    assert_int_equal(futex_wake(at(&word) + 2, 1, FUTEX_BITSET_ANY), -EINVAL);
    assert_int_equal(futex_wake(at(&word), 1, 0), -EINVAL);
    assert_int_equal(futex_wake(at(&word), 1, FUTEX_BITSET_ANY), 0);
    assert_int_equal(futex_requeue(at(&word), 1, at(&word2), (u32)-1, false, 0), -EINVAL);
    assert_int_equal(futex_requeue(at(&word), 1, at(&word2), 1, true, 4), -EAGAIN);
    assert_int_equal(futex_requeue(UNMAPPED, 1, at(&word2), 1, true, 4), -EFAULT);
}

static void wake_in_order_and_number(void **state)
{
    struct job j[3];
    (void)state;
    for (u32 i = 0; i < 3; i++) {
        start_waiter(&j[i], i, &word, FUTEX_BITSET_ANY, NO_DEADLINE);
    }
    assert_int_equal(futex_wake(at(&word), 1, FUTEX_BITSET_ANY), 1);
    assert_int_equal(finish(&j[0]), 0); /* the one that came first */
    assert_int_equal(futex_wake(at(&word), 10, FUTEX_BITSET_ANY), 2);
    assert_int_equal(finish(&j[1]), 0);
    assert_int_equal(finish(&j[2]), 0);
    assert_int_equal(futex_wake(at(&word), 10, FUTEX_BITSET_ANY), 0);
}

static void bitsets(void **state)
{
    struct job j[2];
    (void)state;
    start_waiter(&j[0], 0, &word, 1, NO_DEADLINE);
    start_waiter(&j[1], 1, &word, 2, NO_DEADLINE);
    assert_int_equal(futex_wake(at(&word), 10, 4), 0);
    assert_int_equal(futex_wake(at(&word), 10, 2), 1);
    assert_int_equal(finish(&j[1]), 0);
    assert_int_equal(futex_wake(at(&word), 10, FUTEX_BITSET_ANY), 1);
    assert_int_equal(finish(&j[0]), 0);
}

static void time_out_and_signal(void **state)
{
    struct job j;
    (void)state;
    start_waiter(&j, 0, &word, FUTEX_BITSET_ANY, 1000);
    poke(&threads[0], &threads[0].time_out);
    assert_int_equal(finish(&j), -ETIMEDOUT);
    start_waiter(&j, 0, &word, FUTEX_BITSET_ANY, NO_DEADLINE);
    poke(&threads[0], &threads[0].interrupted);
    assert_int_equal(finish(&j), -EINTR);
    assert_int_equal(futex_wake(at(&word), 10, FUTEX_BITSET_ANY), 0); /* both are out of the bucket */
}

static void superfluous_token_does_not_wake(void **state)
{
    struct job j;
    (void)state;
    start_waiter(&j, 0, &word, FUTEX_BITSET_ANY, NO_DEADLINE);
    poke(&threads[0], &threads[0].token);
    struct thread *t = &threads[0];
    for (bool again = false; !again; sched_yield()) {
        pthread_mutex_lock(&t->mutex);
        again = t->parked && !t->token;
        pthread_mutex_unlock(&t->mutex);
    }
    assert_int_equal(futex_wake(at(&word), 10, FUTEX_BITSET_ANY), 1);
    assert_int_equal(finish(&j), 0);
}

static void requeue_moves(void **state)
{
    struct job j[4];
    (void)state;
    for (u32 i = 0; i < 4; i++) {
        start_waiter(&j[i], i, &word, FUTEX_BITSET_ANY, NO_DEADLINE);
    }
    assert_int_equal(futex_requeue(at(&word), 1, at(&word2), 2, true, 0), 3);
    assert_int_equal(finish(&j[0]), 0);
    assert_int_equal(futex_wake(at(&word), 10, FUTEX_BITSET_ANY), 1);
    assert_int_equal(finish(&j[3]), 0);
    /* A moved waiter leaves its new bucket at a signal. */
    poke(&threads[1], &threads[1].interrupted);
    assert_int_equal(finish(&j[1]), -EINTR);
    assert_int_equal(futex_wake(at(&word2), 10, FUTEX_BITSET_ANY), 1);
    assert_int_equal(finish(&j[2]), 0);
    /* Onto itself nothing moves. */
    start_waiter(&j[0], 0, &word, FUTEX_BITSET_ANY, NO_DEADLINE);
    assert_int_equal(futex_requeue(at(&word), 0, at(&word), 5, false, 0), 0);
    assert_int_equal(futex_wake(at(&word), 10, FUTEX_BITSET_ANY), 1);
    finish(&j[0]);
}

#define ENCODE(op, arg, cmp, cmparg) ((u32)(op) << 28 | (u32)(cmp) << 24 | ((u32)(arg)&0xfff) << 12 | ((u32)(cmparg)&0xfff))

static void wake_op_changes_and_compares(void **state)
{
    (void)state;
    word2 = 10;
    assert_int_equal(futex_wake_op(at(&word), 1, at(&word2), 1, ENCODE(0, 7, 0, 10)), 0);
    assert_int_equal(word2, 7);
    futex_wake_op(at(&word), 1, at(&word2), 1, ENCODE(1, -3, 0, 0));
    assert_int_equal(word2, 4);
    futex_wake_op(at(&word), 1, at(&word2), 1, ENCODE(2 | 8, 4, 0, 0));
    assert_int_equal(word2, 20);
    futex_wake_op(at(&word), 1, at(&word2), 1, ENCODE(3, 4, 0, 0));
    assert_int_equal(word2, 16);
    futex_wake_op(at(&word), 1, at(&word2), 1, ENCODE(4, 17, 0, 0));
    assert_int_equal(word2, 1);
    assert_int_equal(futex_wake_op(at(&word), 1, at(&word2), 1, ENCODE(7, 0, 0, 0)), -ENOSYS);
    assert_int_equal(futex_wake_op(at(&word), 1, at(&word2), 1, ENCODE(0, 1, 9, 0)), -ENOSYS);
    assert_int_equal(futex_wake_op(at(&word), 1, UNMAPPED, 1, ENCODE(0, 1, 0, 0)), -EFAULT);
}

static void statistics(void **state)
{
    struct futex_totals before, after;
    struct job j;
    (void)state;
    futex_totals(&before);
    start_waiter(&j, 0, &word, FUTEX_BITSET_ANY, NO_DEADLINE);
    fake_clock_now += 5000;
    futex_wake(at(&word), 1, FUTEX_BITSET_ANY);
    finish(&j);
    futex_wait(at(&word), 1, FUTEX_BITSET_ANY, NO_DEADLINE);
    futex_totals(&after);
    assert_int_equal(after.waits - before.waits, 2);
    assert_int_equal(after.wakes - before.wakes, 1);
    assert_int_equal(after.woken - before.woken, 1);
    assert_int_equal(after.eagain - before.eagain, 1);
    assert_int_equal(after.asleep_ns - before.asleep_ns, 5000);
}

/* ---- many threads: every lock held exclusively, nobody left behind ---- */

static u32 lock_word, inside, turns, condition_word;

/* The lock of "Futexes Are Tricky": 0 free, 1 taken, 2 taken and contended. */
static void lock(void)
{
    u32 c = 0;
    if (__atomic_compare_exchange_n(&lock_word, &c, 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        return;
    }
    do {
        u32 one = 1;
        if (c == 2 || __atomic_compare_exchange_n(&lock_word, &one, 2, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST) ||
            one == 2) {
            futex_wait(at(&lock_word), 2, FUTEX_BITSET_ANY, NO_DEADLINE);
        }
        c = 0;
    } while (!__atomic_compare_exchange_n(&lock_word, &c, 2, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
}

/* After a wake that may have been meant for the lock's next owner: taken as contended, so that unlock() hands the wake on. */
static void lock_contended(void)
{
    while (__atomic_exchange_n(&lock_word, 2, __ATOMIC_SEQ_CST) != 0) {
        futex_wait(at(&lock_word), 2, FUTEX_BITSET_ANY, NO_DEADLINE);
    }
}

static void unlock(void)
{
    if (__atomic_exchange_n(&lock_word, 0, __ATOMIC_SEQ_CST) == 2) {
        futex_wake(at(&lock_word), 1, FUTEX_BITSET_ANY);
    }
}

static void *hammer(void *arg)
{
    struct job *j = arg;
    become(j->cpu);
    for (int i = 0; i < 2000; i++) {
        lock();
        u32 others = __atomic_fetch_add(&inside, 1, __ATOMIC_SEQ_CST);
        j->result |= others != 0;
        turns++;
        __atomic_fetch_sub(&inside, 1, __ATOMIC_SEQ_CST);
        unlock();
        if (i % 16 == 0) {
            /* Waiters come and go by time-out and requeue while others wake. */
            threads[j->cpu].time_out = true;
            if (futex_wait(at(&condition_word), 0, FUTEX_BITSET_ANY, 1) == 0) {
                /* Another's requeue may have put us in the lock's queue, and an unlock() have woken us there. */
                lock_contended();
                unlock();
            }
            futex_requeue(at(&condition_word), 1, at(&lock_word), 1, false, 0);
        }
    }
    return NULL;
}

static void lock_hammer(void **state)
{
    struct job j[THREADS] = { 0 };
    (void)state;
    lock_word = inside = turns = 0;
    for (u32 i = 0; i < THREADS; i++) {
        j[i].cpu = i;
        pthread_create(&j[i].pthread, NULL, hammer, &j[i]);
    }
    for (u32 i = 0; i < THREADS; i++) {
        assert_int_equal(finish(&j[i]), 0);
    }
    assert_int_equal(turns, THREADS * 2000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(wrong_arguments, setup),
        cmocka_unit_test_setup(wake_in_order_and_number, setup),
        cmocka_unit_test_setup(bitsets, setup),
        cmocka_unit_test_setup(time_out_and_signal, setup),
        cmocka_unit_test_setup(superfluous_token_does_not_wake, setup),
        cmocka_unit_test_setup(requeue_moves, setup),
        cmocka_unit_test_setup(wake_op_changes_and_compares, setup),
        cmocka_unit_test_setup(statistics, setup),
        cmocka_unit_test_setup(lock_hammer, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
