/* The only place where policies are called.
 *
 * Views are built here, answers are checked here.  A policy that gives an impossible answer is counted; one that does so
 * POLICY_MAX_FAULTS times, or that overruns its budget, is replaced by the default policy with one log line
 * (policy_watch.c). */
#include "sched/policy_record.h"
#include "sched/policy_watch.h"
#include "sched/thread.h"

static u64 domain_relative(cpumask_t mask, const struct domain *d)
{
    return (mask & d->cpus) >> d->first_cpu;
}

/* The machine CPU of a policy's answer, or `fallback` if the answer is POLICY_NO_CPU or impossible. */
static u32 accept_cpu(struct domain *d, const struct thread *t, int32_t answer, u32 fallback)
{
    if (answer == POLICY_NO_CPU) {
        return fallback;
    }
    if (answer < 0 || (u32)answer >= d->num_cpus || !(t->affinity & BIT(d->first_cpu + (u32)answer))) {
        policy_fault(d, "chose a CPU that is not allowed");
        return fallback;
    }
    if (unlikely(!READ_ONCE(board[d->first_cpu + (u32)answer].capacity))) {
        return fallback; /* parked meanwhile */
    }
    return d->first_cpu + (u32)answer;
}

/* Where a thread goes if nobody has an opinion: `preferred` if it is allowed there and takes threads, else the first CPU that
 * is and does, else the first allowed. */
static u32 default_cpu(const struct thread *t, u32 preferred)
{
    if ((t->affinity & BIT(preferred)) && likely(READ_ONCE(board[preferred].capacity))) {
        return preferred;
    }
    for (cpumask_t m = t->affinity; m; m &= m - 1) {
        u32 cpu = (u32)__builtin_ctzll(m);
        if (READ_ONCE(board[cpu].capacity)) {
            return cpu;
        }
    }
    return (u32)__builtin_ctzll(t->affinity);
}

void policy_describe(const struct thread *t, struct policy_thread *out, const struct domain *d, u64 *affinity_word)
{
    *affinity_word = domain_relative(t->affinity, d);
    out->id = t->head.id;
    out->affinity = affinity_word;
    out->last_cpu = t->ran ? (i32)(t->last_cpu - d->first_cpu) : POLICY_NO_CPU;
    i32 receive = t->head.receive_cpu - (i32)d->first_cpu;
    out->receive_cpu = receive >= 0 && (u32)receive < d->num_cpus ? receive : POLICY_NO_CPU;
    out->last_ran_ns = t->last_ran_ns;
    out->queued_ns = t->entity.queued ? t->entity.queued_ns : 0;
    out->avg_run_ns = t->avg_run_ns;
    out->migrations = t->migrations;
    out->weight = t->entity.weight;
    out->pad = 0;
}

/* The policy's answer for one thread.  near: a CPU of the thread's domain, for wakers that are outside it. */
static int32_t ask(struct thread *t, u32 self, u32 flags, const struct policy *policy, enum record_kind kind, u32 near)
{
    struct cpu_sched *c = sched_of(self);
    struct domain *d = &domains[t->head.domain];
    u64 affinity;
    struct policy_thread described;
    policy_describe(t, &described, d, &affinity);
    u64 idle = READ_ONCE(d->idle);
    u32 relative = self - d->first_cpu;
    struct policy_view view = {
        .now_ns = arch_clock_ns(),
        .seed = board_seed(c),
        .num_cpus = d->num_cpus,
        /* A waker of the other domain has no place in this one. */
        .self = relative < d->num_cpus ? relative : near - d->first_cpu,
        .cpus = &board[d->first_cpu],
        .idle = &idle,
        .receive_cpus = d->receive_cpus,
        .num_threads = 1,
        .wake_flags = flags,
        .threads = &described,
    };
    if (arch_recovery_set(&c->policy_recovery)) {
        policy_hung(c, d);
        return POLICY_NO_CPU;
    }
    int32_t (*fn)(const struct policy_view *) = kind == RECORD_PLACE_WAKE ? policy->place_wake : policy->place_new;
    struct policy_record *record = policy_record_call(self, policy, &view, 0);
    int32_t answer;
    u32 tries = 0;
    policy_enter(c, view.now_ns);
    do {
        answer = fn(&view);
    } while (policy_again(c, d, &tries));
    if (unlikely(record != NULL)) {
        record->answer = answer;
        policy_record_done(self, record, kind);
    }
    return answer;
}

