#include "tests/sim/report.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void results_add(struct results *rs, const struct result *r)
{
    if (rs->count == rs->size) {
        rs->size = rs->size == 0 ? 32 : rs->size * 2;
        rs->list = realloc(rs->list, rs->size * sizeof(*rs->list));
        if (rs->list == NULL) {
            fprintf(stderr, "weir-sim: out of memory (%zu results)\n", rs->size);
            exit(1);
        }
    }
    rs->list[rs->count++] = *r;
}

static void print_passes(FILE *f, const struct result *r)
{
    if (r->convergence_passes >= 0) {
        fprintf(f, " %6d", r->convergence_passes);
    } else {
        fprintf(f, "      -");
    }
}

void report_table(FILE *f, const struct results *rs)
{
    fprintf(f, "%-9s %5s %10s %6s %15s %15s %9s %9s %6s %6s %5s %7s %9s %6s %6s\n", "policy", "conns", "ops/s", "ideal",
            "wakeup p50/99", "latency p50/99", "moves", "needed", "pingp", "idle%", "CPUs", "overl%", "longest", "passes",
            "jain");
    for (size_t i = 0; i < rs->count; i++) {
        const struct result *r = &rs->list[i];

        if (i != 0 && (r->conns != r[-1].conns || r->service_us != r[-1].service_us)) {
            fputc('\n', f);
        }
        fprintf(f, "%-9s %5u %10.0f ", r->policy, r->conns, r->rps);
        if (r->fraction_of_ideal > 0.0) {
            fprintf(f, "%5.1f%%", r->fraction_of_ideal * 100.0);
        } else {
            fprintf(f, "%6s", "-");
        }
        fprintf(f, " %7.1f %7.1f %7.1f %7.1f %9llu %9llu %6llu %6.1f %5u %7.3f %9.1f", r->wakeup_p50_us, r->wakeup_p99_us,
                r->latency_p50_us, r->latency_p99_us, (unsigned long long)r->migrations,
                (unsigned long long)r->migrations_needed, (unsigned long long)r->pingpong, r->idle_share * 100.0,
                r->cpus_used, r->idle_overloaded_share * 100.0, r->longest_violation_us);
        print_passes(f, r);
        fprintf(f, " %6.3f", r->jain);
        if (r->load > 0.0) {
            fprintf(f, "  %.0f us at load %.1f%%", r->service_us, r->load * 100.0);
        }
        fputc('\n', f);
    }
    fprintf(f, "times in microseconds of simulated time; ideal: of a central queue at no cost on the same seed; overl%%: CPU "
               "time idle while a\nthread waits that could run there; longest: such a wait; passes: until the loads differ by "
               "at most one\n");
}

/* One list of fields for both formats: X(name, printf format, value). */
#define RESULT_FIELDS(X)                                              \
    X(cpus, "%u", r->cpus)                                            \
    X(conns, "%u", r->conns)                                          \
    X(queues, "%u", r->queues)                                        \
    X(seed, "%llu", (unsigned long long)r->seed)                      \
    X(service_us, "%.3f", r->service_us)                              \
    X(load, "%.4f", r->load)                                          \
    X(rps, "%.1f", r->rps)                                            \
    X(fraction_of_ideal, "%.4f", r->fraction_of_ideal)                \
    X(p50_us, "%.3f", r->latency_p50_us)                              \
    X(p99_us, "%.3f", r->latency_p99_us)                              \
    X(p999_us, "%.3f", r->latency_p999_us)                            \
    X(max_us, "%.3f", r->latency_max_us)                              \
    X(wakeup_p50_us, "%.3f", r->wakeup_p50_us)                        \
    X(wakeup_p99_us, "%.3f", r->wakeup_p99_us)                        \
    X(wakeup_p999_us, "%.3f", r->wakeup_p999_us)                      \
    X(wakeup_max_us, "%.3f", r->wakeup_max_us)                        \
    X(wait_p50_us, "%.3f", r->wait_p50_us)                            \
    X(wait_p99_us, "%.3f", r->wait_p99_us)                            \
    X(migrations, "%llu", (unsigned long long)r->migrations)          \
    X(migrations_new, "%llu", (unsigned long long)r->by_reason[0])    \
    X(migrations_wake, "%llu", (unsigned long long)r->by_reason[1])   \
    X(migrations_balance, "%llu", (unsigned long long)r->by_reason[2])\
    X(migrations_pull, "%llu", (unsigned long long)r->by_reason[3])   \
    X(migrations_needed, "%llu", (unsigned long long)r->migrations_needed) \
    X(pingpong, "%llu", (unsigned long long)r->pingpong)              \
    X(idle_share, "%.5f", r->idle_share)                              \
    X(cpus_used, "%u", r->cpus_used)                                  \
    X(idle_overloaded_share, "%.6f", r->idle_overloaded_share)        \
    X(longest_violation_us, "%.3f", r->longest_violation_us)          \
    X(convergence_ms, "%.3f", r->convergence_ms)                      \
    X(jain, "%.5f", r->jain)                                          \
    X(switches, "%llu", (unsigned long long)r->switches)              \
    X(ipis, "%llu", (unsigned long long)r->ipis)                      \
    X(wakes_remote, "%llu", (unsigned long long)r->wakes_remote)      \
    X(wakes_local, "%llu", (unsigned long long)r->wakes_local)        \
    X(halts, "%llu", (unsigned long long)r->halts)                    \
    X(passes, "%llu", (unsigned long long)r->passes)                  \
    X(pulls, "%llu", (unsigned long long)r->pulls)                    \
    X(pull_hits, "%llu", (unsigned long long)r->pull_hits)            \
    X(moves_rejected, "%llu", (unsigned long long)r->rejected)        \
    X(events, "%llu", (unsigned long long)r->events)

