/* A scenario in memory, and the programs of its threads. */
#include "tests/sim/scenario.h"

#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"

/* ---- building ---- */

static void *grow(void *list, uint32_t count, uint32_t *cap, size_t size)
{
    if (count < *cap) {
        return list;
    }
    *cap = *cap == 0 ? 16 : *cap * 2;
    list = realloc(list, *cap * size);
    if (list == NULL) {
        fprintf(stderr, "weir-sim: out of memory (%u items)\n", *cap);
        exit(1);
    }
    return list;
}

static char *copy_text(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = sim_alloc(size, 1);

    memcpy(copy, text, size);
    return copy;
}

struct scenario *scenario_new(const char *path)
{
    struct scenario *sc = sim_alloc(1, sizeof(*sc));

    sc->path = copy_text(path);
    return sc;
}

struct sc_task *scenario_add_task(struct scenario *sc, const char *name, uint32_t line)
{
    struct sc_task *task;

    sc->tasks = grow(sc->tasks, sc->num_tasks, &sc->cap_tasks, sizeof(*sc->tasks));
    task = &sc->tasks[sc->num_tasks++];
    *task = (struct sc_task){.name = copy_text(name), .line = line, .instances = 1, .loops = -1};
    return task;
}

void scenario_add_op(struct sc_task *task, struct sc_op op)
{
    task->ops = grow(task->ops, task->num_ops, &task->cap_ops, sizeof(*task->ops));
    task->ops[task->num_ops++] = op;
}

struct sc_phase *scenario_add_phase(struct sc_task *task)
{
    struct sc_phase *phases = realloc(task->phases, (task->num_phases + 1) * sizeof(*phases));

    if (phases == NULL) {
        fprintf(stderr, "weir-sim: out of memory (phases)\n");
        exit(1);
    }
    task->phases = phases;
    phases[task->num_phases] = (struct sc_phase){.loops = 1, .first = task->num_ops};
    return &phases[task->num_phases++];
}

uint32_t scenario_name(struct scenario *sc, const char *name)
{
    char **names;

    for (uint32_t i = 0; i < sc->num_names; i++) {
        if (strcmp(sc->names[i], name) == 0) {
            return i;
        }
    }
    names = realloc(sc->names, (sc->num_names + 1) * sizeof(*names));
    if (names == NULL) {
        fprintf(stderr, "weir-sim: out of memory (names)\n");
        exit(1);
    }
    sc->names = names;
    names[sc->num_names] = copy_text(name);
    return sc->num_names++;
}

void scenario_free(struct scenario *sc)
{
    for (uint32_t i = 0; i < sc->num_tasks; i++) {
        free(sc->tasks[i].name);
        free(sc->tasks[i].ops);
        free(sc->tasks[i].phases);
    }
    for (uint32_t i = 0; i < sc->num_names; i++) {
        free(sc->names[i]);
    }
    free(sc->names);
    free(sc->tasks);
    free(sc->path);
    free(sc);
}

uint64_t scenario_duration(const struct scenario *sc)
{
    return sc->duration;
}

uint32_t scenario_threads(const struct scenario *sc)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < sc->num_tasks; i++) {
        count += sc->tasks[i].instances;
    }
    return count;
}

static bool mask_fits(const uint64_t *mask, uint32_t cpus)
{
    for (uint32_t c = 0; c < cpus; c++) {
        if (mask[c / 64] >> (c % 64) & 1) {
            return true;
        }
    }
    return false;
}

bool scenario_fits(const struct scenario *sc, uint32_t cpus, FILE *complain)
{
    for (uint32_t i = 0; i < sc->num_tasks; i++) {
        const struct sc_task *task = &sc->tasks[i];
        bool fits = !task->has_affinity || mask_fits(task->affinity, cpus);

        for (uint32_t p = 0; p < task->num_phases; p++) {
            fits = fits && (!task->phases[p].has_affinity || mask_fits(task->phases[p].affinity, cpus));
        }
        if (!fits) {
            fprintf(complain, "%s:%u: task \"%s\" may run on no CPU: there are CPUs 0 to %u (--cpus)\n", sc->path, task->line,
                    task->name, cpus - 1);
            return false;
        }
    }
    return true;
}

/* ---- running ---- */

struct object {
    struct runner *owner; /* of a lock */
    struct runner *waiting, **waiting_tail;
    uint32_t count;       /* waiting at a barrier */
    uint32_t users;       /* tasks that come to a barrier */
};

