/* What ran where and when, for the Chrome trace and the heat map. */
#ifndef WEIR_TESTS_SIM_TRACE_H
#define WEIR_TESTS_SIM_TRACE_H

#include "tests/sim/sim.h"

/* Records the run segments and wakeups of s from now on: at most 2^20, then it stops and says so in the output. */
struct sim_trace *trace_new(struct sim *s);
void trace_free(struct sim_trace *trace);
/* 0, or negative errno. */
int trace_write_chrome(const struct sim *s, const char *path);
int trace_write_svg(const struct sim *s, const char *path, const char *title);

#endif
