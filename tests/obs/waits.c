/* Runs inside the guest, for test_waits.py: threads that wait for each other in known ways, for ever.
 *
 *   ab, ba      each hold one error-checking mutex and want the other's: a deadlock
 *   behind      wants a mutex that "ab" holds, and is no part of the cycle
 *   joiner      waits for "ab" to end
 *   normal      wants a default mutex that main holds: musl keeps no owner there
 *   sleeper     sleeps
 * Prints the id of each thread: "tid NAME ID"; then "waits: ready". */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_mutex_t a, b, plain = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both_hold;
static pthread_t ab_thread;

static void introduce(const char *name)
{
    pthread_setname_np(pthread_self(), name);
    printf("tid %s %ld\n", name, syscall(SYS_gettid));
    fflush(stdout);
}

static void fail(const char *what, int error)
{
    printf("waits: %s: error %d\n", what, error);
    fflush(stdout);
    exit(EXIT_FAILURE);
}

static void *ab(void *arg)
{
    (void)arg;
    introduce("ab");
    pthread_mutex_lock(&a);
    pthread_barrier_wait(&both_hold);
    fail("ab got both", pthread_mutex_lock(&b));
    return NULL;
}

static void *ba(void *arg)
{
    (void)arg;
    introduce("ba");
    pthread_mutex_lock(&b);
    pthread_barrier_wait(&both_hold);
    fail("ba got both", pthread_mutex_lock(&a));
    return NULL;
}

static void *behind(void *arg)
{
    (void)arg;
    introduce("behind");
    fail("behind got it", pthread_mutex_lock(&a));
    return NULL;
}

static void *joiner(void *arg)
{
    (void)arg;
    introduce("joiner");
    fail("joined", pthread_join(ab_thread, NULL));
    return NULL;
}

static void *normal(void *arg)
{
    (void)arg;
    introduce("normal");
    fail("normal got it", pthread_mutex_lock(&plain));
    return NULL;
}

static void *sleeper(void *arg)
{
    (void)arg;
    introduce("sleeper");
    for (;;) { /* never ends by itself: the test looks for a thread in a sleep */
        sleep(3600);
    }
    return NULL;
}

static void start(pthread_t *t, void *(*run)(void *arg))
{
    pthread_t unused;
    int error = pthread_create(t ? t : &unused, NULL, run, NULL);
    if (error) {
        fail("pthread_create", error);
    }
}

int main(void)
{
    pthread_mutexattr_t checking;
    pthread_mutexattr_init(&checking);
    pthread_mutexattr_settype(&checking, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&a, &checking);
    pthread_mutex_init(&b, &checking);
    pthread_barrier_init(&both_hold, NULL, 3);
    pthread_mutex_lock(&plain);
    start(&ab_thread, ab);
    start(NULL, ba);
    pthread_barrier_wait(&both_hold);
    start(NULL, behind);
    start(NULL, joiner);
    start(NULL, normal);
    start(NULL, sleeper);
    printf("waits: ready\n");
    fflush(stdout);
    for (;;) {
        pause();
    }
}
