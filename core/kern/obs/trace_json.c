#include "core/kern/obs/trace_json.h"

#include "core/base/spinlock.h"
#include "core/base/string.h"
#include "core/kern/obs/trace_threads.h"

#define PROCESSES_MAX 16
#define FLOW_KINDS 2 /* interrupts to reschedule, interrupts for the network */

struct cpu_track {
    bool known;    /* what runs is: `thread` */
    bool switched; /* an event has said so */
    u32 thread;    /* 0: idle */
    u64 since_ns;
    u64 waiting;             /* length of its queue as last shown */
    u32 flow[FLOW_KINDS];    /* interrupt on its way here */
};

struct json {
    struct out *out;
    struct trace_merge *m;
    struct trace_threads *threads;
    u64 base_ns, end_ns;
    const char *comma;
    u32 flows;
    u32 processes[PROCESSES_MAX], num_processes;
    struct cpu_track cpus[MAX_CPUS];
};

/* ---- pieces of JSON ---- */

static u64 since_base(const struct json *j, u64 ns)
{
    return ns > j->base_ns ? ns - j->base_ns : 0;
}

static void open_event(struct json *j, const char *phase, u32 pid, u32 tid, u64 ns)
{
    u64 at = since_base(j, ns);
    out_add(j->out, "%s\n{\"ph\":\"%s\",\"pid\":%u,\"tid\":%u,\"ts\":%lu.%03lu", j->comma, phase, pid, tid, at / 1000, at % 1000);
    j->comma = ",";
}

static void add_name(struct json *j, const char *name, size_t n)
{
    out_add(j->out, ",\"name\":");
    out_json(j->out, name, n);
}

/* A slice; the caller adds arguments and the closing braces. */
static void open_slice(struct json *j, u32 pid, u32 tid, u64 from_ns, u64 to_ns, const char *name, size_t n)
{
    from_ns = MAX(from_ns, j->base_ns);
    u64 ns = to_ns > from_ns ? to_ns - from_ns : 0;
    open_event(j, "X", pid, tid, from_ns);
    out_add(j->out, ",\"dur\":%lu.%03lu", ns / 1000, ns % 1000);
    add_name(j, name, n);
    out_add(j->out, ",\"args\":{");
}

static void close_event(struct json *j)
{
    out_add(j->out, "}}");
}

static void open_instant(struct json *j, u32 pid, u32 tid, u64 ns, const char *scope, const char *name, size_t n)
{
    open_event(j, "i", pid, tid, ns);
    out_add(j->out, ",\"s\":\"%s\"", scope);
    add_name(j, name, n);
    out_add(j->out, ",\"args\":{");
}

static void flow(struct json *j, const char *phase, u32 pid, u32 tid, u64 ns, const char *name, u32 id)
{
    open_event(j, phase, pid, tid, ns);
    out_add(j->out, ",\"id\":%u,\"cat\":\"%s\",\"name\":\"%s\"%s}", id, name, name, phase[0] == 'f' ? ",\"bp\":\"e\"" : "");
}

static void metadata(struct json *j, const char *what, u32 pid, u32 tid, const char *name, size_t n)
{
    out_add(j->out, "%s\n{\"ph\":\"M\",\"pid\":%u,\"tid\":%u,\"name\":\"%s\",\"args\":{\"name\":", j->comma, pid, tid, what);
    j->comma = ",";
    out_json(j->out, name, n);
    close_event(j);
}

static void announce_process(struct json *j, u32 pid, const char *name)
{
    for (u32 i = 0; i < j->num_processes; i++) {
        if (j->processes[i] == pid) {
            return;
        }
    }
    if (j->num_processes < PROCESSES_MAX) {
        j->processes[j->num_processes++] = pid;
        metadata(j, "process_name", pid, pid, name, strlen(name));
    }
}

/* A thread with its track named; NULL: it has none. */
static struct trace_thread *thread_of(struct json *j, u32 id)
{
    struct trace_thread *th = id ? trace_thread_get(j->threads, id) : NULL;
    if (th && !th->announced) {
        th->announced = true;
        announce_process(j, th->pid, th->process);
        metadata(j, "thread_name", th->pid, th->id, th->name, sizeof(th->name));
    }
    return th;
}

/* ---- tracks ---- */

static void end_cpu_slice(struct json *j, u32 cpu, u64 ns)
{
    struct cpu_track *c = &j->cpus[cpu];
    struct trace_thread *th = thread_of(j, c->thread);
    const char *name = th ? th->name : c->thread ? "thread" : "idle";
    if (!c->known) {
        return;
    }
    open_slice(j, TRACE_JSON_CPUS, TRACE_JSON_CPU_TID(cpu), c->since_ns, ns, name, THREAD_NAME_MAX);
    if (c->thread) {
        out_add(j->out, "\"thread\":%u", c->thread);
    }
    close_event(j);
}

