/* /placement: which thread runs on which CPU over time, how long the queues are, and how long CPUs idle while threads wait
 * elsewhere; as a map for a terminal, or all samples as JSON. */
#include "core/base/bitops.h"
#include "core/base/hash.h"
#include "core/base/string.h"
#include "core/kern/obs/obs.h"
#include "core/kern/obs/placement.h"
#include "core/kern/obs/query.h"
#include "core/kern/obs/tunables.h"
#include "core/kern/proc.h"
#include "core/mm/mm.h"

#define COLUMNS 80        /* of the map */
#define SPREAD_SLOTS 8192 /* threads told apart, a power of two */
#define SPREAD_SHOWN 32   /* threads in the text */
#define CELLS_MAX (1u << 20)
#define SHARE 1000u       /* shares are printed in thousandths */

static const char *const format_words[] = { "text", "json", NULL };
enum { FORMAT_TEXT, FORMAT_JSON };

static u32 taken;

/* Where one thread was seen. */
struct spread {
    u32 id; /* 0: free */
    u32 samples;
    cpumask_t cpus;
};

struct request {
    u64 format;
    struct placement *p;
    struct spread spreads[SPREAD_SLOTS];
    u32 used;
};

static void count_thread(struct request *r, u32 id, u32 cpu)
{
    for (u64 i = mix64(id), tries = 0; tries < SPREAD_SLOTS; i++, tries++) {
        struct spread *s = &r->spreads[i & (SPREAD_SLOTS - 1)];
        if (s->id == 0 && r->used < SPREAD_SLOTS - SPREAD_SLOTS / 8) {
            s->id = id;
            r->used++;
        }
        if (s->id == id) {
            s->samples++;
            s->cpus |= BIT(cpu);
            return;
        }
        if (s->id == 0) {
            return;
        }
    }
}

static void count_threads(struct request *r)
{
    for (u32 i = 0; i < r->p->taken; i++) {
        for (u32 cpu = 0; cpu < r->p->cpus; cpu++) {
            u32 id = placement_thread(r->p, i, cpu);
            if (id) {
                count_thread(r, id, cpu);
            }
        }
    }
}

/* Most samples first, to the front of the table. Only the first `want` are in order. */
static u32 sort_spreads(struct request *r, u32 want)
{
    u32 n = 0;
    for (u32 i = 0; i < SPREAD_SLOTS; i++) {
        if (r->spreads[i].id) {
            r->spreads[n++] = r->spreads[i];
        }
    }
    for (u32 i = 0; i < MIN(n, want); i++) {
        u32 best = i;
        for (u32 k = i + 1; k < n; k++) {
            best = r->spreads[k].samples > r->spreads[best].samples ? k : best;
        }
        struct spread s = r->spreads[i];
        r->spreads[i] = r->spreads[best];
        r->spreads[best] = s;
    }
    return n;
}

struct identity {
    char name[THREAD_NAME_MAX];
    char process[THREAD_NAME_MAX];
    bool app;
};

static void identify(u32 id, struct identity *out)
{
    struct thread *t = thread_find(id);
    *out = (struct identity){ "?", "ended", true };
    if (t) {
        const struct kthread *k = thread_head(t)->app;
        str_copy(out->name, thread_head(t)->name, sizeof(out->name));
        str_copy(out->process, k ? k->proc->name : "kernel", sizeof(out->process));
        out->app = k != NULL;
        thread_put(t);
    }
}

/* CPUs on which threads of applications were seen. */
static u32 cpus_used(const struct request *r, u32 n)
{
    cpumask_t mask = 0;
    for (u32 i = 0; i < n; i++) {
        struct identity who;
        identify(r->spreads[i].id, &who);
        mask |= who.app ? r->spreads[i].cpus : 0;
    }
    return bit_count(mask);
}

/* ---- numbers common to both formats ---- */

static u64 share(u64 part, u64 whole)
{
    return whole ? part * SHARE / whole : 0;
}

