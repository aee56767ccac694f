/* MULTI, EXEC, DISCARD, WATCH, UNWATCH.
 *
 * Queued commands are copies charged to the memory limit. EXEC locks the shards of all their keys
 * in ascending order, checks the watches under these locks, and runs the commands with c->op.locked
 * set, so that nobody sees half of them. */
#include <stdlib.h>
#include <string.h>

#include "apps/kv/command.h"

/* ---- the queue ---- */

static void queue_free(struct conn *c)
{
    struct resp_state *r = &c->resp;
    struct queued *q, *next;

    for (q = r->queue; q; q = next) {
        next = q->next;
        free(q);
    }
    mem_release(&c->srv->store.mem, r->queue_bytes);
    r->queue = NULL;
    r->queue_end = &r->queue;
    r->nqueued = 0;
    r->queue_bytes = 0;
}

void multi_reset(struct conn *c)
{
    queue_free(c);
    c->resp.multi = false;
    c->resp.multi_bad = false;
}

static struct queued *queued_new(unsigned argc, const struct arg *argv, size_t *bytes)
{
    struct queued *q;
    size_t n = sizeof(*q) + argc * sizeof(struct arg);
    char *to;

    *bytes = n;
    for (unsigned i = 0; i < argc; i++) {
        *bytes += argv[i].len;
    }
    q = malloc(*bytes);
    if (!q) {
        return NULL;
    }
    to = (char *)q + n;
    for (unsigned i = 0; i < argc; i++) {
        memcpy(to, argv[i].p, argv[i].len);
        q->argv[i].p = to;
        q->argv[i].len = argv[i].len;
        to += argv[i].len;
    }
    q->argc = argc;
    q->next = NULL;
    return q;
}

void multi_queue(struct conn *c, const struct command *cmd, unsigned argc, struct arg *argv)
{
    struct resp_state *r = &c->resp;
    struct queued *q;
    size_t bytes;

    q = queued_new(argc, argv, &bytes);
    if (!q || r->queue_bytes + bytes > c->srv->cfg.max_query ||
        !mem_grow(&c->srv->store.mem, r->queue_bytes, r->queue_bytes + bytes)) {
        free(q);
        r->multi_bad = true;
        reply_oom(c);
        return;
    }
    q->cmd = cmd;
    *r->queue_end = q;
    r->queue_end = &q->next;
    r->nqueued++;
    r->queue_bytes += bytes;
    REPLY(c, "+QUEUED\r\n");
}

/* ---- watches ---- */

void multi_unwatch(struct conn *c)
{
    struct watch *w, *next;

    for (w = c->resp.watches; w; w = next) {
        next = w->next_own;
        if (!c->op.locked) {
            shard_lock(w->shard);
            shard_unwatch(w);
            shard_unlock(w->shard);
        } else {
            shard_unwatch(w);
        }
        mem_release(&c->srv->store.mem, sizeof(*w) + w->klen);
        free(w);
    }
    c->resp.watches = NULL;
    c->resp.nwatches = 0;
}

static bool watched(const struct conn *c, const struct key *k)
{
    for (const struct watch *w = c->resp.watches; w; w = w->next_own) {
        if (w->hash == k->hash && w->klen == k->len && memcmp(w->key, k->p, k->len) == 0) {
            return true;
        }
    }
    return false;
}

static bool watch_key(struct conn *c, const struct key *k)
{
    struct watch *w;
    struct shard *s;

    if (watched(c, k)) {
        return true;
    }
    if (c->resp.nwatches == KV_WATCH_MAX) {
        atomic_fetch_add_explicit(&c->srv->count.over_watch, 1, memory_order_relaxed);
        reply_error(c, "ERR more than %u watched keys", KV_WATCH_MAX);
        return false;
    }
    if (!mem_grow(&c->srv->store.mem, 0, sizeof(*w) + k->len)) {
        reply_oom(c);
        return false;
    }
    w = malloc(sizeof(*w) + k->len);
    if (!w) {
        mem_release(&c->srv->store.mem, sizeof(*w) + k->len);
        reply_oom(c);
        return false;
    }
    w->key = (char *)(w + 1);
    memcpy(w->key, k->p, k->len);
    w->klen = k->len;
    w->hash = k->hash;
    w->next_own = c->resp.watches;
    c->resp.watches = w;
    c->resp.nwatches++;
    s = op_lock(&c->op, k);
    /* A key that has expired already must not count as changed by its removal. */
    shard_find(s, k, c->op.now_ms);
    shard_watch(s, w);
    op_unlock(&c->op, k);
    return true;
}

void cmd_watch(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;

    if (c->resp.multi) {
        reply_error(c, "ERR WATCH inside MULTI is not allowed");
        return;
    }
    for (unsigned i = 1; i < argc; i++) {
        if (!arg_key(c, &argv[i], &k) || !watch_key(c, &k)) {
            return;
        }
    }
    REPLY_OK(c);
}

void cmd_unwatch(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    multi_unwatch(c);
    REPLY_OK(c);
}

/* ---- the transaction ---- */

void cmd_multi(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    if (c->resp.multi) {
        reply_error(c, "ERR MULTI calls can not be nested");
        return;
    }
    c->resp.multi = true;
    REPLY_OK(c);
}

void cmd_discard(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    if (!c->resp.multi) {
        reply_error(c, "ERR DISCARD without MULTI");
        return;
    }
    multi_reset(c);
    multi_unwatch(c);
    REPLY_OK(c);
}

/* Locks the shards of every queued command and every watch. */
static bool lock_all(struct conn *c)
{
    struct key k;

    op_set_clear(&c->op);
    for (struct queued *q = c->resp.queue; q; q = q->next) {
        if (q->cmd->flags & CMD_WHOLE) {
            op_set_all(&c->op);
        }
        for (unsigned i = 0; i < command_keys(q->cmd, q->argc); i++) {
            const struct arg *a = &q->argv[command_key_pos(q->cmd, i)];

            k = key_make(&c->srv->store, a->p, a->len);
            op_set_add(&c->op, &k);
        }
    }
    for (struct watch *w = c->resp.watches; w; w = w->next_own) {
        k.shard = w->shard;
        op_set_add(&c->op, &k);
    }
    return op_lock_set(&c->op);
}

/* Under the locks: a watched key changed, or has expired unseen (finding it flags the watch). */
static bool dirty(struct conn *c)
{
    for (struct watch *w = c->resp.watches; w; w = w->next_own) {
        struct key k = {w->key, w->klen, w->hash, w->shard};

        shard_find(w->shard, &k, c->op.now_ms);
        if (w->dirty) {
            return true;
        }
    }
    return false;
}

static void run_queue(struct conn *c)
{
    struct queued *queue = c->resp.queue;

    reply_array(c, c->resp.nqueued);
    c->resp.multi = false; /* the commands run now */
    for (struct queued *q = queue; q; q = q->next) {
        resp_execute(c, q->argc, q->argv);
    }
}

void cmd_exec(struct conn *c, unsigned argc, struct arg *argv)
{
    bool mine;

    (void)argc;
    (void)argv;
    if (!c->resp.multi) {
        reply_error(c, "ERR EXEC without MULTI");
        return;
    }
    if (c->resp.multi_bad) {
        reply_error(c, "EXECABORT Transaction discarded because of previous errors.");
        multi_reset(c);
        multi_unwatch(c);
        return;
    }
    mine = lock_all(c);
    if (dirty(c)) {
        reply_null_array(c);
    } else {
        run_queue(c);
    }
    multi_unwatch(c);
    if (mine) {
        op_unlock_set(&c->op);
    }
    multi_reset(c);
}
