/* Reads rt-app's JSON: "tasks" of events, "global" settings. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/json.h"
#include "tests/sim/scenario.h"

#define DEFAULT_DURATION_S 1.0
#define MAX_DURATION_S 1000.0
#define MAX_INSTANCES 65536.0
#define MAX_TIME_US 1e9

static const char task_keys[] =
    "run runtime sleep timer yield lock unlock wait signal broad suspend resume barrier (each with a suffix of your choice), "
    "phases loop cpus instance delay priority policy";
static const char phase_keys[] =
    "run runtime sleep timer yield lock unlock wait signal broad suspend resume barrier (each with a suffix of your choice), "
    "loop cpus";
static const char global_keys[] = "duration calibration default_policy pi_enabled lock_pages logdir log_basename log_size gnuplot "
                                  "ftrace io_device mem_buffer_size cumulative_slack";

struct input {
    struct scenario *sc;
    bool failed;
};

static void complain(struct input *in, uint32_t line, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void complain(struct input *in, uint32_t line, const char *fmt, ...)
{
    va_list args;

    if (in->failed) {
        return; /* one error, one line */
    }
    in->failed = true;
    fprintf(stderr, "%s:%u: ", in->sc->path, line);
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    va_end(args);
    fputc('\n', stderr);
}

static double want_number(struct input *in, const struct json *j, double least, double most)
{
    if (j->type != JSON_NUMBER || !(j->number >= least && j->number <= most)) {
        complain(in, j->line, "\"%s\": want a number from %.0f to %.0f", j->key != NULL ? j->key : "", least, most);
        return least;
    }
    return j->number;
}

static int64_t want_loops(struct input *in, const struct json *j)
{
    double v = want_number(in, j, -1, 1e9);

    if (v == 0 || v != (double)(int64_t)v) {
        complain(in, j->line, "\"%s\": want -1 (for ever) or a whole number from 1", j->key);
    }
    return (int64_t)v;
}

static uint64_t want_time(struct input *in, const struct json *j)
{
    return (uint64_t)(want_number(in, j, 0, MAX_TIME_US) * 1000.0);
}

static void read_cpus(struct input *in, const struct json *j, uint64_t *mask)
{
    bool any = false;

    memset(mask, 0, SIM_MASK_WORDS * sizeof(*mask));
    if (j->type != JSON_ARRAY) {
        complain(in, j->line, "\"cpus\": want a list of CPU numbers");
        return;
    }
    for (const struct json *c = j->first; c != NULL; c = c->next) {
        uint32_t cpu = (uint32_t)want_number(in, c, 0, SIM_MAX_CPUS - 1);

        mask[cpu / 64] |= 1ull << (cpu % 64);
        any = true;
    }
    if (!any) {
        complain(in, j->line, "\"cpus\": an empty list allows no CPU; want at least one of 0 to %u", SIM_MAX_CPUS - 1);
    }
}

/* ---- events ---- */

static const struct {
    const char *name;
    enum sc_kind kind;
    enum { ARG_TIME, ARG_NAME, ARG_TIMER, ARG_WAIT, ARG_NONE } arg;
} events[] = {
    {"runtime", SC_RUN, ARG_TIME}, /* before "run": the longer name first */
    {"run", SC_RUN, ARG_TIME},
    {"sleep", SC_SLEEP, ARG_TIME},
    {"timer", SC_TIMER, ARG_TIMER},
    {"yield", SC_YIELD, ARG_NONE},
    {"lock", SC_LOCK, ARG_NAME},
    {"unlock", SC_UNLOCK, ARG_NAME},
    {"wait", SC_WAIT, ARG_WAIT},
    {"signal", SC_SIGNAL, ARG_NAME},
    {"broad", SC_BROADCAST, ARG_NAME},
    {"suspend", SC_SUSPEND, ARG_NONE},
    {"resume", SC_RESUME, ARG_NAME},
    {"barrier", SC_BARRIER, ARG_NAME},
};

static const char *want_name(struct input *in, const struct json *j)
{
    if (j == NULL || j->type != JSON_STRING || j->string[0] == '\0') {
        complain(in, j != NULL ? j->line : 0, "\"%s\": want a name", j != NULL && j->key != NULL ? j->key : "ref");
        return "";
    }
    return j->string;
}

