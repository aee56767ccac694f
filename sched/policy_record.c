/* Recording of policy calls into one bounded buffer.
 *
 * A call reserves its space by compare-and-swap, so records never overlap and CPUs never wait for each other; a call that
 * finds none is counted and not recorded, those before it stay.  `writers` counts the calls under way: stopping closes the
 * door first and then waits for them, so that the buffer may be freed after it.  Both sides are sequentially consistent:
 * either the call sees the door closed, or the stop sees the call. */
#include "sched/policy_record.h"

#include "core/base/errno.h"
#include "core/base/string.h"

u32 policy_recording;

static struct {
    u8 *bytes;
    u64 size, used;
    u64 records, lost, cut_off;
    u32 writers;
    struct policy_record *open[MAX_CPUS]; /* of the call under way */
} buffer;

_Static_assert(sizeof(struct policy_record_file) % RECORD_ALIGN == 0, "the records behind it are aligned");
_Static_assert(MAX_CPUS <= RECORD_MAX_CPUS, "a record holds the whole board");

int policy_record_start(void *bytes, u64 size)
{
    if (READ_ONCE(policy_recording) || READ_ONCE(buffer.writers)) {
        return -EBUSY;
    }
    if (!IS_ALIGNED((uintptr_t)bytes, RECORD_ALIGN) || size < sizeof(struct policy_record_file)) {
        return -EINVAL;
    }
    buffer.bytes = bytes;
    buffer.size = size;
    buffer.used = sizeof(struct policy_record_file);
    buffer.records = buffer.lost = buffer.cut_off = 0;
    __atomic_store_n(&policy_recording, 1, __ATOMIC_SEQ_CST);
    return 0;
}

u64 policy_record_stop(u64 *lost)
{
    __atomic_store_n(&policy_recording, 0, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&buffer.writers, __ATOMIC_SEQ_CST)) {
        return 0;
    }
    struct policy_record_file *file = (struct policy_record_file *)(void *)buffer.bytes;
    *file = (struct policy_record_file){
        .version = RECORD_VERSION,
        .header_bytes = sizeof(*file),
        .bytes = buffer.used - sizeof(*file),
        .records = buffer.records,
        .lost = buffer.lost,
        .cut_off = buffer.cut_off,
    };
    memcpy(file->magic, RECORD_MAGIC, sizeof(file->magic));
    *lost = buffer.lost;
    return buffer.used;
}

/* NULL: full. */
static struct policy_record *reserve(u64 bytes)
{
    u64 at = __atomic_load_n(&buffer.used, __ATOMIC_RELAXED);
    do {
        if (bytes > buffer.size - at) {
            __atomic_fetch_add(&buffer.lost, 1, __ATOMIC_RELAXED);
            return NULL;
        }
    } while (!__atomic_compare_exchange_n(&buffer.used, &at, at + bytes, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return (struct policy_record *)(void *)(buffer.bytes + at);
}

static void write_inputs(struct policy_record *r, const struct policy_view *view)
{
    struct policy_cpu *cpus = record_cpus(r);
    for (u32 i = 0; i < view->num_cpus; i++) {
        cpus[i] = view->cpus[i];
    }
    memcpy(record_idle(r), view->idle, record_words(view->num_cpus) * sizeof(u64));
    if (view->num_threads) {
        memcpy(record_threads(r), view->threads, view->num_threads * sizeof(*view->threads));
    }
    for (u32 i = 0; i < view->num_threads; i++) {
        memcpy(record_affinity(r, i), view->threads[i].affinity, record_words(view->num_cpus) * sizeof(u64));
    }
}

struct policy_record *policy_record_inputs(u32 cpu, const char *policy, struct policy_view *view, u32 capacity)
{
    __atomic_fetch_add(&buffer.writers, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&policy_recording, __ATOMIC_SEQ_CST)) {
        __atomic_fetch_add(&buffer.writers, -1u, __ATOMIC_SEQ_CST);
        return NULL;
    }
    u64 bytes = record_bytes(view->num_cpus, view->num_threads, capacity);
    struct policy_record *r = reserve(bytes);
    if (!r) {
        __atomic_fetch_add(&buffer.writers, -1u, __ATOMIC_SEQ_CST);
        return NULL;
    }
    memset(r, 0, bytes);
    *r = (struct policy_record){
        .bytes = (u32)bytes, /* kind stays 0 until the call has come back */
        .cpu = (u16)cpu,
        .now_ns = view->now_ns,
        .seed = view->seed,
        .num_cpus = view->num_cpus,
        .self = view->self,
        .num_threads = view->num_threads,
        .wake_flags = view->wake_flags,
        .receive_cpus = view->receive_cpus,
        .capacity = capacity,
        .answer = POLICY_NO_CPU,
    };
    (void)str_copy(r->policy, policy, sizeof(r->policy));
    write_inputs(r, view);
    buffer.open[cpu] = r;
    *view = record_view(r);
    return r;
}

static void end(u32 cpu)
{
    buffer.open[cpu] = NULL;
    __atomic_fetch_add(&buffer.writers, -1u, __ATOMIC_SEQ_CST);
}

/* Addresses of this machine's memory mean nothing to the reader. */
static void forget_addresses(struct policy_record *r)
{
    for (u32 i = 0; i < r->num_threads; i++) {
        record_threads(r)[i].affinity = NULL;
    }
}

void policy_record_done(u32 cpu, struct policy_record *r, enum record_kind kind)
{
    forget_addresses(r);
    r->kind = (u16)kind;
    __atomic_fetch_add(&buffer.records, 1, __ATOMIC_RELAXED);
    end(cpu);
}

void policy_record_cut_off(u32 cpu)
{
    struct policy_record *r = buffer.open[cpu];
    if (!r) {
        return;
    }
    forget_addresses(r);
    __atomic_fetch_add(&buffer.cut_off, 1, __ATOMIC_RELAXED);
    end(cpu);
}
