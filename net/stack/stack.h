/* The boundary between the kernel and one lwIP instance.
 *
 * lwIP and its port (net/stack/port) are linked into one position-independent image that imports nothing.  The kernel maps it
 * once per instance (net/stack/image.h), calls the image's entry point, and gets a table of operations; everything the
 * image needs comes through a table of services.  Both tables are all that either side knows of the other.
 *
 * Context: every operation runs under the instance's lock, interrupts off, and never blocks; services and notifications
 * (struct stack_env) are called from within operations, so under the same lock.  Errors are negative errno values.
 * Addresses are IPv4 in host byte order, ports in host byte order. */
#ifndef WEIR_NET_STACK_STACK_H
#define WEIR_NET_STACK_STACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "net/params.h"

#define STACK_ABI 4u

/* A piece of received or sent data: the head of lwIP's struct pbuf (the port asserts the layout). */
struct stack_buf {
    struct stack_buf *next; /* of the same packet or chain */
    uint8_t *data;
    uint16_t total; /* bytes in this and all following pieces */
    uint16_t len;   /* bytes in this piece */
};

enum packet_flags {
    PACKET_CSUM_OK = 1, /* received: the device vouches for the transport checksum */
};

/* A buffer of NET_PACKET_SIZE bytes: this header, then data.  While lwIP holds it, `buf` is a pbuf of lwIP's. */
struct packet {
    union {
        struct stack_buf buf;
        uint8_t stack_private[32];
    };
    struct packet *next;  /* queues of the kernel's */
    struct packet *more;  /* next buffer of the same frame */
    uint64_t due_ns;      /* wire: not to be seen before */
    uint16_t flags;       /* enum packet_flags */
    uint16_t start;       /* offset of the frame in data[] while no pbuf describes it */
    uint16_t len;         /* its bytes in this packet */
    uint16_t reserved;
    uint8_t data[];
};

#define PACKET_ROOM (NET_PACKET_SIZE - NET_PACKET_HEADER)

struct stack_tcp;      /* a connection or a listener */
struct stack_udp;

/* One end point pair; local first. */
struct stack_flow {
    uint32_t local_ip, remote_ip;
    uint16_t local_port, remote_port;
};

struct stack_counters {
    uint64_t tcp_active, tcp_time_wait, tcp_half_open; /* connections now */
    uint64_t syn_dropped_backlog, syn_dropped_limit, half_open_evicted, time_wait_evicted, time_wait_reused;
    uint64_t heap_bytes, heap_failures;
    uint64_t tcp_segments_in, tcp_segments_out, tcp_retransmits, tcp_checksum_errors, tcp_drops, tcp_resets_sent;
    uint64_t ip_drops, ip_errors, fragments_in, arp_in, arp_spoofs, udp_in, udp_out, udp_drops, icmp_in;
};

/* Services and notifications.  `self` is the first argument of all; `arg` is what the socket was made with. */
struct stack_env {
    uint32_t abi;
    void *self;

    void *(*alloc)(void *self, size_t bytes); /* 16-byte aligned, NULL if there is none */
    void (*free)(void *self, void *p);
    void (*packet_free)(void *self, struct packet *p);
    uint64_t (*now_ns)(void *self);
    uint64_t (*random)(void *self);
    void (*fail)(void *self, const char *message, const char *file, int line) __attribute__((noreturn));
    /* Sends an Ethernet frame; the chain stays the caller's.  false: no room (dropped, TCP sends it again). */
    bool (*output)(void *self, const struct stack_buf *frame);
    /* DHCP has an address (or lost it: ip 0). */
    void (*address_changed)(void *self, uint32_t ip, uint32_t mask, uint32_t gateway);

    /* May a listener take one more SYN?  pending: its half-open connections. */
    bool (*tcp_may_accept)(void *self, void *listener, uint32_t pending);
    /* A connection was established on a listener.  Returns the arg of the new connection; NULL to reset it. */
    void *(*tcp_established)(void *self, void *listener, struct stack_tcp *t, const struct stack_flow *flow);
    void (*tcp_connected)(void *self, void *arg);
    /* Data in order; the chain is the receiver's, to be returned by buf_free().  NULL: the peer has finished sending. */
    void (*tcp_received)(void *self, void *arg, struct stack_buf *chain);
    void (*tcp_sent)(void *self, void *arg, uint32_t bytes); /* acknowledged */
    /* The connection is gone, and with it its stack_tcp: -ECONNRESET, -ECONNREFUSED, -ETIMEDOUT, 0 (closed by both). */
    void (*tcp_failed)(void *self, void *arg, int error);
    /* A datagram; the chain is returned to lwIP by the caller afterwards. */
    void (*udp_received)(void *self, void *arg, const struct stack_buf *chain, uint32_t from_ip, uint16_t from_port);
};

enum stack_offload {
    STACK_CSUM_TX = 1, /* the device completes transport checksums */
    STACK_CSUM_IP = 2, /* the device needs no checksums at all, IP header included (wire) */
};

