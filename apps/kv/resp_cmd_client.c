/* CLIENT: what the server knows about its connections. */
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "apps/kv/command.h"
#include "apps/kv/num.h"

/* Longest line of CLIENT LIST: the names are bounded, the rest are numbers. */
#define LINE_MAX_LEN 512

static void store_text(struct conn *c, char *to, const struct arg *a)
{
    pthread_mutex_lock(&c->srv->conns_lock);
    memcpy(to, a->p, a->len);
    to[a->len] = '\0';
    pthread_mutex_unlock(&c->srv->conns_lock);
    REPLY_OK(c);
}

/* conns_lock is held (for the names). */
static size_t describe(const struct conn *c, uint64_t now_ms, char *line)
{
    uint64_t active = atomic_load_explicit(&c->active_ms, memory_order_relaxed);
    int n =
        snprintf(line, LINE_MAX_LEN,
                 "id=%llu addr=%s fd=%d name=%s age=%llu idle=%llu flags=N db=0 proto=%s "
                 "cmds=%llu in=%llu out=%llu buffers=%zu lib-name=%s lib-ver=%s\n",
                 (unsigned long long)c->id, c->addr, c->fd, c->name,
                 (unsigned long long)(now_ms > c->opened_ms ? now_ms - c->opened_ms : 0) / 1000,
                 (unsigned long long)(now_ms > active ? now_ms - active : 0) / 1000, c->proto->name,
                 (unsigned long long)atomic_load_explicit(&c->commands, memory_order_relaxed),
                 (unsigned long long)atomic_load_explicit(&c->bytes_in, memory_order_relaxed),
                 (unsigned long long)atomic_load_explicit(&c->bytes_out, memory_order_relaxed),
                 atomic_load_explicit(&c->held, memory_order_relaxed), c->lib_name, c->lib_ver);

    return n < LINE_MAX_LEN ? (size_t)n : LINE_MAX_LEN - 1;
}

/* Lines for all connections, or the one with this id. */
static void client_list(struct conn *c, uint64_t only)
{
    char line[LINE_MAX_LEN];
    struct reply_hole hole = reply_text_open(c);

    pthread_mutex_lock(&c->srv->conns_lock);
    for (struct conn *o = c->srv->conns; o; o = o->next) {
        if (!only || o->id == only) {
            reply_raw(c, line, describe(o, c->op.now_ms, line));
        }
    }
    pthread_mutex_unlock(&c->srv->conns_lock);
    reply_text_close(c, hole, true);
}

/* ---- KILL ---- */

struct kill_filter {
    uint64_t id;
    const struct arg *addr;
    bool skip_me;
};

static bool kill_args(struct conn *c, unsigned argc, const struct arg *argv, struct kill_filter *f)
{
    int64_t id;

    for (unsigned i = 2; i < argc; i += 2) {
        if (i + 1 == argc) {
            reply_syntax(c);
            return false;
        }
        if (arg_is(&argv[i], "id")) {
            if (!num_get_i64(argv[i + 1].p, argv[i + 1].len, &id) || id < 1) {
                reply_error(c, "ERR client-id should be greater than 0");
                return false;
            }
            f->id = (uint64_t)id;
        } else if (arg_is(&argv[i], "addr")) {
            f->addr = &argv[i + 1];
        } else if (arg_is(&argv[i], "skipme")) {
            f->skip_me = arg_is(&argv[i + 1], "yes");
        } else {
            reply_syntax(c);
            return false;
        }
    }
    return true;
}

static int64_t kill_matching(struct conn *c, const struct kill_filter *f)
{
    int64_t n = 0;

    pthread_mutex_lock(&c->srv->conns_lock);
    for (struct conn *o = c->srv->conns; o; o = o->next) {
        if ((f->id && o->id != f->id) || (f->skip_me && o == c) ||
            (f->addr &&
             (strlen(o->addr) != f->addr->len || memcmp(o->addr, f->addr->p, f->addr->len) != 0))) {
            continue;
        }
        n++;
        if (o == c) {
            c->closing = true; /* after this reply */
        } else {
            atomic_store(&o->kill, true);
            shutdown(o->fd, SHUT_RDWR); /* wakes its reader; the owner closes it */
        }
    }
    pthread_mutex_unlock(&c->srv->conns_lock);
    return n;
}

