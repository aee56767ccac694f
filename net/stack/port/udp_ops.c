/* UDP operations over lwIP's raw API. */
#include "net/stack/port/port.h"

#include <string.h>

#include "lwip/udp.h"

static struct udp_pcb *pcb_of(struct stack_udp *u)
{
    return (struct udp_pcb *)(void *)u;
}

static void on_received(void *arg, struct udp_pcb *pcb, struct pbuf *p, const ip_addr_t *from, u16_t from_port)
{
    LWIP_UNUSED_ARG(pcb);
    port.counters.udp_in++;
    port.env->udp_received(port.env->self, arg, (const struct stack_buf *)(const void *)p,
                           lwip_ntohl(ip4_addr_get_u32(ip_2_ip4(from))), from_port);
    pbuf_free(p);
}

int port_udp_open(void *arg, uint32_t ip, uint16_t number, struct stack_udp **out)
{
    struct udp_pcb *pcb = udp_new();
    if (pcb == NULL) {
        return -PORT_ENOMEM;
    }
    ip_addr_t addr = IPADDR4_INIT(lwip_htonl(ip));
    ip_set_option(pcb, SOF_REUSEADDR);
    ip_set_option(pcb, SOF_BROADCAST); /* whether the application may is the socket layer's question */
    if (udp_bind(pcb, &addr, number) != ERR_OK) {
        udp_remove(pcb);
        return -PORT_EADDRINUSE;
    }
    udp_recv(pcb, on_received, arg);
    *out = (struct stack_udp *)(void *)pcb;
    return 0;
}

void port_udp_close(struct stack_udp *u)
{
    udp_remove(pcb_of(u));
}

int port_udp_send(struct stack_udp *u, const void *data, uint32_t bytes, uint32_t to_ip, uint16_t to_port)
{
    if (bytes > NET_UDP_MAX) {
        return -PORT_EMSGSIZE;
    }
    struct pbuf *p = pbuf_alloc(PBUF_TRANSPORT, (u16_t)bytes, PBUF_RAM);
    if (p == NULL) {
        return -PORT_ENOMEM;
    }
    memcpy(p->payload, data, bytes);
    ip_addr_t to = IPADDR4_INIT(lwip_htonl(to_ip));
    err_t err = udp_sendto(pcb_of(u), p, &to, to_port);
    pbuf_free(p);
    if (err != ERR_OK) {
        port.counters.udp_drops++;
        return err == ERR_RTE ? -PORT_ENETUNREACH : -PORT_ENOMEM;
    }
    port.counters.udp_out++;
    return 0;
}
