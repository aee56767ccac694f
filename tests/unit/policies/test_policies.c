/* The policies as pure functions: bounds, affinity, capacity, ties, determinism, rubbish-free answers on random views. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sched/policies/pick.h"
#include "sched/policies/policies.h"

#define CPUS 64u
#define THREADS 128u
#define RANDOM_VIEWS 3000u
#define NOW 1000000000ull

struct setting {
    struct policy_view view;
    struct policy_plan plan;
    struct policy_cpu cpus[CPUS];
    uint64_t idle[1], masks[THREADS];
    struct policy_thread threads[THREADS];
    struct policy_move moves[CPUS];
};

static void set_idle(struct setting *s)
{
    s->idle[0] = 0;
    for (uint32_t c = 0; c < s->view.num_cpus; c++) {
        if (policy_load(&s->cpus[c]) == 0 && s->cpus[c].capacity != 0) {
            s->idle[0] |= 1ull << c;
        }
    }
}

/* n CPUs without load, CPU 0 with one running and k - 1 waiting threads that may go anywhere. */
static void setup(struct setting *s, uint32_t n, uint32_t k)
{
    memset(s, 0, sizeof(*s));
    for (uint32_t c = 0; c < n; c++) {
        s->cpus[c].capacity = POLICY_CAPACITY_FULL;
    }
    s->cpus[0].running = k != 0;
    s->cpus[0].queued = k != 0 ? k - 1 : 0;
    for (uint32_t i = 0; i < THREADS; i++) {
        s->masks[i] = n == 64 ? UINT64_MAX : (1ull << n) - 1;
        s->threads[i] = (struct policy_thread){.id = i + 1, .affinity = &s->masks[i], .receive_cpu = POLICY_NO_CPU,
                                               .last_ran_ns = 1, .weight = 1024};
    }
    s->view = (struct policy_view){.now_ns = NOW, .seed = 1, .num_cpus = n, .cpus = s->cpus, .idle = s->idle,
                                   .num_threads = s->cpus[0].queued < THREADS ? s->cpus[0].queued : THREADS,
                                   .threads = s->threads};
    s->plan = (struct policy_plan){.capacity = n, .moves = s->moves};
    set_idle(s);
}

static uint64_t next_random(uint64_t *state)
{
    *state += 0x9e3779b97f4a7c15ull;
    return (uint64_t)pick_mix(*state, 1) << 32 | pick_mix(*state, 2);
}

/* Any view the kernel could show. */
static void random_view(struct setting *s, uint64_t seed)
{
    uint64_t r = seed;
    uint32_t n = 1 + (uint32_t)(next_random(&r) % CPUS);

    setup(s, n, 1 + (uint32_t)(next_random(&r) % 40));
    for (uint32_t c = 0; c < n; c++) {
        if (c != 0) {
            s->cpus[c].running = next_random(&r) & 1;
            s->cpus[c].queued = s->cpus[c].running ? (uint32_t)(next_random(&r) % 4) : 0;
        }
        s->cpus[c].in_flight = next_random(&r) % 8 == 0;
        s->cpus[c].capacity = next_random(&r) % 6 == 0 ? (uint32_t)(next_random(&r) % 1025) : POLICY_CAPACITY_FULL;
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        uint64_t mask = next_random(&r) & s->masks[i];

        s->masks[i] = next_random(&r) % 3 == 0 ? mask | 1ull << (next_random(&r) % n) : s->masks[i];
        s->threads[i].last_cpu = (int32_t)(next_random(&r) % (n + 1)) - 1;
        s->threads[i].last_ran_ns = NOW - next_random(&r) % 2000000;
        s->threads[i].migrations = (uint32_t)(next_random(&r) % 5);
    }
    s->view.seed = next_random(&r);
    set_idle(s);
}

/* ---- every policy ---- */

