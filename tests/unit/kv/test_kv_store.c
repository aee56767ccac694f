/* The store: limits, eviction, expiry, watches, lock sets, statistics. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "apps/kv/store.h"
#include "tests/unit/kv/kv_tests.h"

#define NOW 1700000000000ull

static struct store st;
static struct op op;

static void open_store(unsigned nshards, size_t max, enum evict_policy policy)
{
    struct store_config cfg = {.nshards = nshards,
                               .max_memory = max,
                               .policy = policy,
                               .lock_stats = true,
                               .secret = {1, 2}};

    assert_int_equal(store_init(&st, &cfg), 0);
    op_begin(&op, &st, NOW);
}

static void close_store(void)
{
    store_destroy(&st);
    /* Everything charged has been given back, but for the shards themselves. */
    assert_int_equal(atomic_load(&st.mem.used), sizeof(struct shard) * st.nshards);
}

static bool put(const char *name, size_t vlen, char fill)
{
    struct key k = key_make(&st, name, strlen(name));
    struct shard *s = op_lock(&op, &k);
    struct item *it = shard_put(s, &k, shard_find(s, &k, op.now_ms), vlen, false, op.now_ms);

    if (it) {
        memset(item_value(it), fill, vlen);
    }
    op_unlock(&op, &k);
    return it != NULL;
}

/* Length of the value, or -1; checks that all bytes are `fill`. */
static long get(const char *name, char fill)
{
    struct key k = key_make(&st, name, strlen(name));
    struct shard *s = op_lock(&op, &k);
    struct item *it = shard_find(s, &k, op.now_ms);
    long len = -1;

    if (it) {
        len = (long)it->vlen;
        for (long i = 0; i < len; i++) {
            assert_int_equal(item_value(it)[i], fill);
        }
        shard_touch(s, it, op.now_ms);
    }
    op_unlock(&op, &k);
    return len;
}

static void expire_at(const char *name, uint64_t ms)
{
    struct key k = key_make(&st, name, strlen(name));
    struct shard *s = op_lock(&op, &k);

    shard_set_expire(s, shard_find(s, &k, op.now_ms), ms);
    op_unlock(&op, &k);
}

static uint64_t stat_sum(enum shard_stat which)
{
    struct store_totals t;

    store_totals(&op, &t);
    return t.stat[which];
}

/* ---- values ---- */

static void values_of_every_size(void **state)
{
    static const size_t around[] = {0, 16, 256, 4096, 8192, 32768, 65536, 1u << 20, 3u << 20};

    (void)state;
    open_store(4, 0, EVICT_NONE);
    for (size_t i = 0; i < sizeof(around) / sizeof(around[0]); i++) {
        for (long d = -3; d <= 3; d++) {
            long n = (long)around[i] + d;

            if (n >= 0) {
                assert_true(put("key", (size_t)n, (char)('a' + i)));
                assert_int_equal(get("key", (char)('a' + i)), n);
            }
        }
    }
    for (size_t n = 0; n < 2000; n++) {
        assert_true(put("small", n, 'x'));
        assert_int_equal(get("small", 'x'), (long)n);
    }
    close_store();
}

/* Growing and shrinking a value keeps its leading bytes, flags and expiry. */
static void put_keeps_what_it_should(void **state)
{
    struct key k;
    struct item *it;

    (void)state;
    open_store(1, 0, EVICT_NONE);
    assert_true(put("a", 100, 'q'));
    k = key_make(&st, "a", 1);
    op_lock(&op, &k);
    it = shard_find(k.shard, &k, NOW);
    it->flags = 77;
    shard_set_expire(k.shard, it, NOW + 5000);
    it = shard_put(k.shard, &k, it, 50000, true, NOW);
    assert_int_equal(it->flags, 77);
    assert_true(it->expire_ms == NOW + 5000);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(item_value(it)[i], 'q');
    }
    it = shard_put(k.shard, &k, it, 10, true, NOW);
    assert_int_equal(it->vlen, 10);
    assert_memory_equal(item_value(it), "qqqqqqqqqq", 10);
    assert_int_equal(k.shard->nvolatile, 1);
    op_unlock(&op, &k);
    close_store();
}

/* ---- the memory limit ---- */

