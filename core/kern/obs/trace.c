/* /trace: records events for a while, then streams them as Chrome trace JSON; and the flight recorder, which records from boot
 * (trace=sched,ipi on the command line), so that a panic can tell of the last events before it. */
#include "core/base/bitops.h"
#include "core/base/console.h"
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/obs/obs.h"
#include "core/kern/obs/profile.h"
#include "core/kern/obs/query.h"
#include "core/kern/obs/thread_list.h"
#include "core/kern/obs/trace_json.h"
#include "core/kern/obs/tunables.h"
#include "core/kern/proc.h"
#include "core/mm/mm.h"

/* Bits of enum trace_category, lowest first. */
static const char *const category_words[] = { "sched", "ipi", "idle", "futex", "lock", "net", "queue", NULL };
static const char *const full_words[] = { "stop", "overwrite", NULL };
enum { FULL_STOP, FULL_OVERWRITE };

static u32 taken;
static u32 always; /* categories that the flight recorder records */

struct request {
    u64 ms, categories, full;
    struct trace_merge merge;
    struct trace_threads *threads;
};

/* Rings of the size that the memory allows, at first use. */
static bool make_rings(void)
{
    struct mem_stats s;
    u32 events = TRACE_EVENTS_MAX, cpus = sched_num_cpus();
    if (trace_ready()) {
        return true;
    }
    mem_stats(&s);
    while (events > TRACE_EVENTS_MIN && (u64)events * sizeof(struct trace_event) * cpus > PAGES_TO_BYTES(s.free_pages) / TRACE_MEMORY_DIVISOR) {
        events /= 2;
    }
    return trace_init(cpus, events, kzalloc) == 0;
}

/* ---- threads ---- */

static void add_thread(struct thread *t, void *arg)
{
    const struct thread_head *head = thread_head(t);
    const struct kthread *k = head->app;
    trace_threads_add(arg, head->id, k ? k->proc->pid : TRACE_JSON_KERNEL, k ? k->proc->name : "kernel", head->name);
}

static void add_state(struct thread *t, void *arg)
{
    struct thread_info info;
    thread_info(t, &info);
    trace_threads_state(arg, &info);
}

static u32 table_size(void)
{
    u32 size = 2048, want = 2 * thread_count();
    while (size < want && size < TRACE_THREADS_MAX) {
        size *= 2;
    }
    return size;
}

/* ---- recording ---- */

static void record(const struct request *r, struct trace_about *about)
{
    thread_list_each(add_thread, r->threads);
    about->sched = r->categories & TRACE_CAT_SCHED;
    about->started_ns = arch_clock_ns();
    trace_start((u32)r->categories, r->full == FULL_STOP);
    if (about->sched) {
        /* What runs and waits now says how it was at the start for whatever no event tells of. */
        for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
            struct sched_cpu_now state;
            sched_cpu_now(cpu, &state);
            about->running[cpu] = state.thread;
        }
        thread_list_each(add_state, r->threads);
    }
    thread_sleep_until(about->started_ns + r->ms * NSEC_PER_MSEC);
    trace_stop();
    about->ended_ns = arch_clock_ns();
    thread_list_each(add_thread, r->threads);
}

static void write_trace(struct http_answer *a, struct out *out)
{
    struct request *r = a->stream_arg;
    struct trace_about about = { .categories = r->categories, .category_words = category_words, .policy = sched_policy_name() };
    if (out) {
        record(r, &about);
        trace_merge_begin(&r->merge, sched_num_cpus(), about.started_ns, r->full == FULL_STOP);
        trace_json(out, &r->merge, r->threads, &about);
        trace_start(always, false);
    }
    trace_threads_free(r->threads);
    kfree(r);
    obs_release(&taken);
}

void obs_trace(const struct http_request *request, struct http_answer *out)
{
    u64 ms = OBS_DEFAULT_MS, categories = TRACE_CAT_ALL, full = FULL_STOP;
    const struct query_param params[] = {
        { "seconds", QUERY_MILLI, OBS_MIN_MS, OBS_MAX_MS, NULL, &ms },
        { "cat", QUERY_SET, 0, 0, category_words, &categories },
        { "full", QUERY_CHOICE, 0, 0, full_words, &full },
    };
    if (!query_parse(request, params, ARRAY_SIZE(params), out)) {
        return;
    }
    if (!obs_claim(&taken)) {
        query_busy(out, "a trace");
        return;
    }
    struct request *r = kzalloc(sizeof(*r));
    if (r) {
        r->threads = trace_threads_create(table_size());
    }
    if (!r || !r->threads || !make_rings()) {
        if (r) {
            trace_threads_free(r->threads);
        }
        kfree(r);
        obs_release(&taken);
        out->status = 503;
        text_add(&out->body, "not enough memory for the rings of a trace\n");
        return;
    }
    r->ms = ms;
    r->categories = categories;
    r->full = full;
    out->stream = write_trace;
    out->stream_arg = r;
    out->stream_ns = ms * NSEC_PER_MSEC + OBS_SEND_NS;
}

/* ---- flight recorder ---- */

static void print_event(const struct trace_event *e)
{
    console_line("", "  %lu.%09lu c%-2u %-10s thread %-6u arg %u a 0x%lx b 0x%lx", TO_SEC(e->time_ns), SUB_SEC_NS(e->time_ns),
                 e->cpu, trace_type_name(e->type), e->thread, e->arg, e->a, e->b);
}

static void print_tail(void)
{
    trace_stop();
    if (!trace_ready()) {
        console_line("", "events: none recorded (trace=" OBS_CATEGORIES " on the command line records from boot)");
        return;
    }
    console_line("", "last %d events:", TRACE_PANIC_EVENTS);
    trace_tail(TRACE_PANIC_EVENTS, print_event);
}

bool obs_init(const char *categories)
{
    u64 set = 0;
    panic_extra = print_tail;
    if (!categories) {
        return true;
    }
    if (!query_parse_set(categories, category_words, &set)) {
        return false;
    }
    if (!make_rings()) {
        log_warn("weir: trace=%s: not enough memory for the rings; nothing is recorded", categories);
        return true;
    }
    always = (u32)set;
    trace_start(always, false);
    return true;
}

/* How much the flight recorder saw, for those who weigh what it costs. */
static void print_counts(void)
{
    struct trace_ring_info info;
    u64 recorded = 0, lost = 0;
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        trace_ring_info(cpu, &info);
        recorded += info.recorded;
        lost += info.lost;
    }
    log_info("trace: %lu events, %lu of them overwritten", recorded, lost);
}

void obs_shutdown(void)
{
    trace_stop();
    if (always) {
        print_counts();
    }
    profile_print();
}
