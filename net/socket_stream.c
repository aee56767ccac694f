/* Sending and receiving on a connection.
 *
 * Data is copied once each way: from lwIP's received buffers to the application, and from the application into the packet
 * that becomes the segment.  One call takes the instance's lock once for each NET_COPY_CHUNK bytes. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "net/iov.h"
#include "net/socket_impl.h"

/* A call that goes on for a while. */
struct stream_call {
    struct socket *s;
    struct iov_cursor cursor;
    size_t left, done;
    u32 flags;
    bool fault;
    i64 result; /* once a step has said STEP_DONE */
};

enum step { STEP_DONE, STEP_MORE, STEP_WAIT };

static enum step finish(struct stream_call *c, i64 result)
{
    c->result = c->done > 0 ? (i64)c->done : result;
    return STEP_DONE;
}

/* ---- receiving ---- */

/* Moves the first buffer, all read, to those that lwIP gets back. */
static void first_is_done(struct socket *s)
{
    struct stack_buf *b = s->rx_first;
    s->rx_first = b->next;
    if (s->rx_first == NULL) {
        s->rx_last = NULL;
    }
    b->next = s->rx_done;
    s->rx_done = b;
}

void stream_release_read(struct socket *s)
{
    const struct stack_ops *ops = s->in->ops;
    irqflags_t flags = spin_lock_irq(&s->rx_lock);
    struct stack_buf *done = s->rx_done;
    u32 untaken = s->rx_untaken;
    s->rx_done = NULL;
    if (untaken >= NET_TCP_WINDOW_STEP) {
        s->rx_untaken = 0;
    }
    spin_unlock_irq(&s->rx_lock, flags);
    while (done != NULL) {
        struct stack_buf *next = done->next;
        done->next = NULL;
        ops->buf_free(done);
        done = next;
    }
    if (untaken >= NET_TCP_WINDOW_STEP && s->tcp != NULL) {
        ops->tcp_taken(s->tcp, untaken);
    }
}

/* Copies up to a chunk from the receive queue; returns how much.  With or without in->lock. */
static size_t take_data(struct stream_call *c)
{
    struct socket *s = c->s;
    size_t limit = MIN(c->left, NET_COPY_CHUNK), taken = 0;
    irqflags_t flags = spin_lock_irq(&s->rx_lock);
    while (taken < limit && s->rx_first != NULL) {
        struct stack_buf *b = s->rx_first;
        size_t part = MIN(limit - taken, b->len);
        if (!iov_move(&c->cursor, b->data, part, true)) {
            c->fault = true;
            break;
        }
        taken += part;
        if (part == b->len) {
            first_is_done(s);
        } else {
            b->data += part;
            b->len = (u16)(b->len - part);
        }
    }
    WRITE_ONCE(s->rx_bytes, s->rx_bytes - (u32)taken);
    s->rx_untaken += (u32)taken;
    spin_unlock_irq(&s->rx_lock, flags);
    return taken;
}

/* MSG_PEEK: at most one chunk, nothing is taken. */
static size_t peek_data(struct stream_call *c)
{
    size_t limit = MIN(c->left, NET_COPY_CHUNK), seen = 0;
    irqflags_t flags = spin_lock_irq(&c->s->rx_lock);
    for (struct stack_buf *b = c->s->rx_first; b != NULL && seen < limit; b = b->next) {
        size_t part = MIN(limit - seen, b->len);
        if (!iov_move(&c->cursor, b->data, part, true)) {
            c->fault = true;
            break;
        }
        seen += part;
    }
    spin_unlock_irq(&c->s->rx_lock, flags);
    return seen;
}

/* What an empty receive queue means: 0 end of stream, an error, or -EAGAIN: wait. */
static i64 empty_result(struct socket *s)
{
    if (s->error != 0) {
        return socket_take_error(s);
    }
    if (s->rx_end) {
        return 0;
    }
    if (s->role != ROLE_CONNECTED) {
        return s->role == ROLE_CONNECTING ? -EAGAIN : -ENOTCONN;
    }
    return -EAGAIN;
}

