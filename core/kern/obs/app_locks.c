#include "core/kern/obs/app_locks.h"

#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/obs/tunables.h"

static struct mutex tables_mutex = MUTEX_INIT(tables_mutex);
static struct app_lock_table tables[LOCK_TABLES_MAX]; /* tables_mutex */

/* ---- the published tables ---- */

static bool alive(const struct app_lock_table *t)
{
    return t->proc && !proc_exiting(t->proc);
}

i64 app_locks_store(struct proc *p, const char *line)
{
    struct app_lock_table new;
    struct app_lock_table *place = NULL;
    if (!app_locks_parse(line, &new)) {
        return -EINVAL;
    }
    bool withdraw = new.n == 0;
    new.proc = p;
    mutex_lock(&tables_mutex);
    for (u32 i = 0; i < LOCK_TABLES_MAX; i++) {
        struct app_lock_table *t = &tables[i];
        if (alive(t) && t->proc == p && strcmp(t->name, new.name) == 0) {
            place = t;
            break;
        }
        if (!alive(t) && !place) {
            place = t;
        }
    }
    i64 result = 0;
    if (withdraw) {
        if (place && alive(place)) {
            place->proc = NULL;
        }
    } else if (place) {
        *place = new;
    } else {
        result = -ENOSPC;
    }
    mutex_unlock(&tables_mutex);
    return result;
}

bool app_locks_table(u32 i, struct app_lock_table *out)
{
    bool found = false;
    mutex_lock(&tables_mutex);
    for (u32 k = 0; k < LOCK_TABLES_MAX && !found; k++) {
        if (alive(&tables[k]) && i-- == 0) {
            *out = tables[k];
            found = true;
        }
    }
    mutex_unlock(&tables_mutex);
    return found;
}

static bool read_hist(u64 at, u64 buckets, struct app_hist *out)
{
    return arch_copy_from_app(out, at, offsetof(struct app_hist, count)) &&
           arch_copy_from_app(out->count, at + offsetof(struct app_hist, count), buckets * sizeof(u32));
}

bool app_locks_read(const struct app_lock_table *t, u64 i, struct app_lock *out)
{
    u64 record = t->at + i * t->stride;
    if (t->ptr != UINT64_MAX &&
        (!arch_copy_from_app(&record, record + t->ptr, sizeof(record)) || record < APP_MIN || record >= APP_MAX)) {
        return false;
    }
    return arch_copy_from_app(&out->acquired, record + t->acquired, sizeof(u64)) &&
           arch_copy_from_app(&out->contended, record + t->contended, sizeof(u64)) &&
           read_hist(record + t->wait, t->buckets, &out->wait) && read_hist(record + t->hold, t->buckets, &out->hold);
}
