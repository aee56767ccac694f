#include "tests/replay/replay.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[RECORD_KINDS] = { "cut off", "place_new", "place_wake", "balance", "idle_pull" };

struct reader {
    const char *name;
    const struct policy *const *registry;
    FILE *out;
    struct replay_counts *counts;
};

__attribute__((format(printf, 3, 4))) static bool bad(const struct reader *in, uint64_t record, const char *fmt, ...)
{
    va_list args;
    fprintf(in->out, "%s: ", in->name);
    if (record != UINT64_MAX) {
        fprintf(in->out, "record %" PRIu64 ": ", record);
    }
    va_start(args, fmt);
    vfprintf(in->out, fmt, args);
    va_end(args);
    fputc('\n', in->out);
    return false;
}

/* ---- is the file what it says it is? ---- */

static bool check_header(const struct reader *in, const struct policy_record_file *file, size_t n)
{
    const uint64_t whole = UINT64_MAX;
    if (n < sizeof(*file)) {
        return bad(in, whole, "truncated: %zu bytes, the header alone has %zu", n, sizeof(*file));
    }
    if (memcmp(file->magic, RECORD_MAGIC, sizeof(file->magic)) != 0) {
        return bad(in, whole, "not a recording of policy calls (it does not begin with %s)", RECORD_MAGIC);
    }
    if (file->version != RECORD_VERSION || file->header_bytes != sizeof(*file)) {
        return bad(in, whole, "version %u with a header of %u bytes; this tool reads version %u with one of %zu", file->version,
                   file->header_bytes, RECORD_VERSION, sizeof(*file));
    }
    if (file->bytes > n - sizeof(*file)) {
        return bad(in, whole, "truncated: %zu bytes of records, the header says %" PRIu64, n - sizeof(*file), file->bytes);
    }
    if (file->bytes < n - sizeof(*file)) {
        return bad(in, whole, "%" PRIu64 " bytes too many at the end", (uint64_t)(n - sizeof(*file)) - file->bytes);
    }
    return true;
}

static bool is_cpu_or_none(const struct policy_record *r, int32_t cpu)
{
    return cpu == POLICY_NO_CPU || (cpu >= 0 && (uint32_t)cpu < r->num_cpus);
}

static bool check_record(const struct reader *in, uint64_t i, struct policy_record *r, uint64_t left)
{
    if (left < sizeof(*r) || r->bytes > left) {
        return bad(in, i, "runs past the end of the file");
    }
    if (r->num_cpus < 1 || r->num_cpus > RECORD_MAX_CPUS || r->num_threads > RECORD_MAX_THREADS ||
        r->capacity > RECORD_MAX_CPUS) {
        return bad(in, i, "%u CPUs, %u threads, a plan of %u: at most %u, %u, %u, and one CPU", r->num_cpus, r->num_threads,
                   r->capacity, RECORD_MAX_CPUS, RECORD_MAX_THREADS, RECORD_MAX_CPUS);
    }
    if (r->bytes != record_bytes(r->num_cpus, r->num_threads, r->capacity)) {
        return bad(in, i, "%u bytes long, its content has %" PRIu64, r->bytes,
                   record_bytes(r->num_cpus, r->num_threads, r->capacity));
    }
    if (r->kind >= RECORD_KINDS || r->self >= r->num_cpus || !memchr(r->policy, 0, sizeof(r->policy))) {
        return bad(in, i, "kind %u, CPU %u or its policy's name is impossible", r->kind, r->self);
    }
    bool place = r->kind == RECORD_PLACE_NEW || r->kind == RECORD_PLACE_WAKE;
    if (place && r->num_threads != 1) {
        return bad(in, i, "%s with %u threads", kind_names[r->kind], r->num_threads);
    }
    for (uint32_t t = 0; t < r->num_threads; t++) {
        const struct policy_thread *thread = &record_threads(r)[t];
        if (!is_cpu_or_none(r, thread->last_cpu) || !is_cpu_or_none(r, thread->receive_cpu)) {
            return bad(in, i, "thread %u names a CPU that is not there", t);
        }
    }
    return true;
}

/* ---- replaying ---- */

static const struct policy *find(const struct reader *in, const char *name)
{
    for (const struct policy *const *p = in->registry; *p; p++) {
        if (strcmp((*p)->name, name) == 0) {
            return *p;
        }
    }
    return NULL;
}

static void print_view(FILE *out, struct policy_record *r)
{
    fprintf(out, "  view: now %" PRIu64 " seed %#" PRIx64 " self %u flags %u receive CPUs %u\n", r->now_ns, r->seed, r->self,
            r->wake_flags, r->receive_cpus);
    for (uint32_t c = 0; c < r->num_cpus; c++) {
        const struct policy_cpu *cpu = &record_cpus(r)[c];
        fprintf(out, "  cpu %u: running %u queued %u in flight %u capacity %u receive %u group %u idle since %" PRIu64 "%s\n", c,
                cpu->running, cpu->queued, cpu->in_flight, cpu->capacity, cpu->receive_queue, cpu->group, cpu->idle_since_ns,
                policy_bit(record_idle(r), c) ? " (in the idle set)" : "");
    }
    for (uint32_t t = 0; t < r->num_threads; t++) {
        const struct policy_thread *thread = &record_threads(r)[t];
        fprintf(out, "  thread %u: id %" PRIu64 " last CPU %d receive CPU %d ran %" PRIu64 " queued %" PRIu64
                     " burst %u migrations %u weight %u affinity %#" PRIx64 "%s\n",
                t, thread->id, thread->last_cpu, thread->receive_cpu, thread->last_ran_ns, thread->queued_ns, thread->avg_run_ns,
                thread->migrations, thread->weight, record_affinity(r, t)[0], record_words(r->num_cpus) > 1 ? "..." : "");
    }
}

