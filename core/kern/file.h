/* Open files: what descriptors point to, and how readiness is told.
 *
 * A struct file has a type (ops) and the type's own object (priv). Memory of struct file is type-stable: it is never
 * given back, so a lock-free lookup may look at one that has just been closed, see that its reference count is 0 or
 * that the slot changed, and try again (file.c).
 *
 * Readiness: whoever makes a file ready calls file_notify(); observers (poll calls, epoll entries) hear of it under the
 * file's poll_lock (RANK_POLL, interrupts off) and may only take locks of higher rank and wake threads through the batch.
 * An observer registers first and looks at ops->poll afterwards, so no event is lost between the two. */
#ifndef WEIR_CORE_KERN_FILE_H
#define WEIR_CORE_KERN_FILE_H

#include "core/kern/proc.h"

/* Linux's values. */
#define O_ACCMODE 3u
#define O_RDONLY 0u
#define O_WRONLY 1u
#define O_RDWR 2u
#define O_CREAT 0100u
#define O_EXCL 0200u
#define O_TRUNC 01000u
#define O_APPEND 02000u
#define O_NONBLOCK 04000u
#define O_DIRECTORY 0200000u
#define O_CLOEXEC 02000000u
#define O_PATH 010000000u

#define POLLIN 0x1u
#define POLLPRI 0x2u
#define POLLOUT 0x4u
#define POLLERR 0x8u
#define POLLHUP 0x10u
#define POLLNVAL 0x20u
#define POLLRDNORM 0x40u
#define POLLWRNORM 0x100u
#define POLLRDHUP 0x2000u
#define POLL_ALWAYS (POLLERR | POLLHUP)

#define S_IFSOCK 0140000u
#define S_IFREG 0100000u
#define S_IFDIR 0040000u
#define S_IFCHR 0020000u
#define S_IFIFO 0010000u

struct file;

struct file_stat {
    u64 inode, size, rdev;
    u32 mode; /* type and permissions */
};

/* All run in thread context with no lock held, on behalf of the current thread; any may be NULL (then: -EINVAL, or always
 * ready for poll). Results: bytes or 0, negative errno, -ERESTART. */
struct file_ops {
    const char *name;
    bool seekable;  /* read and write work at *pos; else pos is NULL */
    i64 (*read)(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags);
    i64 (*write)(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags);
    u32 (*poll)(struct file *f); /* cheap; callable with RANK_FILE locks held */
    i64 (*ioctl)(struct file *f, u64 request, u64 arg);
    void (*stat)(struct file *f, struct file_stat *st);
    i64 (*truncate)(struct file *f, u64 size);
    void (*release)(struct file *f); /* the last reference is gone */
};

struct observer {
    struct list node; /* file.poll_lock */
    void (*fn)(struct observer *o, u32 events, struct wake_batch *batch);
    u32 events; /* told only of these and POLL_ALWAYS */
};

struct file {
    u32 refs;
    u32 flags; /* O_*: access mode and O_NONBLOCK, O_APPEND */
    const struct file_ops *ops;
    void *priv;
    u64 priv2;
    struct spinlock pos_lock; /* pos (RANK_FILE) */
    u64 pos;
    struct spinlock poll_lock; /* observers */
    struct list observers;
    u32 epoll_items; /* epoll entries among them: epoll_forget_file() has work */
    struct file *next_free;
};

/* ---- files ---- */

void file_init(void);
/* A new file with one reference; NULL: no memory. */
struct file *file_create(const struct file_ops *ops, void *priv, u32 flags);
static inline void file_get(struct file *f)
{
    __atomic_fetch_add(&f->refs, 1, __ATOMIC_RELAXED);
}
void file_put(struct file *f);
void file_observe(struct file *f, struct observer *o);
void file_unobserve(struct file *f, struct observer *o);
/* Tells the observers; any context with locks below RANK_POLL. batch may be NULL: wakes at once. */
void file_notify(struct file *f, u32 events, struct wake_batch *batch);
/* Waits until ops->poll shows one of events: 0, -ERESTART, -EAGAIN at the deadline. */
int file_wait(struct file *f, u32 events, u64 deadline_ns, enum wait_kind kind);
static inline u32 file_poll(struct file *f)
{
    return f->ops->poll ? f->ops->poll(f) : (POLLIN | POLLOUT | POLLRDNORM | POLLWRNORM);
}
static inline bool file_nonblock(const struct file *f)
{
    return READ_ONCE(f->flags) & O_NONBLOCK;
}

