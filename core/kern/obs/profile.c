/* /profile: where threads run or wait, as folded stacks ("process/thread;outermost;...;innermost VALUE" a line).
 *
 * On-CPU values are samples; off-CPU values are microseconds, and the innermost frames say what was waited for and who ended
 * it: [futex 0x7f..], [by kv-conn]. Lines that begin with # tell what is not in the stacks. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/obs/frames.h"
#include "core/kern/obs/obs.h"
#include "core/kern/obs/profile.h"
#include "core/kern/obs/query.h"
#include "core/kern/obs/tunables.h"
#include "core/mm/mm.h"

static const char *const mode_words[] = { "oncpu", "offcpu", NULL };
/* In the order of enum wait_kind. */
static const char *const kind_words[] = { "none", "futex",    "socket", "sleep", "poll", "join", "pipe",
                                          "lock", "throttle", "signal", "work", "other", NULL };

static u32 taken;

struct writer {
    struct out *out;
    struct frames *frames;
    struct stack_table *merged; /* by functions instead of addresses */
    const char *prefix; /* of every line */
    u64 scale; /* values are divided by this */
    u64 unnamed;
};

/* A thread's name fit for a folded stack. */
static void copy_name(char out[THREAD_NAME_MAX + 1], const u64 words[2])
{
    memcpy(out, words, THREAD_NAME_MAX);
    out[THREAD_NAME_MAX] = '\0';
    for (char *c = out; *c; c++) {
        *c = *c == ';' || *c == ' ' ? '_' : *c;
    }
}

static void add_cause(struct out *o, const u64 *words)
{
    char waker[THREAD_NAME_MAX + 1];
    u64 kind = words[STACK_KIND];
    if (kind == STACK_ON_CPU) {
        return;
    }
    out_add(o, ";[%s", wait_kind_name((enum wait_kind)kind));
    if (words[STACK_OBJECT]) {
        out_add(o, "_0x%lx", words[STACK_OBJECT]);
    }
    copy_name(waker, &words[STACK_WAKER]);
    if (strcmp(waker, "?") == 0) {
        out_add(o, "];[not_over]");
    } else {
        out_add(o, "];[by_%s]", waker[0] ? waker : "interrupt");
    }
}

static const struct proc *proc_of(const u64 *words)
{
    return words[STACK_PROCESS] ? &procs[words[STACK_PROCESS] - 1] : NULL;
}

/* words: function starts. */
static void write_stack(struct writer *w, const u64 *words, u32 n, const struct stack_entry *sums)
{
    char name[THREAD_NAME_MAX + 1];
    u64 value = sums->sum / w->scale;
    const struct proc *p = proc_of(words);
    if (value == 0 || w->out->failed) {
        return;
    }
    copy_name(name, &words[STACK_NAME]);
    out_add(w->out, "%s%s/%s", w->prefix, p ? p->name : "kernel", name);
    for (u32 i = n; i-- > STACK_HEAD;) {
        const char *function = frames_name(w->frames, p, words[i], false);
        w->unnamed += function[0] == '0' ? sums->count : 0;
        out_add(w->out, ";%s%s", function, words[i] >= APP_MAX ? "_[k]" : "");
    }
    add_cause(w->out, words);
    out_add(w->out, " %lu\n", value);
}

/* Puts together what differs only in the places within functions. */
static void add_stack(const u64 *words, u32 n, const struct stack_entry *sums, void *arg)
{
    struct writer *w = arg;
    u64 starts[STACK_MAX];
    memcpy(starts, words, STACK_HEAD * sizeof(u64));
    for (u32 i = STACK_HEAD; i < n; i++) {
        /* The innermost address of a sample is the instruction itself, all others are return addresses. */
        bool is_return = i > STACK_HEAD || words[STACK_KIND] != STACK_ON_CPU;
        starts[i] = frames_start(w->frames, proc_of(words), words[i], is_return);
    }
    if (!stack_merge(w->merged, starts, n, sums)) {
        write_stack(w, starts, n, sums);
    }
}

