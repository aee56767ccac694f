/* Pages of the HTTP port: one table of paths. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/grant.h"
#include "core/kern/http_pages.h"
#include "core/kern/obs/obs.h"
#include "core/kern/obs/query.h"
#include "core/kern/report.h"
#include "sched/sched.h"

#define PLAIN "text/plain; charset=utf-8"
#define JSON "application/json"
#define PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"
#define BINARY "application/octet-stream"
#define INTERVAL_MAX_MS 10000ull

struct page {
    const char *path;
    const char *type;
    void (*show)(struct text *t);
    void (*query)(const struct http_request *request, struct http_answer *out); /* instead of show: takes parameters */
    void (*post)(const struct http_request *request, struct http_answer *out); /* NULL: GET only */
    const char *help;
};

static void show_help(struct text *t);

static void bad_parameter(struct http_answer *out, const char *name, const char *value, const char *want)
{
    out->status = 400;
    out->type = PLAIN;
    text_add(&out->body, "%s=%s: %s is wanted\n", name, value, want);
}

static void post_sched(const struct http_request *request, struct http_answer *out)
{
    const char *policy = NULL;
    u64 interval_ms = 0;
    for (u32 i = 0; i < request->num_params; i++) {
        const struct http_param *p = &request->params[i];
        if (strcmp(p->name, "policy") == 0) {
            policy = p->value;
        } else if (strcmp(p->name, "interval_ms") == 0) {
            if (str_parse_u64(p->value, strlen(p->value), &interval_ms) < 0 || interval_ms < 1 ||
                interval_ms > INTERVAL_MAX_MS) {
                bad_parameter(out, p->name, p->value, "a number from 1 to 10000");
                return;
            }
        } else {
            bad_parameter(out, p->name, p->value, "policy=NAME or interval_ms=1..10000");
            return;
        }
    }
    if (!policy && !interval_ms) {
        bad_parameter(out, "policy", "", "policy=NAME and/or interval_ms=1..10000");
        return;
    }
    if (sched_set_policy(policy ? policy : sched_policy_name(), (u32)interval_ms) < 0) {
        bad_parameter(out, "policy", policy, "the name of a policy (none, legacy, drain, flow, ...)");
        return;
    }
    report_sched(&out->body);
}

/* park=0|1, show=granted|all; false: another parameter. */
static bool grant_switch(struct grant_change *change, const struct http_param *p, bool *bad)
{
    if (strcmp(p->name, "park") == 0) {
        *bad = strcmp(p->value, "0") != 0 && strcmp(p->value, "1") != 0;
        change->park = p->value[0] == '1';
    } else if (strcmp(p->name, "show") == 0) {
        *bad = strcmp(p->value, "all") != 0 && strcmp(p->value, "granted") != 0;
        change->show_all = p->value[0] == 'a';
    } else if (strcmp(p->name, "from") == 0) {
        *bad = strcmp(p->value, "host") != 0;
        change->from_host = true;
    } else {
        return false;
    }
    return true;
}

static void keep_line(const char *line, void *arg)
{
    str_copy(arg, line, GRANT_LINE);
}

static void post_grant(const struct http_request *request, struct http_answer *out)
{
    struct grant_change change = { .park = -1, .show_all = -1 };
    char line[GRANT_LINE] = "";
    struct grant_notes notes = { keep_line, line, 0 };
    for (u32 i = 0; i < request->num_params; i++) {
        const struct http_param *p = &request->params[i];
        bool bad = false;
        if (!grant_switch(&change, p, &bad)) {
            bad = !grant_word(&change.words, p->name, p->value, &notes) || notes.count;
        }
        if (bad) {
            bad_parameter(out, p->name, p->value,
                          line[0] ? line
                                  : "cpus, quota_us, period_us, memory, memory_high, memory_low, park=0|1, show=granted|all, "
                                    "from=host");
            return;
        }
    }
    if (request->num_params == 0) {
        bad_parameter(out, "cpus", "", "at least one of cpus, quota_us, period_us, memory, memory_high, memory_low, park, show");
        return;
    }
    if (grant_change(&change, line) < 0) {
        out->status = 409;
        out->type = PLAIN;
        text_add(&out->body, "%s\n", line);
        return;
    }
    report_grant(&out->body);
}

