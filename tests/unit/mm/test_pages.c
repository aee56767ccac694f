/* Page allocator: against a model that knows every page's owner. */
#include "core/base/errno.h"
#include "core/base/param.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"

#define RAM        (64ull << 20)
#define STEPS      40000
#define MAX_BLOCKS 4096

static int set_up(void **state __unused)
{
    fake_reset_cpus();
    return mm_init(fake_ram_init(RAM));
}

static int tear_down(void **state __unused)
{
    fake_cpu_set(0);
    fake_ram_free();
    return 0;
}

struct block {
    paddr_t pa;
    u32 order;
    enum mem_kind kind;
};

static void random_blocks(void **state __unused)
{
    static struct block blocks[MAX_BLOCKS];
    static u8 owned[RAM / PAGE_SIZE];
    u64 rng = test_seed(2);
    u32 n = 0;
    struct mem_stats before, now;
    memset(owned, 0, sizeof(owned));
    mem_stats(&before);
    for (u32 step = 0; step < STEPS; step++) {
        fake_cpu_set((u32)test_below(&rng, 4));
        bool grow = n == 0 ||
                    (n < MAX_BLOCKS && test_below(&rng, 100) < ((step / 4000) % 2 == 0 ? 60 : 40));
        if (grow) {
            u32 order = test_below(&rng, 3) != 0 ? 0 : (u32)test_below(&rng, PAGE_MAX_ORDER + 1);
            enum mem_kind kind = (enum mem_kind)test_below(&rng, NUM_MEM_KINDS);
            paddr_t pa = page_alloc(order, kind);
            if (pa == 0) {
                continue;
            }
            assert_true(IS_ALIGNED(pa - fake_ram_base, PAGE_SIZE << order));
            for (u64 i = 0; i < BIT(order); i++) {
                u64 page = (pa - fake_ram_base) / PAGE_SIZE + i;
                assert_true(page < RAM / PAGE_SIZE);
                assert_int_equal(owned[page], 0);
                owned[page] = 1;
            }
            memset(phys_to_virt(pa), (int)step, PAGE_SIZE << order);
            blocks[n++] = (struct block){pa, order, kind};
        } else {
            u32 i = (u32)test_below(&rng, n);
            struct block b = blocks[i];
            blocks[i] = blocks[--n];
            for (u64 k = 0; k < BIT(b.order); k++) {
                owned[(b.pa - fake_ram_base) / PAGE_SIZE + k] = 0;
            }
            page_free(b.pa, b.order, b.kind);
        }
    }
    while (n > 0) {
        n--;
        page_free(blocks[n].pa, blocks[n].order, blocks[n].kind);
    }
    mem_stats(&now);
    assert_int_equal(now.free_pages, before.free_pages);
    assert_memory_equal(now.kind_pages, before.kind_pages, sizeof(now.kind_pages));
}

static void coalesces(void **state __unused)
{
    /* Everything taken as single pages and given back must be available as largest blocks again. */
    static paddr_t pages[RAM / PAGE_SIZE];
    u32 largest = 0, n = 0, again = 0;
    static paddr_t blocks[RAM / PAGE_SIZE];
    while ((blocks[largest] = page_alloc(PAGE_MAX_ORDER, MEM_KERNEL)) != 0) {
        largest++;
    }
    assert_true(largest >= 14);
    for (u32 i = 0; i < largest; i++) {
        page_free(blocks[i], PAGE_MAX_ORDER, MEM_KERNEL);
    }
    while ((pages[n] = page_alloc(0, MEM_KERNEL)) != 0) {
        n++;
    }
    struct mem_stats s;
    mem_stats(&s);
    assert_int_equal(s.free_pages, 0);
    for (u32 i = 0; i < n; i++) {
        page_free(pages[i], 0, MEM_KERNEL);
    }
    while ((blocks[again] = page_alloc(PAGE_MAX_ORDER, MEM_KERNEL)) != 0) {
        again++;
    }
    /* One CPU's cache may keep single pages, in at most so many blocks. */
    assert_true(again + 1 >= largest);
}

static void failures_are_counted(void **state __unused)
{
    struct mem_stats a, b;
    mem_stats(&a);
    assert_int_equal(page_alloc(PAGE_MAX_ORDER + 1, MEM_KERNEL), 0);
    while (page_alloc(PAGE_MAX_ORDER, MEM_KERNEL) != 0) {
    }
    mem_stats(&b);
    assert_int_equal(b.alloc_failures, a.alloc_failures + 2);
}

