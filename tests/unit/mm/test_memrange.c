/* Range sets against a byte map. */
#include "core/mm/memrange.h"
#include "core/base/param.h"
#include "tests/unit/fake/cmocka_all.h"

#define SPACE 512
#define STEPS 20000

static void check_equal(const struct memrange_set *set, const bool *model)
{
    bool have[SPACE] = {false};
    for (u32 i = 0; i < set->count; i++) {
        assert_true(set->r[i].start < set->r[i].end);
        assert_true(i == 0 || set->r[i - 1].end < set->r[i].start);
        for (u64 b = set->r[i].start; b < set->r[i].end; b++) {
            have[b] = true;
        }
    }
    assert_memory_equal(have, model, sizeof(have));
}

static void random_operations(void **state __unused)
{
    u64 rng = test_seed(1);
    static struct memrange_set set;
    bool model[SPACE] = {false};
    set.count = 0;
    for (u32 step = 0; step < STEPS; step++) {
        u64 a = test_below(&rng, SPACE), b = test_below(&rng, SPACE);
        bool add = test_below(&rng, 2) != 0;
        for (u64 i = a; i < b; i++) {
            model[i] = add;
        }
        assert_true(add ? memrange_add(&set, a, b) : memrange_remove(&set, a, b));
        check_equal(&set, model);
    }
}

static void trims_to_pages(void **state __unused)
{
    static struct memrange_set set;
    set.count = 0;
    memrange_add(&set, 1, PAGE_SIZE - 1);                     /* no whole page */
    memrange_add(&set, 3 * PAGE_SIZE - 1, 5 * PAGE_SIZE + 1); /* pages 3 and 4 */
    memrange_trim_to_pages(&set);
    assert_int_equal(set.count, 1);
    assert_int_equal(set.r[0].start, 3 * PAGE_SIZE);
    assert_int_equal(memrange_bytes(&set), 2 * PAGE_SIZE);
}

static void full_set_refuses(void **state __unused)
{
    static struct memrange_set set;
    set.count = 0;
    for (u64 i = 0; i < MEMRANGE_MAX; i++) {
        assert_true(memrange_add(&set, i * 10, i * 10 + 5));
    }
    assert_false(memrange_add(&set, MEMRANGE_MAX * 10, MEMRANGE_MAX * 10 + 5));
    assert_false(memrange_remove(&set, 2, 3));
    assert_true(memrange_add(&set, 5, 10)); /* joins two: needs no room */
    assert_int_equal(set.count, MEMRANGE_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations),
        cmocka_unit_test(trims_to_pages),
        cmocka_unit_test(full_set_refuses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