u32 policy_place_new(struct thread *t, u32 self)
{
    const struct policy *policy = READ_ONCE(domains[t->head.domain].policy);
    u32 fallback = default_cpu(t, self);
    if (!policy->place_new || t->pinned_kernel || domains[t->head.domain].num_cpus == 1) {
        return fallback;
    }
    return accept_cpu(&domains[t->head.domain], t, ask(t, self, 0, policy, RECORD_PLACE_NEW, fallback), fallback);
}

u32 policy_place_wake(struct thread *t, u32 self, u32 flags)
{
    const struct policy *policy = READ_ONCE(domains[t->head.domain].policy);
    u32 fallback = default_cpu(t, t->last_cpu);
    if (!policy->place_wake || t->pinned_kernel || domains[t->head.domain].num_cpus == 1) {
        return fallback;
    }
    return accept_cpu(&domains[t->head.domain], t, ask(t, self, flags, policy, RECORD_PLACE_WAKE, fallback), fallback);
}

static void record_plan(struct policy_record *r, const struct policy_plan *plan)
{
    r->num_moves = plan->num_moves;
    for (u32 i = 0; i < MIN(plan->num_moves, plan->capacity); i++) {
        record_moves(r)[i] = plan->moves[i];
    }
}

/* Whoever calls a function of the policy reads it once: another CPU may be changing it to one that does not have the function
 * that the caller has just seen. */
void policy_balance(const struct policy_view *view, struct policy_plan *plan, struct domain *d, struct cpu_sched *c)
{
    const struct policy *policy = READ_ONCE(d->policy);
    plan->num_moves = 0;
    if (unlikely(!policy->balance)) {
        return;
    }
    if (arch_recovery_set(&c->policy_recovery)) {
        policy_hung(c, d);
        plan->num_moves = 0;
        return;
    }
    struct policy_view given = *view;
    struct policy_record *record = policy_record_call(c->cpu, policy, &given, plan->capacity);
    u32 tries = 0;
    policy_enter(c, view->now_ns);
    do {
        plan->num_moves = 0;
        policy->balance(&given, plan);
    } while (policy_again(c, d, &tries));
    if (unlikely(record != NULL)) {
        record_plan(record, plan);
        policy_record_done(c->cpu, record, RECORD_BALANCE);
    }
    if (plan->num_moves > plan->capacity) {
        policy_fault(d, "planned more moves than allowed");
        plan->num_moves = plan->capacity;
    }
}

void policy_pull_from(struct cpu_sched *c, struct policy_pull *pull, u64 now_ns)
{
    struct domain *d = domain_of(c->cpu);
    const struct policy *policy = READ_ONCE(d->policy);
    *pull = (struct policy_pull){ .from = POLICY_NO_CPU };
    if (unlikely(!policy->idle_pull)) {
        return;
    }
    u64 idle = READ_ONCE(d->idle);
    struct policy_view view = {
        .now_ns = now_ns,
        .seed = board_seed(c),
        .num_cpus = d->num_cpus,
        .self = c->cpu - d->first_cpu,
        .cpus = &board[d->first_cpu],
        .idle = &idle,
        .receive_cpus = d->receive_cpus,
    };
    if (arch_recovery_set(&c->policy_recovery)) {
        policy_hung(c, d);
        *pull = (struct policy_pull){ .from = POLICY_NO_CPU };
        return;
    }
    struct policy_record *record = policy_record_call(c->cpu, policy, &view, 0);
    u32 tries = 0;
    policy_enter(c, now_ns);
    do {
        *pull = (struct policy_pull){ .from = POLICY_NO_CPU };
        policy->idle_pull(&view, pull);
    } while (policy_again(c, d, &tries));
    if (unlikely(record != NULL)) {
        record->answer = pull->from;
        record->min_wait_ns = pull->min_wait_ns;
        record->min_cold_ns = pull->min_cold_ns;
        policy_record_done(c->cpu, record, RECORD_IDLE_PULL);
    }
    if (pull->from != POLICY_NO_CPU && (pull->from < 0 || (u32)pull->from >= d->num_cpus)) {
        policy_fault(d, "pulls from a CPU that does not exist");
        pull->from = POLICY_NO_CPU;
    }
}
