/* Functions of the port that lwIP's own files call (LWIP_HOOK_FILENAME). */
#ifndef WEIR_PORT_HOOKS_H
#define WEIR_PORT_HOOKS_H

#include "lwip/ip_addr.h"

/* Initial sequence number by keyed hash: RFC 6528. */
u32_t port_tcp_isn(const ip_addr_t *local_ip, u16_t local_port, const ip_addr_t *remote_ip, u16_t remote_port);

#endif
