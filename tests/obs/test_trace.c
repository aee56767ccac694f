/* The event rings, their merging and their export, on the host: small rings, so that they overflow. */
#include "tests/unit/fake/cmocka_all.h"

#include <string.h>

#include "core/base/trace.h"
#include "core/kern/obs/stacks.h"
#include "core/kern/obs/trace_json.h"
#include "core/mm/mm.h"
#include "tests/unit/fake/fake_arch.h"

#define CPUS 3
#define RING 64

void *kmalloc(size_t bytes)
{
    return malloc(bytes);
}

void *kzalloc(size_t bytes)
{
    return calloc(1, bytes);
}

void kfree(void *p)
{
    free(p);
}

const char *wait_kind_name(enum wait_kind kind)
{
    (void)kind;
    return "futex";
}

const char *const migrate_reason_names[NUM_MIGRATE_REASONS] = { "new", "wake", "balance", "pull", "affinity", "park" };

u32 sched_num_cpus(void)
{
    return CPUS;
}

static void *zeroed(size_t bytes)
{
    return calloc(1, bytes);
}

static int setup(void **state)
{
    (void)state;
    fake_reset_cpus();
    fake_clock_now = 1000;
    if (!trace_ready()) {
        assert_int_equal(trace_init(CPUS, RING, zeroed), 0);
    }
    return 0;
}

/* One event a nanosecond, on CPUs by the seed. */
static void record(u64 *random, u32 events)
{
    for (u32 i = 0; i < events; i++) {
        fake_cpu_set((u32)test_below(random, CPUS));
        fake_clock_now++;
        trace(TRACE_CAT_SCHED, TRACE_WAKE, 1, 7, fake_clock_now, i);
    }
}

/* ---- merging ---- */

static void merged_in_order(void **state)
{
    u64 random = test_seed(1);
    struct trace_merge m;
    struct trace_event e;
    (void)state;
    trace_start(TRACE_CAT_SCHED, true);
    record(&random, RING);
    trace_stop();
    trace(TRACE_CAT_SCHED, TRACE_WAKE, 1, 7, 0, 0); /* off: leaves nothing */
    trace_merge_begin(&m, CPUS, 0, true);
    assert_int_equal(m.recorded, RING);
    assert_int_equal(m.lost, 0);
    for (u64 want = 1001; want <= 1000 + RING; want++) {
        assert_true(trace_merge_next(&m, &e));
        assert_int_equal(e.time_ns, want);
        assert_int_equal(e.a, want);
    }
    assert_false(trace_merge_next(&m, &e));
}

/* Where one ring lacks events, none are shown of the others: what is shown is without gaps. */
static void window_without_gaps(void **state)
{
    u64 random = test_seed(2);
    (void)state;
    for (u32 round = 0; round < 200; round++) {
        bool stop = round % 2;
        u32 events = 1 + (u32)test_below(&random, 6 * RING);
        u64 from = fake_clock_now + 1;
        struct trace_merge m;
        struct trace_event e;
        trace_start(TRACE_CAT_SCHED, stop);
        record(&random, events);
        trace_stop();
        trace_merge_begin(&m, CPUS, from, stop);
        assert_int_equal(m.recorded + (stop ? m.lost : 0), events);
        u64 last = 0, n = 0;
        while (trace_merge_next(&m, &e)) {
            assert_true(last == 0 || e.time_ns == last + 1);
            last = e.time_ns;
            n++;
        }
        assert_true(n > 0 && n <= events);
        if (m.lost == 0) {
            assert_int_equal(n, events);
        } else {
            /* The end that was to be kept is kept. */
            assert_int_equal(stop ? last - n + 1 : last, stop ? from : from + events - 1);
        }
    }
}

