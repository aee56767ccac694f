/* Moving bytes between kernel memory and the pieces of a read or write buffer. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/file.h"

size_t io_total(const struct net_buf *buf)
{
    size_t total = 0;
    for (size_t i = 0; i < buf->num_iov; i++) {
        total += buf->iov[i].len;
    }
    return total;
}

enum io_kind { IO_PUT, IO_TAKE, IO_ZERO };

static bool move_piece(const struct net_buf *buf, u64 base, char *mem, size_t n, enum io_kind kind)
{
    if (buf->kernel) {
        char *p = (char *)(uintptr_t)base;
        if (kind == IO_TAKE) {
            memcpy(mem, p, n);
        } else if (kind == IO_PUT) {
            memcpy(p, mem, n);
        } else {
            memset(p, 0, n);
        }
        return true;
    }
    switch (kind) {
    case IO_PUT:
        return arch_copy_to_app(base, mem, n);
    case IO_TAKE:
        return arch_copy_from_app(mem, base, n);
    default:
        return arch_zero_app(base, n);
    }
}

static i64 io_move(struct io *io, char *mem, size_t n, enum io_kind kind)
{
    size_t done = 0;
    while (done < n && io->piece < io->buf->num_iov) {
        const struct net_iov *iov = &io->buf->iov[io->piece];
        size_t part = MIN(n - done, iov->len - io->offset);
        if (part > 0 &&
            !move_piece(io->buf, iov->base + io->offset, mem ? mem + done : NULL, part, kind)) {
            return done > 0 ? (i64)done : -EFAULT;
        }
        done += part;
        io->offset += part;
        if (io->offset == iov->len) {
            io->piece++;
            io->offset = 0;
        }
    }
    return (i64)done;
}

i64 io_put(struct io *io, const void *src, size_t n)
{
    /* IO_PUT only reads mem. */
    return io_move(io, (char *)(uintptr_t)src, n, IO_PUT);
}

i64 io_take(struct io *io, void *dst, size_t n)
{
    return io_move(io, dst, n, IO_TAKE);
}

i64 io_put_zero(struct io *io, size_t n)
{
    return io_move(io, NULL, n, IO_ZERO);
}

i64 io_read_memory(const struct net_buf *buf, const void *data, u64 size, u64 *pos)
{
    struct io io = io_begin(buf);
    if (*pos >= size) {
        return 0;
    }
    i64 n = io_put(&io, (const char *)data + *pos, size - *pos);
    if (n > 0) {
        *pos += (u64)n;
    }
    return n;
}
