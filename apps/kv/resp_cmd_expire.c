/* Expiry commands of the Redis protocol. */
#include <string.h>

#include "apps/kv/command.h"

bool expire_time(struct conn *c, const char *name, const struct arg *a, int64_t unit_ms,
                 bool relative, int64_t *ms)
{
    int64_t v;

    if (!arg_i64(c, a, &v)) {
        return false;
    }
    if (v <= 0 || __builtin_mul_overflow(v, unit_ms, &v) ||
        (relative && __builtin_add_overflow(v, (int64_t)c->op.now_ms, &v))) {
        reply_error(c, "ERR invalid expire time in '%s' command", name);
        return false;
    }
    *ms = v;
    return true;
}

struct expire_opts {
    bool nx, xx, gt, lt;
};

static bool expire_options(struct conn *c, unsigned argc, const struct arg *argv,
                           struct expire_opts *o)
{
    memset(o, 0, sizeof(*o));
    for (unsigned i = 3; i < argc; i++) {
        if (arg_is(&argv[i], "nx")) {
            o->nx = true;
        } else if (arg_is(&argv[i], "xx")) {
            o->xx = true;
        } else if (arg_is(&argv[i], "gt")) {
            o->gt = true;
        } else if (arg_is(&argv[i], "lt")) {
            o->lt = true;
        } else {
            reply_error(c, "ERR Unsupported option %.*s", (int)argv[i].len, argv[i].p);
            return false;
        }
    }
    if (o->nx && (o->xx || o->gt || o->lt)) {
        reply_error(c, "ERR NX and XX, GT or LT options at the same time are not compatible");
        return false;
    }
    if (o->gt && o->lt) {
        reply_error(c, "ERR GT and LT options at the same time are not compatible");
        return false;
    }
    return true;
}

/* A key without expiry counts as living for ever: GT never shortens it, LT always does. */
static bool allowed(const struct expire_opts *o, uint64_t old, int64_t when)
{
    if ((o->nx && old) || (o->xx && !old)) {
        return false;
    }
    if (o->gt && (!old || when <= (int64_t)old)) {
        return false;
    }
    return !(o->lt && old && when >= (int64_t)old);
}

static void expire(struct conn *c, unsigned argc, struct arg *argv, const char *name,
                   int64_t unit_ms, bool relative)
{
    struct expire_opts o;
    struct key k;
    struct shard *s;
    struct item *it;
    int64_t when;

    if (!arg_i64(c, &argv[2], &when) || !expire_options(c, argc, argv, &o)) {
        return;
    }
    if (__builtin_mul_overflow(when, unit_ms, &when) ||
        (relative && __builtin_add_overflow(when, (int64_t)c->op.now_ms, &when))) {
        reply_error(c, "ERR invalid expire time in '%s' command", name);
        return;
    }
    if (!arg_key(c, &argv[1], &k)) {
        return;
    }
    s = op_lock(&c->op, &k);
    it = shard_find(s, &k, c->op.now_ms);
    if (!it || !allowed(&o, it->expire_ms, when)) {
        reply_int(c, 0);
    } else {
        if (when <= (int64_t)c->op.now_ms) {
            shard_delete(s, it);
        } else {
            shard_set_expire(s, it, (uint64_t)when);
            shard_changed(s, it);
        }
        reply_int(c, 1);
    }
    op_unlock(&c->op, &k);
}

void cmd_expire(struct conn *c, unsigned argc, struct arg *argv)
{
    expire(c, argc, argv, "expire", 1000, true);
}

void cmd_pexpire(struct conn *c, unsigned argc, struct arg *argv)
{
    expire(c, argc, argv, "pexpire", 1, true);
}

void cmd_expireat(struct conn *c, unsigned argc, struct arg *argv)
{
    expire(c, argc, argv, "expireat", 1000, false);
}

void cmd_pexpireat(struct conn *c, unsigned argc, struct arg *argv)
{
    expire(c, argc, argv, "pexpireat", 1, false);
}

/* Replies -2 (no key), -1 (no expiry), or the time in the unit asked for. */
static void when(struct conn *c, struct arg *argv, uint64_t unit_ms, bool left)
{
    struct key k;
    struct item *it;
    uint64_t ms;

    if (!arg_key(c, &argv[1], &k)) {
        return;
    }
    it = shard_find(op_lock(&c->op, &k), &k, c->op.now_ms);
    if (!it || !it->expire_ms) {
        reply_int(c, it ? -1 : -2);
    } else {
        ms = left ? it->expire_ms - c->op.now_ms : it->expire_ms;
        reply_int(c, (int64_t)((ms + unit_ms / 2) / unit_ms));
    }
    op_unlock(&c->op, &k);
}

void cmd_ttl(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    when(c, argv, 1000, true);
}

void cmd_pttl(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    when(c, argv, 1, true);
}

void cmd_expiretime(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    when(c, argv, 1000, false);
}

void cmd_pexpiretime(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    when(c, argv, 1, false);
}

void cmd_persist(struct conn *c, unsigned argc, struct arg *argv)
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
    if (it && it->expire_ms) {
        shard_set_expire(s, it, 0);
        shard_changed(s, it);
        reply_int(c, 1);
    } else {
        reply_int(c, 0);
    }
    op_unlock(&c->op, &k);
}
