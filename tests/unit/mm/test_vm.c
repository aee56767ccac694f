/* The address space: single properties.  Random operations against a model: test_vm_model.c. */
#include "core/base/errno.h"
#include "core/base/param.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"
#include "tests/unit/mm/test_vm.h"

#define RAM  (64ull << 20)
#define P    PAGE_SIZE
#define RW   (MM_READ | MM_WRITE)
#define BASE 0x40000000ull

int vm_set_up(void **state __unused)
{
    fake_reset_cpus();
    return mm_init(fake_ram_init(RAM));
}

int vm_tear_down(void **state __unused)
{
    fake_cpu_set(0);
    fake_ram_free();
    return 0;
}

static u64 anon_pages(void)
{
    struct mem_stats s;
    mem_stats(&s);
    return s.kind_pages[MEM_ANON];
}

static void map_at(u64 addr, u64 pages, u32 prot, u32 flags)
{
    assert_int_equal(mm_map(addr, pages * P, prot, flags | MM_FIXED, NULL), addr);
}

static void demand_zero(void **state __unused)
{
    i64 addr = mm_map(0, 10 * P + 1, RW, 0, NULL);
    assert_true(addr > 0);
    assert_int_equal(anon_pages(), 0);
    for (u32 i = 0; i < 11; i++) {
        u8 *p = fake_access((u64)addr + i * P, i % 2 != 0);
        assert_non_null(p);
        for (u32 k = 0; k < P; k++) {
            assert_int_equal(p[k], 0);
        }
        p[5] = 7;
    }
    assert_int_equal(anon_pages(), 11);
    assert_null(fake_access((u64)addr + 11 * P, false));
    assert_null(fake_access((u64)addr - 1, false));
    assert_int_equal(mm_unmap((u64)addr, 11 * P), 0);
    assert_int_equal(anon_pages(), 0);
    assert_int_equal(fake_tlb_stale(), 0);
}

static void top_down_and_merged(void **state __unused)
{
    struct mem_stats s;
    i64 a = mm_map(0, P, RW, 0, NULL), b = mm_map(0, 3 * P, RW, 0, NULL);
    assert_int_equal(a, APP_MAX - P);
    assert_int_equal(b, APP_MAX - 4 * P);
    mem_stats(&s);
    assert_int_equal(s.mappings, 1);
    int other;
    i64 c = mm_map(0, P, RW, 0, &other); /* other owner: not merged */
    i64 d = mm_map(0, P, RW, 0, &other);
    assert_int_equal(c, APP_MAX - 5 * P);
    assert_int_equal(d, APP_MAX - 6 * P);
    assert_int_equal(mm_protect((u64)d, P, MM_READ), 0);
    mem_stats(&s);
    assert_int_equal(s.mappings, 3);
    assert_int_equal(mm_protect((u64)d, P, RW), 0); /* like its neighbour again */
    mem_stats(&s);
    assert_int_equal(s.mappings, 2);
    mm_unmap_owner(&other);
    mem_stats(&s);
    assert_int_equal(s.mappings, 1);
    u64 start, end;
    u32 prot;
    void *owner;
    assert_true(mm_query((u64)b + P, &start, &end, &prot, &owner));
    assert_true(start == APP_MAX - 4 * P && end == APP_MAX && prot == RW && owner == NULL);
    assert_false(mm_query((u64)c, &start, &end, &prot, &owner));
}

