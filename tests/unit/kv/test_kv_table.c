/* Page heap, arenas and hash tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/kv/arena.h"
#include "apps/kv/table.h"
#include "apps/kv/tunables.h"
#include "tests/unit/kv/kv_tests.h"

static uint64_t seed;

static uint32_t roll(void)
{
    seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(seed >> 33);
}

/* ---- pages ---- */

#define SPANS 400

/* Random allocations and frees: no two live spans overlap, and everything goes back. */
static void pages_do_not_overlap(void **state)
{
    static struct span *live[SPANS];
    size_t before = pages_mapped();

    (void)state;
    seed = 1;
    memset(live, 0, sizeof(live));
    for (int step = 0; step < 20000; step++) {
        size_t i = roll() % SPANS;

        if (live[i]) {
            unsigned char *p = span_base(live[i]);

            /* Its marks are untouched. */
            assert_int_equal(p[0], i & 255);
            assert_int_equal(p[live[i]->npages * (size_t)KV_PAGE_SIZE - 1], i & 255);
            assert_ptr_equal(span_of(p + live[i]->npages * (size_t)KV_PAGE_SIZE - 1), live[i]);
            pages_free(live[i]);
            live[i] = NULL;
        } else {
            size_t n = roll() % 40 == 0 ? pages_max() : roll() % 12 + 1;
            unsigned char *p;

            live[i] = pages_alloc(n);
            assert_non_null(live[i]);
            assert_int_equal(live[i]->npages, n);
            p = span_base(live[i]);
            assert_int_equal((uintptr_t)p % KV_PAGE_SIZE, 0);
            p[0] = (unsigned char)i;
            p[n * KV_PAGE_SIZE - 1] = (unsigned char)i;
        }
    }
    for (size_t i = 0; i < SPANS; i++) {
        if (live[i]) {
            pages_free(live[i]);
        }
    }
    assert_true(pages_mapped() <= before + KV_CHUNK_SPARE * (size_t)KV_CHUNK_SIZE);
}

/* ---- arena ---- */

static void arena_classes(void **state)
{
    size_t last = 0;

    (void)state;
    for (size_t n = 1; n <= 2 * KV_SLAB_MAX; n++) {
        size_t r = arena_round(n);

        assert_true(r >= n && r >= last);
        /* At most 16 bytes or an eighth are lost (large blocks: to the page). */
        assert_true(r - n < 16 || (r - n) * 8 <= n || (n > KV_SLAB_MAX && r - n < KV_PAGE_SIZE));
        assert_int_equal(arena_round(r), r);
        last = r;
    }
}

#define BLOCKS 2000

static void arena_blocks_do_not_overlap(void **state)
{
    static unsigned char *p[BLOCKS];
    static size_t size[BLOCKS];
    static const size_t ranges[] = {64, 300, 5000, 40000, 2000000};
    struct arena a;

    (void)state;
    seed = 2;
    memset(p, 0, sizeof(p));
    arena_init(&a);
    for (int step = 0; step < 40000; step++) {
        size_t i = roll() % BLOCKS;

        if (p[i]) {
            assert_int_equal(p[i][0], i & 255);
            assert_int_equal(p[i][size[i] - 1], i & 255);
            arena_free(&a, p[i], size[i]);
            p[i] = NULL;
            continue;
        }
        /* Large ones are rare, or the test would only touch pages. */
        size[i] = roll() % ranges[roll() % 200 == 0 ? 4 : roll() % 4] + 1;
        p[i] = arena_alloc(&a, size[i]);
        assert_non_null(p[i]);
        assert_int_equal((uintptr_t)p[i] % 16, 0);
        p[i][0] = (unsigned char)i;
        p[i][size[i] - 1] = (unsigned char)i;
        assert_true(a.used <= a.reserved);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        if (p[i]) {
            arena_free(&a, p[i], size[i]);
        }
    }
    assert_int_equal(a.used, 0);
    /* What stays is one empty slab per class at most. */
    for (int i = 0; i < ARENA_CLASSES; i++) {
        if (a.room[i]) {
            assert_int_equal(a.room[i]->nused, 0);
            assert_null(a.room[i]->next);
            a.reserved -= (size_t)a.room[i]->npages * KV_PAGE_SIZE;
            pages_free(a.room[i]);
        }
    }
    assert_int_equal(a.reserved, 0);
}

/* ---- table ---- */

static size_t array_bytes;
static bool refuse_arrays;

static void *array_alloc(void *ctx, size_t bytes)
{
    (void)ctx;
    if (refuse_arrays) {
        return NULL;
    }
    array_bytes += bytes;
    return calloc(1, bytes);
}

static void array_free(void *ctx, void *p, size_t bytes)
{
    (void)ctx;
    array_bytes -= bytes;
    free(p);
}

static const struct table_mem mem = {array_alloc, array_free, NULL};

static struct item *new_item(uint32_t n)
{
    struct item *it = calloc(1, item_size(sizeof(n), 0));

    it->klen = sizeof(n);
    it->hash = n * 2654435761u;
    memcpy(it->data, &n, sizeof(n));
    return it;
}

static struct item *find(struct table *t, uint32_t n)
{
    return table_find(t, (const char *)&n, sizeof(n), n * 2654435761u);
}

