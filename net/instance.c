#include "net/instance.h"

#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/base/trace.h"
#include "core/mm/mm.h"
#include "net/net_impl.h"
#include "net/random.h"
#include "net/stack/image.h"

struct lock_class instance_lock_class = { .name = "net_instance", .rank = RANK_NET, .irq = true, .nest_by_address = true };
static struct slab_cache *packet_cache;

/* CPUs' pending notifications, by domain and instance: set by whoever sends the IPI, taken by wire_ipi_call(). */
static u64 pending_calls[MAX_CPUS][MAX_DOMAINS];

/* ---- packets ---- */

struct packet *instance_packet_alloc(struct instance *in)
{
    struct packet *p = in->free_packets;
    if (likely(p != NULL)) {
        in->free_packets = p->next;
        in->num_free--;
    } else {
        p = slab_alloc(packet_cache);
        if (p == NULL) {
            in->counters.packet_failures++;
            return NULL;
        }
    }
    p->next = NULL;
    p->more = NULL;
    p->flags = 0;
    return p;
}

void instance_packet_free(struct instance *in, struct packet *p)
{
    if (likely(in->num_free < NET_PACKET_POOL_KEEP)) {
        p->next = in->free_packets;
        in->free_packets = p;
        in->num_free++;
    } else {
        slab_free(packet_cache, p);
    }
}

static void free_frame(struct instance *in, struct packet *p)
{
    while (p != NULL) {
        struct packet *more = p->more;
        instance_packet_free(in, p);
        p = more;
    }
}

/* ---- services for lwIP ---- */

static void *env_alloc(void *self, size_t bytes)
{
    (void)self;
    return kmalloc(bytes);
}

static void env_free(void *self, void *p)
{
    (void)self;
    kfree(p);
}

/* lwIP has done with a packet: received ones go back to the pool, sent ones too (the device has copied them). */
static void env_packet_free(void *self, struct packet *p)
{
    struct instance *in = self;
    in->held--;
    instance_packet_free(in, p);
}

static u64 env_now(void *self)
{
    (void)self;
    return arch_clock_ns();
}

static u64 env_random(void *self)
{
    (void)self;
    return net_random();
}

static void env_fail(void *self, const char *message, const char *file, int line) __noreturn;
static void env_fail(void *self, const char *message, const char *file, int line)
{
    const struct instance *in = self;
    panic("lwIP instance %u: %s (%s:%d)", in->index, message, file, line);
}

static bool env_output(void *self, const struct stack_buf *frame)
{
    struct instance *in = self;
    struct netdev *dev = in->dev;
    if (dev == NULL || !dev->ops->transmit(dev, in->queue, in, frame)) {
        in->counters.tx_dropped++;
        return false;
    }
    in->counters.tx_packets++;
    in->counters.tx_bytes += frame->total;
    in->tx_pending++;
    return true;
}

/* DHCP runs on instance 0; the address is everybody's.  The other locks are taken in ascending address order. */
static void env_address_changed(void *self, u32 ip, u32 mask, u32 gateway)
{
    struct instance *first = self;
    struct net *net = first->net;
    for (u32 i = 1; i < net->num_instances; i++) {
        struct instance *in = &net->instances[i];
        irqflags_t flags = spin_lock_irq(&in->lock);
        in->batch = first->batch;
        in->ops->set_address(ip, mask, gateway);
        in->batch = NULL;
        spin_unlock_irq(&in->lock, flags);
    }
    net->mask = mask;
    net->gateway = gateway;
    WRITE_ONCE(net->ip, ip);
    if (ip != 0) {
        log_info("net%u: address %u.%u.%u.%u", net->domain, ip >> 24, (ip >> 16) & 255, (ip >> 8) & 255, ip & 255);
        if (net->address_waiter != NULL) {
            thread_unpark_batch(net->address_waiter, first->batch);
        }
    }
}

/* ---- holding the lock ---- */

