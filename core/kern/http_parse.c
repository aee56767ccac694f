/* HTTP/1 requests (RFC 9112), only what a monitoring port needs. Bounded by the caller's buffer, linear in its size. */
#include "core/base/string.h"
#include "core/kern/http_parse.h"

enum { MORE = 0, OK = 200, BAD = 400, NO_LENGTH = 411, TOO_LARGE = 413, LONG_TARGET = 414, MANY_HEADERS = 431, VERSION = 505 };

/* Length of the line without its end; *next: where the next one starts. -1: not complete. */
static i64 line_end(const char *data, size_t n, size_t *next)
{
    const char *newline = memchr(data, '\n', n);
    if (!newline) {
        return -1;
    }
    size_t len = (size_t)(newline - data);
    *next = len + 1;
    return (i64)(len > 0 && data[len - 1] == '\r' ? len - 1 : len);
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

/* Does the header line begin with this name, given in small letters with its colon? */
static bool is_header(const char *line, size_t n, const char *name)
{
    size_t len = strlen(name);
    if (n < len) {
        return false;
    }
    for (size_t i = 0; i < len; i++) {
        if (lower(line[i]) != name[i]) {
            return false;
        }
    }
    return true;
}

/* Value of a "content-length" header in [line, line + n): -1 if it is another one, -2 if it is no number. */
static i64 content_length(const char *line, size_t n)
{
    static const char name[] = "content-length:";
    size_t len = sizeof(name) - 1;
    u64 value;
    if (!is_header(line, n, name)) {
        return -1;
    }
    while (len < n && (line[len] == ' ' || line[len] == '\t')) {
        len++;
    }
    while (n > len && (line[n - 1] == ' ' || line[n - 1] == '\t')) {
        n--;
    }
    if (str_parse_u64(line + len, n - len, &value) < 0 || value > INT32_MAX) {
        return -2;
    }
    return (i64)value;
}

static int hex(char c)
{
    c = lower(c);
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes "%41" and "+" in place and ends the string. False: a malformed or NUL escape. */
static bool decode(char *s, size_t n)
{
    size_t out = 0;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            int high = i + 2 < n ? hex(s[i + 1]) : -1;
            int low = i + 2 < n ? hex(s[i + 2]) : -1;
            if (high < 0 || low < 0 || (high | low) == 0) {
                return false;
            }
            c = (char)(high << 4 | low);
            i += 2;
        }
        s[out++] = c;
    }
    s[out] = '\0';
    return true;
}

/* name=value&name=value; s has room for a NUL behind n. */
static bool add_params(struct http_request *out, char *s, size_t n)
{
    while (n > 0) {
        char *ampersand = memchr(s, '&', n);
        size_t len = ampersand ? (size_t)(ampersand - s) : n;
        char *equals = memchr(s, '=', len);
        size_t name_len = equals ? (size_t)(equals - s) : len;
        if (len > 0) {
            if (out->num_params == HTTP_MAX_PARAMS) {
                return false;
            }
            struct http_param *p = &out->params[out->num_params++];
            p->name = s;
            /* The value first: ending the name overwrites '='. */
            p->value = equals ? equals + 1 : "";
            if ((equals && !decode(equals + 1, len - name_len - 1)) || !decode(s, name_len)) {
                return false;
            }
        }
        s += MIN(len + 1, n);
        n -= MIN(len + 1, n);
    }
    return true;
}

static enum http_method method_of(const char *line, size_t n)
{
    static const char *const names[] = { "GET", "HEAD", "POST" };
    for (u32 i = 0; i < ARRAY_SIZE(names); i++) {
        if (strlen(names[i]) == n && memcmp(names[i], line, n) == 0) {
            return (enum http_method)i;
        }
    }
    return HTTP_OTHER;
}

/* "METHOD target HTTP/1.x": fills method and path; the query is left in *query. */
static int parse_request_line(char *line, size_t n, struct http_request *out, char **query,
                              size_t *query_len)
{
    char *first = memchr(line, ' ', n);
    size_t method_len = first ? (size_t)(first - line) : 0;
    if (method_len == 0 || method_len > 16) {
        return BAD;
    }
    char *target = first + 1;
    size_t left = n - method_len - 1;
    char *second = memchr(target, ' ', left);
    size_t target_len = second ? (size_t)(second - target) : 0;
    if (target_len == 0 || target[0] != '/') {
        return BAD;
    }
    size_t version_len = left - target_len - 1;
    if (version_len != 8 || memcmp(second + 1, "HTTP/1.", 7) != 0) {
        return version_len >= 5 && memcmp(second + 1, "HTTP/", 5) == 0 ? VERSION : BAD;
    }
    char *mark = memchr(target, '?', target_len);
    size_t path_len = mark ? (size_t)(mark - target) : target_len;
    if (path_len >= HTTP_MAX_PATH) {
        return LONG_TARGET;
    }
    out->chunks = second[8] != '0';
    out->method = method_of(line, method_len);
    memcpy(out->path, target, path_len);
    out->path[path_len] = '\0';
    *query = mark ? mark + 1 : NULL;
    *query_len = mark ? target_len - path_len - 1 : 0;
    return OK;
}

int http_parse(char *data, size_t n, size_t room, struct http_request *out)
{
    size_t at = 0, next;
    i64 body = 0, told = -1, len;
    char *query = NULL;
    size_t query_len = 0;
    memset(out, 0, sizeof(*out));
    i64 first = line_end(data, n, &at);
    if (first < 0) {
        return n >= room ? LONG_TARGET : MORE;
    }
    int status = parse_request_line(data, (size_t)first, out, &query, &query_len);
    if (status != OK) {
        return status;
    }
    while ((len = line_end(data + at, n - at, &next)) > 0) {
        i64 value = content_length(data + at, (size_t)len);
        if (value == -2 || (value >= 0 && told >= 0 && value != told)) {
            return BAD; /* no number, or two that differ: where the body ends is anybody's guess */
        }
        if (is_header(data + at, (size_t)len, "transfer-encoding:")) {
            return NO_LENGTH;
        }
        told = value >= 0 ? value : told;
        body = MAX(told, 0);
        at += next;
    }
    if (len < 0) {
        return n >= room ? MANY_HEADERS : MORE;
    }
    at += next;
    if ((size_t)body > room - at) {
        return TOO_LARGE;
    }
    if (n - at < (size_t)body) {
        return MORE;
    }
    out->length = at + (size_t)body;
    if (query && !add_params(out, query, query_len)) {
        return BAD;
    }
    if (out->method == HTTP_POST && !add_params(out, data + at, (size_t)body)) {
        return BAD;
    }
    return OK;
}