/* One hold of the lock.  may_wait: the waiter is queued if there is nothing to do. */
static enum step recv_step(struct stream_call *c, bool may_wait, struct socket_waiter *w)
{
    struct socket *s = c->s;
    bool peek = (c->flags & NET_PEEK) != 0;
    size_t n = peek ? peek_data(c) : take_data(c);
    c->left -= n;
    c->done += n;
    stream_release_read(s);
    if (c->fault) {
        return finish(c, -EFAULT);
    }
    if (c->left == 0 || (c->done > 0 && (peek || (s->rx_first == NULL && (c->flags & NET_WAITALL) == 0)))) {
        return finish(c, 0);
    }
    if (s->rx_first != NULL) {
        return STEP_MORE;
    }
    if (c->done > 0 && (s->error != 0 || s->rx_end)) {
        return finish(c, 0); /* the error is for the next call */
    }
    i64 result = empty_result(s);
    if (result == -EAGAIN && may_wait) {
        list_push_back(&s->rx_waiters, &w->node);
        return STEP_WAIT;
    }
    return finish(c, result);
}

/* Runs the steps of a call, waiting between them.  stopped: nonzero if it may not wait, and the result then. */
static i64 run_steps(struct stream_call *c, enum step (*step)(struct stream_call *c, bool may_wait, struct socket_waiter *w),
                     u64 deadline_ns, int stopped)
{
    struct socket *s = c->s;
    struct socket_waiter w = { .thread = current_thread() };
    list_init(&w.node);
    for (;;) {
        struct wake_batch batch;
        irqflags_t irq = socket_enter(s, &batch);
        list_remove(&w.node);
        enum step next = step(c, stopped == 0, &w);
        instance_leave(s->in, &batch, irq);
        if (next == STEP_DONE) {
            return c->result == -EAGAIN ? stopped : c->result;
        }
        if (next == STEP_WAIT) {
            stopped = socket_park(deadline_ns, s);
        }
    }
}

/* Gives back what was read if it is much; else the next send does that. */
static void release_if_much(struct socket *s)
{
    if (READ_ONCE(s->rx_untaken) >= NET_TCP_WINDOW_STEP) {
        struct wake_batch batch;
        irqflags_t flags = socket_enter(s, &batch);
        stream_release_read(s);
        instance_leave(s->in, &batch, flags);
    }
}

/* Waits for data without taking a lock: publishes the thread, then looks at the queue once more; on_received() puts data
 * into the queue and then looks for the thread.  false: somebody else waits so already.
 *
 * A waker uses the pointer only under rx_lock.  The caller takes that lock, or the instance's and that one, before it
 * leaves the call: then no waker is left that has seen it. */
