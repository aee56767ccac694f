/* Replays recorded policy calls: each is made again with the view that was recorded, and the answers are compared. */
#ifndef WEIR_TESTS_REPLAY_H
#define WEIR_TESTS_REPLAY_H

#include <stdio.h>

#include "sched/policy_record_format.h"

enum replay_end {
    REPLAY_SAME = 0,
    REPLAY_DIFFERS = 1,
    REPLAY_BAD_FILE = 2, /* one line that says why has been printed */
};

struct replay_counts {
    uint64_t calls[RECORD_KINDS]; /* replayed, by enum record_kind; 0: cut off, not replayed */
    uint64_t moves;               /* that the replayed passes planned */
    uint64_t differ, lost;
};

/* The n bytes of a file called `name`, with the policies of `registry` (ended by NULL).  Prints to `out` what is wrong: one line
 * for a malformed file, the first call that differs with its view. */
enum replay_end replay(const void *data, size_t n, const char *name, const struct policy *const *registry, FILE *out,
                       struct replay_counts *counts);

#endif
