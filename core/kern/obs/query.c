#include "core/kern/obs/query.h"

#include "core/base/string.h"

#define MILLI 1000u

/* "1", "0.25", ".5" in thousandths. */
static bool parse_milli(const char *s, u64 *out)
{
    const char *point = strchr(s, '.');
    size_t whole_len = point ? (size_t)(point - s) : strlen(s);
    u64 whole = 0, part = 0;
    if (whole_len > 9) {
        return false;
    }
    for (size_t i = 0; i < whole_len; i++) {
        if (s[i] < '0' || s[i] > '9') {
            return false;
        }
        whole = whole * 10 + (u64)(s[i] - '0');
    }
    if (point) {
        size_t digits = strlen(point + 1);
        if (digits == 0 || digits > 3) {
            return false;
        }
        for (size_t i = 0; i < 3; i++) {
            char c = i < digits ? point[1 + i] : '0';
            if (c < '0' || c > '9') {
                return false;
            }
            part = part * 10 + (u64)(c - '0');
        }
    } else if (whole_len == 0) {
        return false;
    }
    *out = whole * MILLI + part;
    return true;
}

bool query_parse_set(const char *text, const char *const *words, u64 *out)
{
    u64 set = 0;
    while (*text) {
        const char *comma = strchr(text, ',');
        size_t n = comma ? (size_t)(comma - text) : strlen(text);
        u32 i = 0;
        while (words[i] && (strlen(words[i]) != n || memcmp(words[i], text, n) != 0)) {
            i++;
        }
        if (words[i]) {
            set |= BIT(i);
        } else if (n == 3 && memcmp(text, "all", 3) == 0) {
            set |= BIT(i) - 1;
        } else {
            return false;
        }
        text += n + (comma ? 1 : 0);
    }
    *out = set;
    return set != 0;
}

static bool set_value(const struct query_param *p, const char *text)
{
    u64 value = 0;
    switch (p->kind) {
    case QUERY_NUMBER:
        if (str_parse_u64(text, strlen(text), &value) < 0 || value < p->min || value > p->max) {
            return false;
        }
        break;
    case QUERY_MILLI:
        if (!parse_milli(text, &value) || value < p->min || value > p->max) {
            return false;
        }
        break;
    case QUERY_CHOICE:
        while (p->words[value] && strcmp(p->words[value], text) != 0) {
            value++;
        }
        if (!p->words[value]) {
            return false;
        }
        break;
    case QUERY_SET:
        if (!query_parse_set(text, p->words, &value)) {
            return false;
        }
        break;
    }
    *p->value = value;
    return true;
}

static void add_milli(struct text *t, u64 value)
{
    text_add(t, "%lu", value / MILLI);
    if (value % MILLI) {
        char digits[4];
        str_format(digits, sizeof(digits), "%03lu", value % MILLI);
        size_t n = 3;
        while (digits[n - 1] == '0') {
            n--;
        }
        text_add(t, ".%.*s", (int)n, digits);
    }
}

static void describe(struct text *t, const struct query_param *p)
{
    text_add(t, "%s=", p->name);
    switch (p->kind) {
    case QUERY_NUMBER:
        text_add(t, "%lu..%lu", p->min, p->max);
        break;
    case QUERY_MILLI:
        add_milli(t, p->min);
        text_add(t, "..");
        add_milli(t, p->max);
        break;
    case QUERY_CHOICE:
    case QUERY_SET:
        for (u32 i = 0; p->words[i]; i++) {
            text_add(t, "%s%s", i ? (p->kind == QUERY_SET ? "," : "|") : "", p->words[i]);
        }
        break;
    }
}

static bool given_before(const struct http_request *request, u32 i)
{
    for (u32 j = 0; j < i; j++) {
        if (strcmp(request->params[j].name, request->params[i].name) == 0) {
            return true;
        }
    }
    return false;
}

bool query_unique(const struct http_request *request, struct http_answer *out)
{
    for (u32 i = 0; i < request->num_params; i++) {
        if (given_before(request, i)) {
            out->status = 400;
            out->type = "text/plain; charset=utf-8";
            text_add(&out->body, "%.40s: given twice\n", request->params[i].name);
            return false;
        }
    }
    return true;
}

bool query_parse(const struct http_request *request, const struct query_param *params, u32 n, struct http_answer *out)
{
    if (!query_unique(request, out)) {
        return false;
    }
    for (u32 i = 0; i < request->num_params; i++) {
        const struct http_param *given = &request->params[i];
        u32 k = 0;
        while (k < n && strcmp(params[k].name, given->name) != 0) {
            k++;
        }
        if (k < n && set_value(&params[k], given->value)) {
            continue;
        }
        out->status = 400;
        out->type = "text/plain; charset=utf-8";
        /* What the client sent is shown cut, so that the answer stays one short line. */
        text_add(&out->body, "%.40s=%.40s: %s", given->name, given->value,
                 k < n ? "wanted is " : n ? "no such parameter; there are " : "this page takes no parameter");
        for (u32 j = k < n ? k : 0; j < (k < n ? k + 1 : n); j++) {
            text_add(&out->body, "%s", j > (k < n ? k : 0) ? " " : "");
            describe(&out->body, &params[j]);
        }
        text_add(&out->body, "\n");
        return false;
    }
    return true;
}

void query_busy(struct http_answer *out, const char *what)
{
    out->status = 409;
    out->type = "text/plain; charset=utf-8";
    text_add(&out->body, "%s is being recorded for somebody else: try again when that has ended\n", what);
}
