#include "apps/kv/buf.h"

#include <stdlib.h>

#include "apps/kv/tunables.h"

bool buf_reserve(struct buf *b, size_t n, size_t cap_max, struct mem *m)
{
    size_t cap = b->cap ? b->cap : KV_BUF_MIN;
    char *p;

    if (b->cap - b->len >= n) {
        return true;
    }
    if (n > cap_max || b->len > cap_max - n) {
        return false;
    }
    while (cap - b->len < n) {
        cap *= 2;
    }
    if (cap > cap_max) {
        cap = cap_max;
    }
    if (!mem_grow(m, b->cap, cap)) {
        return false;
    }
    p = realloc(b->p, cap);
    if (!p) {
        mem_release(m, cap - b->cap);
        return false;
    }
    b->p = p;
    b->cap = cap;
    b->unused = 0;
    return true;
}

void buf_relax(struct buf *b, size_t used, struct mem *m)
{
    char *p;

    if (b->cap <= KV_BUF_KEEP) {
        return;
    }
    b->unused = used > KV_BUF_KEEP ? 0 : b->unused + 1;
    if (b->unused < KV_BUF_SHRINK_BATCHES) {
        return;
    }
    p = realloc(b->p, KV_BUF_KEEP);
    if (p) {
        mem_release(m, b->cap - KV_BUF_KEEP);
        b->p = p;
        b->cap = KV_BUF_KEEP;
    }
}

void buf_free(struct buf *b, struct mem *m)
{
    free(b->p);
    mem_release(m, b->cap);
    *b = (struct buf){0};
}
