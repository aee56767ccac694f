/* Futexes: waiting, waking, moving.
 *
 * A waiter lives on its thread's stack. It leaves its bucket in one of two ways. A waker takes it: under the bucket's lock
 * moves it to a list of its own (`taken`), then, without the lock, leaves the thread a token (thread_unpark_batch) and, as
 * its last access to the waiter, sets `woken`. Or the thread itself removes it under the lock after a time-out or a signal.
 * A thread whose waiter was taken stays until `woken` is set, so the waker never holds a pointer to a waiter that is gone.
 * Unparking outside the lock keeps the lock short: where the host takes a CPU away in the middle, others do not queue up.
 *
 * No lost wakeup: the waiter counts itself in the bucket (full barrier) before it loads the word; the waker's caller has
 * changed the word before the call, and the waker has a full barrier before it looks at the count. */
#include "core/base/errno.h"
#include "core/base/hash.h"
#include "core/base/log.h"
#include "core/base/trace.h"
#include "core/kern/futex.h"
#include "core/kern/futex_stat.h"
#include "core/kern/signal.h"

struct futex_waiter {
    struct list node;              /* bucket.lock, as the fields below */
    u64 addr;
    u32 bitset;
    struct thread *thread;
    struct futex_bucket *bucket;   /* changed by requeue under both buckets' locks */
    bool taken;                    /* by a waker; bucket.lock */
    bool woken;
};

struct futex_bucket {
    struct spinlock lock;
    struct list waiters;
    u32 count; /* waiters, or about to be */
} __cacheline_aligned;

static struct lock_class bucket_class = {
    .name = "futex_bucket", .rank = RANK_FUTEX, .nest_by_address = true };
static struct futex_bucket buckets[FUTEX_BUCKETS];

static struct futex_bucket *bucket_of(u64 addr)
{
    return &buckets[mix64(addr) & (FUTEX_BUCKETS - 1)];
}

static void lock_pair(struct futex_bucket *a, struct futex_bucket *b)
{
    if (a == b) {
        spin_lock(&a->lock);
    } else if (a < b) {
        spin_lock(&a->lock);
        spin_lock(&b->lock);
    } else {
        spin_lock(&b->lock);
        spin_lock(&a->lock);
    }
}

static void unlock_pair(struct futex_bucket *a, struct futex_bucket *b)
{
    spin_unlock(&a->lock);
    if (a != b) {
        spin_unlock(&b->lock);
    }
}

/* The bucket that w hangs in, locked. */
static struct futex_bucket *lock_waiter(struct futex_waiter *w)
{
    for (;;) {
        struct futex_bucket *b = READ_ONCE(w->bucket);
        spin_lock(&b->lock);
        if (b == w->bucket) {
            return b;
        }
        spin_unlock(&b->lock);
    }
}

static void count_add(struct futex_bucket *b, i32 n)
{
    __atomic_fetch_add(&b->count, (u32)n, __ATOMIC_SEQ_CST);
}

/* The waker is between its last two instructions. */
static void await_woken(const struct futex_waiter *w)
{
    while (!LOAD_ACQUIRE(w->woken)) {
        thread_yield();
    }
}

/* True if w was woken; else it is out of its bucket now. */
static bool leave(struct futex_waiter *w)
{
    struct futex_bucket *b = lock_waiter(w);
    bool taken = w->taken;
    if (!taken) {
        list_remove(&w->node);
        count_add(b, -1);
    }
    spin_unlock(&b->lock);
    if (taken) {
        await_woken(w);
    }
    return taken;
}

static i64 wait_woken(struct futex_waiter *w, u64 addr, u64 deadline_ns)
{
    for (;;) {
        enum park_result r = thread_park(deadline_ns, WAIT_FUTEX, addr);
        if (LOAD_ACQUIRE(w->woken)) {
            return 0;
        }
        bool give_up = r == PARK_TIMEOUT || (r == PARK_INTERRUPTED && signal_wait_ends());
        if (give_up) {
            return leave(w) ? 0 : r == PARK_TIMEOUT ? -ETIMEDOUT : -EINTR;
        }
        if (READ_ONCE(w->taken)) {
            await_woken(w);
            return 0;
        }
    }
}

