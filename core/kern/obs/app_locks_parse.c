/* Published lock tables: their description and their histograms. Pure. */
#include "core/base/string.h"
#include "core/kern/obs/app_locks.h"

#define OFFSET_MAX (1ull << 20)

struct key {
    const char *name;
    size_t offset;
    u64 min, max;
};

#define KEY(field, low, high) { #field, offsetof(struct app_lock_table, field), low, high }

static const struct key keys[] = {
    KEY(at, APP_MIN, APP_MAX),         KEY(n, 1, APP_LOCKS_MAX),       KEY(stride, 8, OFFSET_MAX),
    KEY(ptr, 0, OFFSET_MAX),           KEY(acquired, 0, OFFSET_MAX),   KEY(contended, 0, OFFSET_MAX),
    KEY(wait, 0, OFFSET_MAX),          KEY(hold, 0, OFFSET_MAX),       KEY(buckets, 1, APP_LOCKS_BUCKETS),
    KEY(steps, 1, 8),
};
#define OPTIONAL_KEYS BIT(3) /* ptr */

static bool set_key(struct app_lock_table *t, const char *word, size_t n, u64 *seen)
{
    const char *equals = memchr(word, '=', n);
    u64 value;
    if (!equals || str_parse_u64(equals + 1, n - (size_t)(equals + 1 - word), &value) < 0) {
        return false;
    }
    for (u32 i = 0; i < ARRAY_SIZE(keys); i++) {
        size_t len = strlen(keys[i].name);
        if (len == (size_t)(equals - word) && memcmp(keys[i].name, word, len) == 0) {
            memcpy((char *)t + keys[i].offset, &value, sizeof(value));
            *seen |= BIT(i);
            return value >= keys[i].min && value <= keys[i].max;
        }
    }
    return false;
}

bool app_locks_parse(const char *line, struct app_lock_table *out)
{
    const char *space = strchr(line, ' ');
    size_t n = space ? (size_t)(space - line) : strlen(line);
    u64 seen = 0;
    if (n == 0 || n >= APP_LOCKS_NAME) {
        return false;
    }
    *out = (struct app_lock_table){ .ptr = UINT64_MAX };
    memcpy(out->name, line, n);
    for (size_t i = 0; i < n; i++) {
        if (line[i] <= ' ' || line[i] > '~' || line[i] == '"' || line[i] == '\\') {
            return false;
        }
    }
    while (space) {
        const char *word = space + 1;
        space = strchr(word, ' ');
        n = space ? (size_t)(space - word) : strlen(word);
        if (n > 0 && !set_key(out, word, n, &seen)) {
            return false;
        }
    }
    if (seen == 0) {
        return true; /* the name alone */
    }
    bool whole = (seen | OPTIONAL_KEYS) == BIT(ARRAY_SIZE(keys)) - 1;
    return whole && (out->steps & (out->steps - 1)) == 0 && out->n <= (APP_MAX - out->at) / out->stride;
}

/* Largest value of bucket i. */
static u64 bucket_top(u64 i, u64 steps)
{
    u32 shift = (u32)__builtin_ctzll(steps);
    if (i < steps) {
        return i;
    }
    u64 power = i / steps + shift - 1;
    return power >= 63 ? UINT64_MAX : ((steps + i % steps + 1) << (power - shift)) - 1;
}

u64 app_hist_quantile(const struct app_hist *h, u64 buckets, u64 steps, u32 permille)
{
    u64 total = 0, seen = 0;
    for (u64 i = 0; i < buckets; i++) {
        total += h->count[i];
    }
    u64 want = MAX((total * permille + 999) / 1000, 1ull);
    for (u64 i = 0; i < buckets && total; i++) {
        seen += h->count[i];
        if (seen >= want) {
            return MIN(bucket_top(i, steps), h->max);
        }
    }
    return h->max;
}

static void merge_hist(struct app_hist *into, const struct app_hist *add, u64 buckets)
{
    into->n += add->n;
    into->sum += add->sum;
    into->max = MAX(into->max, add->max);
    for (u64 i = 0; i < buckets; i++) {
        into->count[i] += add->count[i];
    }
}

void app_lock_merge(struct app_lock *into, const struct app_lock *add, u64 buckets)
{
    into->acquired += add->acquired;
    into->contended += add->contended;
    merge_hist(&into->wait, &add->wait, buckets);
    merge_hist(&into->hold, &add->hold, buckets);
}