/* Writes what the tables hold, and frees them. out NULL: only frees. */
static void write_stacks(struct out *out, enum profile_mode mode, const char *prefix)
{
    struct writer w = { out, out ? frames_create(false) : NULL, out ? kzalloc(sizeof(*w.merged)) : NULL, prefix,
                        mode == PROFILE_ONCPU ? 1 : NSEC_PER_USEC, 0 };
    struct stack_losses lost;
    bool usable = w.frames && w.merged;
    stacks_stop();
    stacks_losses(&lost);
    stacks_finish(usable ? add_stack : NULL, &w);
    for (u32 i = 0; usable && i < STACK_SLOTS; i++) {
        const struct stack_entry *e = &w.merged->slots[i];
        if (e->words) {
            write_stack(&w, &w.merged->data[e->first], e->words, e);
        }
    }
    if (out && !usable) {
        out_add(out, "%s# no memory for the names of functions\n", prefix);
    } else if (out && lost.count) {
        out_add(out, "%s# lost: %lu stacks with a sum of %lu found no place\n", prefix, lost.count, lost.sum / w.scale);
    }
    if (w.unnamed) {
        out_add(out, "%s# unnamed: %lu frames without a symbol (application stripped?)\n", prefix, w.unnamed);
    }
    frames_free(w.frames);
    kfree(w.merged);
}

static void write_profile(struct http_answer *a, struct out *out)
{
    struct profile_options *options = a->stream_arg;
    if (out) {
        profile_start(options);
        thread_sleep_until(arch_clock_ns() + options->ms * NSEC_PER_MSEC);
        profile_stop();
    }
    write_stacks(out, (enum profile_mode)options->mode, "");
    kfree(options);
    profile_let_go();
}

bool profile_claim(struct http_answer *out)
{
    if (!obs_claim(&taken)) {
        query_busy(out, "a profile");
        return false;
    }
    if (stacks_start() < 0) {
        obs_release(&taken);
        out->status = 503;
        text_add(&out->body, "not enough memory for the stacks of a profile\n");
        return false;
    }
    return true;
}

void profile_let_go(void)
{
    obs_release(&taken);
}

void obs_profile(const struct http_request *request, struct http_answer *out)
{
    struct profile_options o = { PROFILE_ONCPU, OBS_DEFAULT_MS, PROFILE_DEFAULT_HZ, 1, ~0ull };
    const struct query_param params[] = {
        { "seconds", QUERY_MILLI, OBS_MIN_MS, OBS_MAX_MS, NULL, &o.ms },
        { "mode", QUERY_CHOICE, 0, 0, mode_words, &o.mode },
        { "hz", QUERY_NUMBER, 1, PROFILE_MAX_HZ, NULL, &o.hz },
        { "idle", QUERY_NUMBER, 0, 1, NULL, &o.idle },
        { "wait", QUERY_SET, 0, 0, kind_words, &o.kinds },
    };
    if (!query_parse(request, params, ARRAY_SIZE(params), out)) {
        return;
    }
    struct profile_options *copy = kmalloc(sizeof(*copy));
    if (!copy || !profile_claim(out)) {
        kfree(copy);
        if (!copy) {
            out->status = 503;
            text_add(&out->body, "not enough memory for a profile\n");
        }
        return;
    }
    *copy = o;
    out->stream = write_profile;
    out->stream_arg = copy;
    out->stream_ns = o.ms * NSEC_PER_MSEC + OBS_SEND_NS;
}

/* ---- from boot to the end: profile= on the command line ---- */

static struct profile_options boot_profile;
static bool booted;

bool obs_boot_profile(const char *what)
{
    u64 hz = PROFILE_DEFAULT_HZ;
    struct http_answer unused = { 0 };
    bool offcpu = strcmp(what, "offcpu") == 0;
    if (!offcpu && strcmp(what, "oncpu") != 0 && (str_parse_u64(what, strlen(what), &hz) < 0 || hz < 1 || hz > PROFILE_MAX_HZ)) {
        return false;
    }
    if (profile_claim(&unused)) {
        boot_profile = (struct profile_options){ offcpu ? PROFILE_OFFCPU : PROFILE_ONCPU, 0, hz, 1, ~0ull };
        profile_start(&boot_profile);
        booted = true;
    }
    text_free(&unused.body);
    return true;
}

static bool send_console(void *arg, const char *data, size_t n)
{
    (void)arg;
    log_raw(data, n);
    return true;
}

void profile_print(void)
{
    struct out *out = booted ? kmalloc(sizeof(*out)) : NULL;
    if (!out) {
        return;
    }
    booted = false;
    profile_stop();
    out_init(out, send_console, NULL);
    write_stacks(out, (enum profile_mode)boot_profile.mode, "#profile ");
    out_flush(out);
    kfree(out);
}
