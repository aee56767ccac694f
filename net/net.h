/* The socket boundary: what core/kern (system calls, HTTP port) asks of the network.
 *
 * A `struct net` is one network identity: an address, a device (virtio-net, or one end of the wire), and one lwIP instance per
 * receive queue, plus loopback.  net_of_domain(0) is the server's, net_of_domain(1) the load generator's.
 *
 * Contexts: functions that say "blocks" need thread context with no lock held; all others may be called from thread context
 * with RANK_PROC/RANK_FILE locks held, none of higher rank.  Errors are negative errno values with Linux meanings. */
#ifndef WEIR_NET_NET_H
#define WEIR_NET_NET_H

#include "core/base/types.h"
#include "sched/sched.h"

struct net;
struct socket;

/* ---- start-up ---- */

enum net_mode { NET_DHCP, NET_STATIC, NET_NONE };
struct net_config {
    enum net_mode mode;
    u32 ip, mask, gateway; /* IPv4, host byte order; NET_STATIC */
    u32 queues;            /* receive queues wanted; 0: as many as the device and the CPUs of the domain allow */
    u32 instances;         /* lwIP instances; 0: one per receive queue (or per CPU with software steering) */
};
/* Finds the device and brings the stack up.  Blocks (until DHCP answers or 10 s are over).  -ENODEV: no device (loopback
 * works all the same), -EINVAL: device without a needed feature, -ETIMEDOUT: no DHCP answer; each logged in one line. */
int net_init_domain(u32 domain, const struct net_config *config);

struct wire_config {
    u32 queues;       /* per end, 1..MAX_CPUS */
    u64 delay_ns;     /* added to each packet */
    u32 loss_ppm;     /* packets lost of a million */
    u64 seed;
    struct net_config ends[2]; /* NET_STATIC: of domain 0 and domain 1 */
};
/* Connects domains 0 and 1 by a pair of in-kernel devices instead of virtio-net. */
int net_init_wire(const struct wire_config *config);

struct net *net_of_domain(u32 domain);
void net_shutdown(void);
/* The address in host byte order, 0 while there is none. */
u32 net_address(struct net *net);

/* ---- sockets ---- */

/* Addresses as the Linux ABI has them (struct sockaddr_in / sockaddr_in6 bytes). */
struct net_addr {
    u8 bytes[28];
    u32 len; /* 16: IPv4, 28: IPv6, 0: none */
};

/* Memory of the caller: application addresses (checked, may fault) or kernel memory. */
struct net_iov {
    u64 base;
    size_t len;
};
struct net_buf {
    const struct net_iov *iov;
    size_t num_iov;
    bool kernel; /* true: bases are kernel addresses */
};

#define NET_NONBLOCK 1u /* flags of calls below: -EAGAIN instead of waiting */
#define NET_PEEK 2u
#define NET_WAITALL 4u
#define NET_MORE 8u     /* more will follow: hold back a partial segment */

/* family 2 (AF_INET) or 10 (AF_INET6), type 1 (stream) or 2 (datagram).  -EAFNOSUPPORT, -EPROTONOSUPPORT, -ENFILE (limit,
 * counted), -ENOMEM. */
int socket_create(struct net *net, int family, int type, int protocol, struct socket **out);
/* Drops the file's reference: orderly close in the background (or reset, SO_LINGER 0).  Does not block. */
void socket_close(struct socket *s);
int socket_bind(struct socket *s, const struct net_addr *addr);
int socket_listen(struct socket *s, int backlog);
/* Blocks.  The new socket inherits nothing but the local address.  -EINTR if a signal came. */
int socket_accept(struct socket *s, u32 flags, u64 deadline_ns, struct socket **out, struct net_addr *peer);
/* Blocks; -EINPROGRESS with NET_NONBLOCK. */
int socket_connect(struct socket *s, const struct net_addr *addr, u32 flags, u64 deadline_ns);
/* Block.  Bytes moved (short counts as on Linux), 0 at the end of the stream, -EPIPE after a shutdown for writing
 * (the caller raises SIGPIPE), -ECONNRESET, -EAGAIN, -EFAULT.  peer may be NULL. */
i64 socket_send(struct socket *s, const struct net_buf *buf, u32 flags, const struct net_addr *to, u64 deadline_ns);
i64 socket_recv(struct socket *s, const struct net_buf *buf, u32 flags, struct net_addr *from, u64 deadline_ns);
int socket_shutdown(struct socket *s, int how); /* 0 read, 1 write, 2 both */
int socket_local_addr(struct socket *s, struct net_addr *out);
int socket_peer_addr(struct socket *s, struct net_addr *out);
/* Linux level/name/value; value of at most 64 bytes.  -ENOPROTOOPT for unknown ones. */
int socket_set_option(struct socket *s, int level, int name, const void *value, u32 len);
int socket_get_option(struct socket *s, int level, int name, void *value, u32 *len);
i64 socket_bytes_readable(struct socket *s); /* FIONREAD */

/* Readiness, POLLIN/POLLOUT/POLLERR/POLLHUP/POLLRDHUP bits of Linux. */
u32 socket_poll(struct socket *s);
/* fn(arg, events, batch) on every change towards readiness, under the instance lock (RANK_NET), interrupts off: it may only take
 * locks of higher rank and wake threads through the batch.  One observer per socket (the file object). */
void socket_set_observer(struct socket *s, void (*fn)(void *arg, u32 events, struct wake_batch *batch), void *arg);

/* ---- counters ---- */

/* Emits every counter: name (Prometheus style without prefix), labels ("queue=\"0\"" or ""), value. */
void net_for_each_counter(void (*emit)(const char *name, const char *labels, u64 value, void *arg), void *arg);

#endif
