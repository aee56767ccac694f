/* Growing byte buffer of a connection, charged to the memory limit. Owned by one thread at a time.
 * Small ones (<= KV_BUF_FREE_CHARGE) are charged unconditionally; larger ones only if they fit. */
#ifndef KV_BUF_H
#define KV_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "apps/kv/mem.h"

struct buf {
    char *p;
    size_t pos; /* consumed (input) or written (output) up to here */
    size_t len;
    size_t cap;
    unsigned unused; /* batches since the space above KV_BUF_KEEP was last needed */
};

/* Makes room for n bytes behind len, growing by doubling up to cap_max. Never shrinks or moves data
 * that fits. false: over cap_max, over the memory limit, or no memory. */
bool buf_reserve(struct buf *b, size_t n, size_t cap_max, struct mem *m);
/* Called when empty, after a batch that used `used` bytes: gives a large space back that was not
 * needed for KV_BUF_SHRINK_BATCHES batches. */
void buf_relax(struct buf *b, size_t used, struct mem *m);
void buf_free(struct buf *b, struct mem *m);

#endif
