/* Split virtqueues against a model device in the same memory, well-behaved and hostile. */
#include <stdlib.h>
#include <string.h>

#include "net/virtio/ring.h"
#include "tests/unit/fake/cmocka_all.h"

#define SIZE 8

struct device {
    struct vring r;
    void *memory;
    u16 seen_avail; /* next available entry that the device takes */
};

static void make(struct device *d, bool event_idx)
{
    memset(d, 0, sizeof(*d));
    size_t bytes = ALIGN_UP(vring_bytes(SIZE), (size_t)64);
    d->memory = aligned_alloc(64, bytes);
    memset(d->memory, 0, bytes);
    vring_init(&d->r, d->memory, SIZE, event_idx);
}

static u16 *avail_event(struct device *d)
{
    return (u16 *)(void *)&d->r.used->ring[SIZE];
}

static u16 used_event(struct device *d)
{
    return d->r.avail->ring[SIZE];
}

/* The device finishes a buffer; true if it would interrupt (virtio 1.2, 2.7.7.2). */
static bool complete(struct device *d, u32 id, u32 len)
{
    u16 old = d->r.used->idx;
    d->r.used->ring[old & (SIZE - 1)] = (struct vring_used_elem){ id, len };
    d->r.used->idx = (u16)(old + 1);
    if (d->r.event_idx) {
        return (u16)(d->r.used->idx - used_event(d) - 1) < (u16)(d->r.used->idx - old);
    }
    return (d->r.avail->flags & 1) == 0;
}

static void layout_follows_the_standard(void **state)
{
    (void)state;
    struct device d;
    make(&d, true);
    /* 16 bytes per descriptor; available ring of 2-byte entries; used ring aligned to 4. */
    assert_ptr_equal((u8 *)d.r.avail, (u8 *)d.memory + 16 * SIZE);
    assert_ptr_equal((u8 *)d.r.used, (u8 *)d.memory + ALIGN_UP(16u * SIZE + 6 + 2 * SIZE, 4u));
    assert_int_equal(vring_bytes(SIZE), ALIGN_UP(16u * SIZE + 6 + 2 * SIZE, 4u) + 6 + 8 * SIZE);
    free(d.memory);
}

static void takes_in_order_across_the_wrap(void **state)
{
    (void)state;
    struct device d;
    make(&d, true);
    d.r.avail_idx = d.r.published = d.r.last_used = 65530; /* the 16-bit indices wrap during the test */
    d.r.avail->idx = d.r.used->idx = 65530;
    *avail_event(&d) = 65530;
    for (u32 i = 0; i < 100; i++) {
        u32 id, len;
        vring_add(&d.r, (u16)(i % SIZE));
        assert_true(vring_publish(&d.r)); /* the device asked for each */
        u16 head = d.r.avail->ring[(u16)(d.r.avail->idx - 1) & (SIZE - 1)];
        assert_int_equal(head, i % SIZE);
        *avail_event(&d) = d.r.avail->idx;
        assert_false(vring_take(&d.r, &id, &len));
        (void)complete(&d, head, 100 + i);
        assert_true(vring_take(&d.r, &id, &len));
        assert_int_equal(id, i % SIZE);
        assert_int_equal(len, 100 + i);
    }
    free(d.memory);
}

static void notifications_follow_the_event_index(void **state)
{
    (void)state;
    struct device d;
    make(&d, true);
    *avail_event(&d) = 2; /* the device wants to hear of the third buffer only */
    vring_add(&d.r, 0);
    assert_false(vring_publish(&d.r));
    vring_add(&d.r, 1);
    assert_false(vring_publish(&d.r));
    vring_add(&d.r, 2);
    assert_true(vring_publish(&d.r));
    assert_false(vring_publish(&d.r)); /* nothing new */
    vring_add(&d.r, 3);
    assert_false(vring_publish(&d.r));
    free(d.memory);
}

static void notifications_follow_the_flag(void **state)
{
    (void)state;
    struct device d;
    make(&d, false);
    vring_add(&d.r, 0);
    assert_true(vring_publish(&d.r));
    d.r.used->flags = 1;
    vring_add(&d.r, 1);
    assert_false(vring_publish(&d.r));
    free(d.memory);
}

static void one_interrupt_until_unmasked(void **state)
{
    (void)state;
    for (int event_idx = 0; event_idx < 2; event_idx++) {
        struct device d;
        u32 id, len;
        make(&d, event_idx != 0);
        assert_false(vring_unmask(&d.r));
        assert_true(complete(&d, 0, 1));
        vring_mask(&d.r);
        assert_false(complete(&d, 1, 1)); /* while polling: quiet */
        assert_true(vring_take(&d.r, &id, &len));
        assert_true(vring_unmask(&d.r)); /* one is left: the caller must go on */
        assert_true(vring_take(&d.r, &id, &len));
        assert_false(vring_unmask(&d.r));
        assert_true(complete(&d, 2, 1));
        free(d.memory);
    }
}

static void ids_outside_the_ring_are_counted_and_skipped(void **state)
{
    (void)state;
    struct device d;
    u32 id, len;
    make(&d, true);
    (void)complete(&d, SIZE, 1);
    (void)complete(&d, 0xffffffff, 1);
    (void)complete(&d, 3, 77);
    assert_true(vring_take(&d.r, &id, &len));
    assert_int_equal(id, 3);
    assert_int_equal(len, 77);
    assert_int_equal(d.r.bad_ids, 2);
    (void)complete(&d, 99, 1);
    assert_false(vring_take(&d.r, &id, &len));
    assert_int_equal(d.r.bad_ids, 3);
    free(d.memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layout_follows_the_standard),
        cmocka_unit_test(takes_in_order_across_the_wrap),
        cmocka_unit_test(notifications_follow_the_event_index),
        cmocka_unit_test(notifications_follow_the_flag),
        cmocka_unit_test(one_interrupt_until_unmasked),
        cmocka_unit_test(ids_outside_the_ring_are_counted_and_skipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
