/* HTTP requests: the little that the port needs. Pure. */
#ifndef WEIR_CORE_KERN_HTTP_PARSE_H
#define WEIR_CORE_KERN_HTTP_PARSE_H

#include "core/base/types.h"

#define HTTP_MAX_PATH 64
#define HTTP_MAX_PARAMS 8

struct http_param {
    const char *name, *value; /* decoded; point into the request's storage */
};

struct http_request {
    enum http_method { HTTP_GET, HTTP_HEAD, HTTP_POST, HTTP_OTHER } method;
    bool chunks; /* HTTP/1.1: understands a body in chunks */
    char path[HTTP_MAX_PATH];
    struct http_param params[HTTP_MAX_PARAMS]; /* of the query, then of a POST's body */
    u32 num_params;
    size_t length; /* bytes of the whole request */
};

/* Looks at the n bytes received so far; data is changed (decoded in place) only when the request is complete. room: how
 * many bytes can be received at most. 0: more is needed; 200: complete, *out filled; else the status to answer with (400,
 * 413, 414, 431, 505). */
int http_parse(char *data, size_t n, size_t room, struct http_request *out);

#endif