static void hints(void **state __unused)
{
    assert_int_equal(mm_map(BASE + 5, P, RW, 0, NULL), BASE);    /* free: taken, rounded down */
    assert_int_equal(mm_map(BASE, P, RW, 0, NULL), APP_MAX - P); /* taken: elsewhere */
    assert_int_equal(mm_map(0x1000, P, RW, 0, NULL), APP_MAX - 2 * P);
    assert_int_equal(mm_map(BASE, P, RW, MM_FIXED_NOREPLACE, NULL), -EEXIST);
    assert_int_equal(mm_map(BASE + P, P, RW, MM_FIXED_NOREPLACE, NULL), BASE + P);
    assert_int_equal(mm_map(BASE + 1, P, RW, MM_FIXED, NULL), -EINVAL);
    assert_int_equal(mm_map(0, P, RW, MM_FIXED, NULL), -ENOMEM); /* the null page stays unmapped */
    assert_int_equal(mm_map(APP_MIN - P, P, RW, MM_FIXED, NULL), -ENOMEM);
    assert_int_equal(mm_map(APP_MAX, P, RW, MM_FIXED, NULL), -ENOMEM);
    assert_int_equal(mm_map(APP_MAX - P, 2 * P, RW, MM_FIXED, NULL), -ENOMEM);
    assert_int_equal(mm_map(APP_MIN, P, RW, MM_FIXED, NULL), APP_MIN);
    assert_int_equal(mm_map(0, 0, RW, 0, NULL), -EINVAL);
    assert_int_equal(mm_map(0, SIZE_MAX, RW, 0, NULL), -ENOMEM);
    assert_int_equal(mm_map(0, APP_MAX, 0, 0, NULL), -ENOMEM);
}

static void fixed_replaces(void **state __unused)
{
    map_at(BASE, 8, RW, 0);
    for (u32 i = 0; i < 8; i++) {
        *fake_access(BASE + i * P, true) = 9;
    }
    map_at(BASE + 2 * P, 3, MM_READ, 0);
    assert_int_equal(fake_tlb_stale(), 0);
    assert_int_equal(anon_pages(), 5);
    assert_int_equal(*fake_access(BASE + P, false), 9);
    assert_int_equal(*fake_access(BASE + 2 * P, false), 0);
    assert_null(fake_access(BASE + 2 * P, true));
    assert_int_equal(*fake_access(BASE + 5 * P, false), 9);
}

static void protections(void **state __unused)
{
    fake_console_clear();
    assert_int_equal(mm_map(0, P, RW | MM_EXEC, 0, NULL), -EINVAL);
    assert_non_null(strstr(fake_console_text(), "writable and executable"));
    map_at(BASE, 4, RW, 0);
    for (u32 i = 0; i < 4; i++) {
        *fake_access(BASE + i * P, true) = (u8)(i + 1);
    }
    assert_int_equal(mm_protect(BASE, P, RW | MM_EXEC), -EINVAL);
    assert_int_equal(mm_protect(BASE + P, 2 * P, MM_READ), 0);
    assert_int_equal(fake_tlb_stale(), 0);
    assert_null(fake_access(BASE + P, true));
    assert_int_equal(*fake_access(BASE + P, false), 2);
    assert_non_null(fake_access(BASE + 3 * P, true));
    assert_int_equal(mm_protect(BASE, 4 * P, 0), 0);
    assert_null(fake_access(BASE, false));
    assert_int_equal(mm_protect(BASE, 4 * P, RW), 0);
    assert_int_equal(*fake_access(BASE + 2 * P, true), 3); /* contents survive PROT_NONE */
    assert_int_equal(mm_protect(BASE, P, MM_READ | MM_EXEC), 0);
    assert_true(mm_handle_fault(BASE, false, true));
    assert_false(mm_handle_fault(BASE + P, false, true));
    assert_int_equal(mm_protect(BASE, 5 * P, RW), -ENOMEM); /* hole at the end */
    assert_int_equal(mm_protect(BASE + 1, P, RW), -EINVAL);
    assert_int_equal(mm_protect(BASE, 0, RW), 0);
    struct mem_stats s;
    mem_stats(&s);
    assert_true(s.wx_refused >= 2);
}

static void write_only_can_be_read(void **state __unused)
{
    map_at(BASE, 1, MM_WRITE, 0);
    assert_non_null(fake_access(BASE, false));
}