#define KEYS 5000u

/* Against a simple set, through growing and shrinking, incremental and all at once. */
static void table_against_model(bool stop_the_world)
{
    static bool there[KEYS];
    struct table t;
    size_t n = 0;
    bool rehashed = false;

    seed = 3;
    memset(there, 0, sizeof(there));
    assert_int_equal(table_init(&t, 6, stop_the_world, mem), 0);
    for (int step = 0; step < 200000; step++) {
        /* Mostly inserts in the first half, mostly removals in the second. */
        bool insert = roll() % 10 < (step < 100000 ? 7u : 3u);
        uint32_t k = roll() % KEYS;
        struct item *it = find(&t, k);

        assert_int_equal(it != NULL, there[k]);
        if (insert && !it) {
            table_insert(&t, new_item(k));
            there[k] = true;
            n++;
        } else if (!insert && it) {
            table_remove(&t, it);
            free(it);
            there[k] = false;
            n--;
        }
        assert_int_equal(t.used, n);
        rehashed |= table_rehashing(&t);
        assert_false(stop_the_world && table_rehashing(&t));
    }
    assert_true(rehashed != stop_the_world);
    assert_true(t.rehashes > 4);
    for (uint32_t k = 0; k < KEYS; k++) {
        struct item *it = find(&t, k);

        if (it) {
            table_remove(&t, it);
            free(it);
        }
    }
    /* Empty again: back at the smallest array once the last rehash has been paid for. */
    while (table_step(&t)) {
    }
    table_destroy(&t);
    assert_int_equal(array_bytes, 0);
}

static void table_incremental(void **state)
{
    (void)state;
    table_against_model(false);
}

static void table_stop_the_world(void **state)
{
    (void)state;
    table_against_model(true);
}

/* No operation may move more than its few buckets. */
static void table_pays_little(void **state)
{
    struct table t;
    size_t before;

    (void)state;
    assert_int_equal(table_init(&t, 0, false, mem), 0);
    for (uint32_t k = 0; k < KEYS; k++) {
        before = t.moved;
        table_insert(&t, new_item(k));
        if (table_rehashing(&t) && t.moved > before) {
            assert_true(t.moved - before <= KV_REHASH_STEP + KV_REHASH_EMPTY);
        }
    }
    for (uint32_t k = 0; k < KEYS; k++) {
        struct item *it = find(&t, k);

        assert_non_null(it);
        table_remove(&t, it);
        free(it);
    }
    table_destroy(&t);
}

/* Without memory for a larger array the table goes on with longer chains. */
static void table_survives_refusal(void **state)
{
    struct table t;

    (void)state;
    assert_int_equal(table_init(&t, 0, false, mem), 0);
    refuse_arrays = true;
    for (uint32_t k = 0; k < 200; k++) {
        table_insert(&t, new_item(k));
    }
    refuse_arrays = false;
    assert_int_equal(table_buckets(&t), KV_TABLE_MIN);
    for (uint32_t k = 0; k < 200; k++) {
        struct item *it = find(&t, k);

        assert_non_null(it);
        table_remove(&t, it);
        free(it);
    }
    table_destroy(&t);
}

static bool seen[KEYS];

static void note_seen(void *ctx, struct item *it)
{
    uint32_t k;

    (void)ctx;
    memcpy(&k, it->data, sizeof(k));
    seen[k] = true;
}

/* SCAN's promise: a key that is there all the time is seen, however the table is resized between
 * the steps. The first 100 keys stay; the others come and go. */
static void table_scan_misses_nothing(void **state)
{
    struct table t;

    (void)state;
    seed = 4;
    for (int round = 0; round < 50; round++) {
        uint64_t cursor = 0;
        unsigned steps = 0;

        assert_int_equal(table_init(&t, 0, false, mem), 0);
        memset(seen, 0, sizeof(seen));
        for (uint32_t k = 0; k < 100 + roll() % 1000; k++) {
            table_insert(&t, new_item(k));
        }
        do {
            cursor = table_scan(&t, cursor, note_seen, NULL);
            for (unsigned i = roll() % 64; i > 0; i--) {
                uint32_t k = 100 + roll() % (KEYS - 100);
                struct item *it = find(&t, k);

                if (it) {
                    table_remove(&t, it);
                    free(it);
                } else if (roll() % 2 || round % 2) {
                    table_insert(&t, new_item(k));
                }
            }
            assert_true(++steps < 100000);
        } while (cursor != 0);
        for (uint32_t k = 0; k < 100; k++) {
            assert_true(seen[k]);
        }
        for (uint32_t k = 0; k < KEYS; k++) {
            struct item *it = find(&t, k);

            if (it) {
                table_remove(&t, it);
                free(it);
            }
        }
        table_destroy(&t);
    }
}

int kv_table_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_do_not_overlap),        cmocka_unit_test(arena_classes),
        cmocka_unit_test(arena_blocks_do_not_overlap), cmocka_unit_test(table_incremental),
        cmocka_unit_test(table_stop_the_world),        cmocka_unit_test(table_pays_little),
        cmocka_unit_test(table_survives_refusal),      cmocka_unit_test(table_scan_misses_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
