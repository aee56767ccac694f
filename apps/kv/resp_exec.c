/* From parsed commands to their execution; helpers that command files share. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/kv/command.h"
#include "apps/kv/num.h"

#define COUNT(c, field) atomic_fetch_add_explicit(&(c)->srv->count.field, 1, memory_order_relaxed)

bool arg_i64(struct conn *c, const struct arg *a, int64_t *v)
{
    if (num_get_i64(a->p, a->len, v)) {
        return true;
    }
    reply_not_int(c);
    return false;
}

bool arg_key(struct conn *c, const struct arg *a, struct key *k)
{
    if (__builtin_expect(a->len > c->srv->cfg.max_key, 0)) {
        COUNT(c, over_key);
        reply_error(c, "ERR key exceeds the limit of %llu bytes",
                    (unsigned long long)c->srv->cfg.max_key);
        return false;
    }
    *k = key_make(&c->srv->store, a->p, a->len);
    return true;
}

bool value_fits(struct conn *c, uint64_t len)
{
    if (__builtin_expect(len > c->srv->cfg.max_value, 0)) {
        COUNT(c, over_value);
        reply_error(c, "ERR string exceeds maximum allowed size (proto-max-bulk-len)");
        return false;
    }
    return true;
}

bool put_value(struct conn *c, struct shard *s, const struct key *k, struct item *old,
               const char *p, size_t len)
{
    struct item *it = shard_put(s, k, old, len, false, c->op.now_ms);

    if (!it) {
        reply_oom(c);
        return false;
    }
    memcpy(item_value(it), p, len);
    it->flags = 0;
    if (it->expire_ms) {
        shard_set_expire(s, it, 0);
    }
    s->stat[ST_SETS]++;
    return true;
}

static void unknown(struct conn *c, unsigned argc, const struct arg *argv)
{
    char args[256] = "";
    size_t n = 0;

    for (unsigned i = 1; i < argc && n < 128; i++) {
        int room = (int)(128 - n);
        int len = argv[i].len < (size_t)room ? (int)argv[i].len : room;

        n += (size_t)snprintf(args + n, sizeof(args) - n, "'%.*s' ", len, argv[i].p);
    }
    reply_error(c, "ERR unknown command '%.*s', with args beginning with: %s",
                argv[0].len < 128 ? (int)argv[0].len : 128, argv[0].p, args);
}

static const struct command *check(struct conn *c, unsigned argc, const struct arg *argv)
{
    const struct command *cmd = command_find(argv[0].p, argv[0].len);

    if (!cmd || ((cmd->flags & CMD_DEBUG) && !c->srv->cfg.debug)) {
        unknown(c, argc, argv);
        return NULL;
    }
    if (!command_arity_ok(cmd, argc)) {
        reply_arity(c, cmd->name);
        return NULL;
    }
    return cmd;
}

static void count_call(struct conn *c, const struct command *cmd)
{
    struct cmd_slot *slot = &c->srv->cmd_slots[c->id % CMD_SLOTS];

    atomic_fetch_add_explicit(&slot->calls[command_index(cmd)], 1, memory_order_relaxed);
}

void resp_execute(struct conn *c, unsigned argc, struct arg *argv)
{
    const struct command *cmd = check(c, argc, argv);

    if (!cmd) {
        c->resp.multi_bad |= c->resp.multi;
        return;
    }
    if (c->resp.multi && !(cmd->flags & CMD_NOMULTI)) {
        multi_queue(c, cmd, argc, argv);
        return;
    }
    count_call(c, cmd);
    cmd->run(c, argc, argv);
}

/* CLIENT REPLY OFF and SKIP take the reply back. */
static void execute(struct conn *c)
{
    struct resp_state *r = &c->resp;
    size_t mark = c->out.len;

    resp_execute(c, r->argc, r->argv);
    if (__builtin_expect(r->reply_off | r->reply_skip | r->reply_skip_next, 0)) {
        if (r->reply_off || r->reply_skip) {
            c->out.len = mark;
        }
        r->reply_skip = r->reply_skip_next;
        r->reply_skip_next = false;
    }
}

void sub_dispatch(struct conn *c, const struct subcommand *subs, size_t n, unsigned argc,
                  struct arg *argv)
{
    const char *cmd = command_find(argv[0].p, argv[0].len)->name;
    char upper[16] = "";

    for (size_t i = 0; i < n; i++) {
        int arity = subs[i].arity;

        if (!arg_is(&argv[1], subs[i].name)) {
            continue;
        }
        if (arity >= 0 ? argc != (unsigned)arity : argc < (unsigned)-arity) {
            reply_error(c, "ERR wrong number of arguments for '%s|%s' command", cmd, subs[i].name);
        } else {
            subs[i].run(c, argc, argv);
        }
        return;
    }
    for (size_t i = 0; cmd[i] && i + 1 < sizeof(upper); i++) {
        upper[i] = (char)toupper((unsigned char)cmd[i]);
    }
    reply_error(c, "ERR unknown subcommand '%.*s'. Try %s HELP.",
                argv[1].len < 128 ? (int)argv[1].len : 128, argv[1].p, upper);
}

void sub_help(struct conn *c, const char *const *lines, size_t n)
{
    reply_array(c, n);
    for (size_t i = 0; i < n; i++) {
        reply_status(c, lines[i]);
    }
}

static void process(struct conn *c)
{
    uint64_t done = 0;
    int rc;

    while (c->in.pos < c->in.len && !c->closing && !c->dropping) {
        rc = resp_parse(c);
        if (rc <= 0) {
            break;
        }
        if (c->resp.argc > 0) {
            execute(c);
            done++;
        }
        resp_next(c);
        if (c->out.len >= KV_OUT_FLUSH) {
            conn_flush(c);
        }
    }
    count_add(&c->commands, done);
}

static int resp_open(struct conn *c)
{
    c->resp.argv = c->resp.few;
    c->resp.argcap = KV_ARGV_INLINE;
    c->resp.ver = 2;
    c->resp.queue_end = &c->resp.queue;
    return 0;
}

static void resp_close(struct conn *c)
{
    multi_reset(c);
    multi_unwatch(c);
    resp_argv_free(c);
}

static void too_big(struct conn *c)
{
    reply_error(c, "ERR Protocol error: request exceeds the query buffer or the memory limit");
}

const struct proto proto_resp = {
    .name = "resp",
    .refusal = "-ERR max number of clients reached\r\n",
    .open = resp_open,
    .close = resp_close,
    .process = process,
    .too_big = too_big,
};
