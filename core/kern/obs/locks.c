/* /locks: what locks cost. The kernel's by class, over the time asked for; those that applications publish, since they began to
 * count. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/obs/app_locks.h"
#include "core/kern/obs/obs.h"
#include "core/kern/obs/query.h"
#include "core/kern/obs/tunables.h"
#include "core/mm/mm.h"

#define CLASSES_MAX 128
#define WORST_LOCKS 8 /* elements of a published table that are shown one by one */

static const char *const format_words[] = { "text", "json", NULL };
enum { FORMAT_TEXT, FORMAT_JSON };

static u32 taken;

/* A line of the table: times in ns. */
struct row {
    u64 acquired, contended;
    u64 wait_p50, wait_p99, wait_max, wait_sum;
    u64 hold_p50, hold_p99, hold_max, hold_sum;
};

struct request {
    u64 ms, format;
    bool first; /* no row written yet */
    u32 num_classes;
    struct {
        struct lock_class *class;
        struct lock_class before;
    } classes[CLASSES_MAX];
    struct app_lock sum, one, worst[WORST_LOCKS];
    u64 worst_index[WORST_LOCKS];
    u32 num_worst;
};

static void write_row(struct request *r, struct out *o, const char *owner, const char *name, const struct row *x)
{
    if (r->format == FORMAT_JSON) {
        out_add(o, "%s\n{\"owner\":", r->first ? "" : ",");
        out_json(o, owner, THREAD_NAME_MAX);
        out_add(o, ",\"lock\":\"%s\",\"acquired\":%lu,\"contended\":%lu,", name, x->acquired, x->contended);
        out_add(o, "\"wait_ns\":{\"p50\":%lu,\"p99\":%lu,\"max\":%lu,\"sum\":%lu},", x->wait_p50, x->wait_p99, x->wait_max,
                x->wait_sum);
        out_add(o, "\"hold_ns\":{\"p50\":%lu,\"p99\":%lu,\"max\":%lu,\"sum\":%lu}}", x->hold_p50, x->hold_p99, x->hold_max,
                x->hold_sum);
    } else {
        out_add(o, "%-10s %-22s %10lu %10lu %10lu %10lu %10lu %12lu %10lu %10lu %10lu %12lu\n", owner, name, x->acquired,
                x->contended, x->wait_p50, x->wait_p99, x->wait_max, TO_USEC(x->wait_sum), x->hold_p50, x->hold_p99,
                x->hold_max, TO_USEC(x->hold_sum));
    }
    r->first = false;
}

/* ---- the kernel's ---- */

static void snapshot(struct request *r)
{
    for (struct lock_class *c = LOAD_ACQUIRE(lock_classes); c && r->num_classes < CLASSES_MAX; c = c->next) {
        r->classes[r->num_classes].class = c;
        r->classes[r->num_classes++].before = *c;
        WRITE_ONCE(c->wait_ns_max, 0); /* maxima cannot be subtracted: put back by restore() */
        WRITE_ONCE(c->hold_ns_max, 0);
    }
}

static void restore(struct request *r)
{
    for (u32 i = 0; i < r->num_classes; i++) {
        struct lock_class *c = r->classes[i].class;
        WRITE_ONCE(c->wait_ns_max, MAX(c->wait_ns_max, r->classes[i].before.wait_ns_max));
        WRITE_ONCE(c->hold_ns_max, MAX(c->hold_ns_max, r->classes[i].before.hold_ns_max));
    }
}

static const struct lock_class *before(const struct request *r, const struct lock_class *c)
{
    static const struct lock_class nothing;
    for (u32 i = 0; i < r->num_classes; i++) {
        if (r->classes[i].class == c) {
            return &r->classes[i].before;
        }
    }
    return &nothing;
}

/* Upper edge of the bucket (powers of two) that holds the quantile, of what came between two histograms. */
static u64 quantile(const u64 *now, const u64 *then, u64 max, u32 permille)
{
    u64 total = 0, seen = 0;
    for (u32 i = 0; i < LOCK_HIST_BUCKETS; i++) {
        total += now[i] - then[i];
    }
    u64 want = (total * permille + 999) / 1000;
    for (u32 i = 0; i < LOCK_HIST_BUCKETS && total; i++) {
        seen += now[i] - then[i];
        if (seen >= want) {
            return MIN(BIT(i + 1) - 1, max);
        }
    }
    return 0;
}

static void write_class(struct request *r, struct out *o, const struct lock_class *c)
{
    const struct lock_class *then = before(r, c);
    struct lock_class now = *c;
    struct row x = {
        .acquired = now.acquisitions - then->acquisitions,
        .contended = now.contended - then->contended,
        .wait_p50 = quantile(now.wait_hist, then->wait_hist, now.wait_ns_max, 500),
        .wait_p99 = quantile(now.wait_hist, then->wait_hist, now.wait_ns_max, 990),
        .wait_max = now.wait_ns_max,
        .wait_sum = now.wait_ns_total - then->wait_ns_total,
        .hold_p50 = quantile(now.hold_hist, then->hold_hist, now.hold_ns_max, 500),
        .hold_p99 = quantile(now.hold_hist, then->hold_hist, now.hold_ns_max, 990),
        .hold_max = now.hold_ns_max,
        .hold_sum = now.hold_ns_total - then->hold_ns_total,
    };
    if (x.acquired || x.contended) {
        write_row(r, o, "kernel", c->name, &x);
    }
}

