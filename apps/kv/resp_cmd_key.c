/* Commands on keys as such. */
#include <stdio.h>
#include <string.h>

#include "apps/kv/command.h"
#include "apps/kv/num.h"

/* Keys that one SCAN call aims at unless told; as Redis has it. */
#define SCAN_COUNT 10
/* Empty buckets that count as one key towards it, so that a sparse table cannot make a call long. */
#define SCAN_EMPTY 64
/* The longest value that Redis keeps in one allocation with its header ("embstr"), bytes. */
#define EMBSTR_MAX 44

/* Counts the keys for which fn says true; each key under its own lock unless all are held. */
typedef bool (*key_fn)(struct conn *c, struct shard *s, struct item *it);

static void count_keys(struct conn *c, unsigned argc, struct arg *argv, key_fn fn)
{
    struct key k;
    bool mine = false;
    int64_t n = 0;

    if (argc > 2) {
        op_set_clear(&c->op);
        for (unsigned i = 1; i < argc; i++) {
            if (!arg_key(c, &argv[i], &k)) {
                return;
            }
            op_set_add(&c->op, &k);
        }
        mine = op_lock_set(&c->op);
    }
    for (unsigned i = 1; i < argc; i++) {
        struct shard *s;
        struct item *it;

        if (!arg_key(c, &argv[i], &k)) {
            return; /* only with a single key: nothing is locked */
        }
        s = op_lock(&c->op, &k);
        it = shard_find(s, &k, c->op.now_ms);
        n += it && fn(c, s, it);
        op_unlock(&c->op, &k);
    }
    if (mine) {
        op_unlock_set(&c->op);
    }
    reply_int(c, n);
}

static bool delete_one(struct conn *c, struct shard *s, struct item *it)
{
    (void)c;
    s->stat[ST_DELETE_HITS]++;
    shard_delete(s, it);
    return true;
}

static bool is_there(struct conn *c, struct shard *s, struct item *it)
{
    (void)c;
    (void)it;
    s->stat[ST_GET_HITS]++;
    return true;
}

static bool touch_one(struct conn *c, struct shard *s, struct item *it)
{
    shard_touch(s, it, c->op.now_ms);
    return true;
}

void cmd_del(struct conn *c, unsigned argc, struct arg *argv)
{
    count_keys(c, argc, argv, delete_one);
}

void cmd_exists(struct conn *c, unsigned argc, struct arg *argv)
{
    count_keys(c, argc, argv, is_there);
}

void cmd_touch(struct conn *c, unsigned argc, struct arg *argv)
{
    count_keys(c, argc, argv, touch_one);
}

void cmd_type(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;

    (void)argc;
    if (!arg_key(c, &argv[1], &k)) {
        return;
    }
    if (shard_find(op_lock(&c->op, &k), &k, c->op.now_ms)) {
        REPLY(c, "+string\r\n");
    } else {
        REPLY(c, "+none\r\n");
    }
    op_unlock(&c->op, &k);
}

void cmd_dbsize(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    reply_int(c, (int64_t)store_count(&c->op));
}

void cmd_flushall(struct conn *c, unsigned argc, struct arg *argv)
{
    if (argc > 2 || (argc == 2 && !arg_is(&argv[1], "sync") && !arg_is(&argv[1], "async"))) {
        reply_syntax(c);
        return;
    }
    store_flush(&c->op);
    REPLY_OK(c);
}

/* ---- iteration ---- */

struct listing {
    struct conn *c;
    const struct arg *match; /* NULL = all */
    uint64_t n;
};

static void list_key(void *ctx, struct shard *s, struct item *it)
{
    struct listing *l = ctx;

    (void)s;
    if (l->match && !glob_match(l->match->p, l->match->len, item_key(it), it->klen)) {
        return;
    }
    reply_bulk(l->c, item_key(it), it->klen);
    l->n++;
}

void cmd_keys(struct conn *c, unsigned argc, struct arg *argv)
{
    struct listing l = {c, &argv[1], 0};
    struct reply_hole hole = reply_array_open(c);

    (void)argc;
    store_each(&c->op, list_key, &l);
    reply_array_close(c, hole, l.n);
}

