/* WATCH: a shard knows the keys watched in it and flags them when they change. The list is short
 * and usually empty, so an ordinary write pays one test. */
#include <string.h>

#include "apps/kv/shard.h"

void shard_watch(struct shard *s, struct watch *w)
{
    w->shard = s;
    w->dirty = false;
    w->next = s->watches;
    w->link = &s->watches;
    if (w->next) {
        w->next->link = &w->next;
    }
    s->watches = w;
}

void shard_unwatch(struct watch *w)
{
    *w->link = w->next;
    if (w->next) {
        w->next->link = w->link;
    }
}

void shard_notify(struct shard *s, const struct item *it)
{
    for (struct watch *w = s->watches; w; w = w->next) {
        if (w->hash == it->hash && w->klen == it->klen && memcmp(w->key, it->data, w->klen) == 0) {
            w->dirty = true;
        }
    }
}
