/* A packet of the kernel's as a pbuf of lwIP's: the pbuf lies in the packet's header. */
#include "net/stack/port/port.h"

_Static_assert(sizeof(struct pbuf_custom) <= sizeof(((struct packet *)0)->stack_private), "pbuf_custom fits into a packet");
_Static_assert(offsetof(struct packet, data) == NET_PACKET_HEADER, "packet header size");
_Static_assert(offsetof(struct stack_buf, next) == offsetof(struct pbuf, next) &&
                   offsetof(struct stack_buf, data) == offsetof(struct pbuf, payload) &&
                   offsetof(struct stack_buf, total) == offsetof(struct pbuf, tot_len) &&
                   offsetof(struct stack_buf, len) == offsetof(struct pbuf, len),
               "struct stack_buf is the head of struct pbuf");

static void free_packet(struct pbuf *p)
{
    port.env->packet_free(port.env->self, (struct packet *)(void *)p);
}

struct pbuf *port_pbuf_of_packet(struct packet *p)
{
    uint16_t start = p->start, len = p->len;
    struct pbuf_custom *c = (struct pbuf_custom *)(void *)p;
    /* PBUF_RAM: structure and data are one piece, so that headers may be written in front of the payload. */
    struct pbuf *b = pbuf_alloced_custom(PBUF_RAW, len, PBUF_RAM, c, p->data + start, (u16_t)(PACKET_ROOM - start));
    c->custom_free_function = free_packet;
    return b;
}

uint32_t port_pbuf_room(const struct pbuf *p)
{
    if ((p->flags & PBUF_FLAG_IS_CUSTOM) == 0) {
        return 0;
    }
    const struct pbuf_custom *c = (const struct pbuf_custom *)p;
    if (c->custom_free_function != free_packet) {
        return 0;
    }
    const uint8_t *end = (const uint8_t *)p + NET_PACKET_SIZE;
    return (uint32_t)(end - ((const uint8_t *)p->payload + p->len));
}
