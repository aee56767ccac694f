/* The mapping tree: order, gaps and balance against a page map. */
#include "core/base/string.h"
#include "core/mm/vmtree.h"
#include "tests/unit/fake/cmocka_all.h"

#define SPACE 400 /* addresses 1..SPACE-1; 0 means "none" */
#define STEPS 20000

static struct mapping nodes[SPACE];
static struct mapping *owner[SPACE]; /* the model */

static u64 model_gap(u64 lo, u64 hi, u64 len)
{
    u64 run = 0;
    for (u64 a = hi; a-- > lo;) {
        run = owner[a] == NULL ? run + 1 : 0;
        if (run == len) {
            return a;
        }
    }
    return 0;
}

static void check_tree(const struct vmtree *t)
{
    u64 count = 0;
    const struct mapping *last = NULL;
    for (struct mapping *m = vmtree_at_or_above(t, 0); m != NULL; m = vmtree_next(m)) {
        assert_ptr_equal(vmtree_prev(m), last);
        assert_true(last == NULL || last->end <= m->start);
        for (u64 a = m->start; a < m->end; a++) {
            assert_ptr_equal(owner[a], m);
        }
        last = m;
        count++;
    }
    assert_int_equal(count, t->count);
    for (u64 a = 0; a < SPACE; a += 7) {
        u64 next = a;
        while (next < SPACE && owner[next] == NULL) {
            next++;
        }
        assert_ptr_equal(vmtree_at_or_above(t, a), next < SPACE ? owner[next] : NULL);
    }
    for (u64 len = 1; len < 40; len += 3) {
        assert_int_equal(vmtree_find_gap(t, 1, SPACE, len), model_gap(1, SPACE, len));
    }
}

static void set_owner(u64 start, u64 end, struct mapping *m)
{
    for (u64 a = start; a < end; a++) {
        owner[a] = m;
    }
}

static struct mapping *unused_node(void)
{
    for (u32 i = 0; i < SPACE; i++) {
        if (nodes[i].end == 0) {
            return &nodes[i];
        }
    }
    return NULL;
}

static void step_insert(struct vmtree *t, u64 *rng)
{
    u64 start = 1 + test_below(rng, SPACE - 1), end = start;
    u64 want = 1 + test_below(rng, 12);
    while (end < SPACE && owner[end] == NULL && end - start < want) {
        end++;
    }
    struct mapping *m = unused_node();
    if (end == start || m == NULL) {
        return;
    }
    m->start = start;
    m->end = end;
    vmtree_insert(t, m);
    set_owner(start, end, m);
}

static void step_change(struct vmtree *t, u64 *rng)
{
    struct mapping *m = owner[test_below(rng, SPACE)];
    if (m == NULL) {
        return;
    }
    if (test_below(rng, 2) != 0) {
        set_owner(m->start, m->end, NULL);
        vmtree_remove(t, m);
        m->end = 0;
        return;
    }
    u64 start = m->start, end = m->end;
    set_owner(start, end, NULL);
    start += test_below(rng, end - start);
    while (end < SPACE && owner[end] == NULL && test_below(rng, 2) != 0) {
        end++;
    }
    vmtree_resize(m, start, end);
    set_owner(start, end, m);
}

static void random_operations(void **state __unused)
{
    struct vmtree t = {.seed = 5};
    u64 rng = test_seed(4);
    memset(nodes, 0, sizeof(nodes));
    memset(owner, 0, sizeof(owner));
    for (u32 step = 0; step < STEPS; step++) {
        if (test_below(&rng, 100) < 60) {
            step_insert(&t, &rng);
        } else {
            step_change(&t, &rng);
        }
        check_tree(&t);
    }
}

static u32 depth(const struct mapping *m)
{
    if (m == NULL) {
        return 0;
    }
    u32 left = depth(m->left), right = depth(m->right);
    return 1 + MAX(left, right);
}

/* Ascending insertion, the worst case of a plain search tree: 20,000 mappings as with 10,000
 * threads. */
static void stays_shallow(void **state __unused)
{
    static struct mapping many[20000];
    struct vmtree t = {.seed = 6};
    for (u64 i = 0; i < ARRAY_SIZE(many); i++) {
        many[i].start = 2 * i + 1;
        many[i].end = 2 * i + 2;
        vmtree_insert(&t, &many[i]);
    }
    assert_true(depth(t.root) <= 48); /* expected about 35; log2 is 14.3 */
}

static void gaps_at_the_edges(void **state __unused)
{
    struct vmtree t = {0};
    assert_int_equal(vmtree_find_gap(&t, 10, 100, 90), 10);
    assert_int_equal(vmtree_find_gap(&t, 10, 100, 91), 0);
    assert_int_equal(vmtree_find_gap(&t, 10, 100, 0), 0);
    struct mapping m = {.start = 40, .end = 95};
    vmtree_insert(&t, &m);
    assert_int_equal(vmtree_find_gap(&t, 10, 100, 5), 95);
    assert_int_equal(vmtree_find_gap(&t, 10, 100, 6), 34);
    assert_int_equal(vmtree_find_gap(&t, 10, 100, 30), 10);
    assert_int_equal(vmtree_find_gap(&t, 10, 100, 31), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations),
        cmocka_unit_test(stays_shallow),
        cmocka_unit_test(gaps_at_the_edges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