/* One thread of a task. */
struct runner {
    struct sim_thread *thread;
    const struct sc_task *task;
    struct runner *next;  /* in a waiting list */
    uint32_t phase, op;
    int64_t phase_loops, loops;
    uint64_t *timers;     /* next deadline of each timer it uses, 0: not begun */
    uint32_t resumes;
    bool suspended;
    bool delayed;
    uint32_t relock;      /* 1 + lock to take again after a wait */
    uint32_t rounds;
};

struct play {
    const struct scenario *sc;
    struct object *objects;
    struct runner *runners;
    uint32_t num_runners;
};

static void wait_on(struct object *o, struct runner *r)
{
    r->next = NULL;
    *o->waiting_tail = r;
    o->waiting_tail = &r->next;
}

static struct runner *wait_pop(struct object *o)
{
    struct runner *r = o->waiting;

    if (r != NULL) {
        o->waiting = r->next;
        if (o->waiting == NULL) {
            o->waiting_tail = &o->waiting;
        }
    }
    return r;
}

/* True if the lock is taken now; else the runner waits for it and will own it when it wakes. */
static bool lock_take(struct object *o, struct runner *r)
{
    if (o->owner == NULL) {
        o->owner = r;
        return true;
    }
    wait_on(o, r);
    return false;
}

static void lock_give(struct sim *s, struct object *o)
{
    o->owner = wait_pop(o);
    if (o->owner != NULL) {
        sim_wake(s, o->owner->thread, 0);
    }
}

static void wake_one(struct sim *s, struct play *w, struct object *cond)
{
    struct runner *r = wait_pop(cond);

    if (r == NULL) {
        return;
    }
    if (r->relock == 0 || lock_take(&w->objects[r->relock - 1], r)) {
        sim_wake(s, r->thread, 0);
    }
}

static void resume_task(struct sim *s, struct play *w, const char *name)
{
    for (uint32_t i = 0; i < w->num_runners; i++) {
        struct runner *r = &w->runners[i];

        if (strcmp(r->task->name, name) != 0) {
            continue;
        }
        if (r->suspended) {
            r->suspended = false;
            sim_wake(s, r->thread, 0);
        } else {
            r->resumes++;
        }
    }
}

/* The barrier's last comer wakes the others; true if this one waits. */
static bool barrier(struct sim *s, struct object *o, struct runner *r)
{
    if (++o->count < o->users) {
        wait_on(o, r);
        return true;
    }
    o->count = 0;
    for (struct runner *other; (other = wait_pop(o)) != NULL;) {
        sim_wake(s, other->thread, 0);
    }
    return false;
}

/* Ops on locks, conditions, barriers and tasks.  True if the thread blocks. */
static bool do_object_op(struct sim *s, struct play *w, struct runner *r, const struct sc_op *op)
{
    struct object *o = &w->objects[op->object];

    switch (op->kind) {
    case SC_LOCK:
        return !lock_take(o, r);
    case SC_UNLOCK:
        if (o->owner == r) {
            lock_give(s, o);
        }
        return false;
    case SC_WAIT:
        r->relock = op->object2 + 1;
        wait_on(o, r);
        if (w->objects[op->object2].owner == r) {
            lock_give(s, &w->objects[op->object2]);
        }
        return true;
    case SC_SIGNAL:
        wake_one(s, w, o);
        return false;
    case SC_BROADCAST:
        while (o->waiting != NULL) {
            wake_one(s, w, o);
        }
        return false;
    case SC_SUSPEND:
        r->suspended = r->resumes == 0;
        r->resumes -= r->suspended ? 0 : 1;
        return r->suspended;
    case SC_RESUME:
        resume_task(s, w, w->sc->names[op->object]);
        return false;
    default: /* SC_BARRIER */
        return barrier(s, o, r);
    }
}

/* Does one op.  True with *a set if the thread does something that takes time. */
static bool do_op(struct sim *s, struct play *w, struct runner *r, const struct sc_op *op, struct sim_action *a)
{
    switch (op->kind) {
    case SC_RUN:
        *a = (struct sim_action){ACT_RUN, op->ns};
        return op->ns != 0;
    case SC_SLEEP:
        *a = (struct sim_action){ACT_SLEEP, op->ns};
        return op->ns != 0;
    case SC_TIMER:
        r->timers[op->object] = (r->timers[op->object] == 0 ? s->now : r->timers[op->object]) + op->ns;
        if (r->timers[op->object] <= s->now) {
            return false; /* late: goes on at once and catches up, as rt-app does */
        }
        *a = (struct sim_action){ACT_SLEEP, r->timers[op->object] - s->now};
        return true;
    case SC_YIELD:
        *a = (struct sim_action){ACT_YIELD, 0};
        return true;
    default:
        *a = (struct sim_action){ACT_PARK, 0};
        return do_object_op(s, w, r, op);
    }
}