static void end_thread_slice(struct json *j, struct trace_thread *th, u64 ns)
{
    char blocked[32];
    switch (th->state) {
    case TRACK_RUNNING:
        open_slice(j, th->pid, th->id, th->since_ns, ns, "running", 7);
        out_add(j->out, "\"cpu\":%u", th->cpu);
        break;
    case TRACK_RUNNABLE:
        open_slice(j, th->pid, th->id, th->since_ns, ns, "runnable", 8);
        break;
    case TRACK_BLOCKED:
        str_format(blocked, sizeof(blocked), "blocked: %s", wait_kind_name((enum wait_kind)th->wait_kind));
        open_slice(j, th->pid, th->id, th->since_ns, ns, blocked, sizeof(blocked));
        out_add(j->out, "\"object\":\"0x%lx\"", th->wait_object);
        break;
    case TRACK_THROTTLED:
        open_slice(j, th->pid, th->id, th->since_ns, ns, "throttled", 9);
        break;
    default:
        return;
    }
    close_event(j);
}

static void enter(struct json *j, struct trace_thread *th, enum track_state state, u64 ns)
{
    end_thread_slice(j, th, ns);
    th->state = state;
    th->since_ns = ns;
}

static void show_waiting(struct json *j, u32 cpu, u64 ns, u64 waiting)
{
    struct cpu_track *c = &j->cpus[cpu];
    if (c->waiting != waiting) {
        c->waiting = waiting;
        open_event(j, "C", TRACE_JSON_CPUS, TRACE_JSON_CPU_TID(cpu), ns);
        out_add(j->out, ",\"name\":\"waiting on CPU %u\",\"args\":{\"threads\":%lu}}", cpu, waiting);
    }
}

/* ---- events ---- */

static enum track_state state_after(const struct trace_event *e, bool woken)
{
    switch (TRACE_SWITCH_STATE(e->arg)) {
    case TRACE_STATE_DEAD:
        return TRACK_GONE;
    case TRACE_STATE_THROTTLED:
        return TRACK_THROTTLED;
    case TRACE_STATE_BLOCKED:
        return woken ? TRACK_RUNNABLE : TRACK_BLOCKED;
    default:
        return TRACK_RUNNABLE;
    }
}

static void on_switch(struct json *j, const struct trace_event *e)
{
    struct cpu_track *c = &j->cpus[e->cpu];
    struct trace_thread *prev = thread_of(j, (u32)e->a), *next = thread_of(j, e->thread);
    if (!c->switched) {
        c->known = c->switched = true;
        c->thread = (u32)e->a;
    }
    end_cpu_slice(j, e->cpu, e->time_ns);
    c->thread = e->thread;
    c->since_ns = e->time_ns;
    if (prev) {
        if (prev->state != TRACK_RUNNING) {
            /* It has run since before the recording, whatever it did when it was looked at. */
            prev->state = TRACK_RUNNING;
            prev->cpu = e->cpu;
            prev->since_ns = j->m->from_ns;
        }
        prev->told = true;
        enter(j, prev, state_after(e, prev->woken), e->time_ns);
        prev->wait_kind = TRACE_SWITCH_KIND(e->arg);
        prev->wait_object = e->b;
        prev->woken = false;
    }
    if (next) {
        if (!next->told) {
            next->state = TRACK_RUNNABLE; /* nobody has woken it since the start */
            next->told = true;
        }
        enter(j, next, TRACK_RUNNING, e->time_ns);
        next->cpu = e->cpu;
        if (next->flow) {
            flow(j, "f", next->pid, next->id, e->time_ns, "wake", next->flow);
            next->flow = 0;
        }
    }
    show_waiting(j, e->cpu, e->time_ns, TRACE_SWITCH_WAITING(e->arg));
}

static void on_wake(struct json *j, const struct trace_event *e)
{
    struct trace_thread *th = thread_of(j, e->thread), *waker = thread_of(j, (u32)e->a);
    if (!th) {
        return;
    }
    if (!th->told && th->state != TRACK_BLOCKED && th->state != TRACK_THROTTLED) {
        th->state = TRACK_UNKNOWN; /* it was looked at when it had already been woken */
    }
    th->told = true;
    if (th->state == TRACK_RUNNING) {
        th->woken = true;
    } else {
        enter(j, th, TRACK_RUNNABLE, e->time_ns);
    }
    if (waker && waker->state == TRACK_RUNNING) {
        th->flow = ++j->flows;
        flow(j, "s", waker->pid, waker->id, e->time_ns, "wake", th->flow);
    } else if (j->cpus[e->cpu].known) {
        th->flow = ++j->flows;
        flow(j, "s", TRACE_JSON_CPUS, TRACE_JSON_CPU_TID(e->cpu), e->time_ns, "wake", th->flow);
    }
}

