/* Console lines of core/base itself: what log.c shares with panic.c and spinlock.c. */
#ifndef WEIR_CORE_BASE_CONSOLE_H
#define WEIR_CORE_BASE_CONSOLE_H

#include "core/base/types.h"

/* One line with the time and CPU prefix, whatever the log level; tag goes before the text
 * ("warning: "). Any context. */
void console_line(const char *tag, const char *fmt, ...) __printf(2, 3);

/* From now on this CPU writes to the console without taking its lock, and other CPUs write nothing:
 * whoever holds the lock may have been stopped for good. */
void console_panic_mode(u32 cpu);

#endif
