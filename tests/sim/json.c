#include "tests/sim/json.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FILE (256u << 20)
#define MAX_DEPTH 64u

struct reader {
    const char *path;
    char *text;
    const char *at;
    uint32_t line;
    uint32_t depth;
    char *error;
    size_t error_size;
    bool failed;
};

static void fail(struct reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fail(struct reader *r, const char *fmt, ...)
{
    va_list args;
    int used;

    if (r->failed) {
        return;
    }
    r->failed = true;
    used = snprintf(r->error, r->error_size, "%s:%u: ", r->path, r->line);
    if (used < 0 || (size_t)used >= r->error_size) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(r->error + used, r->error_size - (size_t)used, fmt, args);
    va_end(args);
}

static void skip_comment(struct reader *r)
{
    if (r->at[1] == '/') {
        while (*r->at != '\0' && *r->at != '\n') {
            r->at++;
        }
        return;
    }
    r->at += 2;
    while (*r->at != '\0' && !(r->at[0] == '*' && r->at[1] == '/')) {
        r->line += *r->at++ == '\n';
    }
    if (*r->at == '\0') {
        fail(r, "comment without an end");
        return;
    }
    r->at += 2;
}

static void skip_space(struct reader *r)
{
    while (!r->failed) {
        if (*r->at == '\n') {
            r->line++;
            r->at++;
        } else if (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') {
            r->at++;
        } else if (r->at[0] == '/' && (r->at[1] == '/' || r->at[1] == '*')) {
            skip_comment(r);
        } else {
            return;
        }
    }
}

/* One code point as UTF-8 (surrogate halves as they come: names and numbers do not need them). */
static size_t put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3f));
    out[2] = (char)(0x80 | (code & 0x3f));
    return 3;
}

static size_t read_escape(struct reader *r, char *out)
{
    static const char from[] = "\"\\/bfnrt";
    static const char to[] = "\"\\/\b\f\n\r\t";
    const char *p = *r->at != '\0' ? strchr(from, *r->at) : NULL;
    unsigned code = 0;

    if (p != NULL) {
        r->at++;
        *out = to[p - from];
        return 1;
    }
    if (*r->at++ != 'u') {
        fail(r, "unknown escape in a string");
        return 0;
    }
    for (int i = 0; i < 4; i++) {
        char c = *r->at;
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A' + 10)
                                                : 16u;
        if (digit > 15) {
            fail(r, "\\u wants four hexadecimal digits");
            return 0;
        }
        code = code * 16 + digit;
        r->at++;
    }
    return put_utf8(out, code);
}

static char *read_string(struct reader *r)
{
    const char *end = ++r->at;
    size_t used = 0;
    char *out;

    while (*end != '"' && *end != '\0' && *end != '\n') {
        end += *end == '\\' && end[1] != '\0' ? 2 : 1;
    }
    if (*end != '"') {
        fail(r, "string without an end");
        return NULL;
    }
    out = malloc((size_t)(end - r->at) + 4); /* an escape is never shorter than what it stands for */
    if (out == NULL) {
        fail(r, "out of memory");
        return NULL;
    }
    while (r->at < end && !r->failed) {
        if (*r->at == '\\') {
            r->at++;
            used += read_escape(r, out + used);
        } else {
            out[used++] = *r->at++;
        }
    }
    out[used] = '\0';
    r->at = end + 1;
    return out;
}

static struct json *read_value(struct reader *r);

static void read_members(struct reader *r, struct json *j, char close)
{
    struct json **tail = &j->first;

    r->at++;
    skip_space(r);
    if (*r->at == close) {
        r->at++;
        return;
    }
    while (!r->failed) {
        char *key = NULL;

        skip_space(r);
        if (close == '}') {
            if (*r->at != '"') {
                fail(r, "want a name in double quotes");
                return;
            }
            key = read_string(r);
            skip_space(r);
            if (!r->failed && *r->at++ != ':') {
                fail(r, "want ':' after \"%s\"", key);
            }
        }
        if (r->failed) {
            free(key);
            return;
        }
        *tail = read_value(r);
        if (*tail == NULL) {
            free(key);
            return;
        }
        (*tail)->key = key;
        tail = &(*tail)->next;
        skip_space(r);
        if (*r->at == close) {
            r->at++;
            return;
        }
        if (*r->at++ != ',') {
            fail(r, "want ',' or '%c'", close);
        }
    }
}

