/* The grant as words: what the host and the command line say, and what follows from both.  Pure (grant_words.c): host tests
 * run it.
 *
 * Nothing here refuses to go on.  What cannot be understood or contradicts itself gives one line, a safe choice (never more than
 * anybody grants), and counts. */
#ifndef WEIR_CORE_KERN_GRANT_WORDS_H
#define WEIR_CORE_KERN_GRANT_WORDS_H

#include "core/base/types.h"

#define GRANT_UNLIMITED UINT64_MAX /* "max" */
#define GRANT_PERIOD_US 100000ull  /* Linux's default period */
#define GRANT_PERIOD_MIN_US 1000ull
#define GRANT_PERIOD_MAX_US 1000000ull
#define GRANT_QUOTA_MIN_US 1000ull /* as Linux has it */
#define GRANT_LEAST_PERCENT 1ull   /* of one CPU: with less nothing would ever end */
#define GRANT_LINE 200

/* One source's words; 0: not given. */
struct grant_words {
    u64 milli_cpus; /* cpus=1.5 -> 1500 */
    u64 quota_us, period_us;
    u64 memory, memory_high, memory_low; /* bytes */
};

/* What holds; 0: none. */
struct grant_limits {
    u64 quota_us, period_us; /* period_us is never 0 */
    u64 memory, memory_high, memory_low;
};

/* Receives each complaint. */
struct grant_notes {
    void (*say)(const char *line, void *arg);
    void *arg;
    u32 count;
};

/* Takes key=value over: cpus, quota_us, period_us, memory, memory_high, memory_low; value "max" for no limit.  A bad value is
 * noted and leaves the word as it was.  False: no such key. */
bool grant_word(struct grant_words *w, const char *key, const char *value, struct grant_notes *n);
/* Takes a text of such words, separated by white space. source: for the lines. */
void grant_text(struct grant_words *w, const char *text, const char *source, struct grant_notes *n);
/* The command line may lower what the host grants, never raise it. */
void grant_resolve(const struct grant_words *host, const struct grant_words *own, struct grant_limits *out,
                   struct grant_notes *n);
/* quota / period rounded up, at least 1, at most cpus; cpus if there is no quota. */
u32 grant_whole_cpus(const struct grant_limits *g, u32 cpus);

#endif