struct stack_config {
    uint8_t mac[6];
    uint16_t mtu;
    uint32_t offloads;     /* enum stack_offload */
    uint32_t index;        /* of the instance within its net */
    uint64_t secret[4];    /* keys of the ISN and of the connection table */
};

enum stack_tcp_option { STACK_TCP_NODELAY, STACK_TCP_KEEPALIVE, STACK_TCP_KEEPIDLE_S, STACK_TCP_KEEPINTVL_S, STACK_TCP_KEEPCNT };

struct stack_ops {
    uint32_t abi;
    uint32_t size; /* of this table */
    /* First call of all.  env must outlive the instance.  -ENOMEM, -EINVAL (ABI). */
    int (*start)(const struct stack_env *env, const struct stack_config *config);
    void (*set_address)(uint32_t ip, uint32_t mask, uint32_t gateway);
    int (*dhcp_start)(void);
    void (*dhcp_stop)(void); /* releases the lease */
    /* A received frame (packet->start, len; chained by `more` for frames of several buffers); the packet is lwIP's now. */
    void (*input)(struct packet *p);
    /* Handles up to budget loopback packets; true if some are left. */
    bool (*poll_loopback)(uint32_t budget);
    /* Does what is due; returns when to be called next on now_ns, UINT64_MAX if there is nothing to wait for. */
    uint64_t (*run_timers)(uint64_t now_ns);
    /* To be looked at, in the instance's memory, at the end of every hold of the lock: heads of the loopback queues (not
     * NULL: call poll_loopback), and when run_timers is due. */
    const struct stack_buf *const *loopback[2];
    const uint64_t *timers_due[2];

    void (*buf_free)(struct stack_buf *chain);
    /* Unused bytes behind the data of a piece; 0 if nobody may write there. */
    uint32_t (*buf_room)(const struct stack_buf *piece);

    /* ip 0: any.  -ENOMEM. */
    int (*tcp_listen)(void *arg, uint32_t ip, uint16_t port, struct stack_tcp **out);
    void (*tcp_unlisten)(struct stack_tcp *t);
    /* local_ip 0: the address of the route.  -EADDRINUSE (these four are in use), -ENETUNREACH, -ENOMEM.
     * tcp_connected or tcp_failed follows. */
    int (*tcp_connect)(void *arg, struct stack_flow *flow, struct stack_tcp **out);
    /* Bytes that one packet to this connection may carry. */
    uint32_t (*tcp_segment_size)(const struct stack_tcp *t);
    /* Bytes that fit behind the last segment not yet sent, and where they go; 0 if there is none. */
    uint32_t (*tcp_tail_room)(struct stack_tcp *t, uint8_t **where);
    void (*tcp_tail_commit)(struct stack_tcp *t, uint32_t bytes);
    /* Queues a packet (payload at data + start, at least NET_PACKET_HEADROOM before it).  more: no PSH.  The packet
     * is lwIP's on success.  -ENOMEM, -EPIPE. */
    int (*tcp_queue)(struct stack_tcp *t, struct packet *p, bool more);
    /* Sends what the windows allow. */
    void (*tcp_push)(struct stack_tcp *t);
    /* The application has taken bytes: opens the window. */
    void (*tcp_taken)(struct stack_tcp *t, uint32_t bytes);
    int (*tcp_shutdown_write)(struct stack_tcp *t);
    /* Orderly close in the background; no notification follows, t is invalid. */
    void (*tcp_close)(struct stack_tcp *t);
    /* Reset; same. */
    void (*tcp_abort)(struct stack_tcp *t);
    void (*tcp_set_option)(struct stack_tcp *t, enum stack_tcp_option option, uint32_t value);
    bool (*tcp_uses_flow)(const struct stack_flow *flow);

    int (*udp_open)(void *arg, uint32_t ip, uint16_t port, struct stack_udp **out);
    void (*udp_close)(struct stack_udp *u);
    /* Sends bytes of kernel memory.  from_port: source port.  -ENOMEM, -ENETUNREACH, -EMSGSIZE. */
    int (*udp_send)(struct stack_udp *u, const void *data, uint32_t bytes, uint32_t to_ip, uint16_t to_port);

    /* The address that packets to ip would carry; 0 without a route. */
    uint32_t (*route_source)(uint32_t ip);
    void (*counters)(struct stack_counters *out);
};

static inline bool stack_loopback_waiting(const struct stack_ops *ops)
{
    return *ops->loopback[0] != NULL || *ops->loopback[1] != NULL;
}

static inline uint64_t stack_timer_due(const struct stack_ops *ops)
{
    uint64_t a = *ops->timers_due[0], b = *ops->timers_due[1];
    return a < b ? a : b;
}

/* The image's entry point (its ELF entry address). */
typedef const struct stack_ops *(*stack_entry_fn)(void);

#endif
