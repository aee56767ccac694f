/* The command line. */
#include "core/base/errno.h"
#include "core/base/param.h"
#include "core/base/string.h"
#include "core/kern/config.h"
#include "core/kern/grant_words.h"

struct number_key {
    const char *key;
    size_t offset;
    u64 min, max;
};

#define NUMBER(name, field, low, high) { name, offsetof(struct config, field), low, high }

static const struct number_key number_keys[] = {
    NUMBER("sched.interval_ms", interval_ms, 1, 10000),
    NUMBER("domain.server", server_cpus, 1, MAX_CPUS),
    NUMBER("sched.idle_spin_ns", idle_spin_ns, 0, 10000000),
    NUMBER("sched.migration_ns", migration_ns, 0, 1000000),
    NUMBER("cpus", cpus, 1, MAX_CPUS),
    NUMBER("net.queues", net_queues, 1, MAX_CPUS),
    NUMBER("net.instances", net_instances, 1, MAX_CPUS),
    NUMBER("wire.queues", wire_queues, 1, MAX_CPUS),
    NUMBER("wire.delay_ns", wire_delay_ns, 0, 1000000000),
    NUMBER("wire.loss_ppm", wire_loss_ppm, 0, 1000000),
    NUMBER("wire.seed", wire_seed, 0, UINT64_MAX),
    NUMBER("http", http_port, 1, 65535),
    NUMBER("locks", lock_stats, 0, 1),
    NUMBER("http.write", http_write, 0, 1),
    NUMBER("grant.park", grant_park, 0, 1),
    NUMBER("grant.delivered", grant_delivered, 0, 1),
};

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static const char *const net_names[] = { "dhcp", "static", "none", "wire" };

static bool set_number(struct config *c, const struct number_key *k, const char *value, char *why)
{
    u64 result;
    if (str_parse_u64(value, strlen(value), &result) < 0 || result < k->min || result > k->max) {
        str_format(why, CONFIG_ERROR, "%s=%s: a number from %lu to %lu is wanted", k->key, value,
                   k->min, k->max);
        return false;
    }
    memcpy((char *)c + k->offset, &result, sizeof(result));
    return true;
}

static void ignore_note(const char *line, void *arg)
{
    (void)line;
    (void)arg;
}

static int choose(const char *value, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(value, names[i]) == 0) {
            return (int)i;
        }
    }
    return -1;
}

static bool parse_ipv4(const char *s, size_t n, u32 *out)
{
    u32 result = 0;
    for (u32 part = 0; part < 4; part++) {
        size_t len = 0;
        u64 value;
        while (len < n && s[len] != '.') {
            len++;
        }
        if (str_parse_u64(s, len, &value) < 0 || value > 255 || (part < 3) != (len < n)) {
            return false;
        }
        result = result << 8 | (u32)value;
        s += len + 1;
        n -= MIN(n, len + 1);
    }
    *out = result;
    return true;
}

/* A.B.C.D/BITS[,gw=A.B.C.D] */
static bool set_ip(struct config *c, const char *value, char *why)
{
    const char *slash = strchr(value, '/');
    const char *comma = strchr(value, ',');
    size_t end = comma ? (size_t)(comma - value) : strlen(value);
    u64 bits = 0;
    bool good = slash && (size_t)(slash - value) < end &&
                parse_ipv4(value, (size_t)(slash - value), &c->ip) &&
                str_parse_u64(slash + 1, end - (size_t)(slash + 1 - value), &bits) == 0 && bits >= 1 &&
                bits <= 32;
    if (good && comma) {
        good = str_starts_with(comma, ",gw=") && parse_ipv4(comma + 4, strlen(comma + 4), &c->gateway);
    }
    if (!good) {
        str_format(why, CONFIG_ERROR, "ip=%s: ADDRESS/1..32[,gw=ADDRESS] is wanted", value);
        return false;
    }
    c->mask = (u32)(0xffffffffull << (32 - bits));
    return true;
}

static bool set_choice(struct config *c, const char *key, const char *value, char *why)
{
    bool is_log = strcmp(key, "log") == 0;
    int choice = is_log ? choose(value, level_names, ARRAY_SIZE(level_names))
                        : choose(value, net_names, ARRAY_SIZE(net_names));
    if (choice < 0) {
        str_format(why, CONFIG_ERROR, "%s=%s: one of %s is wanted", key, value,
                   is_log ? "error, warn, info, debug" : "dhcp, static, none, wire");
        return false;
    }
    if (is_log) {
        c->log_level = (u64)choice;
    } else {
        c->net = (enum config_net)choice;
    }
    return true;
}

static bool set_env(struct config *c, const char *assignment, char *why)
{
    if (assignment[0] == '\0' || assignment[0] == '=') {
        str_format(why, CONFIG_ERROR, "env.%s: env.NAME=VALUE is wanted", assignment);
        return false;
    }
    if (c->num_env == APP_MAX_ENV - 2) {
        str_format(why, CONFIG_ERROR, "env.%s: more than %d variables", assignment, APP_MAX_ENV - 2);
        return false;
    }
    c->env[c->num_env++] = assignment;
    return true;
}