static void on_throttle(struct json *j, const struct trace_event *e)
{
    struct trace_thread *th = thread_of(j, e->thread);
    /* The one that is just leaving its CPU shows it in its switch. */
    if (th && th->state != TRACK_RUNNING) {
        th->told = true;
        enter(j, th, TRACK_THROTTLED, e->time_ns);
    }
}

static void on_migrate(struct json *j, const struct trace_event *e)
{
    struct trace_thread *th = thread_of(j, e->thread);
    char name[40];
    if (th) {
        str_format(name, sizeof(name), "migrate: %s", e->arg < NUM_MIGRATE_REASONS ? migrate_reason_names[e->arg] : "?");
        open_instant(j, th->pid, th->id, e->time_ns, "t", name, sizeof(name));
        out_add(j->out, "\"from\":%lu,\"to\":%lu", e->a, e->b);
        close_event(j);
    }
}

static void on_futex(struct json *j, const struct trace_event *e)
{
    struct trace_thread *th = thread_of(j, e->thread);
    bool wake = e->type == TRACE_FUTEX_WAKE;
    if (!th) {
        return;
    }
    open_instant(j, th->pid, th->id, e->time_ns, "t", wake ? "futex wake" : "futex wait", 10);
    out_add(j->out, "\"address\":\"0x%lx\"", e->a);
    if (wake) {
        out_add(j->out, ",\"woken\":%lu", e->b);
    }
    close_event(j);
}

/* An interrupt to another CPU, and its arrival there: one arrow even for several that melt into one. */
static void on_ipi(struct json *j, const struct trace_event *e)
{
    u32 kind = e->a ? 1 : 0, tid = TRACE_JSON_CPU_TID(e->cpu);
    if (e->type == TRACE_IPI_TAKEN) {
        u32 *id = &j->cpus[e->cpu].flow[kind];
        open_instant(j, TRACE_JSON_CPUS, tid, e->time_ns, "t", "interrupt", 9);
        close_event(j);
        if (*id && j->cpus[e->cpu].known) {
            flow(j, "f", TRACE_JSON_CPUS, tid, e->time_ns, "ipi", *id);
        }
        *id = 0;
        return;
    }
    open_instant(j, TRACE_JSON_CPUS, tid, e->time_ns, "t", kind ? "IPI: network" : "IPI", 12);
    out_add(j->out, "\"target\":%u", e->arg);
    close_event(j);
    if (e->arg < j->m->num_cpus && j->cpus[e->cpu].known && j->cpus[e->arg].flow[kind] == 0) {
        j->cpus[e->arg].flow[kind] = ++j->flows;
        flow(j, "s", TRACE_JSON_CPUS, tid, e->time_ns, "ipi", j->flows);
    }
}

static const char *class_name(u64 address)
{
    for (const struct lock_class *c = LOAD_ACQUIRE(lock_classes); c; c = c->next) {
        if ((u64)(uintptr_t)c == address) {
            return c->name;
        }
    }
    return "lock";
}

/* Events of a CPU's own. */
static void on_cpu_event(struct json *j, const struct trace_event *e)
{
    u32 tid = TRACE_JSON_CPU_TID(e->cpu);
    char name[48];
    switch (e->type) {
    case TRACE_IDLE_EXIT:
        open_slice(j, TRACE_JSON_CPUS, tid, e->time_ns - MIN(e->a, e->time_ns), e->time_ns, "waiting for work", 16);
        break;
    case TRACE_LOCK_WAIT:
        str_format(name, sizeof(name), "spin: %s", class_name(e->b));
        open_slice(j, TRACE_JSON_CPUS, tid, e->time_ns - MIN(e->a, e->time_ns), e->time_ns, name, sizeof(name));
        break;
    case TRACE_BALANCE:
        open_instant(j, TRACE_JSON_CPUS, tid, e->time_ns, "t", "balance", 7);
        out_add(j->out, "\"candidates\":%lu,\"planned\":%lu,\"moved\":%u", e->a, e->b, e->arg);
        break;
    case TRACE_RX:
        open_instant(j, TRACE_JSON_CPUS, tid, e->time_ns, "t", "receive", 7);
        out_add(j->out, "\"queue\":%u,\"packets\":%lu,\"wakes\":%lu", e->arg, e->a, e->b);
        break;
    case TRACE_TX:
        open_instant(j, TRACE_JSON_CPUS, tid, e->time_ns, "t", "send", 4);
        out_add(j->out, "\"queue\":%u,\"packets\":%lu", e->arg, e->a);
        break;
    default:
        return;
    }
    close_event(j);
}