static void add_summary(struct out *o, const struct placement *p, u32 used)
{
    u64 seconds_ns = p->overloaded_samples * p->period_ns, cpu_ns = p->overloaded_cpus * p->period_ns;
    out_add(o, "\"cpus_used\":%u,\"idle_overloaded_seconds\":%lu.%06lu,\"idle_overloaded_cpu_seconds\":%lu.%06lu,", used,
            (u64)(seconds_ns / NSEC_PER_SEC), (u64)(seconds_ns / NSEC_PER_USEC % 1000000), (u64)(cpu_ns / NSEC_PER_SEC),
            (u64)(cpu_ns / NSEC_PER_USEC % 1000000));
    out_add(o, "\"longest_idle_overloaded_us\":%lu,\"passes\":%lu,\"moves\":%lu,\"switches\":%lu,\"ipis\":%lu,\"rejected\":{",
            (u64)(p->longest_ns / NSEC_PER_USEC), p->passes, p->moves, p->switches, p->ipis);
    for (u32 i = 0; i < NUM_MOVE_REJECTS; i++) {
        out_add(o, "%s\"%s\":%lu", i ? "," : "", move_reject_names[i], p->rejected[i]);
    }
    out_add(o, "},\"migrations\":{");
    for (u32 i = 0; i < NUM_MIGRATE_REASONS; i++) {
        out_add(o, "%s\"%s\":%lu", i ? "," : "", migrate_reason_names[i], p->migrations[i]);
    }
    out_add(o, "}");
}

/* ---- JSON ---- */

static void write_json(struct request *r, struct out *o)
{
    const struct placement *p = r->p;
    u32 n = sort_spreads(r, 0);
    out_add(o, "{\"policy\":\"%s\",\"period_us\":%lu,\"cpus\":%u,", sched_policy_name(), (u64)(p->period_ns / NSEC_PER_USEC), p->cpus);
    out_add(o, "\"summary\":{");
    add_summary(o, p, cpus_used(r, n));
    out_add(o, "},\"threads\":[");
    for (u32 i = 0; i < n; i++) {
        struct identity who;
        identify(r->spreads[i].id, &who);
        out_add(o, "%s\n{\"id\":%u,\"name\":", i ? "," : "", r->spreads[i].id);
        out_json(o, who.name, sizeof(who.name));
        out_add(o, ",\"process\":");
        out_json(o, who.process, sizeof(who.process));
        out_add(o, ",\"samples\":%u,\"cpus\":%u}", r->spreads[i].samples, bit_count(r->spreads[i].cpus));
    }
    out_add(o, "],\"samples\":[");
    for (u32 i = 0; i < p->taken && !o->failed; i++) {
        out_add(o, "%s\n{\"us\":%lu,\"run\":[", i ? "," : "", (u64)((p->times[i] - p->start_ns) / NSEC_PER_USEC));
        for (u32 cpu = 0; cpu < p->cpus; cpu++) {
            out_add(o, "%s%u", cpu ? "," : "", placement_thread(p, i, cpu));
        }
        out_add(o, "],\"queued\":[");
        for (u32 cpu = 0; cpu < p->cpus; cpu++) {
            out_add(o, "%s%u", cpu ? "," : "", placement_queued(p, i, cpu));
        }
        out_add(o, "]}");
    }
    out_add(o, "\n]}\n");
}

/* ---- text ---- */

/* One CPU: a character for each stretch of time, darker the more of it was spent running threads; ! where threads waited. */
static void add_row(const struct placement *p, struct out *o, u32 cpu)
{
    static const char shades[] = " .:-=+*#%@";
    char line[COLUMNS + 1];
    u64 busy = 0, queued = 0;
    u32 columns = MIN(p->taken, (u32)COLUMNS);
    for (u32 c = 0; c < columns; c++) {
        u32 from = (u32)((u64)c * p->taken / columns), to = (u32)((u64)(c + 1) * p->taken / columns);
        u64 ran = 0, waited = 0;
        for (u32 i = from; i < to; i++) {
            ran += placement_thread(p, i, cpu) != 0;
            waited += placement_queued(p, i, cpu);
        }
        busy += ran;
        queued += waited;
        line[c] = waited >= to - from ? '!' : shades[ran * (sizeof(shades) - 2) / (to - from)];
    }
    line[columns] = '\0';
    out_add(o, "cpu %2u |%s| busy %3lu.%lu%% waiting %lu.%03lu\n", cpu, line, share(busy, p->taken) / 10, share(busy, p->taken) % 10,
            share(queued, p->taken) / SHARE, share(queued, p->taken) % SHARE);
}

