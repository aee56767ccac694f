/* Phase marks of the load generator: mark.c. */
#ifndef WEIR_CORE_KERN_MARK_H
#define WEIR_CORE_KERN_MARK_H

#include "core/base/types.h"

void mark_init(void);
/* One line written to /proc/weir/mark. -EINVAL: no such form, or the end of a phase that is not open. */
i64 mark_write(const char *line);

#endif