/* A cursor as SCAN takes it: digits only, 64 bits. */
static bool scan_args(struct conn *c, unsigned argc, const struct arg *argv, uint64_t *cursor,
                      struct listing *l, int64_t *count, bool *strings)
{
    if (!num_get_u64(argv[1].p, argv[1].len, cursor)) {
        reply_error(c, "ERR invalid cursor");
        return false;
    }
    for (unsigned i = 2; i < argc; i += 2) {
        if (i + 1 == argc) {
            reply_syntax(c);
            return false;
        }
        if (arg_is(&argv[i], "count")) {
            if (!arg_i64(c, &argv[i + 1], count)) {
                return false;
            }
            if (*count < 1) {
                reply_syntax(c);
                return false;
            }
        } else if (arg_is(&argv[i], "match")) {
            l->match = &argv[i + 1];
        } else if (arg_is(&argv[i], "type")) {
            *strings = arg_is(&argv[i + 1], "string");
        } else {
            reply_syntax(c);
            return false;
        }
    }
    return true;
}

struct scan_step {
    struct listing *list;
    bool strings;
    int64_t seen;
};

static void scan_item(void *ctx, struct shard *s, struct item *it)
{
    struct scan_step *st = ctx;

    st->seen++;
    if (st->strings) {
        list_key(st->list, s, it);
    }
}

/* The cursor comes before the keys but is known after them: room is left and closed up. */
static void scan_front(struct conn *c, size_t at, size_t room, uint64_t cursor)
{
    char digits[NUM_MAX], front[2 * NUM_MAX];
    size_t n = num_put_u64(digits, cursor);
    size_t len =
        (size_t)snprintf(front, sizeof(front), "*2\r\n$%zu\r\n%.*s\r\n", n, (int)n, digits);

    memcpy(c->out.p + at, front, len);
    memmove(c->out.p + at + len, c->out.p + at + room, c->out.len - at - room);
    c->out.len -= room - len;
}

void cmd_scan(struct conn *c, unsigned argc, struct arg *argv)
{
    struct listing l = {c, NULL, 0};
    struct scan_step st = {&l, true, 0};
    const size_t room = 2 * NUM_MAX;
    int64_t count = SCAN_COUNT;
    uint64_t cursor, steps = 0;
    size_t at = c->out.len;
    struct reply_hole hole;

    if (!scan_args(c, argc, argv, &cursor, &l, &count, &st.strings) || !conn_out(c, room)) {
        return;
    }
    c->out.len += room;
    hole = reply_array_open(c);
    do {
        cursor = store_scan(&c->op, cursor, scan_item, &st);
        steps++;
    } while (cursor != 0 && st.seen < count && steps / SCAN_EMPTY < (uint64_t)count);
    reply_array_close(c, hole, l.n);
    if (!c->dropping) {
        scan_front(c, at, room, cursor);
    }
}

static void reply_key(void *ctx, struct shard *s, struct item *it)
{
    (void)s;
    reply_bulk(ctx, item_key(it), it->klen);
}

void cmd_randomkey(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    if (!store_random(&c->op, reply_key, c)) {
        reply_null(c);
    }
}

/* ---- RENAME and COPY ---- */

struct pair {
    struct key from, to;
    bool mine;
};

static bool pair_lock(struct conn *c, const struct arg *argv, struct pair *p)
{
    if (!arg_key(c, &argv[1], &p->from) || !arg_key(c, &argv[2], &p->to)) {
        return false;
    }
    op_set_clear(&c->op);
    op_set_add(&c->op, &p->from);
    op_set_add(&c->op, &p->to);
    p->mine = op_lock_set(&c->op);
    return true;
}

static void pair_unlock(struct conn *c, const struct pair *p)
{
    if (p->mine) {
        op_unlock_set(&c->op);
    }
}

/* Stores the value and expiry of `src` under p->to; false: out of memory (replied). */
static bool copy_item(struct conn *c, const struct pair *p, struct item *src)
{
    struct shard *s = p->to.shard;
    struct item *old = shard_find(s, &p->to, c->op.now_ms);
    struct item *it;

    p->from.shard->pin[1] = src;
    it = shard_put(s, &p->to, old, src->vlen, false, c->op.now_ms);
    p->from.shard->pin[1] = NULL;
    if (!it) {
        reply_oom(c);
        return false;
    }
    memcpy(item_value(it), item_value(src), src->vlen);
    it->flags = src->flags;
    shard_set_expire(s, it, src->expire_ms);
    return true;
}

static bool same_key(const struct pair *p)
{
    return p->from.len == p->to.len && memcmp(p->from.p, p->to.p, p->to.len) == 0;
}

static void rename_to(struct conn *c, struct arg *argv, bool nx)
{
    struct pair p;
    struct item *src;

    if (!pair_lock(c, argv, &p)) {
        return;
    }
    src = shard_find(p.from.shard, &p.from, c->op.now_ms);
    if (!src) {
        reply_error(c, "ERR no such key");
    } else if (nx && shard_find(p.to.shard, &p.to, c->op.now_ms)) {
        reply_int(c, 0);
    } else if (same_key(&p) || copy_item(c, &p, src)) {
        if (!same_key(&p)) {
            /* Found again: storing the copy may have moved it in the chains. */
            shard_delete(p.from.shard, shard_find(p.from.shard, &p.from, c->op.now_ms));
        }
        if (nx) {
            reply_int(c, 1);
        } else {
            REPLY_OK(c);
        }
    }
    pair_unlock(c, &p);
}

