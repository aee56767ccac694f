/* Slabs and kmalloc. */
#include <pthread.h>

#include "core/base/param.h"
#include "core/base/string.h"
#include "core/mm/mm.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"

#define RAM         (64ull << 20)
#define STEPS       60000
#define MAX_OBJECTS 3000

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

struct object {
    u8 *p;
    size_t bytes;
    u8 fill;
};

static size_t random_size(u64 *rng)
{
    switch (test_below(rng, 4)) {
    case 0:
        return BIT(test_below(rng, 13));
    case 1:
        return test_below(rng, 4097);
    case 2:
        return test_below(rng, 200);
    default:
        return test_below(rng, 50) == 0 ? test_below(rng, 100000) : test_below(rng, 1500);
    }
}

static void fill(const struct object *o)
{
    memset(o->p, o->fill, o->bytes);
}

static void check(const struct object *o)
{
    for (size_t i = 0; i < o->bytes; i++) {
        assert_int_equal(o->p[i], o->fill);
    }
}

/* Objects never overlap (each keeps its pattern), whatever CPU they come from and go to. */
static void random_objects(void **state __unused)
{
    static struct object objects[MAX_OBJECTS];
    u64 rng = test_seed(3);
    u32 n = 0;
    for (u32 step = 0; step < STEPS; step++) {
        fake_cpu_set((u32)test_below(&rng, 3));
        if (n == 0 ||
            (n < MAX_OBJECTS && test_below(&rng, 100) < ((step / 8000) % 2 == 0 ? 65 : 35))) {
            struct object o = {.bytes = random_size(&rng), .fill = (u8)step};
            o.p = kmalloc(o.bytes);
            assert_non_null(o.p);
            assert_true(IS_ALIGNED((u64)(uintptr_t)o.p, 16));
            if (o.bytes >= 16 && o.bytes <= PAGE_SIZE && (o.bytes & (o.bytes - 1)) == 0) {
                assert_true(IS_ALIGNED((u64)(uintptr_t)o.p, o.bytes));
            }
            fill(&o);
            objects[n++] = o;
        } else {
            u32 i = (u32)test_below(&rng, n);
            check(&objects[i]);
            kfree(objects[i].p);
            objects[i] = objects[--n];
        }
    }
    while (n > 0) {
        check(&objects[--n]);
        kfree(objects[n].p);
    }
}

struct totals {
    u64 in_use, pages;
};

static void add_up(const char *name __unused, size_t bytes __unused, u64 in_use, u64 pages,
                   void *arg)
{
    struct totals *t = arg;
    t->in_use += in_use;
    t->pages += pages;
}

static void counts_and_gives_back(void **state __unused)
{
    static void *p[20000];
    struct totals before = {0}, full = {0}, after = {0};
    slab_for_each(add_up, &before);
    for (u32 i = 0; i < ARRAY_SIZE(p); i++) {
        p[i] = kmalloc(100);
        assert_non_null(p[i]);
    }
    slab_for_each(add_up, &full);
    assert_int_equal(full.in_use - before.in_use, ARRAY_SIZE(p));
    assert_true(full.pages - before.pages >= ARRAY_SIZE(p) * 112 / PAGE_SIZE);
    for (u32 i = 0; i < ARRAY_SIZE(p); i++) {
        kfree(p[i]);
    }
    slab_for_each(add_up, &after);
    assert_int_equal(after.in_use, before.in_use);
    assert_true(after.pages <= before.pages + (SLAB_MAX_EMPTY + 2) * BIT(SLAB_MAX_ORDER));
}

static void out_of_memory(void **state __unused)
{
    struct {
        void *next;
    } *list = NULL, *p;
    u32 n = 0;
    while ((p = kmalloc(4096)) != NULL) {
        p->next = list;
        list = p;
        n++;
    }
    assert_true(n > (RAM / 4096) * 3 / 4);
    assert_null(kmalloc(100000));
    while (list != NULL) {
        p = list;
        list = p->next;
        kfree(p);
    }
    assert_non_null(p = kmalloc(100000));
    kfree(p);
    assert_null(kmalloc((PAGE_SIZE << PAGE_MAX_ORDER) + 1));
    assert_null(kmalloc(SIZE_MAX));
    kfree(NULL);
}

