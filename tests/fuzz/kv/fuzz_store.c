/* libFuzzer target: the store against a simple model. Each operation is a few bytes of the input; a
 * run uses 64 keys, one of four settings (shards, rehash mode) and a memory limit that is often hit. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/kv/store.h"

#define KEYS  64
#define START 1700000000000ull
#define LIMIT (1u << 20)

struct model {
    bool there;
    uint64_t expire_ms;
    size_t len;
    unsigned char *value;
};

struct run {
    struct store st;
    struct op op;
    struct model m[KEYS];
    const uint8_t *in, *end;
    unsigned step;
};

static unsigned next(struct run *r)
{
    return r->in < r->end ? *r->in++ : 0;
}

static void die(const struct run *r, const char *what, unsigned k)
{
    fprintf(stderr, "fuzz_store: step %u, key %u: %s\n", r->step, k, what);
    abort();
}

static struct key key_of(struct run *r, unsigned k, char *name)
{
    /* Lengths from 1 to 200. */
    int n = sprintf(name, "k%0*u", (int)(k * 3 % 199), k);

    return key_make(&r->st, name, (size_t)n);
}

static void model_drop(struct model *m)
{
    free(m->value);
    memset(m, 0, sizeof(*m));
}

static void model_expire(struct run *r)
{
    for (unsigned k = 0; k < KEYS; k++) {
        if (r->m[k].there && r->m[k].expire_ms && r->m[k].expire_ms <= r->op.now_ms) {
            model_drop(&r->m[k]);
        }
    }
}

static void compare(struct run *r, unsigned k, const struct item *it)
{
    const struct model *m = &r->m[k];

    if ((it != NULL) != m->there) {
        die(r, it ? "present, should not be" : "missing", k);
    }
    if (it && (it->vlen != m->len || it->expire_ms != m->expire_ms ||
               memcmp(it->data + it->klen, m->value, m->len) != 0)) {
        die(r, "another value or expiry", k);
    }
}

/* Stores a value of `len` bytes; with keep, the old one's beginning stays. */
static void put(struct run *r, unsigned k, size_t len, bool keep)
{
    char name[256];
    struct key key = key_of(r, k, name);
    struct shard *s = op_lock(&r->op, &key);
    struct item *it = shard_find(s, &key, r->op.now_ms);
    struct model *m = &r->m[k];
    size_t from = keep && m->there ? m->len : 0;
    unsigned char fill = (unsigned char)next(r);

    compare(r, k, it);
    it = shard_put(s, &key, it, len, keep, r->op.now_ms);
    if (!it) {
        /* Refused: the old one is as before. */
        compare(r, k, shard_find(s, &key, r->op.now_ms));
        op_unlock(&r->op, &key);
        return;
    }
    m->value = realloc(m->value, len + 1);
    if (!m->value) {
        die(r, "no memory for the model", k);
    }
    for (size_t i = from < len ? from : len; i < len; i++) {
        item_value(it)[i] = (char)fill;
        m->value[i] = fill;
    }
    m->there = true;
    m->len = len;
    compare(r, k, it);
    op_unlock(&r->op, &key);
}

static void one_key(struct run *r, unsigned what, unsigned k)
{
    char name[256];
    struct key key = key_of(r, k, name);
    struct shard *s = op_lock(&r->op, &key);
    struct item *it = shard_find(s, &key, r->op.now_ms);

    compare(r, k, it);
    if (it && what == 1) {
        shard_delete(s, it);
        model_drop(&r->m[k]);
    } else if (it && what == 2) {
        uint64_t at = next(r) % 4 ? r->op.now_ms + next(r) + 1 : 0;

        shard_set_expire(s, it, at);
        r->m[k].expire_ms = at;
    }
    op_unlock(&r->op, &key);
}

static void count(void *ctx, struct shard *s, struct item *it)
{
    (void)s;
    (void)it;
    ++*(unsigned *)ctx;
}

static void whole(struct run *r, unsigned what)
{
    unsigned seen = 0, want = 0;
    uint64_t cursor = 0;

    for (unsigned k = 0; k < KEYS; k++) {
        want += r->m[k].there;
    }
    switch (what % 4) {
    case 0:
        store_each(&r->op, count, &seen);
        break;
    case 1:
        do {
            cursor = store_scan(&r->op, cursor, count, &seen);
        } while (cursor);
        break;
    case 2:
        store_maintain(&r->st, r->op.now_ms);
        store_reclaim(&r->st);
        seen = want;
        break;
    default:
        store_flush(&r->op);
        for (unsigned k = 0; k < KEYS; k++) {
            model_drop(&r->m[k]);
        }
    }
    if (what % 4 != 3 && seen != want) {
        die(r, "another number of items", seen);
    }
}

static void check_sums(struct run *r)
{
    struct store_totals t;
    size_t nvolatile = 0, items = 0, bytes = 0;
    char name[256];

    store_totals(&r->op, &t);
    for (unsigned k = 0; k < KEYS; k++) {
        nvolatile += r->m[k].there && r->m[k].expire_ms;
        items += r->m[k].there;
        bytes += r->m[k].there ? arena_round(item_size(key_of(r, k, name).len, r->m[k].len)) : 0;
    }
    /* Expired items that nobody has met yet are still counted. */
    if (t.items < items || t.nvolatile < nvolatile || t.item_bytes < bytes ||
        t.arena_used != t.item_bytes + t.table_bytes || atomic_load(&r->st.mem.used) > LIMIT) {
        die(r, "sums", 0);
    }
}

static void step(struct run *r)
{
    unsigned what = next(r), k = next(r) % KEYS;

    model_expire(r);
    switch (what % 8) {
    case 0:
        put(r, k, next(r), false);
        break;
    case 1:
        put(r, k, next(r) * 300u, false);
        break;
    case 2:
        put(r, k, next(r) * 40u, true);
        break;
    case 3:
        one_key(r, 0, k);
        break;
    case 4:
        one_key(r, 1, k);
        break;
    case 5:
        one_key(r, 2, k);
        break;
    case 6:
        r->op.now_ms += next(r);
        break;
    default:
        whole(r, k);
        check_sums(r);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct run r;
    struct store_config cfg = {.max_memory = LIMIT, .policy = EVICT_NONE, .secret = {3, 4}};

    if (n < 2) {
        return 0;
    }
    memset(&r, 0, sizeof(r));
    cfg.nshards = data[0] & 1 ? 8 : 1;
    cfg.stop_the_world = data[0] & 2;
    cfg.secret[0] = data[1];
    if (store_init(&r.st, &cfg) != 0) {
        abort();
    }
    op_begin(&r.op, &r.st, START);
    r.in = data + 2;
    r.end = data + n;
    for (; r.in < r.end; r.step++) {
        step(&r);
    }
    for (unsigned k = 0; k < KEYS; k++) {
        model_expire(&r);
        one_key(&r, 0, k);
        model_drop(&r.m[k]);
    }
    store_destroy(&r.st);
    if (atomic_load(&r.st.mem.used) != sizeof(struct shard) * cfg.nshards) {
        die(&r, "memory stays charged", 0);
    }
    return 0;
}