/* A member of an event's object, all of whose members are in `allowed` (two names). */
static const struct json *event_member(struct input *in, const struct json *event, const char *key, const char *other)
{
    const struct json *found = NULL;

    if (event->type != JSON_OBJECT) {
        complain(in, event->line, "\"%s\": want an object with \"%s\" and \"%s\"", event->key, key, other);
        return NULL;
    }
    for (const struct json *m = event->first; m != NULL; m = m->next) {
        if (strcmp(m->key, key) == 0) {
            found = m;
        } else if (strcmp(m->key, other) != 0 && strcmp(m->key, "mode") != 0) {
            complain(in, m->line, "unknown key \"%s\" in \"%s\"; allowed: %s %s mode", m->key, event->key, key, other);
        }
    }
    if (found == NULL) {
        complain(in, event->line, "\"%s\": \"%s\" is missing", event->key, key);
    }
    return found;
}

/* True if the key is that of an event: then it is added to the task. */
static bool read_event(struct input *in, struct sc_task *task, const struct json *j)
{
    struct sc_op op = {0};
    const struct json *a;
    const struct json *b;

    for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++) {
        if (strncmp(j->key, events[i].name, strlen(events[i].name)) != 0) {
            continue;
        }
        op.kind = events[i].kind;
        switch (events[i].arg) {
        case ARG_TIME:
            op.ns = want_time(in, j);
            break;
        case ARG_NAME:
            op.object = scenario_name(in->sc, want_name(in, j));
            break;
        case ARG_TIMER:
            a = event_member(in, j, "ref", "period");
            b = in->failed ? NULL : event_member(in, j, "period", "ref");
            if (b != NULL) {
                op.object = scenario_name(in->sc, want_name(in, a));
                op.ns = want_time(in, b);
            }
            break;
        case ARG_WAIT:
            a = event_member(in, j, "ref", "mutex");
            b = in->failed ? NULL : event_member(in, j, "mutex", "ref");
            if (b != NULL) {
                op.object = scenario_name(in->sc, want_name(in, a));
                op.object2 = scenario_name(in->sc, want_name(in, b));
            }
            break;
        case ARG_NONE:
            break;
        }
        scenario_add_op(task, op);
        return true;
    }
    return false;
}

/* ---- tasks ---- */

static void read_phase(struct input *in, struct sc_task *task, const struct json *j)
{
    struct sc_phase *phase = scenario_add_phase(task);

    if (j->type != JSON_OBJECT) {
        complain(in, j->line, "phase \"%s\": want an object", j->key);
        return;
    }
    for (const struct json *m = j->first; m != NULL && !in->failed; m = m->next) {
        if (strcmp(m->key, "loop") == 0) {
            phase->loops = want_loops(in, m);
        } else if (strcmp(m->key, "cpus") == 0) {
            phase->has_affinity = true;
            read_cpus(in, m, phase->affinity);
        } else if (!read_event(in, task, m)) {
            complain(in, m->line, "unknown key \"%s\" in phase \"%s\"; allowed: %s", m->key, j->key, phase_keys);
        }
    }
    phase->count = task->num_ops - phase->first;
    if (phase->count == 0) {
        complain(in, j->line, "phase \"%s\" has no events", j->key);
    }
}

static void read_phases(struct input *in, struct sc_task *task, const struct json *j)
{
    if (j->type != JSON_OBJECT || j->first == NULL) {
        complain(in, j->line, "\"phases\": want an object of phases");
        return;
    }
    for (const struct json *m = j->first; m != NULL && !in->failed; m = m->next) {
        read_phase(in, task, m);
    }
}

/* Keys of a task besides events and phases.  False if it is none of them. */
static bool read_task_key(struct input *in, struct sc_task *task, const struct json *m)
{
    if (strcmp(m->key, "loop") == 0) {
        task->loops = want_loops(in, m);
    } else if (strcmp(m->key, "instance") == 0) {
        task->instances = (uint32_t)want_number(in, m, 1, MAX_INSTANCES);
    } else if (strcmp(m->key, "delay") == 0) {
        task->delay = want_time(in, m);
    } else if (strcmp(m->key, "priority") == 0) {
        task->nice = (int32_t)want_number(in, m, -20, 19);
    } else if (strcmp(m->key, "policy") == 0) {
        if (m->type != JSON_STRING || (strcmp(m->string, "SCHED_OTHER") != 0 && strcmp(m->string, "SCHED_BATCH") != 0)) {
            complain(in, m->line, "\"policy\": only SCHED_OTHER and SCHED_BATCH");
        }
    } else if (strcmp(m->key, "cpus") == 0) {
        task->has_affinity = true;
        read_cpus(in, m, task->affinity);
    } else {
        return false;
    }
    return true;
}

