/* The idle loop: poll a little, then halt.
 *
 * No wakeup is lost.  While `polling` is set a waker sends no IPI; so after clearing it the loop looks at the wake list once
 * more (both sides sequentially consistent: either the waker sees polling == 0 and sends the IPI, or the loop sees the
 * list).  From then on interrupts are off until arch_idle_wait() enables them and halts in one step, so an IPI that comes
 * in between ends the halt.
 *
 * How long to poll adapts: a halt that was over sooner than the limit says that polling would have caught the wakeup, a poll
 * that saw nothing says that it was wasted. */
#include "core/base/trace.h"
#include "sched/thread.h"

/* Shortest useful poll (ns): about the cost of an interrupt that it saves. */
#define IDLE_SPIN_MIN_NS 500u

u32 idle_spin_limit_ns;

static bool work_waiting(struct cpu_sched *c)
{
    return __atomic_load_n(&c->wake_list, __ATOMIC_SEQ_CST) || READ_ONCE(c->runq.count) ||
           READ_ONCE(percpu_of(c->cpu)->need_resched);
}

/* Interrupts off on entry and exit.  True if work came while polling. */
static bool poll_a_while(struct cpu_sched *c)
{
    if (!c->spin_ns) {
        return false;
    }
    u64 until = arch_clock_ns() + c->spin_ns;
    bool found = false;
    __atomic_store_n(&c->polling, 1, __ATOMIC_SEQ_CST);
    arch_irq_enable();
    while (!(found = work_waiting(c)) && arch_clock_ns() < until) {
        arch_cpu_relax();
    }
    arch_irq_disable();
    __atomic_store_n(&c->polling, 0, __ATOMIC_SEQ_CST);
    return found || work_waiting(c);
}

static void adapt(struct cpu_sched *c, bool hit, u64 idle_ns)
{
    u32 limit = READ_ONCE(idle_spin_limit_ns);
    if (hit || idle_ns < limit) {
        c->spin_ns = MIN(limit, MAX(IDLE_SPIN_MIN_NS, c->spin_ns * 2));
    } else {
        c->spin_ns = c->spin_ns / 2 < IDLE_SPIN_MIN_NS ? 0 : c->spin_ns / 2;
    }
}

void idle_loop(void)
{
    arch_irq_disable();
    struct cpu_sched *c = sched_here();
    bool looked = false;
    for (;;) {
        u64 start = arch_clock_ns();
        c->idle_since_ns = start;
        board_idle(c, true);
        /* Once more, now that wakers see this CPU idle: what was queued behind a running thread between the last look and
         * the bit, nobody has called it for; what is queued from here on, it is called for (pull_offer()). */
        if (!looked && unlikely(pull_worth_a_look(c))) {
            u64 switches = c->stats.switches;
            schedule();
            looked = c->stats.switches == switches; /* else it has run something, and that look is long past */
            continue;
        }
        looked = false;
        idle_clock_start(&c->idle_clock, start);
        STAT_INC(c, idle_enters);
        trace(TRACE_CAT_IDLE, TRACE_IDLE_ENTER, 0, 0, 0, 0);
        bool hit = work_waiting(c) || poll_a_while(c);
        if (hit) {
            STAT_INC(c, idle_polls_hit);
        } else {
            STAT_INC(c, halts);
            while (!work_waiting(c)) {
                arch_idle_wait();
            }
        }
        u64 now = arch_clock_ns();
        idle_clock_stop(&c->idle_clock, now);
        adapt(c, hit, now - start);
        trace(TRACE_CAT_IDLE, TRACE_IDLE_EXIT, 0, 0, now - start, 0);
        board_idle(c, false);
        delivered_resume(c);
        schedule();
    }
}
