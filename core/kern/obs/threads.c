/* /threads: every thread with its state, what it waits for, who holds that, and its stack; deadlocks first. */
#include "core/base/string.h"
#include "core/kern/obs/frames.h"
#include "core/kern/obs/obs.h"
#include "core/kern/obs/query.h"
#include "core/kern/obs/tunables.h"
#include "core/kern/obs/unwind.h"
#include "core/kern/obs/waits.h"
#include "core/mm/mm.h"

static const char *const format_words[] = { "text", "json", NULL };
enum { FORMAT_TEXT, FORMAT_JSON };

struct dump {
    struct wait_graph *graph;
    struct frames *frames;
    struct out *out;
    bool json;
};

/* "0-3,7" */
static void add_mask(struct out *o, cpumask_t mask)
{
    const char *comma = "";
    for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
        u32 last = cpu;
        if (!(mask & BIT(cpu))) {
            continue;
        }
        while (last + 1 < MAX_CPUS && (mask & BIT(last + 1))) {
            last++;
        }
        out_add(o, last > cpu ? "%s%u-%u" : "%s%u", comma, cpu, last);
        comma = ",";
        cpu = last;
    }
}

static u64 waited_ns(const struct thread_info *info)
{
    u64 now = arch_clock_ns();
    return now > info->wait_since_ns ? now - info->wait_since_ns : 0;
}

static bool waits(const struct thread_info *info)
{
    return info->wait_kind != WAIT_NONE && strcmp(info->state, "blocked") == 0;
}

/* ---- text ---- */

static void add_text(const struct dump *d, const struct wait_node *node, const struct proc *p, const u64 *pcs, size_t n)
{
    const struct thread_info *info = &node->info;
    struct out *o = d->out;
    out_add(o, "thread %u \"%s\" process=%s state=%s cpu=%u last-cpu=%u affinity=", info->id, info->name, p ? p->name : "kernel",
            info->state, info->cpu, info->last_cpu);
    add_mask(o, info->affinity);
    out_add(o, " nice=%d runtime=%lu.%06lus switches=%lu migrations=%lu", info->nice, TO_SEC(info->runtime_ns),
            SUB_SEC_USEC(info->runtime_ns), info->switches, info->migrations);
    if (waits(info)) {
        u64 ns = waited_ns(info);
        out_add(o, " waits-for=%s:0x%lx", wait_kind_name(info->wait_kind), info->wait_object);
        if (node->target.owner) {
            out_add(o, " %s-of=%u", node->target.what, node->target.owner);
        }
        out_add(o, " since=%lu.%06lus", TO_SEC(ns), SUB_SEC_USEC(ns));
    }
    if (node->cycle) {
        out_add(o, " DEADLOCK=%u", node->cycle);
    }
    out_append(o, "\n", 1);
    for (size_t i = 0; i < n; i++) {
        out_add(o, "    #%lu 0x%lx %s\n", i, pcs[i], frames_name(d->frames, p, pcs[i], true));
    }
}

static struct wait_node *node_of(struct wait_graph *g, u32 id)
{
    for (u32 i = 0; i < g->n; i++) {
        if (wait_graph_node(g, i)->info.id == id) {
            return wait_graph_node(g, i);
        }
    }
    return NULL;
}

/* One line a cycle: 12 "a" -> 13 "b" -> 12. */
static void add_cycle(const struct dump *d, u32 cycle)
{
    struct wait_node *first = NULL;
    for (u32 i = 0; i < d->graph->n && !first; i++) {
        first = wait_graph_node(d->graph, i)->cycle == cycle ? wait_graph_node(d->graph, i) : NULL;
    }
    if (!first) {
        return;
    }
    const struct wait_node *node = first;
    out_add(d->out, d->json ? "[" : "DEADLOCK %u: ", cycle);
    do {
        out_add(d->out, d->json ? "%s%u" : "%s%u \"%s\"", node == first ? "" : d->json ? "," : " -> ", node->info.id,
                node->info.name);
        node = node_of(d->graph, node->target.owner);
    } while (node && node != first);
    if (d->json) {
        out_add(d->out, "]");
    } else {
        out_add(d->out, " -> %u\n", first->info.id);
    }
}

/* ---- JSON ---- */

