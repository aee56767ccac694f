/* Identity, limits, random numbers. */
#include "core/base/string.h"
#include "core/kern/abi.h"
#include "core/kern/file.h"
#include "core/kern/random.h"
#include "core/kern/syscall.h"
#include "core/mm/mm.h"

#define UTS_FIELD 65

i64 sys_uname(struct kthread *k, const u64 *a)
{
    struct {
        char sysname[UTS_FIELD], nodename[UTS_FIELD], release[UTS_FIELD], version[UTS_FIELD],
            machine[UTS_FIELD], domain[UTS_FIELD];
    } uts = { "Linux", "weir", "6.1.0-weir", "Weir", ABI_MACHINE, "(none)" };
    (void)k;
    return arch_copy_to_app(a[0], &uts, sizeof(uts)) ? 0 : -EFAULT;
}

i64 sys_sysinfo(struct kthread *k, const u64 *a)
{
    struct {
        i64 uptime;
        u64 loads[3];
        u64 totalram, freeram, sharedram, bufferram, totalswap, freeswap;
        u16 procs, pad;
        u32 pad2;
        u64 totalhigh, freehigh;
        u32 mem_unit;
        u32 tail;
    } info = { 0 };
    struct mem_stats stats;
    (void)k;
    mem_stats(&stats);
    info.uptime = (i64)(arch_clock_ns() / NSEC_PER_SEC);
    info.totalram = MIN(stats.total_pages, stats.limit_pages) * PAGE_SIZE;
    info.freeram = stats.free_pages * PAGE_SIZE;
    info.procs = (u16)MIN(thread_count(), 0xffffu);
    info.mem_unit = 1;
    return arch_copy_to_app(a[0], &info, sizeof(info)) ? 0 : -EFAULT;
}

#define RANDOM_CHUNK 256

i64 sys_getrandom(struct kthread *k, const u64 *a)
{
    enum { GRND_KNOWN = 7 };
    u8 chunk[RANDOM_CHUNK];
    u64 len = MIN(a[1], RW_MAX), done = 0;
    (void)k;
    if (a[2] & ~(u64)GRND_KNOWN) {
        return -EINVAL;
    }
    while (done < len) {
        u64 part = MIN(len - done, (u64)sizeof(chunk));
        random_bytes(chunk, part);
        if (!arch_copy_to_app(a[0] + done, chunk, part)) {
            return done > 0 ? (i64)done : -EFAULT;
        }
        done += part;
    }
    return (i64)done;
}

enum { RLIMIT_STACK = 3, RLIMIT_CORE = 4, RLIMIT_NPROC = 6, RLIMIT_NOFILE = 7, RLIMIT_COUNT = 16 };

struct rlimit64 {
    u64 soft, hard;
};

static struct rlimit64 limit_of(u64 resource)
{
    switch (resource) {
    case RLIMIT_STACK:
        return (struct rlimit64){ APP_STACK_SIZE, APP_STACK_SIZE };
    case RLIMIT_CORE:
        return (struct rlimit64){ 0, 0 };
    case RLIMIT_NOFILE:
        return (struct rlimit64){ FD_MAX, FD_MAX };
    default:
        return (struct rlimit64){ UINT64_MAX, UINT64_MAX };
    }
}

/* Limits are what they are: asking for no more than there is succeeds and changes nothing. */
static i64 set_limit(u64 resource, u64 addr)
{
    struct rlimit64 want, have = limit_of(resource);
    if (!arch_copy_from_app(&want, addr, sizeof(want))) {
        return -EFAULT;
    }
    if (want.soft > want.hard) {
        return -EINVAL;
    }
    return want.hard > have.hard ? -EPERM : 0;
}

i64 sys_prlimit64(struct kthread *k, const u64 *a)
{
    if (a[0] && a[0] != k->proc->pid) {
        return -ESRCH;
    }
    if (a[1] >= RLIMIT_COUNT) {
        return -EINVAL;
    }
    if (a[2]) {
        i64 error = set_limit(a[1], a[2]);
        if (error < 0) {
            return error;
        }
    }
    struct rlimit64 limit = limit_of(a[1]);
    return a[3] && !arch_copy_to_app(a[3], &limit, sizeof(limit)) ? -EFAULT : 0;
}

i64 sys_getrlimit(struct kthread *k, const u64 *a)
{
    (void)k;
    if (a[0] >= RLIMIT_COUNT) {
        return -EINVAL;
    }
    struct rlimit64 limit = limit_of(a[0]);
    return arch_copy_to_app(a[1], &limit, sizeof(limit)) ? 0 : -EFAULT;
}

i64 sys_setrlimit(struct kthread *k, const u64 *a)
{
    (void)k;
    return a[0] >= RLIMIT_COUNT ? -EINVAL : set_limit(a[0], a[1]);
}

/* Identities: everybody is root, in no group, in process group 0. */
i64 sys_zero(struct kthread *k, const u64 *a)
{
    (void)k;
    (void)a;
    return 0;
}

i64 sys_getgroups(struct kthread *k, const u64 *a)
{
    (void)k;
    return (i32)a[0] < 0 ? -EINVAL : 0;
}
