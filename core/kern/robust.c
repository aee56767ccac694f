/* Robust mutexes and clear_child_tid: what a dying thread leaves behind.
 *
 * The list (set_robust_list(2)) is in application memory and may be damaged: nothing in it is trusted, the walk is
 * bounded. */
#include "core/base/errno.h"
#include "core/kern/futex.h"
#include "core/kern/futex_stat.h"

#define FUTEX_WAITERS 0x80000000u
#define FUTEX_OWNER_DIED 0x40000000u
#define FUTEX_TID_MASK 0x3fffffffu
#define PRIORITY_INHERITANCE 1ull /* low bit of a list pointer */

struct robust_head {
    u64 next;
    i64 futex_offset;
    u64 pending;
};

static void owner_died(u32 tid, u64 addr)
{
    u32 value, seen;
    if ((addr & 3) != 0 || !arch_load_app(addr, &value)) {
        return;
    }
    while ((value & FUTEX_TID_MASK) == tid) {
        u32 dead = (value & FUTEX_WAITERS) | FUTEX_OWNER_DIED;
        if (!arch_cmpxchg_app(addr, value, dead, &seen)) {
            return;
        }
        if (seen == value) {
            futex_stat_robust_died();
            if (value & FUTEX_WAITERS) {
                futex_wake(addr, 1, FUTEX_BITSET_ANY);
            }
            return;
        }
        value = seen;
    }
}

static void walk_robust_list(struct kthread *k)
{
    struct robust_head head;
    u32 tid = thread_head(k->thread)->id;
    if (!k->robust_list || !arch_copy_from_app(&head, k->robust_list, sizeof(head))) {
        return;
    }
    u64 pending = head.pending & ~PRIORITY_INHERITANCE;
    u64 entry = head.next & ~PRIORITY_INHERITANCE;
    for (u32 i = 0; i < ROBUST_LIST_LIMIT && entry != k->robust_list; i++) {
        u64 next;
        /* The entry may be unlocked and freed as soon as it is marked: read its link first. */
        bool more = arch_copy_from_app(&next, entry, sizeof(next));
        if (entry != pending) {
            owner_died(tid, entry + (u64)head.futex_offset);
        }
        if (!more) {
            break;
        }
        entry = next & ~PRIORITY_INHERITANCE;
    }
    if (pending) {
        owner_died(tid, pending + (u64)head.futex_offset);
    }
}

void futex_thread_exit(struct kthread *k)
{
    walk_robust_list(k);
    if (k->clear_child_tid) {
        static const u32 zero;
        if (arch_copy_to_app(k->clear_child_tid, &zero, sizeof(zero))) {
            futex_wake(k->clear_child_tid, 1, FUTEX_BITSET_ANY);
        }
    }
}
