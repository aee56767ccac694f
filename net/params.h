/* Every tunable of the network, with its unit and the reason for its value.  Also included by the lwIP port, so: macros
 * only. */
#ifndef WEIR_NET_PARAMS_H
#define WEIR_NET_PARAMS_H

/* ---- packets ---- */

/* Bytes of one packet buffer, header included: half a page, so that a buffer never crosses one. */
#define NET_PACKET_SIZE 2048
/* Bytes of struct packet before the data. */
#define NET_PACKET_HEADER 64
/* Room kept before the payload of an outgoing packet: virtio header 12 + Ethernet 14 + IPv6 40 + TCP 20, rounded up. */
#define NET_PACKET_HEADROOM 96
/* Largest Ethernet frame without VLAN tag at the standard MTU. */
#define NET_MTU 1500
#define NET_ETH_HEADER 14
/* Packets an instance keeps for itself before it gives them back to the slab. */
#define NET_PACKET_POOL_KEEP 256
/* Packets that one instance may hold (receive rings, socket queues, segments): 64 Ki of them are 128 MiB. */
#define NET_PACKETS_PER_INSTANCE 65536

/* ---- receive path ---- */

/* Packets handled under one hold of the instance lock: 64 packets are about 150,000 instructions at worst; the more,
 * the fewer wakeup IPIs; the fewer, the shorter interrupts stay off. */
#define NET_POLL_BUDGET 64
/* Packets that other CPUs may have queued for one instance; more are dropped as a full receive ring would. */
#define NET_INQUEUE_LIMIT 2048
/* Loopback packets handled at the end of one socket call; more are left to the instance's deferred work. */
#define NET_LOOP_BUDGET 32

/* ---- instances ---- */

/* Connections (all states but TIME_WAIT) of one instance. */
#define NET_TCP_LIMIT 16384
/* Half-open connections of one instance: a SYN flood can hold that many; then the oldest gives way. */
#define NET_SYN_LIMIT 1024
/* Connections in TIME_WAIT of one instance; then the oldest gives way (RFC 1337 risks, bounded by the keyed ISNs). */
#define NET_TIME_WAIT_LIMIT 4096
/* lwIP's heap of one instance in bytes: segments, control blocks, loopback copies.  10,000 connections take 5 MiB. */
#define NET_STACK_HEAP_LIMIT (64u << 20)
/* A freed block of at most this many bytes is kept for the next allocation of its size. */
#define NET_STACK_CACHE_BYTES 2048
/* Step of the block sizes kept, in bytes. */
#define NET_STACK_CACHE_STEP 64
/* Blocks kept per size. */
#define NET_STACK_CACHE_KEEP 128
/* First size of an instance's connection table; doubles when it is full. */
#define NET_DEMUX_MIN_BUCKETS 256

/* ---- TCP ---- */

/* Receive window in bytes: 256 KiB fill 2 Gbit/s at 1 ms. */
#define NET_TCP_WINDOW (256 * 1024)
/* Bytes that a socket may hold unsent and unacknowledged. */
#define NET_TCP_SEND_BUFFER (256 * 1024)
/* What the application has read is reported to lwIP in steps of this many bytes (two full segments): small requests then
 * cost no window arithmetic each. */
#define NET_TCP_WINDOW_STEP (2 * 1460)
/* Maximum segment lifetime in milliseconds: TIME_WAIT takes twice that.  lwIP's 60 s starve a server that opens and
 * closes thousands of connections a second. */
#define NET_TCP_MSL_MS 5000
/* lwIP's timer tick in milliseconds (delayed ACKs; retransmission timers count two of them). */
#define NET_TCP_TICK_MS 100

/* ---- sockets ---- */

/* Sockets of the whole machine. */
#define NET_MAX_SOCKETS 65536
/* Largest listen backlog, in connections, and what listen(0) means. */
#define NET_MAX_BACKLOG 4096
#define NET_MIN_BACKLOG 1
/* A received piece of at most this many bytes moves into the last unread buffer if there is room. */
#define NET_COALESCE_BYTES 512
/* Bytes of datagrams that a UDP socket may hold unread. */
#define NET_UDP_RECV_BUFFER (256 * 1024)
/* Largest UDP payload in bytes (fragmented on its way out). */
#define NET_UDP_MAX 65507
/* Bytes copied to or from an application under one hold of the instance lock. */
#define NET_COPY_CHUNK (16 * 1024)
/* Ephemeral ports (Linux's default range). */
#define NET_EPHEMERAL_FIRST 32768
#define NET_EPHEMERAL_LAST 60999
/* Hash buckets of the table of bound sockets. */
#define NET_PORT_BUCKETS 256

/* ---- devices ---- */

/* Descriptors of a virtio ring that we use at most: 256 buffers of 2 KiB each way. */
#define NET_VIRTIO_RING 256
/* Steering table entries: what virtio-net and most hardware have. */
#define NET_RSS_TABLE 128
/* DHCP gives up after this many nanoseconds. */
#define NET_DHCP_TIMEOUT_NS (10ull * 1000 * 1000 * 1000)

#endif
