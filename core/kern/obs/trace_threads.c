#include "core/kern/obs/trace_threads.h"

#include "core/base/hash.h"
#include "core/base/string.h"
#include "core/mm/mm.h"

struct trace_threads *trace_threads_create(u32 max)
{
    struct trace_threads *t = kzalloc(sizeof(*t) + max * sizeof(t->slots[0]));
    if (t) {
        t->mask = max - 1;
    }
    return t;
}

void trace_threads_free(struct trace_threads *t)
{
    kfree(t);
}

struct trace_thread *trace_thread_get(struct trace_threads *t, u32 id)
{
    for (u64 i = mix64(id);; i++) {
        struct trace_thread *th = &t->slots[i & t->mask];
        if (th->id == id) {
            return th;
        }
        if (th->id == 0) {
            if (t->used >= t->mask - t->mask / 8) { /* free slots keep the search short, and make it end */
                t->refused++;
                return NULL;
            }
            t->used++;
            th->id = id;
            th->pid = TRACE_JSON_ENDED;
            th->process = "ended";
            str_copy(th->name, "thread", sizeof(th->name));
            return th;
        }
    }
}

void trace_thread_name(struct trace_thread *th, const char *text, size_t n)
{
    n = strnlen(text, MIN(n, sizeof(th->name) - 1));
    memset(th->name, 0, sizeof(th->name));
    memcpy(th->name, text, n);
}

void trace_threads_add(struct trace_threads *t, u32 id, u32 pid, const char *process, const char *name)
{
    struct trace_thread *th = trace_thread_get(t, id);
    if (th) {
        th->pid = pid;
        th->process = process;
        trace_thread_name(th, name, THREAD_NAME_MAX);
    }
}

void trace_threads_state(struct trace_threads *t, const struct thread_info *info)
{
    static const struct {
        const char *name;
        enum track_state state;
    } states[] = { { "runnable", TRACK_RUNNABLE }, { "waking", TRACK_RUNNABLE }, { "blocked", TRACK_BLOCKED },
                   { "throttled", TRACK_THROTTLED } };
    struct trace_thread *th = trace_thread_get(t, info->id);
    for (u32 i = 0; th && i < ARRAY_SIZE(states); i++) {
        if (strcmp(info->state, states[i].name) == 0) {
            th->state = states[i].state;
            th->wait_kind = info->wait_kind;
            th->wait_object = info->wait_object;
        }
    }
}
