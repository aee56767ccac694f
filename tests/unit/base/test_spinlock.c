/* Spin locks: exclusion, the checker, statistics. */
#include <pthread.h>

#include "core/base/param.h"
#include "core/base/spinlock.h"
#include "core/base/string.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"

static struct lock_class low_class = {.name = "low", .rank = RANK_PROC};
static struct lock_class peer_class = {.name = "peer", .rank = RANK_PROC};
static struct lock_class irq_class = {.name = "hot", .rank = RANK_NET, .irq = true};
static struct lock_class queue_class = {
    .name = "queue", .rank = RANK_RUNQ, .irq = true, .nest_by_address = true};
static struct lock_class late_class = {.name = "late", .rank = RANK_THREADS};
static struct spinlock low = SPINLOCK_INIT(&low_class), peer = SPINLOCK_INIT(&peer_class);
static struct spinlock low2 = SPINLOCK_INIT(&low_class), late = SPINLOCK_INIT(&late_class);
static struct spinlock hot = SPINLOCK_INIT(&irq_class);
static struct spinlock queues[2] = {SPINLOCK_INIT(&queue_class), SPINLOCK_INIT(&queue_class)};

static int set_up(void **state __unused)
{
    fake_reset_cpus();
    fake_cpu_set(0);
    lock_stats_on = false;
    return 0;
}

static void good_order(void **state __unused)
{
    spin_assert_none_held("start");
    assert_false(spin_held(&low));
    spin_lock(&low);
    assert_true(spin_held(&low));
    assert_int_equal(this_cpu()->preempt_count, 1);
    irqflags_t f = spin_lock_irq(&hot);
    assert_false(arch_irqs_on());
    irqflags_t f0 = spin_lock_irq(&queues[0]), f1 = spin_lock_irq(&queues[1]);
    spin_unlock_irq(&queues[0], f1); /* released out of order, as a migration does */
    assert_false(spin_held(&queues[0]));
    assert_true(spin_held(&queues[1]));
    spin_unlock_irq(&queues[1], f0);
    spin_unlock_irq(&hot, f);
    assert_true(arch_irqs_on());
    spin_unlock(&low);
    assert_int_equal(this_cpu()->preempt_count, 0);
    spin_assert_none_held("end");
}

static void twice(void *arg __unused)
{
    spin_lock(&low);
    spin_lock(&low);
}

static void down(void *arg __unused)
{
    spin_lock(&late);
    spin_lock(&low);
}

static void same_rank(void *arg __unused)
{
    spin_lock(&low);
    spin_lock(&peer);
}

static void same_class(void *arg __unused)
{
    spin_lock(&low);
    spin_lock(&low2);
}

static void queues_backwards(void *arg __unused)
{
    spin_lock_irq(&queues[1]);
    spin_lock_irq(&queues[0]);
}

static void irq_lock_with_irqs_on(void *arg __unused)
{
    spin_lock(&hot);
}

static void plain_lock_in_handler(void *arg __unused)
{
    arch_irq_disable();
    this_cpu()->irq_depth = 1;
    spin_lock(&low);
}

static void plain_under_irq(void *arg __unused)
{
    spin_lock_irq(&hot);
    spin_lock(&late);
}

static void not_held(void *arg __unused)
{
    spin_unlock(&low);
}

static void blocks_with_lock(void *arg __unused)
{
    spin_lock(&low);
    spin_assert_none_held("sleeping");
}

static void irq_order_down(void *arg __unused)
{
    spin_lock_irq(&queues[0]);
    spin_lock_irq(&hot);
}

static void too_many(void *arg __unused)
{
    static struct lock_class classes[17];
    static struct spinlock locks[17];
    for (u32 i = 0; i < ARRAY_SIZE(locks); i++) {
        classes[i] = (struct lock_class){.name = "many", .rank = (enum lock_rank)(i + 1)};
        spin_init(&locks[i], &classes[i]);
        spin_lock(&locks[i]);
    }
}

