#include "apps/kv/config.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "apps/kv/store.h"
#include "apps/kv/tunables.h"

enum kind { NUMBER, POWER2, SIZE, CHOICE, TEXT };

struct option {
    const char *env;
    const char *flag;
    enum kind kind;
    size_t at; /* offset in struct config */
    uint64_t min, max;
    const char *const *choices;
    const char *help;
};

static const char *const dispatch_names[] = {"thread", "pool", NULL};
static const char *const rehash_names[] = {"incremental", "stop-the-world", NULL};
static const char *const policy_names[] = {"noeviction",  "allkeys-lru",  "volatile-lru",
                                           "allkeys-lfu", "volatile-lfu", NULL};

#define AT(field) offsetof(struct config, field)
#define TB        (1ull << 40)

static const struct option options[] = {
    {"KV_BIND", "bind", TEXT, AT(bind), 0, sizeof(((struct config *)0)->bind) - 1, NULL,
     "IPv4 address to listen on"},
    {"KV_RESP_PORT", "resp-port", NUMBER, AT(resp_port), 0, 65535, NULL,
     "port of the Redis protocol; 0 turns it off"},
    {"KV_MC_PORT", "mc-port", NUMBER, AT(mc_port), 0, 65535, NULL,
     "port of the memcached protocol; 0 turns it off"},
    {"KV_SHARDS", "shards", POWER2, AT(shards), 1, KV_SHARDS_MAX, NULL, "shards of the store"},
    {"KV_DISPATCH", "dispatch", CHOICE, AT(dispatch), 0, 0, dispatch_names,
     "a thread per connection, or a pool of workers"},
    {"KV_MAX_WORKERS", "max-workers", NUMBER, AT(max_workers), 1, KV_WORKERS_LIMIT, NULL,
     "most workers of the pool (default: CPUs x 16, within 64..1024)"},
    {"KV_MIN_WORKERS", "min-workers", NUMBER, AT(min_workers), 1, KV_WORKERS_LIMIT, NULL,
     "fewest workers of the pool (default: max(4, CPUs x 4))"},
    {"KV_MAX_CONNS", "max-conns", NUMBER, AT(max_conns), 1, 1000000, NULL, "connections at once"},
    {"KV_MAX_MEMORY", "max-memory", SIZE, AT(max_memory), 0, 1024 * TB, NULL,
     "limit of keys, values, tables, buffers and connections; 0: none"},
    {"KV_POLICY", "policy", CHOICE, AT(policy), 0, 0, policy_names, "what to do at the limit"},
    {"KV_REHASH", "rehash", CHOICE, AT(stop_the_world), 0, 0, rehash_names, "how tables grow"},
    {"KV_LOCK_STATS", "lock-stats", NUMBER, AT(lock_stats), 0, 1, NULL,
     "1: measure the shard locks"},
    {"KV_MAX_KEY", "max-key", SIZE, AT(max_key), 1, KV_BULK_MAX, NULL,
     "longest key, Redis protocol (memcached: always 250)"},
    {"KV_MAX_VALUE", "max-value", SIZE, AT(max_value), 1, KV_BULK_MAX, NULL,
     "longest value, Redis protocol"},
    {"KV_MC_MAX_VALUE", "mc-max-value", SIZE, AT(mc_max_value), 1, KV_BULK_MAX, NULL,
     "longest value, memcached protocol"},
    {"KV_MAX_ARGS", "max-args", NUMBER, AT(max_args), 8, 16 * KV_ARGS_MAX, NULL,
     "most arguments of a command"},
    {"KV_MAX_LINE", "max-line", SIZE, AT(max_line), 256, 1024 * 1024, NULL,
     "longest inline command or line of keys"},
    {"KV_MAX_QUERY", "max-query", SIZE, AT(max_query), KV_BUF_KEEP, TB, NULL,
     "most bytes of requests held for one connection"},
    {"KV_MAX_OUTPUT", "max-output", SIZE, AT(max_output), KV_BUF_KEEP, TB, NULL,
     "most bytes of replies held for one connection"},
    {"KV_PARTIAL_TIMEOUT", "partial-timeout", NUMBER, AT(partial_timeout_s), 0, 86400, NULL,
     "seconds for a request that has begun to be complete; 0: for ever"},
    {"KV_IDLE_TIMEOUT", "idle-timeout", NUMBER, AT(idle_timeout_s), 0, 31536000, NULL,
     "seconds after which an idle connection is closed; 0: never"},
    {"KV_DEBUG", "debug", NUMBER, AT(debug), 0, 1, NULL, "1: allow the DEBUG command"},
};