static void check_plan(const struct policy *p, const struct setting *s, uint64_t seed)
{
    uint64_t seen[THREADS / 64 + 1] = {0};

    if (s->plan.num_moves > s->plan.capacity) {
        fail_msg("%s, view %llu: %u moves", p->name, (unsigned long long)seed, s->plan.num_moves);
    }
    for (uint32_t m = 0; m < s->plan.num_moves; m++) {
        const struct policy_move *move = &s->moves[m];

        if (move->thread >= s->view.num_threads || move->to >= s->view.num_cpus || move->to == s->view.self ||
            policy_bit(seen, move->thread) || !policy_allowed(&s->threads[move->thread], move->to) ||
            s->cpus[move->to].capacity == 0) {
            fail_msg("%s, view %llu: move %u: thread %u to CPU %u", p->name, (unsigned long long)seed, m, move->thread, move->to);
        }
        seen[move->thread / 64] |= 1ull << (move->thread % 64);
    }
}

static void check_place(const struct policy *p, const struct setting *s, int32_t (*fn)(const struct policy_view *), uint64_t seed)
{
    struct policy_view view = s->view;
    int32_t to;

    if (fn == NULL) {
        return;
    }
    view.num_threads = 1;
    to = fn(&view);
    if (to != POLICY_NO_CPU && (to < 0 || (uint32_t)to >= view.num_cpus || !policy_allowed(&s->threads[0], (uint32_t)to) ||
                                s->cpus[to].capacity == 0)) {
        fail_msg("%s, view %llu: placed on CPU %d", p->name, (unsigned long long)seed, to);
    }
    if (to != fn(&view)) {
        fail_msg("%s, view %llu: another answer to the same view", p->name, (unsigned long long)seed);
    }
}

static void answers_are_possible(void **state)
{
    static struct setting s, again;

    (void)state;
    for (const struct policy *const *p = policy_registry; *p != NULL; p++) {
        for (uint64_t seed = 1; seed <= RANDOM_VIEWS; seed++) {
            random_view(&s, seed);
            check_place(*p, &s, (*p)->place_new, seed);
            check_place(*p, &s, (*p)->place_wake, seed);
            if ((*p)->balance != NULL) {
                (*p)->balance(&s.view, &s.plan);
                check_plan(*p, &s, seed);
                random_view(&again, seed);
                (*p)->balance(&again.view, &again.plan);
                assert_int_equal(s.plan.num_moves, again.plan.num_moves);
                assert_memory_equal(s.moves, again.moves, s.plan.num_moves * sizeof(s.moves[0]));
            }
            if ((*p)->idle_pull != NULL) {
                struct policy_pull pull = {0};

                (*p)->idle_pull(&s.view, &pull);
                assert_true(pull.from == POLICY_NO_CPU || ((uint32_t)pull.from < s.view.num_cpus && pull.from >= 0));
                assert_true(pull.from != (int32_t)s.view.self);
            }
        }
    }
}

static void registry_is_sound(void **state)
{
    (void)state;
    for (const struct policy *const *p = policy_registry; *p != NULL; p++) {
        size_t len = strlen((*p)->name);

        assert_true(len >= 1 && len <= 15);
        assert_int_equal(strspn((*p)->name, "abcdefghijklmnopqrstuvwxyz0123456789-"), len);
        assert_non_null((*p)->summary);
        assert_true((*p)->balance == NULL || (*p)->interval_ms != 0);
        for (const struct policy *const *q = policy_registry; q != p; q++) {
            assert_string_not_equal((*p)->name, (*q)->name);
        }
    }
}

/* ---- drain and legacy ---- */

static uint64_t potential(const struct setting *s)
{
    uint64_t sum = 0;

    for (uint32_t a = 0; a < s->view.num_cpus; a++) {
        for (uint32_t b = 0; b < a; b++) {
            uint32_t x = policy_load(&s->cpus[a]);
            uint32_t y = policy_load(&s->cpus[b]);

            sum += x > y ? x - y : y - x;
        }
    }
    return sum;
}

static void carry_out(struct setting *s)
{
    for (uint32_t m = 0; m < s->plan.num_moves; m++) {
        struct policy_cpu *to = &s->cpus[s->moves[m].to];

        s->cpus[s->view.self].queued--;
        *(to->running ? &to->queued : &to->running) += 1;
    }
}

