/* poll, select and their kin.
 *
 * One observer per descriptor and a wait of the calling thread. Each pass registers first and looks afterwards, so that an
 * event between the two leaves a token that ends the park at once. */
#include "core/base/string.h"
#include "core/kern/file.h"
#include "core/kern/signal.h"
#include "core/kern/syscall.h"
#include "core/kern/time.h"
#include "core/mm/mm.h"

struct poll_entry {
    struct observer observer;
    struct thread *thread;
    struct file *file; /* NULL: nothing to look at */
    u32 mask;          /* events that count */
    u32 result;
};

static void poll_event(struct observer *o, u32 events, struct wake_batch *batch)
{
    struct poll_entry *e = container_of(o, struct poll_entry, observer);
    (void)events;
    thread_unpark_batch(e->thread, batch);
}

static void entry_init(struct poll_entry *e, struct file *f, u32 mask)
{
    *e = (struct poll_entry){ .observer = { .fn = poll_event, .events = mask },
                              .thread = current_thread(), .file = f, .mask = mask };
    list_init(&e->observer.node);
}

/* Looks at all files; how many are ready. */
static u32 look(struct poll_entry *entries, u32 n)
{
    u32 ready = 0;
    for (u32 i = 0; i < n; i++) {
        struct poll_entry *e = &entries[i];
        if (e->file) {
            e->result = file_poll(e->file) & e->mask;
        }
        ready += e->result != 0;
    }
    return ready;
}