void instance_wait(struct instance *in)
{
    do {
        while (READ_ONCE(in->lock.serving) != READ_ONCE(in->lock.next)) {
            arch_cpu_relax();
            arch_tlb_poll(); /* the holder may be waiting for this CPU's flush */
        }
    } while (!spin_try_raw(&in->lock));
    in->counters.contended++;
}

/* Arms the timer if lwIP has something due before what it is armed for. */
static void set_timer(struct instance *in, u64 due)
{
    if (due < in->timer_at) {
        in->timer_at = due;
        timer_arm(&in->timer, due);
    }
}

void instance_call(struct instance *in)
{
    if (this_cpu()->cpu == in->cpu) {
        softwork_raise(&in->work);
        return;
    }
    u64 *pending = &pending_calls[in->cpu][in->net->domain];
    if ((__atomic_fetch_or(pending, BIT(in->index), __ATOMIC_SEQ_CST) & BIT(in->index)) == 0) {
        trace(TRACE_CAT_IPI, TRACE_IPI, (u16)in->cpu, 0, 1, 0);
        arch_send_ipi(in->cpu, ARCH_IPI_CALL);
    }
}

void instance_leave(struct instance *in, struct wake_batch *batch, irqflags_t flags)
{
    if (unlikely(stack_loopback_waiting(in->ops)) && !in->in_pass && in->ops->poll_loopback(NET_LOOP_BUDGET)) {
        in->counters.loopback_deferred++;
        instance_call(in);
    }
    set_timer(in, stack_timer_due(in->ops));
    if (in->tx_pending) {
        trace(TRACE_CAT_NET, TRACE_TX, (u16)in->index, 0, in->tx_pending, 0);
        in->tx_pending = 0;
        in->dev->ops->kick(in->dev, in->queue);
    }
    in->batch = NULL;
    spin_unlock_irq(&in->lock, flags);
    wake_batch_flush(batch);
}

static void on_timer(struct timer *t)
{
    struct instance *in = container_of(t, struct instance, timer);
    struct wake_batch batch;
    irqflags_t flags = instance_enter(in, &batch);
    in->timer_at = UINT64_MAX;
    in->counters.timer_runs++;
    (void)in->ops->run_timers(arch_clock_ns());
    instance_leave(in, &batch, flags);
}

/* ---- receive path ---- */

void instance_input(struct instance *in, struct packet *p)
{
    u32 pieces = 0, bytes = 0;
    for (const struct packet *q = p; q != NULL; q = q->more) {
        pieces++;
        bytes += q->len;
    }
    if (unlikely(in->held + pieces > NET_PACKETS_PER_INSTANCE)) {
        in->counters.rx_dropped_limit++;
        free_frame(in, p);
        return;
    }
    in->held += pieces;
    in->counters.rx_packets++;
    in->counters.rx_bytes += bytes;
    in->ops->input(p);
}

bool instance_steer(struct instance *to, struct packet *p)
{
    return inqueue_push(&to->input, p);
}

void instance_notify(struct instance *in)
{
    if (inqueue_must_notify(&in->input)) {
        instance_call(in);
    }
}

void wire_ipi_call(u32 cpu)
{
    for (u32 d = 0; d < MAX_DOMAINS; d++) {
        u64 bits = READ_ONCE(pending_calls[cpu][d]) != 0 ? __atomic_exchange_n(&pending_calls[cpu][d], 0, __ATOMIC_SEQ_CST) : 0;
        for (; bits != 0; bits &= bits - 1) {
            instance_interrupt(&net_domains[d]->instances[__builtin_ctzll(bits)]);
        }
    }
}

void instance_interrupt(struct instance *in)
{
    in->counters.interrupts++;
    softwork_raise(&in->work);
}

