/* The levels of the grant: what is refused, what is counted. */
#include "core/base/errno.h"
#include "core/base/param.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"

#define RAM (64ull << 20)

static paddr_t pages[RAM / PAGE_SIZE];

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

static u64 used_pages(const struct mem_stats *s)
{
    u64 n = 0;
    for (u32 k = 0; k < NUM_MEM_KINDS; k++) {
        n += s->kind_pages[k];
    }
    return n;
}

static void max_refuses_all_but_the_kernel(void **state __unused)
{
    struct mem_stats a, b;
    mem_stats(&a);
    assert_int_equal(a.limit_pages, UINT64_MAX);
    u64 limit = used_pages(&a) + 1000;
    assert_int_equal(mm_set_limits(0, 0, limit * PAGE_SIZE + 5), 0); /* rounded down */
    u32 n = 0;
    static const enum mem_kind kinds[] = {MEM_ANON, MEM_NET, MEM_FILE};
    while ((pages[n] = page_alloc(0, kinds[n % 3])) != 0) {
        n++;
    }
    assert_int_equal(n, 1000);
    mem_stats(&b);
    assert_int_equal(b.limit_pages, limit);
    assert_int_equal(used_pages(&b), limit);
    assert_int_equal(b.events_max, a.events_max + 1);
    assert_int_equal(b.events_oom, a.events_oom + 1);
    assert_int_equal(page_alloc(3, MEM_NET), 0);
    paddr_t kernel = page_alloc(0, MEM_KERNEL);
    assert_int_not_equal(kernel, 0);
    assert_int_equal(mm_map(0, PAGE_SIZE, MM_READ | MM_WRITE, 0, NULL), -ENOMEM);
    page_free(kernel, 0, MEM_KERNEL);
    page_free(pages[0], 0, kinds[0]);
    assert_int_not_equal(page_alloc(0, MEM_ANON), 0); /* room again */
    assert_int_equal(mm_set_limits(0, 0, 0), 0);      /* no limit any more */
    assert_int_not_equal(page_alloc(5, MEM_NET), 0);
}

static void high_is_counted_once_per_crossing(void **state __unused)
{
    struct mem_stats s;
    mem_stats(&s);
    u64 events = s.events_high;
    assert_int_equal(mm_set_limits(0, (used_pages(&s) + 300) * PAGE_SIZE, 0), 0);
    for (u32 round = 1; round <= 3; round++) {
        for (u32 i = 0; i < 300; i++) {
            pages[i] = page_alloc(0, MEM_ANON);
            assert_false(mm_over_high());
        }
        pages[300] = page_alloc(0, MEM_ANON); /* given all the same */
        assert_int_not_equal(pages[300], 0);
        assert_true(mm_over_high());
        pages[301] = page_alloc(0, MEM_ANON);
        mem_stats(&s);
        assert_int_equal(s.events_high, events + round);
        for (u32 i = 0; i < 302; i++) {
            page_free(pages[i], 0, MEM_ANON);
        }
        assert_false(mm_over_high());
    }
}

static void lowered_below_use(void **state __unused)
{
    struct mem_stats s;
    for (u32 i = 0; i < 2000; i++) {
        pages[i] = page_alloc(0, MEM_ANON);
    }
    mem_stats(&s);
    u64 high = (s.kind_pages[MEM_KERNEL] + 1000) * PAGE_SIZE;
    assert_int_equal(mm_set_limits(0, high, high), 0);
    assert_true(mm_over_high());
    assert_int_equal(page_alloc(0, MEM_ANON), 0);
    for (u32 i = 0; i < 2000; i++) {
        page_free(pages[i], 0, MEM_ANON);
    }
    assert_false(mm_over_high());
    assert_int_not_equal(page_alloc(0, MEM_ANON), 0);
}

static void too_small_is_refused(void **state __unused)
{
    struct mem_stats s;
    fake_console_clear();
    assert_int_equal(mm_set_limits(0, 0, PAGE_SIZE), -EINVAL);
    assert_int_equal(mm_set_limits(0, PAGE_SIZE, 0), -EINVAL);
    assert_non_null(strstr(fake_console_text(), "memory limit of 4096 bytes is below the"));
    mem_stats(&s);
    assert_int_equal(s.limit_pages, UINT64_MAX); /* nothing changed */
}

static void kernel_reserve(void **state __unused)
{
    u32 n = 0;
    while ((pages[n] = page_alloc(0, MEM_ANON)) != 0) {
        n++;
    }
    struct mem_stats s;
    mem_stats(&s);
    assert_true(s.free_pages >= PAGE_KERNEL_RESERVE &&
                s.free_pages <= PAGE_KERNEL_RESERVE + PAGE_CACHE_MAX);
    for (u32 i = 0; i < PAGE_KERNEL_RESERVE; i++) {
        assert_int_not_equal(page_alloc(0, MEM_KERNEL), 0);
    }
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(max_refuses_all_but_the_kernel),
        TEST(high_is_counted_once_per_crossing),
        TEST(lowered_below_use),
        TEST(too_small_is_refused),
        TEST(kernel_reserve),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
