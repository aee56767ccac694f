/* futex(2). */
#include "core/kern/futex.h"
#include "core/kern/syscall.h"
#include "core/kern/time.h"

enum {
    FUTEX_WAIT = 0,
    FUTEX_WAKE = 1,
    FUTEX_REQUEUE = 3,
    FUTEX_CMP_REQUEUE = 4,
    FUTEX_WAKE_OP = 5,
    FUTEX_WAIT_BITSET = 9,
    FUTEX_WAKE_BITSET = 10,
    FUTEX_PRIVATE_FLAG = 128,
    FUTEX_CLOCK_REALTIME = 256,
};

/* FUTEX_WAIT: relative; FUTEX_WAIT_BITSET: absolute, on the clock that the flag names. */
static i64 wait_deadline(u64 timeout, u32 op, u64 *deadline_ns)
{
    u64 ns;
    if (!timeout) {
        *deadline_ns = NO_DEADLINE;
        return 0;
    }
    i64 error = time_load(timeout, &ns);
    if (error < 0) {
        return error;
    }
    if ((op & ~(u32)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)) == FUTEX_WAIT) {
        *deadline_ns = time_after(ns);
    } else {
        *deadline_ns = op & FUTEX_CLOCK_REALTIME ? time_from_wall(ns) : ns;
    }
    return 0;
}

static i64 wait(const u64 *a, u32 op, u32 bitset)
{
    u64 deadline_ns;
    i64 result = wait_deadline(a[3], op, &deadline_ns);
    if (result == 0) {
        result = futex_wait(a[0], (u32)a[2], bitset, deadline_ns);
    }
    /* With a time-out Linux gives EINTR even with SA_RESTART only if a handler ran; a restart would begin it anew. */
    return result == -EINTR && !a[3] ? -ERESTART : result;
}

i64 sys_futex(struct kthread *k, const u64 *a)
{
    u32 op = (u32)a[1];
    (void)k;
    switch (op & ~(u32)(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME)) {
    case FUTEX_WAIT:
        return wait(a, op, FUTEX_BITSET_ANY);
    case FUTEX_WAIT_BITSET:
        return wait(a, op, (u32)a[5]);
    case FUTEX_WAKE:
        return futex_wake(a[0], (u32)a[2], FUTEX_BITSET_ANY);
    case FUTEX_WAKE_BITSET:
        return futex_wake(a[0], (u32)a[2], (u32)a[5]);
    case FUTEX_REQUEUE:
        return futex_requeue(a[0], (u32)a[2], a[4], (u32)a[3], false, 0);
    case FUTEX_CMP_REQUEUE:
        return futex_requeue(a[0], (u32)a[2], a[4], (u32)a[3], true, (u32)a[5]);
    case FUTEX_WAKE_OP:
        return futex_wake_op(a[0], (u32)a[2], a[4], (u32)a[3], (u32)a[5]);
    default:
        /* Priority inheritance: musl then answers ENOTSUP to its caller. */
        return -ENOSYS;
    }
}