static void print_moves(FILE *out, const char *who, const struct policy_move *moves, uint32_t n, uint32_t capacity)
{
    fprintf(out, "  %s: %u moves", who, n);
    for (uint32_t i = 0; i < n && i < capacity; i++) {
        fprintf(out, " %u->%u", moves[i].thread, moves[i].to);
    }
    fputc('\n', out);
}

static void print_difference(const struct reader *in, uint64_t i, struct policy_record *r)
{
    fprintf(in->out, "%s: record %" PRIu64 ": %s of %s on CPU %u answers differently\n", in->name, i, kind_names[r->kind],
            r->policy, r->cpu);
    print_view(in->out, r);
}

static bool first_difference(const struct reader *in)
{
    return in->counts->differ++ == 0;
}

static void replay_place(const struct reader *in, uint64_t i, struct policy_record *r, const struct policy *policy)
{
    struct policy_view view = record_view(r);
    int32_t answer = r->kind == RECORD_PLACE_NEW ? policy->place_new(&view) : policy->place_wake(&view);
    if (answer != r->answer && first_difference(in)) {
        print_difference(in, i, r);
        fprintf(in->out, "  recorded: CPU %d\n  replayed: CPU %d\n", r->answer, answer);
    }
}

static void replay_pull(const struct reader *in, uint64_t i, struct policy_record *r, const struct policy *policy)
{
    struct policy_view view = record_view(r);
    struct policy_pull pull = { .from = POLICY_NO_CPU };
    policy->idle_pull(&view, &pull);
    if ((pull.from != r->answer || pull.min_wait_ns != r->min_wait_ns || pull.min_cold_ns != r->min_cold_ns) &&
        first_difference(in)) {
        print_difference(in, i, r);
        fprintf(in->out, "  recorded: from %d wait %" PRIu64 " cold %" PRIu64 "\n  replayed: from %d wait %" PRIu64 " cold %" PRIu64 "\n",
                r->answer, r->min_wait_ns, r->min_cold_ns, pull.from, pull.min_wait_ns, pull.min_cold_ns);
    }
}

static void replay_balance(const struct reader *in, uint64_t i, struct policy_record *r, const struct policy *policy)
{
    static struct policy_move moves[RECORD_MAX_CPUS];
    struct policy_view view = record_view(r);
    struct policy_plan plan = { .capacity = r->capacity, .moves = moves };
    policy->balance(&view, &plan);
    uint32_t n = plan.num_moves < r->capacity ? plan.num_moves : r->capacity;
    in->counts->moves += n;
    if ((plan.num_moves != r->num_moves || memcmp(moves, record_moves(r), n * sizeof(*moves)) != 0) && first_difference(in)) {
        print_difference(in, i, r);
        print_moves(in->out, "recorded", record_moves(r), r->num_moves, r->capacity);
        print_moves(in->out, "replayed", moves, plan.num_moves, r->capacity);
    }
}

static bool replay_record(const struct reader *in, uint64_t i, struct policy_record *r)
{
    in->counts->calls[r->kind]++;
    if (r->kind == 0) {
        return true; /* it was cut off: there is no answer */
    }
    const struct policy *policy = find(in, r->policy);
    if (!policy) {
        return bad(in, i, "no policy \"%s\" in this build", r->policy);
    }
    bool has[RECORD_KINDS] = { false, policy->place_new, policy->place_wake, policy->balance, policy->idle_pull };
    if (!has[r->kind]) {
        return bad(in, i, "policy %s of this build has no %s", r->policy, kind_names[r->kind]);
    }
    if (r->kind == RECORD_BALANCE) {
        replay_balance(in, i, r, policy);
    } else if (r->kind == RECORD_IDLE_PULL) {
        replay_pull(in, i, r, policy);
    } else {
        replay_place(in, i, r, policy);
    }
    return true;
}

static bool replay_all(const struct reader *in, uint8_t *data, size_t n)
{
    const struct policy_record_file *file = (const struct policy_record_file *)(const void *)data;
    if (!check_header(in, file, n)) {
        return false;
    }
    in->counts->lost = file->lost;
    uint64_t finished = 0, i = 0;
    for (uint64_t at = sizeof(*file); at < n; i++) {
        struct policy_record *r = (struct policy_record *)(void *)(data + at);
        if (!check_record(in, i, r, n - at) || !replay_record(in, i, r)) {
            return false;
        }
        finished += r->kind != 0;
        at += r->bytes;
    }
    if (finished != file->records) {
        return bad(in, UINT64_MAX, "%" PRIu64 " finished records, the header says %" PRIu64, finished, file->records);
    }
    return true;
}

enum replay_end replay(const void *data, size_t n, const char *name, const struct policy *const *registry, FILE *out,
                       struct replay_counts *counts)
{
    *counts = (struct replay_counts){ .differ = 0 };
    const struct reader in = { .name = name, .registry = registry, .out = out, .counts = counts };
    /* A copy, aligned as the structures want it and writable for the pointers of the views. */
    uint8_t *copy = aligned_alloc(RECORD_ALIGN, (n + RECORD_ALIGN) / RECORD_ALIGN * RECORD_ALIGN);
    if (!copy) {
        bad(&in, UINT64_MAX, "not enough memory for %zu bytes", n);
        return REPLAY_BAD_FILE;
    }
    memcpy(copy, data, n);
    bool good = replay_all(&in, copy, n);
    free(copy);
    return !good ? REPLAY_BAD_FILE : counts->differ ? REPLAY_DIFFERS : REPLAY_SAME;
}
