/* lwIP's tcp_in.c behind the connection table and the limits on new connections. */
#include "net/stack/port/demux.h"

#define tcp_input lwip_tcp_input
void lwip_tcp_input(struct pbuf *p, struct netif *inp);
#include "core/tcp_in.c"
#undef tcp_input

#include "net/stack/port/port.h"

static struct tcp_pcb_listen *find_listener(u16_t number)
{
    struct tcp_pcb_listen *l = tcp_listen_pcbs.listen_pcbs;
    while (l != NULL && l->local_port != number) {
        l = l->next;
    }
    return l;
}

/* A SYN that would make a connection: false if a limit says no (the peer will send it again). */
static bool admit(u16_t number)
{
    struct tcp_pcb_listen *l = find_listener(number);
    if (l == NULL) {
        return true; /* lwIP answers with a reset */
    }
    if (demux_active_count() >= NET_TCP_LIMIT) {
        port.counters.syn_dropped_limit++;
        return false;
    }
    if (!port.env->tcp_may_accept(port.env->self, l->callback_arg, demux_half_open_of(l))) {
        port.counters.syn_dropped_backlog++;
        return false;
    }
    if (demux_half_open_count() >= NET_SYN_LIMIT) {
        tcp_abandon(demux_oldest_half_open(), 0);
        port.counters.half_open_evicted++;
    }
    return true;
}

/* RFC 6191 in its older form (RFC 1122, 4.2.2.13): a SYN above the last sequence number reuses a connection in TIME_WAIT. */
static bool reuses_time_wait(const struct tcp_pcb *pcb, const struct tcp_hdr *hdr)
{
    return (TCPH_FLAGS(hdr) & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN &&
           TCP_SEQ_GT(lwip_ntohl(hdr->seqno), pcb->rcv_nxt);
}

static void input_hidden(struct pbuf *p, struct netif *inp, bool time_wait_too)
{
    struct demux_hidden hidden;
    demux_hide(&hidden, time_wait_too);
    lwip_tcp_input(p, inp);
    demux_unhide(&hidden);
}

/* Called by lwIP's IP layer in place of its own tcp_input(). */
void tcp_input(struct pbuf *p, struct netif *inp)
{
    if (p->len < TCP_HLEN) {
        input_hidden(p, inp, true); /* counted and dropped there */
        return;
    }
    const struct tcp_hdr *hdr = (const struct tcp_hdr *)p->payload;
    u16_t dest = lwip_ntohs(hdr->dest);
    struct tcp_pcb *pcb = demux_find(ip_current_dest_addr(), dest, ip_current_src_addr(), lwip_ntohs(hdr->src));
    if (pcb != NULL && pcb->state != TIME_WAIT) {
        demux_to_front(pcb);
        lwip_tcp_input(p, inp);
        if (demux_time_wait_count() > NET_TIME_WAIT_LIMIT) {
            struct tcp_pcb *oldest = demux_oldest_time_wait();
            tcp_pcb_remove(&tcp_tw_pcbs, oldest);
            tcp_free(oldest);
            port.counters.time_wait_evicted++;
        }
        return;
    }
    if (pcb != NULL) {
        if (!reuses_time_wait(pcb, hdr)) {
            demux_to_front(pcb);
            input_hidden(p, inp, false);
            return;
        }
        tcp_pcb_remove(&tcp_tw_pcbs, pcb);
        tcp_free(pcb);
        port.counters.time_wait_reused++;
    }
    if ((TCPH_FLAGS(hdr) & (TCP_SYN | TCP_ACK | TCP_RST)) == TCP_SYN && !admit(dest)) {
        pbuf_free(p);
        return;
    }
    input_hidden(p, inp, true);
}