/* Events that were recorded before the start are not shown: a ring may hold some when a trace begins. */
static void leftovers(void **state)
{
    u64 random = test_seed(3);
    struct trace_merge m;
    struct trace_event e;
    (void)state;
    trace_start(TRACE_CAT_SCHED, true);
    record(&random, 10);
    u64 start = fake_clock_now + 1;
    record(&random, 5);
    trace_stop();
    trace_merge_begin(&m, CPUS, start, true);
    for (u32 i = 0; i < 5; i++) {
        assert_true(trace_merge_next(&m, &e));
        assert_true(e.time_ns >= start);
    }
    assert_false(trace_merge_next(&m, &e));
}

/* ---- export ---- */

static struct {
    char text[1 << 20];
    size_t n, limit;
} sent;

static bool collect(void *arg, const char *data, size_t n)
{
    (void)arg;
    if (sent.n + n > sent.limit) {
        return false;
    }
    memcpy(sent.text + sent.n, data, n);
    sent.n += n;
    sent.text[sent.n] = '\0';
    return true;
}

/* One JSON value; advances *s behind it. False: not JSON. */
static bool json_value(const char **s);

static void blanks(const char **s)
{
    while (**s == ' ' || **s == '\n') {
        (*s)++;
    }
}

static bool json_string(const char **s)
{
    if (*(*s)++ != '"') {
        return false;
    }
    for (; **s != '"'; (*s)++) {
        if ((unsigned char)**s < ' ') {
            return false;
        }
        if (**s == '\\') {
            (*s)++;
            if (**s == 'u') {
                *s += 4;
            } else if (**s != '"' && **s != '\\') {
                return false;
            }
        }
    }
    (*s)++;
    return true;
}

static bool json_list(const char **s, char end, bool object)
{
    (*s)++;
    blanks(s);
    if (**s == end) {
        (*s)++;
        return true;
    }
    for (;;) {
        blanks(s);
        if (object) {
            if (!json_string(s) || *(*s)++ != ':') {
                return false;
            }
        }
        if (!json_value(s)) {
            return false;
        }
        blanks(s);
        char c = *(*s)++;
        if (c == end) {
            return true;
        }
        if (c != ',') {
            return false;
        }
    }
}

static bool json_value(const char **s)
{
    blanks(s);
    switch (**s) {
    case '{':
        return json_list(s, '}', true);
    case '[':
        return json_list(s, ']', false);
    case '"':
        return json_string(s);
    default: {
        size_t n = strspn(*s, "-0123456789.");
        *s += n;
        return n > 0;
    }
    }
}

static bool is_json(const char *s)
{
    bool good = json_value(&s);
    blanks(&s);
    return good && *s == '\0';
}

static u32 count(const char *needle)
{
    u32 n = 0;
    for (const char *s = sent.text; (s = strstr(s, needle)) != NULL; s++) {
        n++;
    }
    return n;
}

static void export(u64 started, u32 table, size_t limit)
{
    static const char *const words[] = { "sched", NULL };
    static struct out out;
    struct trace_merge m;
    struct trace_about about = { .started_ns = started, .ended_ns = fake_clock_now, .categories = 1, .category_words = words,
                                 .policy = "drain", .sched = true };
    struct trace_threads *threads = trace_threads_create(table);
    sent.n = 0;
    sent.limit = limit;
    out_init(&out, collect, NULL);
    trace_merge_begin(&m, CPUS, started, true);
    trace_json(&out, &m, threads, &about);
    out_flush(&out);
    trace_threads_free(threads);
}

static void on(u32 cpu, u64 ns)
{
    fake_cpu_set(cpu);
    fake_clock_now = ns;
}