static const struct page pages[] = {
    { "/", PLAIN, show_help, NULL, NULL, "this list" },
    { "/help", PLAIN, show_help, NULL, NULL, "this list" },
    { "/metrics", PROMETHEUS, report_metrics, NULL, NULL, "all counters, Prometheus text format" },
    { "/sched", JSON, report_sched, NULL, post_sched,
      "policy, counters, placement map; POST policy=NAME&interval_ms=N changes them" },
    { "/threads", PLAIN, NULL, obs_threads, NULL,
      "all threads with what they wait for, who holds it, and their stacks; format=json" },
    { "/memory", PLAIN, report_memory, NULL, NULL, "memory by kind and by cache" },
    { "/futex", PLAIN, NULL, obs_futex, NULL, "futex words by time asleep; seconds=N: with the call stacks of that time" },
    { "/locks", PLAIN, NULL, obs_locks, NULL, "kernel and application locks; seconds=N: of that time; format=json" },
    { "/profile", PLAIN, NULL, obs_profile, NULL, "folded stacks: seconds=N mode=oncpu|offcpu hz=N idle=0|1 wait=futex,..." },
    { "/trace", JSON, NULL, obs_trace, NULL, "events for Perfetto: seconds=N cat=" OBS_CATEGORIES },
    { "/placement", PLAIN, NULL, obs_placement, NULL,
      "which thread runs where: seconds=N period_us=N format=text|json" },
    { "/policy-record", BINARY, NULL, obs_policy_record, NULL,
      "the policy's calls, for weir-replay: seconds=N kb=N (buffer; what does not fit is counted)" },
    { "/syscalls", PLAIN, report_syscalls, NULL, NULL, "system calls by name" },
    { "/grant", JSON, report_grant, NULL, post_grant,
      "CPUs and memory granted, throttling; POST cpus=1.5&memory=512M&park=0|1&show=granted|all changes them" },
};

static void show_help(struct text *t)
{
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        text_add(t, "%-14s %s\n", pages[i].path, pages[i].help);
    }
}

const char *http_status_text(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 409:
        return "Conflict";
    case 413:
        return "Content Too Large";
    case 411:
        return "Length Required";
    case 414:
        return "URI Too Long";
    case 431:
        return "Request Header Fields Too Large";
    case 503:
        return "Service Unavailable";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Internal Server Error";
    }
}

void http_answer_error(int status, struct http_answer *out)
{
    *out = (struct http_answer){ .status = status };
    out->type = PLAIN;
    text_add(&out->body, "%d %s\n", status, http_status_text(status));
}

static const struct page *find_page(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(pages); i++) {
        if (strcmp(pages[i].path, path) == 0) {
            return &pages[i];
        }
    }
    return NULL;
}

static void answer_post(const struct page *page, const struct http_request *request, bool writable,
                        struct http_answer *out)
{
    if (!page->post) {
        http_answer_error(405, out);
    } else if (!writable) {
        out->status = 403;
        out->type = PLAIN;
        text_add(&out->body, "the port is read-only: boot with http.write=1\n");
    } else if (query_unique(request, out)) {
        page->post(request, out);
    }
}

void http_answer(const struct http_request *request, bool writable, struct http_answer *out)
{
    const struct page *page = find_page(request->path);
    *out = (struct http_answer){ .status = 200 };
    if (!page) {
        http_answer_error(404, out);
        show_help(&out->body);
        return;
    }
    out->type = page->type;
    if (request->method == HTTP_POST) {
        answer_post(page, request, writable, out);
    } else if (request->method == HTTP_OTHER) {
        http_answer_error(405, out);
    } else if (page->query) {
        page->query(request, out);
    } else if (request->num_params > 0) {
        bad_parameter(out, request->params[0].name, request->params[0].value, "no parameter");
    } else {
        page->show(&out->body);
    }
    if (out->body.failed) {
        text_free(&out->body);
        http_answer_error(503, out);
    }
}
