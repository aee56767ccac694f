/* Recording and replaying policy calls: the kernel's recorder writes, the tool reads; good, full, damaged and foreign files; and
 * mutants of the policies, which a replay must tell from the real ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sched/policies/pick.h"
#include "sched/policies/policies.h"
#include "sched/policy_record.h"
#include "tests/replay/replay.h"

#define CPUS 16u
#define THREADS 24u
#define ROUNDS 300u
#define BUFFER_BYTES (4u << 20)
#define NOW 1000000000ull

static uint8_t buffer[BUFFER_BYTES] __attribute__((aligned(RECORD_ALIGN)));
static uint64_t state;

static uint32_t draw(uint32_t below)
{
    state += 0x9e3779b97f4a7c15ull;
    return pick_below(pick_mix(state, 1), below);
}

static struct policy_cpu board_cpus[CPUS];
static struct policy_thread threads[THREADS];
static uint64_t idle_set, masks[THREADS];

/* A board and candidates by lot. */
static struct policy_view some_view(uint32_t num_threads)
{
    idle_set = 0;
    for (uint32_t c = 0; c < CPUS; c++) {
        uint32_t running = draw(2);
        board_cpus[c] = (struct policy_cpu){ .running = running, .queued = running ? draw(5) : 0, .capacity = POLICY_CAPACITY_FULL };
        idle_set |= (uint64_t)!running << c;
    }
    board_cpus[0].running = 1;
    board_cpus[0].queued = num_threads;
    idle_set &= ~1ull;
    for (uint32_t i = 0; i < num_threads; i++) {
        masks[i] = draw(4) ? (1u << CPUS) - 1 : 1u << draw(CPUS);
        threads[i] = (struct policy_thread){ .id = i + 1, .affinity = &masks[i], .last_cpu = (int32_t)draw(CPUS + 1) - 1,
                                             .receive_cpu = POLICY_NO_CPU, .last_ran_ns = NOW - draw(2000000), .weight = 1024 };
    }
    state += 7;
    return (struct policy_view){ .now_ns = NOW, .seed = state * 0x2545f4914f6cdd1dull, .num_cpus = CPUS, .cpus = board_cpus,
                                 .idle = &idle_set, .num_threads = num_threads, .threads = threads };
}

/* As sched/policy_call.c does it. */
static void call_place(const struct policy *policy)
{
    struct policy_view view = some_view(1);
    struct policy_record *r = policy_record_call(3, policy, &view, 0);
    int32_t answer = policy->place_wake(&view);
    if (r) {
        r->answer = answer;
        policy_record_done(3, r, RECORD_PLACE_WAKE);
    }
}

static void call_balance(const struct policy *policy)
{
    struct policy_move moves[CPUS];
    struct policy_view view = some_view(1 + draw(THREADS));
    struct policy_plan plan = { .capacity = CPUS, .moves = moves };
    struct policy_record *r = policy_record_call(0, policy, &view, plan.capacity);
    policy->balance(&view, &plan);
    if (r) {
        r->num_moves = plan.num_moves;
        memcpy(record_moves(r), moves, plan.num_moves * sizeof(*moves));
        policy_record_done(0, r, RECORD_BALANCE);
    }
}

static void call_pull(const struct policy *policy)
{
    struct policy_view view = some_view(0);
    struct policy_pull pull = { .from = POLICY_NO_CPU };
    struct policy_record *r = policy_record_call(5, policy, &view, 0);
    policy->idle_pull(&view, &pull);
    if (r) {
        r->answer = pull.from;
        r->min_wait_ns = pull.min_wait_ns;
        r->min_cold_ns = pull.min_cold_ns;
        policy_record_done(5, r, RECORD_IDLE_PULL);
    }
}

/* Records `rounds` calls of each kind; how many bytes. */
static size_t record(uint32_t rounds, size_t size)
{
    u64 lost;
    state = 1;
    assert_int_equal(policy_record_start(buffer, size), 0);
    for (uint32_t i = 0; i < rounds; i++) {
        call_balance(&policy_drain);
        call_place(&policy_flow);
        call_pull(&policy_flow);
    }
    return policy_record_stop(&lost);
}

static char said[8192];