/* Steps to the next op; false at the end of the program. */
static bool advance(struct sim *s, struct runner *r)
{
    const struct sc_task *task = r->task;

    if (r->op < task->phases[r->phase].count) {
        return true;
    }
    r->op = 0;
    if (task->phases[r->phase].loops < 0 || ++r->phase_loops < task->phases[r->phase].loops) {
        return true;
    }
    r->phase_loops = 0;
    if (++r->phase == task->num_phases) {
        r->phase = 0;
        sim_op(s, r->thread, 0); /* an operation is one round of the whole program */
        if (task->loops >= 0 && ++r->loops >= task->loops) {
            return false;
        }
    }
    if (task->phases[r->phase].has_affinity) {
        sim_set_affinity(s, r->thread, task->phases[r->phase].affinity);
    }
    return true;
}

static struct sim_action runner_step(struct sim *s, struct sim_thread *t)
{
    struct play *w = s->workload;
    struct runner *r = t->arg;
    struct sim_action a;

    if (!r->delayed) {
        r->delayed = true;
        if (r->task->delay != 0) {
            return (struct sim_action){ACT_SLEEP, r->task->delay};
        }
    }
    r->relock = 0;
    for (;;) {
        const struct sc_phase *phase;

        if (!advance(s, r)) {
            return (struct sim_action){ACT_EXIT, 0};
        }
        phase = &r->task->phases[r->phase];
        if (do_op(s, w, r, &r->task->ops[phase->first + r->op++], &a)) {
            return a;
        }
        if (r->op == phase->count && r->phase + 1 == r->task->num_phases && ++r->rounds % 1000 == 0) {
            return (struct sim_action){ACT_RUN, 1}; /* a program that takes no time must not stop the clock */
        }
    }
}

static void count_users(struct play *w)
{
    for (uint32_t i = 0; i < w->num_runners; i++) {
        const struct sc_task *task = w->runners[i].task;

        for (uint32_t o = 0; o < w->sc->num_names; o++) {
            bool uses = false;

            for (uint32_t k = 0; k < task->num_ops; k++) {
                uses |= task->ops[k].kind == SC_BARRIER && task->ops[k].object == o;
            }
            w->objects[o].users += uses;
        }
    }
}

static void scenario_setup(struct sim *s, const struct point *p)
{
    const struct scenario *sc = p->scenario;
    struct play *w = sim_alloc(1, sizeof(*w));
    uint32_t next = 0;

    s->workload = w;
    w->sc = sc;
    w->objects = sim_alloc(sc->num_names, sizeof(*w->objects));
    w->num_runners = scenario_threads(sc);
    w->runners = sim_alloc(w->num_runners, sizeof(*w->runners));
    for (uint32_t o = 0; o < sc->num_names; o++) {
        w->objects[o].waiting_tail = &w->objects[o].waiting;
    }
    for (uint32_t i = 0; i < sc->num_tasks; i++) {
        const struct sc_task *task = &sc->tasks[i];

        for (uint32_t k = 0; k < task->instances; k++) {
            struct runner *r = &w->runners[next++];
            const uint64_t *affinity = task->has_affinity ? task->affinity : NULL;

            if (task->phases[0].has_affinity) {
                affinity = task->phases[0].affinity;
            }
            r->task = task;
            r->timers = sim_alloc(sc->num_names, sizeof(*r->timers));
            r->thread = sim_thread_new(s, task->name, runner_step, r, affinity);
            runq_entity_init(&r->thread->entity, runq_weight_of_nice(task->nice));
        }
    }
    count_users(w);
    for (uint32_t i = 0; i < w->num_runners; i++) {
        sim_spawn(s, w->runners[i].thread, 0);
    }
}

static void scenario_done(struct sim *s)
{
    struct play *w = s->workload;

    for (uint32_t i = 0; i < w->num_runners; i++) {
        free(w->runners[i].timers);
    }
    free(w->runners);
    free(w->objects);
    free(w);
}

const struct workload wl_scenario = {
    .name = "file",
    .summary = "tasks read from a file",
    .setup = scenario_setup,
    .done = scenario_done,
    .measure_ns = 1000000000,
};
