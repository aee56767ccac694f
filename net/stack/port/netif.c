/* The instance's Ethernet interface: frames in, frames out, loopback, addresses. */
#include "net/stack/port/port.h"

#include <string.h>

#include "lwip/etharp.h"
#include "lwip/prot/ethernet.h"
#include "lwip/prot/etharp.h"
#include "netif/ethernet.h"

static err_t link_output(struct netif *netif, struct pbuf *p)
{
    LWIP_UNUSED_ARG(netif);
    return port.env->output(port.env->self, (const struct stack_buf *)(const void *)p) ? ERR_OK : ERR_MEM;
}

static err_t ip4_to_link(struct netif *netif, struct pbuf *p, const ip4_addr_t *to)
{
    if (port.next_slow_ns == UINT64_MAX) {
        port_slow_timer_needed(); /* the ARP entry that this uses must age */
    }
    return etharp_output(netif, p, to);
}

static void status_changed(struct netif *netif)
{
    if (port.dhcp_on) {
        port.env->address_changed(port.env->self, lwip_ntohl(netif_ip4_addr(netif)->addr),
                                  lwip_ntohl(netif_ip4_netmask(netif)->addr), lwip_ntohl(netif_ip4_gw(netif)->addr));
    }
}

/* What the stack computes and checks itself; the rest is the device's. */
static u16_t checksums(bool received_ok)
{
    u16_t flags = NETIF_CHECKSUM_ENABLE_ALL;
    if ((port.config.offloads & STACK_CSUM_IP) != 0) {
        return NETIF_CHECKSUM_GEN_ICMP;
    }
    if ((port.config.offloads & STACK_CSUM_TX) != 0) {
        flags = (u16_t)(flags & ~(NETIF_CHECKSUM_GEN_TCP | NETIF_CHECKSUM_GEN_UDP));
    }
    if (received_ok) {
        flags = (u16_t)(flags & ~(NETIF_CHECKSUM_CHECK_TCP | NETIF_CHECKSUM_CHECK_UDP));
    }
    return flags;
}

err_t port_netif_init(struct netif *netif)
{
    netif->name[0] = 'e';
    netif->name[1] = 'n';
    netif->output = ip4_to_link;
    netif->linkoutput = link_output;
    netif->mtu = port.config.mtu;
    netif->hwaddr_len = ETH_HWADDR_LEN;
    memcpy(netif->hwaddr, port.config.mac, ETH_HWADDR_LEN);
    netif->flags = NETIF_FLAG_BROADCAST | NETIF_FLAG_ETHARP | NETIF_FLAG_ETHERNET | NETIF_FLAG_LINK_UP;
    netif->hostname = port.hostname;
    netif_set_status_callback(netif, status_changed);
    NETIF_SET_CHECKSUM_CTRL(netif, checksums(false));
    return ERR_OK;
}

/* Somebody else claims our address: counted; lwIP itself ignores the claim. */
static void look_for_spoof(const struct pbuf *p)
{
    if (p->len < SIZEOF_ETH_HDR + SIZEOF_ETHARP_HDR) {
        return;
    }
    const struct eth_hdr *eth = (const struct eth_hdr *)p->payload;
    if (eth->type != PP_HTONS(ETHTYPE_ARP)) {
        if (eth->type == PP_HTONS(ETHTYPE_IP)) {
            const struct ip_hdr *ip = (const struct ip_hdr *)(const void *)((const uint8_t *)p->payload + SIZEOF_ETH_HDR);
            if ((IPH_OFFSET(ip) & PP_HTONS(IP_OFFMASK | IP_MF)) != 0) {
                port.counters.fragments_in++;
                port_slow_timer_needed();
            } else if (IPH_PROTO(ip) == IP_PROTO_ICMP) {
                port.counters.icmp_in++;
            }
        }
        return;
    }
    const struct etharp_hdr *arp =
        (const struct etharp_hdr *)(const void *)((const uint8_t *)p->payload + SIZEOF_ETH_HDR);
    port.counters.arp_in++;
    port_slow_timer_needed();
    u32_t sender;
    memcpy(&sender, &arp->sipaddr, sizeof(sender));
    if (sender != 0 && sender == netif_ip4_addr(&port.netif)->addr &&
        memcmp(&arp->shwaddr, port.netif.hwaddr, ETH_HWADDR_LEN) != 0) {
        port.counters.arp_spoofs++;
    }
}

void port_input(struct packet *p)
{
    bool csum_ok = (p->flags & PACKET_CSUM_OK) != 0;
    struct packet *rest = p->more;
    struct pbuf *b = port_pbuf_of_packet(p);
    while (rest != NULL) {
        struct packet *next = rest->more;
        pbuf_cat(b, port_pbuf_of_packet(rest));
        rest = next;
    }
    look_for_spoof(b);
    NETIF_SET_CHECKSUM_CTRL(&port.netif, checksums(csum_ok));
    if (ethernet_input(b, &port.netif) != ERR_OK) {
        pbuf_free(b);
    }
}

/* netif_poll() for one packet: lwIP's handles all there are, and those that these cause. */
static void poll_one(struct netif *netif)
{
    struct pbuf *first = netif->loop_first, *last = first;
    u16_t pieces = 1;
    while (last->len != last->tot_len) {
        last = last->next;
        pieces++;
    }
    netif->loop_cnt_current = (u16_t)(netif->loop_cnt_current - pieces);
    if (last == netif->loop_last) {
        netif->loop_first = netif->loop_last = NULL;
    } else {
        netif->loop_first = last->next;
    }
    last->next = NULL;
    first->if_idx = netif_get_index(netif);
    if (ip_input(first, netif) != ERR_OK) {
        pbuf_free(first);
    }
}

bool port_poll_loopback(uint32_t budget)
{
    struct netif *netifs[] = { port.loop, &port.netif };
    /* What only went through memory needs no checksum. */
    NETIF_SET_CHECKSUM_CTRL(&port.netif, checksums(true));
    for (u32_t i = 0; i < LWIP_ARRAYSIZE(netifs); i++) {
        for (; netifs[i]->loop_first != NULL; budget--) {
            if (budget == 0) {
                return true;
            }
            poll_one(netifs[i]);
        }
    }
    return port.loop->loop_first != NULL;
}
