/* Internal to the port: state of the instance, and what its files offer each other. */
#ifndef WEIR_PORT_PORT_H
#define WEIR_PORT_PORT_H

#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/tcp.h"
#include "net/stack/stack.h"

/* One instance's state outside lwIP's own globals.  The image is mapped once per instance: this is per instance. */
struct port {
    const struct stack_env *env;
    struct stack_config config;
    struct netif netif;
    struct netif *loop;             /* lwIP's loopback interface */
    struct stack_counters counters; /* those that lwIP does not keep */
    uint64_t next_tcp_ns;           /* when lwIP's TCP tick is due; UINT64_MAX while no connection needs it */
    uint64_t next_slow_ns;          /* ARP, reassembly and DHCP ticks; UINT64_MAX while none is needed */
    bool dhcp_on;
    char hostname[8];
};
extern struct port port;

#define PORT_EINVAL 22
#define PORT_ENOMEM 12
#define PORT_EPIPE 32
#define PORT_EMSGSIZE 90
#define PORT_EADDRINUSE 98
#define PORT_ENETUNREACH 101
#define PORT_ECONNRESET 104
#define PORT_ETIMEDOUT 110
#define PORT_ECONNREFUSED 111

/* tcp_out.c: appends a packet as one segment; tail room: stack_ops.tcp_tail_room. */
err_t port_tcp_enqueue(struct tcp_pcb *pcb, struct pbuf *p, bool more);
uint32_t port_tcp_tail_room(struct tcp_pcb *pcb, uint8_t **where);
void port_tcp_tail_commit(struct tcp_pcb *pcb, uint32_t bytes);
uint16_t port_tcp_segment_size(const struct tcp_pcb *pcb);

/* packet.c: a packet as a pbuf. */
struct pbuf *port_pbuf_of_packet(struct packet *p);
/* Free bytes behind the data of a single pbuf that lies in a packet; 0 for any other. */
uint32_t port_pbuf_room(const struct pbuf *p);

/* tcp.c, udp.c: operations. */
int port_tcp_listen(void *arg, uint32_t ip, uint16_t number, struct stack_tcp **out);
void port_tcp_unlisten(struct stack_tcp *t);
int port_tcp_connect(void *arg, struct stack_flow *flow, struct stack_tcp **out);
uint32_t port_op_segment_size(const struct stack_tcp *t);
uint32_t port_op_tail_room(struct stack_tcp *t, uint8_t **where);
void port_op_tail_commit(struct stack_tcp *t, uint32_t bytes);
int port_tcp_queue(struct stack_tcp *t, struct packet *p, bool more);
void port_tcp_push(struct stack_tcp *t);
void port_tcp_taken(struct stack_tcp *t, uint32_t bytes);
int port_tcp_shutdown_write(struct stack_tcp *t);
void port_tcp_close(struct stack_tcp *t);
void port_tcp_abort(struct stack_tcp *t);
void port_tcp_set_option(struct stack_tcp *t, enum stack_tcp_option option, uint32_t value);
bool port_tcp_uses_flow(const struct stack_flow *flow);
int port_udp_open(void *arg, uint32_t ip, uint16_t number, struct stack_udp **out);
void port_udp_close(struct stack_udp *u);
int port_udp_send(struct stack_udp *u, const void *data, uint32_t bytes, uint32_t to_ip, uint16_t to_port);

/* timers.c */
void port_timers_start(void);
uint64_t port_run_timers(uint64_t now_ns);
uint64_t port_next_timer(void);
/* ARP, reassembly or DHCP have something that ages. */
void port_slow_timer_needed(void);

/* netif.c */
err_t port_netif_init(struct netif *netif);
void port_input(struct packet *p);
bool port_poll_loopback(uint32_t budget);

/* memory.c */
extern uint64_t port_heap_bytes, port_heap_failures;

#endif
