/* Filling the stack tables: by the sampling timer (on-CPU) and at the end of each wait (off-CPU). */
#include "core/base/string.h"
#include "core/kern/obs/profile.h"
#include "core/kern/obs/thread_list.h"

/* Of the one profile that runs. */
static struct profile_options now;
static struct thread *recorder; /* its own sleep is not part of the picture */
static u64 start_ns;

static u32 head_words(struct thread *t, u64 *words, u64 kind, u64 object, const struct thread *waker)
{
    const struct thread_head *head = thread_head(t);
    const struct kthread *k = head->app;
    memset(words, 0, STACK_HEAD * sizeof(u64));
    stack_name(&words[STACK_NAME], head->name);
    words[STACK_PROCESS] = k ? k->proc->index + 1 : 0;
    words[STACK_KIND] = kind;
    words[STACK_OBJECT] = object;
    if (waker) {
        stack_name(&words[STACK_WAKER], ((const struct thread_head *)(const void *)waker)->name);
    }
    return STACK_HEAD;
}

static void on_sample(struct thread *t, struct arch_regs *regs)
{
    u64 words[STACK_MAX];
    if (!now.idle && thread_head(t)->id == 0) {
        return;
    }
    struct stack_table *table = stacks_get();
    if (table) {
        u32 n = head_words(t, words, STACK_ON_CPU, 0, NULL);
        n += (u32)unwind_interrupted(t, regs, words + n, UNWIND_MAX);
        stack_add(table, words, n, 1);
        stacks_put();
    }
}

/* The address tells futexes and kernel locks apart; there are too many sockets and pipes to tell them apart. */
static u64 object_of(enum wait_kind kind, u64 object)
{
    return kind == WAIT_FUTEX || kind == WAIT_LOCK ? object : 0;
}

static void add_wait(u64 *words, u32 n, u64 ns)
{
    irqflags_t flags = arch_irq_save();
    struct stack_table *table = stacks_get();
    if (table) {
        stack_add(table, words, n, ns);
        stacks_put();
    }
    arch_irq_restore(flags);
}

static void on_wait_end(struct thread *t, enum wait_kind kind, u64 object, u64 blocked_ns)
{
    u64 words[STACK_MAX];
    struct thread_info info;
    if (t == recorder || !(now.kinds & BIT(kind))) {
        return;
    }
    u64 since = arch_clock_ns() - start_ns;
    u32 n = head_words(t, words, kind, object_of(kind, object), thread_waker(t));
    if (t == current_thread()) {
        n += (u32)unwind_current((u64)(uintptr_t)__builtin_frame_address(0), words + n, UNWIND_MAX);
    } else {
        n += (u32)unwind_waiting(t, &info, words + n, UNWIND_MAX);
    }
    add_wait(words, n, MIN(blocked_ns, since));
}

/* ---- waits that have not ended when the profile does ---- */

static void add_unfinished(struct thread *t, void *arg)
{
    u64 end_ns = *(const u64 *)arg;
    u64 words[STACK_MAX];
    struct thread_info info;
    size_t frames = unwind_waiting(t, &info, words + STACK_HEAD, UNWIND_MAX);
    if (t == recorder || frames == 0 || strcmp(info.state, "blocked") != 0 || !(now.kinds & BIT(info.wait_kind)) ||
        info.wait_since_ns > end_ns) {
        return;
    }
    head_words(t, words, info.wait_kind, object_of(info.wait_kind, info.wait_object), NULL);
    static const char pending[THREAD_NAME_MAX] = "?"; /* nobody has ended it */
    stack_name(&words[STACK_WAKER], pending);
    add_wait(words, (u32)(STACK_HEAD + frames), end_ns - MAX(info.wait_since_ns, start_ns));
}

void profile_start(const struct profile_options *options)
{
    now = *options;
    recorder = current_thread();
    start_ns = arch_clock_ns();
    if (now.mode == PROFILE_ONCPU) {
        sched_sample_hook = on_sample;
        sched_set_sampling(NSEC_PER_SEC / now.hz);
    } else {
        STORE_RELEASE(sched_offcpu_hook, on_wait_end);
    }
}

void profile_stop(void)
{
    if (now.mode == PROFILE_ONCPU) {
        sched_set_sampling(0);
        sched_sample_hook = NULL;
    } else {
        WRITE_ONCE(sched_offcpu_hook, NULL);
        u64 end_ns = arch_clock_ns();
        thread_list_each(add_unfinished, &end_ns);
    }
    stacks_stop();
}