static void client_kill(struct conn *c, unsigned argc, struct arg *argv)
{
    struct kill_filter f = {0, NULL, true};

    if (argc == 3) { /* the old form: an address, the own one included */
        f.addr = &argv[2];
        f.skip_me = false;
        if (kill_matching(c, &f) > 0) {
            REPLY_OK(c);
        } else {
            reply_error(c, "ERR No such client");
        }
    } else if (kill_args(c, argc, argv, &f)) {
        reply_int(c, kill_matching(c, &f));
    }
}

/* ---- the rest ---- */

static void client_id(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    reply_int(c, (int64_t)c->id);
}

static void client_info(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    client_list(c, c->id);
}

static void client_getname(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    if (c->name[0]) {
        reply_bulk_str(c, c->name);
    } else {
        reply_null(c);
    }
}

static void client_setname(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    if (name_ok(c, &argv[2], sizeof(c->name), "Client names")) {
        store_text(c, c->name, &argv[2]);
    }
}

static void client_setinfo(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    if (arg_is(&argv[2], "lib-name")) {
        if (name_ok(c, &argv[3], sizeof(c->lib_name), "lib-name")) {
            store_text(c, c->lib_name, &argv[3]);
        }
    } else if (arg_is(&argv[2], "lib-ver")) {
        if (name_ok(c, &argv[3], sizeof(c->lib_ver), "lib-ver")) {
            store_text(c, c->lib_ver, &argv[3]);
        }
    } else {
        reply_error(c, "ERR Unrecognized option '%.*s'", argv[2].len < 128 ? (int)argv[2].len : 128,
                    argv[2].p);
    }
}

static void client_reply(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    if (arg_is(&argv[2], "on")) {
        c->resp.reply_off = false;
        c->resp.reply_skip = false;
        REPLY_OK(c);
    } else if (arg_is(&argv[2], "off")) {
        c->resp.reply_off = true;
    } else if (arg_is(&argv[2], "skip")) {
        c->resp.reply_skip_next = !c->resp.reply_off;
    } else {
        reply_syntax(c);
    }
}

static void client_no_evict(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    if (arg_is(&argv[2], "on") || arg_is(&argv[2], "off")) {
        REPLY_OK(c); /* connections are never evicted here */
    } else {
        reply_syntax(c);
    }
}

static void client_list_args(struct conn *c, unsigned argc, struct arg *argv)
{
    int64_t id = 0;

    if (argc == 4 && arg_is(&argv[2], "id")) {
        if (!num_get_i64(argv[3].p, argv[3].len, &id) || id < 1) {
            reply_error(c, "ERR Invalid client ID");
            return;
        }
    } else if (argc == 4 && arg_is(&argv[2], "type")) {
        if (!arg_is(&argv[3], "normal")) {
            reply_error(c, "ERR Unknown client type '%.*s'",
                        argv[3].len < 128 ? (int)argv[3].len : 128, argv[3].p);
            return;
        }
    } else if (argc != 2) {
        reply_syntax(c);
        return;
    }
    client_list(c, (uint64_t)id);
}

static void client_help(struct conn *c, unsigned argc, struct arg *argv)
{
    static const char *const lines[] = {
        "CLIENT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "ID",
        "INFO",
        "LIST [ID <id>|TYPE normal]",
        "GETNAME",
        "SETNAME <name>",
        "SETINFO LIB-NAME|LIB-VER <text>",
        "KILL <addr>|[ID <id>] [ADDR <addr>] [SKIPME yes|no]",
        "REPLY ON|OFF|SKIP",
        "NO-EVICT ON|OFF",
        "HELP"};

    (void)argc;
    (void)argv;
    SUB_HELP(c, lines);
}

void cmd_client(struct conn *c, unsigned argc, struct arg *argv)
{
    static const struct subcommand subs[] = {{"id", 2, client_id},
                                             {"info", 2, client_info},
                                             {"list", -2, client_list_args},
                                             {"getname", 2, client_getname},
                                             {"setname", 3, client_setname},
                                             {"setinfo", 4, client_setinfo},
                                             {"kill", -3, client_kill},
                                             {"reply", 3, client_reply},
                                             {"no-evict", 3, client_no_evict},
                                             {"help", 2, client_help}};

    SUB_DISPATCH(c, subs, argc, argv);
}
