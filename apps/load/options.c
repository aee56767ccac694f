/* Parses options; see options.h. */
#include "apps/load/options.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct option_spec {
    const char *name;           /* --name, and LOAD_NAME in the environment */
    const char *value;          /* what it takes, for the help */
    bool (*parse)(struct options *o, const char *text);
    const char *help;
};

static bool number(const char *text, uint32_t least, uint32_t most, uint32_t *value)
{
    char *end;
    unsigned long long n;

    errno = 0;
    n = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (!isdigit((unsigned char)*text) || errno || *end || n < least || n > most) {
        return false;
    }
    *value = (uint32_t)n;
    return true;
}

static bool list(const char *text, uint32_t most, uint32_t *values, uint32_t *count)
{
    char item[16];

    for (*count = 0; *count < LOAD_MAX_STEPS;) {
        size_t bytes = strcspn(text, ",");

        if (bytes >= sizeof(item)) {
            return false;
        }
        memcpy(item, text, bytes);
        item[bytes] = '\0';
        if (!number(item, 1, most, &values[*count])) {
            return false;
        }
        ++*count;
        if (!text[bytes]) {
            return true;
        }
        text += bytes + 1;
    }
    return false;
}

static bool flag(const char *text, bool *value)
{
    *value = strcmp(text, "yes") == 0;
    return *value || strcmp(text, "no") == 0;
}

static bool parse_host(struct options *o, const char *t) { o->host = t; return *t; }
static bool parse_port(struct options *o, const char *t) { return number(t, 1, 65535, &o->port); }
static bool parse_threads(struct options *o, const char *t) { return number(t, 0, LOAD_MAX_THREADS, &o->threads); }
static bool parse_pipeline(struct options *o, const char *t) { return number(t, 1, LOAD_MAX_PIPELINE, &o->pipeline); }
static bool parse_keys(struct options *o, const char *t) { return number(t, 1, LOAD_MAX_KEYS, &o->keys); }
static bool parse_warmup(struct options *o, const char *t) { return number(t, 0, LOAD_MAX_TIME_MS, &o->warmup_ms); }
static bool parse_time(struct options *o, const char *t) { return number(t, 1, LOAD_MAX_TIME_MS, &o->time_ms); }
static bool parse_reps(struct options *o, const char *t) { return number(t, 1, 1000, &o->reps); }
static bool parse_churn(struct options *o, const char *t) { return number(t, 0, UINT32_MAX, &o->churn); }
static bool parse_slice(struct options *o, const char *t) { return number(t, 0, LOAD_MAX_TIME_MS, &o->slice_ms); }
static bool parse_ticks(struct options *o, const char *t) { return number(t, 0, LOAD_MAX_SLICES, &o->ticks); }
static bool parse_seed(struct options *o, const char *t) { return number(t, 0, UINT32_MAX, &o->seed); }
static bool parse_wait(struct options *o, const char *t) { return number(t, 0, LOAD_MAX_TIME_MS, &o->connect_wait_ms); }
static bool parse_local(struct options *o, const char *t) { return number(t, 0, 65535, &o->local_port); }
static bool parse_pin(struct options *o, const char *t) { return flag(t, &o->pin); }
static bool parse_preload(struct options *o, const char *t) { return flag(t, &o->preload); }

static bool parse_mark(struct options *o, const char *t) { o->mark = t; return *t; }

static bool parse_info(struct options *o, const char *t)
{
    o->info = t;
    return *t && strspn(t, "abcdefghijklmnopqrstuvwxyz") == strlen(t);
}

static bool parse_conns(struct options *o, const char *t)
{
    return list(t, LOAD_MAX_CONNS, o->conns, &o->conns_count);
}

static bool parse_rate(struct options *o, const char *t)
{
    return list(t, LOAD_MAX_RATE, o->rates, &o->rates_count);
}

static bool parse_proto(struct options *o, const char *t)
{
    o->proto = strcmp(t, "memcache") == 0 ? PROTO_MEMCACHE : PROTO_RESP;
    return o->proto == PROTO_MEMCACHE || strcmp(t, "resp") == 0;
}

static bool parse_skew(struct options *o, const char *t)
{
    char *end;

    if (strcmp(t, "uniform") == 0) {
        o->theta = 0;
        return true;
    }
    if (strcmp(t, "zipf") == 0) {
        o->theta = 0.99;        /* YCSB's usual exponent */
        return true;
    }
    if (strncmp(t, "zipf:", 5) != 0) {
        return false;
    }
    o->theta = strtod(t + 5, &end);
    return end != t + 5 && !*end && o->theta > 0 && o->theta <= 5;
}

static bool parse_gets(struct options *o, const char *t)
{
    return number(t, 0, 100, &o->get_percent);
}

static bool parse_value(struct options *o, const char *t)
{
    char first[16];
    size_t bytes = strcspn(t, "-");

    if (bytes >= sizeof(first)) {
        return false;
    }
    memcpy(first, t, bytes);
    first[bytes] = '\0';
    if (!number(first, 1, LOAD_MAX_VALUE, &o->value_min)) {
        return false;
    }
    if (!t[bytes]) {
        o->value_max = o->value_min;
        return true;
    }
    return number(t + bytes + 1, o->value_min, LOAD_MAX_VALUE, &o->value_max);
}

/* Names appear in JSON and in phase marks: no blanks, no quotes. */
static bool parse_name(struct options *o, const char *t)
{
    o->name = t;
    for (; *t; t++) {
        if (!isalnum((unsigned char)*t) && !strchr("-_.:=/", *t)) {
            return false;
        }
    }
    return t - o->name < 64;
}

