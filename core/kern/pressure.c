/* Above grant.memory_high: first the kernel gives back what it keeps, then the threads that go on taking pages are slowed down,
 * the more the nearer max is; nobody is refused before max.  The delay is paid at the end of a system call, where the thread
 * holds nothing (as Linux does it for cgroups).  The store hears of it by memory.pressure and by its own limit. */
#include "core/kern/pressure.h"
#include "core/kern/pressure_math.h"
#include "core/mm/mm.h"

/* An average is brought up to date in pieces no longer than this, ns. */
#define SPAN10 (10ull * NSEC_PER_SEC)
#define SPAN60 (60ull * NSEC_PER_SEC)
#define SPAN300 (300ull * NSEC_PER_SEC)

static struct lock_class pressure_class = { .name = "pressure", .rank = RANK_STATS, .irq = true };
static struct spinlock lock = SPINLOCK_INIT(&pressure_class);
/* Under lock. */
static struct pressure state;
static u32 stalled;
static u64 updated_ns;

void pressure_init(void)
{
    updated_ns = arch_clock_ns();
}

/* Holds lock. */
static void bring_up_to_date(void)
{
    u64 now = arch_clock_ns(), dt = now > updated_ns ? now - updated_ns : 0;
    bool on = stalled > 0;
    state.avg10 = pressure_average(state.avg10, on, dt, SPAN10);
    state.avg60 = pressure_average(state.avg60, on, dt, SPAN60);
    state.avg300 = pressure_average(state.avg300, on, dt, SPAN300);
    state.total_ns += on ? dt : 0;
    updated_ns = now;
}

static void stall(i32 change)
{
    irqflags_t flags = spin_lock_irq(&lock);
    bring_up_to_date();
    stalled += (u32)change;
    spin_unlock_irq(&lock, flags);
}

static void count(u64 delays, u64 delayed_ns, u64 reclaimed)
{
    irqflags_t flags = spin_lock_irq(&lock);
    state.delays += delays;
    state.delayed_ns += delayed_ns;
    state.reclaims += reclaimed > 0;
    state.reclaimed_pages += reclaimed;
    spin_unlock_irq(&lock, flags);
}

void pressure_pay(struct kthread *k)
{
    u64 owed = k->high_debt, begin = arch_clock_ns();
    k->high_debt = 0;
    if (!mm_over_high()) {
        return;
    }
    stall(1);
    u64 reclaimed = mm_reclaim();
    u64 delay = 0;
    if (mm_over_high()) {
        struct mem_stats s;
        mem_stats(&s);
        u64 used = 0;
        for (u32 kind = 0; kind < NUM_MEM_KINDS; kind++) {
            used += s.kind_pages[kind];
        }
        delay = pressure_delay(owed, used, s.high_pages, s.limit_pages);
        thread_sleep_until(begin + delay);
    }
    stall(-1);
    count(delay > 0, arch_clock_ns() - begin, reclaimed);
}

void pressure_read(struct pressure *out)
{
    irqflags_t flags = spin_lock_irq(&lock);
    bring_up_to_date();
    *out = state;
    spin_unlock_irq(&lock, flags);
}