static void zeroed(void **state __unused)
{
    paddr_t pa = page_alloc(2, MEM_ANON);
    memset(phys_to_virt(pa), 0xff, 4 * PAGE_SIZE);
    page_free(pa, 2, MEM_ANON);
    pa = page_alloc_zeroed(2, MEM_ANON);
    const u8 *p = phys_to_virt(pa);
    for (u32 i = 0; i < 4 * PAGE_SIZE; i++) {
        assert_int_equal(p[i], 0);
    }
}

static void free_twice(void *arg __unused)
{
    paddr_t pa = page_alloc(0, MEM_KERNEL);
    page_free(pa, 0, MEM_KERNEL);
    page_free(pa, 0, MEM_KERNEL);
}

static void free_wrong_order(void *arg __unused)
{
    page_free(page_alloc(1, MEM_KERNEL), 0, MEM_KERNEL);
}

static void free_wrong_kind(void *arg __unused)
{
    page_free(page_alloc(1, MEM_NET), 1, MEM_ANON);
}

static void free_stranger(void *arg __unused)
{
    page_free(fake_ram_base + RAM, 0, MEM_KERNEL);
}

static void wrong_frees_panic(void **state __unused)
{
    fake_assert_panics(free_twice, NULL, "page_free");
    fake_assert_panics(free_wrong_order, NULL, "page_free");
    fake_assert_panics(free_wrong_kind, NULL, "page_free");
    fake_assert_panics(free_stranger, NULL, "not a page of RAM");
}

static void boot_ranges(void **state __unused)
{
    /* Holes, overlaps, a kernel and an initrd inside: none of it may ever be handed out. */
    struct boot_info *b = fake_ram_init(RAM);
    u64 base = fake_ram_base;
    b->num_ranges = 5;
    b->ranges[0] = (struct boot_range){base + (32ull << 20) + 5, 24ull << 20, BOOT_MEM_USABLE, 0};
    b->ranges[1] = (struct boot_range){base, 30ull << 20, BOOT_MEM_USABLE, 0};
    b->ranges[2] = (struct boot_range){base + (20ull << 20), 8ull << 20, BOOT_MEM_USABLE, 0};
    b->ranges[3] = (struct boot_range){base + (25ull << 20) + 100, 4096, BOOT_MEM_ACPI, 0};
    b->ranges[4] = (struct boot_range){base + (2ull << 20), 0, BOOT_MEM_USABLE, 0};
    b->kernel_phys = base + (1ull << 20) + 123;
    b->kernel_size = 3ull << 20;
    b->initrd_phys = base + (40ull << 20) + 1;
    b->initrd_size = 4ull << 20;
    fake_console_clear();
    assert_int_equal(mm_init(b), 0);
    for (paddr_t pa; (pa = page_alloc(0, MEM_KERNEL)) != 0;) {
        u64 off = pa - base;
        assert_true(off < 30ull << 20 ||
                    (off > 32ull << 20 && off + PAGE_SIZE <= (56ull << 20) + 5));
        assert_false(off + PAGE_SIZE > (1ull << 20) + 123 && off < (4ull << 20) + 123);
        assert_false(off + PAGE_SIZE > (40ull << 20) + 1 && off < (44ull << 20) + 1);
        assert_false(off + PAGE_SIZE > (25ull << 20) + 100 && off < (25ull << 20) + 4196);
    }
    struct mem_stats s;
    mem_stats(&s);
    assert_true(s.total_pages > (46ull << 20) / PAGE_SIZE &&
                s.total_pages < (48ull << 20) / PAGE_SIZE);
}

static void too_little_memory(void **state __unused)
{
    struct boot_info *b = fake_ram_init(RAM);
    b->ranges[0].size = MEM_MIN_BYTES - PAGE_SIZE;
    fake_console_clear();
    assert_int_equal(mm_init(b), -ENOMEM);
    assert_non_null(
        strstr(fake_console_text(), "16380 KiB of RAM are usable, at least 16384 KiB are needed"));
    b->num_ranges = BOOT_MAX_RANGES + 1;
    assert_int_equal(mm_init(b), -EINVAL);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(random_blocks), TEST(coalesces),         TEST(failures_are_counted), TEST(zeroed),
        TEST(boot_ranges),   TEST(wrong_frees_panic), TEST(too_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
