/* The address space against a naive model (an array of pages), and several CPUs at once. */
#include <pthread.h>

#include "core/base/errno.h"
#include "core/base/param.h"
#include "core/base/string.h"
#include "core/mm/vm.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"
#include "tests/unit/mm/test_vm.h"

#define P      PAGE_SIZE
#define WINDOW 200 /* pages that the model knows */
#define BASE                                                                                       \
    (0x7f0000000000ull - 100 * P) /* spans a 512 GiB boundary of page tables and counters */
#define STEPS 8000

struct model_page {
    bool mapped;
    bool promised; /* mapped writable: a mapping of its own beside others */
    u32 prot;
    void *owner;
    u8 value;
};

static struct model_page model[WINDOW];
static int owners[3];
static const u32 prots[] = {0, MM_READ, MM_READ | MM_WRITE, MM_READ | MM_WRITE, MM_READ | MM_EXEC};

static u64 page_addr(u64 i)
{
    return BASE + i * P;
}

static bool all_mapped(u64 a, u64 b)
{
    for (; a < b; a++) {
        if (!model[a].mapped) {
            return false;
        }
    }
    return true;
}

static void set_pages(u64 a, u64 b, struct model_page value)
{
    for (; a < b; a++) {
        model[a] = value;
    }
}

static void do_map(u64 a, u64 b, u64 *rng)
{
    u32 prot = prots[test_below(rng, ARRAY_SIZE(prots))];
    struct model_page page = {true, (prot & MM_WRITE) != 0, prot, &owners[test_below(rng, 3)], 0};
    bool replace = test_below(rng, 2) != 0, any = false;
    for (u64 i = a; i < b; i++) {
        any |= model[i].mapped;
    }
    i64 result = mm_map(page_addr(a), (b - a) * P, page.prot,
                        replace ? MM_FIXED : MM_FIXED_NOREPLACE, page.owner);
    if (!replace && any) {
        assert_int_equal(result, -EEXIST);
        return;
    }
    assert_int_equal(result, page_addr(a));
    set_pages(a, b, page);
}

static void do_protect(u64 a, u64 b, u64 *rng)
{
    u32 prot = prots[test_below(rng, ARRAY_SIZE(prots))];
    int result = mm_protect(page_addr(a), (b - a) * P, prot);
    assert_int_equal(result, all_mapped(a, b) ? 0 : -ENOMEM);
    for (u64 i = a; result == 0 && i < b; i++) {
        model[i].prot = prot;
    }
}

static void do_discard(u64 a, u64 b)
{
    assert_int_equal(mm_discard(page_addr(a), (b - a) * P), all_mapped(a, b) ? 0 : -ENOMEM);
    for (u64 i = a; i < b; i++) {
        model[i].value = 0;
    }
}

static void do_access(u64 i, u64 *rng)
{
    bool write = test_below(rng, 2) != 0;
    fake_cpu_set((u32)test_below(rng, 4));
    u8 *p = fake_access(page_addr(i), write);
    bool allowed =
        model[i].mapped && model[i].prot != 0 && (!write || (model[i].prot & MM_WRITE) != 0);
    assert_int_equal(p != NULL, allowed);
    if (allowed) {
        assert_int_equal(*p, model[i].value);
        if (write) {
            *p = model[i].value = (u8)test_random(rng);
        }
    }
}

/* One mapping's worth of pages of the model, so that remap has something valid to work on. */
static bool same_run(u64 a, u64 b)
{
    for (u64 i = a; i < b; i++) {
        if (!model[i].mapped || model[i].prot != model[a].prot ||
            model[i].owner != model[a].owner || model[i].promised != model[a].promised) {
            return false;
        }
    }
    return true;
}

static void do_remap(u64 a, u64 b, u64 *rng)
{
    u64 new_pages = 1 + test_below(rng, 40);
    if (!same_run(a, b) || a + new_pages > WINDOW) {
        return;
    }
    bool room = true;
    for (u64 i = b; i < a + new_pages; i++) {
        room &= !model[i].mapped;
    }
    i64 result = mm_remap(page_addr(a), (b - a) * P, new_pages * P, false);
    if (a + new_pages > b && !room) {
        assert_int_equal(result, -ENOMEM);
        return;
    }
    assert_int_equal(result, page_addr(a));
    struct model_page first = model[a];
    first.value = 0;
    set_pages(a + new_pages, MAX(b, a + new_pages), (struct model_page){0});
    for (u64 i = b; i < a + new_pages; i++) {
        model[i] = first;
    }
}

/* Moves a run out of the window and back, by contents. */
static void do_move(u64 a, u64 b)
{
    if (!same_run(a, b) || model[a].prot == 0) {
        return;
    }
    u64 pages = b - a;
    i64 to = mm_remap(page_addr(a), pages * P, (pages + WINDOW) * P, true);
    assert_true(to > 0);
    for (u64 i = 0; i < pages; i++) {
        assert_int_equal(*fake_access((u64)to + i * P, false), model[a + i].value);
    }
    assert_int_equal(mm_unmap((u64)to, (pages + WINDOW) * P), 0);
    if ((u64)to != page_addr(a)) {
        set_pages(a, b, (struct model_page){0});
    } else { /* it grew in place, so everything above it in the window was free */
        set_pages(a, WINDOW, (struct model_page){0});
    }
}

