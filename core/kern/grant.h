/* What the host really gives: CPU quota, memory limits.  The start script hands the host's figures over by fw_cfg; the command
 * line (grant.*) and POST /grant may lower them.  What follows from all of it: grant_words.h. */
#ifndef WEIR_CORE_KERN_GRANT_H
#define WEIR_CORE_KERN_GRANT_H

#include "core/kern/config.h"
#include "core/kern/grant_words.h"
#include "core/kern/text.h"
#include "sched/sched.h"

/* Takes the figures over and sizes by them; -EINVAL (logged) if they cannot be.  After sched_start_workers(). */
int grant_init(const struct config *c);

/* A change at run time. */
struct grant_change {
    bool from_host;         /* the words are the host's new figures, not an operator's */
    struct grant_words words;
    int park, show_all;     /* -1: as before */
};
/* Words that are 0 stay as they were.  Thread context, may block.  -EINVAL: nothing was changed, why (NUL-terminated, GRANT_LINE
 * bytes) says why; 0: *why is what had to be chosen instead, or empty. */
int grant_change(const struct grant_change *change, char *why);

/* CPUs granted to a domain: min(its CPUs, quota / period rounded up). */
u32 grant_cpus(u32 domain);
/* CPUs that programs of the domain are told of: granted, or all with grant.show=all. */
u32 grant_shown_cpus(u32 domain);
/* The CPUs that a thread may count on: its affinity cut to what is shown. */
cpumask_t grant_affinity(struct thread *t);
/* The group that application threads of the domain run in; NULL: no limit there. */
struct quota *grant_quota(u32 domain);

struct grant_info {
    struct grant_limits limits;
    struct quota_stats cpu;
    u32 active;      /* CPUs that run threads */
    bool park, show_all;
    u64 complaints;  /* words that could not be followed */
    u64 changes;     /* at run time */
};
void grant_info(struct grant_info *out);

#endif
