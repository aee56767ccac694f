/* The connection table: lwIP finds a segment's connection by walking lists; this finds it by hash.
 *
 * Every control block on lwIP's active and TIME_WAIT lists is also in a hash table, and the two lists are kept doubly linked, so
 * that finding, moving to the front and removing take constant time.  lwIP's sources stay as they are: the macros
 * TCP_REG and TCP_RMV, through which they link control blocks, are replaced where the port includes these sources
 * (tcp.c, tcp_in.c, tcp_out.c of this folder), and tcp_input() is wrapped (demux_tcp_input):
 *
 *  - a hit is moved to the front of its list, where lwIP looks first;
 *  - on a miss lwIP is shown empty lists, so that it goes on to its listeners at once.
 *
 * lwIP's slow timer unlinks the connections that time out by hand; demux_relink() then repairs the back links. */
#ifndef WEIR_PORT_DEMUX_H
#define WEIR_PORT_DEMUX_H

#include <stdbool.h>

#include "lwip/priv/tcp_priv.h"

/* What the slots (ext_args) of a control block hold. */
enum demux_slot {
    DEMUX_SELF,      /* the control block, for the callback that its end calls */
    DEMUX_LIST,      /* which list it is on; of a listener: how many half-open connections it has */
    DEMUX_PREV,      /* in that list */
    DEMUX_HASH_NEXT, /* in its bucket */
    DEMUX_HALF_PREV, /* in the list of half-open connections, newest first */
    DEMUX_HALF_NEXT,
};

int demux_start(void); /* -ENOMEM */
/* The connection with these end points, in any state but LISTEN; NULL if there is none. */
struct tcp_pcb *demux_find(const ip_addr_t *local_ip, u16_t local_port, const ip_addr_t *remote_ip, u16_t remote_port);
/* TCP_REG and TCP_RMV. */
void demux_register(struct tcp_pcb **list, struct tcp_pcb *pcb);
void demux_unregister(struct tcp_pcb **list, struct tcp_pcb *pcb);
/* After tcp_slowtmr(). */
void demux_relink(void);
/* The hidden-list steps around lwIP's own tcp_input(). */
struct demux_hidden {
    struct tcp_pcb *active, *time_wait;
};
void demux_to_front(struct tcp_pcb *pcb);
void demux_hide(struct demux_hidden *h, bool time_wait_too);
void demux_unhide(const struct demux_hidden *h);
/* Oldest connection in TIME_WAIT, NULL if none. */
struct tcp_pcb *demux_oldest_time_wait(void);
/* Half-open connections: SYN received, handshake not finished. */
struct tcp_pcb *demux_oldest_half_open(void); /* NULL if none */
void demux_half_open_done(struct tcp_pcb *pcb);
u32_t demux_half_open_count(void);
u32_t demux_half_open_of(const struct tcp_pcb_listen *listener);
u32_t demux_active_count(void);
u32_t demux_time_wait_count(void);

#undef TCP_REG
#define TCP_REG(pcbs, npcb) demux_register((pcbs), (npcb))
#undef TCP_RMV
#define TCP_RMV(pcbs, npcb) demux_unregister((pcbs), (npcb))

#endif
