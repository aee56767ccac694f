/* Clocks, sleeping, time accounting. */
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>

#include "tests/guest/test.h"

TEST(time_monotonic_never_goes_back)
{
    uint64_t last = now_ns();
    for (int i = 0; i < 20000; i++) {
        uint64_t now = now_ns();
        CHECK(now >= last);
        last = now;
    }
}

static uint64_t shared_last;

static void *read_clock(void *arg)
{
    for (int i = 0; i < 5000; i++) {
        uint64_t seen = LOAD(shared_last);
        uint64_t now = now_ns();
        CHECK(now >= seen); /* the same clock on every CPU */
        STORE(shared_last, now > LOAD(shared_last) ? now : LOAD(shared_last));
    }
    return arg;
}

TEST(time_monotonic_over_cpus)
{
    pthread_t t[4];
    STORE(shared_last, 0);
    for (int i = 0; i < 4; i++) {
        t[i] = start(read_clock, NULL);
    }
    for (int i = 0; i < 4; i++) {
        join(t[i]);
    }
}

TEST(time_sleep_is_long_enough)
{
    struct timespec ts = { 0, 15000000 };
    uint64_t begin = now_ns();
    CHECK(nanosleep(&ts, NULL) == 0);
    CHECK(now_ns() - begin >= 15000000);
    struct timespec zero = { 0, 0 };
    CHECK(nanosleep(&zero, NULL) == 0);
    struct timespec bad = { 0, 1000000000 };
    CHECK_ERRNO(nanosleep(&bad, NULL), EINVAL);
    CHECK_ERRNO(nanosleep((void *)1, NULL), EFAULT);
}

TEST(time_clock_nanosleep_absolute)
{
    struct timespec ts;
    uint64_t end = now_ns() + 10000000;
    ts.tv_sec = (time_t)(end / 1000000000);
    ts.tv_nsec = (long)(end % 1000000000);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == 0);
    CHECK(now_ns() >= end);
    CHECK(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == 0); /* in the past */
    CHECK(clock_nanosleep(77, 0, &ts, NULL) == EINVAL);
}

TEST(time_wall_clock)
{
    struct timeval tv;
    struct timespec ts;
    CHECK(gettimeofday(&tv, NULL) == 0);
    CHECK(clock_gettime(CLOCK_REALTIME, &ts) == 0);
    CHECK(ts.tv_sec - tv.tv_sec <= 1 && ts.tv_sec >= tv.tv_sec);
    CHECK(tv.tv_sec > 1600000000); /* after 2020: the machine's clock was read */
    CHECK(time(NULL) >= tv.tv_sec);
    CHECK_ERRNO(clock_gettime(99, &ts), EINVAL);
    CHECK(clock_getres(CLOCK_MONOTONIC, &ts) == 0 && ts.tv_sec == 0);
}

static uint64_t clock_ns(clockid_t id)
{
    struct timespec ts = { 0, 0 };
    CHECK(clock_gettime(id, &ts) == 0);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

TEST(time_cpu_clocks)
{
    /* In this order: each clock runs while the next is read, and the host may take the CPU away in between. */
    uint64_t wall = now_ns();
    uint64_t process = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    uint64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin < 20000000) {
    }
    CHECK(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - process >= 20000000);
    CHECK(now_ns() - wall >= 20000000);
    uint64_t before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    sleep_ms(50);
    CHECK(clock_ns(CLOCK_THREAD_CPUTIME_ID) - before < 45000000);
    clockid_t id;
    CHECK(pthread_getcpuclockid(pthread_self(), &id) == 0);
    CHECK(clock_ns(id) >= before);
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    CHECK((uint64_t)usage.ru_utime.tv_sec * 1000000 + (uint64_t)usage.ru_utime.tv_usec +
              (uint64_t)usage.ru_stime.tv_sec * 1000000 + (uint64_t)usage.ru_stime.tv_usec >=
          20000);
    struct tms tms;
    CHECK(times(&tms) != (clock_t)-1);
}
