/* weir-sim: runs policies on a simulated machine. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/bugs.h"
#include "tests/sim/passcost.h"
#include "tests/sim/report.h"
#include "tests/sim/scenario.h"

#define MAX_LIST 32u
#define DEFAULT_CPUS 16u
#define MAX_THREADS 65536u
#define PROGRESS_AFTER_S 2.0

/* ---- command line ---- */

struct options {
    const struct policy *policies[MAX_LIST];
    uint32_t num_policies;
    uint32_t conns[MAX_LIST];
    uint32_t num_conns;
    double services[MAX_LIST];
    uint32_t num_services;
    uint32_t bug; /* bugs:N, 0: all */
    const char *workload;
    const char *json, *csv, *trace, *svg;
    bool ideal, compare;
    struct point point;
};

static const struct workload *const workloads[] = {&wl_server, &wl_closed, &wl_open, &wl_spinners, &wl_pipeline};
#define QUEUE_PER_CPU UINT32_MAX
#define NUM_WORKLOADS (sizeof(workloads) / sizeof(workloads[0]))

static void usage(FILE *f)
{
    fprintf(f, "usage: weir-sim [options]\n"
               "  --policy NAME[,NAME...]  policies to run (default: drain)\n"
               "  --cpus N                 1..%u (default %u)\n"
               "  --workload NAME          what the threads do (default server):\n",
            SIM_MAX_CPUS, DEFAULT_CPUS);
    for (size_t i = 0; i < NUM_WORKLOADS; i++) {
        fprintf(f, "                             %-9s %s\n", workloads[i]->name, workloads[i]->summary);
    }
    fprintf(f, "                             bugs[:N]  replays of reported balancer bugs, pass or fail per policy\n"
               "                             file:PATH a workload in rt-app's JSON (docs/simulator.md)\n"
               "                             trace:PATH a recorded Chrome trace of a guest or of this program\n"
               "  --seed S                 same seed, same run (default 1)\n"
               "  --conns N[,N...]         threads or connections (default: the workload's)\n"
               "  --queues N               receive paths (server: 1, open: one per CPU)\n"
               "  --service US[,US...]     mean service time in microseconds\n"
               "  --think X                mean think time / service time (closed)\n"
               "  --load X                 offered load 0..1 of all CPUs (open); without it: the highest that holds\n"
               "  --interval MS            balance interval instead of the policy's own\n"
               "  --rx-batch N             packets of one receive pass (1: a wakeup flush per packet)\n"
               "  --warmup MS --measure MS simulated time before and in the measurement\n"
               "  --cost NAME=NS           change the cost model; --list-costs shows it\n"
               "  --harness                server as make bench measures it: its wire and generator, a receive path per CPU,\n"
               "                           20 ms of warm-up, 40 ms measured (options after it change that)\n"
               "  --fault NAME             inject a fault of the mechanism: drop-ipi, no-slice, early-run,\n"
               "                           ignore-affinity, pull-last\n"
               "  --compare                run none, legacy, drain and flow besides\n"
               "  --no-ideal               leave out the central queue\n"
               "  --json FILE --csv FILE   all figures of all points\n"
               "  --trace FILE --svg FILE  Chrome trace, CPU x time map of the last point\n"
               "  --pass-cost              instructions of a balanced pass, counted one by one\n"
               "  --list-policies --list-costs --help\n");
}

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *fmt, ...)
{
    va_list args;

    fputs("weir-sim: ", stderr);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
    exit(2);
}

static uint64_t number(const char *option, const char *text, uint64_t least, uint64_t most)
{
    char *end;
    unsigned long long v;

    errno = 0;
    v = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < least || v > most) {
        die("--%s %s: want a number from %llu to %llu", option, text, (unsigned long long)least, (unsigned long long)most);
    }
    return v;
}

static double fraction(const char *option, const char *text, double least, double most)
{
    char *end;
    double v = strtod(text, &end);

    if (end == text || *end != '\0' || !(v >= least && v <= most)) {
        die("--%s %s: want a number from %g to %g", option, text, least, most);
    }
    return v;
}

