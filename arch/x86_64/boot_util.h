/* Memory-range and text handling of the boot code, apart from the hardware so that host tests can
 * check it. */
#ifndef WEIR_ARCH_X86_64_BOOT_UTIL_H
#define WEIR_ARCH_X86_64_BOOT_UTIL_H

#include "arch/boot_info.h"
#include "core/base/types.h"

/* Sorts by base and merges ranges that touch or overlap, whatever their type (the first one's
 * stays).  Empty ranges vanish, ranges that wrap end at 2^64 - 1 page.  Returns the new count. */
u32 boot_ranges_merge(struct boot_range *r, u32 n);

/* Takes [base, base + size), widened to pages, out of all ranges of type BOOT_MEM_USABLE.  Where a
 * range would have to be split and the array is full, the smaller part is lost: returns how many
 * bytes were lost that way. */
u64 boot_ranges_carve(struct boot_range *r, u32 *n, u32 max, u64 base, u64 size);

/* Writes the usable RAM of a loader's map to out: whole pages, sorted, merged, and nothing that
 * another entry claims for something else.  Returns the count; *lost as above, plus ranges for
 * which out has no room. */
u32 boot_ranges_usable(const struct boot_range *in, u32 num_in, struct boot_range *out, u32 max,
                       u64 *lost);

/* Copies a command line: at most readable bytes of src are looked at, control characters become
 * spaces.  Returns false if it was cut. */
bool boot_copy_cmdline(char *dst, size_t dst_size, const char *src, size_t readable);

#endif