static void write_text(struct request *r, struct out *o)
{
    const struct placement *p = r->p;
    u32 n = sort_spreads(r, SPREAD_SHOWN);
    out_add(o, "policy %s, %u samples every %lu us; darker: busier, !: a thread waited all the time\n", sched_policy_name(), p->taken,
            (u64)(p->period_ns / NSEC_PER_USEC));
    for (u32 cpu = 0; cpu < p->cpus; cpu++) {
        add_row(p, o, cpu);
    }
    out_add(o, "{");
    add_summary(o, p, cpus_used(r, n));
    out_add(o, "}\n%-8s %-16s %-16s %8s %5s  %s\n", "thread", "name", "process", "running", "CPUs", "seen on");
    for (u32 i = 0; i < MIN(n, (u32)SPREAD_SHOWN); i++) {
        const struct spread *s = &r->spreads[i];
        struct identity who;
        identify(s->id, &who);
        out_add(o, "%-8u %-16s %-16s %5lu.%lu%% %5u  0x%lx\n", s->id, who.name, who.process, share(s->samples, p->taken) / 10,
                share(s->samples, p->taken) % 10, bit_count(s->cpus), s->cpus);
    }
    out_add(o, "# %u of %u threads shown\n", MIN(n, (u32)SPREAD_SHOWN), n);
}

/* ---- the page ---- */

static void write_placement(struct http_answer *a, struct out *o)
{
    struct request *r = a->stream_arg;
    if (o) {
        placement_record(r->p);
        count_threads(r);
        (r->format == FORMAT_JSON ? write_json : write_text)(r, o);
    }
    placement_free(r->p);
    kfree(r);
    obs_release(&taken);
}

void obs_placement(const struct http_request *request, struct http_answer *out)
{
    u64 ms = OBS_DEFAULT_MS, period_us = PLACEMENT_DEFAULT_US, format = FORMAT_TEXT;
    const struct query_param params[] = {
        { "seconds", QUERY_MILLI, OBS_MIN_MS, OBS_MAX_MS, NULL, &ms },
        { "period_us", QUERY_NUMBER, PLACEMENT_MIN_US, OBS_MAX_MS * 1000, NULL, &period_us },
        { "format", QUERY_CHOICE, 0, 0, format_words, &format },
    };
    if (!query_parse(request, params, ARRAY_SIZE(params), out)) {
        return;
    }
    u64 samples = ms * 1000 / period_us + 1;
    u64 most = MIN((u64)PLACEMENT_MAX_SAMPLES, (u64)CELLS_MAX / sched_num_cpus());
    if (samples > most) {
        out->status = 400;
        text_add(&out->body, "%lu samples: at most %lu fit; make period_us larger or seconds smaller\n", samples, most);
        return;
    }
    if (!obs_claim(&taken)) {
        query_busy(out, "the placement");
        return;
    }
    struct request *r = kzalloc(sizeof(*r));
    struct placement *p = r ? placement_create((u32)samples, period_us * NSEC_PER_USEC) : NULL;
    if (!p) {
        kfree(r);
        obs_release(&taken);
        out->status = 503;
        text_add(&out->body, "not enough memory for %lu samples\n", samples);
        return;
    }
    r->p = p;
    r->format = format;
    out->type = format == FORMAT_JSON ? "application/json" : out->type;
    out->stream = write_placement;
    out->stream_arg = r;
    out->stream_ns = ms * NSEC_PER_MSEC + OBS_SEND_NS;
}
