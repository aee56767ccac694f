/* Start-up, upcalls from interrupts, policy choice, statistics. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/base/trace.h"
#include "core/mm/mm.h"
#include "sched/policy_watch.h"
#include "sched/thread.h"

struct domain domains[MAX_DOMAINS];
u32 num_domains;
static u32 num_cpus;
void (*sched_signal_hook)(struct arch_regs *regs);
void (*sched_ipi_call_hook)(void);

const char *const migrate_reason_names[NUM_MIGRATE_REASONS] = {
    [MIGRATE_NEW] = "new",   [MIGRATE_WAKE] = "wake",         [MIGRATE_BALANCE] = "balance",
    [MIGRATE_PULL] = "pull", [MIGRATE_AFFINITY] = "affinity", [MIGRATE_PARK] = "park",
};
const char *const move_reject_names[NUM_MOVE_REJECTS] = {
    [REJECT_GONE] = "gone",       [REJECT_AFFINITY] = "affinity",   [REJECT_RUNNING] = "running",
    [REJECT_NO_GAIN] = "no-gain", [REJECT_BAD_INDEX] = "bad-index", [REJECT_LIMIT] = "limit",
};

const struct policy *policy_find(const char *name)
{
    for (u32 i = 0; policy_registry[i]; i++) {
        if (strcmp(policy_registry[i]->name, name) == 0) {
            return policy_registry[i];
        }
    }
    return NULL;
}

static void init_domain(u32 index, u32 first, u32 count, const struct policy *policy, u32 interval_ms)
{
    struct domain *d = &domains[index];
    d->first_cpu = first;
    d->num_cpus = count;
    d->cpus = (count == 64 ? ~0ull : BIT(count) - 1) << first;
    d->active = d->cpus;
    d->policy = policy;
    d->interval_ms = interval_ms ? interval_ms : policy->interval_ms;
}

static void init_cpu(u32 cpu, u32 domain)
{
    struct cpu_sched *c = sched_of(cpu);
    c->cpu = cpu;
    c->domain = domain;
    c->seed = 0x9e3779b97f4a7c15ull * (cpu + 1);
    spin_init(&c->lock, &runq_lock_class);
    runq_init(&c->runq);
    timer_init(&c->slice_timer, slice_timer_fired);
    timer_init(&c->balance_timer, balance_timer_fired);
    timer_init(&c->quota_timer, quota_timer_fired);
    c->delivered = POLICY_CAPACITY_FULL;
    timers_init_cpu(cpu);
    sample_init_cpu(c);
    delivered_init_cpu(c);
    policy_watch_init_cpu(c);
    board[cpu] = (struct policy_cpu){ .capacity = 0 };
}

static struct thread idle_threads[MAX_CPUS];
static struct thread boot_thread;

static void boot_idle(void *arg)
{
    (void)arg;
    schedule_finish_first();
    idle_loop();
}

/* The boot CPU's context becomes the thread "main"; its idle thread gets stacks of its own. */
static int init_boot_cpu(void)
{
    struct cpu_sched *c = sched_of(0);
    struct thread *idle = &idle_threads[0];
    thread_adopt(&boot_thread, "main", 0, false);
    thread_adopt(idle, "idle", 0, true);
    idle->kstack = kstack_alloc(KSTACK_SIZE);
    if (!idle->kstack) {
        return -ENOMEM;
    }
    arch_thread_init(&idle->arch, idle->kstack + KSTACK_SIZE, idle->irq_stack + THREAD_IRQ_STACK_SIZE,
                     idle->fault_stack + THREAD_FAULT_STACK_SIZE, boot_idle, NULL);
    idle->on_cpu = 0;
    c->idle = idle;
    c->current = &boot_thread;
    this_cpu()->current = &boot_thread;
    c->online = true;
    WRITE_ONCE(board[0].capacity, POLICY_CAPACITY_FULL);
    WRITE_ONCE(board[0].running, 1);
    return softwork_start_worker(0);
}

static void describe_current(char *buf, size_t n)
{
    struct thread *t = this_cpu()->current;
    if (!t) {
        str_format(buf, n, "none yet");
        return;
    }
    str_format(buf, n, "%s, id %u, %s, domain %u", t->head.name, t->head.id, t == sched_here()->idle ? "idle" : "running",
               t->head.domain);
}

int sched_init(const struct sched_config *config)
{
    const char *name = config->policy ? config->policy : "drain";
    const struct policy *policy = policy_find(name);
    if (!policy) {
        log_error("sched.policy=%s: no such policy; see policies below", name);
        for (u32 i = 0; policy_registry[i]; i++) {
            log_error("  %s: %s", policy_registry[i]->name, policy_registry[i]->summary);
        }
        return -EINVAL;
    }
    if (config->server_cpus > config->num_cpus) {
        log_error("domain.server=%u: only %u CPUs", config->server_cpus, config->num_cpus);
        return -EINVAL;
    }
    num_cpus = config->num_cpus;
    u32 first = config->server_cpus ? config->server_cpus : num_cpus;
    num_domains = first < num_cpus ? 2 : 1;
    init_domain(0, 0, first, policy, config->interval_ms);
    if (num_domains == 2) {
        /* The load generator's CPUs always use the default: they are not what is measured. */
        init_domain(1, first, num_cpus - first, policy_find("drain"), 0);
    }
    for (u32 cpu = 0; cpu < num_cpus; cpu++) {
        init_cpu(cpu, cpu >= first);
    }
    idle_spin_limit_ns = config->idle_spin_ns;
    migration_charge_ns = config->migration_ns;
    panic_describe_thread = describe_current;
    return init_boot_cpu();
}

