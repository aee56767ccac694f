/* TCP operations and notifications: lwIP's raw API on one side, struct stack_ops and stack_env on the other. */
#include "net/stack/port/demux.h"
#include "net/stack/port/port.h"

static struct tcp_pcb *pcb_of(struct stack_tcp *t)
{
    return (struct tcp_pcb *)(void *)t;
}

static struct stack_tcp *handle_of(struct tcp_pcb *pcb)
{
    return (struct stack_tcp *)(void *)pcb;
}

/* ---- notifications ---- */

static err_t on_received(void *arg, struct tcp_pcb *pcb, struct pbuf *p, err_t err)
{
    LWIP_UNUSED_ARG(pcb);
    LWIP_UNUSED_ARG(err);
    port.env->tcp_received(port.env->self, arg, (struct stack_buf *)(void *)p);
    return ERR_OK;
}

static err_t on_sent(void *arg, struct tcp_pcb *pcb, u16_t bytes)
{
    LWIP_UNUSED_ARG(pcb);
    port.env->tcp_sent(port.env->self, arg, bytes);
    return ERR_OK;
}

/* An abort while connecting is a time-out: lwIP gave up sending SYNs. */
static void on_error(void *arg, err_t err)
{
    int error = err == ERR_RST ? -PORT_ECONNRESET : err == ERR_CLSD ? 0 : -PORT_ETIMEDOUT;
    if (arg != NULL) {
        port.env->tcp_failed(port.env->self, arg, error);
    }
}

static void adopt(struct tcp_pcb *pcb, void *arg)
{
    tcp_arg(pcb, arg);
    tcp_recv(pcb, on_received);
    tcp_sent(pcb, on_sent);
    tcp_err(pcb, on_error);
}

static err_t on_accept(void *arg, struct tcp_pcb *pcb, err_t err)
{
    if (pcb == NULL || err != ERR_OK) {
        port.counters.syn_dropped_limit++; /* lwIP had no memory for the connection */
        return ERR_OK;
    }
    demux_half_open_done(pcb);
    struct stack_flow flow = {
        .local_ip = lwip_ntohl(ip4_addr_get_u32(ip_2_ip4(&pcb->local_ip))),
        .remote_ip = lwip_ntohl(ip4_addr_get_u32(ip_2_ip4(&pcb->remote_ip))),
        .local_port = pcb->local_port,
        .remote_port = pcb->remote_port,
    };
    void *conn = port.env->tcp_established(port.env->self, arg, handle_of(pcb), &flow);
    if (conn == NULL) {
        tcp_abort(pcb);
        return ERR_ABRT;
    }
    adopt(pcb, conn);
    return ERR_OK;
}

static err_t on_connected(void *arg, struct tcp_pcb *pcb, err_t err)
{
    LWIP_UNUSED_ARG(pcb);
    LWIP_UNUSED_ARG(err); /* lwIP calls this with ERR_OK only */
    port.env->tcp_connected(port.env->self, arg);
    return ERR_OK;
}

/* ---- operations ---- */

int port_tcp_listen(void *arg, uint32_t ip, uint16_t number, struct stack_tcp **out)
{
    struct tcp_pcb *pcb = tcp_new();
    if (pcb == NULL) {
        return -PORT_ENOMEM;
    }
    ip_addr_t addr = IPADDR4_INIT(lwip_htonl(ip));
    ip_set_option(pcb, SOF_REUSEADDR); /* conflicts are the socket layer's to find */
    if (tcp_bind(pcb, &addr, number) != ERR_OK) {
        tcp_abort(pcb);
        return -PORT_EADDRINUSE;
    }
    struct tcp_pcb *listener = tcp_listen(pcb);
    if (listener == NULL) {
        tcp_abort(pcb);
        return -PORT_ENOMEM;
    }
    /* Not inherited by its connections. */
    ip_reset_option(listener, SOF_REUSEADDR);
    tcp_arg(listener, arg);
    tcp_accept(listener, on_accept);
    *out = handle_of(listener);
    return 0;
}

void port_tcp_unlisten(struct stack_tcp *t)
{
    (void)tcp_close(pcb_of(t)); /* of a listener: cannot fail */
}

bool port_tcp_uses_flow(const struct stack_flow *flow)
{
    ip_addr_t local = IPADDR4_INIT(lwip_htonl(flow->local_ip)), remote = IPADDR4_INIT(lwip_htonl(flow->remote_ip));
    return demux_find(&local, flow->local_port, &remote, flow->remote_port) != NULL;
}

