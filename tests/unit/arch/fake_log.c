#include "tests/unit/arch/fake_log.h"

#include <stdarg.h>
#include <stdio.h>

#include "core/base/log.h"

unsigned fake_log_lines;
char fake_log_last[512];
enum log_level log_threshold = LOG_INFO;

void fake_log_reset(void)
{
    fake_log_lines = 0;
    fake_log_last[0] = 0;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    va_list args;
    (void)level;
    va_start(args, fmt);
    vsnprintf(fake_log_last, sizeof(fake_log_last), fmt, args);
    va_end(args);
    fake_log_lines++;
}
