/* lwIP's tcp_out.c over the connection table, and an enqueue of our own.
 *
 * tcp_write() copies from memory that must not fault and cannot take over a buffer.  Here the socket layer fills a packet with
 * the application's bytes first (a bad address is seen before anything is queued), and the packet itself becomes the
 * segment: headers are written in front of the payload, and it is kept until acknowledged. */
#include "net/stack/port/demux.h"

#include "core/tcp_out.c"

#include "net/stack/port/port.h"

static bool may_send(const struct tcp_pcb *pcb)
{
    return pcb->state == ESTABLISHED || pcb->state == CLOSE_WAIT || pcb->state == SYN_SENT || pcb->state == SYN_RCVD;
}

static struct tcp_seg *last_unsent(const struct tcp_pcb *pcb)
{
    struct tcp_seg *seg = pcb->unsent;
    while (seg != NULL && seg->next != NULL) {
        seg = seg->next;
    }
    return seg;
}

uint16_t port_tcp_segment_size(const struct tcp_pcb *pcb)
{
    /* Never more than half of the largest window that the peer has offered (RFC 1122, 4.2.3.4). */
    u16_t half = TCPWND_MIN16(pcb->snd_wnd_max / 2);
    return half != 0 && half < pcb->mss ? half : pcb->mss;
}

err_t port_tcp_enqueue(struct tcp_pcb *pcb, struct pbuf *p, bool more)
{
    u16_t len = p->tot_len;
    if (!may_send(pcb)) {
        return ERR_CONN;
    }
    if (len > pcb->snd_buf || pcb->snd_queuelen >= TCP_SND_QUEUELEN) {
        return ERR_MEM;
    }
    pbuf_ref(p); /* on failure the packet stays the caller's */
    struct tcp_seg *seg = tcp_create_segment(pcb, p, 0, pcb->snd_lbb, 0);
    if (seg == NULL) {
        return ERR_MEM;
    }
    pbuf_free(p);
    struct tcp_seg *last = last_unsent(pcb);
    if (last != NULL) {
        last->next = seg;
    } else {
        pcb->unsent = seg;
    }
    if (!more) {
        TCPH_SET_FLAG(seg->tcphdr, TCP_PSH);
    }
    pcb->snd_lbb += len;
    pcb->snd_buf -= len;
    pcb->snd_queuelen++;
    return ERR_OK;
}

uint32_t port_tcp_tail_room(struct tcp_pcb *pcb, uint8_t **where)
{
    struct tcp_seg *seg = last_unsent(pcb);
    if (seg == NULL || seg->len == 0 || !may_send(pcb) || (TCPH_FLAGS(seg->tcphdr) & (TCP_SYN | TCP_FIN)) != 0 ||
        seg->p->next != NULL || seg->p->ref != 1) {
        return 0;
    }
    u16_t size = port_tcp_segment_size(pcb);
    if (seg->len >= size) {
        return 0;
    }
    u32_t room = port_pbuf_room(seg->p);
    *where = (uint8_t *)seg->p->payload + seg->p->len;
    room = LWIP_MIN(room, (u32_t)(size - seg->len));
    return LWIP_MIN(room, pcb->snd_buf);
}

void port_tcp_tail_commit(struct tcp_pcb *pcb, uint32_t bytes)
{
    struct tcp_seg *seg = last_unsent(pcb);
    seg->p->len = (u16_t)(seg->p->len + bytes);
    seg->p->tot_len = (u16_t)(seg->p->tot_len + bytes);
    seg->len = (u16_t)(seg->len + bytes);
    TCPH_SET_FLAG(seg->tcphdr, TCP_PSH);
    pcb->snd_lbb += bytes;
    pcb->snd_buf -= bytes;
}