static void list_policies(FILE *f)
{
    for (const struct policy *const *p = policy_registry; *p != NULL; p++) {
        fprintf(f, "  %-10s %s\n", (*p)->name, (*p)->summary);
    }
}

/* What --compare adds. */
static const char *const compared[] = {"none", "legacy", "drain", "flow"};

static void add_policy(struct options *o, const struct policy *p)
{
    for (uint32_t i = 0; i < o->num_policies; i++) {
        if (o->policies[i] == p) {
            return;
        }
    }
    if (o->num_policies == MAX_LIST) {
        die("--policy: at most %u", MAX_LIST);
    }
    o->policies[o->num_policies++] = p;
}

static void parse_policies(struct options *o, char *list)
{
    for (char *save, *name = strtok_r(list, ",", &save); name != NULL; name = strtok_r(NULL, ",", &save)) {
        const struct policy *p = policy_find(name);

        if (p == NULL) {
            fprintf(stderr, "weir-sim: no policy named %s; there are:\n", name);
            list_policies(stderr);
            exit(2);
        }
        add_policy(o, p);
    }
}

static uint32_t parse_fault(const char *name)
{
    static const struct {
        const char *name;
        uint32_t fault;
    } faults[] = {{"drop-ipi", FAULT_DROP_IPI},
                  {"no-slice", FAULT_NO_SLICE},
                  {"ignore-affinity", FAULT_IGNORE_AFFINITY},
                  {"pull-last", FAULT_PULL_LAST},
                  {"early-run", FAULT_EARLY_RUN}};

    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        if (strcmp(name, faults[i].name) == 0) {
            return faults[i].fault;
        }
    }
    die("--fault %s: want drop-ipi, no-slice, early-run, ignore-affinity or pull-last", name);
}

enum option_id {
    OPT_POLICY = 256, OPT_CPUS, OPT_WORKLOAD, OPT_SEED, OPT_CONNS, OPT_QUEUES, OPT_SERVICE, OPT_THINK, OPT_LOAD, OPT_INTERVAL,
    OPT_RX_BATCH, OPT_WARMUP, OPT_MEASURE, OPT_COST, OPT_FAULT, OPT_NO_IDEAL, OPT_COMPARE, OPT_JSON, OPT_CSV, OPT_TRACE, OPT_SVG,
    OPT_LIST_POLICIES, OPT_LIST_COSTS, OPT_PASS_COST, OPT_HARNESS, OPT_HELP,
};

static const struct option long_options[] = {
    {"policy", 1, NULL, OPT_POLICY}, {"cpus", 1, NULL, OPT_CPUS}, {"workload", 1, NULL, OPT_WORKLOAD},
    {"seed", 1, NULL, OPT_SEED}, {"conns", 1, NULL, OPT_CONNS}, {"queues", 1, NULL, OPT_QUEUES},
    {"service", 1, NULL, OPT_SERVICE}, {"think", 1, NULL, OPT_THINK}, {"load", 1, NULL, OPT_LOAD},
    {"interval", 1, NULL, OPT_INTERVAL}, {"rx-batch", 1, NULL, OPT_RX_BATCH}, {"warmup", 1, NULL, OPT_WARMUP},
    {"measure", 1, NULL, OPT_MEASURE}, {"cost", 1, NULL, OPT_COST}, {"fault", 1, NULL, OPT_FAULT},
    {"no-ideal", 0, NULL, OPT_NO_IDEAL}, {"compare", 0, NULL, OPT_COMPARE}, {"json", 1, NULL, OPT_JSON}, {"csv", 1, NULL, OPT_CSV},
    {"trace", 1, NULL, OPT_TRACE}, {"svg", 1, NULL, OPT_SVG}, {"list-policies", 0, NULL, OPT_LIST_POLICIES},
    {"list-costs", 0, NULL, OPT_LIST_COSTS}, {"pass-cost", 0, NULL, OPT_PASS_COST},
    {"harness", 0, NULL, OPT_HARNESS}, {"help", 0, NULL, OPT_HELP}, {NULL, 0, NULL, 0},
};

