/* Kernel stacks: mapped, guarded on both sides, cached within bounds. */
#include "core/base/param.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"

#define RAM    (64ull << 20)
#define STACKS 1000

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

static void check_stack(u64 base, u64 bytes)
{
    assert_true(IS_ALIGNED(base, PAGE_SIZE));
    assert_true(base > DYNAMIC_MAP_BASE && base + bytes < DYNAMIC_MAP_END);
    assert_int_equal(arch_pt_lookup(base - 1), 0);
    assert_int_equal(arch_pt_lookup(base + bytes), 0);
    for (u64 va = base; va < base + bytes; va += PAGE_SIZE) {
        paddr_t pa;
        u32 prot;
        assert_true(fake_pt_query(va, &pa, &prot));
        assert_int_equal(prot, ARCH_PROT_READ | ARCH_PROT_WRITE);
    }
}

static void guarded(void **state __unused)
{
    static u64 stacks[STACKS];
    static const u64 sizes[] = {4096, 8192, 16384, 32768, 65536};
    for (u32 i = 0; i < STACKS; i++) {
        u64 bytes = sizes[i % ARRAY_SIZE(sizes)];
        stacks[i] = kstack_alloc(bytes);
        assert_int_not_equal(stacks[i], 0);
    }
    for (u32 i = 0; i < STACKS; i++) {
        check_stack(stacks[i], sizes[i % ARRAY_SIZE(sizes)]);
    }
    for (u32 i = 0; i < STACKS; i++) {
        kstack_free(stacks[i], sizes[i % ARRAY_SIZE(sizes)]);
    }
}

static void reuse_is_free_of_charge(void **state __unused)
{
    u64 base = kstack_alloc(KSTACK_SIZE);
    kstack_free(base, KSTACK_SIZE);
    struct mem_stats before, after;
    mem_stats(&before);
    for (u32 i = 0; i < 100; i++) {
        u64 again = kstack_alloc(KSTACK_SIZE);
        assert_int_equal(again, base);
        kstack_free(again, KSTACK_SIZE);
    }
    mem_stats(&after);
    assert_int_equal(after.free_pages, before.free_pages);
    assert_int_equal(fake_tlb_flushes, 0);
}

static void cache_is_bounded(void **state __unused)
{
    static u64 stacks[STACKS];
    for (u32 round = 0; round < 3; round++) {
        for (u32 i = 0; i < STACKS; i++) {
            fake_cpu_set(i % 4);
            stacks[i] = kstack_alloc(KSTACK_SIZE);
            assert_int_not_equal(stacks[i], 0);
            check_stack(stacks[i], KSTACK_SIZE);
        }
        for (u32 i = 0; i < STACKS; i++) {
            fake_cpu_set(i % 3);
            kstack_free(stacks[i], KSTACK_SIZE);
        }
        u64 cached = KSTACK_SHARED_CACHE + 3 * KSTACK_CPU_CACHE + KSTACK_UNMAP_BATCH;
        assert_true(fake_pt_pages() <= cached * (KSTACK_SIZE / PAGE_SIZE));
    }
    assert_true(fake_tlb_flushes > 0 && fake_tlb_flushes <= 3 * STACKS / KSTACK_UNMAP_BATCH);
    /* Addresses are used again: three rounds need no more than one. */
    u64 next = vspace_reserve(PAGE_SIZE);
    assert_true(next - DYNAMIC_MAP_BASE < (STACKS + 200) * (KSTACK_SIZE + PAGE_SIZE));
}

static void out_of_memory(void **state __unused)
{
    static u64 stacks[20000];
    struct mem_stats before, after;
    u32 n = 0;
    mem_stats(&before);
    while ((stacks[n] = kstack_alloc(KSTACK_SIZE)) != 0) {
        n++;
    }
    assert_true(n > 3000);
    mem_stats(&after);
    assert_true(after.free_pages < 4); /* what the failed one had taken is back or in use */
    for (u32 i = 0; i < n; i++) {
        kstack_free(stacks[i], KSTACK_SIZE);
    }
    fake_pt_map_budget = 2;
    for (u32 i = 0; i < 400; i++) { /* empties the caches, then fails in the middle of a stack */
        kstack_alloc(KSTACK_SIZE);
    }
    fake_pt_map_budget = UINT64_MAX;
    assert_int_not_equal(kstack_alloc(KSTACK_SIZE), 0);
}

static void vspace_ends(void **state __unused)
{
    fake_console_clear();
    assert_int_equal(vspace_reserve(DYNAMIC_MAP_END - DYNAMIC_MAP_BASE + 1), 0);
    assert_int_not_equal(vspace_reserve(DYNAMIC_MAP_END - DYNAMIC_MAP_BASE), 0);
    assert_int_equal(vspace_reserve(1), 0);
    assert_int_equal(vspace_reserve(0), 0);
    assert_non_null(strstr(fake_console_text(), "no kernel address space"));
}

static void bad_size(void *arg)
{
    kstack_alloc((size_t)(uintptr_t)arg);
}

static void bad_sizes_panic(void **state __unused)
{
    fake_assert_panics(bad_size, (void *)0, "not a stack size");
    fake_assert_panics(bad_size, (void *)(KSTACK_MAX_PAGES * PAGE_SIZE + 1), "not a stack size");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(guarded),          TEST(reuse_is_free_of_charge),
        TEST(cache_is_bounded), TEST(out_of_memory),
        TEST(vspace_ends),      TEST(bad_sizes_panic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