static void check_all(void)
{
    for (u64 i = 0; i < WINDOW; i++) {
        u64 start, end;
        u32 prot;
        void *owner;
        bool found = mm_query(page_addr(i), &start, &end, &prot, &owner);
        assert_int_equal(found, model[i].mapped);
        if (found) {
            assert_int_equal(prot, model[i].prot);
            assert_ptr_equal(owner, model[i].owner);
        }
        paddr_t pa;
        if (fake_pt_query(page_addr(i), &pa, &prot)) {
            assert_true(model[i].mapped);
            assert_int_equal(prot, model[i].prot);
            assert_int_equal(*(u8 *)phys_to_virt(pa), model[i].value);
        } else {
            assert_int_equal(model[i].value, 0);
        }
    }
    assert_int_equal(fake_tlb_stale(), 0);
}

static void step(u64 *rng)
{
    u64 a = test_below(rng, WINDOW), b = a + 1 + test_below(rng, MIN(WINDOW - a, 30ull));
    void *owner = &owners[test_below(rng, 3)];
    switch (test_below(rng, 16)) {
    case 0:
    case 1:
        do_map(a, b, rng);
        break;
    case 2:
        if (test_below(rng, 2) != 0) {
            assert_int_equal(mm_unmap_lazy(page_addr(a), (b - a) * P), 0);
            vm_drain_limbo(); /* the model's TLB check wants it settled */
        } else {
            assert_int_equal(mm_unmap(page_addr(a), (b - a) * P), 0);
        }
        set_pages(a, b, (struct model_page){0});
        break;
    case 3:
        do_protect(a, b, rng);
        break;
    case 4:
        do_discard(a, b);
        break;
    case 5:
        do_remap(a, b, rng);
        break;
    case 6:
        do_move(a, b);
        break;
    case 7:
        if (test_below(rng, 20) == 0) {
            mm_unmap_owner(owner);
            for (u64 i = 0; i < WINDOW; i++) {
                model[i] = model[i].owner == owner ? (struct model_page){0} : model[i];
            }
        }
        break;
    default:
        do_access(a, rng);
        break;
    }
}

void vm_random_operations(void **state __unused)
{
    u64 rng = test_seed(7);
    struct mem_stats s;
    set_pages(0, WINDOW, (struct model_page){0});
    for (u32 i = 0; i < STEPS; i++) {
        step(&rng);
        check_all();
    }
    assert_int_equal(mm_unmap(BASE, WINDOW * P), 0);
    mem_stats(&s);
    assert_int_equal(s.mappings, 0);
    assert_int_equal(s.promised_pages, 0);
    assert_int_equal(s.kind_pages[MEM_ANON], 0);
}

/* ---- several CPUs: each maps, writes, checks and unmaps its own memory, all through one address
 * space ---- */

#define THREADS 4
#define ROUNDS  300

static void *mapper(void *arg)
{
    u64 rng = (u64)(uintptr_t)arg + 1234;
    u8 tag = (u8)((uintptr_t)arg + 1);
    fake_cpu_set((u32)(uintptr_t)arg);
    for (u32 round = 0; round < ROUNDS; round++) {
        u64 pages = 1 + test_below(&rng, 20);
        i64 addr = mm_map(0, pages * P, MM_READ | MM_WRITE, 0,
                          NULL); /* one owner: neighbours merge and split */
        assert_true(addr > 0);
        for (u64 i = 0; i < pages; i++) {
            u8 *p = fake_access((u64)addr + i * P, true);
            assert_non_null(p);
            assert_int_equal(*p, 0);
            *p = tag;
        }
        if (test_below(&rng, 3) == 0) {
            addr = mm_remap((u64)addr, pages * P, (pages + 5) * P, true);
            assert_true(addr > 0);
            pages += 5;
            assert_int_equal(*fake_access((u64)addr, false), tag);
        }
        if (test_below(&rng, 2) == 0) {
            assert_int_equal(mm_unmap((u64)addr, pages * P), 0);
            continue;
        }
        /* Lazily, and then perhaps the same address at once. */
        assert_int_equal(mm_unmap_lazy((u64)addr, pages * P), 0);
        if (test_below(&rng, 4) == 0 &&
            mm_map((u64)addr, P, MM_READ | MM_WRITE, MM_FIXED_NOREPLACE, NULL) > 0) {
            u8 *p = fake_access((u64)addr, true);
            assert_non_null(p);
            assert_int_equal(*p, 0);
            assert_int_equal(mm_unmap((u64)addr, P), 0);
        }
    }
    return NULL;
}

void vm_many_cpus(void **state __unused)
{
    pthread_t threads[THREADS];
    struct mem_stats s;
    for (u64 i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, mapper, (void *)(uintptr_t)i), 0);
    }
    for (u32 i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    vm_drain_limbo();
    mem_stats(&s);
    assert_int_equal(s.mappings, 0);
    assert_int_equal(s.kind_pages[MEM_ANON], 0);
    assert_int_equal(fake_tlb_stale(), 0);
}
