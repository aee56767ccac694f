/* The sampling timer of the on-CPU profile: one timer a CPU, armed only while somebody samples. */
#include "sched/thread.h"

void (*sched_sample_hook)(struct thread *t, struct arch_regs *regs);
static u64 sample_period_ns;

static void sample(struct timer *timer)
{
    struct cpu_sched *c = container_of(timer, struct cpu_sched, sample_timer);
    u64 period = READ_ONCE(sample_period_ns);
    void (*hook)(struct thread *, struct arch_regs *) = READ_ONCE(sched_sample_hook);
    if (!period) {
        return;
    }
    if (hook && c->interrupted) {
        hook(c->current, c->interrupted);
    }
    timer_arm(timer, arch_clock_ns() + period);
}

void sample_init_cpu(struct cpu_sched *c)
{
    timer_init(&c->sample_timer, sample);
}

void sample_follow(struct cpu_sched *c)
{
    u64 period = READ_ONCE(sample_period_ns);
    if (unlikely(period && !c->sample_timer.armed)) {
        timer_arm(&c->sample_timer, arch_clock_ns() + period);
    }
}

void sched_set_sampling(u64 period_ns)
{
    WRITE_ONCE(sample_period_ns, period_ns);
    for (u32 cpu = 0; period_ns && cpu < sched_num_cpus(); cpu++) {
        if (sched_of(cpu)->online) {
            arch_send_ipi(cpu, ARCH_IPI_RESCHED);
        }
    }
}