static enum replay_end run(const void *data, size_t n, const struct policy *const *registry, struct replay_counts *counts)
{
    FILE *out = fmemopen(said, sizeof(said), "w");
    assert_non_null(out);
    memset(said, 0, sizeof(said));
    enum replay_end end = replay(data, n, "file", registry, out, counts);
    fclose(out);
    return end;
}

static void test_good(void **unused)
{
    (void)unused;
    struct replay_counts counts;
    size_t n = record(ROUNDS, sizeof(buffer));
    assert_int_equal(run(buffer, n, policy_registry, &counts), REPLAY_SAME);
    assert_int_equal(counts.calls[RECORD_BALANCE], ROUNDS);
    assert_int_equal(counts.calls[RECORD_PLACE_WAKE], ROUNDS);
    assert_int_equal(counts.calls[RECORD_IDLE_PULL], ROUNDS);
    assert_int_equal(counts.differ, 0);
    assert_int_equal(counts.lost, 0);
    assert_true(counts.moves > ROUNDS);
    assert_string_equal(said, "");
}

static void test_off(void **unused)
{
    (void)unused;
    u64 lost;
    assert_int_equal(policy_record_start(buffer, sizeof(buffer)), 0);
    assert_int_equal(policy_record_start(buffer, sizeof(buffer)), -16 /* EBUSY */);
    assert_int_equal(policy_record_stop(&lost), sizeof(struct policy_record_file));
    struct policy_view view = some_view(1);
    assert_null(policy_record_call(0, &policy_flow, &view, 0));
    assert_ptr_equal(view.cpus, board_cpus);
    assert_int_equal(policy_record_start(buffer + 8, sizeof(buffer) - 8), -22 /* EINVAL */);
    assert_int_equal(policy_record_start(buffer, 16), -22 /* EINVAL */);
}

/* What does not fit is counted, what is there is whole. */
static void test_full(void **unused)
{
    (void)unused;
    struct replay_counts counts;
    size_t n = record(ROUNDS, 100000);
    assert_true(n <= 100000);
    assert_int_equal(run(buffer, n, policy_registry, &counts), REPLAY_SAME);
    uint64_t calls = counts.calls[RECORD_BALANCE] + counts.calls[RECORD_PLACE_WAKE] + counts.calls[RECORD_IDLE_PULL];
    assert_true(calls > 0 && counts.lost > 0);
    assert_int_equal(calls + counts.lost, 3 * ROUNDS);
}

/* The policy saw the copy: what other CPUs publish during the call changes neither answer nor record. */
static void test_copy(void **unused)
{
    (void)unused;
    u64 lost;
    assert_int_equal(policy_record_start(buffer, sizeof(buffer)), 0);
    struct policy_view view = some_view(1);
    uint32_t queued = board_cpus[4].queued;
    struct policy_record *r = policy_record_call(1, &policy_flow, &view, 0);
    assert_non_null(r);
    board_cpus[4].queued = queued + 1;
    assert_int_equal(view.cpus[4].queued, queued);
    assert_int_equal(policy_record_stop(&lost), 0); /* a call is under way: not yet */
    policy_record_done(1, r, RECORD_PLACE_WAKE);
    assert_true(policy_record_stop(&lost) > 0);
}

/* A call that never came back is there without an answer, and is not replayed. */
static void test_cut_off(void **unused)
{
    (void)unused;
    u64 lost;
    struct replay_counts counts;
    assert_int_equal(policy_record_start(buffer, sizeof(buffer)), 0);
    struct policy_view view = some_view(1);
    assert_non_null(policy_record_call(1, &policy_flow, &view, 0));
    policy_record_cut_off(1);
    policy_record_cut_off(1);
    call_place(&policy_flow);
    size_t n = policy_record_stop(&lost);
    assert_true(n > 0);
    assert_int_equal(run(buffer, n, policy_registry, &counts), REPLAY_SAME);
    assert_int_equal(counts.calls[0], 1);
    assert_int_equal(counts.calls[RECORD_PLACE_WAKE], 1);
}

static void expect_bad(const void *data, size_t n, const char *what)
{
    struct replay_counts counts;
    assert_int_equal(run(data, n, policy_registry, &counts), REPLAY_BAD_FILE);
    if (!strstr(said, what)) {
        fail_msg("wanted \"%s\", got: %s", what, said);
    }
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1); /* one line */
}