/* ceil((k - ceil(k / n)) / n) passes, each lowering the sum of differences. */
static void drain_meets_its_bound(void **state)
{
    static struct setting s;
    static const uint32_t cases[][2] = {{16, 32}, {2, 3}, {3, 10}, {16, 17}, {64, 100}, {4, 128}, {5, 5}, {1, 9}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t n = cases[i][0];
        uint32_t k = cases[i][1];
        uint32_t passes = 0;

        setup(&s, n, k);
        for (;;) {
            uint64_t before = potential(&s);

            s.view.num_threads = s.cpus[0].queued < THREADS ? s.cpus[0].queued : THREADS;
            s.view.seed++;
            policy_drain.balance(&s.view, &s.plan);
            if (s.plan.num_moves == 0) {
                break;
            }
            assert_true(s.plan.num_moves <= n);
            carry_out(&s);
            assert_true(potential(&s) < before);
            passes++;
        }
        assert_int_equal(passes, (k - (k + n - 1) / n + n - 1) / n);
    }
}

static void legacy_moves_one(void **state)
{
    static struct setting s;

    (void)state;
    setup(&s, 16, 32);
    policy_legacy.balance(&s.view, &s.plan);
    assert_int_equal(s.plan.num_moves, 1);
    setup(&s, 2, 1);
    policy_legacy.balance(&s.view, &s.plan);
    assert_int_equal(s.plan.num_moves, 0);
}

static void drain_counts_what_is_in_flight(void **state)
{
    static struct setting s;

    (void)state;
    setup(&s, 3, 3);
    s.cpus[1].in_flight = 2;
    policy_drain.balance(&s.view, &s.plan);
    assert_int_equal(s.plan.num_moves, 1);
    assert_int_equal(s.moves[0].to, 2);
    /* Not only the queue: a CPU that runs a thread is no target, an idle one is. */
    setup(&s, 3, 2);
    s.cpus[1].running = 1;
    policy_drain.balance(&s.view, &s.plan);
    assert_int_equal(s.plan.num_moves, 1);
    assert_int_equal(s.moves[0].to, 2);
}

static void drain_weighs_capacity(void **state)
{
    static struct setting s;
    uint32_t to[3] = {0};

    (void)state;
    setup(&s, 3, 12);
    s.cpus[1].capacity = POLICY_CAPACITY_FULL / 2;
    s.cpus[2].capacity = 0;
    for (uint32_t pass = 0; pass < 5; pass++) {
        policy_drain.balance(&s.view, &s.plan);
        for (uint32_t m = 0; m < s.plan.num_moves; m++) {
            to[s.moves[m].to]++;
        }
        carry_out(&s);
        s.view.num_threads = s.cpus[0].queued;
    }
    assert_int_equal(to[2], 0);
    assert_int_equal(to[1], 4); /* 8 : 4 as 1 : 1/2 */
}

static void drain_takes_the_cold_first(void **state)
{
    static struct setting s;

    (void)state;
    setup(&s, 2, 4); /* 3 queued: one or two to move */
    for (uint32_t i = 0; i < 3; i++) {
        s.threads[i].last_cpu = 0;
        s.threads[i].last_ran_ns = i == 1 ? 0 : NOW - 1000;
    }
    policy_drain.balance(&s.view, &s.plan);
    assert_true(s.plan.num_moves >= 1);
    assert_int_equal(s.moves[0].thread, 1);
}