static void noeviction_refuses_and_keeps(void **state)
{
    char name[32];
    int n = 0;
    size_t limit = 8u << 20;

    (void)state;
    open_store(16, limit, EVICT_NONE);
    for (;; n++) {
        snprintf(name, sizeof(name), "key:%d", n);
        if (!put(name, 1000, 'v')) {
            break;
        }
        assert_true(atomic_load(&st.mem.used) <= limit);
    }
    /* The limit is met within the credits, which are a thirty-second of it, plus the tables. */
    assert_true(store_used_memory(&op) > limit - limit / 16);
    assert_true(stat_sum(ST_OOM) >= 1);
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "key:%d", i);
        assert_int_equal(get(name, 'v'), 1000);
    }
    /* A refused overwrite leaves the old value. */
    assert_false(put("key:0", 500000, 'w'));
    assert_int_equal(get("key:0", 'v'), 1000);
    /* Shrinking is always possible, and what it frees can be used. */
    for (int i = 0; i < n; i++) {
        snprintf(name, sizeof(name), "key:%d", i);
        assert_true(put(name, 10, 's'));
    }
    assert_true(put("new", 100000, 'n'));
    close_store();
}

static void raising_the_limit_helps(void **state)
{
    (void)state;
    open_store(4, 1u << 20, EVICT_NONE);
    assert_false(put("big", 2u << 20, 'b'));
    store_set_limit(&st, 8u << 20);
    assert_true(put("big", 2u << 20, 'b'));
    assert_int_equal(get("big", 'b'), 2 << 20);
    close_store();
}

/* ---- eviction ---- */

static void lru_keeps_what_is_used(void **state)
{
    char name[32];
    int hot = 0, cold = 0;

    (void)state;
    open_store(16, 4u << 20, EVICT_ALL_LRU);
    for (int i = 0; i < 20000; i++) {
        op.now_ms = NOW + (uint64_t)i * 10;
        snprintf(name, sizeof(name), "key:%d", i);
        assert_true(put(name, 1000, 'v'));
        for (int j = 0; j < 50; j++) { /* these are in use all the time */
            snprintf(name, sizeof(name), "hot:%d", j);
            if (get(name, 'h') < 0) {
                assert_true(put(name, 1000, 'h'));
            }
        }
        assert_true(atomic_load(&st.mem.used) <= 4u << 20);
    }
    assert_true(stat_sum(ST_EVICTED) > 10000);
    for (int j = 0; j < 50; j++) {
        snprintf(name, sizeof(name), "hot:%d", j);
        hot += get(name, 'h') >= 0;
    }
    for (int i = 0; i < 10000; i++) {
        snprintf(name, sizeof(name), "key:%d", i);
        cold += get(name, 'v') >= 0;
    }
    assert_true(hot >= 49);
    assert_true(cold < 100);
    close_store();
}

static void lfu_keeps_what_is_used_often(void **state)
{
    char name[32];
    int often = 0;

    (void)state;
    open_store(4, 2u << 20, EVICT_ALL_LFU);
    for (int j = 0; j < 20; j++) {
        snprintf(name, sizeof(name), "often:%d", j);
        assert_true(put(name, 1000, 'o'));
        for (int i = 0; i < 300; i++) {
            op.now_ms++;
            assert_true(get(name, 'o') >= 0);
        }
    }
    for (int i = 0; i < 5000; i++) { /* newer, but used once */
        op.now_ms++;
        snprintf(name, sizeof(name), "once:%d", i);
        assert_true(put(name, 1000, 'x'));
    }
    for (int j = 0; j < 20; j++) {
        snprintf(name, sizeof(name), "often:%d", j);
        often += get(name, 'o') >= 0;
    }
    assert_true(often >= 19);
    close_store();
}

static void volatile_lru_spares_the_others(void **state)
{
    char name[32];
    int n;

    (void)state;
    open_store(4, 2u << 20, EVICT_VOLATILE_LRU);
    for (n = 0; n < 100; n++) {
        snprintf(name, sizeof(name), "keep:%d", n);
        assert_true(put(name, 1000, 'k'));
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof(name), "temp:%d", i);
        assert_true(put(name, 1000, 't'));
        expire_at(name, NOW + 1000000);
    }
    for (n = 0; n < 100; n++) {
        snprintf(name, sizeof(name), "keep:%d", n);
        assert_int_equal(get(name, 'k'), 1000);
    }
    /* With nothing volatile left, it refuses like noeviction. */
    store_flush(&op);
    for (n = 0; n < 5000; n++) {
        snprintf(name, sizeof(name), "keep:%d", n);
        if (!put(name, 1000, 'k')) {
            break;
        }
    }
    assert_true(n < 5000);
    close_store();
}

