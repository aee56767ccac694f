/* Internals of the socket layer.
 *
 * A stream socket lives on one instance (`in`) from connect or accept on; all its connection state is under that
 * instance's lock.  Its receive queue has a lock of its own inside that one, so that a reader neither waits for the
 * receive path nor holds it up: what it has read is given back to lwIP by whoever holds the instance's lock next.
 *
 * A listener and a datagram socket are present on every instance of their net and have a lock of their own, of higher
 * rank, for their queue.  Changes of a socket's role (bind, listen, connect) are serialised by the lock of the net's
 * port table. */
#ifndef WEIR_NET_SOCKET_IMPL_H
#define WEIR_NET_SOCKET_IMPL_H

#include "net/net_impl.h"

enum { AF_INET = 2, AF_INET6 = 10, SOCK_STREAM = 1, SOCK_DGRAM = 2, PROTO_TCP = 6, PROTO_UDP = 17 };
enum { POLLIN = 0x1, POLLOUT = 0x4, POLLERR = 0x8, POLLHUP = 0x10, POLLRDNORM = 0x40, POLLWRNORM = 0x100, POLLRDHUP = 0x2000 };

enum socket_role {
    ROLE_NONE,       /* new or bound */
    ROLE_LISTENER,
    ROLE_CONNECTING,
    ROLE_CONNECTED,  /* also when one or both directions have ended */
    ROLE_DATAGRAM,
};

struct listener {
    struct spinlock lock; /* RANK_NET_DEVICE: taken under instance locks */
    struct list queue;    /* established connections, oldest first: struct socket.node */
    u32 queued, backlog;
    u64 overflows;        /* refused because the queue was full */
    bool shut;            /* shut down: accepts what is queued, then fails */
    struct list waiters;  /* struct socket_waiter */
    struct stack_tcp *tcp[MAX_CPUS]; /* by instance, under its lock */
};

struct datagram_queue {
    struct spinlock lock; /* RANK_NET_DEVICE */
    struct list queue;    /* struct datagram */
    u32 bytes;
    u64 dropped;
    struct list waiters;
    struct stack_udp *udp[MAX_CPUS];
    u32 peer_ip;          /* connected: only from and to there; 0: not connected */
    u16 peer_port;
    u16 local_port;
};

struct socket_options {
    bool reuse_addr, keepalive, nodelay, linger, broadcast;
    i32 linger_s;
    u32 keep_idle_s, keep_interval_s, keep_count;
    u32 send_limit, recv_limit;
    u64 recv_timeout_ns, send_timeout_ns;
};

struct socket {
    struct net *net;
    u8 family, type;
    enum socket_role role;
    struct socket_options options;

    /* Port table lock. */
    struct list port_node;
    u32 bound_ip;       /* 0: any */
    u16 bound_port;     /* 0: not bound */
    struct listener *listener;
    struct datagram_queue *dgram;

    /* Stream connection: under in->lock. */
    struct instance *in;
    struct stack_tcp *tcp; /* NULL once lwIP has dropped it */
    struct stack_flow flow;
    u32 tx_bytes;       /* queued and not acknowledged */
    i32 error;          /* negative errno to be reported once (SO_ERROR) */
    bool rx_end;        /* the peer has sent all, or we shut reading down; also under rx_lock */
    bool tx_end;        /* we shut writing down */
    struct list rx_waiters, tx_waiters; /* struct socket_waiter */

    /* Receive queue: under rx_lock (RANK_NET_DEVICE). */
    struct spinlock rx_lock;
    struct stack_buf *rx_first, *rx_last;
    struct stack_buf *rx_done;  /* read: to be freed under in->lock too */
    u32 rx_bytes;               /* written under the lock, looked at without */
    u32 rx_untaken;             /* read but not yet reported to lwIP */
    /* A thread that waits for data without being in rx_waiters: see stream_recv(). */
    struct thread *reader;

    /* Queue of the listener that it came from. */
    struct list node;

    void (*observer)(void *arg, u32 events, struct wake_batch *batch);
    void *observer_arg;
};

/* On the stack of a waiting thread; in a list under the lock of what it waits for. */
struct socket_waiter {
    struct list node;
    struct thread *thread;
};

extern struct lock_class socket_queue_lock_class; /* listeners, datagram queues, receive queues: never two at once */

/* ---- socket.c ---- */
/* NULL: limit or memory (counted). */
struct socket *socket_new(struct net *net, int family, int type);
void socket_free(struct socket *s);
void socket_wake_all(struct list *waiters, struct wake_batch *batch);
void socket_wake_one(struct list *waiters, struct wake_batch *batch);
void socket_tell(struct socket *s, u32 events, struct wake_batch *batch);
/* Enters the instance, counting calls from other CPUs. */
irqflags_t socket_enter(struct socket *s, struct wake_batch *batch);
/* Parks as a waiter that is already in a list.  0: look again; -EINTR, -EAGAIN (deadline).  The caller removes the
 * waiter under the lock afterwards. */
int socket_park(u64 deadline_ns, const void *object);
/* Takes the pending error. */
int socket_take_error(struct socket *s);
u32 socket_write_threshold(const struct socket *s);
/* Wakes whoever waits to read.  Under in->lock. */
void socket_wake_readers(struct socket *s, struct wake_batch *batch);

/* ---- socket_addr.c ---- */
/* -EINVAL, -EAFNOSUPPORT. */
int socket_addr_parse(const struct net_addr *addr, u32 *ip, u16 *port);
void socket_addr_make(struct net_addr *out, u32 ip, u16 port);

/* ---- socket_bind.c ---- */
struct port_table *socket_ports(struct socket *s);
void socket_unbind(struct socket *s);
/* Under the port table lock: a free port for a wildcard bind; 0 if there is none. */
u16 socket_free_port(struct port_table *t, u32 ip);
bool socket_port_listening(struct port_table *t, u16 port);
int socket_bind_locked(struct socket *s, u32 ip, u16 port);

/* ---- socket_listen.c ---- */
void listener_close(struct socket *s);
/* shutdown(2) on a listener: no new connections; waiting accepts fail with -EINVAL once the queue is empty. */
int listener_shutdown(struct socket *s);
bool listener_may_accept(struct socket *s, u32 pending);
void *listener_established(struct instance *in, struct socket *s, struct stack_tcp *t, const struct stack_flow *flow);
u32 listener_poll(struct socket *s);

/* ---- socket_stream.c ---- */
i64 stream_send(struct socket *s, const struct net_buf *buf, u32 flags, u64 deadline_ns);
i64 stream_recv(struct socket *s, const struct net_buf *buf, u32 flags, u64 deadline_ns);
void stream_close(struct socket *s);
/* Gives back to lwIP what has been read.  Under in->lock. */
void stream_release_read(struct socket *s);
void stream_apply_options(struct socket *s);
u32 stream_poll(const struct socket *s);

/* ---- socket_dgram.c ---- */
int dgram_open(struct socket *s); /* under the port table lock */
void dgram_close(struct socket *s);
int dgram_connect(struct socket *s, u32 ip, u16 port);
i64 dgram_send(struct socket *s, const struct net_buf *buf, u32 flags, const struct net_addr *to);
i64 dgram_recv(struct socket *s, const struct net_buf *buf, u32 flags, struct net_addr *from, u64 deadline_ns);
void dgram_received(struct instance *in, struct socket *s, const struct stack_buf *chain, u32 ip, u16 port);
u32 dgram_poll(struct socket *s);
i64 dgram_readable(struct socket *s);

#endif
