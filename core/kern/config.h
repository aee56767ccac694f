/* The kernel's command line: key=value words, values with spaces in double quotes (app="/kv --port 6379").
 *
 * Pure (config.c): host tests run it. */
#ifndef WEIR_CORE_KERN_CONFIG_H
#define WEIR_CORE_KERN_CONFIG_H

#include "core/base/types.h"
#include "core/kern/tunables.h"

#define CONFIG_TEXT 4096 /* bytes of the command line, with its NUL */
#define CONFIG_ERROR 200

enum config_net { CONFIG_NET_DHCP, CONFIG_NET_STATIC, CONFIG_NET_NONE, CONFIG_NET_WIRE };

/* Words of a grant on one command line: each key twice. */
#define CONFIG_GRANT_WORDS 12
#define GRANT_DELIVERED_AUTO UINT64_MAX

struct config_word {
    const char *key, *value; /* key without "grant." */
};

struct config {
    char text[CONFIG_TEXT]; /* the words below point into it */
    const char *app;        /* program and arguments of domain 0; NULL: /app or /init */
    const char *gen;        /* load generator in domain 1; NULL: none */
    const char *test;       /* handed to the program as WEIR_TEST */
    const char *env[APP_MAX_ENV]; /* "NAME=VALUE" */
    u32 num_env;

    const char *policy; /* NULL: the default */
    u64 interval_ms;    /* 0: the policy's own */
    u64 server_cpus;    /* CPUs of domain 0; 0: all */
    u64 migration_ns; /* a model's cost of caches: sched_config */
    u64 idle_spin_ns; /* IDLE_SPIN_AUTO: by the kind of CPU */
    u64 cpus; /* most CPUs to start */

    enum config_net net;
    u32 ip, mask, gateway; /* host byte order; CONFIG_NET_STATIC */
    u64 net_queues, net_instances;
    u64 wire_queues, wire_delay_ns, wire_loss_ppm, wire_seed;

    u64 http_port; /* 0: off */
    u64 http_write;
    const char *trace;   /* categories recorded from boot, for a panic; NULL: none */
    const char *profile; /* profile from boot to the end; NULL: none */
    u64 lock_stats;
    u64 log_level; /* enum log_level */

    struct config_word grant_words[CONFIG_GRANT_WORDS]; /* grant.KEY=VALUE, for grant_words.c */
    u32 num_grant_words;
    u64 grant_park;      /* run threads on the granted CPUs only */
    u64 grant_delivered; /* let what the host really gives weigh the CPUs; GRANT_DELIVERED_AUTO: unless emulated */
    bool grant_show_all; /* programs see all CPUs, not those granted */
};

/* Parses text (copied). False: why says what is wrong with which word, and what would be right. */
bool config_parse(struct config *c, const char *text, char why[CONFIG_ERROR]);

/* Splits a program's command line into words; '...' and "..." keep spaces. words point into buf. How many,
 * -E2BIG (more than max), -EINVAL (a quote without end). */
int config_split(const char *line, char *buf, size_t bytes, const char **words, int max);

#endif