/* Words of the grant are only collected: a bad one is answered with a safe choice, not with a refusal (grant_words.c). */
static bool set_grant(struct config *c, const char *key, const char *value, char *why)
{
    static const char *const shows[] = { "granted", "all" };
    struct grant_words probe = { 0 };
    struct grant_notes quiet = { ignore_note, NULL, 0 };
    if (strcmp(key, "show") == 0) {
        int choice = choose(value, shows, ARRAY_SIZE(shows));
        if (choice < 0) {
            str_format(why, CONFIG_ERROR, "grant.show=%s: granted or all is wanted", value);
            return false;
        }
        c->grant_show_all = choice == 1;
        return true;
    }
    if (!grant_word(&probe, key, value, &quiet)) {
        str_format(why, CONFIG_ERROR,
                   "unknown key grant.%s (known: grant.cpus quota_us period_us memory memory_high memory_low park show delivered)",
                   key);
        return false;
    }
    if (c->num_grant_words == CONFIG_GRANT_WORDS) {
        str_format(why, CONFIG_ERROR, "grant.%s: more than %d words of a grant", key, CONFIG_GRANT_WORDS);
        return false;
    }
    c->grant_words[c->num_grant_words++] = (struct config_word){ key, value };
    return true;
}

static bool set_key(struct config *c, char *key, char *value, char *why)
{
    const struct {
        const char *key;
        const char **field;
    } strings[] = { { "app", &c->app }, { "gen", &c->gen }, { "test", &c->test },
                    { "sched.policy", &c->policy }, { "trace", &c->trace },
                    { "profile", &c->profile } };
    for (size_t i = 0; i < ARRAY_SIZE(strings); i++) {
        if (strcmp(key, strings[i].key) == 0) {
            *strings[i].field = value;
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_SIZE(number_keys); i++) {
        if (strcmp(key, number_keys[i].key) == 0) {
            return set_number(c, &number_keys[i], value, why);
        }
    }
    if (str_starts_with(key, "grant.")) {
        return set_grant(c, key + strlen("grant."), value, why);
    }
    if (strcmp(key, "ip") == 0) {
        return set_ip(c, value, why);
    }
    if (strcmp(key, "log") == 0 || strcmp(key, "net") == 0) {
        return set_choice(c, key, value, why);
    }
    str_format(why, CONFIG_ERROR,
               "unknown key %s (known: app gen test env.NAME log locks trace profile cpus http http.write net ip net.* "
               "wire.* domain.server sched.* grant.*)",
               key);
    return false;
}

/* Cuts the next word off *rest, its quotes removed. NULL: the end; *bad: a quote without end. */
static char *next_word(char **rest, bool *bad)
{
    char *in = *rest;
    while (*in == ' ' || *in == '\t' || *in == '\n' || *in == '\r') {
        in++;
    }
    if (*in == '\0') {
        return NULL;
    }
    char *word = in, *out = in, quote = 0;
    for (; *in && (quote || (*in != ' ' && *in != '\t' && *in != '\n' && *in != '\r')); in++) {
        if (*in == quote) {
            quote = 0;
        } else if (!quote && *in == '"') {
            quote = *in;
        } else {
            *out++ = *in;
        }
    }
    *bad = quote != 0;
    *rest = *in ? in + 1 : in;
    *out = '\0';
    return word;
}

static bool set_word(struct config *c, char *word, char *why)
{
    char *equals = strchr(word, '=');
    if (!equals) {
        str_format(why, CONFIG_ERROR, "%s: key=value is wanted", word);
        return false;
    }
    if (str_starts_with(word, "env.")) {
        return set_env(c, word + 4, why);
    }
    *equals = '\0';
    return set_key(c, word, equals + 1, why);
}

/* What only makes sense together. */
static bool check(struct config *c, char *why)
{
    if (c->net == CONFIG_NET_STATIC && c->mask == 0) {
        str_copy(why, "net=static: ip=ADDRESS/BITS is wanted too", CONFIG_ERROR);
        return false;
    }
    if (c->gen && c->server_cpus == 0) {
        str_copy(why, "gen=: domain.server=N is wanted too (the generator runs on the other CPUs)",
                 CONFIG_ERROR);
        return false;
    }
    return true;
}

bool config_parse(struct config *c, const char *text, char why[CONFIG_ERROR])
{
    memset(c, 0, sizeof(*c));
    c->cpus = MAX_CPUS;
    c->log_level = 2;
    c->idle_spin_ns = IDLE_SPIN_AUTO;
    c->grant_park = 1;
    c->grant_delivered = GRANT_DELIVERED_AUTO;
    c->wire_seed = 1;
    bool ip_given = false, net_given = false, bad = false;
    if (!str_copy(c->text, text, sizeof(c->text))) {
        str_format(why, CONFIG_ERROR, "the command line is longer than %d bytes", CONFIG_TEXT - 1);
        return false;
    }
    char *rest = c->text, *word;
    while ((word = next_word(&rest, &bad)) != NULL) {
        if (bad) {
            str_format(why, CONFIG_ERROR, "%s: a quote without end", word);
            return false;
        }
        ip_given |= str_starts_with(word, "ip=");
        net_given |= str_starts_with(word, "net=");
        if (!set_word(c, word, why)) {
            return false;
        }
    }
    if (ip_given && !net_given) {
        c->net = CONFIG_NET_STATIC;
    }
    return check(c, why);
}

int config_split(const char *line, char *buf, size_t bytes, const char **words, int max)
{
    size_t used = 0;
    int n = 0;
    while (true) {
        while (*line == ' ' || *line == '\t') {
            line++;
        }
        if (*line == '\0') {
            return n;
        }
        if (n == max) {
            return -E2BIG;
        }
        words[n++] = buf + used;
        char quote = 0;
        for (; *line && (quote || (*line != ' ' && *line != '\t')); line++) {
            if (*line == quote) {
                quote = 0;
            } else if (!quote && (*line == '"' || *line == '\'')) {
                quote = *line;
            } else if (used + 2 > bytes) {
                return -E2BIG;
            } else {
                buf[used++] = *line;
            }
        }
        if (quote) {
            return -EINVAL;
        }
        if (used + 1 > bytes) {
            return -E2BIG;
        }
        buf[used++] = '\0';
    }
}
