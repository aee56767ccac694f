/* Settings: defaults, then environment (KV_*), then flags (--name=value or --name value).
 * Every wrong value is an error that names the setting, the value and the accepted range. */
#ifndef KV_CONFIG_H
#define KV_CONFIG_H

#include <stddef.h>
#include <stdint.h>

enum dispatch { DISPATCH_THREAD, DISPATCH_POOL };

struct config {
    char bind[64];               /* IPv4 address to listen on */
    uint64_t resp_port, mc_port; /* 0: that protocol is off */
    uint64_t shards;
    uint64_t dispatch;    /* enum dispatch */
    uint64_t max_workers; /* 0: by the width policy */
    uint64_t min_workers;
    uint64_t max_conns;
    uint64_t max_memory; /* bytes, 0 = no limit */
    uint64_t policy;     /* enum evict_policy */
    uint64_t stop_the_world;
    uint64_t lock_stats;
    uint64_t max_key;   /* bytes, RESP */
    uint64_t max_value; /* bytes, RESP */
    uint64_t mc_max_value;
    uint64_t max_args;
    uint64_t max_line;          /* inline commands, bytes */
    uint64_t max_query;         /* input buffer, bytes */
    uint64_t max_output;        /* output buffer, bytes */
    uint64_t partial_timeout_s; /* 0 = none */
    uint64_t idle_timeout_s;    /* 0 = none */
    uint64_t debug;             /* DEBUG command allowed */
};

/* Called with a message (one line, no newline) for a wrong setting. */
typedef void (*config_error_fn)(const char *line);

void config_defaults(struct config *c);
/* env: NULL-terminated "NAME=value" strings. 0 or -1. An unknown KV_* name is reported by `warn`
 * and otherwise ignored: the environment may be shared with a test harness. */
int config_env(struct config *c, char *const *env, config_error_fn err, config_error_fn warn);
/* 0, 1 (help or version was printed: exit 0), or -1. */
int config_args(struct config *c, int argc, char *const *argv, config_error_fn err);
/* Relations between settings. 0 or -1. */
int config_check(const struct config *c, config_error_fn err);

/* "64mb", "1gb", "1024" -> bytes; -1 if malformed or beyond 2^63. */
int config_size(const char *text, uint64_t *bytes);

const char *config_policy_name(uint64_t policy);
/* -1 if unknown. */
int config_policy(const char *name);

/* Width of the pool for a number of CPUs granted: REQUIREMENTS width policy, with overrides. */
struct width {
    unsigned min, max;
};
struct width config_width(const struct config *c, unsigned cpus);

#endif