/* A wakes B on another CPU, which runs, blocks, and is migrated; every kind of event is there once. */
static void a_short_story(void **state)
{
    (void)state;
    fake_clock_now = 10000;
    trace_start(TRACE_CAT_ALL, true);
    trace_text(TRACE_CAT_SCHED, TRACE_THREAD, 11, "a \"quoted\\ name");
    trace_text(TRACE_CAT_SCHED, TRACE_THREAD, 12, "b");
    on(0, 10100);
    trace(TRACE_CAT_SCHED, TRACE_SWITCH, TRACE_SWITCH_ARG(1, 0, 0), 11, 0, 0);
    on(0, 10200);
    trace(TRACE_CAT_SCHED, TRACE_WAKE, 1, 12, 11, 0);
    trace(TRACE_CAT_IPI, TRACE_IPI, 1, 0, 0, 0);
    on(1, 10300);
    trace(TRACE_CAT_IPI, TRACE_IPI_TAKEN, 0, 0, 0, 0);
    trace(TRACE_CAT_QUEUE, TRACE_ENQUEUE, 0, 12, 1, 0);
    on(1, 10400);
    trace(TRACE_CAT_SCHED, TRACE_SWITCH, TRACE_SWITCH_ARG(1, 0, 0), 12, 0, 0);
    on(1, 10500);
    trace(TRACE_CAT_FUTEX, TRACE_FUTEX_WAIT, 0, 12, 0x1234, 0);
    on(1, 10600);
    trace(TRACE_CAT_SCHED, TRACE_SWITCH, TRACE_SWITCH_ARG(TRACE_STATE_BLOCKED, WAIT_FUTEX, 0), 0, 12, 0x1234);
    on(0, 10700);
    trace(TRACE_CAT_FUTEX, TRACE_FUTEX_WAKE, 0, 11, 0x1234, 1);
    trace(TRACE_CAT_SCHED, TRACE_WAKE, 2, 12, 11, 0);
    trace(TRACE_CAT_SCHED, TRACE_MIGRATE, MIGRATE_WAKE, 12, 1, 2);
    trace(TRACE_CAT_LOCK, TRACE_LOCK_WAIT, 0, 0, 50, 0x99);
    trace(TRACE_CAT_NET, TRACE_RX, 0, 0, 3, 1);
    trace(TRACE_CAT_NET, TRACE_TX, 0, 0, 2, 0);
    trace(TRACE_CAT_SCHED, TRACE_BALANCE, 1, 0, 4, 2);
    trace_text(TRACE_CAT_SCHED, TRACE_MARK, 11, "begin c=16 and more");
    on(2, 10800);
    trace(TRACE_CAT_IDLE, TRACE_IDLE_EXIT, 0, 0, 500, 0);
    trace(TRACE_CAT_SCHED, TRACE_SWITCH, TRACE_SWITCH_ARG(1, 0, 0), 12, 0, 0);
    on(0, 10900);
    trace(TRACE_CAT_SCHED, TRACE_SWITCH, TRACE_SWITCH_ARG(TRACE_STATE_DEAD, 0, 0), 0, 11, 0);
    trace_stop();
    fake_clock_now = 11000;
    export(10000, 2048, sizeof(sent.text) - 1);
    assert_true(is_json(sent.text));
    static const char *const once[] = {
        "\"name\":\"a \\\"quoted\\\\ name\"}",
        "\"tid\":12,\"ts\":0.600,\"dur\":0.100,\"name\":\"blocked: futex\",\"args\":{\"object\":\"0x1234\"}",
        "\"tid\":12,\"ts\":0.400,\"dur\":0.200,\"name\":\"running\",\"args\":{\"cpu\":1}",
        "\"tid\":12,\"ts\":0.700,\"dur\":0.100,\"name\":\"runnable\"",
        "\"tid\":12,\"ts\":0.800,\"dur\":0.200,\"name\":\"running\",\"args\":{\"cpu\":2}",
        "\"tid\":11,\"ts\":0.100,\"dur\":0.800,\"name\":\"running\",\"args\":{\"cpu\":0}",
        "\"name\":\"migrate: wake\",\"args\":{\"from\":1,\"to\":2}",
        "\"name\":\"spin: lock\"",
        "\"name\":\"waiting for work\"",
        "\"name\":\"begin c=16 and m\"",
        "\"candidates\":4,\"planned\":2,\"moved\":1",
        "\"address\":\"0x1234\",\"woken\":1",
    };
    for (size_t i = 0; i < ARRAY_SIZE(once); i++) {
        if (count(once[i]) != 1) {
            fail_msg("%u times: %s\n%s", count(once[i]), once[i], sent.text);
        }
    }
    assert_int_equal(count("\"ph\":\"s\""), 3); /* two wakeups, one interrupt */
    assert_int_equal(count("\"ph\":\"f\""), 3);
}