#define NOPTIONS (sizeof(options) / sizeof(options[0]))

static void complain(config_error_fn err, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

static void complain(config_error_fn err, const char *fmt, ...)
{
    char line[256];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(line, sizeof(line), fmt, ap);
    va_end(ap);
    err(line);
}

void config_defaults(struct config *c)
{
    memset(c, 0, sizeof(*c));
    strcpy(c->bind, "0.0.0.0");
    c->resp_port = 6379;
    c->mc_port = 11211;
    c->shards = KV_SHARDS_DEFAULT;
    c->max_conns = KV_CONNS_MAX;
    c->max_key = KV_BULK_MAX;
    c->max_value = KV_BULK_MAX;
    c->mc_max_value = KV_MC_VALUE_DEFAULT;
    c->max_args = KV_ARGS_MAX;
    c->max_line = KV_RESP_INLINE_MAX;
    c->max_query = KV_QUERY_MAX;
    c->max_output = KV_OUTPUT_MAX;
    c->partial_timeout_s = KV_PARTIAL_TIMEOUT_S;
}

int config_size(const char *text, uint64_t *bytes)
{
    static const struct {
        const char *name;
        uint64_t unit;
    } units[] = {{"", 1},        {"b", 1},        {"k", 1000},       {"kb", 1 << 10},
                 {"m", 1000000}, {"mb", 1 << 20}, {"g", 1000000000}, {"gb", 1 << 30}};
    char *end;
    unsigned long long n;

    if (!isdigit((unsigned char)text[0])) {
        return -1;
    }
    errno = 0;
    n = strtoull(text, &end, 10);
    if (errno) {
        return -1;
    }
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcasecmp(end, units[i].name) == 0) {
            if (n > INT64_MAX / units[i].unit) {
                return -1;
            }
            *bytes = n * units[i].unit;
            return 0;
        }
    }
    return -1;
}

int config_policy(const char *name)
{
    if (strcasecmp(name, "lru") == 0) {
        return EVICT_ALL_LRU;
    }
    if (strcasecmp(name, "lfu") == 0) {
        return EVICT_ALL_LFU;
    }
    for (int i = 0; policy_names[i]; i++) {
        if (strcasecmp(name, policy_names[i]) == 0) {
            return i;
        }
    }
    return -1;
}

const char *config_policy_name(uint64_t policy)
{
    return policy_names[policy];
}

static int set_number(uint64_t *to, const struct option *o, const char *name, const char *value,
                      config_error_fn err)
{
    uint64_t n = 0;
    int bad = config_size(value, &n);

    if (o->kind != SIZE && !bad) {
        bad = strspn(value, "0123456789") != strlen(value);
    }
    if (o->kind == POWER2 && !bad) {
        bad = (n & (n - 1)) != 0;
    }
    if (bad || n < o->min || n > o->max) {
        complain(err, "%s: '%.64s' is not %s in %llu..%llu", name, value,
                 o->kind == POWER2
                     ? "a power of two"
                     : (o->kind == SIZE ? "a size (bytes, or with kb, mb, gb)" : "a whole number"),
                 (unsigned long long)o->min, (unsigned long long)o->max);
        return -1;
    }
    *to = n;
    return 0;
}

static int set_choice(uint64_t *to, const struct option *o, const char *name, const char *value,
                      config_error_fn err)
{
    char list[128] = "";

    if (o->choices == policy_names && config_policy(value) >= 0) {
        *to = (uint64_t)config_policy(value);
        return 0;
    }
    for (uint64_t i = 0; o->choices[i]; i++) {
        if (strcmp(value, o->choices[i]) == 0) {
            *to = i;
            return 0;
        }
        if (i) {
            strcat(list, ", ");
        }
        strcat(list, o->choices[i]);
    }
    complain(err, "%s: '%.64s' is not one of: %s", name, value, list);
    return -1;
}

static int set(struct config *c, const struct option *o, const char *name, const char *value,
               config_error_fn err)
{
    char *field = (char *)c + o->at;

    if (o->kind == CHOICE) {
        return set_choice((uint64_t *)(void *)field, o, name, value, err);
    }
    if (o->kind == TEXT) {
        if (strlen(value) == 0 || strlen(value) > o->max) {
            complain(err, "%s: '%.64s' must have 1..%llu characters", name, value,
                     (unsigned long long)o->max);
            return -1;
        }
        strcpy(field, value);
        return 0;
    }
    return set_number((uint64_t *)(void *)field, o, name, value, err);
}

