/* Sizes that the policies are compiled for.  A policy may not allocate, so a working copy of per-CPU figures lives on the
 * stack; this bounds it.  The kernel uses the default (its balance pass runs on an interrupt stack: the largest frame here
 * is drain's, 4 bytes a CPU = 256 bytes at 64); the simulator compiles the same files with -DPOLICY_MAX_CPUS=1024. */
#ifndef WEIR_SCHED_POLICIES_LIMITS_H
#define WEIR_SCHED_POLICIES_LIMITS_H

#ifndef POLICY_MAX_CPUS
#define POLICY_MAX_CPUS 64u
#endif

/* A thread that stopped running this long ago has lost its cache and costs nothing extra to move.  500 us is the figure
 * Linux starts from (sysctl_sched_migration_cost). */
#define POLICY_CACHE_HOT_NS 500000u

#endif
