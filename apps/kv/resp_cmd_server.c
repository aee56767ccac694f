/* Commands about the server: INFO, TIME, MEMORY, DEBUG, SHUTDOWN. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "apps/kv/clock.h"
#include "apps/kv/command.h"
#include "apps/kv/info.h"

void cmd_info(struct conn *c, unsigned argc, struct arg *argv)
{
    struct reply_hole hole = reply_text_open(c);

    info_write(c, argc - 1, argv + 1);
    reply_text_close(c, hole, true);
}

void cmd_time(struct conn *c, unsigned argc, struct arg *argv)
{
    uint64_t us = clock_ns(CLOCK_REALTIME) / 1000;

    (void)argc;
    (void)argv;
    reply_array(c, 2);
    reply_bulk_i64(c, (int64_t)(us / 1000000));
    reply_bulk_i64(c, (int64_t)(us % 1000000));
}

/* ---- MEMORY ---- */

static void memory_usage(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;
    struct item *it;

    /* SAMPLES is for nested types; there are none. */
    if (argc != 3 && !(argc == 5 && arg_is(&argv[3], "samples"))) {
        reply_syntax(c);
        return;
    }
    if (!arg_key(c, &argv[2], &k)) {
        return;
    }
    it = shard_find(op_lock(&c->op, &k), &k, c->op.now_ms);
    if (it) {
        /* The block, and the item's share of the bucket array. */
        reply_int(c, (int64_t)(arena_round(item_size(it->klen, it->vlen)) + sizeof(void *)));
    } else {
        reply_null(c);
    }
    op_unlock(&c->op, &k);
}

static void memory_stats(struct conn *c, unsigned argc, struct arg *argv)
{
    struct store_totals t;
    struct conn_totals ct;

    (void)argc;
    (void)argv;
    store_totals(&c->op, &t);
    server_conn_totals(c->srv, &ct);
    reply_map(c, 7);
    reply_bulk_str(c, "peak.allocated");
    reply_int(c, (int64_t)atomic_load(&c->srv->store.mem.peak));
    reply_bulk_str(c, "total.allocated");
    reply_int(c, (int64_t)store_used_memory(&c->op));
    reply_bulk_str(c, "clients.normal");
    reply_int(c, (int64_t)ct.held);
    reply_bulk_str(c, "keys.count");
    reply_int(c, (int64_t)t.items);
    reply_bulk_str(c, "dataset.bytes");
    reply_int(c, (int64_t)t.item_bytes);
    reply_bulk_str(c, "tables.bytes");
    reply_int(c, (int64_t)t.table_bytes);
    reply_bulk_str(c, "arena.reserved");
    reply_int(c, (int64_t)t.arena_reserved);
}

static void memory_help(struct conn *c, unsigned argc, struct arg *argv)
{
    static const char *const lines[] = {"MEMORY <subcommand> [<arg> ...]. Subcommands are:",
                                        "STATS", "USAGE <key> [SAMPLES <count>]", "HELP"};

    (void)argc;
    (void)argv;
    SUB_HELP(c, lines);
}

void cmd_memory(struct conn *c, unsigned argc, struct arg *argv)
{
    static const struct subcommand subs[] = {
        {"usage", -3, memory_usage}, {"stats", 2, memory_stats}, {"help", 2, memory_help}};

    SUB_DISPATCH(c, subs, argc, argv);
}

/* ---- DEBUG (KV_DEBUG=1 only) ---- */

static void sleep_seconds(double s)
{
    struct timespec ts = {(time_t)s, (long)((s - (double)(time_t)s) * 1e9)};

    while (nanosleep(&ts, &ts) != 0 && errno == EINTR) {
    }
}

static double seconds_of(const struct arg *a)
{
    char text[32] = "";

    memcpy(text, a->p, a->len < sizeof(text) ? a->len : sizeof(text) - 1);
    return strtod(text, NULL);
}

/* Keeps the worker's slot. */
static void debug_sleep(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    sleep_seconds(seconds_of(&argv[2]));
    REPLY_OK(c);
}

/* Keeps the slot and the lock of a key's shard. */
static void debug_sleep_locked(struct conn *c, unsigned argc, struct arg *argv)
{
    struct key k;

    (void)argc;
    if (!arg_key(c, &argv[2], &k)) {
        return;
    }
    op_lock(&c->op, &k);
    sleep_seconds(seconds_of(&argv[3]));
    op_unlock(&c->op, &k);
    REPLY_OK(c);
}

/* For tests of what happens to keys that have expired and are still there. */
static void debug_set_active_expire(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    if (!arg_is(&argv[2], "0") && !arg_is(&argv[2], "1")) {
        reply_syntax(c);
        return;
    }
    atomic_store(&c->srv->no_active_expire, arg_is(&argv[2], "0"));
    if (c->srv->store.wake_maint) {
        c->srv->store.wake_maint(c->srv->store.wake_ctx);
    }
    REPLY_OK(c);
}

static void debug_help(struct conn *c, unsigned argc, struct arg *argv)
{
    static const char *const lines[] = {"DEBUG <subcommand> [<arg> ...]. Subcommands are:",
                                        "SLEEP <seconds>", "SLEEP-LOCKED <key> <seconds>",
                                        "SET-ACTIVE-EXPIRE <0|1>", "HELP"};

    (void)argc;
    (void)argv;
    SUB_HELP(c, lines);
}

void cmd_debug(struct conn *c, unsigned argc, struct arg *argv)
{
    static const struct subcommand subs[] = {{"sleep", 3, debug_sleep},
                                             {"sleep-locked", 4, debug_sleep_locked},
                                             {"set-active-expire", 3, debug_set_active_expire},
                                             {"help", 2, debug_help}};

    SUB_DISPATCH(c, subs, argc, argv);
}

void cmd_shutdown(struct conn *c, unsigned argc, struct arg *argv)
{
    uint64_t one = 1;

    for (unsigned i = 1; i < argc; i++) {
        if (!arg_is(&argv[i], "nosave") && !arg_is(&argv[i], "now") && !arg_is(&argv[i], "force")) {
            reply_syntax(c);
            return;
        }
    }
    /* Like SIGTERM; no reply, the connection ends. */
    (void)!write(c->srv->stop_fd, &one, sizeof(one));
    c->dropping = true;
}