static void read_task(struct input *in, const struct json *j)
{
    struct sc_task *task = scenario_add_task(in->sc, j->key, j->line);
    bool phased = j->type == JSON_OBJECT && json_get(j, "phases") != NULL;

    if (j->type != JSON_OBJECT) {
        complain(in, j->line, "task \"%s\": want an object", j->key);
        return;
    }
    if (!phased) {
        scenario_add_phase(task);
    }
    for (const struct json *m = j->first; m != NULL && !in->failed; m = m->next) {
        if (strcmp(m->key, "phases") == 0) {
            read_phases(in, task, m);
        } else if (!read_task_key(in, task, m) && !read_event(in, task, m)) {
            complain(in, m->line, "unknown key \"%s\" in task \"%s\"; allowed: %s", m->key, j->key, task_keys);
        } else if (phased && task->num_phases == 0 && task->num_ops != 0) {
            complain(in, m->line, "task \"%s\" has events both in phases and outside of them", j->key);
        }
    }
    if (!phased) {
        task->phases[0].count = task->num_ops;
    }
    if (!in->failed && task->num_ops == 0) {
        complain(in, j->line, "task \"%s\" has no events; want some of: %s", j->key, task_keys);
    }
}

static void read_global(struct input *in, const struct json *j)
{
    for (const struct json *m = j->first; m != NULL && !in->failed; m = m->next) {
        if (strcmp(m->key, "duration") == 0) {
            if (m->type == JSON_NUMBER && m->number == -1) {
                continue; /* for ever, to rt-app: the default here */
            }
            in->sc->duration = (uint64_t)(want_number(in, m, 0, MAX_DURATION_S) * 1e9);
            if (in->sc->duration == 0) {
                complain(in, m->line, "\"duration\": want -1 or seconds above 0");
            }
            continue;
        }
        /* Settings of the real rt-app that mean nothing here are accepted by name. */
        for (const char *k = strstr(global_keys, m->key);; k = strstr(k + 1, m->key)) {
            size_t len = strlen(m->key);

            if (k == NULL) {
                complain(in, m->line, "unknown key \"%s\" in \"global\"; allowed: %s", m->key, global_keys);
                break;
            }
            if ((k == global_keys || k[-1] == ' ') && (k[len] == ' ' || k[len] == '\0')) {
                break;
            }
        }
    }
}

static void read_root(struct input *in, const struct json *root)
{
    if (root->type != JSON_OBJECT) {
        complain(in, root->line, "want an object with \"tasks\" and \"global\"");
        return;
    }
    for (const struct json *m = root->first; m != NULL && !in->failed; m = m->next) {
        if (strcmp(m->key, "global") != 0 && strcmp(m->key, "tasks") != 0 && strcmp(m->key, "resources") != 0) {
            complain(in, m->line, "unknown key \"%s\"; allowed: tasks global resources", m->key);
        } else if (m->type != JSON_OBJECT) {
            complain(in, m->line, "\"%s\": want an object", m->key);
        } else if (strcmp(m->key, "global") == 0) {
            read_global(in, m);
        } else if (strcmp(m->key, "tasks") == 0) {
            for (const struct json *t = m->first; t != NULL && !in->failed; t = t->next) {
                read_task(in, t);
            }
        }
    }
    if (!in->failed && in->sc->num_tasks == 0) {
        complain(in, root->line, "no tasks");
    }
    if (!in->failed && scenario_threads(in->sc) > (uint32_t)MAX_INSTANCES) {
        complain(in, root->line, "more than %.0f threads", MAX_INSTANCES);
    }
}

struct scenario *scenario_from_file(const char *path)
{
    char error[256];
    struct json *root = json_read(path, error, sizeof(error));
    struct input in = {0};

    if (root == NULL) {
        fprintf(stderr, "%s\n", error);
        return NULL;
    }
    in.sc = scenario_new(path);
    in.sc->duration = (uint64_t)(DEFAULT_DURATION_S * 1e9);
    read_root(&in, root);
    json_free(root);
    if (in.failed) {
        scenario_free(in.sc);
        return NULL;
    }
    return in.sc;
}