/* One value that needs the room of many others, found in other shards if need be. */
static void large_value_pushes_small_ones_out(void **state)
{
    char name[32];

    (void)state;
    open_store(64, 8u << 20, EVICT_ALL_LRU);
    for (int i = 0; i < 6000; i++) {
        snprintf(name, sizeof(name), "key:%d", i);
        assert_true(put(name, 1000, 'v'));
    }
    assert_true(put("large", 4u << 20, 'l'));
    assert_int_equal(get("large", 'l'), 4 << 20);
    assert_false(put("too large", 9u << 20, 'l'));
    close_store();
}

/* ---- expiry ---- */

static void expiry_is_exact(void **state)
{
    (void)state;
    open_store(4, 0, EVICT_NONE);
    assert_true(put("a", 1, 'a'));
    expire_at("a", NOW + 100);
    op.now_ms = NOW + 99;
    assert_int_equal(get("a", 'a'), 1);
    op.now_ms = NOW + 100;
    assert_int_equal(get("a", 'a'), -1);
    assert_int_equal(store_count(&op), 0);
    assert_int_equal(stat_sum(ST_EXPIRED), 1);
    close_store();
}

/* The maintenance removes what nobody asks for, and only that. */
static void active_expiry_finds_all(void **state)
{
    char name[32];
    int rounds = 0;

    (void)state;
    open_store(8, 0, EVICT_NONE);
    for (int i = 0; i < 20000; i++) {
        snprintf(name, sizeof(name), "key:%d", i);
        assert_true(put(name, 10, 'v'));
        if (i % 2) {
            expire_at(name, NOW + 1000);
        }
    }
    assert_true(store_maintain(&st, NOW + 999));
    assert_int_equal(store_count(&op), 20000);
    while (store_maintain(&st, NOW + 1000)) {
        assert_true(++rounds < 1000);
    }
    op.now_ms = NOW + 1000;
    assert_int_equal(store_count(&op), 10000);
    assert_int_equal(stat_sum(ST_EXPIRED), 10000);
    close_store();
}

static int wakes;

static void count_wake(void *ctx)
{
    (void)ctx;
    wakes++;
}

static void maintenance_is_woken_only_when_needed(void **state)
{
    (void)state;
    open_store(1, 0, EVICT_NONE);
    st.wake_maint = count_wake;
    wakes = 0;
    assert_true(put("a", 1, 'a'));
    assert_true(put("b", 1, 'b'));
    assert_int_equal(wakes, 0);
    assert_false(store_maintain(&st, NOW));
    expire_at("a", NOW + 1000);
    assert_int_equal(wakes, 1);
    expire_at("b", NOW + 1000);
    assert_int_equal(wakes, 1);
    assert_true(store_maintain(&st, NOW));
    expire_at("a", 0);
    expire_at("b", 0);
    assert_false(store_maintain(&st, NOW));
    close_store();
}

/* ---- watches ---- */

static void watches_see_changes(void **state)
{
    char name_a[] = "a", name_b[] = "b";
    struct watch w = {.key = name_a, .klen = 1}, v = {.key = name_b, .klen = 1};
    struct key k, kb;

    (void)state;
    open_store(1, 0, EVICT_NONE);
    k = key_make(&st, "a", 1);
    kb = key_make(&st, "b", 1);
    w.hash = k.hash;
    v.hash = kb.hash;
    shard_watch(k.shard, &w);
    shard_watch(kb.shard, &v);
    assert_true(put("c", 1, 'c'));
    assert_false(w.dirty || v.dirty);
    assert_true(put("a", 1, 'a'));
    assert_true(w.dirty && !v.dirty);
    assert_true(put("b", 1, 'b'));
    v.dirty = false;
    expire_at("b", NOW + 10);
    op.now_ms = NOW + 10;
    assert_int_equal(get("b", 'b'), -1);
    assert_true(v.dirty);
    shard_unwatch(&w);
    shard_unwatch(&v);
    assert_null(k.shard->watches);
    close_store();
}

/* ---- lock sets ---- */

