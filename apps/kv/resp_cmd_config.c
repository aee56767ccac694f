/* CONFIG: the settings under the names that Redis clients and tools ask for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/kv/command.h"
#include "apps/kv/num.h"

#define VALUE_MAX 128

struct param {
    const char *name;
    void (*get)(const struct server *srv, char *to);
    /* NULL: cannot be changed. false: the value is wrong. */
    bool (*set)(struct server *srv, const char *value);
};

static void put(char *to, uint64_t v)
{
    to[num_put_u64(to, v)] = '\0';
}

static void get_save(const struct server *srv, char *to)
{
    (void)srv;
    *to = '\0'; /* nothing is ever saved */
}

static void get_no(const struct server *srv, char *to)
{
    (void)srv;
    strcpy(to, "no");
}

static void get_databases(const struct server *srv, char *to)
{
    (void)srv;
    put(to, 1);
}

static void get_maxmemory(const struct server *srv, char *to)
{
    put(to, atomic_load(&srv->store.mem.limit));
}

static bool set_maxmemory(struct server *srv, const char *value)
{
    uint64_t n;

    if (config_size(value, &n) != 0) {
        return false;
    }
    store_set_limit(&srv->store, n);
    return true;
}

static void get_policy(const struct server *srv, char *to)
{
    strcpy(to, config_policy_name((uint64_t)atomic_load(&srv->store.policy)));
}

static bool set_policy(struct server *srv, const char *value)
{
    int p = config_policy(value);

    if (p >= 0) {
        atomic_store(&srv->store.policy, p);
    }
    return p >= 0;
}

static void get_maxclients(const struct server *srv, char *to)
{
    put(to, atomic_load(&srv->max_conns));
}

static bool set_maxclients(struct server *srv, const char *value)
{
    uint64_t n;

    /* Descriptors and (thread dispatch) stacks were provided for the number at start. */
    if (!num_get_u64(value, strlen(value), &n) || n < 1 || n > srv->cfg.max_conns) {
        return false;
    }
    atomic_store(&srv->max_conns, n);
    return true;
}

static void get_timeout(const struct server *srv, char *to)
{
    put(to, atomic_load(&srv->idle_timeout_s));
}

static bool set_timeout(struct server *srv, const char *value)
{
    uint64_t n;

    if (!num_get_u64(value, strlen(value), &n) || n > 31536000) {
        return false;
    }
    atomic_store(&srv->idle_timeout_s, n);
    return true;
}

static void get_port(const struct server *srv, char *to)
{
    put(to, srv->cfg.resp_port);
}

static void get_bind(const struct server *srv, char *to)
{
    strcpy(to, srv->cfg.bind);
}

static void get_bulk(const struct server *srv, char *to)
{
    put(to, srv->cfg.max_value);
}

static void get_query(const struct server *srv, char *to)
{
    put(to, srv->cfg.max_query);
}

static const struct param params[] = {
    {"save", get_save, NULL},
    {"appendonly", get_no, NULL},
    {"databases", get_databases, NULL},
    {"maxmemory", get_maxmemory, set_maxmemory},
    {"maxmemory-policy", get_policy, set_policy},
    {"maxclients", get_maxclients, set_maxclients},
    {"timeout", get_timeout, set_timeout},
    {"port", get_port, NULL},
    {"bind", get_bind, NULL},
    {"proto-max-bulk-len", get_bulk, NULL},
    {"client-query-buffer-limit", get_query, NULL},
    {"cluster-enabled", get_no, NULL},
};

#define NPARAMS (sizeof(params) / sizeof(params[0]))

static bool lower_match(const struct arg *pattern, const char *name)
{
    char lower[64];

    if (pattern->len >= sizeof(lower)) {
        return false;
    }
    for (size_t i = 0; i < pattern->len; i++) {
        char ch = pattern->p[i];

        lower[i] = ch >= 'A' && ch <= 'Z' ? (char)(ch | 0x20) : ch;
    }
    return glob_match(lower, pattern->len, name, strlen(name));
}

static bool wanted(unsigned argc, const struct arg *argv, const char *name)
{
    for (unsigned i = 2; i < argc; i++) {
        if (lower_match(&argv[i], name)) {
            return true;
        }
    }
    return false;
}

static void config_get(struct conn *c, unsigned argc, struct arg *argv)
{
    char value[VALUE_MAX];
    uint64_t n = 0;

    for (size_t i = 0; i < NPARAMS; i++) {
        n += wanted(argc, argv, params[i].name);
    }
    reply_map(c, n);
    for (size_t i = 0; i < NPARAMS; i++) {
        if (wanted(argc, argv, params[i].name)) {
            params[i].get(c->srv, value);
            reply_bulk_str(c, params[i].name);
            reply_bulk_str(c, value);
        }
    }
}