static void check_range(void **state __unused)
{
    map_at(BASE, 2, RW, 0);
    map_at(BASE + 2 * P, 2, MM_READ, 0);
    assert_true(mm_check(BASE, 4 * P, MM_READ));
    assert_false(mm_check(BASE, 4 * P, RW));
    assert_true(mm_check(BASE + 100, 2 * P - 100, RW));
    assert_false(mm_check(BASE, 4 * P + 1, MM_READ));
    assert_true(mm_check(BASE, 0, RW));
    assert_false(mm_check(BASE, SIZE_MAX, 0));
    assert_false(mm_check(0, P, 0));
    assert_false(mm_check(DIRECT_MAP_BASE, P, 0));
}

static void discard(void **state __unused)
{
    map_at(BASE, 600, RW, 0); /* more than one chunk */
    for (u32 i = 0; i < 600; i++) {
        *fake_access(BASE + i * P, true) = 1;
    }
    assert_int_equal(mm_discard(BASE + P, 598 * P), 0);
    assert_int_equal(fake_tlb_stale(), 0);
    assert_int_equal(anon_pages(), 2);
    assert_int_equal(*fake_access(BASE, false), 1);
    assert_int_equal(*fake_access(BASE + P, false), 0);
    assert_int_equal(*fake_access(BASE + 599 * P, false), 1);
    assert_int_equal(mm_discard(BASE, 601 * P), -ENOMEM);
    assert_int_equal(mm_discard(BASE + 1, P), -EINVAL);
}

static void sparse_unmap_is_quick(void **state __unused)
{
    /* 64 TiB with three pages in it: counted in calls of the page tables, not in time. */
    u64 len = 64ull << 40;
    i64 addr = mm_map(0, len, RW, MM_NORESERVE, NULL);
    assert_true(addr > 0);
    *fake_access((u64)addr, true) = 1;
    *fake_access((u64)addr + len / 2, true) = 1;
    *fake_access((u64)addr + len - P, true) = 1;
    assert_int_equal(mm_unmap((u64)addr, len), 0);
    assert_int_equal(anon_pages(), 0);
    assert_int_equal(fake_pt_pages(), 0);
}

static void untouched_unmap_needs_no_flush(void **state __unused)
{
    i64 addr = mm_map(0, 100 * P, RW, 0, NULL);
    assert_int_equal(mm_unmap((u64)addr, 100 * P), 0);
    assert_int_equal(fake_tlb_flushes, 0);
}

static void remap(void **state __unused)
{
    map_at(BASE, 300, RW, 0);
    for (u32 i = 0; i < 300; i++) {
        *fake_access(BASE + i * P, true) = (u8)i;
    }
    assert_int_equal(mm_remap(BASE, 300 * P, 300 * P, false), BASE);
    assert_int_equal(mm_remap(BASE, 300 * P, 200 * P, false), BASE); /* shrinks */
    assert_null(fake_access(BASE + 200 * P, false));
    assert_int_equal(mm_remap(BASE, 200 * P, 250 * P, false), BASE); /* grows in place */
    assert_int_equal(*fake_access(BASE + 249 * P, false), 0);
    map_at(BASE + 250 * P, 1, MM_READ, 0);
    assert_int_equal(mm_remap(BASE, 250 * P, 260 * P, false), -ENOMEM);
    i64 moved = mm_remap(BASE, 250 * P, 400 * P, true);
    assert_true(moved > 0 && (u64)moved != BASE);
    assert_int_equal(fake_tlb_stale(), 0);
    assert_null(fake_access(BASE, false));
    for (u32 i = 0; i < 400; i++) {
        assert_int_equal(*fake_access((u64)moved + i * P, true), i < 200 ? (u8)i : 0);
    }
    /* A part of a mapping moves alone. */
    i64 part = mm_remap((u64)moved + 100 * P, 2 * P, 50 * P, true);
    assert_int_equal(*fake_access((u64)part + P, false), 101);
    assert_null(fake_access((u64)moved + 101 * P, false));
    assert_int_equal(*fake_access((u64)moved + 102 * P, false), 102);
    assert_int_equal(mm_remap(BASE, P, 2 * P, true), -EFAULT);
    assert_int_equal(mm_remap(BASE + 1, P, 2 * P, true), -EINVAL);
    assert_int_equal(mm_remap((u64)moved, P, 0, true), -EINVAL);
}