static void parse_lists(struct options *o, int id, char *arg)
{
    char *save;

    for (char *item = strtok_r(arg, ",", &save); item != NULL; item = strtok_r(NULL, ",", &save)) {
        if ((id == OPT_CONNS ? o->num_conns : o->num_services) == MAX_LIST) {
            die("at most %u values in a list", MAX_LIST);
        }
        if (id == OPT_CONNS) {
            o->conns[o->num_conns++] = (uint32_t)number("conns", item, 1, MAX_THREADS);
        } else {
            o->services[o->num_services++] = fraction("service", item, 0.1, 1e6);
        }
    }
}

static void parse_point(struct options *o, int id, char *arg)
{
    struct point *p = &o->point;

    switch (id) {
    case OPT_CPUS: p->cpus = (uint32_t)number("cpus", arg, 1, SIM_MAX_CPUS); break;
    case OPT_SEED: p->seed = number("seed", arg, 0, UINT64_MAX); break;
    case OPT_QUEUES: p->queues = (uint32_t)number("queues", arg, 1, SIM_MAX_CPUS); break;
    case OPT_THINK: p->think = fraction("think", arg, 0.001, 1e6); break;
    case OPT_LOAD: p->load = fraction("load", arg, 0.001, 1.5); break;
    case OPT_INTERVAL: p->interval_ms = (uint32_t)number("interval", arg, 1, 10000); break;
    case OPT_RX_BATCH: p->rx_batch = (uint32_t)number("rx-batch", arg, 1, 4096); break;
    case OPT_WARMUP: p->warmup_ns = number("warmup", arg, 0, 1000000) * 1000000ull; break;
    case OPT_MEASURE: p->measure_ns = number("measure", arg, 1, 1000000) * 1000000ull; break;
    case OPT_FAULT: p->faults |= parse_fault(arg); break;
    case OPT_HARNESS:
        sim_cost_harness(&p->cost);
        p->queues = QUEUE_PER_CPU;
        p->warmup_ns = 20000000;
        p->measure_ns = 40000000;
        break;
    case OPT_COST:
        if (sim_cost_set(&p->cost, arg) != 0) {
            die("--cost %s: want NAME=NS with a name of --list-costs and ns up to 1000000000", arg);
        }
        break;
    default:
        parse_lists(o, id, arg);
        break;
    }
}

