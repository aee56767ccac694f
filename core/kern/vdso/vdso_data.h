/* The page that kernel and vDSO share; filled once at start-up, read-only for applications. */
#ifndef WEIR_CORE_KERN_VDSO_DATA_H
#define WEIR_CORE_KERN_VDSO_DATA_H

#include "core/base/types.h"

/* clock ns = base_ns + ((counter - base_counter) * mult >> shift), the product in 96 bits: the same arithmetic as the
 * kernel's own clock, so the two never disagree. */
struct vdso_data {
    u64 base_counter;
    u64 base_ns;
    u64 wall_base_ns; /* Unix time at clock 0 */
    u32 mult, shift;
};

#endif