void cmd_rename(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    rename_to(c, argv, false);
}

void cmd_renamenx(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    rename_to(c, argv, true);
}

static bool copy_args(struct conn *c, unsigned argc, const struct arg *argv, bool *replace)
{
    int64_t db;

    for (unsigned i = 3; i < argc; i++) {
        if (arg_is(&argv[i], "replace")) {
            *replace = true;
        } else if (arg_is(&argv[i], "db") && i + 1 < argc) {
            if (!arg_i64(c, &argv[++i], &db)) {
                return false;
            }
            if (db != 0) {
                reply_error(c, "ERR DB index is out of range");
                return false;
            }
        } else {
            reply_syntax(c);
            return false;
        }
    }
    return true;
}

void cmd_copy(struct conn *c, unsigned argc, struct arg *argv)
{
    struct pair p;
    struct item *src;
    bool replace = false;

    if (!copy_args(c, argc, argv, &replace) || !pair_lock(c, argv, &p)) {
        return;
    }
    if (same_key(&p)) {
        reply_error(c, "ERR source and destination objects are the same");
        pair_unlock(c, &p);
        return;
    }
    src = shard_find(p.from.shard, &p.from, c->op.now_ms);
    if (!src || (!replace && shard_find(p.to.shard, &p.to, c->op.now_ms))) {
        reply_int(c, 0);
    } else if (copy_item(c, &p, src)) {
        reply_int(c, 1);
    }
    pair_unlock(c, &p);
}

/* ---- OBJECT ---- */

/* The item of argv[2], its shard locked; or NULL, replied and not locked. */
static struct item *object_lock(struct conn *c, const struct arg *argv, struct key *k)
{
    struct item *it;

    if (!arg_key(c, &argv[2], k)) {
        return NULL;
    }
    it = shard_find(op_lock(&c->op, k), k, c->op.now_ms);
    if (!it) {
        op_unlock(&c->op, k);
        reply_null(c);
    }
    return it;
}

static void object_encoding(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct item *it = object_lock(c, argv, &k);
    int64_t v;

    (void)argc;
    if (it) {
        bool is_int = num_get_i64(item_value(it), it->vlen, &v);

        reply_bulk_str(c, is_int ? "int" : (it->vlen <= EMBSTR_MAX ? "embstr" : "raw"));
        op_unlock(&c->op, &k);
    }
}

static void object_freq(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct item *it = object_lock(c, argv, &k);
    int policy = atomic_load(&c->srv->store.policy);

    (void)argc;
    if (!it) {
        return;
    }
    if (policy == EVICT_ALL_LFU || policy == EVICT_VOLATILE_LFU) {
        reply_int(c, it->freq);
    } else {
        reply_error(c, "ERR An LFU maxmemory policy is not selected, access frequency not tracked. "
                       "Please note that when switching between policies at runtime LRU and LFU "
                       "data will take some time to adjust.");
    }
    op_unlock(&c->op, &k);
}

static void object_idletime(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct item *it = object_lock(c, argv, &k);

    (void)argc;
    if (it) {
        reply_int(c, (int64_t)(item_idle_ms(it, c->op.now_ms) / 1000u));
        op_unlock(&c->op, &k);
    }
}

static void object_refcount(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;

    (void)argc;
    if (object_lock(c, argv, &k)) {
        reply_int(c, 1);
        op_unlock(&c->op, &k);
    }
}

static void object_help(struct conn *c, unsigned argc, struct arg *argv)
{
    static const char *const lines[] = {"OBJECT <subcommand> [<arg> ...]. Subcommands are:",
                                        "ENCODING <key>",
                                        "FREQ <key>",
                                        "IDLETIME <key>",
                                        "REFCOUNT <key>",
                                        "HELP"};

    (void)argc;
    (void)argv;
    SUB_HELP(c, lines);
}

void cmd_object(struct conn *c, unsigned argc, struct arg *argv)
{
    static const struct subcommand subs[] = {{"encoding", 3, object_encoding},
                                             {"freq", 3, object_freq},
                                             {"idletime", 3, object_idletime},
                                             {"refcount", 3, object_refcount},
                                             {"help", 2, object_help}};

    SUB_DISPATCH(c, subs, argc, argv);
}
