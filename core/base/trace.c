#include "core/base/trace.h"

#include "arch/arch.h"
#include "core/base/errno.h"
#include "core/base/string.h"

struct ring {
    struct trace_event *events;
    u64 head; /* events written; the slot is head & mask */
    u64 refused;
} __cacheline_aligned;

u32 trace_categories;
static struct ring rings[MAX_CPUS];
static u32 num_rings;
static u64 ring_mask;
static bool keep_oldest;

int trace_init(u32 num_cpus, u32 events, void *(*alloc)(size_t bytes))
{
    if (num_cpus > MAX_CPUS || !events || (events & (events - 1))) {
        return -EINVAL;
    }
    for (u32 i = num_rings; i < num_cpus; i++) {
        rings[i].events = alloc(events * sizeof(struct trace_event));
        if (!rings[i].events) {
            return -ENOMEM;
        }
        ring_mask = events - 1;
        STORE_RELEASE(num_rings, i + 1);
    }
    return 0;
}

bool trace_ready(void)
{
    return LOAD_ACQUIRE(num_rings) != 0;
}

void trace_start(u32 categories, bool stop_when_full)
{
    WRITE_ONCE(trace_categories, 0);
    keep_oldest = stop_when_full;
    for (u32 i = 0; i < num_rings; i++) {
        WRITE_ONCE(rings[i].head, 0);
        WRITE_ONCE(rings[i].refused, 0);
    }
    STORE_RELEASE(trace_categories, trace_ready() ? categories : 0);
}

void trace_stop(void)
{
    STORE_RELEASE(trace_categories, 0);
}

_Static_assert(offsetof(struct trace_event, type) == 8 && offsetof(struct trace_event, cpu) == 9 &&
                   offsetof(struct trace_event, arg) == 10 && offsetof(struct trace_event, thread) == 12,
               "trace_record() writes these four as one word");

/* Everything but the time and the new head is stored before the clock is read: nothing then has to be kept across the call. */
void trace_record(u64 head, u64 a, u64 b)
{
    irqflags_t flags = arch_irq_save();
    u32 cpu = this_cpu()->cpu;
    struct ring *r = &rings[cpu];
    u64 at = r->head;
    if (unlikely(cpu >= num_rings || (keep_oldest && at > ring_mask))) {
        r->refused++;
    } else {
        struct trace_event *e = &r->events[at & ring_mask];
        u64 word = head | (u64)cpu << 8;
        memcpy(&e->type, &word, sizeof(word));
        e->a = a;
        e->b = b;
        e->time_ns = arch_clock_ns();
        STORE_RELEASE(r->head, r->head + 1);
    }
    arch_irq_restore(flags);
}

void trace_record_text(enum trace_type type, u32 thread, const char *text)
{
    union {
        char text[16];
        u64 words[2];
    } packed = { .words = { 0, 0 } };
    memcpy(packed.text, text, strnlen(text, sizeof(packed.text)));
    trace_record((u64)type | (u64)thread << 32, packed.words[0], packed.words[1]);
}

static u64 kept(const struct ring *r)
{
    return MIN(LOAD_ACQUIRE(r->head), ring_mask + 1);
}

void trace_ring_info(u32 cpu, struct trace_ring_info *out)
{
    const struct ring *r = &rings[cpu];
    *out = (struct trace_ring_info){ .recorded = LOAD_ACQUIRE(r->head), .lost = READ_ONCE(r->refused) };
    out->lost += out->recorded - kept(r);
}

bool trace_read(u32 cpu, u64 i, struct trace_event *out)
{
    if (cpu >= num_rings || i >= kept(&rings[cpu])) {
        return false;
    }
    const struct ring *r = &rings[cpu];
    *out = r->events[(LOAD_ACQUIRE(r->head) - kept(r) + i) & ring_mask];
    return true;
}

/* The newest event older than `before` (time, then CPU breaks ties); false if there is none. */
static bool newest_before(u64 *cursor, struct trace_event *out)
{
    int best = -1;
    for (u32 cpu = 0; cpu < num_rings; cpu++) {
        struct trace_event e;
        if (cursor[cpu] && trace_read(cpu, cursor[cpu] - 1, &e) && (best < 0 || e.time_ns > out->time_ns)) {
            best = (int)cpu;
            *out = e;
        }
    }
    if (best >= 0) {
        cursor[best]--;
    }
    return best >= 0;
}

void trace_tail(u32 n, void (*fn)(const struct trace_event *e))
{
    static u64 cursor[MAX_CPUS];
    struct trace_event e = { 0 };
    for (u32 cpu = 0; cpu < num_rings; cpu++) {
        cursor[cpu] = kept(&rings[cpu]);
    }
    u32 found = 0;
    while (found < n && newest_before(cursor, &e)) {
        found++;
    }
    /* The cursors now stand before the oldest of the n: walk forward again, always the oldest next. */
    while (found--) {
        int best = -1;
        struct trace_event oldest = { 0 };
        for (u32 cpu = 0; cpu < num_rings; cpu++) {
            if (trace_read(cpu, cursor[cpu], &e) && (best < 0 || e.time_ns < oldest.time_ns)) {
                best = (int)cpu;
                oldest = e;
            }
        }
        if (best < 0) {
            return;
        }
        cursor[best]++;
        fn(&oldest);
    }
}

const char *trace_type_name(u32 type)
{
    static const char *const names[NUM_TRACE_TYPES] = {
        [TRACE_SWITCH] = "switch",         [TRACE_WAKE] = "wake",           [TRACE_ENQUEUE] = "enqueue",
        [TRACE_MIGRATE] = "migrate",       [TRACE_IPI] = "ipi",             [TRACE_IDLE_ENTER] = "idle",
        [TRACE_IDLE_EXIT] = "idle-exit",   [TRACE_BALANCE] = "balance",
        [TRACE_FUTEX_WAIT] = "futex-wait", [TRACE_FUTEX_WAKE] = "futex-wake", [TRACE_LOCK_WAIT] = "lock-wait",
        [TRACE_RX] = "rx",                 [TRACE_TX] = "tx",               [TRACE_THREAD] = "thread",
        [TRACE_EXIT] = "exit",             [TRACE_MARK] = "mark",
        [TRACE_IPI_TAKEN] = "ipi-taken", [TRACE_THROTTLE] = "throttle",
    };
    return type < NUM_TRACE_TYPES && names[type] ? names[type] : "unknown";
}