static const struct param *param_named(const struct arg *name)
{
    for (size_t i = 0; i < NPARAMS; i++) {
        if (arg_is(name, params[i].name)) {
            return &params[i];
        }
    }
    return NULL;
}

/* What CONFIG SET is about to change: the parameter, or NULL after an error reply. */
static const struct param *settable(struct conn *c, const struct arg *name)
{
    const struct param *p = param_named(name);

    if (!p) {
        reply_error(c, "ERR Unknown option or number of arguments for CONFIG SET - '%.*s'",
                    name->len < 128 ? (int)name->len : 128, name->p);
    } else if (!p->set) {
        reply_error(c, "ERR CONFIG SET failed (possibly related to argument '%s') - can't set immutable config",
                    p->name);
        p = NULL;
    }
    return p;
}

/* All names are known, may be set, and differ. False: replied. */
static bool config_names_good(struct conn *c, unsigned argc, const struct arg *argv)
{
    const struct param *p;

    for (unsigned i = 2; i < argc; i += 2) {
        p = settable(c, &argv[i]);
        if (!p) {
            return false;
        }
        for (unsigned j = 2; j < i; j += 2) {
            if (param_named(&argv[j]) == p) {
                reply_error(c, "ERR CONFIG SET failed (possibly related to argument '%s') - duplicate parameter",
                            p->name);
                return false;
            }
        }
    }
    return true;
}

static bool config_set_one(struct conn *c, const struct param *p, const struct arg *value)
{
    char text[VALUE_MAX];

    snprintf(text, sizeof(text), "%.*s", (int)(value->len < VALUE_MAX ? value->len : 0), value->p);
    if (value->len < VALUE_MAX && p->set(c->srv, text)) {
        return true;
    }
    reply_error(c, "ERR CONFIG SET failed (possibly related to argument '%s') - argument is out of range or malformed",
                p->name);
    return false;
}

static void reset_stats(struct conn *c)
{
    struct counters *n = &c->srv->count;

    store_reset_stats(&c->op);
    for (int s = 0; s < CMD_SLOTS; s++) {
        for (int i = 0; i < CMD_MAX; i++) {
            atomic_store_explicit(&c->srv->cmd_slots[s].calls[i], 0, memory_order_relaxed);
        }
    }
    n->accepted = 0;
    n->refused_limit = 0;
    n->refused_system = 0;
    n->cmd_errors = 0;
    n->proto_errors = 0;
    atomic_store(&c->srv->store.mem.peak, atomic_load(&c->srv->store.mem.used));
}

/* All or nothing. */
static void config_set(struct conn *c, unsigned argc, struct arg *argv)
{
    static pthread_mutex_t set_lock = PTHREAD_MUTEX_INITIALIZER;
    char before[NPARAMS][VALUE_MAX];
    unsigned done = 0;
    bool good = true;

    if (argc % 2) {
        reply_syntax(c);
        return;
    }
    if (!config_names_good(c, argc, argv)) {
        return;
    }
    /* One CONFIG SET at a time: what one of them puts back is what it found. */
    pthread_mutex_lock(&set_lock);
    for (unsigned i = 2; good && i < argc; i += 2) {
        const struct param *p = param_named(&argv[i]);

        p->get(c->srv, before[p - params]);
        good = config_set_one(c, p, &argv[i + 1]);
        done += good;
    }
    for (unsigned i = 0; !good && i < done; i++) {
        const struct param *p = param_named(&argv[2 + 2 * i]);

        p->set(c->srv, before[p - params]);
    }
    pthread_mutex_unlock(&set_lock);
    if (good) {
        REPLY_OK(c);
    }
}

static void config_resetstat(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    reset_stats(c);
    REPLY_OK(c);
}

static void config_rewrite(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    reply_error(c, "ERR The server is running without a config file");
}

static void config_help(struct conn *c, unsigned argc, struct arg *argv)
{
    static const char *const lines[] = {"CONFIG <subcommand> [<arg> ...]. Subcommands are:",
                                        "GET <pattern> [<pattern> ...]",
                                        "SET <name> <value> [<name> <value> ...]",
                                        "RESETSTAT",
                                        "REWRITE",
                                        "HELP"};

    (void)argc;
    (void)argv;
    SUB_HELP(c, lines);
}

void cmd_config(struct conn *c, unsigned argc, struct arg *argv)
{
    static const struct subcommand subs[] = {{"get", -3, config_get},
                                             {"set", -4, config_set},
                                             {"resetstat", 2, config_resetstat},
                                             {"rewrite", 2, config_rewrite},
                                             {"help", 2, config_help}};

    SUB_DISPATCH(c, subs, argc, argv);
}
