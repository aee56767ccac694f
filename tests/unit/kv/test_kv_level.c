/* The soft level of the store: memory.high of the control group, met by eviction and by nothing else. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "apps/kv/server.h"
#include "apps/kv/store.h"
#include "tests/unit/kv/kv_tests.h"

#define NOW 1700000000000ull
#define VALUE 1000u

static struct store st;
static struct op op;

static bool put(int number)
{
    char name[32];
    int len = snprintf(name, sizeof(name), "key:%d", number);
    struct key k = key_make(&st, name, (size_t)len);
    struct shard *s = op_lock(&op, &k);
    struct item *it = shard_put(s, &k, shard_find(s, &k, op.now_ms), VALUE, false, op.now_ms);

    if (it) {
        memset(item_value(it), 'v', VALUE);
    }
    op_unlock(&op, &k);
    return it != NULL;
}

/* Stores 8 MB above a level of 4 MB; every one must succeed. */
static void fill_above_soft(enum evict_policy policy)
{
    const struct store_config cfg = {.nshards = 16, .policy = policy, .secret = {1, 2}};

    assert_int_equal(store_init(&st, &cfg), 0);
    op_begin(&op, &st, NOW);
    atomic_store(&st.mem.look_at, SIZE_MAX);
    atomic_store(&st.mem.soft, 4u << 20);
    for (int i = 0; i < 8000; i++) {
        assert_true(put(i));
    }
}

static void above_the_soft_level_items_go_and_none_is_refused(void **state)
{
    struct store_totals t;

    (void)state;
    fill_above_soft(EVICT_ALL_LRU);
    store_totals(&op, &t);
    assert_true(t.stat[ST_EVICTED_SOFT] > 3000 && t.stat[ST_OOM] == 0);
    /* 1.1 KB each; what shards hold in advance counts as used. */
    assert_true(store_count(&op) > 1500);
    /* The level, and the item that found it just met. */
    assert_true(atomic_load(&st.mem.used) <= (4u << 20) + KV_CREDIT_MAX + 2000);
    store_destroy(&st);
}

static void the_soft_level_takes_nothing_that_may_not_go(void **state)
{
    struct store_totals t;

    (void)state;
    fill_above_soft(EVICT_NONE);
    assert_int_equal(store_count(&op), 8000);
    store_destroy(&st);
    fill_above_soft(EVICT_VOLATILE_LRU); /* nothing is volatile */
    assert_int_equal(store_count(&op), 8000);
    store_totals(&op, &t);
    assert_int_equal(t.stat[ST_EVICTED_SOFT], 0);
    store_destroy(&st);
}

static void write_file(const char *dir, const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static void soft_level_of_a_group(void **state)
{
    char dir[] = "/tmp/kv-level-XXXXXX", path[128];
    const size_t mb = 1u << 20;

    (void)state;
    assert_non_null(mkdtemp(dir));
    assert_int_equal(memlevel_soft(dir, 5 * mb), 0); /* no such files */
    write_file(dir, "memory.high", "max\n");
    write_file(dir, "memory.current", "20971520\n");
    assert_int_equal(memlevel_soft(dir, 5 * mb), 0);
    write_file(dir, "memory.high", "104857600\n"); /* 100 MB, of which 15 are others' */
    assert_int_equal(memlevel_soft(dir, 5 * mb), 85 * mb - KV_LEVEL_MARGIN);
    assert_int_equal(memlevel_soft(dir, 30 * mb), 100 * mb - KV_LEVEL_MARGIN); /* counted, not yet touched */
    write_file(dir, "memory.high", "1048576\n"); /* less than the others have */
    assert_int_equal(memlevel_soft(dir, 5 * mb), 1);
    write_file(dir, "memory.high", "garbage\n");
    assert_int_equal(memlevel_soft(dir, 5 * mb), 0);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, i ? "memory.high" : "memory.current");
        assert_int_equal(unlink(path), 0);
    }
    assert_int_equal(rmdir(dir), 0);
}

int kv_level_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(above_the_soft_level_items_go_and_none_is_refused),
        cmocka_unit_test(the_soft_level_takes_nothing_that_may_not_go),
        cmocka_unit_test(soft_level_of_a_group),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
