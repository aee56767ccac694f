/* virtio-net's receive and send paths against a device that follows the standard, and one that does not. */
#include <errno.h>
#include <string.h>

#include "core/mm/mm.h"
#include "net/virtio/net_dev.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/net/fake_kernel.h"

enum { SIZE = 8, HDR = sizeof(struct virtio_net_hdr) };

static struct virtio_net v;
static struct queue_pair pairs[2]; /* the second has no part but that of its doorbell */
#define pair pairs[0]
static u16 doorbells[2];
static u16 rx_taken, tx_taken; /* next available entry that the device looks at */
static struct net *net;
static u32 resets;

void virtio_pci_reset(struct virtio_pci *pci)
{
    (void)pci;
    resets++;
}

static void make_ring(struct vring *r)
{
    void *memory = kzalloc(vring_bytes(SIZE));
    assert_non_null(memory);
    vring_init(r, memory, SIZE, true);
}

static int set_up(void **state)
{
    static const u8 key[TOEPLITZ_KEY_BYTES] = { 1, 2, 3 };
    const struct net_config config = { .mode = NET_STATIC, .ip = SERVER_IP, .mask = 0xffffff00 };
    (void)state;
    fake_kernel_start(1, 1);
    v.dev = (struct netdev){ .ops = &virtio_net_ops, .name = "test", .mac = { 2, 0, 0, 0, 0, 1 }, .mtu = NET_MTU, .num_queues = 1 };
    v.pairs = pairs;
    make_ring(&pair.rx.ring);
    make_ring(&pair.tx.ring);
    pair.rx.doorbell = &doorbells[0];
    pair.tx.doorbell = &doorbells[1];
    pair.tx.index = 1;
    for (u16 i = 0; i < SIZE; i++) {
        pair.tx.buffers[i] = kzalloc(NET_PACKET_SIZE);
        pair.tx.ring.desc[i].addr = virt_to_phys(pair.tx.buffers[i]);
        pair.tx.free[pair.tx.num_free++] = i;
    }
    assert_int_equal(net_create(0, &v.dev, 1, key, &net), 0);
    struct wake_batch batch;
    irqflags_t flags = instance_enter(&net->instances[0], &batch);
    virtio_net_fill_receive(&v, &net->instances[0], &pair.rx);
    instance_leave(&net->instances[0], &batch, flags);
    return net_configure(net, &config);
}

static void use(struct vring *r, u32 id, u32 len)
{
    u16 at = r->used->idx;
    r->used->ring[at & (SIZE - 1)] = (struct vring_used_elem){ id, len };
    STORE_RELEASE(r->used->idx, (u16)(at + 1));
}

static void interrupt(void)
{
    arch_irq_disable();
    instance_interrupt(&net->instances[0]);
    arch_irq_enable();
    world_step();
}

/* The device's next empty buffer. */
static u16 next_empty(void)
{
    assert_true(rx_taken != pair.rx.ring.avail->idx);
    return pair.rx.ring.avail->ring[rx_taken++ & (SIZE - 1)];
}

/* An ARP request for our address: what comes out shows that the frame went in. */
static const u8 arp[42] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 9, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9,
                            10, 0, 0, 9, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1 };

static void deliver(const void *frame, u32 len, u16 buffers)
{
    struct virtio_net_hdr hdr = { .num_buffers = buffers };
    u16 id = next_empty();
    u8 *to = phys_to_virt(pair.rx.ring.desc[id].addr);
    memcpy(to, &hdr, sizeof(hdr));
    memcpy(to + HDR, frame, len);
    use(&pair.rx.ring, id, HDR + len);
}

/* Frames that the driver has sent since the last call; each is completed. */
static u32 collect_sent(u8 *last, u32 *last_len)
{
    u32 count = 0;
    while (tx_taken != pair.tx.ring.avail->idx) {
        u16 id = pair.tx.ring.avail->ring[tx_taken++ & (SIZE - 1)];
        const struct vring_desc *d = &pair.tx.ring.desc[id];
        if (last != NULL) {
            *last_len = d->len - HDR;
            memcpy(last, (u8 *)phys_to_virt(d->addr) + HDR, *last_len);
        }
        use(&pair.tx.ring, id, 0);
        count++;
    }
    return count;
}

static void answers(void)
{
    u8 reply[NET_PACKET_SIZE];
    u32 len = 0;
    deliver(arp, sizeof(arp), 1);
    interrupt();
    assert_int_equal(collect_sent(reply, &len), 1);
    assert_int_equal(len, sizeof(arp));
    assert_int_equal(reply[21], 2); /* an ARP reply */
    assert_memory_equal(reply, arp + 6, 6);
}

static void ring_is_full(void)
{
    assert_int_equal((u16)(pair.rx.ring.avail->idx - rx_taken), SIZE);
}

static void receives_and_sends(void **state)
{
    (void)state;
    (void)collect_sent(NULL, NULL); /* the announcement of our address */
    for (int i = 0; i < 100; i++) { /* many times round the rings */
        answers();
        ring_is_full();
    }
    assert_int_equal(counter_sum("net_packets_held"), 0);
}