/* Ties: each of the tied about equally often, whatever lies between them. */
static void ties_are_unbiased(void **state)
{
    static struct setting s;
    static const uint32_t tied[] = {3, 4, 15};
    uint32_t drain_hits[16] = {0};
    uint32_t flow_hits[16] = {0};
    const uint32_t draws = 3000;

    (void)state;
    for (uint32_t i = 0; i < draws; i++) {
        int32_t cpu;

        setup(&s, 16, 2);
        for (uint32_t c = 1; c < 16; c++) {
            s.cpus[c].running = c != tied[0] && c != tied[1] && c != tied[2];
        }
        set_idle(&s);
        s.view.seed = i * 0x1234567ull;
        policy_drain.balance(&s.view, &s.plan);
        assert_int_equal(s.plan.num_moves, 1);
        drain_hits[s.moves[0].to]++;
        cpu = policy_flow.place_wake(&s.view);
        assert_in_range(cpu, 0, 15);
        flow_hits[cpu]++;
    }
    for (size_t t = 0; t < 3; t++) { /* a third each, within five standard deviations (26) */
        assert_in_range(drain_hits[tied[t]], draws / 3 - 130, draws / 3 + 130);
        assert_in_range(flow_hits[tied[t]], draws / 3 - 130, draws / 3 + 130);
    }
}

/* ---- flow ---- */

static void flow_wakes_at_home_if_idle(void **state)
{
    static struct setting s;

    (void)state;
    setup(&s, 8, 1);
    s.threads[0].last_cpu = 5;
    assert_int_equal(policy_flow.place_wake(&s.view), 5);
    s.cpus[5].in_flight = 1; /* somebody is on the way there */
    set_idle(&s);
    assert_int_not_equal(policy_flow.place_wake(&s.view), 5);
    s.masks[0] = 1ull << 5; /* nowhere else to go */
    assert_int_equal(policy_flow.place_wake(&s.view), 5);
}

/* With a receive path on every second CPU or more a thread goes where its packets arrive; a lone path is kept clear. */
static void flow_wakes_where_packets_arrive(void **state)
{
    static struct setting s;

    (void)state;
    setup(&s, 8, 1);
    s.threads[0].last_cpu = 5;
    s.threads[0].receive_cpu = 3;
    s.view.num_threads = 1;
    s.view.receive_cpus = 3;
    assert_int_equal(policy_flow.place_wake(&s.view), 5);
    s.view.receive_cpus = 4;
    assert_int_equal(policy_flow.place_wake(&s.view), 3);
    assert_int_equal(policy_flow.place_new(&s.view), 3);
    s.cpus[3].running = 1; /* busy: where it last ran */
    set_idle(&s);
    assert_int_equal(policy_flow.place_wake(&s.view), 5);
    for (uint32_t c = 0; c < 8; c++) {
        s.cpus[c].running = 1; /* all busy: where the packets arrive, to be pulled from there */
    }
    set_idle(&s);
    assert_int_equal(policy_flow.place_wake(&s.view), 3);
    s.masks[0] = 1ull << 6; /* not allowed there */
    assert_int_not_equal(policy_flow.place_wake(&s.view), 3);
    s.cpus[3].capacity = 0; /* parked */
    s.masks[0] = 0xff;
    assert_int_equal(policy_flow.place_wake(&s.view), 5);
}

static void flow_never_pulls_the_last(void **state)
{
    static struct setting s;
    struct policy_pull pull;

    (void)state;
    setup(&s, 4, 1);
    s.view.self = 3;
    policy_flow.idle_pull(&s.view, &pull);
    assert_int_equal(pull.from, POLICY_NO_CPU);
    s.cpus[1].queued = 1; /* about to run it */
    policy_flow.idle_pull(&s.view, &pull);
    assert_int_equal(pull.from, POLICY_NO_CPU);
    s.cpus[1].running = 1;
    policy_flow.idle_pull(&s.view, &pull);
    assert_int_equal(pull.from, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_possible),
        cmocka_unit_test(registry_is_sound),
        cmocka_unit_test(drain_meets_its_bound),
        cmocka_unit_test(legacy_moves_one),
        cmocka_unit_test(drain_counts_what_is_in_flight),
        cmocka_unit_test(drain_weighs_capacity),
        cmocka_unit_test(drain_takes_the_cold_first),
        cmocka_unit_test(ties_are_unbiased),
        cmocka_unit_test(flow_wakes_at_home_if_idle),
        cmocka_unit_test(flow_wakes_where_packets_arrive),
        cmocka_unit_test(flow_never_pulls_the_last),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
