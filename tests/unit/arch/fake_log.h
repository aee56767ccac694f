/* Counts log lines and keeps the last one. */
#ifndef WEIR_TESTS_ARCH_FAKE_LOG_H
#define WEIR_TESTS_ARCH_FAKE_LOG_H

extern unsigned fake_log_lines;
extern char fake_log_last[512];
void fake_log_reset(void);

#endif
