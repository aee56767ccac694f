/* Names of the kernel's own functions, from the table that scripts/mksyms makes. Any context, no
 * locks. */
#ifndef WEIR_CORE_BASE_SYMBOLS_H
#define WEIR_CORE_BASE_SYMBOLS_H

#include "core/base/types.h"

/* Function that holds pc and the distance from its start; NULL if there is none. */
const char *sym_lookup(u64 pc, u64 *offset);

#endif
