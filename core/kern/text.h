/* Growing text for views: /proc, /sys, HTTP bodies, console dumps. Thread context. */
#ifndef WEIR_CORE_KERN_TEXT_H
#define WEIR_CORE_KERN_TEXT_H

#include "core/base/param.h"
#include "core/base/types.h"

/* Conversions for printing with %lu (the constants are long long). */
#define TO_SEC(ns) ((u64)((ns) / NSEC_PER_SEC))
#define TO_USEC(ns) ((u64)((ns) / NSEC_PER_USEC))
#define SUB_SEC_NS(ns) ((u64)((ns) % NSEC_PER_SEC))
#define SUB_SEC_USEC(ns) ((u64)((ns) / NSEC_PER_USEC % 1000000))
#define PAGES_TO_BYTES(pages) ((u64)((pages) * PAGE_SIZE))
#define PAGES_TO_KIB(pages) ((u64)((pages) * PAGE_SIZE / 1024))

struct text {
    char *data; /* NUL-terminated when cap > 0 */
    size_t len, cap;
    bool failed; /* no memory or TEXT_MAX reached: what is there is cut */
};

static inline void text_init(struct text *t)
{
    *t = (struct text){ NULL, 0, 0, false };
}
void text_add(struct text *t, const char *fmt, ...) __printf(2, 3);
void text_append(struct text *t, const char *s, size_t n);
/* s as a JSON string with quotes. */
void text_json(struct text *t, const char *s);
void text_free(struct text *t);

#endif
