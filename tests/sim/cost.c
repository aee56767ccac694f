#include "tests/sim/cost.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct sim_cost sim_cost_default = {
#define X(name, value, what) .name = (value),
    SIM_COSTS(X)
#undef X
};

int sim_cost_set(struct sim_cost *cost, const char *setting)
{
    const char *eq = strchr(setting, '=');
    char *end;
    unsigned long long value;
    size_t len;

    if (eq == NULL || eq[1] < '0' || eq[1] > '9') {
        return -1;
    }
    errno = 0;
    value = strtoull(eq + 1, &end, 10);
    if (errno != 0 || *end != '\0' || value > 1000000000ull) {
        return -1;
    }
    len = (size_t)(eq - setting);
#define X(field, def, what)                                             \
    if (len == strlen(#field) && strncmp(setting, #field, len) == 0) { \
        cost->field = value;                                            \
        return 0;                                                       \
    }
    SIM_COSTS(X)
#undef X
    return -1;
}

void sim_cost_harness(struct sim_cost *cost)
{
#define X(field, value) cost->field = (value);
    SIM_HARNESS_COSTS(X)
#undef X
}

void sim_cost_list(void)
{
#define X(field, def, what) printf("%-16s %6d  %s\n", #field, def, what);
    SIM_COSTS(X)
#undef X
}