static int close_file(FILE *f, const char *path)
{
    int bad = ferror(f);

    if (fclose(f) != 0 || bad != 0) {
        fprintf(stderr, "weir-sim: cannot write %s: %s\n", path, strerror(errno));
        return -EIO;
    }
    return 0;
}

static FILE *open_file(const char *path)
{
    FILE *f = fopen(path, "w");

    if (f == NULL) {
        fprintf(stderr, "weir-sim: cannot write %s: %s\n", path, strerror(errno));
    }
    return f;
}

int report_csv(const char *path, const struct results *rs)
{
    FILE *f = open_file(path);

    if (f == NULL) {
        return -EIO;
    }
    fprintf(f, "policy,workload,convergence_passes");
#define X(name, format, value) fprintf(f, "," #name);
    RESULT_FIELDS(X)
#undef X
    fputc('\n', f);
    for (size_t i = 0; i < rs->count; i++) {
        const struct result *r = &rs->list[i];

        fprintf(f, "%s,%s,", r->policy, r->workload);
        if (r->convergence_passes >= 0) {
            fprintf(f, "%d", r->convergence_passes);
        }
#define X(name, format, value) fprintf(f, "," format, value);
        RESULT_FIELDS(X)
#undef X
        fputc('\n', f);
    }
    return close_file(f, path);
}

static void json_string(FILE *f, const char *text)
{
    fputc('"', f);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\') {
            fprintf(f, "\\%c", c);
        } else if (c < 0x20) {
            fprintf(f, "\\u%04x", c);
        } else {
            fputc(c, f);
        }
    }
    fputc('"', f);
}

int report_json(const char *path, const struct results *rs, const struct sim_cost *cost, const char *workload)
{
    FILE *f = open_file(path);

    if (f == NULL) {
        return -EIO;
    }
    fprintf(f, "{\"config\": {\"tool\": \"weir-sim\", \"workload\": ");
    json_string(f, workload);
    fprintf(f, ", \"cost_ns\": {");
    {
        const char *comma = "";
#define X(name, value, what)                                                               \
    fprintf(f, "%s\"" #name "\": %llu", comma, (unsigned long long)cost->name); \
    comma = ", ";
        SIM_COSTS(X)
#undef X
    }
    fprintf(f, "}},\n \"points\": [");
    for (size_t i = 0; i < rs->count; i++) {
        const struct result *r = &rs->list[i];

        fprintf(f, "%s\n  {\"policy\": ", i == 0 ? "" : ",");
        json_string(f, r->policy);
        fprintf(f, ", \"workload\": ");
        json_string(f, r->workload);
        fprintf(f, ", \"convergence_passes\": ");
        if (r->convergence_passes >= 0) {
            fprintf(f, "%d", r->convergence_passes);
        } else {
            fprintf(f, "null");
        }
#define X(name, format, value) fprintf(f, ", \"" #name "\": " format, value);
        RESULT_FIELDS(X)
#undef X
        fputc('}', f);
    }
    fprintf(f, "\n]}\n");
    return close_file(f, path);
}