int config_env(struct config *c, char *const *env, config_error_fn err, config_error_fn warn)
{
    for (; *env; env++) {
        const char *eq = strchr(*env, '=');
        size_t i;

        if (!eq || strncmp(*env, "KV_", 3) != 0) {
            continue;
        }
        for (i = 0; i < NOPTIONS; i++) {
            size_t n = strlen(options[i].env);

            if (n == (size_t)(eq - *env) && memcmp(*env, options[i].env, n) == 0) {
                if (set(c, &options[i], options[i].env, eq + 1, err) != 0) {
                    return -1;
                }
                break;
            }
        }
        if (i == NOPTIONS) {
            complain(warn, "%.*s: no such setting, ignored (see --help)", (int)(eq - *env), *env);
        }
    }
    return 0;
}

static int usage(const char *prog)
{
    printf("usage: %s [--NAME=VALUE ...]\n\nSettings (flag, environment variable):\n", prog);
    for (size_t i = 0; i < NOPTIONS; i++) {
        const struct option *o = &options[i];

        printf("  --%-16s %-18s %s", o->flag, o->env, o->help);
        for (int j = 0; o->choices && o->choices[j]; j++) {
            printf("%s%s", j ? " | " : ": ", o->choices[j]);
        }
        if (!o->choices && o->kind != TEXT) {
            printf(" [%llu..%llu]", (unsigned long long)o->min, (unsigned long long)o->max);
        }
        printf("\n");
    }
    return 1;
}

static const struct option *find_flag(const char *name, size_t len)
{
    for (size_t i = 0; i < NOPTIONS; i++) {
        if (strlen(options[i].flag) == len && memcmp(options[i].flag, name, len) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

int config_args(struct config *c, int argc, char *const *argv, config_error_fn err)
{
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        const char *eq = strchr(a, '=');
        const char *value;
        const struct option *o;
        char name[32];

        if (strcmp(a, "--help") == 0) {
            return usage(argv[0]);
        }
        if (strcmp(a, "--version") == 0) {
            printf("kv %s\n", KV_VERSION);
            return 1;
        }
        o = strncmp(a, "--", 2) == 0 ? find_flag(a + 2, eq ? (size_t)(eq - a - 2) : strlen(a + 2))
                                     : NULL;
        if (!o) {
            complain(err, "%.64s: no such flag (see --help)", a);
            return -1;
        }
        value = eq ? eq + 1 : (i + 1 < argc ? argv[++i] : NULL);
        snprintf(name, sizeof(name), "--%s", o->flag);
        if (!value) {
            complain(err, "%s: needs a value", name);
            return -1;
        }
        if (set(c, o, name, value, err) != 0) {
            return -1;
        }
    }
    return 0;
}

int config_check(const struct config *c, config_error_fn err)
{
    if (c->resp_port == 0 && c->mc_port == 0) {
        err("KV_RESP_PORT and KV_MC_PORT: both are 0; at least one protocol must be on");
        return -1;
    }
    if (c->resp_port == c->mc_port) {
        complain(err, "KV_RESP_PORT and KV_MC_PORT: both are %llu; they must differ",
                 (unsigned long long)c->resp_port);
        return -1;
    }
    if (c->max_workers && c->min_workers > c->max_workers) {
        complain(err,
                 "KV_MIN_WORKERS: '%llu' exceeds KV_MAX_WORKERS '%llu' (each 1..%u, MIN <= MAX)",
                 (unsigned long long)c->min_workers, (unsigned long long)c->max_workers,
                 KV_WORKERS_LIMIT);
        return -1;
    }
    return 0;
}

struct width config_width(const struct config *c, unsigned cpus)
{
    struct width w = {cpus * KV_WORKERS_FLOOR_PER_CPU, cpus * KV_WORKERS_PER_CPU};

    if (w.min < KV_WORKERS_FLOOR) {
        w.min = KV_WORKERS_FLOOR;
    }
    if (w.max < KV_WORKERS_LOW) {
        w.max = KV_WORKERS_LOW;
    } else if (w.max > KV_WORKERS_HIGH) {
        w.max = KV_WORKERS_HIGH;
    }
    if (c->max_workers) {
        w.max = (unsigned)c->max_workers;
    }
    if (c->min_workers) {
        w.min = (unsigned)c->min_workers;
    }
    /* One override given: the other bound follows it. */
    if (w.min > w.max) {
        if (c->min_workers) {
            w.max = w.min;
        } else {
            w.min = w.max;
        }
    }
    return w;
}