static void checker(void **state __unused)
{
    fake_assert_panics(twice, NULL, "lock low (0x");
    fake_assert_panics(twice, NULL, "taken twice");
    fake_assert_panics(down, NULL, "lock order: low (rank 10) taken while holding late (rank 60)");
    fake_assert_panics(same_rank, NULL,
                       "lock order: peer taken while holding low of the same rank");
    fake_assert_panics(same_class, NULL, "of the same rank");
    fake_assert_panics(queues_backwards, NULL, "two queue locks not in ascending address order");
    fake_assert_panics(irq_lock_with_irqs_on, NULL, "lock hot must be taken with interrupts off");
    fake_assert_panics(plain_lock_in_handler, NULL, "lock low taken in an interrupt handler");
    fake_assert_panics(plain_under_irq, NULL, "late (interrupts stay on) taken while holding hot");
    fake_assert_panics(not_held, NULL, "released by a CPU that does not hold it");
    fake_assert_panics(blocks_with_lock, NULL, "sleeping while holding lock low");
    fake_assert_panics(irq_order_down, NULL,
                       "lock order: hot (rank 40) taken while holding queue (rank 70)");
    fake_assert_panics(too_many, NULL, "already holds 16 locks");
}

/* A handler interrupts a thread that holds a lock which leaves interrupts on, and takes a lock of
 * any rank. It cannot deadlock, because the opposite order panics (plain_under_irq above). */
static void handler_over_plain_lock(void **state __unused)
{
    spin_lock(&late);
    arch_irq_disable();
    this_cpu()->irq_depth = 1;
    irqflags_t flags = spin_lock_irq(&hot); /* of a lower rank */
    assert_true(spin_held(&hot) && spin_held(&late));
    spin_unlock_irq(&hot, flags);
    this_cpu()->irq_depth = 0;
    arch_irq_enable();
    spin_unlock(&late);
    spin_assert_none_held("end");
}

/* ---- exclusion ---- */

#define THREADS 4
#define ROUNDS  20000
static u64 counter; /* plain: only the lock protects it */

static void *count(void *arg)
{
    fake_cpu_set((u32)(uintptr_t)arg);
    for (u32 i = 0; i < ROUNDS; i++) {
        irqflags_t f = spin_lock_irq(&hot);
        counter++;
        spin_unlock_irq(&hot, f);
    }
    return NULL;
}

static void run_counters(void)
{
    pthread_t threads[THREADS];
    counter = 0;
    for (u64 i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, count, (void *)(uintptr_t)i), 0);
    }
    for (u32 i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(counter, THREADS * ROUNDS);
}

static void excludes(void **state __unused)
{
    run_counters();
}

static u64 sum(const u64 *hist)
{
    u64 n = 0;
    for (u32 i = 0; i < LOCK_HIST_BUCKETS; i++) {
        n += hist[i];
    }
    return n;
}

static void statistics(void **state __unused)
{
    irq_class.acquisitions = 0;
    memset(irq_class.wait_hist, 0, sizeof(irq_class.wait_hist));
    memset(irq_class.hold_hist, 0, sizeof(irq_class.hold_hist));
    fake_clock_now = 1000;
    lock_stats_on = true;
    run_counters();
    assert_int_equal(irq_class.acquisitions, THREADS * ROUNDS);
    assert_int_equal(sum(irq_class.wait_hist), THREADS * ROUNDS);
    assert_int_equal(sum(irq_class.hold_hist), THREADS * ROUNDS);
    irqflags_t f = spin_lock_irq(&hot);
    fake_clock_now += 5000; /* between 2^12 and 2^13 ns */
    spin_unlock_irq(&hot, f);
    assert_int_equal(irq_class.hold_hist[12], 1);
    assert_int_equal(irq_class.hold_ns_max, 5000);
    lock_stats_on = false;
    u32 listed = 0;
    for (const struct lock_class *c = lock_classes; c != NULL; c = c->next) {
        listed += c == &irq_class;
    }
    assert_int_equal(listed, 1);
}

/* Switched on in the middle of a critical section: no made-up hold time. */
static void statistics_switched_on_late(void **state __unused)
{
    fake_clock_now = 1ull << 30;
    irq_class.hold_ns_max = 0;
    irqflags_t f = spin_lock_irq(&hot);
    lock_stats_on = true;
    spin_unlock_irq(&hot, f);
    lock_stats_on = false;
    assert_int_equal(irq_class.hold_ns_max, 0);
}

static void reschedules_when_due(void **state __unused)
{
    spin_lock(&low);
    this_cpu()->need_resched = 1;
    irqflags_t f = spin_lock_irq(&hot);
    spin_unlock_irq(&hot, f);
    assert_int_equal(this_cpu()->need_resched, 1); /* preemption is off */
    spin_unlock(&low);
    assert_int_equal(this_cpu()->need_resched, 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, set_up)
    const struct CMUnitTest tests[] = {
        TEST(good_order), TEST(handler_over_plain_lock),
        TEST(checker),
        TEST(excludes),
        TEST(statistics),
        TEST(statistics_switched_on_late),
        TEST(reschedules_when_due),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
