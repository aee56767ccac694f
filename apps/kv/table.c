#include "apps/kv/table.h"

#include <string.h>

#include "apps/kv/tunables.h"

#define BUCKET_BYTES sizeof(struct item *)

static size_t index_of(const struct table *t, uint32_t hash, int which)
{
    return (hash >> t->shift) & (t->size[which] - 1);
}

int table_init(struct table *t, unsigned shift, bool stop_the_world, struct table_mem mem)
{
    memset(t, 0, sizeof(*t));
    t->shift = shift;
    t->stop_the_world = stop_the_world;
    t->mem = mem;
    t->b[0] = mem.alloc(mem.ctx, KV_TABLE_MIN * BUCKET_BYTES);
    t->size[0] = KV_TABLE_MIN;
    return t->b[0] ? 0 : -1;
}

void table_destroy(struct table *t)
{
    for (int i = 0; i < 2; i++) {
        if (t->b[i]) {
            t->mem.free(t->mem.ctx, t->b[i], t->size[i] * BUCKET_BYTES);
            t->b[i] = NULL;
        }
    }
}

void table_reset(struct table *t)
{
    struct item **b;

    if (t->size[0] == KV_TABLE_MIN && !t->b[1]) {
        return;
    }
    b = t->mem.alloc(t->mem.ctx, KV_TABLE_MIN * BUCKET_BYTES);
    if (!b) {
        return; /* the large array serves as well */
    }
    table_destroy(t);
    t->b[0] = b;
    t->size[0] = KV_TABLE_MIN;
    t->size[1] = 0;
    t->moved = 0;
}

size_t table_bytes(const struct table *t)
{
    return (t->size[0] + (t->b[1] ? t->size[1] : 0)) * BUCKET_BYTES;
}

/* Keys are short and usually equal when their hashes are: words beat the byte loop that musl's
 * memcmp is (15 instead of 117 instructions for 16 bytes). */
static inline bool same_key(const char *a, const char *b, size_t n)
{
    uint64_t x, y;

    if (n < sizeof(x)) {
        for (size_t i = 0; i < n; i++) {
            if (a[i] != b[i]) {
                return false;
            }
        }
        return true;
    }
    for (size_t i = 0; i + sizeof(x) <= n; i += sizeof(x)) {
        memcpy(&x, a + i, sizeof(x));
        memcpy(&y, b + i, sizeof(y));
        if (x != y) {
            return false;
        }
    }
    memcpy(&x, a + n - sizeof(x), sizeof(x));
    memcpy(&y, b + n - sizeof(y), sizeof(y));
    return x == y;
}

struct item *table_find(const struct table *t, const char *key, size_t klen, uint32_t hash)
{
    struct item *it;
    int which = 0;

    do {
        it = t->b[which][index_of(t, hash, which)];
        for (; it; it = it->next) {
            if (it->hash == hash && it->klen == klen && same_key(it->data, key, klen)) {
                return it;
            }
        }
    } while (which++ == 0 && t->b[1]);
    return NULL;
}

static void finish(struct table *t)
{
    t->mem.free(t->mem.ctx, t->b[0], t->size[0] * BUCKET_BYTES);
    t->b[0] = t->b[1];
    t->size[0] = t->size[1];
    t->b[1] = NULL;
    t->size[1] = 0;
    t->moved = 0;
    t->rehashes++;
}

static bool move_buckets(struct table *t, size_t full, size_t empty)
{
    struct item *it, *next;
    size_t i;

    while (t->moved < t->size[0]) {
        it = t->b[0][t->moved];
        if (it) {
            if (full-- == 0) {
                return true;
            }
        } else if (empty-- == 0) {
            return true;
        }
        t->b[0][t->moved++] = NULL;
        for (; it; it = next) {
            next = it->next;
            i = index_of(t, it->hash, 1);
            it->next = t->b[1][i];
            t->b[1][i] = it;
        }
    }
    finish(t);
    return false;
}

bool table_step(struct table *t)
{
    if (!t->b[1]) {
        return false;
    }
    return move_buckets(t, KV_REHASH_STEP, KV_REHASH_EMPTY);
}

static void resize(struct table *t, size_t size)
{
    struct item **b = t->mem.alloc(t->mem.ctx, size * BUCKET_BYTES);

    if (!b) {
        return;
    }
    t->b[1] = b;
    t->size[1] = size;
    t->moved = 0;
    if (t->stop_the_world) {
        move_buckets(t, t->size[0] + 1, t->size[0] + 1);
    }
}

/* The hash has 32 bits, of which `shift` choose the shard: more buckets than that stay empty. */
static void consider_resize(struct table *t)
{
    if (t->b[1]) {
        return;
    }
    if (t->used > t->size[0] && t->size[0] < (1ull << (32 - t->shift))) {
        resize(t, t->size[0] * 2);
    } else if (t->size[0] > KV_TABLE_MIN && t->used < t->size[0] / KV_TABLE_SHRINK) {
        resize(t, t->size[0] / 2);
    }
}

void table_insert(struct table *t, struct item *it)
{
    int which;
    size_t i;

    table_step(t);
    which = t->b[1] != NULL;
    i = index_of(t, it->hash, which);
    it->next = t->b[which][i];
    t->b[which][i] = it;
    t->used++;
    consider_resize(t);
}

static struct item **link_of(struct table *t, struct item *it)
{
    struct item **l;
    int which = 0;

    do {
        l = &t->b[which][index_of(t, it->hash, which)];
        for (; *l; l = &(*l)->next) {
            if (*l == it) {
                return l;
            }
        }
    } while (which++ == 0 && t->b[1]);
    __builtin_unreachable();
}

void table_unlink(struct table *t, struct item *it)
{
    *link_of(t, it) = it->next;
    t->used--;
}

void table_remove(struct table *t, struct item *it)
{
    table_unlink(t, it);
    table_step(t);
    consider_resize(t);
}

void table_replace(struct table *t, struct item *it, struct item *with)
{
    with->next = it->next;
    *link_of(t, it) = with;
}

static void visit(struct table *t, int which, size_t i, table_fn fn, void *ctx)
{
    struct item *it, *next;

    for (it = t->b[which][i]; it; it = next) {
        next = it->next;
        fn(ctx, it);
    }
}

static uint64_t reverse(uint64_t v)
{
    uint64_t r = 0;

    for (int i = 0; i < 64; i++) {
        r = (r << 1) | (v & 1);
        v >>= 1;
    }
    return r;
}

/* Adds one to the bits of v below `mask`, highest bit first; 0 after the last. */
static uint64_t reverse_next(uint64_t v, uint64_t mask)
{
    return reverse(reverse(v | ~mask) + 1);
}

uint64_t table_scan(struct table *t, uint64_t cursor, table_fn fn, void *ctx)
{
    int small, large;
    uint64_t m0, m1;

    if (!t->b[1]) {
        m0 = t->size[0] - 1;
        visit(t, 0, cursor & m0, fn, ctx);
        return reverse_next(cursor, m0);
    }
    small = t->size[0] > t->size[1];
    large = !small;
    m0 = t->size[small] - 1;
    m1 = t->size[large] - 1;
    visit(t, small, cursor & m0, fn, ctx);
    do {
        visit(t, large, cursor & m1, fn, ctx);
        cursor = reverse_next(cursor, m1);
    } while (cursor & (m0 ^ m1));
    return cursor;
}

size_t table_buckets(const struct table *t)
{
    return t->size[0] + t->size[1];
}

struct item *table_bucket(const struct table *t, size_t n)
{
    return n < t->size[0] ? t->b[0][n] : t->b[1][n - t->size[0]];
}