void sched_cpu_entry(void)
{
    u32 cpu = this_cpu()->cpu;
    struct cpu_sched *c = sched_of(cpu);
    thread_adopt(&idle_threads[cpu], "idle", cpu, true);
    c->idle = c->current = &idle_threads[cpu];
    this_cpu()->current = c->idle;
    WRITE_ONCE(board[cpu].capacity, POLICY_CAPACITY_FULL);
    STORE_RELEASE(c->online, true);
    idle_loop();
}

int sched_start_workers(void)
{
    for (u32 cpu = 1; cpu < num_cpus; cpu++) {
        /* It has answered, so it is on its way to its idle loop. */
        while (!LOAD_ACQUIRE(sched_of(cpu)->online)) {
            arch_cpu_relax();
        }
        int err = softwork_start_worker(cpu);
        if (err) {
            return err;
        }
    }
    policy_watch_update();
    return 0;
}


/* ---- upcalls ---- */

void upcall_timer(struct arch_regs *regs)
{
    struct cpu_sched *c = sched_here();
    STAT_INC(c, timer_irqs);
    c->interrupted = regs;
    timers_run(c->cpu);
    c->interrupted = NULL;
}

void upcall_ipi_resched(void)
{
    STAT_INC(sched_here(), ipis_received);
    trace(TRACE_CAT_IPI, TRACE_IPI_TAKEN, 0, 0, 0, 0);
    sample_follow(sched_here());
    policy_watch_follow(sched_here());
}

void upcall_ipi_call(void)
{
    trace(TRACE_CAT_IPI, TRACE_IPI_TAKEN, 0, 0, 1, 0);
    if (sched_ipi_call_hook) {
        sched_ipi_call_hook();
    }
}

void upcall_irq_tail(void)
{
    softwork_run_pending(sched_here());
}

void upcall_irq_exit(struct arch_regs *regs)
{
    struct cpu_sched *c = sched_here();
    if (c->current == c->idle || !c->current) {
        return; /* the idle loop looks for itself */
    }
    if (READ_ONCE(c->wake_list)) {
        spin_acquire_raw(&c->lock);
        wake_list_drain(c);
        spin_release_raw(&c->lock);
    }
    if (this_cpu_resched_due()) {
        schedule();
    }
    if (unlikely(READ_ONCE(thread_head(current_thread())->interrupt)) && arch_regs_in_app(regs) && sched_signal_hook) {
        sched_signal_hook(regs);
    }
}

/* ---- policy ---- */

int sched_set_policy(const char *name, u32 interval_ms)
{
    const struct policy *policy = policy_find(name);
    if (!policy) {
        return -ENOENT;
    }
    WRITE_ONCE(domains[0].interval_ms, interval_ms ? interval_ms : policy->interval_ms);
    __atomic_store_n(&domains[0].policy, policy, __ATOMIC_SEQ_CST);
    policy_watch_update();
    log_info("sched: policy %s, interval %u ms", policy->name, domains[0].interval_ms);
    return 0;
}

const char *sched_policy_name(void)
{
    return READ_ONCE(domains[0].policy)->name;
}

u32 sched_policy_interval_ms(void)
{
    return READ_ONCE(domains[0].interval_ms);
}

/* ---- facts ---- */

struct sched_domain_info sched_domain(u32 domain)
{
    return (struct sched_domain_info){ domains[domain].first_cpu, domains[domain].num_cpus };
}

u32 sched_domain_of_cpu(u32 cpu)
{
    return sched_of(cpu)->domain;
}

u32 sched_num_cpus(void)
{
    return num_cpus;
}

void sched_cpu_now(u32 cpu, struct sched_cpu_now *out)
{
    const struct cpu_sched *c = sched_of(cpu);
    const struct thread *t = READ_ONCE(c->current);
    *out = (struct sched_cpu_now){
        .thread = t && t != c->idle ? READ_ONCE(t->head.id) : 0,
        .queued = READ_ONCE(board[cpu].queued),
        .in_flight = READ_ONCE(board[cpu].in_flight),
        .capacity = READ_ONCE(board[cpu].capacity),
    };
}

void sched_cpu_stats(u32 cpu, struct sched_cpu_stats *out)
{
    const struct cpu_sched *c = sched_of(cpu);
    *out = c->stats;
    out->running = READ_ONCE(board[cpu].running);
    out->queued = READ_ONCE(board[cpu].queued);
    out->in_flight = READ_ONCE(board[cpu].in_flight);
    out->idle_ns = idle_clock_read(&c->idle_clock, arch_clock_ns);
}