static void add_json(const struct dump *d, const struct wait_node *node, const struct proc *p, const u64 *pcs, size_t n)
{
    const struct thread_info *info = &node->info;
    struct out *o = d->out;
    out_add(o, "{\"id\":%u,\"name\":", info->id);
    out_json(o, info->name, sizeof(info->name));
    out_add(o, ",\"process\":");
    out_json(o, p ? p->name : "kernel", THREAD_NAME_MAX);
    out_add(o, ",\"pid\":%u,\"state\":\"%s\",\"cpu\":%u,\"last_cpu\":%u,\"domain\":%u,\"affinity\":\"", p ? p->pid : 0, info->state,
            info->cpu, info->last_cpu, info->domain);
    add_mask(o, info->affinity);
    out_add(o, "\",\"nice\":%d,\"runtime_ns\":%lu,\"switches\":%lu,\"migrations\":%lu", info->nice, info->runtime_ns,
            info->switches, info->migrations);
    if (waits(info)) {
        out_add(o, ",\"waits_for\":{\"kind\":\"%s\",\"object\":\"0x%lx\",\"what\":\"%s\",\"ns\":%lu",
                wait_kind_name(info->wait_kind), info->wait_object, node->target.what, waited_ns(info));
        if (node->target.owner) {
            out_add(o, ",\"owner\":%u", node->target.owner);
        }
        out_add(o, "}");
    }
    if (node->cycle) {
        out_add(o, ",\"deadlock\":%u", node->cycle);
    }
    out_add(o, ",\"stack\":[");
    for (size_t i = 0; i < n; i++) {
        out_add(o, "%s{\"pc\":\"0x%lx\",\"function\":", i ? "," : "", pcs[i]);
        out_json(o, frames_name(d->frames, p, pcs[i], true), SYMBOL_BYTES);
        out_add(o, "}");
    }
    out_add(o, "]}");
}

/* ---- the page ---- */

static void add_node(const struct dump *d, struct wait_node *node)
{
    u64 pcs[UNWIND_MAX];
    struct thread_info info;
    const struct kthread *k = thread_head(node->thread)->app;
    size_t n = unwind_waiting(node->thread, &info, pcs, UNWIND_MAX);
    (d->json ? add_json : add_text)(d, node, k ? k->proc : NULL, pcs, n);
}

static void add_all(const struct dump *d)
{
    struct wait_graph *g = d->graph;
    if (d->json) {
        out_add(d->out, "{\"time_ns\":%lu,\"deadlocks\":[", arch_clock_ns());
    }
    if (!d->json) {
        out_add(d->out, "%u threads\n", g->n);
    }
    for (u32 cycle = 1; cycle <= g->cycles; cycle++) {
        out_add(d->out, "%s", d->json && cycle > 1 ? "," : "");
        add_cycle(d, cycle);
    }
    if (d->json) {
        out_add(d->out, "],\"threads\":[");
    }
    for (u32 i = 0; i < g->n && !d->out->failed; i++) {
        if (d->json) {
            out_add(d->out, "%s\n", i ? "," : "");
        }
        add_node(d, wait_graph_node(g, i));
    }
    if (d->json) {
        out_add(d->out, "\n]}\n");
    }
}

static void write_threads(struct http_answer *a, struct out *out)
{
    struct dump *d = a->stream_arg;
    d->out = out;
    if (out) {
        add_all(d);
    }
    wait_graph_free(d->graph);
    frames_free(d->frames);
    kfree(d);
}

void obs_threads(const struct http_request *request, struct http_answer *out)
{
    u64 format = FORMAT_TEXT;
    const struct query_param params[] = { { "format", QUERY_CHOICE, 0, 0, format_words, &format } };
    if (!query_parse(request, params, ARRAY_SIZE(params), out)) {
        return;
    }
    struct dump *d = kzalloc(sizeof(*d));
    struct frames *frames = frames_create(format == FORMAT_TEXT);
    struct wait_graph *graph = d && frames ? wait_graph_create() : NULL;
    if (!graph) {
        frames_free(frames);
        kfree(d);
        out->status = 503;
        text_add(&out->body, "not enough memory for a dump of all threads\n");
        return;
    }
    *d = (struct dump){ graph, frames, NULL, format == FORMAT_JSON };
    out->type = d->json ? "application/json" : out->type;
    out->stream = write_threads;
    out->stream_arg = d;
    out->stream_ns = OBS_SEND_NS;
}