i64 futex_wait(u64 addr, u32 expected, u32 bitset, u64 deadline_ns)
{
    struct futex_bucket *b = bucket_of(addr);
    struct futex_waiter w = { .addr = addr, .bitset = bitset, .thread = current_thread(), .bucket = b };
    u32 value;
    if ((addr & 3) != 0 || bitset == 0) {
        return -EINVAL;
    }
    count_add(b, 1);
    spin_lock(&b->lock);
    bool readable = arch_load_app(addr, &value);
    if (!readable || value != expected) {
        count_add(b, -1);
        spin_unlock(&b->lock);
        i64 result = readable ? -EAGAIN : -EFAULT;
        futex_stat_wait(addr, result, 0);
        return result;
    }
    list_push_back(&b->waiters, &w.node);
    spin_unlock(&b->lock);
    trace(TRACE_CAT_FUTEX, TRACE_FUTEX_WAIT, 0, thread_head(w.thread)->id, addr, 0);
    u64 start = arch_clock_ns();
    i64 result = wait_woken(&w, addr, deadline_ns);
    futex_stat_wait(addr, result, arch_clock_ns() - start);
    return result;
}

/* Moves up to n waiters for addr to the list of those to be woken; how many. */
static u32 take_matching(struct futex_bucket *b, u64 addr, u32 n, u32 bitset, struct list *taken)
{
    u32 count = 0;
    list_for_each_safe(node, next, &b->waiters) {
        struct futex_waiter *w = list_entry(node, struct futex_waiter, node);
        if (count >= n) {
            break;
        }
        if (w->addr == addr && (w->bitset & bitset)) {
            list_remove(&w->node);
            list_push_back(taken, &w->node);
            WRITE_ONCE(w->taken, true);
            count++;
        }
    }
    if (count > 0) {
        count_add(b, -(i32)count);
    }
    return count;
}

/* Wakes what was taken. No lock held. */
static void wake_taken(struct list *taken, struct wake_batch *batch)
{
    struct list *node = taken->next;
    while (node != taken) {
        struct futex_waiter *w = list_entry(node, struct futex_waiter, node);
        node = node->next;
        thread_unpark_batch(w->thread, batch);
        STORE_RELEASE(w->woken, true); /* last access: the waiter may be gone now */
    }
}

