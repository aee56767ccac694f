/* What the HTTP port answers. */
#ifndef WEIR_CORE_KERN_HTTP_PAGES_H
#define WEIR_CORE_KERN_HTTP_PAGES_H

#include "core/kern/http_parse.h"
#include "core/kern/obs/out.h"
#include "core/kern/text.h"

struct http_answer {
    int status;
    const char *type; /* content type */
    struct text body;
    /* Set: the body is made by this while it is sent, in chunks. Called once in any case; out NULL: only to let go of what it
     * holds. */
    void (*stream)(struct http_answer *a, struct out *out);
    void *stream_arg;
    u64 stream_ns; /* time that it may take */
};

/* Thread context, may block. writable: may requests change anything? */
void http_answer(const struct http_request *request, bool writable, struct http_answer *out);
/* A page for a request that could not be parsed. */
void http_answer_error(int status, struct http_answer *out);
const char *http_status_text(int status);

#endif
