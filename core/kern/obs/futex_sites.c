/* /futex: futex words by time asleep; with seconds=N, the calls of that time by word, outcome and call stack. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/futex_stat.h"
#include "core/kern/obs/frames.h"
#include "core/kern/obs/obs.h"
#include "core/kern/obs/profile.h"
#include "core/kern/obs/query.h"
#include "core/kern/obs/tunables.h"
#include "core/kern/report.h"
#include "core/mm/mm.h"

#define SITES 48       /* rows shown: those with most time asleep, then most calls */
#define SITE_FRAMES 10 /* application frames of a row */

/* STACK_KIND here. */
enum outcome { WOKEN, WOKE, WOKE_NOBODY, AGAIN, TIMED_OUT, INTERRUPTED, FAULT, NUM_OUTCOMES };
static const char *const outcome_names[NUM_OUTCOMES] = { "slept", "woke", "woke-nobody", "EAGAIN", "ETIMEDOUT", "EINTR", "EFAULT" };

struct site {
    u64 words[STACK_MAX];
    u32 n;
    struct stack_entry sums;
};

struct request {
    u64 ms;
    u32 num_sites, all;
    struct site sites[SITES];
};

static enum outcome outcome_of(enum futex_op op, i64 result, u32 woken)
{
    if (op == FUTEX_OP_WAKE) {
        return woken ? WOKE : WOKE_NOBODY;
    }
    switch (result) {
    case -EAGAIN:
        return AGAIN;
    case -ETIMEDOUT:
        return TIMED_OUT;
    case -EINTR:
        return INTERRUPTED;
    case -EFAULT:
        return FAULT;
    default:
        return WOKEN;
    }
}

static void on_call(u64 addr, enum futex_op op, i64 result, u64 asleep_ns, u32 woken)
{
    u64 words[STACK_MAX] = { 0 };
    u64 pcs[UNWIND_MAX];
    struct thread *t = current_thread();
    const struct kthread *k = thread_head(t)->app;
    if (!k) {
        return;
    }
    words[STACK_PROCESS] = k->proc->index + 1;
    words[STACK_KIND] = outcome_of(op, result, woken);
    words[STACK_OBJECT] = addr;
    /* Only the application's part: that is the call site. */
    size_t n = unwind_current((u64)(uintptr_t)__builtin_frame_address(0), pcs, UNWIND_MAX), from = 0;
    while (from < n && pcs[from] >= APP_MAX) {
        from++;
    }
    memcpy(words + STACK_HEAD, pcs + from, (n - from) * sizeof(u64));
    irqflags_t flags = arch_irq_save();
    struct stack_table *table = stacks_get();
    if (table) {
        stack_add(table, words, (u32)(STACK_HEAD + n - from), asleep_ns);
        stacks_put();
    }
    arch_irq_restore(flags);
}

static bool more(const struct stack_entry *a, const struct stack_entry *b)
{
    return a->sum != b->sum ? a->sum > b->sum : a->count > b->count;
}

static void keep_site(const u64 *words, u32 n, const struct stack_entry *sums, void *arg)
{
    struct request *r = arg;
    u32 at = r->num_sites;
    r->all++;
    if (at == SITES) {
        at--;
        if (!more(sums, &r->sites[at].sums)) {
            return;
        }
    } else {
        r->num_sites++;
    }
    for (; at > 0 && more(sums, &r->sites[at - 1].sums); at--) {
        r->sites[at] = r->sites[at - 1];
    }
    memcpy(r->sites[at].words, words, n * sizeof(u64));
    r->sites[at].n = n;
    r->sites[at].sums = *sums;
}

static void add_site(struct out *o, struct frames *frames, const struct site *s)
{
    const struct proc *p = &procs[s->words[STACK_PROCESS] - 1];
    out_add(o, "0x%-16lx %-11s %10lu %12lu %12lu  ", s->words[STACK_OBJECT], outcome_names[s->words[STACK_KIND]], s->sums.count,
            TO_USEC(s->sums.sum), TO_USEC(s->sums.max));
    for (u32 i = STACK_HEAD; i < s->n && i < STACK_HEAD + SITE_FRAMES; i++) {
        out_add(o, "%s%s", i > STACK_HEAD ? " < " : "", frames_name(frames, p, s->words[i], true));
    }
    out_add(o, "\n");
}

static void write_sites(struct http_answer *a, struct out *o)
{
    struct request *r = a->stream_arg;
    struct frames *frames = o ? frames_create(false) : NULL;
    struct stack_losses lost = { 0, 0 };
    if (frames) {
        STORE_RELEASE(futex_stat_hook, on_call);
        thread_sleep_until(arch_clock_ns() + r->ms * NSEC_PER_MSEC);
        WRITE_ONCE(futex_stat_hook, NULL);
    }
    stacks_stop();
    stacks_losses(&lost);
    stacks_finish(frames ? keep_site : NULL, r);
    if (frames) {
        out_add(o, "%-18s %-11s %10s %12s %12s  %s\n", "address", "outcome", "calls", "asleep_us", "longest_us",
                "call site, innermost first");
        for (u32 i = 0; i < r->num_sites; i++) {
            add_site(o, frames, &r->sites[i]);
        }
        out_add(o, "# %lu ms; %u of %u call sites shown, %lu calls found no place\n", r->ms, r->num_sites, r->all, lost.count);
    } else if (o) {
        out_add(o, "# no memory for the names of functions\n");
    }
    frames_free(frames);
    kfree(r);
    profile_let_go();
}

void obs_futex(const struct http_request *request, struct http_answer *out)
{
    u64 ms = 0;
    const struct query_param params[] = { { "seconds", QUERY_MILLI, OBS_MIN_MS, OBS_MAX_MS, NULL, &ms } };
    if (!query_parse(request, params, ARRAY_SIZE(params), out)) {
        return;
    }
    if (ms == 0) {
        report_futex(&out->body);
        return;
    }
    struct request *r = kzalloc(sizeof(*r));
    if (!r || !profile_claim(out)) {
        kfree(r);
        if (!r) {
            out->status = 503;
            text_add(&out->body, "not enough memory for call sites\n");
        }
        return;
    }
    r->ms = ms;
    out->stream = write_sites;
    out->stream_arg = r;
    out->stream_ns = ms * NSEC_PER_MSEC + OBS_SEND_NS;
}
