/* Memory: brk and the mmap family. Anonymous memory is shared by nature (one address space, no fork); files are mapped
 * privately by copying them in. */
#include "core/kern/file.h"
#include "core/kern/syscall.h"
#include "core/mm/mm.h"

#define MAP_SHARED 0x01u
#define MAP_PRIVATE 0x02u
#define MAP_TYPE 0x0fu
#define MAP_FIXED 0x10u
#define MAP_ANONYMOUS 0x20u
#define MAP_NORESERVE 0x4000u
#define MAP_POPULATE 0x8000u
#define MAP_STACK 0x20000u
#define MAP_FIXED_NOREPLACE 0x100000u
#define PROT_ALL 7u
#define MREMAP_MAYMOVE 1u

/* Grows in whole pages right behind what is there; on any obstacle the old break is the answer, as on Linux. */
i64 sys_brk(struct kthread *k, const u64 *a)
{
    struct proc *p = k->proc;
    u64 want = a[0];
    mutex_lock(&p->brk_mutex);
    if (want >= p->brk_start && want < APP_MAX) {
        u64 end = ALIGN_UP(want, PAGE_SIZE);
        bool done = true;
        if (end > p->brk_mapped) {
            done = mm_map(p->brk_mapped, end - p->brk_mapped, MM_READ | MM_WRITE,
                          MM_FIXED_NOREPLACE, p) >= 0;
        } else if (end < p->brk_mapped) {
            done = mm_unmap(end, p->brk_mapped - end) == 0;
        }
        if (done) {
            p->brk_mapped = end;
            p->brk_end = want;
        }
    }
    i64 result = (i64)p->brk_end;
    mutex_unlock(&p->brk_mutex);
    return result;
}

static u32 map_flags(u32 flags)
{
    u32 result = 0;
    if (flags & MAP_FIXED_NOREPLACE) {
        result |= MM_FIXED_NOREPLACE;
    } else if (flags & MAP_FIXED) {
        result |= MM_FIXED;
    }
    result |= flags & MAP_POPULATE ? MM_POPULATE : 0;
    result |= flags & MAP_STACK ? MM_STACK : 0;
    result |= flags & MAP_NORESERVE ? MM_NORESERVE : 0;
    return result;
}

/* Copies the file's bytes into a fresh mapping; what lies behind its end reads as zero. */
static i64 fill_from_file(struct file *f, u64 addr, u64 len, u64 offset)
{
    struct net_iov iov = { addr, len };
    struct net_buf buf = { &iov, 1, false };
    while (iov.len > 0) {
        i64 n = f->ops->read(f, &buf, &offset, 0);
        if (n < 0) {
            return n;
        }
        if (n == 0) {
            return 0;
        }
        iov.base += (u64)n;
        iov.len -= (u64)n;
    }
    return 0;
}

static i64 map_file(struct kthread *k, const u64 *a, u32 prot, u32 flags)
{
    struct file *f = fd_get(k->proc, a[4]);
    if (!f) {
        return -EBADF;
    }
    i64 result = -ENODEV;
    if ((f->flags & O_ACCMODE) == O_WRONLY) {
        result = -EACCES;
    } else if ((flags & MAP_TYPE) == MAP_SHARED && (prot & MM_WRITE)) {
        result = -ENODEV; /* writes would have to reach the file */
    } else if (f->ops->seekable && f->ops->read) {
        result = mm_map(a[0], a[1], MM_READ | MM_WRITE, map_flags(flags), k->proc);
    }
    if (result >= 0) {
        u64 addr = (u64)result;
        i64 error = fill_from_file(f, addr, a[1], a[5]);
        if (error == 0 && prot != (MM_READ | MM_WRITE)) {
            error = mm_protect(addr, ALIGN_UP(a[1], PAGE_SIZE), prot);
        }
        if (error < 0) {
            mm_unmap(addr, ALIGN_UP(a[1], PAGE_SIZE));
            result = error;
        }
    }
    file_put(f);
    return result;
}

i64 sys_mmap(struct kthread *k, const u64 *a)
{
    u32 prot = (u32)a[2] & PROT_ALL, flags = (u32)a[3];
    u32 type = flags & MAP_TYPE;
    if (a[1] >= APP_MAX) {
        return -ENOMEM;
    }
    if (a[1] == 0 || (a[5] & (PAGE_SIZE - 1)) != 0 ||
        (type != MAP_PRIVATE && type != MAP_SHARED && type != (MAP_PRIVATE | MAP_SHARED))) {
        return -EINVAL;
    }
    if ((flags & (MAP_FIXED | MAP_FIXED_NOREPLACE)) && (a[0] & (PAGE_SIZE - 1)) != 0) {
        return -EINVAL;
    }
    if (!(flags & MAP_ANONYMOUS)) {
        return map_file(k, a, prot, flags);
    }
    return mm_map(a[0], a[1], prot, map_flags(flags), k->proc);
}

i64 sys_munmap(struct kthread *k, const u64 *a)
{
    if ((a[0] & (PAGE_SIZE - 1)) != 0 || a[1] == 0 || a[0] >= APP_MAX || a[1] > APP_MAX - a[0]) {
        return -EINVAL;
    }
    if (arch_regs_sp(k->regs) - a[0] < a[1]) {
        /* A thread that unmaps the stack it stands on is about to end: nobody can tell that its pages go a little later, and
         * a flush of every running CPU at each thread's end is saved. */
        return mm_unmap_lazy(a[0], a[1]);
    }
    return mm_unmap(a[0], a[1]);
}

i64 sys_mprotect(struct kthread *k, const u64 *a)
{
    (void)k;
    if ((a[0] & (PAGE_SIZE - 1)) != 0 || (a[2] & ~(u64)PROT_ALL)) {
        return -EINVAL;
    }
    if (a[1] == 0) {
        return 0;
    }
    if (a[0] >= APP_MAX || a[1] > APP_MAX - a[0]) {
        return -ENOMEM;
    }
    return mm_protect(a[0], a[1], (u32)a[2]);
}

i64 sys_mremap(struct kthread *k, const u64 *a)
{
    (void)k;
    if ((a[0] & (PAGE_SIZE - 1)) != 0 || a[1] == 0 || a[2] == 0 || a[1] > APP_MAX ||
        a[2] > APP_MAX || (a[3] & ~(u64)MREMAP_MAYMOVE)) {
        return -EINVAL;
    }
    return mm_remap(a[0], a[1], a[2], a[3] & MREMAP_MAYMOVE);
}

i64 sys_madvise(struct kthread *k, const u64 *a)
{
    enum { MADV_DONTNEED = 4, MADV_FREE = 8, MADV_REMOVE = 9, MADV_LAST_KNOWN = 25 };
    (void)k;
    if ((a[0] & (PAGE_SIZE - 1)) != 0 || a[0] >= APP_MAX || a[1] > APP_MAX - a[0]) {
        return -EINVAL;
    }
    switch ((u32)a[2]) {
    case MADV_DONTNEED:
    case MADV_FREE:
        return a[1] ? mm_discard(a[0], a[1]) : 0;
    case MADV_REMOVE:
        return -EINVAL;
    default:
        /* The others are hints. */
        return (u32)a[2] <= MADV_LAST_KNOWN ? 0 : -EINVAL;
    }
}

/* Nothing is ever paged out. */
i64 sys_mlock(struct kthread *k, const u64 *a)
{
    (void)k;
    (void)a;
    return 0;
}

i64 sys_msync(struct kthread *k, const u64 *a)
{
    (void)k;
    return mm_check(a[0], a[1] ? a[1] : 1, 0) ? 0 : -ENOMEM;
}