/* One pass: packets from other instances, packets from the device, up to the budget, under one hold of the lock. */
static bool receive_pass(struct softwork *w, bool in_irq)
{
    (void)in_irq;
    struct instance *in = container_of(w, struct instance, work);
    struct receive_batch rx = { .in = in };
    struct wake_batch batch;
    struct packet *p;
    u32 done = 0;
    irqflags_t flags = instance_enter(in, &batch);
    in->counters.passes++;
    in->in_pass = true;
    while (done < NET_POLL_BUDGET && (p = inqueue_pop(&in->input)) != NULL) {
        in->counters.steered_in++;
        instance_input(in, p);
        done++;
    }
    if (in->owns_queue) {
        done += in->dev->ops->poll(in->dev, in->queue, NET_POLL_BUDGET - done, &rx);
    }
    bool more = stack_loopback_waiting(in->ops) && in->ops->poll_loopback(NET_LOOP_BUDGET);
    in->in_pass = false;
    if (done >= NET_POLL_BUDGET) {
        in->counters.passes_full++;
        more = true;
    }
    if (!more) {
        more = inqueue_rest(&in->input);
        if (in->owns_queue) {
            more |= in->dev->ops->rest(in->dev, in->queue);
        }
    }
    in->counters.wakes += batch.wakes;
    if (done) {
        trace(TRACE_CAT_NET, TRACE_RX, (u16)in->index, 0, done, batch.wakes);
    }
    instance_leave(in, &batch, flags);
    if (rx.touched != 0) {
        preempt_disable();
        for (u64 bits = rx.touched; bits != 0; bits &= bits - 1) {
            instance_notify(&in->net->instances[__builtin_ctzll(bits)]);
        }
        preempt_enable();
    }
    return more;
}

/* ---- start ---- */

static void fill_env(struct instance *in)
{
    in->env = (struct stack_env){
        .abi = STACK_ABI,
        .self = in,
        .alloc = env_alloc,
        .free = env_free,
        .packet_free = env_packet_free,
        .now_ns = env_now,
        .random = env_random,
        .fail = env_fail,
        .output = env_output,
        .address_changed = env_address_changed,
    };
    socket_fill_env(&in->env);
}

int instance_init(struct instance *in, struct net *net, struct netdev *dev, u32 index, u32 cpu)
{
    if (packet_cache == NULL) {
        packet_cache = slab_create("net_packet", NET_PACKET_SIZE, NET_PACKET_SIZE, MEM_NET);
        if (packet_cache == NULL) {
            return -ENOMEM;
        }
    }
    u64 base;
    stack_entry_fn entry;
    int error = image_load_kernel(&base, &entry);
    if (error != 0) {
        return error;
    }
    spin_init(&in->lock, &instance_lock_class);
    in->ops = entry();
    in->net = net;
    in->dev = dev;
    in->index = index;
    in->cpu = cpu;
    in->queue = dev != NULL ? index % dev->num_queues : 0;
    in->owns_queue = dev != NULL && index < dev->num_queues;
    in->timer_at = UINT64_MAX;
    timer_init(&in->timer, on_timer);
    softwork_init(&in->work, cpu, receive_pass);
    sched_add_receive_path(cpu);
    inqueue_init(&in->input);
    fill_env(in);
    if (in->ops->abi != STACK_ABI || in->ops->size != sizeof(struct stack_ops)) {
        log_error("net: the lwIP image has another interface than the kernel");
        return -EINVAL;
    }
    struct stack_config config = { .mtu = dev != NULL ? dev->mtu : NET_MTU, .index = index };
    if (dev != NULL) {
        memcpy(config.mac, dev->mac, sizeof(config.mac));
        config.offloads = dev->offloads;
    }
    for (u32 i = 0; i < ARRAY_SIZE(config.secret); i++) {
        config.secret[i] = net_random();
    }
    log_debug("net%u: instance %u on CPU %u, image at 0x%llx", net->domain, index, cpu, (unsigned long long)base);
    return in->ops->start(&in->env, &config);
}
