/* Placement map and the scheduler's counters. */
#include "core/kern/obs/thread_list.h"
#include "core/kern/proc.h"
#include "core/kern/report.h"

static void add_cpu_json(struct text *t, u32 cpu)
{
    struct sched_cpu_stats s;
    u64 migrations = 0;
    sched_cpu_stats(cpu, &s);
    for (u32 r = 0; r < NUM_MIGRATE_REASONS; r++) {
        migrations += s.migrations[r];
    }
    text_add(t, "{\"cpu\":%u,\"domain\":%u,\"running\":%u,\"queued\":%u,\"in_flight\":%u,", cpu,
             sched_domain_of_cpu(cpu), s.running, s.queued, s.in_flight);
    text_add(t, "\"capacity\":%u,\"busy_ns\":%lu,\"idle_ns\":%lu,\"irq_ns\":%lu,", sched_capacity(cpu),
             s.busy_ns, s.idle_ns, s.irq_ns);
    text_add(t, "\"switches\":%lu,\"wakes_local\":%lu,\"wakes_remote\":%lu,\"ipis_sent\":%lu,",
             s.switches, s.wakes_local, s.wakes_remote, s.ipis_sent);
    text_add(t, "\"migrations\":%lu,\"balance_passes\":%lu,\"balance_moves\":%lu}", migrations,
             s.balance_passes, s.balance_moves_accepted);
}

static void add_reasons_json(struct text *t)
{
    u64 migrations[NUM_MIGRATE_REASONS] = { 0 }, rejects[NUM_MOVE_REJECTS] = { 0 };
    struct sched_cpu_stats s;
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        sched_cpu_stats(cpu, &s);
        for (u32 r = 0; r < NUM_MIGRATE_REASONS; r++) {
            migrations[r] += s.migrations[r];
        }
        for (u32 r = 0; r < NUM_MOVE_REJECTS; r++) {
            rejects[r] += s.balance_moves_rejected[r];
        }
    }
    text_add(t, "\"migrations\":{");
    for (u32 r = 0; r < NUM_MIGRATE_REASONS; r++) {
        text_add(t, "%s\"%s\":%lu", r ? "," : "", migrate_reason_names[r], migrations[r]);
    }
    text_add(t, "},\"rejected_moves\":{");
    for (u32 r = 0; r < NUM_MOVE_REJECTS; r++) {
        text_add(t, "%s\"%s\":%lu", r ? "," : "", move_reject_names[r], rejects[r]);
    }
    text_add(t, "}");
}

struct placement {
    struct text *text;
    const char *comma;
};

static void add_placed_json(struct thread *thread, void *arg)
{
    struct placement *p = arg;
    struct thread_info info;
    const struct kthread *k = thread_head(thread)->app;
    thread_info(thread, &info);
    text_add(p->text, "%s{\"id\":%u,\"name\":", p->comma, info.id);
    text_json(p->text, info.name);
    text_add(p->text, ",\"process\":");
    text_json(p->text, k ? k->proc->name : "kernel");
    text_add(p->text, ",\"state\":\"%s\",\"cpu\":%u,\"runtime_ns\":%lu,\"migrations\":%lu}", info.state, info.cpu, info.runtime_ns,
             info.migrations);
    p->comma = ",";
}

void report_sched(struct text *t)
{
    struct placement threads = { .text = t, .comma = "" };
    text_add(t, "{\"policy\":\"%s\",\"interval_ms\":%u,\"time_ns\":%lu,", sched_policy_name(), sched_policy_interval_ms(),
             arch_clock_ns());
    add_reasons_json(t);
    text_add(t, ",\"cpus\":[");
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        text_append(t, ",", cpu > 0);
        add_cpu_json(t, cpu);
    }
    text_add(t, "],\"threads\":[");
    t->failed |= !thread_list_each(add_placed_json, &threads);
    text_add(t, "]}\n");
}
