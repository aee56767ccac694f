/* Thread cancellation: in calls that block, at once, and deferred. */
#include <limits.h>

#include "tests/guest/test.h"

static int cleaned;
static int blocked;

static void cleanup(void *arg)
{
    (void)arg;
    ADD(cleaned, 1);
}

static void *cancel_in_sleep(void *arg)
{
    pthread_cleanup_push(cleanup, NULL);
    STORE(blocked, 1);
    for (;;) {
        (void)sleep(UINT_MAX); /* the call itself is tested: nothing but the cancellation ends it */
    }
    pthread_cleanup_pop(0);
    return arg;
}

static void *cancel_in_read(void *arg)
{
    char c;
    pthread_cleanup_push(cleanup, NULL);
    STORE(blocked, 1);
    CHECK(read(*(int *)arg, &c, 1) == 1);
    pthread_cleanup_pop(0);
    return NULL;
}

static void *cancel_in_cond(void *arg)
{
    static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
    static pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    pthread_mutex_lock(&m);
    pthread_cleanup_push(cleanup, NULL);
    STORE(blocked, 1);
    for (;;) {
        pthread_cond_wait(&c, &m);
    }
    pthread_cleanup_pop(0);
    return arg;
}

static void *cancel_async(void *arg)
{
    int old;
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
    pthread_cleanup_push(cleanup, NULL);
    STORE(blocked, 1);
    for (volatile unsigned long i = 0;; i++) {
    }
    pthread_cleanup_pop(0);
    return arg;
}

static void cancel_one(void *(*fn)(void *), void *arg)
{
    void *result;
    cleaned = 0;
    STORE(blocked, 0);
    pthread_t t = start(fn, arg);
    CHECK(WAIT_UNTIL(LOAD(blocked)));
    sleep_ms(5);
    CHECK(pthread_cancel(t) == 0);
    CHECK(pthread_join(t, &result) == 0);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(cleaned == 1);
}

TEST(cancel_in_sleep)
{
    cancel_one(cancel_in_sleep, NULL);
}

TEST(cancel_in_read)
{
    int fds[2];
    CHECK(pipe(fds) == 0);
    cancel_one(cancel_in_read, &fds[0]);
    close(fds[0]);
    close(fds[1]);
}

TEST(cancel_in_cond_wait)
{
    cancel_one(cancel_in_cond, NULL);
}

TEST(cancel_asynchronous_spinner)
{
    cancel_one(cancel_async, NULL);
}

static void *cancel_deferred(void *arg)
{
    int old;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
    STORE(blocked, 1);
    CHECK(WAIT_UNTIL(LOAD(*(int *)arg)));
    sleep_ms(2); /* a cancellation point, but disabled */
    ADD(cleaned, 1);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    pthread_testcancel();
    ADD(cleaned, 100);
    return NULL;
}

TEST(cancel_disabled_then_enabled)
{
    int go = 0;
    void *result;
    cleaned = 0;
    STORE(blocked, 0);
    pthread_t t = start(cancel_deferred, &go);
    CHECK(WAIT_UNTIL(LOAD(blocked)));
    pthread_cancel(t);
    STORE(go, 1);
    pthread_join(t, &result);
    CHECK(result == PTHREAD_CANCELED);
    CHECK(cleaned == 1);
}