static void test_damaged(void **unused)
{
    (void)unused;
    size_t n = record(4, sizeof(buffer));
    struct policy_record_file *file = (struct policy_record_file *)(void *)buffer;
    struct policy_record *first = (struct policy_record *)(void *)(file + 1);
    struct policy_record_file good = *file;
    struct policy_record good_record = *first;

    expect_bad(buffer, 0, "truncated");
    expect_bad(buffer, sizeof(*file) - 1, "truncated");
    expect_bad(buffer, n - 1, "truncated");
    expect_bad(buffer, n + 64, "too many");
    file->magic[0] = 'X';
    expect_bad(buffer, n, "not a recording");
    *file = good;
    file->version++;
    expect_bad(buffer, n, "version 2");
    *file = good;
    file->records++;
    expect_bad(buffer, n, "finished records");
    *file = good;
    file->bytes = n - sizeof(*file) - 64;
    expect_bad(buffer, n - 64, "past the end");
    *file = good;

    first->num_cpus = 0;
    expect_bad(buffer, n, "record 0: 0 CPUs");
    first->num_cpus = UINT32_MAX;
    expect_bad(buffer, n, "at most 1024");
    *first = good_record;
    first->num_threads++;
    expect_bad(buffer, n, "its content has");
    *first = good_record;
    first->self = CPUS;
    expect_bad(buffer, n, "impossible");
    *first = good_record;
    memset(first->policy, 'x', sizeof(first->policy));
    expect_bad(buffer, n, "impossible");
    *first = good_record;
    strcpy(first->policy, "nosuch");
    expect_bad(buffer, n, "no policy \"nosuch\"");
    strcpy(first->policy, "none");
    expect_bad(buffer, n, "has no balance");
    *first = good_record;
    record_threads(first)[0].last_cpu = CPUS;
    expect_bad(buffer, n, "a CPU that is not there");
}

/* Damage by lot must be refused or replayed, never read past the end (the sanitizers watch). */
static void test_any_damage(void **unused)
{
    (void)unused;
    struct replay_counts counts;
    size_t n = record(3, sizeof(buffer));
    uint8_t *copy = malloc(n);
    assert_non_null(copy);
    for (uint32_t i = 0; i < 2000; i++) {
        memcpy(copy, buffer, n);
        for (uint32_t k = 0; k <= draw(4); k++) {
            copy[draw((uint32_t)n)] = (uint8_t)draw(256);
        }
        (void)run(copy, n - (draw(2) ? draw((uint32_t)n) : 0), policy_registry, &counts);
    }
    free(copy);
}

/* ---- mutants ---- */

static int32_t mutant_place_wake(const struct policy_view *view)
{
    struct policy_view other = *view;
    other.seed++; /* breaks ties otherwise */
    return policy_flow.place_wake(&other);
}

static void mutant_balance(const struct policy_view *view, struct policy_plan *plan)
{
    policy_drain.balance(view, plan);
    if (plan->num_moves > 3) {
        plan->num_moves--; /* forgets the last */
    }
}

static void mutant_pull(const struct policy_view *view, struct policy_pull *pull)
{
    policy_flow.idle_pull(view, pull);
    pull->min_cold_ns = 1;
}

static void expect_caught(const struct policy *mutant, const char *kind)
{
    struct replay_counts counts;
    const struct policy *const registry[] = { mutant, strcmp(mutant->name, "drain") == 0 ? &policy_flow : &policy_drain, NULL };
    size_t n = record(ROUNDS, sizeof(buffer));
    assert_int_equal(run(buffer, n, registry, &counts), REPLAY_DIFFERS);
    assert_true(counts.differ > 0);
    assert_non_null(strstr(said, kind));
    assert_non_null(strstr(said, "view: now"));
    assert_non_null(strstr(said, "recorded:"));
    assert_non_null(strstr(said, "replayed:"));
}

static void test_mutants(void **unused)
{
    (void)unused;
    struct policy flow = policy_flow, drain = policy_drain;
    flow.place_wake = mutant_place_wake;
    expect_caught(&flow, "place_wake of flow");
    flow = policy_flow;
    flow.idle_pull = mutant_pull;
    expect_caught(&flow, "idle_pull of flow");
    drain.balance = mutant_balance;
    expect_caught(&drain, "balance of drain");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_off),     cmocka_unit_test(test_full),
        cmocka_unit_test(test_copy),    cmocka_unit_test(test_cut_off), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_any_damage), cmocka_unit_test(test_mutants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