/* Whatever the rings hold, the text is JSON; with more threads than the table takes, their events stay on the CPUs. */
static void random_events(void **state)
{
    u64 random = test_seed(4);
    (void)state;
    for (u32 round = 0; round < 200; round++) {
        u64 start = fake_clock_now;
        trace_start(TRACE_CAT_ALL, true);
        for (u32 i = 0; i < 3 * RING; i++) {
            on((u32)test_below(&random, CPUS), fake_clock_now + test_below(&random, 100));
            u64 head = test_random(&random);
            head = (head & 0xffffffffffff0000ull & ~(0xfff0ull << 32)) | test_below(&random, NUM_TRACE_TYPES + 3);
            trace_record(head, test_below(&random, 40), test_random(&random));
        }
        trace_stop();
        export(start, round % 2 ? 16 : 1024, sizeof(sent.text) - 1);
        assert_true(is_json(sent.text));
    }
}

/* A reader that goes away ends the export. */
static void lost_reader(void **state)
{
    u64 random = test_seed(5);
    (void)state;
    trace_start(TRACE_CAT_SCHED, true);
    record(&random, 2 * RING);
    trace_stop();
    export(0, 1024, 100);
    assert_int_equal(sent.n, 0);
}

/* ---- stack tables ---- */

static u64 total;

static void add_up(const u64 *words, u32 n, const struct stack_entry *sums, void *arg)
{
    (void)arg;
    assert_int_equal(n, STACK_HEAD + 1);
    assert_int_equal(sums->count, words[STACK_HEAD] % 7 + 1);
    total += sums->sum;
}

/* What several CPUs have of one stack comes out once; what finds no place is counted. */
static void stacks_of_all_cpus(void **state)
{
    struct stack_losses lost;
    u64 added = 0;
    (void)state;
    assert_int_equal(stacks_start(), 0);
    for (u64 stack = 1; stack <= 500; stack++) {
        u64 words[STACK_MAX] = { [STACK_HEAD] = stack };
        for (u64 i = 0; i <= stack % 7; i++) {
            fake_cpu_set((u32)(i % CPUS));
            struct stack_table *t = stacks_get();
            assert_non_null(t);
            stack_add(t, words, STACK_HEAD + 1, 10);
            stacks_put();
            added += 10;
        }
    }
    stacks_stop();
    assert_null(stacks_get());
    stacks_losses(&lost);
    total = 0;
    stacks_finish(add_up, NULL);
    assert_int_equal(total, added);
    assert_int_equal(lost.count, 0);
}

static void full_table(void **state)
{
    struct stack_losses lost;
    (void)state;
    assert_int_equal(stacks_start(), 0);
    fake_cpu_set(0);
    for (u64 i = 0; i < 10 * STACK_SLOTS; i++) {
        u64 words[STACK_MAX] = { [STACK_HEAD] = i };
        stack_add(stacks_get(), words, STACK_MAX, 3);
        stacks_put();
    }
    stacks_stop();
    stacks_losses(&lost);
    assert_true(lost.count >= 9 * STACK_SLOTS && lost.sum == 3 * lost.count);
    stacks_finish(NULL, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(merged_in_order, setup), cmocka_unit_test_setup(window_without_gaps, setup),
        cmocka_unit_test_setup(leftovers, setup),       cmocka_unit_test_setup(a_short_story, setup),
        cmocka_unit_test_setup(random_events, setup),   cmocka_unit_test_setup(lost_reader, setup),
        cmocka_unit_test_setup(stacks_of_all_cpus, setup), cmocka_unit_test_setup(full_table, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