int port_tcp_connect(void *arg, struct stack_flow *flow, struct stack_tcp **out)
{
    ip_addr_t remote = IPADDR4_INIT(lwip_htonl(flow->remote_ip));
    struct netif *route = ip_route(IP4_ADDR_ANY, &remote);
    if (route == NULL) {
        return -PORT_ENETUNREACH;
    }
    ip_addr_t local = IPADDR4_INIT(lwip_htonl(flow->local_ip));
    if (flow->local_ip == 0) {
        ip_addr_copy(local, *netif_ip_addr4(route));
        flow->local_ip = lwip_ntohl(ip4_addr_get_u32(ip_2_ip4(&local)));
    }
    if (demux_active_count() >= NET_TCP_LIMIT) {
        return -PORT_ENOMEM;
    }
    struct tcp_pcb *old = demux_find(&local, flow->local_port, &remote, flow->remote_port);
    if (old != NULL) {
        return -PORT_EADDRINUSE;
    }
    struct tcp_pcb *pcb = tcp_new();
    if (pcb == NULL) {
        return -PORT_ENOMEM;
    }
    /* tcp_bind() would walk all connections; the table has just answered. */
    ip_addr_copy(pcb->local_ip, local);
    pcb->local_port = flow->local_port;
    TCP_REG(&tcp_bound_pcbs, pcb);
    adopt(pcb, arg);
    err_t err = tcp_connect(pcb, &remote, flow->remote_port, on_connected);
    if (err != ERR_OK) {
        tcp_arg(pcb, NULL);
        tcp_abort(pcb);
        return err == ERR_RTE ? -PORT_ENETUNREACH : -PORT_ENOMEM;
    }
    *out = handle_of(pcb);
    return 0;
}

uint32_t port_op_segment_size(const struct stack_tcp *t)
{
    return port_tcp_segment_size((const struct tcp_pcb *)(const void *)t);
}

uint32_t port_op_tail_room(struct stack_tcp *t, uint8_t **where)
{
    return port_tcp_tail_room(pcb_of(t), where);
}

void port_op_tail_commit(struct stack_tcp *t, uint32_t bytes)
{
    port_tcp_tail_commit(pcb_of(t), bytes);
}

int port_tcp_queue(struct stack_tcp *t, struct packet *p, bool more)
{
    struct pbuf *b = port_pbuf_of_packet(p);
    err_t err = port_tcp_enqueue(pcb_of(t), b, more);
    return err == ERR_OK ? 0 : err == ERR_CONN ? -PORT_EPIPE : -PORT_ENOMEM;
}

void port_tcp_push(struct stack_tcp *t)
{
    (void)tcp_output(pcb_of(t)); /* what could not go out stays queued: the timers send it */
}

void port_tcp_taken(struct stack_tcp *t, uint32_t bytes)
{
    struct tcp_pcb *pcb = pcb_of(t);
    while (bytes > 0) {
        u16_t step = (u16_t)LWIP_MIN(bytes, 0xffffu);
        tcp_recved(pcb, step);
        bytes -= step;
    }
}

int port_tcp_shutdown_write(struct stack_tcp *t)
{
    return tcp_shutdown(pcb_of(t), 0, 1) == ERR_OK ? 0 : -PORT_ENOMEM;
}

static void forget(struct tcp_pcb *pcb)
{
    tcp_arg(pcb, NULL);
    tcp_recv(pcb, NULL); /* lwIP's own: discards data, answers */
    tcp_sent(pcb, NULL);
    tcp_err(pcb, NULL);
}

void port_tcp_close(struct stack_tcp *t)
{
    struct tcp_pcb *pcb = pcb_of(t);
    forget(pcb);
    if (tcp_close(pcb) != ERR_OK) {
        tcp_abort(pcb); /* no memory for the FIN: better a reset than a connection that nobody owns */
    }
}

void port_tcp_abort(struct stack_tcp *t)
{
    struct tcp_pcb *pcb = pcb_of(t);
    forget(pcb);
    tcp_abort(pcb);
}

void port_tcp_set_option(struct stack_tcp *t, enum stack_tcp_option option, uint32_t value)
{
    struct tcp_pcb *pcb = pcb_of(t);
    switch (option) {
    case STACK_TCP_NODELAY:
        if (value != 0) {
            tcp_nagle_disable(pcb);
        } else {
            tcp_nagle_enable(pcb);
        }
        break;
    case STACK_TCP_KEEPALIVE:
        if (value != 0) {
            ip_set_option(pcb, SOF_KEEPALIVE);
        } else {
            ip_reset_option(pcb, SOF_KEEPALIVE);
        }
        break;
    case STACK_TCP_KEEPIDLE_S:
        pcb->keep_idle = value * 1000;
        break;
    case STACK_TCP_KEEPINTVL_S:
        pcb->keep_intvl = value * 1000;
        break;
    case STACK_TCP_KEEPCNT:
        pcb->keep_cnt = value;
        break;
    }
}
