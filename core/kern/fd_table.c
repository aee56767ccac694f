/* Descriptor tables.
 *
 * Lookups take no lock: load the slot, add a reference unless the count is 0, look whether the slot still holds the same
 * file. struct file memory is type-stable, so the count may be looked at even of a file that was just closed; if the slot
 * changed meanwhile the reference is dropped again and the lookup starts over.
 * Changes of slots are serialised by the table's lock. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/file.h"
#include "core/mm/mm.h"

static struct lock_class table_class = { .name = "fd_table", .rank = RANK_PROC };

void fd_table_init(struct fd_table *t)
{
    spin_init(&t->lock, &table_class);
}

static struct file **fd_slot(struct fd_table *t, u64 fd)
{
    if (fd >= FD_MAX) {
        return NULL;
    }
    struct file **chunk = LOAD_ACQUIRE(t->chunks[fd / FD_CHUNK]);
    return chunk ? &chunk[fd % FD_CHUNK] : NULL;
}

static bool get_unless_zero(struct file *f)
{
    u32 refs = READ_ONCE(f->refs);
    while (refs != 0) {
        if (__atomic_compare_exchange_n(&f->refs, &refs, refs + 1, true, __ATOMIC_ACQUIRE,
                                        __ATOMIC_RELAXED)) {
            return true;
        }
    }
    return false;
}

struct file *fd_get(struct proc *p, u64 fd)
{
    struct file **slot = fd_slot(&p->fds, fd);
    if (unlikely(!slot)) {
        return NULL;
    }
    for (;;) {
        struct file *f = LOAD_ACQUIRE(*slot);
        if (!f) {
            return NULL;
        }
        if (likely(get_unless_zero(f))) {
            if (likely(LOAD_ACQUIRE(*slot) == f)) {
                return f;
            }
            file_put(f);
        }
        arch_cpu_relax();
    }
}

/* The slot for fd, with its chunk allocated. Table lock held. */
static struct file **make_slot(struct fd_table *t, u32 fd)
{
    struct file ***chunk = &t->chunks[fd / FD_CHUNK];
    if (!*chunk) {
        struct file **fresh = kzalloc(sizeof(struct file *) * FD_CHUNK);
        if (!fresh) {
            return NULL;
        }
        STORE_RELEASE(*chunk, fresh);
    }
    return &(*chunk)[fd % FD_CHUNK];
}

static void set_cloexec_locked(struct fd_table *t, u32 fd, bool on)
{
    if (!t->cloexec) {
        if (!on) {
            return;
        }
        t->cloexec = kzalloc(FD_MAX / 8);
        if (!t->cloexec) {
            return; /* only what F_GETFD answers is lost: there is no exec */
        }
    }
    if (on) {
        t->cloexec[fd / 64] |= BIT(fd % 64);
    } else {
        t->cloexec[fd / 64] &= ~BIT(fd % 64);
    }
}

int fd_install(struct proc *p, struct file *f, u32 from, bool cloexec)
{
    struct fd_table *t = &p->fds;
    int result = -EMFILE;
    spin_lock(&t->lock);
    for (u32 fd = MAX(from, t->first_free); fd < FD_MAX; fd++) {
        struct file **slot = make_slot(t, fd);
        if (!slot) {
            result = -ENOMEM;
            break;
        }
        if (*slot) {
            continue;
        }
        if (from <= t->first_free) {
            t->first_free = fd + 1;
        }
        set_cloexec_locked(t, fd, cloexec);
        t->open++;
        STORE_RELEASE(*slot, f);
        result = (int)fd;
        break;
    }
    t->limit_hits += result == -EMFILE;
    spin_unlock(&t->lock);
    return result;
}

int fd_install_at(struct proc *p, struct file *f, u32 fd, bool cloexec)
{
    struct fd_table *t = &p->fds;
    if (fd >= FD_MAX) {
        return -EBADF;
    }
    spin_lock(&t->lock);
    struct file **slot = make_slot(t, fd);
    struct file *old = slot ? *slot : NULL;
    if (slot) {
        t->open += !old;
        set_cloexec_locked(t, fd, cloexec);
        STORE_RELEASE(*slot, f);
    }
    spin_unlock(&t->lock);
    if (old) {
        file_put(old);
    }
    return slot ? (int)fd : -ENOMEM;
}

int fd_close(struct proc *p, u64 fd)
{
    struct fd_table *t = &p->fds;
    struct file **slot = fd_slot(t, fd);
    struct file *f = NULL;
    if (!slot) {
        return -EBADF;
    }
    spin_lock(&t->lock);
    f = *slot;
    if (f) {
        STORE_RELEASE(*slot, NULL);
        t->open--;
        t->first_free = MIN(t->first_free, (u32)fd);
    }
    spin_unlock(&t->lock);
    if (!f) {
        return -EBADF;
    }
    file_put(f);
    return 0;
}

int fd_get_cloexec(struct proc *p, u32 fd)
{
    struct fd_table *t = &p->fds;
    spin_lock(&t->lock);
    int on = t->cloexec && (t->cloexec[fd / 64] & BIT(fd % 64)) != 0;
    spin_unlock(&t->lock);
    return on;
}

void fd_set_cloexec(struct proc *p, u32 fd, bool on)
{
    spin_lock(&p->fds.lock);
    set_cloexec_locked(&p->fds, fd, on);
    spin_unlock(&p->fds.lock);
}

void fd_close_all(struct proc *p)
{
    struct fd_table *t = &p->fds;
    for (u32 c = 0; c < FD_CHUNKS; c++) {
        for (u32 i = 0; t->chunks[c] && i < FD_CHUNK; i++) {
            fd_close(p, c * FD_CHUNK + i);
        }
    }
    /* No thread of the process is left to look anything up, but a view may: chunks stay, they are empty. */
}
