/* Internals of struct net. */
#ifndef WEIR_NET_NET_IMPL_H
#define WEIR_NET_NET_IMPL_H

#include "core/base/list.h"
#include "net/instance.h"
#include "net/net.h"
#include "net/toeplitz.h"

struct port_table {
    struct spinlock lock; /* RANK_SOCKET */
    struct list buckets[NET_PORT_BUCKETS]; /* sockets by local port: bound and listening ones */
};

struct net {
    u32 domain;
    u32 first_cpu, num_cpus;
    struct netdev *dev;
    u32 num_instances;
    struct instance *instances;
    u8 steering[NET_RSS_TABLE]; /* hash -> instance */
    struct toeplitz toeplitz;
    u32 ip, mask, gateway;      /* host byte order; written under the lock of instance 0 */
    struct thread *address_waiter;
    struct port_table tcp_ports, udp_ports;
};

extern struct net *net_domains[MAX_DOMAINS];

/* net.c: makes a net over a device (NULL: loopback only). */
int net_create(u32 domain, struct netdev *dev, u32 instances, const u8 key[TOEPLITZ_KEY_BYTES], struct net **out);
int net_configure(struct net *net, const struct net_config *config);
/* steer.c: the instance whose queue receives this flow. */
u32 net_flow_instance(const struct net *net, u32 remote_ip, u32 local_ip, u16 remote_port, u16 local_port);
/* virtio/net.c.  num_queues: wanted at most.  -ENODEV, -EINVAL (logged). */
int virtio_net_find(u32 num_queues, u32 first_cpu, u32 num_cpus, const u8 key[TOEPLITZ_KEY_BYTES], struct netdev **out);
void virtio_net_ready(struct netdev *dev); /* instances are there: interrupts may come */
/* instance.c: what ARCH_IPI_CALL on this CPU means (sched_ipi_call_hook). */
void wire_ipi_call(u32 cpu);

/* Socket side of an instance's counters etc.: socket.c */
void sockets_init(void);
void sockets_for_each_counter(void (*emit)(const char *name, const char *labels, u64 value, void *arg), void *arg);

#endif