/* ---- the applications' ---- */

static void write_app_row(struct request *r, struct out *o, const struct app_lock_table *t, const char *name, const struct app_lock *l)
{
    struct row x = {
        .acquired = l->acquired,
        .contended = l->contended,
        .wait_p50 = app_hist_quantile(&l->wait, t->buckets, t->steps, 500),
        .wait_p99 = app_hist_quantile(&l->wait, t->buckets, t->steps, 990),
        .wait_max = l->wait.max,
        .wait_sum = l->wait.sum,
        .hold_p50 = app_hist_quantile(&l->hold, t->buckets, t->steps, 500),
        .hold_p99 = app_hist_quantile(&l->hold, t->buckets, t->steps, 990),
        .hold_max = l->hold.max,
        .hold_sum = l->hold.sum,
    };
    write_row(r, o, t->proc->name, name, &x);
}

/* Keeps the locks that cost most: the longest hold first. */
static void note_worst(struct request *r, u64 index)
{
    u32 at = r->num_worst;
    if (at == WORST_LOCKS) {
        at--;
        if (r->worst[at].hold.max >= r->one.hold.max) {
            return;
        }
    } else {
        r->num_worst++;
    }
    for (; at > 0 && r->worst[at - 1].hold.max < r->one.hold.max; at--) {
        r->worst[at] = r->worst[at - 1];
        r->worst_index[at] = r->worst_index[at - 1];
    }
    r->worst[at] = r->one;
    r->worst_index[at] = index;
}

static void write_table(struct request *r, struct out *o, const struct app_lock_table *t)
{
    char name[APP_LOCKS_NAME + 24];
    r->num_worst = 0;
    memset(&r->sum, 0, sizeof(r->sum));
    for (u64 i = 0; i < t->n; i++) {
        if (app_locks_read(t, i, &r->one)) {
            app_lock_merge(&r->sum, &r->one, t->buckets);
            note_worst(r, i);
        }
    }
    str_format(name, sizeof(name), "%s*", t->name);
    write_app_row(r, o, t, name, &r->sum);
    for (u32 i = 0; i < r->num_worst && t->n > 1; i++) {
        str_format(name, sizeof(name), "%s[%lu]", t->name, r->worst_index[i]);
        write_app_row(r, o, t, name, &r->worst[i]);
    }
}

/* ---- the page ---- */

static void write_locks(struct http_answer *a, struct out *o)
{
    struct request *r = a->stream_arg;
    struct app_lock_table table;
    if (o) {
        snapshot(r);
        bool was_on = READ_ONCE(lock_stats_on);
        lock_stats_set(true);
        thread_sleep_until(arch_clock_ns() + r->ms * NSEC_PER_MSEC);
        lock_stats_set(was_on);
        r->first = true;
        if (r->format == FORMAT_JSON) {
            out_add(o, "{\"recorded_ms\":%lu,\"locks\":[", r->ms);
        } else {
            out_add(o, "%-10s %-22s %10s %10s %10s %10s %10s %12s %10s %10s %10s %12s\n", "owner", "lock", "acquired", "contended",
                    "wait_p50ns", "wait_p99ns", "wait_maxns", "wait_sum_us", "hold_p50ns", "hold_p99ns", "hold_maxns",
                    "hold_sum_us");
        }
        for (const struct lock_class *c = LOAD_ACQUIRE(lock_classes); c; c = c->next) {
            write_class(r, o, c);
        }
        restore(r);
        for (u32 i = 0; app_locks_table(i, &table); i++) {
            write_table(r, o, &table);
        }
        if (r->format == FORMAT_JSON) {
            out_add(o, "\n]}\n");
        } else {
            out_add(o, "# kernel: %lu ms; applications: since they began to count\n", r->ms);
        }
    }
    kfree(r);
    obs_release(&taken);
}

void obs_locks(const struct http_request *request, struct http_answer *out)
{
    u64 ms = OBS_DEFAULT_MS, format = FORMAT_TEXT;
    const struct query_param params[] = {
        { "seconds", QUERY_MILLI, OBS_MIN_MS, OBS_MAX_MS, NULL, &ms },
        { "format", QUERY_CHOICE, 0, 0, format_words, &format },
    };
    if (!query_parse(request, params, ARRAY_SIZE(params), out)) {
        return;
    }
    if (!obs_claim(&taken)) {
        query_busy(out, "the use of locks");
        return;
    }
    struct request *r = kzalloc(sizeof(*r));
    if (!r) {
        obs_release(&taken);
        out->status = 503;
        text_add(&out->body, "not enough memory to record the use of locks\n");
        return;
    }
    r->ms = ms;
    r->format = format;
    out->type = format == FORMAT_JSON ? "application/json" : out->type;
    out->stream = write_locks;
    out->stream_arg = r;
    out->stream_ns = ms * NSEC_PER_MSEC + OBS_SEND_NS;
}
