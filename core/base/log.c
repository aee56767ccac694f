#include "core/base/log.h"

#include "arch/arch.h"
#include "core/base/console.h"
#include "core/base/param.h"
#include "core/base/spinlock.h"
#include "core/base/string.h"

#define NO_PANIC_CPU UINT32_MAX

static const char cut_mark[] = "...";

static struct lock_class console_class = {.name = "console", .rank = RANK_CONSOLE, .irq = true};
static struct spinlock console_lock = SPINLOCK_INIT(&console_class);
static u32 panic_cpu = NO_PANIC_CPU;

enum log_level log_threshold = LOG_INFO;

void console_panic_mode(u32 cpu)
{
    STORE_RELEASE(panic_cpu, cpu);
}

static void console_write(const char *text, size_t n)
{
    if (unlikely(READ_ONCE(panic_cpu) != NO_PANIC_CPU)) {
        irqflags_t flags = arch_irq_save();
        if (READ_ONCE(panic_cpu) == this_cpu()->cpu) {
            arch_console_write(text, n);
        }
        arch_irq_restore(flags);
        return;
    }
    irqflags_t flags = spin_lock_irq(&console_lock);
    arch_console_write(text, n);
    spin_unlock_irq(&console_lock, flags);
}

static void console_vline(const char *tag, const char *fmt, va_list args)
{
    char line[LOG_LINE_MAX + 2]; /* with newline and NUL */
    irqflags_t flags = arch_irq_save();
    u32 cpu = this_cpu()->cpu;
    arch_irq_restore(flags);
    u64 us = arch_clock_ns() / NSEC_PER_USEC;
    size_t room = LOG_LINE_MAX + 1;
    size_t len =
        (size_t)str_format(line, room, "[%5lu.%06lu c%u] %s", us / 1000000, us % 1000000, cpu, tag);
    len += (size_t)str_vformat(line + len, room - len, fmt, args);
    if (len > LOG_LINE_MAX) {
        len = LOG_LINE_MAX;
        memcpy(line + len - (sizeof(cut_mark) - 1), cut_mark, sizeof(cut_mark) - 1);
    }
    line[len] = '\n';
    console_write(line, len + 1);
}

void console_line(const char *tag, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    console_vline(tag, fmt, args);
    va_end(args);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    static const char *const tags[] = {
        [LOG_ERROR] = "error: ",
        [LOG_WARN] = "warning: ",
        [LOG_INFO] = "",
        [LOG_DEBUG] = "debug: ",
    };
    if (level > READ_ONCE(log_threshold)) {
        return;
    }
    va_list args;
    va_start(args, fmt);
    console_vline(tags[level], fmt, args);
    va_end(args);
}

void log_raw(const char *text, size_t n)
{
    console_write(text, n);
}
