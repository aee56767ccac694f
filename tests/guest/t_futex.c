/* The futex call itself. */

#include <sys/syscall.h>

#include "tests/guest/futex_abi.h"
#include "tests/guest/test.h"

static long futex(void *addr, int op, unsigned val, const void *timeout, void *addr2, unsigned val3)
{
    return syscall(SYS_futex, addr, op, val, timeout, addr2, val3);
}

static uint32_t word, word2;
static int entered, left;

static void *waiter(void *arg)
{
    ADD(entered, 1);
    while (LOAD(word) == 0) {
        long r = futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0);
        CHECK(r == 0 || errno == EAGAIN);
    }
    ADD(left, 1);
    return arg;
}

TEST(futex_wait_wake)
{
    pthread_t t[10];
    word = 0;
    entered = left = 0;
    for (int i = 0; i < 10; i++) {
        t[i] = start(waiter, NULL);
    }
    CHECK(WAIT_UNTIL(LOAD(entered) == 10));
    STORE(word, 1);
    CHECK(futex(&word, FUTEX_WAKE, 1000, NULL, NULL, 0) <= 10);
    for (int i = 0; i < 10; i++) {
        join(t[i]);
    }
    CHECK(left == 10);
}

TEST(futex_errors)
{
    struct timespec bad = { 0, 1000000000 }, negative = { -1, 0 }, zero = { 0, 0 };
    word = 5;
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 4, NULL, NULL, 0), EAGAIN);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 5, &bad, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 5, &negative, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT, 5, &zero, NULL, 0), ETIMEDOUT);
    CHECK_ERRNO(futex((char *)&word + 1, FUTEX_WAIT, 5, NULL, NULL, 0), EINVAL);
    CHECK_ERRNO(futex((char *)&word + 1, FUTEX_WAKE, 1, NULL, NULL, 0), EINVAL);
    CHECK_ERRNO(futex((void *)16, FUTEX_WAIT, 5, NULL, NULL, 0), EFAULT);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, 5, NULL, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&word, FUTEX_WAKE_BITSET, 5, NULL, NULL, 0), EINVAL);
    CHECK_ERRNO(futex(&word, 99, 0, NULL, NULL, 0), ENOSYS);
    CHECK(futex(&word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
}

TEST(futex_absolute_time_outs)
{
    struct timespec ts;
    word = 5;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    uint64_t end = now_ns() + 10000000;
    ts.tv_sec = (time_t)(end / 1000000000);
    ts.tv_nsec = (long)(end % 1000000000);
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET, 5, &ts, NULL, FUTEX_BITSET_MATCH_ANY), ETIMEDOUT);
    CHECK(now_ns() >= end);
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_sec -= 5;
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 5, &ts, NULL, FUTEX_BITSET_MATCH_ANY),
                ETIMEDOUT);
    clock_gettime(CLOCK_REALTIME, &ts);
    ts.tv_nsec += 5000000;
    if (ts.tv_nsec >= 1000000000) {
        ts.tv_sec++;
        ts.tv_nsec -= 1000000000;
    }
    CHECK_ERRNO(futex(&word, FUTEX_WAIT_BITSET | FUTEX_CLOCK_REALTIME, 5, &ts, NULL, FUTEX_BITSET_MATCH_ANY),
                ETIMEDOUT);
}

static void *bitset_waiter(void *arg)
{
    unsigned bits = (unsigned)(uintptr_t)arg;
    ADD(entered, 1);
    CHECK(futex(&word, FUTEX_WAIT_BITSET, 0, NULL, NULL, bits) == 0);
    ADD(left, (int)bits);
    return NULL;
}

/* Wakes until the waiter has been there: it may not have been asleep yet. */
static bool wake_bits(unsigned bits)
{
    return WAIT_UNTIL(futex(&word, FUTEX_WAKE_BITSET, 1, NULL, NULL, bits) == 1);
}

TEST(futex_bitset)
{
    word = 0;
    entered = left = 0;
    pthread_t a = start(bitset_waiter, (void *)1), b = start(bitset_waiter, (void *)2);
    CHECK(WAIT_UNTIL(LOAD(entered) == 2));
    CHECK(futex(&word, FUTEX_WAKE_BITSET, 10, NULL, NULL, 4) == 0);
    CHECK(wake_bits(2));
    join(b);
    CHECK(LOAD(left) == 2);
    CHECK(wake_bits(1));
    join(a);
    CHECK(LOAD(left) == 3);
}

static void *requeue_waiter(void *arg)
{
    ADD(entered, 1);
    CHECK(futex(&word, FUTEX_WAIT, 0, NULL, NULL, 0) == 0);
    ADD(left, 1);
    return arg;
}