static void ids_and_lengths_out_of_range(void **state)
{
    (void)state;
    u64 ids = pair.rx.ring.bad_ids, lengths = pair.rx.bad_lengths;
    use(&pair.rx.ring, SIZE, 60);
    use(&pair.rx.ring, 0xffffffff, 60);
    use(&pair.rx.ring, next_empty(), PACKET_ROOM + 1);
    use(&pair.rx.ring, next_empty(), 0xffffffff);
    use(&pair.rx.ring, next_empty(), 0);
    use(&pair.rx.ring, next_empty(), HDR + 3);
    interrupt();
    assert_int_equal(pair.rx.ring.bad_ids, ids + 2);
    assert_true(pair.rx.bad_lengths >= lengths + 3);
    ring_is_full();
    answers();
}

static void merged_buffers(void **state)
{
    (void)state;
    u64 lengths = pair.rx.bad_lengths;
    /* A frame of two buffers whose second never comes: dropped. */
    deliver(arp, sizeof(arp), 2);
    interrupt();
    assert_int_equal(pair.rx.bad_lengths, lengths + 1);
    assert_int_equal(collect_sent(NULL, NULL), 0);
    /* A count beyond the ring. */
    deliver(arp, sizeof(arp), 0xffff);
    interrupt();
    assert_int_equal(pair.rx.bad_lengths, lengths + 2);
    /* Two real ones: the second has no header.  lwIP needs ARP in one piece, so nothing is answered; nothing leaks. */
    deliver(arp, 20, 2);
    u16 id = next_empty();
    memcpy(phys_to_virt(pair.rx.ring.desc[id].addr), arp + 20, 22);
    use(&pair.rx.ring, id, 22);
    u64 merged = pair.rx.merged;
    interrupt();
    assert_int_equal(pair.rx.merged, merged + 1);
    (void)collect_sent(NULL, NULL);
    assert_int_equal(counter_sum("net_packets_held"), 0);
    ring_is_full();
    answers();
}

static void no_memory_for_a_new_buffer(void **state)
{
    (void)state;
    u64 failures = pair.rx.refill_failures;
    struct instance *in = &net->instances[0];
    struct packet *kept = in->free_packets;
    u32 num = in->num_free;
    in->free_packets = NULL;
    in->num_free = 0;
    fake_alloc_budget = 0;
    deliver(arp, sizeof(arp), 1);
    interrupt();
    fake_alloc_budget = UINT64_MAX;
    assert_true(pair.rx.refill_failures > failures);
    assert_null(in->free_packets);
    in->free_packets = kept;
    in->num_free = num;
    (void)collect_sent(NULL, NULL);
    ring_is_full(); /* the buffer went back: the packet is lost, the ring is not */
    answers();
}

/* The device completes nothing: sends are refused and counted, and go on once it does. */
static void a_full_send_ring(void **state)
{
    (void)state;
    u64 full = pair.tx.full;
    for (int i = 0; i < 3 * SIZE; i++) {
        deliver(arp, sizeof(arp), 1);
        interrupt();
    }
    assert_true(pair.tx.full > full);
    assert_true(counter_sum("net_tx_dropped_total") > 0);
    assert_int_equal(collect_sent(NULL, NULL), SIZE);
    answers();
}

/* Completions that the driver never asked for do not give it more buffers than it has. */
static void false_completions(void **state)
{
    (void)state;
    for (u32 i = 0; i < 5 * SIZE; i++) {
        use(&pair.tx.ring, i % (SIZE + 2), 0);
        answers();
        bool seen[SIZE] = { false };
        for (u16 n = 0; n < pair.tx.num_free; n++) {
            assert_false(seen[pair.tx.free[n]]); /* no buffer is free twice */
            seen[pair.tx.free[n]] = true;
        }
    }
    assert_true(pair.tx.ring.bad_ids > 0);
    assert_true(pair.tx.bad_slots > 0);
}

/* The source that the device has stopped may be another queue's: each is told that there are buffers again. */
static void a_starved_device_is_rung_at_every_queue(void **state)
{
    enum { QUIET = 99 };
    u16 *avail_event = (u16 *)(void *)&pair.rx.ring.used->ring[SIZE];
    u16 other = QUIET;
    u64 starved = pair.rx.starved;
    (void)state;
    v.dev.num_queues = 2;
    pairs[1].rx.doorbell = &other;
    pairs[1].rx.index = 2;
    doorbells[0] = QUIET;
    *avail_event = (u16)(pair.rx.ring.avail->idx + 1000); /* it has enough */
    deliver(arp, sizeof(arp), 1);
    interrupt();
    assert_int_equal(doorbells[0], QUIET);
    assert_int_equal(other, QUIET);
    *avail_event = pair.rx.ring.avail->idx; /* it waits for the next one */
    deliver(arp, sizeof(arp), 1);
    interrupt();
    assert_int_equal(doorbells[0], pair.rx.index);
    assert_int_equal(other, pairs[1].rx.index);
    assert_int_equal(pair.rx.starved, starved + 1);
    v.dev.num_queues = 1;
    (void)collect_sent(NULL, NULL);
}

static void stops(void **state)
{
    (void)state;
    net_shutdown();
    assert_int_equal(resets, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receives_and_sends),
        cmocka_unit_test(ids_and_lengths_out_of_range),
        cmocka_unit_test(merged_buffers),
        cmocka_unit_test(no_memory_for_a_new_buffer),
        cmocka_unit_test(a_full_send_ring),
        cmocka_unit_test(false_completions),
        cmocka_unit_test(a_starved_device_is_rung_at_every_queue),
        cmocka_unit_test(stops),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