/* Ready entries, 0 at the deadline, -EINTR. Entries without file count as they are. */
static i64 poll_wait(struct poll_entry *entries, u32 n, u64 deadline_ns)
{
    u32 ready = look(entries, n);
    if (ready > 0 || deadline_ns == 0) {
        return ready;
    }
    for (u32 i = 0; i < n; i++) {
        if (entries[i].file) {
            file_observe(entries[i].file, &entries[i].observer);
        }
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    i64 result;
    while ((result = look(entries, n)) == 0) {
        enum park_result r = thread_park(deadline_ns, WAIT_POLL, n);
        if (r == PARK_TIMEOUT) {
            result = look(entries, n);
            break;
        }
        if (r == PARK_INTERRUPTED && signal_wait_ends()) {
            result = -EINTR;
            break;
        }
    }
    for (u32 i = 0; i < n; i++) {
        if (entries[i].file) {
            file_unobserve(entries[i].file, &entries[i].observer);
        }
    }
    return result;
}

static void entries_put(struct poll_entry *entries, u32 n)
{
    for (u32 i = 0; i < n; i++) {
        if (entries[i].file) {
            file_put(entries[i].file);
        }
    }
}

/* 0: at once; NO_DEADLINE: none. ts_addr 0 or a negative time: for ever. */
static i64 deadline_from_timespec(u64 ts_addr, u64 *deadline_ns)
{
    u64 ns;
    *deadline_ns = NO_DEADLINE;
    if (!ts_addr) {
        return 0;
    }
    i64 error = time_load(ts_addr, &ns);
    if (error == 0) {
        *deadline_ns = ns == 0 ? 0 : time_after(ns);
    }
    return error;
}

/* ---- poll ---- */

struct pollfd {
    i32 fd;
    i16 events, revents;
};

static i64 poll_fds(struct kthread *k, struct pollfd *fds, struct poll_entry *entries, u32 n,
                    u64 deadline_ns)
{
    for (u32 i = 0; i < n; i++) {
        struct file *f = fds[i].fd >= 0 ? fd_get(k->proc, (u32)fds[i].fd) : NULL;
        entry_init(&entries[i], f, (u16)fds[i].events | POLL_ALWAYS);
        entries[i].result = fds[i].fd >= 0 && !f ? POLLNVAL : 0;
    }
    i64 result = poll_wait(entries, n, deadline_ns);
    for (u32 i = 0; i < n; i++) {
        fds[i].revents = (i16)entries[i].result;
    }
    entries_put(entries, n);
    return result;
}

static i64 do_poll(struct kthread *k, u64 addr, u64 n, u64 deadline_ns)
{
    struct poll_entry fixed_entries[POLL_ON_STACK], *entries = fixed_entries;
    struct pollfd fixed_fds[POLL_ON_STACK], *fds = fixed_fds;
    i64 result = -ENOMEM;
    if (n > FD_MAX) {
        return -EINVAL;
    }
    if (n > POLL_ON_STACK) {
        entries = kmalloc(sizeof(*entries) * n);
        fds = kmalloc(sizeof(*fds) * n);
    }
    if (entries && fds) {
        result = n == 0 || arch_copy_from_app(fds, addr, sizeof(*fds) * n)
                     ? poll_fds(k, fds, entries, (u32)n, deadline_ns)
                     : -EFAULT;
        if (result >= 0 && n > 0 && !arch_copy_to_app(addr, fds, sizeof(*fds) * n)) {
            result = -EFAULT;
        }
    }
    if (n > POLL_ON_STACK) {
        kfree(entries);
        kfree(fds);
    }
    return result;
}

i64 sys_poll(struct kthread *k, const u64 *a)
{
    i32 ms = (i32)a[2];
    u64 deadline_ns = ms < 0 ? NO_DEADLINE : ms == 0 ? 0 : time_after((u64)ms * NSEC_PER_MSEC);
    return do_poll(k, a[0], (u32)a[1], deadline_ns);
}

/* Puts the mask of ppoll or pselect in place. */
static i64 enter_mask(struct kthread *k, u64 mask_addr, u64 bytes)
{
    u64 mask;
    if (!mask_addr) {
        return 0;
    }
    if (bytes != sizeof(mask)) {
        return -EINVAL;
    }
    if (!arch_copy_from_app(&mask, mask_addr, sizeof(mask))) {
        return -EFAULT;
    }
    signal_set_temporary_mask(k, mask);
    return 0;
}

/* The old mask comes back at once, or after the delivery of the signal that ended the call. */
static i64 leave_mask(struct kthread *k, i64 result)
{
    if (k->has_saved_mask && result != -EINTR) {
        signal_end_temporary_mask(k);
    }
    return result;
}

i64 sys_ppoll(struct kthread *k, const u64 *a)
{
    u64 deadline_ns;
    i64 error = deadline_from_timespec(a[2], &deadline_ns);
    if (!error) {
        error = enter_mask(k, a[3], a[4]);
    }
    return error ? error : leave_mask(k, do_poll(k, a[0], (u32)a[1], deadline_ns));
}

/* ---- select ---- */

#define SELECT_READ (POLLIN | POLLRDNORM | POLLHUP | POLLERR)
#define SELECT_WRITE (POLLOUT | POLLWRNORM | POLLERR)
#define SELECT_EXCEPT POLLPRI
#define SELECT_MAX 1024
#define SELECT_WORDS (SELECT_MAX / 64)

struct select_sets {
    u64 addr[3];
    u64 in[3][SELECT_WORDS], out[3][SELECT_WORDS];
};

static const u32 select_events[3] = { SELECT_READ, SELECT_WRITE, SELECT_EXCEPT };

static u32 select_wanted(const struct select_sets *s, u32 fd)
{
    u32 events = 0;
    for (u32 i = 0; i < 3; i++) {
        events |= s->in[i][fd / 64] & BIT(fd % 64) ? select_events[i] : 0;
    }
    return events;
}

static i64 select_collect(struct select_sets *s, const struct poll_entry *entries, const u32 *fds,
                          u32 n)
{
    i64 bits = 0;
    for (u32 e = 0; e < n; e++) {
        for (u32 i = 0; i < 3; i++) {
            u64 bit = BIT(fds[e] % 64);
            if ((s->in[i][fds[e] / 64] & bit) && (entries[e].result & select_events[i])) {
                s->out[i][fds[e] / 64] |= bit;
                bits++;
            }
        }
    }
    return bits;
}

static i64 select_run(struct kthread *k, struct select_sets *s, u32 nfds, u64 deadline_ns)
{
    u32 n = 0, bad = 0;
    struct poll_entry *entries = kmalloc(sizeof(*entries) * MAX(nfds, 1u));
    u32 *fds = kmalloc(sizeof(*fds) * MAX(nfds, 1u));
    i64 result = -ENOMEM;
    for (u32 fd = 0; entries && fds && fd < nfds; fd++) {
        u32 events = select_wanted(s, fd);
        if (events) {
            struct file *f = fd_get(k->proc, fd);
            bad += !f;
            entry_init(&entries[n], f, events);
            fds[n++] = fd;
        }
    }
    if (entries && fds) {
        result = bad ? -EBADF : poll_wait(entries, n, deadline_ns);
        if (result > 0) {
            result = select_collect(s, entries, fds, n);
        }
        entries_put(entries, n);
    }
    kfree(entries);
    kfree(fds);
    return result;
}

static i64 do_select(struct kthread *k, const u64 *a, u64 deadline_ns)
{
    struct select_sets *s;
    u32 nfds = (u32)a[0];
    if ((i32)nfds < 0) {
        return -EINVAL;
    }
    nfds = MIN(nfds, (u32)SELECT_MAX);
    s = kzalloc(sizeof(*s));
    if (!s) {
        return -ENOMEM;
    }
    size_t bytes = ALIGN_UP(nfds, 64u) / 8;
    i64 result = 0;
    for (u32 i = 0; i < 3; i++) {
        if (a[1 + i] && !arch_copy_from_app(s->in[i], a[1 + i], bytes)) {
            result = -EFAULT;
        }
    }
    if (result == 0) {
        result = select_run(k, s, nfds, deadline_ns);
    }
    for (u32 i = 0; result >= 0 && i < 3; i++) {
        if (a[1 + i] && !arch_copy_to_app(a[1 + i], s->out[i], bytes)) {
            result = -EFAULT;
        }
    }
    kfree(s);
    return result;
}

i64 sys_select(struct kthread *k, const u64 *a)
{
    struct {
        i64 sec, usec;
    } tv;
    u64 deadline_ns = NO_DEADLINE;
    if (a[4]) {
        if (!arch_copy_from_app(&tv, a[4], sizeof(tv))) {
            return -EFAULT;
        }
        if (tv.sec < 0 || tv.usec < 0) {
            return -EINVAL;
        }
        struct timespec64 ts = { tv.sec + tv.usec / 1000000, tv.usec % 1000000 * 1000 };
        u64 ns;
        i64 error = time_to_ns(&ts, &ns);
        if (error) {
            return error;
        }
        deadline_ns = ns == 0 ? 0 : time_after(ns);
    }
    return do_select(k, a, deadline_ns);
}

i64 sys_pselect6(struct kthread *k, const u64 *a)
{
    u64 deadline_ns;
    struct {
        u64 mask, bytes;
    } sig = { 0, 0 };
    i64 error = deadline_from_timespec(a[4], &deadline_ns);
    if (!error && a[5] && !arch_copy_from_app(&sig, a[5], sizeof(sig))) {
        error = -EFAULT;
    }
    if (!error) {
        error = enter_mask(k, sig.mask, sig.bytes);
    }
    return error ? error : leave_mask(k, do_select(k, a, deadline_ns));
}
