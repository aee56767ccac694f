/* Slow parts of spin locks: waiting, statistics, and the checker of debug builds.
 *
 * The checker keeps the locks that this CPU holds in percpu.locks_held. An interrupt handler's
 * locks lie on top of those of the thread that it interrupted and are gone when it returns, so one
 * stack serves both, and an order violation between the two is found like any other. */
#include "core/base/spinlock.h"

#include "core/base/console.h"
#include "core/base/log.h"
#include "core/base/trace.h"

bool lock_stats_on;
struct lock_class *lock_classes;
static u64 stats_since_ns;

/* ---- statistics ---- */

static void stat_add(u64 *counter, u64 n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

static void stat_max(u64 *max, u64 value)
{
    u64 seen = READ_ONCE(*max);
    while (seen < value && !__atomic_compare_exchange_n(max, &seen, value, true, __ATOMIC_RELAXED,
                                                        __ATOMIC_RELAXED)) {
    }
}

static u32 hist_bucket(u64 ns)
{
    u32 bucket = ns == 0 ? 0 : 63 - (u32)__builtin_clzll(ns);
    return MIN(bucket, LOCK_HIST_BUCKETS - 1);
}

/* Puts the class on the list of those with figures to show, once. */
static void list_class(struct lock_class *c)
{
    if (likely(READ_ONCE(c->listed)) || __atomic_exchange_n(&c->listed, true, __ATOMIC_RELAXED)) {
        return;
    }
    struct lock_class *head = READ_ONCE(lock_classes);
    do {
        c->next = head;
    } while (!__atomic_compare_exchange_n(&lock_classes, &head, c, true, __ATOMIC_RELEASE,
                                          __ATOMIC_RELAXED));
}

void spin_stats_acquired(struct spinlock *l, u64 wait_ns)
{
    struct lock_class *c = l->class;
    list_class(c);
    stat_add(&c->acquisitions, 1);
    stat_add(&c->wait_ns_total, wait_ns);
    stat_max(&c->wait_ns_max, wait_ns);
    stat_add(&c->wait_hist[hist_bucket(wait_ns)], 1);
    l->taken_ns = arch_clock_ns();
}

void spin_stats_released(struct spinlock *l)
{
    struct lock_class *c = l->class;
    u64 taken = l->taken_ns;
    if (taken == 0 || taken < READ_ONCE(stats_since_ns)) {
        return; /* taken before the statistics were switched on */
    }
    l->taken_ns = 0;
    u64 now = arch_clock_ns();
    u64 held = now > taken ? now - taken : 0;
    stat_add(&c->hold_ns_total, held);
    stat_max(&c->hold_ns_max, held);
    stat_add(&c->hold_hist[hist_bucket(held)], 1);
}

void lock_stats_set(bool on)
{
    if (on) {
        WRITE_ONCE(stats_since_ns, arch_clock_ns());
    }
    STORE_RELEASE(lock_stats_on, on);
}

/* ---- waiting ---- */

void spin_wait(struct spinlock *l, u32 ticket)
{
    bool stats = READ_ONCE(lock_stats_on);
    bool timed = stats || trace_wants(TRACE_CAT_LOCK);
    u64 start = timed ? arch_clock_ns() : 0;
    stat_add(&l->class->contended, 1);
    list_class(l->class);
    while (LOAD_ACQUIRE(l->serving) != ticket) {
        arch_cpu_relax();
        if (!arch_irqs_on()) {
            arch_tlb_poll(); /* the holder may be waiting for this CPU's flush */
        }
    }
    if (timed) {
        u64 now = arch_clock_ns(), waited = now > start ? now - start : 0;
        if (stats) {
            spin_stats_acquired(l, waited);
        }
        trace(TRACE_CAT_LOCK, TRACE_LOCK_WAIT, 0, 0, waited, (u64)(uintptr_t)l->class);
    }
}

/* ---- checker ---- */

#if defined(WEIR_DEBUG)

static const char *class_name(const void *lock)
{
    return ((const struct spinlock *)lock)->class->name;
}

/* Panics if taking l after `held` breaks the order. */
static void check_pair(const struct spinlock *held, const struct spinlock *l)
{
    const struct lock_class *first = held->class, *second = l->class;
    if (held == l) {
        panic("lock %s (%p) taken twice by this CPU", second->name, (const void *)l);
    }
    if (!first->irq && second->irq) {
        /* The other order is refused below, so this one cannot deadlock, whatever the ranks: an
         * interrupt may come while any lock is held that leaves interrupts on, and take its own. */
        return;
    }
    if (first->rank > second->rank) {
        panic("lock order: %s (rank %d) taken while holding %s (rank %d)", second->name,
              second->rank, first->name, first->rank);
    }
    if (first->rank == second->rank && (first != second || !second->nest_by_address)) {
        panic("lock order: %s taken while holding %s of the same rank %d", second->name,
              first->name, first->rank);
    }
    if (first == second && held > l) {
        panic("lock order: two %s locks not in ascending address order", second->name);
    }
    if (first->irq && !second->irq) {
        /* Its holder elsewhere may be interrupted by a handler that wants the lock held here. */
        panic("lock order: %s (interrupts stay on) taken while holding %s (interrupts off)",
              second->name, first->name);
    }
}

void spin_check_acquire(struct spinlock *l)
{
    irqflags_t flags = arch_irq_save();
    struct percpu *cpu = this_cpu();
    bool irqs_on = arch_irqflags_on(flags);
    if (l->class->irq && irqs_on) {
        panic("lock %s must be taken with interrupts off", l->class->name);
    }
    if (!l->class->irq && cpu->irq_depth != 0) {
        panic("lock %s taken in an interrupt handler: its class leaves interrupts on",
              l->class->name);
    }
    u32 n = cpu->num_locks_held;
    for (u32 i = 0; i < n; i++) {
        check_pair(cpu->locks_held[i], l);
    }
    if (n == ARRAY_SIZE(cpu->locks_held)) {
        panic("lock %s: this CPU already holds %u locks", l->class->name, n);
    }
    cpu->locks_held[n] = l;
    cpu->num_locks_held = n + 1;
    arch_irq_restore(flags);
}

/* A lock that was only tried cannot deadlock, whatever is held; from now on it counts like any
 * other. */
void spin_check_try_acquired(struct spinlock *l)
{
    irqflags_t flags = arch_irq_save();
    struct percpu *cpu = this_cpu();
    if (cpu->num_locks_held == ARRAY_SIZE(cpu->locks_held)) {
        panic("lock %s: this CPU already holds %u locks", l->class->name, cpu->num_locks_held);
    }
    cpu->locks_held[cpu->num_locks_held++] = l;
    arch_irq_restore(flags);
}

void spin_check_release(struct spinlock *l)
{
    irqflags_t flags = arch_irq_save();
    struct percpu *cpu = this_cpu();
    u32 n = cpu->num_locks_held, i = n;
    while (i > 0 && cpu->locks_held[i - 1] != l) {
        i--;
    }
    if (i == 0) {
        panic("lock %s (%p) released by a CPU that does not hold it", l->class->name, (void *)l);
    }
    for (; i < n; i++) {
        cpu->locks_held[i - 1] = cpu->locks_held[i];
    }
    cpu->num_locks_held = n - 1;
    arch_irq_restore(flags);
}

bool spin_held(const struct spinlock *l)
{
    irqflags_t flags = arch_irq_save();
    const struct percpu *cpu = this_cpu();
    bool held = false;
    for (u32 i = 0; i < cpu->num_locks_held; i++) {
        held |= cpu->locks_held[i] == l;
    }
    arch_irq_restore(flags);
    return held;
}

void spin_print_held(void)
{
    irqflags_t flags = arch_irq_save();
    const struct percpu *cpu = this_cpu();
    u32 n = MIN(cpu->num_locks_held, (u32)ARRAY_SIZE(cpu->locks_held));
    console_line("", "locks held by this CPU: %s", n == 0 ? "none" : "");
    for (u32 i = 0; i < n; i++) {
        console_line("", "  %s (%p)", class_name(cpu->locks_held[i]), cpu->locks_held[i]);
    }
    arch_irq_restore(flags);
}

void spin_assert_none_held(const char *what)
{
    irqflags_t flags = arch_irq_save();
    const struct percpu *cpu = this_cpu();
    u32 n = cpu->num_locks_held;
    if (n != 0) {
        panic("%s while holding lock %s", what, class_name(cpu->locks_held[n - 1]));
    }
    arch_irq_restore(flags);
}

#else

bool spin_held(const struct spinlock *l)
{
    return READ_ONCE(l->next) != READ_ONCE(l->serving);
}

void spin_print_held(void)
{
    console_line("", "locks held by this CPU: recorded only in debug builds (BUILD=debug)");
}

void spin_check_acquire(struct spinlock *l __unused)
{
}

void spin_check_release(struct spinlock *l __unused)
{
}

void spin_assert_none_held(const char *what __unused)
{
}

#endif
