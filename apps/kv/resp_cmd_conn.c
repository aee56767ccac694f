/* Commands about the connection itself. */
#include <string.h>

#include "apps/kv/command.h"
#include "apps/kv/num.h"

void cmd_ping(struct conn *c, unsigned argc, struct arg *argv)
{
    if (argc > 2) {
        reply_arity(c, "ping");
    } else if (argc == 2) {
        reply_bulk(c, argv[1].p, argv[1].len);
    } else {
        REPLY(c, "+PONG\r\n");
    }
}

void cmd_echo(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    reply_bulk(c, argv[1].p, argv[1].len);
}

void cmd_select(struct conn *c, unsigned argc, struct arg *argv)
{
    int64_t db;

    (void)argc;
    if (!num_get_i64(argv[1].p, argv[1].len, &db)) {
        reply_error(c, "ERR value is not an integer or out of range");
    } else if (db != 0) {
        reply_error(c, "ERR DB index is out of range");
    } else {
        REPLY_OK(c);
    }
}

void cmd_quit(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    REPLY_OK(c);
    c->closing = true;
}

static void set_name(struct conn *c, const char *p, size_t len)
{
    pthread_mutex_lock(&c->srv->conns_lock);
    memcpy(c->name, p, len);
    c->name[len] = '\0';
    pthread_mutex_unlock(&c->srv->conns_lock);
}

void cmd_reset(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    multi_reset(c);
    multi_unwatch(c);
    set_name(c, "", 0);
    c->resp.ver = 2;
    c->resp.reply_off = false;
    REPLY(c, "+RESET\r\n");
}

void cmd_auth(struct conn *c, unsigned argc, struct arg *argv)
{
    if (argc > 3) {
        reply_syntax(c);
        return;
    }
    if (argc == 3) {
        /* The default user has no password: any is right, as in Redis. */
        if (arg_is(&argv[1], "default")) {
            REPLY_OK(c);
        } else {
            reply_error(c, "WRONGPASS invalid username-password pair or user is disabled.");
        }
        return;
    }
    reply_error(c, "ERR AUTH <password> called without any password configured for the default "
                   "user. Are you sure your configuration is correct?");
}

/* HTTP sent here by a browser that an attacker misuses: nothing is answered. */
void cmd_security(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    atomic_fetch_add_explicit(&c->srv->count.proto_errors, 1, memory_order_relaxed);
    c->dropping = true;
}

/* ---- names ---- */

/* A name may hold printable characters without blanks only. */
bool name_ok(struct conn *c, const struct arg *a, size_t max, const char *what)
{
    for (size_t i = 0; i < a->len; i++) {
        if (a->p[i] < '!' || a->p[i] > '~') {
            reply_error(c, "ERR %s cannot contain spaces, newlines or special characters.", what);
            return false;
        }
    }
    if (a->len >= max) {
        reply_error(c, "ERR %s longer than %zu characters", what, max - 1);
        return false;
    }
    return true;
}

/* HELLO's options: AUTH user password, SETNAME name. */
static bool hello_options(struct conn *c, unsigned argc, const struct arg *argv)
{
    for (unsigned i = 2; i < argc; i++) {
        if (arg_is(&argv[i], "auth") && i + 2 < argc) {
            /* The default user has no password; any is accepted, as Redis does. */
            if (!arg_is(&argv[i + 1], "default")) {
                reply_error(c, "WRONGPASS invalid username-password pair or user is disabled.");
                return false;
            }
            i += 2;
        } else if (arg_is(&argv[i], "setname") && i + 1 < argc) {
            if (!name_ok(c, &argv[++i], sizeof(c->name), "Client names")) {
                return false;
            }
            set_name(c, argv[i].p, argv[i].len);
        } else {
            reply_error(c, "ERR Syntax error in HELLO option '%.*s'",
                        argv[i].len < 128 ? (int)argv[i].len : 128, argv[i].p);
            return false;
        }
    }
    return true;
}

void cmd_hello(struct conn *c, unsigned argc, struct arg *argv)
{
    int64_t ver = c->resp.ver;

    if (argc > 1) {
        if (!num_get_i64(argv[1].p, argv[1].len, &ver)) {
            reply_error(c, "ERR Protocol version is not an integer or out of range");
            return;
        }
        if (ver != 2 && ver != 3) {
            reply_error(c, "NOPROTO unsupported protocol version");
            return;
        }
        if (!hello_options(c, argc, argv)) {
            return;
        }
    }
    c->resp.ver = (uint8_t)ver;
    reply_map(c, 7);
    reply_bulk_str(c, "server");
    reply_bulk_str(c, "redis");
    reply_bulk_str(c, "version");
    reply_bulk_str(c, KV_REDIS_VERSION);
    reply_bulk_str(c, "proto");
    reply_int(c, ver);
    reply_bulk_str(c, "id");
    reply_int(c, (int64_t)c->id);
    reply_bulk_str(c, "mode");
    reply_bulk_str(c, "standalone");
    reply_bulk_str(c, "role");
    reply_bulk_str(c, "master");
    reply_bulk_str(c, "modules");
    reply_array(c, 0);
}
