/* Parameters of a page: what is allowed is a table, and a wrong one is answered by 400 with the range. */
#ifndef WEIR_CORE_KERN_OBS_QUERY_H
#define WEIR_CORE_KERN_OBS_QUERY_H

#include "core/kern/http_pages.h"

enum query_kind {
    QUERY_NUMBER, /* min..max */
    QUERY_MILLI,  /* seconds with up to three decimals; min, max and value in thousandths */
    QUERY_CHOICE, /* one of words: its index */
    QUERY_SET,    /* words with commas between them, or "all": a bit set */
};

struct query_param {
    const char *name;
    enum query_kind kind;
    u64 min, max;
    const char *const *words; /* ended by NULL */
    u64 *value;               /* holds the default; changed if the parameter is there */
};

/* False: a parameter is given twice, and out is the 400 that says which. */
bool query_unique(const struct http_request *request, struct http_answer *out);
/* False: out is the 400 that says what was expected. */
bool query_parse(const struct http_request *request, const struct query_param *params, u32 n, struct http_answer *out);
/* A set of words as in QUERY_SET; false: an unknown word. */
bool query_parse_set(const char *text, const char *const *words, u64 *out);
/* 409: somebody else uses what there is only once. */
void query_busy(struct http_answer *out, const char *what);

#endif