static void populate(void **state __unused)
{
    i64 addr = mm_map(0, 10 * P, RW, MM_POPULATE, NULL);
    assert_true(addr > 0);
    assert_int_equal(anon_pages(), 10);
    assert_true(mm_map(0, P, 0, MM_POPULATE, NULL) > 0);
    assert_int_equal(mm_map(0, 2 * RAM, RW, MM_POPULATE | MM_NORESERVE, NULL), -ENOMEM);
    assert_int_equal(anon_pages(), 10);
}

static void too_much_is_refused(void **state __unused)
{
    struct mem_stats a, b;
    mem_stats(&a);
    assert_int_equal(mm_map(0, RAM, RW, 0, NULL), -ENOMEM);
    mem_stats(&b);
    assert_int_equal(b.map_refused, a.map_refused + 1);
    i64 addr = mm_map(0, RAM, RW, MM_NORESERVE, NULL);
    assert_true(addr > 0);
    assert_int_equal(mm_map(0, RAM, MM_READ, 0, NULL), (u64)addr - RAM);
    /* Used up to the last page: a fault says no, and the kernel still has its reserve. */
    fake_console_clear();
    u64 pages = 0;
    while (fake_access((u64)addr + pages * P, true) != NULL) {
        pages++;
    }
    mem_stats(&b);
    assert_true(b.free_pages >= PAGE_KERNEL_RESERVE);
    assert_true(b.fault_refused > a.fault_refused && b.events_oom > a.events_oom);
    assert_int_equal(b.events_max, a.events_max); /* no limit was in the way, only the RAM */
    void *p = kmalloc(4096);
    assert_non_null(p);
    kfree(p);
    assert_int_equal(mm_map(0, P, RW, 0, NULL), -ENOMEM);
    mm_unmap((u64)addr, RAM);
    assert_true(mm_map(0, P, RW, 0, NULL) > 0);
}

/* What was promised can be touched, all of it, however it was asked for: no fault fails before a
 * map call did. */
static void promises_are_kept(void **state __unused)
{
    static u64 addr[10000];
    u64 pages = 0, rng = test_seed(8), n = 0;
    struct mem_stats s, start;
    mem_stats(&start);
    for (; n < ARRAY_SIZE(addr); n++) {
        u64 len = 1 + test_below(&rng, 60);
        i64 a = mm_map(0, len * P, RW, 0, NULL);
        if (a < 0) {
            break;
        }
        if (test_below(&rng, 4) == 0) { /* grows, perhaps elsewhere */
            i64 b = mm_remap((u64)a, len * P, (len + 7) * P, true);
            a = b > 0 ? b : a;
            len += b > 0 ? 7 : 0;
        }
        addr[n] = (u64)a;
        for (u64 i = 0; i < len; i += 1 + test_below(&rng, 3)) { /* some now, the rest later */
            assert_non_null(fake_access((u64)a + i * P, true));
        }
        pages += len;
    }
    assert_true(n > 100 && n < ARRAY_SIZE(addr));
    for (u64 i = 0; i < n; i++) {
        u64 first, end;
        u32 prot;
        void *owner;
        assert_true(mm_query(addr[i], &first, &end, &prot, &owner));
        for (u64 va = first; va < end; va += P) {
            assert_non_null(fake_access(va, true));
        }
    }
    mem_stats(&s);
    assert_int_equal(s.fault_refused, start.fault_refused);
    assert_int_equal(s.promised_pages, 0);
    assert_int_equal(s.kind_pages[MEM_ANON], pages);
    assert_true(pages > RAM / P / 2);
    assert_int_equal(mm_discard(addr[0], P), 0);
    mem_stats(&s);
    assert_int_equal(s.promised_pages, 1);
    mm_unmap_owner(NULL);
    mem_stats(&s);
    assert_int_equal(s.promised_pages, 0);
}