static bool wait_for_data(struct socket *s, u64 deadline_ns, int *stopped)
{
    struct thread *none = NULL;
    if (!__atomic_compare_exchange_n(&s->reader, &none, current_thread(), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
        return false;
    }
    if (READ_ONCE(s->rx_bytes) == 0 && !READ_ONCE(s->rx_end)) {
        *stopped = socket_park(deadline_ns, s);
    }
    WRITE_ONCE(s->reader, NULL);
    return true;
}

/* The common case, data or waiting for it, without the instance's lock; everything else by recv_step(). */
i64 stream_recv(struct socket *s, const struct net_buf *buf, u32 flags, u64 deadline_ns)
{
    struct stream_call c = { .s = s, .cursor = iov_start(buf), .left = iov_total(buf), .flags = flags };
    int stopped = (flags & NET_NONBLOCK) != 0 ? -EAGAIN : 0;
    if (s->in == NULL) {
        return -ENOTCONN;
    }
    if (c.left == 0) {
        return 0;
    }
    thread_head(current_thread())->receive_cpu = (i32)s->in->cpu;
    while ((flags & NET_PEEK) == 0) {
        if (READ_ONCE(s->rx_bytes) != 0) {
            size_t n = take_data(&c);
            c.left -= n;
            c.done += n;
            release_if_much(s);
            if (c.fault) {
                return c.done > 0 ? (i64)c.done : -EFAULT;
            }
            if (c.left == 0) {
                return (i64)c.done;
            }
            continue;
        }
        if (c.done > 0 && (flags & NET_WAITALL) == 0) {
            return (i64)c.done;
        }
        if (stopped != 0 || READ_ONCE(s->rx_end) || READ_ONCE(s->role) != ROLE_CONNECTED ||
            !wait_for_data(s, deadline_ns, &stopped)) {
            break;
        }
    }
    return run_steps(&c, recv_step, deadline_ns, stopped);
}

/* ---- sending ---- */

/* Fills the last unsent segment first.  Returns the bytes that went there. */
static size_t fill_tail(struct stream_call *c, size_t limit)
{
    const struct stack_ops *ops = c->s->in->ops;
    u8 *where;
    size_t room = MIN(ops->tcp_tail_room(c->s->tcp, &where), limit);
    if (room == 0) {
        return 0;
    }
    if (!iov_move(&c->cursor, where, room, false)) {
        c->fault = true;
        return 0;
    }
    ops->tcp_tail_commit(c->s->tcp, (u32)room);
    return room;
}

/* Makes one segment of at most limit bytes.  Negative errno, or its bytes. */
static i64 queue_segment(struct stream_call *c, size_t limit)
{
    struct socket *s = c->s;
    struct instance *in = s->in;
    if (in->held >= NET_PACKETS_PER_INSTANCE) {
        in->counters.packet_failures++;
        return -ENOBUFS;
    }
    struct packet *p = instance_packet_alloc(in);
    if (p == NULL) {
        return -ENOBUFS;
    }
    size_t size = MIN(MIN(limit, in->ops->tcp_segment_size(s->tcp)), PACKET_ROOM - NET_PACKET_HEADROOM);
    p->start = NET_PACKET_HEADROOM;
    p->len = (u16)size;
    if (!iov_move(&c->cursor, p->data + p->start, size, false)) {
        c->fault = true;
        instance_packet_free(in, p);
        return -EFAULT;
    }
    bool more = size < c->left || (c->flags & NET_MORE) != 0;
    int error = in->ops->tcp_queue(s->tcp, p, more);
    if (error != 0) {
        instance_packet_free(in, p);
        return error == -ENOMEM ? -ENOBUFS : error;
    }
    in->held++;
    return (i64)size;
}

/* Queues up to a chunk, as far as the socket's limit allows, and sends it.  Bytes, or negative errno if none. */
static i64 give_data(struct stream_call *c)
{
    struct socket *s = c->s;
    size_t space = s->options.send_limit - MIN(s->tx_bytes, s->options.send_limit);
    size_t limit = MIN(MIN(c->left, NET_COPY_CHUNK), space), given = 0;
    i64 error = 0;
    if (limit > 0) {
        given = fill_tail(c, limit);
        c->left -= given;
    }
    while (given < limit && !c->fault) {
        i64 n = queue_segment(c, limit - given);
        if (n < 0) {
            error = n;
            break;
        }
        given += (size_t)n;
        c->left -= (size_t)n;
    }
    c->done += given;
    WRITE_ONCE(s->tx_bytes, s->tx_bytes + (u32)given);
    if (given > 0) {
        s->in->ops->tcp_push(s->tcp);
        return (i64)given;
    }
    return c->fault ? -EFAULT : error;
}

/* Why nothing can be sent now: 0 if it can. */
static i64 send_obstacle(struct socket *s)
{
    if (s->error != 0) {
        return socket_take_error(s);
    }
    if (s->role == ROLE_CONNECTING) {
        return -EAGAIN;
    }
    if (s->role != ROLE_CONNECTED) {
        return s->tx_end ? -EPIPE : -ENOTCONN;
    }
    if (s->tx_end || s->tcp == NULL) {
        return -EPIPE;
    }
    return s->tx_bytes >= s->options.send_limit ? -EAGAIN : 0;
}

static enum step send_step(struct stream_call *c, bool may_wait, struct socket_waiter *w)
{
    i64 result = send_obstacle(c->s);
    if (READ_ONCE(c->s->rx_done) != NULL) {
        stream_release_read(c->s);
    }
    if (result == 0) {
        result = give_data(c);
        if (result > 0) {
            return c->left == 0 ? finish(c, 0) : STEP_MORE;
        }
    }
    if (result == -EAGAIN && may_wait) {
        list_push_back(&c->s->tx_waiters, &w->node);
        return STEP_WAIT;
    }
    return finish(c, result);
}

i64 stream_send(struct socket *s, const struct net_buf *buf, u32 flags, u64 deadline_ns)
{
    struct stream_call c = { .s = s, .cursor = iov_start(buf), .left = iov_total(buf), .flags = flags };
    if (s->in == NULL) {
        return -EPIPE; /* never connected, or a listener: as Linux */
    }
    if (c.left == 0) {
        return 0;
    }
    return run_steps(&c, send_step, deadline_ns, (flags & NET_NONBLOCK) != 0 ? -EAGAIN : 0);
}

/* ---- state ---- */

u32 stream_poll(const struct socket *s)
{
    u32 events = 0;
    bool rx_end = READ_ONCE(s->rx_end), tx_end = READ_ONCE(s->tx_end);
    if (READ_ONCE(s->rx_bytes) != 0 || rx_end) {
        events |= POLLIN | POLLRDNORM;
    }
    if (rx_end) {
        events |= POLLRDHUP;
    }
    if (rx_end && tx_end) {
        events |= POLLHUP;
    }
    if (READ_ONCE(s->error) != 0) {
        events |= POLLERR;
    }
    if (tx_end || (READ_ONCE(s->role) == ROLE_CONNECTED && READ_ONCE(s->tx_bytes) < socket_write_threshold(s))) {
        events |= POLLOUT | POLLWRNORM;
    }
    return events;
}

int socket_shutdown(struct socket *s, int how)
{
    if (how < 0 || how > 2) {
        return -EINVAL;
    }
    if (s->role == ROLE_LISTENER) {
        return how != 1 ? listener_shutdown(s) : 0;
    }
    if (s->in == NULL || s->type != SOCK_STREAM) {
        return -ENOTCONN;
    }
    struct wake_batch batch;
    irqflags_t flags = socket_enter(s, &batch);
    int error = s->role != ROLE_CONNECTED || s->tcp == NULL ? -ENOTCONN : 0;
    u32 events = 0;
    if (error == 0 && how != 0 && !s->tx_end) {
        error = s->in->ops->tcp_shutdown_write(s->tcp);
        if (error == 0) {
            s->tx_end = true;
            events |= POLLOUT | POLLWRNORM;
            socket_wake_all(&s->tx_waiters, &batch);
        }
    }
    if (error == 0 && how != 1 && !s->rx_end) {
        WRITE_ONCE(s->rx_end, true); /* what comes from now on is thrown away; what is queued can still be read */
        events |= POLLIN | POLLRDNORM | POLLRDHUP;
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
        socket_wake_readers(s, &batch);
    }
    if (events != 0) {
        socket_tell(s, events | (s->rx_end && s->tx_end ? POLLHUP : 0), &batch);
    }
    instance_leave(s->in, &batch, flags);
    return error;
}

/* Under the instance's lock. */
void stream_apply_options(struct socket *s)
{
    const struct stack_ops *ops = s->in->ops;
    const struct socket_options *o = &s->options;
    if (s->tcp == NULL) {
        return;
    }
    ops->tcp_set_option(s->tcp, STACK_TCP_NODELAY, o->nodelay);
    ops->tcp_set_option(s->tcp, STACK_TCP_KEEPALIVE, o->keepalive);
    if (o->keep_idle_s != 0) {
        ops->tcp_set_option(s->tcp, STACK_TCP_KEEPIDLE_S, o->keep_idle_s);
    }
    if (o->keep_interval_s != 0) {
        ops->tcp_set_option(s->tcp, STACK_TCP_KEEPINTVL_S, o->keep_interval_s);
    }
    if (o->keep_count != 0) {
        ops->tcp_set_option(s->tcp, STACK_TCP_KEEPCNT, o->keep_count);
    }
}

/* lwIP goes on with the connection in the background.  Unread data makes it a reset, as everywhere. */
void stream_close(struct socket *s)
{
    struct instance *in = s->in;
    struct wake_batch batch;
    irqflags_t flags = socket_enter(s, &batch);
    s->observer = NULL;
    if (s->tcp != NULL) {
        if (s->options.linger && s->options.linger_s == 0) {
            in->ops->tcp_abort(s->tcp);
        } else {
            in->ops->tcp_taken(s->tcp, s->rx_untaken); /* else lwIP takes it for unread */
            in->ops->tcp_close(s->tcp);
        }
        s->tcp = NULL;
    }
    s->rx_untaken = 0;
    while (s->rx_first != NULL) {
        first_is_done(s);
    }
    stream_release_read(s);
    instance_leave(in, &batch, flags);
}
