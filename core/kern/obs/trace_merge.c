#include "core/kern/obs/trace_merge.h"

static bool before(const struct trace_merge *m, u32 a, u32 b)
{
    const struct trace_event *x = &m->next[a], *y = &m->next[b];
    return x->time_ns != y->time_ns ? x->time_ns < y->time_ns : a < b;
}

static void sift_down(struct trace_merge *m, u32 i)
{
    for (;;) {
        u32 least = i;
        for (u32 child = 2 * i + 1; child <= 2 * i + 2 && child < m->heap_size; child++) {
            if (before(m, m->heap[child], m->heap[least])) {
                least = child;
            }
        }
        if (least == i) {
            return;
        }
        u32 cpu = m->heap[i];
        m->heap[i] = m->heap[least];
        m->heap[least] = cpu;
        i = least;
    }
}

/* Reads on to the next event of the CPU that lies within the window. */
static bool advance(struct trace_merge *m, u32 cpu)
{
    while (trace_read(cpu, m->cursor[cpu], &m->next[cpu])) {
        m->cursor[cpu]++;
        u64 at = m->next[cpu].time_ns;
        if (at > m->to_ns) {
            return false;
        }
        if (at >= m->from_ns && m->next[cpu].type > 0 && m->next[cpu].type < NUM_TRACE_TYPES) {
            return true;
        }
    }
    return false;
}

/* A ring that overflowed lacks its newest events, or its oldest: no CPU is shown where another one's are missing. */
static void narrow(struct trace_merge *m, u32 cpu, bool stop_when_full)
{
    struct trace_ring_info info;
    struct trace_event e;
    trace_ring_info(cpu, &info);
    m->recorded += info.recorded;
    m->lost += info.lost;
    if (info.lost == 0) {
        return;
    }
    if (!stop_when_full) {
        if (trace_read(cpu, 0, &e)) {
            m->from_ns = MAX(m->from_ns, e.time_ns);
        }
    } else if (info.recorded && trace_read(cpu, info.recorded - 1, &e)) {
        m->to_ns = MIN(m->to_ns, e.time_ns);
    }
}

void trace_merge_begin(struct trace_merge *m, u32 num_cpus, u64 started_ns, bool stop_when_full)
{
    *m = (struct trace_merge){ .from_ns = started_ns, .to_ns = UINT64_MAX, .num_cpus = num_cpus };
    for (u32 cpu = 0; cpu < num_cpus; cpu++) {
        narrow(m, cpu, stop_when_full);
    }
    for (u32 cpu = 0; cpu < num_cpus; cpu++) {
        if (advance(m, cpu)) {
            m->heap[m->heap_size++] = cpu;
        }
    }
    for (u32 i = m->heap_size / 2; i-- > 0;) {
        sift_down(m, i);
    }
}

bool trace_merge_next(struct trace_merge *m, struct trace_event *out)
{
    if (m->heap_size == 0) {
        return false;
    }
    u32 cpu = m->heap[0];
    *out = m->next[cpu];
    if (!advance(m, cpu)) {
        m->heap[0] = m->heap[--m->heap_size];
    }
    sift_down(m, 0);
    return true;
}