i64 futex_wake(u64 addr, u32 n, u32 bitset)
{
    struct futex_bucket *b = bucket_of(addr);
    struct list taken = LIST_INIT(taken);
    struct wake_batch batch;
    if ((addr & 3) != 0 || bitset == 0) {
        return -EINVAL;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    u32 woken = 0;
    if (READ_ONCE(b->count) != 0) {
        wake_batch_begin(&batch);
        spin_lock(&b->lock);
        woken = take_matching(b, addr, n, bitset, &taken);
        spin_unlock(&b->lock);
        wake_taken(&taken, &batch);
        wake_batch_flush(&batch);
    }
    trace(TRACE_CAT_FUTEX, TRACE_FUTEX_WAKE, 0, thread_head(current_thread())->id, addr, woken);
    futex_stat_wake(addr, woken);
    return woken;
}

static u32 move_matching(struct futex_bucket *from, u64 addr, struct futex_bucket *to, u64 addr2,
                         u32 n)
{
    u32 moved = 0;
    list_for_each_safe(node, next, &from->waiters) {
        struct futex_waiter *w = list_entry(node, struct futex_waiter, node);
        if (moved >= n) {
            break;
        }
        if (w->addr != addr) {
            continue;
        }
        w->addr = addr2;
        if (from != to) {
            list_remove(&w->node);
            list_push_back(&to->waiters, &w->node);
            count_add(to, 1);
            count_add(from, -1);
            WRITE_ONCE(w->bucket, to);
        }
        moved++;
    }
    return moved;
}

i64 futex_requeue(u64 addr, u32 n, u64 addr2, u32 m, bool check, u32 expected)
{
    struct futex_bucket *from = bucket_of(addr), *to = bucket_of(addr2);
    struct list taken = LIST_INIT(taken);
    struct wake_batch batch;
    u32 value = expected;
    if (((addr | addr2) & 3) != 0 || (i32)n < 0 || (i32)m < 0) {
        return -EINVAL;
    }
    wake_batch_begin(&batch);
    lock_pair(from, to);
    i64 result = 0;
    u32 woken = 0, moved = 0;
    if (check && !arch_load_app(addr, &value)) {
        result = -EFAULT;
    } else if (value != expected) {
        result = -EAGAIN;
    } else {
        woken = take_matching(from, addr, n, FUTEX_BITSET_ANY, &taken);
        moved = addr == addr2 ? 0 : move_matching(from, addr, to, addr2, m);
        result = (i64)woken + moved;
    }
    unlock_pair(from, to);
    wake_taken(&taken, &batch);
    wake_batch_flush(&batch);
    futex_stat_requeue(addr, woken, moved, result);
    return result;
}

/* Encoded operation of FUTEX_WAKE_OP (futex(2)): op, comparison, and two 12-bit signed arguments. */
enum { OP_SET, OP_ADD, OP_OR, OP_ANDN, OP_XOR, OP_SHIFT_ARG = 8 };
enum { CMP_EQ, CMP_NE, CMP_LT, CMP_LE, CMP_GT, CMP_GE };

static i32 sign12(u32 x)
{
    return (i32)(x << 20) >> 20;
}

static bool apply_op(u32 op, u32 old, u32 arg, u32 *new)
{
    switch (op) {
    case OP_SET:
        *new = arg;
        return true;
    case OP_ADD:
        *new = old + arg;
        return true;
    case OP_OR:
        *new = old | arg;
        return true;
    case OP_ANDN:
        *new = old & ~arg;
        return true;
    case OP_XOR:
        *new = old ^ arg;
        return true;
    default:
        return false;
    }
}

/* 1: condition holds, 0: not, negative errno. The word at addr is changed. */
static i64 modify_word(u64 addr, u32 encoded)
{
    u32 op = encoded >> 28, cmp = encoded >> 24 & 15;
    u32 arg = (u32)sign12(encoded >> 12 & 0xfff);
    i32 cmp_arg = sign12(encoded & 0xfff);
    if (op & OP_SHIFT_ARG) {
        arg = 1u << (arg & 31);
    }
    u32 old, new, seen;
    if (!arch_load_app(addr, &old)) {
        return -EFAULT;
    }
    for (;;) {
        if (!apply_op(op & 7, old, arg, &new)) {
            return -ENOSYS;
        }
        if (!arch_cmpxchg_app(addr, old, new, &seen)) {
            return -EFAULT;
        }
        if (seen == old) {
            break;
        }
        old = seen;
    }
    i32 value = (i32)old;
    switch (cmp) {
    case CMP_EQ:
        return value == cmp_arg;
    case CMP_NE:
        return value != cmp_arg;
    case CMP_LT:
        return value < cmp_arg;
    case CMP_LE:
        return value <= cmp_arg;
    case CMP_GT:
        return value > cmp_arg;
    case CMP_GE:
        return value >= cmp_arg;
    default:
        return -ENOSYS;
    }
}

i64 futex_wake_op(u64 addr, u32 n, u64 addr2, u32 n2, u32 op)
{
    struct futex_bucket *a = bucket_of(addr), *b = bucket_of(addr2);
    struct list taken = LIST_INIT(taken);
    struct wake_batch batch;
    if (((addr | addr2) & 3) != 0) {
        return -EINVAL;
    }
    wake_batch_begin(&batch);
    lock_pair(a, b);
    i64 result = modify_word(addr2, op);
    if (result >= 0) {
        bool second = result == 1;
        result = take_matching(a, addr, n, FUTEX_BITSET_ANY, &taken);
        if (second) {
            result += take_matching(b, addr2, n2, FUTEX_BITSET_ANY, &taken);
        }
    }
    unlock_pair(a, b);
    wake_taken(&taken, &batch);
    wake_batch_flush(&batch);
    futex_stat_wake(addr, result > 0 ? (u32)result : 0);
    return result;
}

void futex_init(void)
{
    for (u32 i = 0; i < FUTEX_BUCKETS; i++) {
        spin_init(&buckets[i].lock, &bucket_class);
        list_init(&buckets[i].waiters);
    }
}