/* Thread stacks as a C library makes them: far more than the memory, since most of each is never
 * touched. */
static void stacks_are_no_promise(void **state __unused)
{
    for (u32 i = 0; i < 2000; i++) {
        i64 a = mm_map(0, 33 * P, 0, 0, NULL);
        assert_true(a > 0);
        assert_int_equal(mm_protect((u64)a + P, 32 * P, RW), 0);
        assert_non_null(fake_access((u64)a + 32 * P, true));
    }
    struct mem_stats s;
    mem_stats(&s);
    assert_int_equal(s.promised_pages, 0);
    assert_true(mm_map(0, 4 * RAM, RW, MM_STACK, NULL) > 0);
}

static void lazy_unmap_shares_flushes(void **state __unused)
{
    static u64 stacks[1000];
    u64 batch = 0, flushes = 0; /* first stack that waits for the next flush */
    for (u32 i = 0; i < ARRAY_SIZE(stacks); i++) {
        i64 a = mm_map(0, 33 * P, RW, MM_STACK, NULL);
        assert_true(a > 0);
        stacks[i] = (u64)a;
        batch = fake_tlb_flushes != flushes ? i : batch;
        flushes = fake_tlb_flushes;
        for (u64 k = batch; k < i; k++) {
            assert_int_not_equal(stacks[k], stacks[i]);
        }
        *fake_access((u64)a + 32 * P, true) = 1;
        assert_int_equal(mm_unmap_lazy((u64)a, 33 * P), 0);
    }
    assert_true(fake_tlb_flushes >= 1000 / MM_LIMBO_RANGES &&
                fake_tlb_flushes <= 1000 / MM_LIMBO_RANGES + 1);
    assert_true(anon_pages() < MM_LIMBO_RANGES);
    assert_int_equal(mm_unmap_lazy(BASE, P), 0); /* nothing there */
    assert_int_equal(mm_unmap_lazy(BASE + 1, P), -EINVAL);
}

static void lazy_unmap_keeps_its_word(void **state __unused)
{
    u64 start, end;
    u32 prot;
    void *owner;
    map_at(BASE, 4, RW, 0);
    *fake_access(BASE + P, true) = 5;
    assert_int_equal(mm_unmap_lazy(BASE, 4 * P), 0);
    assert_int_equal(fake_tlb_flushes, 0);
    assert_int_equal(anon_pages(), 1);
    assert_false(mm_query(BASE, &start, &end, &prot, &owner));
    assert_false(mm_check(BASE, P, 0));
    assert_int_equal(mm_protect(BASE, P, RW), -ENOMEM); /* this waits, so it drains */
    assert_int_equal(anon_pages(), 0);
    assert_int_equal(fake_tlb_stale(), 0);
    /* An address of limbo that somebody asks for. */
    map_at(BASE, 4, RW, 0);
    *fake_access(BASE + P, true) = 5;
    assert_int_equal(mm_unmap_lazy(BASE, 4 * P), 0);
    assert_true(mm_map(BASE, P, RW, 0, NULL) != (i64)BASE); /* a hint: elsewhere */
    map_at(BASE, 4, RW, 0);
    assert_int_equal(*fake_access(BASE + P, false), 0);
    assert_int_equal(fake_tlb_stale(), 0);
    /* Never touched: gone at once. */
    map_at(BASE + 100 * P, 4, RW, 0);
    assert_int_equal(mm_unmap_lazy(BASE + 100 * P, 4 * P), 0);
    assert_int_equal(mm_map(BASE + 100 * P, P, RW, MM_FIXED_NOREPLACE, NULL), BASE + 100 * P);
    /* Too large to wait. */
    map_at(BASE + 200 * P, MM_LIMBO_PAGES + 1, RW, 0);
    for (u32 i = 0; i <= MM_LIMBO_PAGES; i++) {
        *fake_access(BASE + (200 + i) * P, true) = 1;
    }
    u64 before = anon_pages();
    assert_int_equal(mm_unmap_lazy(BASE + 200 * P, (MM_LIMBO_PAGES + 1) * P), 0);
    assert_int_equal(anon_pages(), before - MM_LIMBO_PAGES - 1);
    assert_int_equal(fake_tlb_stale(), 0);
    /* Shortage empties limbo. */
    map_at(BASE + 2000 * P, 200, RW, 0);
    for (u32 i = 0; i < 200; i++) {
        *fake_access(BASE + (2000 + i) * P, true) = 1;
    }
    assert_int_equal(mm_unmap_lazy(BASE + 2000 * P, 200 * P), 0);
    before = anon_pages();
    assert_int_equal(mm_map(0, RAM, RW, 0, NULL), -ENOMEM);
    assert_int_equal(anon_pages(), before - 200);
}