static void on_thread(struct json *j, const struct trace_event *e)
{
    struct trace_thread *th = trace_thread_get(j->threads, e->thread);
    if (th) {
        char text[16];
        memcpy(text, &e->a, sizeof(u64));
        memcpy(text + sizeof(u64), &e->b, sizeof(u64));
        trace_thread_name(th, text, sizeof(text));
        th->announced = false; /* by its new name */
    }
}

static void on_mark(struct json *j, const struct trace_event *e)
{
    char text[16];
    memcpy(text, &e->a, sizeof(u64));
    memcpy(text + sizeof(u64), &e->b, sizeof(u64));
    open_instant(j, TRACE_JSON_CPUS, TRACE_JSON_CPU_TID(e->cpu), e->time_ns, "g", text, sizeof(text));
    close_event(j);
}

static void on_event(struct json *j, const struct trace_event *e)
{
    switch (e->type) {
    case TRACE_SWITCH:
        on_switch(j, e);
        break;
    case TRACE_WAKE:
        on_wake(j, e);
        break;
    case TRACE_ENQUEUE:
        show_waiting(j, e->cpu, e->time_ns, e->a);
        break;
    case TRACE_THROTTLE:
        on_throttle(j, e);
        break;
    case TRACE_MIGRATE:
        on_migrate(j, e);
        break;
    case TRACE_FUTEX_WAIT:
    case TRACE_FUTEX_WAKE:
        on_futex(j, e);
        break;
    case TRACE_IPI:
    case TRACE_IPI_TAKEN:
        on_ipi(j, e);
        break;
    case TRACE_THREAD:
        on_thread(j, e);
        break;
    case TRACE_MARK:
        on_mark(j, e);
        break;
    default:
        on_cpu_event(j, e);
        break;
    }
}

/* ---- the whole ---- */

static void announce_known(struct json *j)
{
    char name[16];
    announce_process(j, TRACE_JSON_CPUS, "CPUs");
    for (u32 cpu = 0; cpu < j->m->num_cpus; cpu++) {
        int n = str_format(name, sizeof(name), "CPU %u", cpu);
        metadata(j, "thread_name", TRACE_JSON_CPUS, TRACE_JSON_CPU_TID(cpu), name, (size_t)n);
    }
}

/* What was still going on at the end. */
static void finish(struct json *j)
{
    for (u32 cpu = 0; cpu < j->m->num_cpus; cpu++) {
        end_cpu_slice(j, cpu, j->end_ns);
    }
    for (u32 i = 0; i <= j->threads->mask; i++) {
        struct trace_thread *th = &j->threads->slots[i];
        if (th->id && th->state != TRACK_UNKNOWN) {
            (void)thread_of(j, th->id); /* names its track */
            enter(j, th, TRACK_GONE, j->end_ns);
        }
    }
}

static void add_about(struct out *out, const struct json *j, const struct trace_about *a, u64 events)
{
    const char *comma = "";
    out_add(out, "\n],\"displayTimeUnit\":\"ns\",\"otherData\":{\"from_ns\":%lu,\"to_ns\":%lu,\"asked_ns\":%lu,", j->m->from_ns,
            j->end_ns, a->ended_ns - a->started_ns);
    out_add(out, "\"recorded\":%lu,\"lost\":%lu,\"exported\":%lu,\"threads_without_track\":%lu,", j->m->recorded, j->m->lost,
            events, j->threads->refused);
    out_add(out, "\"policy\":\"%s\",\"categories\":\"", a->policy);
    for (u32 i = 0; a->category_words[i]; i++) {
        if (a->categories & BIT(i)) {
            out_add(out, "%s%s", comma, a->category_words[i]);
            comma = ",";
        }
    }
    out_add(out, "\"}}\n");
}

void trace_json(struct out *out, struct trace_merge *m, struct trace_threads *threads, const struct trace_about *about)
{
    static struct json state; /* one export at a time: the recorder is claimed */
    struct json *j = &state;
    struct trace_event e;
    u64 events = 0;
    *j = (struct json){ .out = out, .m = m, .threads = threads, .base_ns = m->from_ns, .comma = "",
                        .end_ns = MIN(m->to_ns, about->ended_ns) };
    out_add(out, "{\"traceEvents\":[");
    announce_known(j);
    for (u32 cpu = 0; cpu < m->num_cpus; cpu++) {
        j->cpus[cpu] = (struct cpu_track){ .known = about->sched, .thread = about->running[cpu], .since_ns = m->from_ns };
    }
    /* Other CPUs record a little longer than the recorder's clock says: what comes after the end has no slice to lie in. */
    while (!out->failed && trace_merge_next(m, &e) && e.time_ns <= j->end_ns) {
        on_event(j, &e);
        events++;
    }
    finish(j);
    add_about(out, j, about, events);
}
