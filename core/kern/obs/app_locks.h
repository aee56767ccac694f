/* Lock statistics that applications keep for themselves and publish: `echo LINE > /proc/weir/locks`, one line a table, e.g.
 *
 *   shard at=0x7f0012340000 n=64 stride=1280 ptr=40 acquired=0 contended=8 wait=24 hold=688 buckets=160 steps=4
 *
 * says: 64 elements of 1,280 bytes from that address on; 40 bytes into each there is a pointer to its record (without ptr=, the
 * element is the record); in the record, two u64 counters and two histograms at these offsets. A histogram is u64 n, sum, max in
 * nanoseconds and u32 count[buckets], `steps` (1, 2, 4 or 8) buckets for each doubling: values below `steps` have one each.
 * A null pointer stands for an element without record. The kernel only ever reads, when somebody asks; a table goes with its
 * process, and "NAME" alone takes it back. On Linux there is no such file, and nothing is published. */
#ifndef WEIR_CORE_KERN_OBS_APP_LOCKS_H
#define WEIR_CORE_KERN_OBS_APP_LOCKS_H

#include "core/kern/proc.h"

#define APP_LOCKS_NAME 32
#define APP_LOCKS_MAX 65536  /* elements of one table */
#define APP_LOCKS_BUCKETS 256

struct app_lock_table {
    char name[APP_LOCKS_NAME];
    const struct proc *proc; /* NULL: free */
    u64 at, n, stride;
    u64 ptr; /* UINT64_MAX: none */
    u64 acquired, contended, wait, hold, buckets, steps;
};

struct app_hist {
    u64 n, sum, max;
    u32 count[APP_LOCKS_BUCKETS];
};

struct app_lock {
    u64 acquired, contended;
    struct app_hist wait, hold;
};

/* Parses a line; false: malformed or out of range. Pure. */
bool app_locks_parse(const char *line, struct app_lock_table *out);
/* Smallest value that permille/1000 of the entries do not exceed, as the histogram tells it. Pure. */
u64 app_hist_quantile(const struct app_hist *h, u64 buckets, u64 steps, u32 permille);
void app_lock_merge(struct app_lock *into, const struct app_lock *add, u64 buckets);

/* The file's store: 0, -EINVAL, -ENOSPC (LOCK_TABLES_MAX tables). Thread context. */
i64 app_locks_store(struct proc *p, const char *line);
/* Copies the i-th table; false past the end. */
bool app_locks_table(u32 i, struct app_lock_table *out);
/* Reads element i; false: no record, or not readable. */
bool app_locks_read(const struct app_lock_table *t, u64 i, struct app_lock *out);

#endif
