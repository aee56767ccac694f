/* Network identities: making them, their addresses, their end. */
#include "net/net.h"

#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "net/net_impl.h"
#include "net/random.h"

struct net *net_domains[MAX_DOMAINS];

static struct lock_class port_table_class = { .name = "net_ports", .rank = RANK_SOCKET };

struct net *net_of_domain(u32 domain)
{
    return domain < MAX_DOMAINS ? net_domains[domain] : NULL;
}

u32 net_address(struct net *net)
{
    return READ_ONCE(net->ip);
}

static void on_ipi_call(void)
{
    wire_ipi_call(this_cpu()->cpu);
}

static void port_table_init(struct port_table *t)
{
    spin_init(&t->lock, &port_table_class);
    for (u32 i = 0; i < NET_PORT_BUCKETS; i++) {
        list_init(&t->buckets[i]);
    }
}

int net_create(u32 domain, struct netdev *dev, u32 instances, const u8 key[TOEPLITZ_KEY_BYTES], struct net **out)
{
    struct sched_domain_info cpus = sched_domain(domain);
    struct net *net = kzalloc(sizeof(*net));
    struct instance *array = kzalloc(sizeof(*array) * instances);
    if (net == NULL || array == NULL) {
        kfree(net);
        kfree(array);
        log_error("net%u: not enough memory for %u instances", domain, instances);
        return -ENOMEM;
    }
    sockets_init();
    sched_ipi_call_hook = on_ipi_call;
    net->domain = domain;
    net->first_cpu = cpus.first_cpu;
    net->num_cpus = cpus.num_cpus;
    net->dev = dev;
    net->num_instances = instances;
    net->instances = array;
    for (u32 i = 0; i < NET_RSS_TABLE; i++) {
        net->steering[i] = (u8)(i % instances);
    }
    toeplitz_init(&net->toeplitz, key);
    port_table_init(&net->tcp_ports);
    port_table_init(&net->udp_ports);
    for (u32 i = 0; i < instances; i++) {
        int error = instance_init(&array[i], net, dev, i, cpus.first_cpu + i % cpus.num_cpus);
        if (error != 0) {
            log_error("net%u: instance %u cannot start: error %d", domain, i, -error);
            return error; /* not freed: earlier instances' images stay mapped; the machine has no network then */
        }
    }
    if (dev != NULL) {
        dev->instances = array;
    }
    net_domains[domain] = net;
    *out = net;
    return 0;
}

static int wait_for_dhcp(struct net *net)
{
    struct instance *first = &net->instances[0];
    struct wake_batch batch;
    u64 deadline = arch_clock_ns() + NET_DHCP_TIMEOUT_NS;
    irqflags_t flags = instance_enter(first, &batch);
    net->address_waiter = current_thread();
    int error = first->ops->dhcp_start();
    instance_leave(first, &batch, flags);
    enum park_result result = PARK_WOKEN;
    while (error == 0 && net_address(net) == 0 && result != PARK_TIMEOUT) {
        result = thread_park_uninterruptible(deadline, WAIT_SOCKET, (u64)(uintptr_t)net);
    }
    flags = instance_enter(first, &batch);
    net->address_waiter = NULL;
    instance_leave(first, &batch, flags);
    if (error == 0 && net_address(net) == 0) {
        log_error("net%u: no DHCP server answered within %llu s; give net.ip=ADDRESS/BITS, or check the network", net->domain,
                  (unsigned long long)(NET_DHCP_TIMEOUT_NS / NSEC_PER_SEC));
        return -ETIMEDOUT;
    }
    return error;
}

int net_configure(struct net *net, const struct net_config *config)
{
    if (config->mode == NET_DHCP) {
        return wait_for_dhcp(net);
    }
    if (config->mode == NET_STATIC) {
        for (u32 i = 0; i < net->num_instances; i++) {
            struct instance *in = &net->instances[i];
            struct wake_batch batch;
            irqflags_t flags = instance_enter(in, &batch);
            in->ops->set_address(config->ip, config->mask, config->gateway);
            instance_leave(in, &batch, flags);
        }
        net->mask = config->mask;
        net->gateway = config->gateway;
        WRITE_ONCE(net->ip, config->ip);
    }
    return 0;
}

static void random_key(u8 key[TOEPLITZ_KEY_BYTES])
{
    for (u32 i = 0; i < TOEPLITZ_KEY_BYTES; i += sizeof(u64)) {
        u64 word = net_random();
        memcpy(key + i, &word, sizeof(word));
    }
}

int net_init_domain(u32 domain, const struct net_config *config)
{
    struct sched_domain_info cpus = sched_domain(domain);
    u8 key[TOEPLITZ_KEY_BYTES];
    struct netdev *dev = NULL;
    struct net *net;
    random_key(key);
    u32 wanted = config->queues != 0 ? MIN(config->queues, cpus.num_cpus) : cpus.num_cpus;
    int found = config->mode == NET_NONE ? -ENODEV : virtio_net_find(wanted, cpus.first_cpu, cpus.num_cpus, key, &dev);
    u32 instances = dev == NULL ? 1 : MAX(dev->num_queues, MIN(config->instances, cpus.num_cpus));
    int error = net_create(domain, dev, instances, key, &net);
    if (error != 0) {
        return error;
    }
    if (dev == NULL) {
        return config->mode == NET_NONE ? 0 : found;
    }
    virtio_net_ready(dev);
    log_info("net%u: %s, %u queue%s, %u lwIP instance%s, mtu %u%s%s", domain, dev->name, dev->num_queues,
             dev->num_queues == 1 ? "" : "s", instances, instances == 1 ? "" : "s", dev->mtu,
             (dev->offloads & STACK_CSUM_TX) != 0 ? ", checksum offload" : "", dev->steers ? ", RSS" : "");
    return net_configure(net, config);
}

void net_shutdown(void)
{
    for (u32 d = 0; d < MAX_DOMAINS; d++) {
        struct net *net = net_domains[d];
        if (net == NULL) {
            continue;
        }
        struct instance *first = &net->instances[0];
        struct wake_batch batch;
        irqflags_t flags = instance_enter(first, &batch);
        first->ops->dhcp_stop();
        instance_leave(first, &batch, flags);
        if (net->dev != NULL) {
            net->dev->ops->stop(net->dev);
        }
    }
}
