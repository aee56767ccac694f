/* Results as a table, CSV and JSON. */
#ifndef WEIR_TESTS_SIM_REPORT_H
#define WEIR_TESTS_SIM_REPORT_H

#include "tests/sim/workload.h"

struct results {
    struct result *list;
    size_t count, size;
};

void results_add(struct results *rs, const struct result *r);
void report_table(FILE *f, const struct results *rs);
/* 0, or negative errno with a line on stderr. */
int report_csv(const char *path, const struct results *rs);
int report_json(const char *path, const struct results *rs, const struct sim_cost *cost, const char *workload);

#endif
