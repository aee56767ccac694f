/* The image's entry point and its table of operations. */
#include "net/stack/port/demux.h"
#include "net/stack/port/port.h"

#include <string.h>

#include "lwip/dhcp.h"
#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/stats.h"
#include "netif/ethernet.h"

struct port port;

void port_fail(const char *message, const char *file, int line)
{
    port.env->fail(port.env->self, message, file, line);
}

uint64_t port_random(void)
{
    return port.env->random(port.env->self);
}

static void make_hostname(void)
{
    memcpy(port.hostname, "weir", 5);
}

static struct stack_ops ops;

static const struct stack_buf *const *loopback_head(struct netif *netif)
{
    return (const struct stack_buf *const *)(void *)&netif->loop_first;
}

static int op_start(const struct stack_env *env, const struct stack_config *config)
{
    if (env->abi != STACK_ABI) {
        return -PORT_EINVAL;
    }
    port.env = env;
    port.config = *config;
    make_hostname();
    port_timers_start();
    int error = demux_start();
    if (error != 0) {
        return error;
    }
    lwip_init();
    port.loop = netif_list; /* the only one so far */
    ops.loopback[0] = loopback_head(port.loop);
    ops.loopback[1] = loopback_head(&port.netif);
    if (netif_add_noaddr(&port.netif, NULL, port_netif_init, ethernet_input) == NULL) {
        return -PORT_ENOMEM;
    }
    netif_set_default(&port.netif);
    netif_set_up(&port.netif);
    return 0;
}

static void op_set_address(uint32_t ip, uint32_t mask, uint32_t gateway)
{
    ip4_addr_t a = { lwip_htonl(ip) }, m = { lwip_htonl(mask) }, g = { lwip_htonl(gateway) };
    netif_set_addr(&port.netif, &a, &m, &g);
}

static int op_dhcp_start(void)
{
    port.dhcp_on = true;
    port_slow_timer_needed();
    if (dhcp_start(&port.netif) != ERR_OK) {
        port.dhcp_on = false;
        return -PORT_ENOMEM;
    }
    return 0;
}

static void op_dhcp_stop(void)
{
    if (port.dhcp_on) {
        port.dhcp_on = false;
        dhcp_release_and_stop(&port.netif);
    }
}

static void op_buf_free(struct stack_buf *chain)
{
    pbuf_free((struct pbuf *)(void *)chain);
}

static uint32_t op_buf_room(const struct stack_buf *piece)
{
    const struct pbuf *p = (const struct pbuf *)(const void *)piece;
    return p->ref == 1 ? port_pbuf_room(p) : 0;
}

static uint32_t op_route_source(uint32_t ip)
{
    ip4_addr_t to = { lwip_htonl(ip) };
    struct netif *netif = ip4_route(&to);
    return netif != NULL ? lwip_ntohl(netif_ip4_addr(netif)->addr) : 0;
}

static void op_counters(struct stack_counters *out)
{
    *out = port.counters;
    out->tcp_active = demux_active_count();
    out->tcp_time_wait = demux_time_wait_count();
    out->tcp_half_open = demux_half_open_count();
    out->heap_bytes = port_heap_bytes;
    out->heap_failures = port_heap_failures;
    out->tcp_segments_in = lwip_stats.tcp.recv;
    out->tcp_segments_out = lwip_stats.tcp.xmit;
    out->tcp_retransmits = lwip_stats.mib2.tcpretranssegs;
    out->tcp_resets_sent = lwip_stats.mib2.tcpoutrsts;
    out->tcp_checksum_errors = lwip_stats.tcp.chkerr;
    out->tcp_drops = lwip_stats.tcp.drop;
    out->ip_drops = lwip_stats.ip.drop + lwip_stats.ip_frag.drop;
    out->ip_errors = lwip_stats.ip.chkerr + lwip_stats.ip.lenerr + lwip_stats.ip.err + lwip_stats.ip.proterr;
    out->udp_drops += lwip_stats.udp.drop;
}

/* Filled by start(): lwIP's loopback interface is a static of its own, found by its index. */
static struct stack_ops ops = {
    .abi = STACK_ABI,
    .size = sizeof(struct stack_ops),
    .start = op_start,
    .set_address = op_set_address,
    .dhcp_start = op_dhcp_start,
    .dhcp_stop = op_dhcp_stop,
    .input = port_input,
    .poll_loopback = port_poll_loopback,
    .run_timers = port_run_timers,
    .timers_due = { &port.next_tcp_ns, &port.next_slow_ns },
    .buf_free = op_buf_free,
    .buf_room = op_buf_room,
    .tcp_listen = port_tcp_listen,
    .tcp_unlisten = port_tcp_unlisten,
    .tcp_connect = port_tcp_connect,
    .tcp_segment_size = port_op_segment_size,
    .tcp_tail_room = port_op_tail_room,
    .tcp_tail_commit = port_op_tail_commit,
    .tcp_queue = port_tcp_queue,
    .tcp_push = port_tcp_push,
    .tcp_taken = port_tcp_taken,
    .tcp_shutdown_write = port_tcp_shutdown_write,
    .tcp_close = port_tcp_close,
    .tcp_abort = port_tcp_abort,
    .tcp_set_option = port_tcp_set_option,
    .tcp_uses_flow = port_tcp_uses_flow,
    .udp_open = port_udp_open,
    .udp_close = port_udp_close,
    .udp_send = port_udp_send,
    .route_source = op_route_source,
    .counters = op_counters,
};

/* The only symbol that the outside knows: the image's ELF entry. */
const struct stack_ops *stack_image_entry(void) __attribute__((used));
const struct stack_ops *stack_image_entry(void)
{
    return &ops;
}
