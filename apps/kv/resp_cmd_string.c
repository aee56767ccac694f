/* String commands that store or fetch whole values. */
#include <string.h>

#include "apps/kv/command.h"

static void hit(struct conn *c, struct shard *s, struct item *it)
{
    if (it) {
        s->stat[ST_GET_HITS]++;
        shard_touch(s, it, c->op.now_ms);
        reply_bulk(c, item_value(it), it->vlen);
    } else {
        s->stat[ST_GET_MISSES]++;
        reply_null(c);
    }
}

void cmd_get(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct shard *s;

    (void)argc;
    if (!arg_key(c, &argv[1], &k)) {
        return;
    }
    s = op_lock(&c->op, &k);
    hit(c, s, shard_find(s, &k, c->op.now_ms));
    op_unlock(&c->op, &k);
}

/* ---- SET and its options ---- */

struct set_opts {
    bool nx, xx, get, keepttl;
    bool has_expire;
    int64_t expire_ms;
};

static const struct {
    const char *word;
    int64_t unit_ms;
    bool relative;
} expiries[] = {{"ex", 1000, true}, {"px", 1, true}, {"exat", 1000, false}, {"pxat", 1, false}};

/* EX/PX/EXAT/PXAT at argv[*i]: 1 taken (with its argument), 0 none of them, -1 error replied. */
static int expiry_option(struct conn *c, const char *name, unsigned argc, const struct arg *argv,
                         unsigned *i, int64_t *ms)
{
    for (size_t j = 0; j < sizeof(expiries) / sizeof(expiries[0]); j++) {
        if (!arg_is(&argv[*i], expiries[j].word)) {
            continue;
        }
        if (++*i == argc) {
            reply_syntax(c);
            return -1;
        }
        return expire_time(c, name, &argv[*i], expiries[j].unit_ms, expiries[j].relative, ms) ? 1
                                                                                              : -1;
    }
    return 0;
}

/* Which options exclude each other is decided here, before any value is judged, as Redis does. */
static bool set_options(struct conn *c, unsigned argc, const struct arg *argv, struct set_opts *o)
{
    unsigned times = 0;
    int rc;

    memset(o, 0, sizeof(*o));
    for (unsigned i = 3; i < argc; i++) {
        bool more = i + 1 < argc;

        if (arg_is(&argv[i], "nx")) {
            o->nx = true;
        } else if (arg_is(&argv[i], "xx")) {
            o->xx = true;
        } else if (arg_is(&argv[i], "get")) {
            o->get = true;
        } else if (arg_is(&argv[i], "keepttl")) {
            o->keepttl = true;
        } else if (more && (arg_is(&argv[i], "ex") || arg_is(&argv[i], "px") ||
                            arg_is(&argv[i], "exat") || arg_is(&argv[i], "pxat"))) {
            times++;
            i++;
        } else {
            times = 2;
        }
    }
    if (times > 1 || (times == 1 && o->keepttl) || (o->nx && o->xx)) {
        reply_syntax(c);
        return false;
    }
    for (unsigned i = 3; i < argc && times; i++) {
        rc = expiry_option(c, "set", argc, argv, &i, &o->expire_ms);
        if (rc < 0) {
            return false;
        }
        o->has_expire |= rc == 1;
    }
    return true;
}

static void set_locked(struct conn *c, struct shard *s, const struct key *k, const struct arg *v,
                       const struct set_opts *o)
{
    struct item *old = shard_find(s, k, c->op.now_ms);
    struct item *it;
    size_t mark = c->out.len;
    uint64_t keep = o->keepttl && old ? old->expire_ms : 0;

    if (o->get) {
        hit(c, s, old);
    }
    if ((o->nx && old) || (o->xx && !old)) {
        if (!o->get) {
            reply_null(c);
        }
        return;
    }
    it = shard_put(s, k, old, v->len, false, c->op.now_ms);
    if (!it) {
        c->out.len = mark;
        reply_oom(c);
        return;
    }
    memcpy(item_value(it), v->p, v->len);
    it->flags = 0;
    if (it->expire_ms || o->has_expire) {
        shard_set_expire(s, it, o->has_expire ? (uint64_t)o->expire_ms : keep);
    }
    s->stat[ST_SETS]++;
    if (!o->get) {
        REPLY_OK(c);
    }
}

void cmd_set(struct conn *c, unsigned argc, struct arg *argv)
{
    struct set_opts o;
    struct key k;
    struct shard *s;

    if (argc == 3) {
        memset(&o, 0, sizeof(o));
    } else if (!set_options(c, argc, argv, &o)) {
        return;
    }
    if (!arg_key(c, &argv[1], &k) || !value_fits(c, argv[2].len)) {
        return;
    }
    s = op_lock(&c->op, &k);
    set_locked(c, s, &k, &argv[2], &o);
    op_unlock(&c->op, &k);
}

void cmd_setnx(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct shard *s;

    (void)argc;
    if (!arg_key(c, &argv[1], &k) || !value_fits(c, argv[2].len)) {
        return;
    }
    s = op_lock(&c->op, &k);
    if (shard_find(s, &k, c->op.now_ms)) {
        reply_int(c, 0);
    } else if (put_value(c, s, &k, NULL, argv[2].p, argv[2].len)) {
        reply_int(c, 1);
    }
    op_unlock(&c->op, &k);
}