static void bad_caches(void **state __unused)
{
    fake_console_clear();
    assert_null(slab_create("zero", 0, 16, MEM_KERNEL));
    assert_null(slab_create("huge", 4097, 16, MEM_KERNEL));
    assert_null(slab_create("crooked", 64, 24, MEM_KERNEL));
    u32 n = 0;
    while (slab_create("many", 64, 0, MEM_NET) != NULL) {
        assert_true(++n <= SLAB_MAX_CACHES);
    }
    assert_non_null(strstr(fake_console_text(), "slab many: all 64 caches are in use"));
}

/* ---- what debug builds must catch ---- */

static void free_twice(void *arg)
{
    void *p = kmalloc((size_t)(uintptr_t)arg);
    kfree(p);
    kfree(p);
}

static void free_middle(void *arg __unused)
{
    kfree((u8 *)kmalloc(64) + 16);
}

static void free_static(void *arg __unused)
{
    static u64 word;
    kfree(&word);
}

static void free_page(void *arg __unused)
{
    kfree(phys_to_virt(page_alloc(0, MEM_KERNEL)));
}

static void free_other_cache(void *arg __unused)
{
    struct slab_cache *a = slab_create("a", 64, 0, MEM_KERNEL),
                      *b = slab_create("b", 64, 0, MEM_KERNEL);
    slab_free(a, slab_alloc(b));
}

__attribute__((no_sanitize("address"))) static void write_after_free(void *arg __unused)
{
    volatile u8 *p = kmalloc(64);
    kfree((void *)(uintptr_t)p);
    p[40] = 1;
    kmalloc(64);
}

static void misuse_panics(void **state __unused)
{
    fake_assert_panics(free_twice, (void *)64, "freed twice");
    fake_assert_panics(free_twice, (void *)10000, "not allocated by kmalloc");
    fake_assert_panics(free_middle, NULL, "not the start of an object");
    fake_assert_panics(free_static, NULL, "not in RAM");
    fake_assert_panics(free_page, NULL, "not allocated by kmalloc");
    fake_assert_panics(free_other_cache, NULL, "is not one of its objects");
    fake_assert_panics(write_after_free, NULL, "was written to at byte 40");
}

/* ---- several CPUs at once ---- */

#define THREADS 4
#define ROUNDS  20000
static void *exchange[64]; /* objects change hands between CPUs here */

static void *hammer(void *arg)
{
    u64 rng = (u64)(uintptr_t)arg + 99;
    fake_cpu_set((u32)(uintptr_t)arg);
    for (u32 i = 0; i < ROUNDS; i++) {
        u8 *p = kmalloc(96);
        assert_non_null(p);
        memset(p, (int)i, 96);
        kfree(__atomic_exchange_n(&exchange[test_below(&rng, ARRAY_SIZE(exchange))], p,
                                  __ATOMIC_ACQ_REL));
    }
    return NULL;
}

static void many_cpus(void **state __unused)
{
    pthread_t threads[THREADS];
    struct totals before = {0}, after = {0};
    slab_for_each(add_up, &before);
    for (u64 i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, (void *)(uintptr_t)i), 0);
    }
    for (u32 i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (u32 i = 0; i < ARRAY_SIZE(exchange); i++) {
        kfree(exchange[i]);
        exchange[i] = NULL;
    }
    slab_for_each(add_up, &after);
    assert_int_equal(after.in_use, before.in_use);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(random_objects), TEST(counts_and_gives_back), TEST(out_of_memory),
        TEST(bad_caches),     TEST(misuse_panics),         TEST(many_cpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
