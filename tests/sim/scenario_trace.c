/* Reads a Chrome trace (JSON) as a workload: what each thread ran and how long it was blocked in between.
 *
 * Wants complete events ("ph":"X", ts and dur in microseconds, args.thread) for run segments; args.end "blocked" says that
 * the thread blocked at its end, "preempted" or "interrupted" that it would have gone on.  Without args.end every gap counts as
 * blocked.  Instants named "wake" with args.thread end the blocked time; without them it lasts until the next segment, which
 * then contains the recorded machine's own delay.  Who woke whom is not replayed, only when. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/internal.h"
#include "tests/sim/json.h"
#include "tests/sim/scenario.h"

struct item {
    uint32_t thread;
    bool wake;
    bool goes_on; /* a segment after which the thread was still runnable */
    double from, to;
    const char *name;
    size_t order;
};

static int by_thread_and_time(const void *a, const void *b)
{
    const struct item *x = a;
    const struct item *y = b;

    if (x->thread != y->thread) {
        return x->thread < y->thread ? -1 : 1;
    }
    if (x->from != y->from) {
        return x->from < y->from ? -1 : 1;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool number_of(const struct json *object, const char *key, double *out)
{
    const struct json *j = object != NULL && object->type == JSON_OBJECT ? json_get(object, key) : NULL;

    if (j == NULL || j->type != JSON_NUMBER) {
        return false;
    }
    *out = j->number;
    return true;
}

/* 1: an item, 0: of no interest, -1: malformed. */
static int read_item(const struct json *event, struct item *item)
{
    const struct json *ph = event->type == JSON_OBJECT ? json_get(event, "ph") : NULL;
    const struct json *name = event->type == JSON_OBJECT ? json_get(event, "name") : NULL;
    const struct json *args = event->type == JSON_OBJECT ? json_get(event, "args") : NULL;
    const struct json *end;
    double thread;
    double dur = 0.0;

    if (ph == NULL || ph->type != JSON_STRING || name == NULL || name->type != JSON_STRING || args == NULL ||
        !number_of(args, "thread", &thread)) {
        return 0;
    }
    *item = (struct item){.thread = (uint32_t)thread, .name = name->string};
    item->wake = strcmp(ph->string, "i") == 0 && strcmp(name->string, "wake") == 0;
    if (!item->wake && strcmp(ph->string, "X") != 0) {
        return 0;
    }
    if (!number_of(event, "ts", &item->from) || (!item->wake && !number_of(event, "dur", &dur)) || dur < 0.0 ||
        thread < 0.0 || thread > (double)UINT32_MAX) {
        return -1;
    }
    item->to = item->from + dur;
    end = json_get(args, "end");
    item->goes_on = end != NULL && end->type == JSON_STRING && strcmp(end->string, "blocked") != 0;
    return 1;
}

static void add_time(struct sc_task *task, enum sc_kind kind, double us)
{
    uint64_t ns = us > 0.0 ? (uint64_t)(us * 1000.0) : 0;

    if (task->num_ops != 0 && task->ops[task->num_ops - 1].kind == kind) {
        task->ops[task->num_ops - 1].ns += ns;
    } else if (ns != 0) {
        scenario_add_op(task, (struct sc_op){.kind = kind, .ns = ns});
    }
}

/* The items of one thread, in order of time. */
static void add_thread(struct scenario *sc, const struct item *items, size_t count, double start)
{
    struct sc_task *task = NULL;
    double blocked_from = -1.0; /* since when it is blocked, before 0: it is not */

    for (size_t i = 0; i < count; i++) {
        const struct item *it = &items[i];

        if (it->wake) {
            if (task != NULL && blocked_from >= 0.0) {
                add_time(task, SC_SLEEP, it->from - blocked_from);
                blocked_from = -1.0;
            }
            continue;
        }
        if (task == NULL) {
            task = scenario_add_task(sc, it->name, 0);
            task->loops = 1;
            task->delay = it->from > start ? (uint64_t)((it->from - start) * 1000.0) : 0;
            scenario_add_phase(task);
        }
        if (blocked_from >= 0.0) {
            add_time(task, SC_SLEEP, it->from - blocked_from);
        }
        add_time(task, SC_RUN, it->to - it->from);
        blocked_from = it->goes_on ? -1.0 : it->to;
    }
    if (task != NULL) {
        task->phases[0].count = task->num_ops;
        if (task->num_ops == 0) {
            scenario_add_op(task, (struct sc_op){.kind = SC_RUN, .ns = 1});
            task->phases[0].count = 1;
        }
    }
}

static void build(struct scenario *sc, struct item *items, size_t count)
{
    double start = 0.0;
    double end = 0.0;

    for (size_t i = 0; i < count; i++) {
        items[i].order = i;
        start = i == 0 || items[i].from < start ? items[i].from : start;
        end = items[i].to > end ? items[i].to : end;
    }
    qsort(items, count, sizeof(*items), by_thread_and_time);
    for (size_t first = 0, next; first < count; first = next) {
        next = first + 1;
        while (next < count && items[next].thread == items[first].thread) {
            next++;
        }
        add_thread(sc, &items[first], next - first, start);
    }
    sc->duration = (uint64_t)((end - start) * 1000.0) + 1;
}

struct scenario *scenario_from_trace(const char *path)
{
    char error[256];
    struct json *root = json_read(path, error, sizeof(error));
    const struct json *events;
    struct scenario *sc = NULL;
    struct item *items;
    size_t count = 0;
    size_t used = 0;

    if (root == NULL) {
        fprintf(stderr, "%s\n", error);
        return NULL;
    }
    events = root->type == JSON_OBJECT ? json_get(root, "traceEvents") : root;
    if (events == NULL || events->type != JSON_ARRAY) {
        fprintf(stderr, "%s:%u: want a Chrome trace: a list, or an object with \"traceEvents\"\n", path, root->line);
        json_free(root);
        return NULL;
    }
    for (const struct json *e = events->first; e != NULL; e = e->next) {
        count++;
    }
    items = sim_alloc(count, sizeof(*items));
    for (const struct json *e = events->first; e != NULL; e = e->next) {
        int what = read_item(e, &items[used]);

        if (what < 0) {
            fprintf(stderr, "%s:%u: an event with args.thread wants \"ts\" and \"dur\" in microseconds, not negative\n", path,
                    e->line);
            goto out;
        }
        used += what > 0;
    }
    if (used != 0) {
        sc = scenario_new(path);
        build(sc, items, used);
    }
    if (sc == NULL || sc->num_tasks == 0) {
        fprintf(stderr, "%s:%u: no run segments (\"ph\":\"X\" with args.thread)\n", path, root->line);
        if (sc != NULL) {
            scenario_free(sc);
            sc = NULL;
        }
    }
out:
    free(items);
    json_free(root);
    return sc;
}