static void set_expiring(struct conn *c, const char *name, struct arg *argv, int64_t unit_ms)
{
    struct set_opts o = {.has_expire = true};
    struct key k;
    struct shard *s;

    if (!expire_time(c, name, &argv[2], unit_ms, true, &o.expire_ms) || !arg_key(c, &argv[1], &k) ||
        !value_fits(c, argv[3].len)) {
        return;
    }
    s = op_lock(&c->op, &k);
    set_locked(c, s, &k, &argv[3], &o);
    op_unlock(&c->op, &k);
}

void cmd_setex(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    set_expiring(c, "setex", argv, 1000);
}

void cmd_psetex(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    set_expiring(c, "psetex", argv, 1);
}

void cmd_getset(struct conn *c, unsigned argc, struct arg *argv)
{
    static const struct set_opts o = {.get = true};
    struct key k;
    struct shard *s;

    (void)argc;
    if (!arg_key(c, &argv[1], &k) || !value_fits(c, argv[2].len)) {
        return;
    }
    s = op_lock(&c->op, &k);
    set_locked(c, s, &k, &argv[2], &o);
    op_unlock(&c->op, &k);
}

void cmd_getdel(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct shard *s;
    struct item *it;

    (void)argc;
    if (!arg_key(c, &argv[1], &k)) {
        return;
    }
    s = op_lock(&c->op, &k);
    it = shard_find(s, &k, c->op.now_ms);
    hit(c, s, it);
    if (it) {
        shard_delete(s, it);
        s->stat[ST_DELETE_HITS]++;
    }
    op_unlock(&c->op, &k);
}

void cmd_getex(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct shard *s;
    struct item *it;
    int64_t ms = 0;
    unsigned i = 2;
    int rc = 0;

    if (argc == 3 && arg_is(&argv[2], "persist")) {
        rc = 1; /* ms 0: no expiry */
    } else if (argc == 4) {
        rc = expiry_option(c, "getex", argc, argv, &i, &ms);
    }
    if (rc < 0) {
        return;
    }
    if (argc > 2 && rc == 0) {
        reply_syntax(c);
        return;
    }
    if (!arg_key(c, &argv[1], &k)) {
        return;
    }
    s = op_lock(&c->op, &k);
    it = shard_find(s, &k, c->op.now_ms);
    hit(c, s, it);
    if (it && argc > 2 && (uint64_t)ms != it->expire_ms) {
        shard_set_expire(s, it, (uint64_t)ms);
        shard_changed(s, it);
    }
    op_unlock(&c->op, &k);
}

/* ---- many keys, atomically ---- */

void cmd_mget(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    bool mine;

    op_set_clear(&c->op);
    for (unsigned i = 1; i < argc; i++) {
        if (!arg_key(c, &argv[i], &k)) {
            return;
        }
        op_set_add(&c->op, &k);
    }
    mine = op_lock_set(&c->op);
    reply_array(c, argc - 1);
    for (unsigned i = 1; i < argc; i++) {
        k = key_make(c->op.st, argv[i].p, argv[i].len);
        hit(c, k.shard, shard_find(k.shard, &k, c->op.now_ms));
    }
    if (mine) {
        op_unlock_set(&c->op);
    }
}

/* Locks the shards of all pairs; false (replied, nothing locked) if one exceeds a limit. *bytes
 * becomes what the items will take. */
static bool mset_lock(struct conn *c, unsigned argc, struct arg *argv, bool *mine, size_t *bytes)
{
    struct key k;

    op_set_clear(&c->op);
    *bytes = 0;
    for (unsigned i = 1; i < argc; i += 2) {
        if (!arg_key(c, &argv[i], &k) || !value_fits(c, argv[i + 1].len)) {
            return false;
        }
        *bytes += arena_round(item_size(argv[i].len, argv[i + 1].len));
        op_set_add(&c->op, &k);
    }
    *mine = op_lock_set(&c->op);
    return true;
}

static bool any_exists(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;

    for (unsigned i = 1; i < argc; i += 2) {
        k = key_make(c->op.st, argv[i].p, argv[i].len);
        if (shard_find(k.shard, &k, c->op.now_ms)) {
            return true;
        }
    }
    return false;
}

/* All pairs or none: the room is secured for the whole command first, then each store may take it
 * even if another connection was faster (a small overshoot instead of half a command). */
static void mset(struct conn *c, unsigned argc, struct arg *argv, bool nx)
{
    struct key k;
    bool mine, ok = true;
    size_t bytes;

    if (argc % 2 == 0) {
        reply_arity(c, nx ? "msetnx" : "mset");
        return;
    }
    if (!mset_lock(c, argc, argv, &mine, &bytes)) {
        return;
    }
    if (nx && any_exists(c, argc, argv)) {
        reply_int(c, 0);
    } else if (!op_secure(&c->op, bytes)) {
        reply_oom(c);
    } else {
        for (unsigned i = 1; ok && i < argc; i += 2) {
            k = key_make(c->op.st, argv[i].p, argv[i].len);
            k.shard->force = true;
            ok = put_value(c, k.shard, &k, shard_find(k.shard, &k, c->op.now_ms), argv[i + 1].p,
                           argv[i + 1].len);
            k.shard->force = false;
        }
        if (ok && nx) {
            reply_int(c, 1);
        } else if (ok) {
            REPLY_OK(c);
        }
    }
    if (mine) {
        op_unlock_set(&c->op);
    }
}

void cmd_mset(struct conn *c, unsigned argc, struct arg *argv)
{
    mset(c, argc, argv, false);
}

void cmd_msetnx(struct conn *c, unsigned argc, struct arg *argv)
{
    mset(c, argc, argv, true);
}