static void lock_sets_hold_and_release(void **state)
{
    struct key a, b;

    (void)state;
    open_store(64, 0, EVICT_NONE);
    a = key_make(&st, "a", 1);
    b = key_make(&st, "b", 1);
    op_set_clear(&op);
    op_set_add(&op, &a);
    op_set_add(&op, &b);
    assert_true(op_lock_set(&op));
    assert_false(shard_trylock(a.shard));
    assert_false(op_lock_set(&op)); /* nested: somebody else unlocks */
    op_lock(&op, &a);               /* no-ops now */
    op_unlock(&op, &a);
    assert_false(shard_trylock(a.shard));
    op_unlock_set(&op);
    assert_true(shard_trylock(a.shard));
    shard_unlock(a.shard);
    op_set_clear(&op);
    op_set_all(&op);
    assert_true(op_lock_set(&op));
    for (unsigned i = 0; i < 64; i++) {
        assert_false(shard_trylock(&st.shards[i]));
    }
    op_unlock_set(&op);
    close_store();
}

static void lock_statistics_count(void **state)
{
    (void)state;
    open_store(1, 0, EVICT_NONE);
    lockstat_reset(st.shards[0].ls);
    for (int i = 0; i < 100; i++) {
        put("a", 10, 'a');
    }
    assert_int_equal(st.shards[0].ls->acquired, 100);
    assert_int_equal(st.shards[0].ls->contended, 0);
    assert_true(st.shards[0].ls->hold.n == 100 && st.shards[0].ls->hold.max > 0);
    close_store();
}

/* ---- iteration ---- */

static void count_item(void *ctx, struct shard *s, struct item *it)
{
    (void)s;
    (void)it;
    ++*(int *)ctx;
}

static void iteration(void **state)
{
    char name[32];
    uint64_t cursor = 0;
    int n = 0;

    (void)state;
    open_store(16, 0, EVICT_NONE);
    assert_false(store_random(&op, count_item, &n));
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof(name), "key:%d", i);
        assert_true(put(name, 1, 'v'));
    }
    expire_at("key:7", NOW - 1);
    do {
        cursor = store_scan(&op, cursor, count_item, &n);
    } while (cursor);
    assert_int_equal(n, 999);
    n = 0;
    store_each(&op, count_item, &n);
    assert_int_equal(n, 999);
    n = 0;
    assert_true(store_random(&op, count_item, &n));
    assert_int_equal(n, 1);
    store_flush(&op);
    assert_int_equal(store_count(&op), 0);
    close_store();
}

static void count_name(void *ctx, struct shard *s, struct item *it)
{
    int *counts = ctx;

    (void)s;
    counts[item_key(it)[4] - '0']++;
}

/* Every key is drawn about as often, however the keys lie: two that are neighbours in a table or shards that are. */
static void random_is_fair(void **state)
{
    char name[32];

    (void)state;
    for (unsigned shards = 1; shards <= 64; shards *= 8) {
        for (int keys = 2; keys <= 8; keys += 6) {
            for (int trial = 0; trial < 20; trial++) {
                int counts[10] = {0};

                open_store(shards, 0, EVICT_NONE);
                st.secret[0] = (uint64_t)trial; /* other places each time */
                for (int i = 0; i < keys; i++) {
                    snprintf(name, sizeof(name), "key:%d", i);
                    assert_true(put(name, 1, 'v'));
                }
                for (int i = 0; i < 200 * keys; i++) {
                    assert_true(store_random(&op, count_name, counts));
                }
                for (int i = 0; i < keys; i++) {
                    /* 200 on average; those that share a bucket get a part of its share */
                    assert_in_range(counts[i], 40, 800);
                }
                close_store();
            }
        }
    }
}

int kv_store_tests(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_of_every_size),
        cmocka_unit_test(put_keeps_what_it_should),
        cmocka_unit_test(noeviction_refuses_and_keeps),
        cmocka_unit_test(raising_the_limit_helps),
        cmocka_unit_test(lru_keeps_what_is_used),
        cmocka_unit_test(lfu_keeps_what_is_used_often),
        cmocka_unit_test(volatile_lru_spares_the_others),
        cmocka_unit_test(large_value_pushes_small_ones_out),
        cmocka_unit_test(expiry_is_exact),
        cmocka_unit_test(active_expiry_finds_all),
        cmocka_unit_test(maintenance_is_woken_only_when_needed),
        cmocka_unit_test(watches_see_changes),
        cmocka_unit_test(lock_sets_hold_and_release),
        cmocka_unit_test(lock_statistics_count),
        cmocka_unit_test(iteration),
        cmocka_unit_test(random_is_fair),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