static const struct option_spec specs[] = {
    {"host", "ADDRESS", parse_host, "IPv4 address of the server (10.1.0.1)"},
    {"port", "N", parse_port, "its port (6379 for resp, 11211 for memcache)"},
    {"proto", "resp|memcache", parse_proto, "protocol (resp)"},
    {"conns", "N[,N...]", parse_conns, "connections; one phase each (1)"},
    {"rate", "N[,N...]", parse_rate, "open loop: requests/s at intended times; a phase each (closed loop)"},
    {"threads", "N", parse_threads, "threads; 0: as CPUs allow (0)"},
    {"pipeline", "N", parse_pipeline, "requests in flight per connection (1)"},
    {"keys", "N", parse_keys, "size of the key space (10000)"},
    {"skew", "uniform|zipf[:THETA]", parse_skew, "popularity of keys (uniform)"},
    {"gets", "PERCENT", parse_gets, "share of gets, the rest are sets (90)"},
    {"value", "BYTES[-BYTES]", parse_value, "size of values (100)"},
    {"warmup-ms", "N", parse_warmup, "time before the measured time (100)"},
    {"time-ms", "N", parse_time, "measured time (1000)"},
    {"reps", "N", parse_reps, "repetitions of each phase (1)"},
    {"churn", "N", parse_churn, "requests after which a connection is replaced (0: never)"},
    {"slice-ms", "N", parse_slice, "width of the time series' slices (0: none)"},
    {"ticks", "N", parse_ticks, "parts of a phase that the machine counts apart, warm-up included (0)"},
    {"seed", "N", parse_seed, "seed of the random numbers (1)"},
    {"connect-wait-ms", "N", parse_wait, "how long the server may take to listen (10000)"},
    {"local-port", "N", parse_local, "first local port, so that receive steering repeats; 0: any (0)"},
    {"pin", "yes|no", parse_pin, "pin thread i to the i-th allowed CPU (yes)"},
    {"preload", "yes|no", parse_preload, "set every key once at first (yes)"},
    {"mark", "FILE", parse_mark, "where phases are marked, if it exists (/proc/weir/mark)"},
    {"info", "SECTION", parse_info, "resp: tell this section of INFO after each phase (none)"},
    {"name", "TEXT", parse_name, "prefix of the phases' names"},
};
#define SPECS (sizeof(specs) / sizeof(specs[0]))

static void print_help(void)
{
    printf("usage: load [--OPTION VALUE]...   (or LOAD_OPTION=VALUE in the environment)\n"
           "Loads a key-value server and prints one JSON line per phase.\n");
    for (size_t i = 0; i < SPECS; i++) {
        printf("  --%-16s %-20s %s\n", specs[i].name, specs[i].value, specs[i].help);
    }
}

static bool apply(struct options *o, const struct option_spec *spec, const char *from,
                  const char *text)
{
    if (spec->parse(o, text)) {
        return true;
    }
    fprintf(stderr, "load: %s %s: not a %s in range\n", from, text, spec->value);
    return false;
}

static bool apply_environment(struct options *o)
{
    for (size_t i = 0; i < SPECS; i++) {
        char name[40] = "LOAD_";
        const char *text;
        size_t n = strlen(name);

        for (const char *c = specs[i].name; *c; c++) {
            name[n++] = *c == '-' ? '_' : (char)toupper((unsigned char)*c);
        }
        name[n] = '\0';
        text = getenv(name);
        if (text && !apply(o, &specs[i], name, text)) {
            return false;
        }
    }
    return true;
}

static bool apply_argument(struct options *o, const char *word, const char *text)
{
    for (size_t i = 0; i < SPECS; i++) {
        if (strncmp(word, "--", 2) == 0 && strcmp(word + 2, specs[i].name) == 0) {
            if (!text) {
                fprintf(stderr, "load: %s needs a value: %s\n", word, specs[i].value);
                return false;
            }
            return apply(o, &specs[i], word, text);
        }
    }
    fprintf(stderr, "load: unknown option %s (--help lists them)\n", word);
    return false;
}

static bool check(const struct options *o)
{
    if (o->info && o->proto != PROTO_RESP) {
        fprintf(stderr, "load: --info is for --proto resp\n");
        return false;
    }
    if (o->rates_count && o->churn) {
        fprintf(stderr, "load: --churn is for a closed loop, not with --rate\n");
        return false;
    }
    return true;
}

bool options_parse(struct options *o, int argc, char **argv, bool *help)
{
    memset(o, 0, sizeof(*o));
    o->host = "10.1.0.1";
    o->conns[0] = 1;
    o->conns_count = 1;
    o->pipeline = 1;
    o->keys = 10000;
    o->get_percent = 90;
    o->value_min = o->value_max = 100;
    o->warmup_ms = 100;
    o->time_ms = 1000;
    o->reps = 1;
    o->seed = 1;
    o->connect_wait_ms = LOAD_CONNECT_WAIT_MS;
    o->pin = o->preload = true;
    o->mark = "/proc/weir/mark";
    o->name = "";
    *help = false;
    if (!apply_environment(o)) {
        return false;
    }
    for (int i = 1; i < argc; i += 2) {
        if (strcmp(argv[i], "--help") == 0) {
            *help = true;
            print_help();
            return false;
        }
        if (!apply_argument(o, argv[i], argv[i + 1])) {
            return false;
        }
    }
    if (!o->port) {
        o->port = o->proto == PROTO_RESP ? 6379 : 11211;
    }
    return check(o);
}
