/* What the recording half of /placement (placement_record.c) and the writing half (placement.c) share. */
#ifndef WEIR_CORE_KERN_OBS_PLACEMENT_H
#define WEIR_CORE_KERN_OBS_PLACEMENT_H

#include "sched/sched.h"

struct placement {
    /* Asked for. */
    u64 period_ns;
    u32 num_samples, cpus;
    /* Recorded, num_samples rows of `cpus` each. */
    u64 start_ns, *times;
    u32 *threads; /* id of the running thread, 0: idle */
    u16 *queued;
    u32 taken;    /* rows filled */
    /* Over the recording. Idle while overloaded: a CPU of a domain had nothing while a thread waited on another CPU of it. */
    u64 overloaded_samples, overloaded_cpus, longest_ns;
    u64 passes, moves, rejected[NUM_MOVE_REJECTS], migrations[NUM_MIGRATE_REASONS], switches, ipis;
};

/* NULL: no memory. */
struct placement *placement_create(u32 num_samples, u64 period_ns);
void placement_free(struct placement *p);
/* Samples from a timer's interrupt, so that the recorder itself occupies no CPU; blocks until all samples are taken. */
void placement_record(struct placement *p);

static inline u32 placement_thread(const struct placement *p, u32 sample, u32 cpu)
{
    return p->threads[(u64)sample * p->cpus + cpu];
}

static inline u32 placement_queued(const struct placement *p, u32 sample, u32 cpu)
{
    return p->queued[(u64)sample * p->cpus + cpu];
}

#endif