/* Unmapping a range with holes: these belong to it. */
static void holes_are_unmapped_too(void **state __unused)
{
    for (u32 i = 0; i < 10; i += 2) {
        map_at(BASE + i * P, 1, i % 4 == 0 ? RW : MM_READ, 0);
        assert_non_null(fake_access(BASE + i * P, false));
    }
    assert_int_equal(mm_unmap(BASE - P, 12 * P), 0);
    struct mem_stats s;
    mem_stats(&s);
    assert_int_equal(s.mappings, 0);
    assert_int_equal(s.promised_pages, 0);
    assert_int_equal(anon_pages(), 0);
}

static void page_tables_exhausted(void **state __unused)
{
    map_at(BASE, 4, RW, 0);
    fake_pt_map_budget = 2;
    assert_non_null(fake_access(BASE, true));
    assert_non_null(fake_access(BASE + P, true));
    assert_null(fake_access(BASE + 2 * P, true));
    assert_int_equal(anon_pages(), 2);
    fake_pt_map_budget = UINT64_MAX;
    assert_non_null(fake_access(BASE + 2 * P, true));
}

static bool count_three(u64 start __unused, u64 end __unused, u32 prot __unused,
                        void *owner __unused, void *arg)
{
    return ++*(u32 *)arg < 3;
}

static void listing(void **state __unused)
{
    for (u32 i = 0; i < 5; i++) {
        map_at(BASE + 2 * i * P, 1, RW, 0);
    }
    u32 n = 0;
    mm_for_each(count_three, &n);
    assert_int_equal(n, 3);
}

static void mapping_limit(void **state __unused)
{
    /* Alternating protections never merge. */
    u64 i = 0;
    while (mm_map(BASE + i * P, P, i % 2 != 0 ? MM_READ : 0, MM_FIXED_NOREPLACE, NULL) > 0) {
        i++;
        assert_true(i <= MM_MAX_MAPPINGS);
    }
    struct mem_stats s;
    mem_stats(&s);
    assert_int_equal(s.mappings, MM_MAX_MAPPINGS);
    assert_int_equal(mm_map(BASE, P, 0, MM_FIXED, NULL), -ENOMEM);
    assert_int_equal(mm_unmap(BASE, i * P), 0);
    assert_true(mm_map(BASE, P, RW, MM_FIXED, NULL) > 0);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, vm_set_up, vm_tear_down)
    const struct CMUnitTest tests[] = {
        TEST(demand_zero),
        TEST(top_down_and_merged),
        TEST(hints),
        TEST(fixed_replaces),
        TEST(protections),
        TEST(write_only_can_be_read),
        TEST(check_range),
        TEST(discard),
        TEST(remap),
        TEST(sparse_unmap_is_quick),
        TEST(populate),
        TEST(untouched_unmap_needs_no_flush),
        TEST(too_much_is_refused),
        TEST(page_tables_exhausted),
        TEST(promises_are_kept),
        TEST(stacks_are_no_promise),
        TEST(lazy_unmap_shares_flushes),
        TEST(lazy_unmap_keeps_its_word),
        TEST(holes_are_unmapped_too),
        TEST(listing),
        TEST(mapping_limit),
        TEST(vm_random_operations),
        TEST(vm_many_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
