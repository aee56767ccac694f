/* The format of recorded policy calls, shared by the kernel and by the tool that replays them (tests/replay).
 *
 * Little endian, as in memory: one struct policy_record_file, then the records, each a multiple of RECORD_ALIGN bytes:
 *
 *   struct policy_record                          what was asked and what was answered
 *   struct policy_cpu[num_cpus]                   the board as the policy saw it
 *   struct policy_thread[num_threads]             their `affinity` is 0: the sets follow
 *   uint64_t[record_words(num_cpus)]              the idle set
 *   uint64_t[num_threads * record_words(num_cpus)]  the affinity sets
 *   struct policy_move[capacity]                  balance: the plan, num_moves of them filled
 *
 * While calls are recorded a policy is given the copy that is in the record instead of the board itself: what it read is what
 * is written, whatever other CPUs publish meanwhile. */
#ifndef WEIR_SCHED_POLICY_RECORD_FORMAT_H
#define WEIR_SCHED_POLICY_RECORD_FORMAT_H

#include "sched/policy.h"

#define RECORD_MAGIC "WEIRPLAN"
/* Goes up with every change of the structures here or of those of policy.h that a record holds. */
#define RECORD_VERSION 1u
#define RECORD_ALIGN 64u
#define RECORD_NAME 16 /* a policy's name with its NUL */

/* What a record may hold at most; the reader refuses more. */
#define RECORD_MAX_CPUS 1024u
#define RECORD_MAX_THREADS 1024u

enum record_kind { RECORD_PLACE_NEW = 1, RECORD_PLACE_WAKE, RECORD_BALANCE, RECORD_IDLE_PULL, RECORD_KINDS };

struct policy_record_file {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* sizeof(struct policy_record_file) */
    uint64_t bytes;        /* of records that follow */
    uint64_t records;      /* of them, finished */
    uint64_t lost;         /* calls that the buffer had no space for */
    uint64_t cut_off;      /* calls that never came back: their records are there with kind 0 */
    uint64_t reserved[2];
};

struct policy_record {
    uint32_t bytes; /* of all of it */
    uint16_t kind;  /* enum record_kind; 0: the call was cut off */
    uint16_t cpu;   /* of the machine, that asked */
    char policy[RECORD_NAME];
    uint64_t now_ns, seed;
    uint32_t num_cpus, self, num_threads, wake_flags, receive_cpus;
    uint32_t capacity; /* balance: of the plan */
    /* The answer, before the mechanism looked at it. */
    int32_t answer;        /* place_*: the CPU; idle_pull: from */
    uint32_t num_moves;    /* balance */
    uint64_t min_wait_ns, min_cold_ns; /* idle_pull */
} __attribute__((aligned(RECORD_ALIGN)));

static inline uint64_t record_words(uint32_t num_cpus)
{
    return (num_cpus + 63u) / 64u;
}

static inline struct policy_cpu *record_cpus(struct policy_record *r)
{
    return (struct policy_cpu *)(void *)(r + 1);
}

static inline struct policy_thread *record_threads(struct policy_record *r)
{
    return (struct policy_thread *)(void *)(record_cpus(r) + r->num_cpus);
}

static inline uint64_t *record_idle(struct policy_record *r)
{
    return (uint64_t *)(void *)(record_threads(r) + r->num_threads);
}

static inline uint64_t *record_affinity(struct policy_record *r, uint32_t thread)
{
    return record_idle(r) + record_words(r->num_cpus) * (1u + thread);
}

static inline struct policy_move *record_moves(struct policy_record *r)
{
    return (struct policy_move *)(void *)record_affinity(r, r->num_threads);
}

/* Of a whole record; the numbers are at most those above, so nothing overflows. */
static inline uint64_t record_bytes(uint32_t num_cpus, uint32_t num_threads, uint32_t capacity)
{
    uint64_t bytes = sizeof(struct policy_record) + num_cpus * sizeof(struct policy_cpu) +
                     num_threads * sizeof(struct policy_thread) +
                     record_words(num_cpus) * (1u + (uint64_t)num_threads) * sizeof(uint64_t) +
                     capacity * sizeof(struct policy_move);
    return (bytes + RECORD_ALIGN - 1) / RECORD_ALIGN * RECORD_ALIGN;
}

/* The view of a record.  Sets the threads' affinity pointers, which the record must be writable for. */
static inline struct policy_view record_view(struct policy_record *r)
{
    struct policy_thread *threads = record_threads(r);
    for (uint32_t i = 0; i < r->num_threads; i++) {
        threads[i].affinity = record_affinity(r, i);
    }
    return (struct policy_view){
        .now_ns = r->now_ns,
        .seed = r->seed,
        .num_cpus = r->num_cpus,
        .self = r->self,
        .cpus = record_cpus(r),
        .idle = record_idle(r),
        .num_threads = r->num_threads,
        .wake_flags = r->wake_flags,
        .receive_cpus = r->receive_cpus,
        .threads = threads,
    };
}

#endif