/* ---- descriptors ---- */

void fd_table_init(struct fd_table *t);
/* The file behind fd with a reference added; NULL: -EBADF. Lock-free. */
struct file *fd_get(struct proc *p, u64 fd);
/* Puts f (its reference moves) into the lowest free slot >= from; the descriptor, -EMFILE, -ENOMEM (f not consumed). */
int fd_install(struct proc *p, struct file *f, u32 from, bool cloexec);
/* Puts f at fd, closing what was there: fd, -EBADF, -ENOMEM. */
int fd_install_at(struct proc *p, struct file *f, u32 fd, bool cloexec);
int fd_close(struct proc *p, u64 fd);
int fd_get_cloexec(struct proc *p, u32 fd);
void fd_set_cloexec(struct proc *p, u32 fd, bool on);
void fd_close_all(struct proc *p);

/* ---- moving bytes ---- */

/* A walk over the pieces of a buffer. */
struct io {
    const struct net_buf *buf;
    size_t piece, offset;
};
static inline struct io io_begin(const struct net_buf *buf)
{
    return (struct io){ buf, 0, 0 };
}
size_t io_total(const struct net_buf *buf);
/* Copies up to n bytes into / out of the buffer; bytes moved, -EFAULT if none could be. */
i64 io_put(struct io *io, const void *src, size_t n);
i64 io_take(struct io *io, void *dst, size_t n);
i64 io_put_zero(struct io *io, size_t n);
/* read() of a byte string held in kernel memory. */
i64 io_read_memory(const struct net_buf *buf, const void *data, u64 size, u64 *pos);

/* An application's struct iovec array, copied in. */
struct iov_list {
    struct net_iov fixed[IOV_ON_STACK];
    struct net_iov *iov;
    struct net_buf buf;
};
/* Total bytes (each length cut so that the sum stays below RW_MAX), -EINVAL, -EFAULT, -ENOMEM; iov_free() on success. */
i64 iov_load(struct iov_list *l, u64 addr, u64 count);
void iov_free(struct iov_list *l);

/* ---- types ---- */

struct file *console_file(u32 flags);
i64 pipe_create(u32 flags, struct file *ends[2]);
struct file *eventfd_create(u64 initial, bool semaphore, u32 flags);
struct file *timerfd_create(u32 clock, u32 flags);
i64 timerfd_set(struct file *f, u64 flags, u64 value_ns, u64 interval_ns, u64 old[2]);
i64 timerfd_get(struct file *f, u64 value[2]);
struct file *socket_file_create(struct socket *s, u32 flags);
/* The socket of a file; NULL if it is none. */
struct socket *file_socket(struct file *f);
struct epoll;
/* The epoll set of a file; NULL if it is none. */
struct epoll *file_epoll(const struct file *f);
/* Drops what epoll sets know of a file that is going away. */
void epoll_forget_file(struct file *f);

/* ---- paths ---- */

/* Opens a path (absolute and normalised or not): a file with one reference, or negative errno. */
i64 vfs_open(struct proc *p, const char *path, u32 flags, u32 mode, struct file **out);
i64 vfs_stat(struct proc *p, const char *path, struct file_stat *st);
i64 vfs_unlink(const char *path, bool dir);
i64 vfs_rename(const char *from, const char *to);
i64 vfs_mkdir(const char *path, u32 mode);
/* Makes path absolute and free of ".", ".." and double slashes. -ENAMETOOLONG. */
int path_normalise(const char *path, char *out, size_t n);

#endif
