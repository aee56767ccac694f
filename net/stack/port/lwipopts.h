/* lwIP's options for one instance.  What is not set here has lwIP's default. */
#ifndef WEIR_LWIPOPTS_H
#define WEIR_LWIPOPTS_H

#include "net/params.h"

/* One caller at a time (the instance lock), raw API only. */
#define NO_SYS                      1
#define SYS_LIGHTWEIGHT_PROT        0
#define LWIP_NETCONN                0
#define LWIP_SOCKET                 0

/* Timers are ours (port/timers.c): nothing ticks in an idle instance. */
#define LWIP_TIMERS                 0
#define LWIP_TIMERS_CUSTOM          1

/* All memory comes from the kernel; the limits are ours (port/memory.c). */
#define MEM_LIBC_MALLOC             1
#define MEMP_MEM_MALLOC             1
#define MEM_ALIGNMENT               16
#define mem_clib_malloc             port_malloc
#define mem_clib_calloc             port_calloc
#define mem_clib_free               port_free
#define LWIP_SUPPORT_CUSTOM_PBUF    1
/* Never allocated from: received packets are the kernel's. */
#define PBUF_POOL_SIZE              4
#define PBUF_POOL_BUFSIZE           256
/* Room for the virtio header before each frame. */
#define PBUF_LINK_ENCAPSULATION_HLEN 16

#define LWIP_IPV4                   1
#define LWIP_IPV6                   0
#define LWIP_ARP                    1
#define ARP_TABLE_SIZE              64
#define ARP_QUEUEING                1
#define ARP_QUEUE_LEN               16
#define ETHARP_SUPPORT_STATIC_ENTRIES 0
#define ETHARP_TRUST_IP_MAC         0
#define IP_REASSEMBLY               1
#define IP_REASS_MAX_PBUFS          64
#define IP_REASS_MAXAGE             5
#define IP_FRAG                     1
#define IP_FORWARD                  0
#define IP_OPTIONS_ALLOWED          0
#define LWIP_ICMP                   1
#define LWIP_BROADCAST_PING         0
#define LWIP_MULTICAST_PING         0
#define LWIP_RAW                    0
#define LWIP_IGMP                   0
#define LWIP_DNS                    0
#define LWIP_SNMP                   0
#define LWIP_DHCP                   1
#define DHCP_DOES_ARP_CHECK         0
#define LWIP_DHCP_BOOTP_FILE        0
#define LWIP_NETIF_HOSTNAME         1
#define LWIP_AUTOIP                 0
#define LWIP_UDP                    1
#define LWIP_NETBUF_RECVINFO        0

#define LWIP_NETIF_STATUS_CALLBACK  1
#define LWIP_NETIF_LOOPBACK         1
#define LWIP_HAVE_LOOPIF            1
#define LWIP_LOOPBACK_MAX_PBUFS     0xfff0
#define LWIP_LOOPIF_MULTICAST       0
#define LWIP_NETIF_TX_SINGLE_PBUF   0
#define LWIP_SINGLE_NETIF           0

#define LWIP_TCP                    1
#define TCP_MSS                     (NET_MTU - 40)
#define LWIP_WND_SCALE              1
#define TCP_RCV_SCALE               3
#define TCP_WND                     NET_TCP_WINDOW
/* Larger than the socket layer's own limit: that one decides. */
#define TCP_SND_BUF                 (NET_TCP_SEND_BUFFER + (64 * 1024))
#define TCP_SND_QUEUELEN            8192
#define TCP_SNDLOWAT                (2 * TCP_MSS + 1)
#define TCP_SNDQUEUELOWAT           16
/* Our own enqueue (port/tcp_out.c) fills the last segment itself. */
#define TCP_OVERSIZE                0
#define TCP_QUEUE_OOSEQ             1
#define TCP_OOSEQ_MAX_BYTES         NET_TCP_WINDOW
#define TCP_OOSEQ_MAX_PBUFS         256
#define LWIP_TCP_SACK_OUT           1
#define LWIP_TCP_MAX_SACK_NUM       3
#define LWIP_TCP_KEEPALIVE          1
#define LWIP_TCP_TIMESTAMPS         0
/* The backlog is the socket layer's: lwIP's counts in a byte. */
#define TCP_LISTEN_BACKLOG          0
#define TCP_MSL                     NET_TCP_MSL_MS
#define TCP_TMR_INTERVAL            NET_TCP_TICK_MS
#define LWIP_TCP_RTO_TIME           1000
#define TCP_CALCULATE_EFF_SEND_MSS  1
#define SO_REUSE                    1
#define LWIP_CALLBACK_API           1
/* Slots of a control block that the connection table uses (port/demux.h). */
#define LWIP_TCP_PCB_NUM_EXT_ARGS   6

#define LWIP_HOOK_FILENAME          "net/stack/port/hooks.h"
#define LWIP_HOOK_TCP_ISN           port_tcp_isn

#define LWIP_CHECKSUM_CTRL_PER_NETIF 1
#define LWIP_CHKSUM                 port_checksum
#define LWIP_CHECKSUM_ON_COPY       0

#define LWIP_STATS                  1
#define LWIP_STATS_LARGE            1
#define MEM_STATS                   0
#define MEMP_STATS                  0
#define SYS_STATS                   0
/* Retransmissions and resets are counted there; nothing of SNMP is compiled. */
#define MIB2_STATS                  1

/* The pool sizes that lwIP would check mean nothing here. */
#define LWIP_DISABLE_TCP_SANITY_CHECKS 1
#define LWIP_DISABLE_MEMP_SANITY_CHECKS 1

#endif