static void read_number(struct reader *r, struct json *j)
{
    char *end;

    j->type = JSON_NUMBER;
    j->number = strtod(r->at, &end);
    if (end == r->at || (*r->at != '-' && (*r->at < '0' || *r->at > '9')) || j->number != j->number) {
        fail(r, "want a value");
        return;
    }
    r->at = end;
}

static struct json *read_value(struct reader *r)
{
    struct json *j = calloc(1, sizeof(*j));

    skip_space(r);
    if (j == NULL) {
        fail(r, "out of memory");
        return NULL;
    }
    j->line = r->line;
    if (++r->depth > MAX_DEPTH) {
        fail(r, "nested deeper than %u", MAX_DEPTH);
    } else if (*r->at == '{' || *r->at == '[') {
        j->type = *r->at == '{' ? JSON_OBJECT : JSON_ARRAY;
        read_members(r, j, *r->at == '{' ? '}' : ']');
    } else if (*r->at == '"') {
        j->type = JSON_STRING;
        j->string = read_string(r);
    } else if (strncmp(r->at, "true", 4) == 0 || strncmp(r->at, "false", 5) == 0) {
        j->type = JSON_BOOL;
        j->number = *r->at == 't';
        r->at += *r->at == 't' ? 4 : 5;
    } else if (strncmp(r->at, "null", 4) == 0) {
        r->at += 4;
    } else {
        read_number(r, j);
    }
    r->depth--;
    if (r->failed) {
        json_free(j);
        return NULL;
    }
    return j;
}

static char *read_file(struct reader *r)
{
    FILE *f = fopen(r->path, "rb");
    char *text = NULL;
    long size;

    if (f == NULL) {
        snprintf(r->error, r->error_size, "%s: %s", r->path, strerror(errno));
        return NULL;
    }
    if (fseek(f, 0, SEEK_END) != 0 || (size = ftell(f)) < 0 || fseek(f, 0, SEEK_SET) != 0) {
        snprintf(r->error, r->error_size, "%s: not a file that can be read twice", r->path);
    } else if ((unsigned long)size > MAX_FILE) {
        snprintf(r->error, r->error_size, "%s: larger than %u MB", r->path, MAX_FILE >> 20);
    } else {
        text = malloc((size_t)size + 1);
        if (text == NULL || fread(text, 1, (size_t)size, f) != (size_t)size) {
            snprintf(r->error, r->error_size, "%s: cannot be read", r->path);
            free(text);
            text = NULL;
        } else {
            text[size] = '\0';
        }
    }
    fclose(f);
    return text;
}

struct json *json_read(const char *path, char *error, size_t error_size)
{
    struct reader r = {.path = path, .line = 1, .error = error, .error_size = error_size};
    struct json *j;

    r.text = read_file(&r);
    if (r.text == NULL) {
        return NULL;
    }
    r.at = r.text;
    j = read_value(&r);
    skip_space(&r);
    if (j != NULL && *r.at != '\0') {
        fail(&r, "text after the end");
    }
    if (r.failed) {
        json_free(j);
        j = NULL;
    }
    free(r.text);
    return j;
}

void json_free(struct json *j)
{
    while (j != NULL) {
        struct json *next = j->next;

        json_free(j->first);
        free(j->key);
        free(j->string);
        free(j);
        j = next;
    }
}

const struct json *json_get(const struct json *object, const char *key)
{
    for (const struct json *m = object->first; m != NULL; m = m->next) {
        if (m->key != NULL && strcmp(m->key, key) == 0) {
            return m;
        }
    }
    return NULL;
}
