#include "core/base/string.h"
#include "core/kern/obs/waits.h"

/* musl (src/internal/pthread_impl.h): struct { int type, lock, waiters; ... }, the futex word is `lock`. Type: 0 normal, 1
 * recursive, 2 error-checking; 4 robust; 8 priority inheritance; 128 private. A normal mutex holds EBUSY instead of the owner. */
#define MUSL_TYPE_MAX 3u
#define MUSL_KIND 15u
#define MUSL_BITS (15u | 128u)
#define MUSL_EBUSY 16u
/* Both: bit 31 says that there are waiters, bit 30 that the owner died. */
#define WAITERS 0x80000000u
#define OWNER_MASK 0x3fffffffu
/* glibc (nptl/pthread_mutex_t): struct { int lock; unsigned count; int owner; unsigned users; int kind; ... }. */
#define GLIBC_OWNER 1 /* index in futex_words.after */
#define GLIBC_KIND 3
#define GLIBC_KIND_MAX 0x200

struct wait_target wait_judge(const struct futex_words *w, bool (*is_thread)(u32 id, void *arg), void *arg)
{
    u32 owner = w->word & OWNER_MASK, type = w->before;
    bool musl = (type & ~MUSL_BITS) == 0 && (type & 3) < MUSL_TYPE_MAX;
    if (musl && (type & MUSL_KIND) == 0 && (w->word & ~WAITERS) == MUSL_EBUSY) {
        return (struct wait_target){ "mutex", 0 };
    }
    if (musl && (type & MUSL_KIND) != 0 && owner && is_thread(owner, arg)) {
        return (struct wait_target){ "mutex", owner };
    }
    bool glibc = (w->word == 1 || w->word == 2 || owner == w->after[GLIBC_OWNER]) && w->after[GLIBC_KIND] < GLIBC_KIND_MAX;
    if (glibc && w->after[GLIBC_OWNER] && is_thread(w->after[GLIBC_OWNER], arg)) {
        return (struct wait_target){ "mutex", w->after[GLIBC_OWNER] };
    }
    return (struct wait_target){ "futex", 0 };
}

/* ---- cycles ---- */

u32 wait_find_cycles(u32 n, const u32 *next, u32 *cycle)
{
    /* Marks while walking: the number of the walk, above all cycle numbers. */
    const u32 walk_base = 0x80000000u;
    u32 found = 0;
    memset(cycle, 0, n * sizeof(*cycle));
    for (u32 start = 0; start < n; start++) {
        u32 at = start;
        while (at != UINT32_MAX && cycle[at] == 0) {
            cycle[at] = walk_base + start;
            at = next[at];
        }
        if (at != UINT32_MAX && cycle[at] == walk_base + start) {
            found++;
            for (; cycle[at] != found; at = next[at]) {
                cycle[at] = found;
            }
        }
    }
    for (u32 i = 0; i < n; i++) {
        cycle[i] = cycle[i] >= walk_base ? 0 : cycle[i];
    }
    return found;
}