static void parse(struct options *o, int argc, char **argv)
{
    int id;

    while ((id = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        switch (id) {
        case OPT_POLICY: parse_policies(o, optarg); break;
        case OPT_WORKLOAD: o->workload = optarg; break;
        case OPT_NO_IDEAL: o->ideal = false; break;
        case OPT_COMPARE: o->compare = true; break;
        case OPT_JSON: o->json = optarg; break;
        case OPT_CSV: o->csv = optarg; break;
        case OPT_TRACE: o->trace = optarg; break;
        case OPT_SVG: o->svg = optarg; break;
        case OPT_LIST_POLICIES: list_policies(stdout); exit(0);
        case OPT_LIST_COSTS: sim_cost_list(); exit(0);
        case OPT_PASS_COST: exit(passcost_report());
        case OPT_HELP: usage(stdout); exit(0);
        case '?': usage(stderr); exit(2);
        default: parse_point(o, id, optarg); break;
        }
    }
    if (optind < argc) {
        die("unexpected argument %s (see --help)", argv[optind]);
    }
    if (o->num_policies == 0) {
        o->policies[o->num_policies++] = policy_find("drain");
    }
    for (size_t i = 0; o->compare && i < sizeof(compared) / sizeof(compared[0]); i++) {
        add_policy(o, policy_find(compared[i]));
    }
}

/* ---- running ---- */

static double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void progress(double since, uint32_t done, uint32_t all)
{
    if (seconds() - since > PROGRESS_AFTER_S && done < all) {
        fprintf(stderr, "\r%u of %u points, %.0f s%s", done, all, seconds() - since, isatty(2) ? "" : "\n");
    }
}

static int broken(const struct result *r)
{
    if (r->failed) {
        fprintf(stderr, "weir-sim: policy %s, %s, %u CPUs, %u threads, --seed %llu: %s\n", r->policy, r->workload, r->cpus,
                r->conns, (unsigned long long)r->seed, r->failure);
    }
    return r->failed;
}

static int run_grid(const struct options *o, const struct workload *w, struct results *rs)
{
    uint32_t services = o->num_services != 0 ? o->num_services : 1;
    uint32_t all = o->num_conns * services * (o->num_policies + o->ideal);
    double since = seconds();
    uint32_t done = 0;
    int bad = 0;

    for (uint32_t v = 0; v < services; v++) {
        for (uint32_t c = 0; c < o->num_conns; c++) {
            struct point p = o->point;
            struct result r;
            double ideal = 0.0;

            p.conns = o->conns[c];
            p.service_us = o->num_services != 0 ? o->services[v] : 0.0;
            for (uint32_t i = 0; i < o->num_policies + o->ideal; i++) {
                bool last = done + 1 == all;

                p.policy = o->ideal && i == 0 ? NULL : o->policies[i - o->ideal];
                run_point(w, &p, &r, last ? o->trace : NULL, last ? o->svg : NULL);
                ideal = p.policy == NULL ? r.rps : ideal;
                r.fraction_of_ideal = ideal > 0.0 ? r.rps / ideal : 0.0;
                results_add(rs, &r);
                bad |= broken(&r);
                progress(since, ++done, all);
            }
        }
    }
    return bad;
}

static void default_conns(struct options *o, const struct workload *w)
{
    uint32_t n = o->point.cpus;

    if (o->num_conns != 0) {
        return;
    }
    if (w == &wl_server) {
        for (uint32_t c = 1; c <= 128; c *= 2) {
            o->conns[o->num_conns++] = c;
        }
    } else if (w == &wl_closed) {
        for (uint32_t k = 1; k <= 8; k *= 2) {
            o->conns[o->num_conns++] = k * n;
        }
    } else {
        o->conns[o->num_conns++] = w == &wl_spinners ? 2 * n : w == &wl_pipeline ? 4 * n : 0;
    }
}

/* ---- open loop: the highest load that keeps p99 within ten service times ---- */

#define OPEN_REQUESTS 60000.0 /* per point: 600 beyond the 99th percentile */
#define OPEN_STEPS 200u       /* loads are multiples of 0.5% */
#define OPEN_LIMIT 10.0       /* p99 / mean service time */

static void open_point(const struct point *base, const struct policy *policy, double service_us, double load,
                       struct result *r)
{
    struct point p = *base;

    p.policy = policy;
    p.service_us = service_us;
    p.load = load;
    if (p.measure_ns == SIM_NEVER) {
        p.measure_ns = (uint64_t)(OPEN_REQUESTS * service_us * 1000.0 / (load * p.cpus));
    }
    run_point(&wl_open, &p, r, NULL, NULL);
}

static void open_search(const struct point *base, const struct policy *policy, double service_us, struct result *best)
{
    uint32_t good = 0;
    uint32_t bad = OPEN_STEPS;

    while (bad - good > 1) {
        uint32_t mid = (good + bad) / 2;
        struct result r;

        open_point(base, policy, service_us, (double)mid / OPEN_STEPS, &r);
        if (r.failed || r.latency_p99_us > OPEN_LIMIT * service_us) {
            bad = mid;
        } else {
            good = mid;
            *best = r;
        }
    }
    if (good == 0) {
        open_point(base, policy, service_us, 1.0 / OPEN_STEPS, best);
        best->load = 0.0;
        best->rps = 0.0;
    }
}

static int run_open(const struct options *o, struct results *rs)
{
    static const double defaults[] = {10.0, 25.0};
    uint32_t services = o->num_services != 0 ? o->num_services : 2;
    uint32_t all = services * (o->num_policies + o->ideal);
    double since = seconds();
    uint32_t done = 0;
    int bad = 0;

    for (uint32_t v = 0; v < services; v++) {
        double service = o->num_services != 0 ? o->services[v] : defaults[v];
        double ideal = 0.0;

        for (uint32_t i = 0; i < o->num_policies + o->ideal; i++) {
            const struct policy *policy = o->ideal && i == 0 ? NULL : o->policies[i - o->ideal];
            struct result r = {0};

            if (o->point.load > 0.0) {
                open_point(&o->point, policy, service, o->point.load, &r);
            } else {
                open_search(&o->point, policy, service, &r);
            }
            ideal = policy == NULL ? r.load : ideal;
            r.fraction_of_ideal = ideal > 0.0 ? r.load / ideal : 0.0;
            results_add(rs, &r);
            bad |= broken(&r);
            progress(since, ++done, all);
        }
    }
    return bad;
}

static int run_named(struct options *o, struct results *rs)
{
    for (size_t i = 0; i < NUM_WORKLOADS; i++) {
        if (strcmp(o->workload, workloads[i]->name) != 0) {
            continue;
        }
        if (workloads[i] == &wl_open && o->num_conns == 0) {
            return run_open(o, rs);
        }
        default_conns(o, workloads[i]);
        return run_grid(o, workloads[i], rs);
    }
    fprintf(stderr, "weir-sim: no workload named %s; there are:", o->workload);
    for (size_t i = 0; i < NUM_WORKLOADS; i++) {
        fprintf(stderr, " %s", workloads[i]->name);
    }
    fprintf(stderr, " bugs file:PATH trace:PATH\n");
    return 2;
}

static int run_scenario(struct options *o, struct results *rs)
{
    struct scenario *sc = NULL;
    int status;

    if (strncmp(o->workload, "file:", 5) == 0) {
        sc = scenario_from_file(o->workload + 5);
    } else {
        sc = scenario_from_trace(o->workload + 6);
    }
    if (sc == NULL) {
        return 2; /* the reader said why */
    }
    if (!scenario_fits(sc, o->point.cpus, stderr)) {
        scenario_free(sc);
        return 2;
    }
    o->point.scenario = sc;
    if (o->point.measure_ns == SIM_NEVER) {
        o->point.measure_ns = scenario_duration(sc);
    }
    if (o->point.warmup_ns == SIM_NEVER) {
        o->point.warmup_ns = 0;
    }
    o->num_conns = 1;
    o->conns[0] = scenario_threads(sc);
    status = run_grid(o, &wl_scenario, rs);
    scenario_free(sc);
    return status;
}

int main(int argc, char **argv)
{
    struct options o = {.workload = "server", .ideal = true};
    struct results rs = {0};
    int status;

    o.point = (struct point){.cpus = DEFAULT_CPUS, .seed = 1, .think = -1.0, .cost = sim_cost_default,
                             .warmup_ns = SIM_NEVER, .measure_ns = SIM_NEVER};
    parse(&o, argc, argv);
    if (o.point.queues == QUEUE_PER_CPU) {
        o.point.queues = o.point.cpus;
    }
    if (o.point.queues > o.point.cpus) {
        die("--queues %u: at most one per CPU (%u)", o.point.queues, o.point.cpus);
    }
    if (strcmp(o.workload, "bugs") == 0 || strncmp(o.workload, "bugs:", 5) == 0) {
        uint32_t only = o.workload[4] == ':' ? (uint32_t)number("workload bugs", o.workload + 5, 1, NUM_BUGS) : 0;

        return bugs_run(o.policies, o.num_policies, only, &o.point, o.json);
    }
    if (strncmp(o.workload, "file:", 5) == 0 || strncmp(o.workload, "trace:", 6) == 0) {
        status = run_scenario(&o, &rs);
    } else {
        status = run_named(&o, &rs);
    }
    if (status == 2) {
        return 2;
    }
    printf("workload %s, %u CPUs, seed %llu\n", o.workload, o.point.cpus, (unsigned long long)o.point.seed);
    report_table(stdout, &rs);
    if (o.csv != NULL && report_csv(o.csv, &rs) != 0) {
        status = 1;
    }
    if (o.json != NULL && report_json(o.json, &rs, &o.point.cost, o.workload) != 0) {
        status = 1;
    }
    free(rs.list);
    return status;
}
