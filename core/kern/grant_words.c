/* See grant_words.h. */
#include <stdarg.h>

#include "core/base/string.h"
#include "core/kern/grant_words.h"

#define MILLI 1000ull
#define CPUS_MAX 100000ull /* beyond any machine */
#define BYTES_MAX (1ull << 46)
#define KEY_BYTES 32
#define VALUE_BYTES 64

static void note(struct grant_notes *n, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void note(struct grant_notes *n, const char *format, ...)
{
    char line[GRANT_LINE];
    va_list args;
    va_start(args, format);
    str_vformat(line, sizeof(line), format, args);
    va_end(args);
    n->count++;
    n->say(line, n->arg);
}

/* "1.5" as 1500; more than three decimals are cut off upwards, so that 0.0001 is not nothing. */
static bool parse_milli(const char *s, u64 *out)
{
    const char *dot = strchr(s, '.');
    size_t whole = dot ? (size_t)(dot - s) : strlen(s);
    u64 value = 0, part = 0;
    if (str_parse_u64(s, whole, &value) < 0 || value > CPUS_MAX) {
        return false;
    }
    if (dot) {
        u32 digits = 0;
        bool more = false;
        for (const char *d = dot + 1; *d; d++) {
            if (*d < '0' || *d > '9') {
                return false;
            }
            if (digits < 3) {
                part = part * 10 + (u64)(*d - '0');
                digits++;
            } else {
                more |= *d != '0';
            }
        }
        if (digits == 0) {
            return false;
        }
        for (; digits < 3; digits++) {
            part *= 10;
        }
        part += more;
    }
    *out = value * MILLI + part;
    return true;
}

static bool parse_bytes(const char *s, u64 *out)
{
    static const char units[] = "KMG";
    size_t n = strlen(s);
    u64 unit = 1, value;
    for (u32 i = 0; n > 1 && units[i]; i++) {
        if (s[n - 1] == units[i] || s[n - 1] == units[i] + ('a' - 'A')) {
            unit = 1ull << (10 * (i + 1));
            n--;
            break;
        }
    }
    if (str_parse_u64(s, n, &value) < 0 || value > BYTES_MAX / unit) {
        return false;
    }
    *out = value * unit;
    return true;
}

struct word_key {
    const char *key;
    size_t offset;
    bool (*parse)(const char *s, u64 *out);
    const char *want;
};

static bool parse_number(const char *s, u64 *out)
{
    return str_parse_u64(s, strlen(s), out) == 0 && *out < GRANT_UNLIMITED / MILLI / MILLI;
}

#define WORD(name, field, parse, want) { name, offsetof(struct grant_words, field), parse, want }

static const struct word_key word_keys[] = {
    WORD("cpus", milli_cpus, parse_milli, "a number of CPUs such as 1.5, or max"),
    WORD("quota_us", quota_us, parse_number, "microseconds in each period, or max"),
    WORD("period_us", period_us, parse_number, "microseconds from 1000 to 1000000"),
    WORD("memory", memory, parse_bytes, "bytes such as 512M, or max"),
    WORD("memory_high", memory_high, parse_bytes, "bytes such as 512M, or max"),
    WORD("memory_low", memory_low, parse_bytes, "bytes such as 512M"),
};

bool grant_word(struct grant_words *w, const char *key, const char *value, struct grant_notes *n)
{
    for (size_t i = 0; i < ARRAY_SIZE(word_keys); i++) {
        const struct word_key *k = &word_keys[i];
        if (strcmp(k->key, key) != 0) {
            continue;
        }
        u64 number = GRANT_UNLIMITED;
        bool period = k->offset == offsetof(struct grant_words, period_us);
        bool low = k->offset == offsetof(struct grant_words, memory_low);
        bool good = (strcmp(value, "max") == 0 && !period && !low) || k->parse(value, &number);
        if (!good) {
            note(n, "grant.%s=%.40s is not %s: ignored", key, value, k->want);
        } else if (period && (number < GRANT_PERIOD_MIN_US || number > GRANT_PERIOD_MAX_US)) {
            note(n, "grant.period_us=%lu is not from %llu to %llu: %llu is used", number, GRANT_PERIOD_MIN_US,
                 GRANT_PERIOD_MAX_US, GRANT_PERIOD_US);
            w->period_us = GRANT_PERIOD_US;
        } else if (number == 0 && !low) {
            note(n, "grant.%s=0 would grant nothing at all: ignored", key);
        } else {
            memcpy((char *)w + k->offset, &number, sizeof(number));
        }
        return true;
    }
    return false;
}

void grant_text(struct grant_words *w, const char *text, const char *source, struct grant_notes *n)
{
    while (*text) {
        size_t len = 0, equals = 0;
        while (text[len] && text[len] != ' ' && text[len] != '\n' && text[len] != '\t') {
            if (text[len] == '=' && !equals) {
                equals = len;
            }
            len++;
        }
        char key[KEY_BYTES] = "", value[VALUE_BYTES] = "";
        if (len && equals && equals < sizeof(key) && len - equals <= sizeof(value)) {
            memcpy(key, text, equals);
            key[equals] = '\0';
            memcpy(value, text + equals + 1, len - equals - 1);
            value[len - equals - 1] = '\0';
        }
        if (len && !grant_word(w, key, value, n)) {
            note(n, "%s: '%.*s' is no word of a grant: ignored", source, (int)MIN(len, (size_t)40), text);
        }
        text += len + (text[len] != '\0');
    }
}

/* One source's quota, GRANT_UNLIMITED in quota_us for "no limit", 0 for "says nothing". */
static struct grant_limits own_quota(const struct grant_words *w, const char *who, struct grant_notes *n)
{
    struct grant_limits g = { .quota_us = w->quota_us, .period_us = w->period_us ? w->period_us : GRANT_PERIOD_US };
    if (w->milli_cpus == GRANT_UNLIMITED) {
        g.quota_us = g.quota_us ? g.quota_us : GRANT_UNLIMITED;
    } else if (w->milli_cpus) {
        u64 by_cpus = (w->milli_cpus * g.period_us + MILLI - 1) / MILLI;
        if (w->quota_us && w->quota_us != by_cpus) {
            note(n, "%s: cpus says %lu us in %lu us, quota_us another figure: the smaller is used", who, by_cpus, g.period_us);
        }
        g.quota_us = w->quota_us ? MIN(w->quota_us, by_cpus) : by_cpus;
    }
    u64 least = MAX((u64)GRANT_QUOTA_MIN_US, (g.period_us * GRANT_LEAST_PERCENT + 99) / 100);
    if (g.quota_us && g.quota_us < least) {
        note(n, "%s: a quota of %lu us in %lu us is below %llu%% of a CPU or 1 ms: %lu us is used", who, g.quota_us, g.period_us,
             GRANT_LEAST_PERCENT, least);
        g.quota_us = least;
    }
    return g;
}

static u64 tighter(u64 host, u64 own, const char *key, struct grant_notes *n)
{
    if (own == 0 || own == GRANT_UNLIMITED) {
        if (own == GRANT_UNLIMITED && host && host != GRANT_UNLIMITED) {
            note(n, "grant.%s=max is more than the %lu that the host grants: the host's figure is used", key, host);
        }
        return host;
    }
    if (host && own > host) {
        note(n, "grant.%s=%lu is more than the %lu that the host grants: the host's figure is used", key, own, host);
        return host;
    }
    return own;
}

static u64 or_none(u64 limit)
{
    return limit == GRANT_UNLIMITED ? 0 : limit;
}

void grant_resolve(const struct grant_words *host, const struct grant_words *own, struct grant_limits *out,
                   struct grant_notes *n)
{
    struct grant_limits h = own_quota(host, "the host's grant", n), o = own_quota(own, "grant.*", n);
    bool h_limits = h.quota_us && h.quota_us != GRANT_UNLIMITED;
    bool o_limits = o.quota_us && o.quota_us != GRANT_UNLIMITED;
    *out = h;
    if (h_limits && o_limits && (unsigned __int128)o.quota_us * h.period_us > (unsigned __int128)h.quota_us * o.period_us) {
        note(n, "grant.*: %lu us in %lu us is more than the host's %lu us in %lu us: the host's figure is used", o.quota_us,
             o.period_us, h.quota_us, h.period_us);
    } else if (h_limits && o.quota_us == GRANT_UNLIMITED) {
        note(n, "grant.*: max is more than the host's %lu us in %lu us: the host's figure is used", h.quota_us, h.period_us);
    } else if (o_limits || !h_limits) {
        *out = o;
    }
    out->quota_us = or_none(out->quota_us);
    out->memory = or_none(tighter(host->memory, own->memory, "memory", n));
    out->memory_high = or_none(tighter(host->memory_high, own->memory_high, "memory_high", n));
    out->memory_low = own->memory_low;
    if (out->memory && out->memory_high > out->memory) {
        note(n, "grant.memory_high=%lu is above grant.memory=%lu: left out", out->memory_high, out->memory);
        out->memory_high = 0;
    }
    u64 ceiling = out->memory_high ? out->memory_high : out->memory;
    if (ceiling && out->memory_low > ceiling) {
        note(n, "grant.memory_low=%lu is above the %lu granted: left out", out->memory_low, ceiling);
        out->memory_low = 0;
    }
}

u32 grant_whole_cpus(const struct grant_limits *g, u32 cpus)
{
    if (!g->quota_us) {
        return cpus;
    }
    u64 whole = (g->quota_us + g->period_us - 1) / g->period_us;
    return (u32)MAX(1ull, MIN((u64)cpus, whole));
}
