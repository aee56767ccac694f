/* Kernel log: lines on the console, each "[seconds.micros cN] text".
 *
 * Any context; whole lines are serialised by the console lock (innermost of all locks).  A line longer than LOG_LINE_MAX
 * characters is cut and marked.  Errors and warnings begin with "error: ", "warning: ". */
#ifndef WEIR_CORE_BASE_LOG_H
#define WEIR_CORE_BASE_LOG_H

#include "core/base/types.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Lines above this level are dropped; default LOG_INFO, command line `log=`. */
extern enum log_level log_threshold;

void log_line(enum log_level level, const char *fmt, ...) __printf(2, 3);
#define log_error(...) log_line(LOG_ERROR, __VA_ARGS__)
#define log_warn(...) log_line(LOG_WARN, __VA_ARGS__)
#define log_info(...) log_line(LOG_INFO, __VA_ARGS__)
#define log_debug(...) (log_threshold >= LOG_DEBUG ? log_line(LOG_DEBUG, __VA_ARGS__) : (void)0)

/* Writes text to the console as it is (application output), serialised with log lines. */
void log_raw(const char *text, size_t n);

/* Stops the machine: prints reason, CPU, back trace with symbols, held locks, the tail of the trace; powers off with
 * PANIC_EXIT_CODE.  Any context. */
#define PANIC_EXIT_CODE 101
void panic(const char *fmt, ...) __printf(1, 2) __noreturn;
/* Same, with the registers' back trace instead of the caller's. */
struct arch_regs;
void panic_at(const struct arch_regs *regs, const char *fmt, ...) __printf(2, 3) __noreturn;

/* Hooks of panic, one slot each, NULL if there is none.  They run with interrupts off, the other CPUs stopped, any lock
 * possibly held: they must take no lock, must not allocate, and print with log_error().
 * extra: called after the back trace, for more state (trace tail).
 * describe_thread: writes name and id of the current thread (set by sched).
 * app_symbol: writes symbol + offset of an address in application code; false if it knows none. */
extern void (*panic_extra)(void);
extern void (*panic_describe_thread)(char *buf, size_t n);
extern bool (*panic_app_symbol)(u64 pc, char *buf, size_t n);

/* Cheap assertions, always on; expensive ones only in debug builds. */
#define ASSERT(cond) (likely(cond) ? (void)0 : panic("%s:%d: assertion failed: %s", __FILE__, __LINE__, #cond))
#if defined(WEIR_DEBUG)
#define DEBUG_ASSERT(cond) ASSERT(cond)
#else
#define DEBUG_ASSERT(cond) ((void)sizeof(cond))
#endif

#endif
