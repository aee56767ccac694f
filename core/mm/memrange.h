/* Sets of physical ranges, for start-up: boot ranges minus what is taken.  Pure: no globals. */
#ifndef WEIR_CORE_MM_MEMRANGE_H
#define WEIR_CORE_MM_MEMRANGE_H

#include "arch/boot_info.h"
#include "core/base/types.h"

/* Every boot range, plus one more for each hole that is cut into it. */
#define MEMRANGE_MAX (2 * BOOT_MAX_RANGES + 16)

struct memrange {
    u64 start, end; /* bytes, end excluded */
};

struct memrange_set {
    u32 count;
    struct memrange r[MEMRANGE_MAX]; /* ascending, disjoint, not touching */
};

/* false, and nothing changed, if the set is full; start >= end adds or removes nothing. */
bool memrange_add(struct memrange_set *set, u64 start, u64 end);
bool memrange_remove(struct memrange_set *set, u64 start, u64 end);
/* Shrinks every range to whole pages and drops those that are then empty. */
void memrange_trim_to_pages(struct memrange_set *set);
u64 memrange_bytes(const struct memrange_set *set);

#endif