TEST(futex_requeue)
{
    pthread_t t[6];
    word = word2 = 0;
    entered = left = 0;
    CHECK_ERRNO(futex(&word, FUTEX_CMP_REQUEUE, 1, (void *)10, &word2, 1), EAGAIN);
    for (int i = 0; i < 6; i++) {
        t[i] = start(requeue_waiter, NULL);
    }
    CHECK(WAIT_UNTIL(LOAD(entered) == 6));
    /* One by one, since some may still be on their way into the wait. */
    int moved = 0;
    CHECK(WAIT_UNTIL((moved += (int)futex(&word, FUTEX_CMP_REQUEUE, 0, (void *)10, &word2, 0)) == 6));
    CHECK(futex(&word, FUTEX_WAKE, 10, NULL, NULL, 0) == 0);
    CHECK(LOAD(left) == 0);
    CHECK(futex(&word2, FUTEX_WAKE, 1, NULL, NULL, 0) == 1);
    CHECK(WAIT_UNTIL(LOAD(left) == 1));
    CHECK(futex(&word2, FUTEX_WAKE, 100, NULL, NULL, 0) == 5);
    for (int i = 0; i < 6; i++) {
        join(t[i]);
    }
}

TEST(futex_wake_op)
{
    word = 0;
    word2 = 10;
    /* word2 += 5; condition: old value > 100 */
    CHECK(futex(&word, FUTEX_WAKE_OP, 1, (void *)1, &word2, FUTEX_OP(FUTEX_OP_ADD, 5, FUTEX_OP_CMP_GT, 100)) == 0);
    CHECK(word2 == 15);
    CHECK(futex(&word, FUTEX_WAKE_OP, 1, (void *)1, &word2,
                FUTEX_OP(FUTEX_OP_OR | FUTEX_OP_OPARG_SHIFT, 8, FUTEX_OP_CMP_EQ, 15)) == 0);
    CHECK(word2 == (15 | 256));
    CHECK_ERRNO(futex(&word, FUTEX_WAKE_OP, 1, (void *)1, &word2, 7u << 28), ENOSYS);
    entered = left = 0;
    word2 = 0;
    pthread_t t = start(requeue_waiter, NULL);
    CHECK(WAIT_UNTIL(LOAD(entered) == 1));
    CHECK(WAIT_UNTIL(futex(&word2, FUTEX_WAKE_OP, 1, (void *)1, &word, FUTEX_OP(FUTEX_OP_SET, 0, FUTEX_OP_CMP_EQ, 0)) == 1));
    join(t);
}

/* ---- lost wakeups: two threads hand a token to and fro; a lost one hangs ---- */

struct hand {
    uint32_t turn[2];
    int rounds;
};

static void hand_wait(uint32_t *w)
{
    while (LOAD(*w) == 0) {
        futex(w, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0);
    }
    STORE(*w, 0);
}

static void hand_give(uint32_t *w)
{
    STORE(*w, 1);
    futex(w, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

static void *hand_peer(void *arg)
{
    struct hand *h = arg;
    for (int i = 0; i < h->rounds; i++) {
        hand_wait(&h->turn[1]);
        hand_give(&h->turn[0]);
    }
    return NULL;
}

static void *hand_main(void *arg)
{
    struct hand *h = arg;
    pthread_t peer = start(hand_peer, h);
    for (int i = 0; i < h->rounds; i++) {
        hand_give(&h->turn[1]);
        /* Different lengths between the wakeup and the wait meet the idle loop in different states. */
        for (volatile int spin = 0; spin < (i * 37) % 2000; spin++) {
        }
        hand_wait(&h->turn[0]);
    }
    join(peer);
    return NULL;
}

TEST(futex_lost_wakeup_hammer)
{
    enum { PAIRS = 8, ROUNDS = 1000 };
    static struct hand hands[PAIRS];
    pthread_t t[PAIRS];
    for (int i = 0; i < PAIRS; i++) {
        hands[i] = (struct hand){ .rounds = ROUNDS };
        t[i] = start(hand_main, &hands[i]);
    }
    for (int i = 0; i < PAIRS; i++) {
        join(t[i]);
    }
}

/* One waker bursts to many short sleepers, again and again. */
#define SLEEPERS 32
static uint32_t bursts, answered;

static void *burst_sleeper(void *arg)
{
    uint32_t seen = 0;
    int rounds = *(int *)arg;
    while ((int)seen < rounds) {
        while (LOAD(bursts) == seen) {
            futex(&bursts, FUTEX_WAIT_PRIVATE, seen, NULL, NULL, 0);
        }
        seen++;
        if (ADD(answered, 1) % SLEEPERS == 0) {
            futex(&answered, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
        }
    }
    return NULL;
}

TEST(futex_burst_to_many)
{
    pthread_t t[SLEEPERS];
    int rounds = 40;
    bursts = answered = 0;
    for (int i = 0; i < SLEEPERS; i++) {
        t[i] = start(burst_sleeper, &rounds);
    }
    for (int round = 1; round <= rounds; round++) {
        STORE(bursts, (uint32_t)round);
        futex(&bursts, FUTEX_WAKE_PRIVATE, 1000, NULL, NULL, 0);
        uint32_t have;
        while ((have = LOAD(answered)) != (uint32_t)round * SLEEPERS) {
            futex(&answered, FUTEX_WAIT_PRIVATE, have, NULL, NULL, 0);
        }
    }
    for (int i = 0; i < SLEEPERS; i++) {
        join(t[i]);
    }
}
