/* Workloads read from files: tasks with programs of run, sleep, lock ... */
#ifndef WEIR_TESTS_SIM_SCENARIO_H
#define WEIR_TESTS_SIM_SCENARIO_H

#include "tests/sim/workload.h"

struct scenario;

/* rt-app's JSON (docs/simulator.md has the keys).  NULL on error, with one line "FILE:LINE: ..." on stderr. */
struct scenario *scenario_from_file(const char *path);
/* A Chrome trace: every thread's bursts and pauses, as recorded. */
struct scenario *scenario_from_trace(const char *path);
void scenario_free(struct scenario *sc);
uint64_t scenario_duration(const struct scenario *sc);
uint32_t scenario_threads(const struct scenario *sc);
/* Do its affinities fit that many CPUs?  If not, says so in one line. */
bool scenario_fits(const struct scenario *sc, uint32_t cpus, FILE *complain);

/* ---- for the readers ---- */

enum sc_kind { SC_RUN, SC_SLEEP, SC_TIMER, SC_YIELD, SC_LOCK, SC_UNLOCK, SC_WAIT, SC_SIGNAL, SC_BROADCAST, SC_SUSPEND, SC_RESUME,
               SC_BARRIER };

struct sc_op {
    enum sc_kind kind;
    uint32_t object, object2; /* lock, condition, barrier, timer or task name, by index; 2: the lock of a wait */
    uint64_t ns;
};

struct sc_phase {
    int64_t loops;            /* -1: for ever */
    uint32_t first, count;    /* of the task's ops */
    bool has_affinity;
    uint64_t affinity[SIM_MASK_WORDS];
};

struct sc_task {
    char *name;
    uint32_t line;
    uint32_t instances;
    uint64_t delay;
    int64_t loops;
    int32_t nice;
    struct sc_op *ops;
    uint32_t num_ops, cap_ops;
    struct sc_phase *phases;
    uint32_t num_phases;
    bool has_affinity;
    uint64_t affinity[SIM_MASK_WORDS];
};

struct scenario {
    char *path;
    uint64_t duration;
    struct sc_task *tasks;
    uint32_t num_tasks, cap_tasks;
    char **names;             /* of locks, conditions, barriers, timers: one name space, as in rt-app */
    uint32_t num_names;
};

struct scenario *scenario_new(const char *path);
struct sc_task *scenario_add_task(struct scenario *sc, const char *name, uint32_t line);
void scenario_add_op(struct sc_task *task, struct sc_op op);
struct sc_phase *scenario_add_phase(struct sc_task *task);
uint32_t scenario_name(struct scenario *sc, const char *name);

#endif
