/* A place in the caller's buffers, application or kernel memory. */
#ifndef WEIR_NET_IOV_H
#define WEIR_NET_IOV_H

#include "arch/arch.h"
#include "core/base/string.h"
#include "net/net.h"

struct iov_cursor {
    const struct net_iov *iov;
    size_t num_left; /* iov entries from the current one on */
    size_t offset;   /* in the current one */
    bool kernel;
};

static inline struct iov_cursor iov_start(const struct net_buf *buf)
{
    return (struct iov_cursor){ buf->iov, buf->num_iov, 0, buf->kernel };
}

/* All bytes; SIZE_MAX if the sum overflows. */
static inline size_t iov_total(const struct net_buf *buf)
{
    size_t total = 0;
    for (size_t i = 0; i < buf->num_iov; i++) {
        if (__builtin_add_overflow(total, buf->iov[i].len, &total)) {
            return SIZE_MAX;
        }
    }
    return total;
}

/* Moves n bytes between the cursor's place and kernel memory, and the cursor on.  The buffers hold at least n more bytes.
 * false: the application's address is bad. */
static inline bool iov_move(struct iov_cursor *c, void *kernel_memory, size_t n, bool to_caller)
{
    u8 *k = kernel_memory;
    while (n > 0) {
        size_t part = MIN(n, c->iov->len - c->offset);
        u64 at = c->iov->base + c->offset;
        if (part > 0) {
            if (c->kernel) {
                void *p = (void *)(uintptr_t)at;
                memcpy(to_caller ? p : k, to_caller ? k : p, part);
            } else if (!(to_caller ? arch_copy_to_app(at, k, part) : arch_copy_from_app(k, at, part))) {
                return false;
            }
        }
        k += part;
        n -= part;
        c->offset += part;
        if (c->offset == c->iov->len && c->num_left > 1) {
            c->iov++;
            c->num_left--;
            c->offset = 0;
        }
    }
    return true;
}

#endif
