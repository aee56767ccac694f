/* The parts of core/kern/obs that do not touch the machine. */
#include "tests/unit/fake/cmocka_all.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/kern/obs/app_locks.h"
#include "core/kern/obs/query.h"
#include "core/kern/obs/unwind.h"
#include "core/kern/obs/waits.h"
#include "core/mm/mm.h"

void *kmalloc(size_t bytes)
{
    return malloc(bytes);
}

void kfree(void *p)
{
    free(p);
}

/* ---- parameters ---- */

static const char *const modes[] = { "oncpu", "offcpu", NULL };
static u64 ms, hz, mode, set;

static const struct query_param params[] = {
    { "seconds", QUERY_MILLI, 1, 60000, NULL, &ms },
    { "hz", QUERY_NUMBER, 1, 10000, NULL, &hz },
    { "mode", QUERY_CHOICE, 0, 0, modes, &mode },
    { "cat", QUERY_SET, 0, 0, modes, &set },
};

/* NULL: taken; else the text of the 400. */
static char *parse(const char *name, const char *value)
{
    static char text[512];
    struct http_request request = { .num_params = 1, .params = { { name, value } } };
    struct http_answer answer = { .status = 200 };
    bool good = query_parse(&request, params, 4, &answer);
    assert_int_equal(good, answer.status == 200);
    snprintf(text, sizeof(text), "%s", answer.body.data ? answer.body.data : "");
    text_free(&answer.body);
    return good ? NULL : text;
}

static void parameters(void **state)
{
    (void)state;
    assert_null(parse("seconds", "0.25"));
    assert_int_equal(ms, 250);
    assert_null(parse("seconds", "60"));
    assert_int_equal(ms, 60000);
    assert_null(parse("seconds", ".5"));
    assert_int_equal(ms, 500);
    assert_null(parse("mode", "offcpu"));
    assert_int_equal(mode, 1);
    assert_null(parse("cat", "offcpu,oncpu"));
    assert_int_equal(set, 3);
    assert_null(parse("cat", "all"));
    assert_int_equal(set, 3);
    static const char *const bad[][2] = {
        { "seconds", "" },      { "seconds", "0" },   { "seconds", "60.001" }, { "seconds", "1.2345" }, { "seconds", "-1" },
        { "seconds", "1e3" },   { "seconds", "." },   { "seconds", "0x10" },   { "seconds", "99999999999999999999" },
        { "hz", "0" },          { "hz", "10001" },    { "hz", "1.5" },         { "mode", "both" },      { "mode", "" },
        { "cat", "oncpu,cpu" }, { "cat", "" },        { "colour", "1" },       { "", "" },
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_non_null(parse(bad[i][0], bad[i][1]));
    }
    assert_string_equal(parse("hz", "0"), "hz=0: wanted is hz=1..10000\n");
    assert_string_equal(parse("seconds", "x"), "seconds=x: wanted is seconds=0.001..60\n");
    assert_string_equal(parse("a", "b"), "a=b: no such parameter; there are seconds=0.001..60 hz=1..10000 mode=oncpu|offcpu "
                                         "cat=oncpu,offcpu\n");
}

/* What a client sends is shown cut. */
static void parameters_are_cut(void **state)
{
    char value[4000];
    (void)state;
    memset(value, 'v', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    assert_true(strlen(parse("hz", value)) < 100);
}

/* ---- call instructions ---- */

static bool is_call(const char *hex, i32 *target)
{
    u8 bytes[UNWIND_CALL_BYTES] = { 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90 };
    size_t n = strlen(hex) / 2;
    for (size_t i = 0; i < n; i++) {
        unsigned value;
        sscanf(hex + 2 * i, "%2x", &value);
        bytes[UNWIND_CALL_BYTES - n + i] = (u8)value;
    }
    return unwind_is_call(bytes, target);
}

static void calls(void **state)
{
    i32 target;
    (void)state;
    assert_true(is_call("e8fbffffff", &target)); /* call to itself */
    assert_int_equal(target, -5);
    static const char *const indirect[] = {
        "ffd0",           /* call *%rax */
        "41ffd4",         /* call *%r12 */
        "ff5308",         /* call *8(%rbx) */
        "ff9380000000",   /* call *0x80(%rbx) */
        "ff1500000000",   /* call *0(%rip) */
        "ff542408",       /* call *8(%rsp) */
        "ff942400010000", /* call *0x100(%rsp) */
        "ff10",           /* call *(%rax) */
        "ff1424",         /* call *(%rsp) */
    };
    for (size_t i = 0; i < ARRAY_SIZE(indirect); i++) {
        assert_true(is_call(indirect[i], &target));
        assert_int_equal(target, 0);
    }
    static const char *const others[] = { "90", "c3", "ffe0" /* jmp *%rax */, "ff30" /* push (%rax) */, "ff0424", "eb00", "e9fbffffff" };
    for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
        assert_false(is_call(others[i], &target));
    }
}

/* ---- stacks of applications ---- */

#define STACK_BASE 0x7f0000001000ull
#define CODE_BASE 0x400000ull

#define CODE_BYTES 0x4000u

/* A stack of 64 words; and code in which an address that is a multiple of 16 may follow a direct call. Functions: A, B and the
 * library's OUTER and INNER. */
enum { A = 0, B = 0x1000, OUTER = 0x2000, INNER = 0x3000 };
static u64 stack[64];
static u64 called[CODE_BYTES / 16]; /* by 16 bytes of code: where the call in front of it goes to, 0: no call there */

static bool read_word(void *arg, u64 addr, u64 *value)
{
    (void)arg;
    if (addr < STACK_BASE || addr >= STACK_BASE + sizeof(stack) || addr % 8) {
        return false;
    }
    *value = stack[(addr - STACK_BASE) / 8];
    return true;
}

static bool read_code(void *arg, u64 pc, u8 before[UNWIND_CALL_BYTES])
{
    (void)arg;
    memset(before, 0x90, UNWIND_CALL_BYTES);
    u64 i = (pc - CODE_BASE) / 16;
    if (pc % 16 == 0 && i < ARRAY_SIZE(called) && called[i]) {
        i32 distance = (i32)(called[i] - pc);
        before[2] = 0xe8;
        memcpy(before + 3, &distance, sizeof(distance));
    }
    return true;
}

static const struct unwind_memory memory = { read_word, read_code, NULL, CODE_BASE, CODE_BASE + CODE_BYTES };

static u64 at(u32 word)
{
    return STACK_BASE + word * 8;
}

/* A return address, behind a call of `function`. */
static u64 code(u32 offset, u32 function)
{
    called[offset / 16] = CODE_BASE + function;
    return CODE_BASE + offset;
}

static int reset_stack(void **state)
{
    (void)state;
    memset(stack, 0, sizeof(stack));
    memset(called, 0, sizeof(called));
    return 0;
}

/* A has called B, where the pc is; B's frame is at word 4. */
static void frame_pointers(void **state)
{
    u64 pcs[8];
    (void)state;
    stack[2] = code(0x60, B); /* stale, in B's own frame: must not be seen */
    stack[4] = at(8);
    stack[5] = code(A + 0x140, B);
    stack[8] = at(12);
    stack[9] = code(A + 0x20, A);
    size_t n = unwind_app(&memory, CODE_BASE + B + 18, at(0), at(4), pcs, 8);
    assert_int_equal(n, 3);
    assert_int_equal(pcs[0], CODE_BASE + B + 18);
    assert_int_equal(pcs[1], CODE_BASE + A + 0x140);
    assert_int_equal(pcs[2], CODE_BASE + A + 0x20);
}

/* The innermost functions keep no frame; their caller's frame pointer is still in the register. */
static void library_leaves_register(void **state)
{
    u64 pcs[8];
    (void)state;
    stack[0] = code(A + 0x40, A);          /* stale: A does not lead to the pc */
    stack[1] = code(OUTER + 0x100, INNER);
    stack[3] = code(B + 0x120, OUTER);
    stack[10] = at(14);
    stack[11] = code(A + 0x30, B);
    size_t n = unwind_app(&memory, CODE_BASE + INNER + 8, at(0), at(10), pcs, 8);
    assert_int_equal(n, 4);
    assert_int_equal(pcs[1], CODE_BASE + OUTER + 0x100);
    assert_int_equal(pcs[2], CODE_BASE + B + 0x120);
    assert_int_equal(pcs[3], CODE_BASE + A + 0x30);
}

/* The library uses the register for something else, and has saved the frame pointer on the stack. */
static void library_uses_register(void **state)
{
    u64 pcs[8];
    (void)state;
    stack[1] = at(12); /* B's frame pointer */
    stack[3] = code(B + 0x120, OUTER);
    stack[13] = code(A + 0x30, B);
    size_t n = unwind_app(&memory, CODE_BASE + OUTER + 16, at(0), 7, pcs, 8);
    assert_int_equal(n, 3);
    assert_int_equal(pcs[1], CODE_BASE + B + 0x120);
    assert_int_equal(pcs[2], CODE_BASE + A + 0x30);
}

/* Whatever a stack holds: no endless walk, no more than max. */
static void random_stacks(void **state)
{
    u64 pcs[UNWIND_MAX];
    (void)state;
    srand(1);
    for (int round = 0; round < 2000; round++) {
        for (u32 i = 0; i < ARRAY_SIZE(stack); i++) {
            int kind = rand() % 4;
            stack[i] = kind == 0 ? at((u32)rand() % 64) : kind == 1 ? CODE_BASE + (u32)(rand() % (CODE_BYTES / 16)) * 16 : (u64)rand();
        }
        for (u32 i = 0; i < ARRAY_SIZE(called); i++) {
            called[i] = rand() % 2 ? CODE_BASE + (u32)(rand() % 4) * 0x1000 : 0;
        }
        size_t max = 1 + (u32)rand() % UNWIND_MAX;
        size_t n = unwind_app(&memory, CODE_BASE + (u32)rand() % CODE_BYTES, STACK_BASE + (u32)rand() % 600, at((u32)rand() % 70), pcs, max);
        assert_true(n >= 1 && n <= max);
    }
}

/* ---- waits ---- */

static bool is_thread(u32 id, void *arg)
{
    (void)arg;
    return id >= 20 && id < 30;
}

static void owners(void **state)
{
    (void)state;
    const u32 waiters = 0x80000000u;
    struct {
        struct futex_words words;
        const char *what;
        u32 owner;
    } cases[] = {
        { { 0, 16 | waiters, { 0 } }, "mutex", 0 },              /* musl, normal: keeps no owner */
        { { 1, 21 | waiters, { 0 } }, "mutex", 21 },             /* musl, recursive */
        { { 2, 22, { 0 } }, "mutex", 22 },                       /* musl, error-checking */
        { { 2 | 128, 23 | waiters, { 0 } }, "mutex", 23 },
        { { 2, 99 | waiters, { 0 } }, "futex", 0 },              /* no such thread */
        { { 0x12345, 2, { 0, 24, 1, 0 } }, "mutex", 24 },        /* glibc */
        { { 0x12345, 2, { 0, 99, 1, 0 } }, "futex", 0 },
        { { 0x12345, 2, { 0, 24, 1, 0x12345 } }, "futex", 0 },   /* no kind of mutex */
        { { 0, 0, { 0 } }, "futex", 0 },
        { { 0xffffffff, 0xffffffff, { 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff } }, "futex", 0 },
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct wait_target t = wait_judge(&cases[i].words, is_thread, NULL);
        assert_string_equal(t.what, cases[i].what);
        assert_int_equal(t.owner, cases[i].owner);
    }
}

static void cycles(void **state)
{
    enum { NONE = 0xffffffff };
    (void)state;
    u32 cycle[8];
    const u32 chain[] = { 1, 2, 3, NONE };
    assert_int_equal(wait_find_cycles(4, chain, cycle), 0);
    assert_int_equal(cycle[0] + cycle[1] + cycle[2] + cycle[3], 0);
    /* 0 <-> 1; 2 waits for 0 and is no part; 3 -> 4 -> 5 -> 3; 6 on its own. */
    const u32 two[] = { 1, 0, 0, 4, 5, 3, NONE };
    assert_int_equal(wait_find_cycles(7, two, cycle), 2);
    const u32 want[] = { 1, 1, 0, 2, 2, 2, 0 };
    assert_memory_equal(cycle, want, sizeof(want));
    const u32 self[] = { 0 };
    assert_int_equal(wait_find_cycles(1, self, cycle), 1);
    assert_int_equal(wait_find_cycles(0, self, cycle), 0);
}

/* Against the definition: a node is in a cycle if it comes back to itself. */
static void random_cycles(void **state)
{
    (void)state;
    srand(2);
    for (int round = 0; round < 5000; round++) {
        u32 next[12], cycle[12], n = 1 + (u32)rand() % 12;
        for (u32 i = 0; i < n; i++) {
            next[i] = rand() % 3 ? (u32)rand() % n : 0xffffffff;
        }
        wait_find_cycles(n, next, cycle);
        for (u32 i = 0; i < n; i++) {
            u32 node = next[i];
            for (u32 steps = 0; steps < n && node != 0xffffffff && node != i; steps++) {
                node = next[node];
            }
            assert_int_equal(cycle[i] != 0, node == i);
        }
    }
}

/* ---- published locks ---- */

static void published_tables(void **state)
{
    struct app_lock_table t;
    (void)state;
    assert_true(app_locks_parse("shard at=0x7f0000000000 n=64 stride=1280 ptr=40 acquired=0 contended=8 wait=24 hold=688 "
                                "buckets=160 steps=4", &t));
    assert_string_equal(t.name, "shard");
    assert_int_equal(t.n, 64);
    assert_int_equal(t.ptr, 40);
    assert_int_equal(t.hold, 688);
    assert_true(app_locks_parse("a at=65536 n=1 stride=8 acquired=0 contended=8 wait=24 hold=688 buckets=160 steps=4", &t));
    assert_true(t.ptr == UINT64_MAX);
    assert_true(app_locks_parse("shard", &t));
    assert_int_equal(t.n, 0);
    static const char *const bad[] = {
        "",
        " at=65536",
        "a\"b at=65536 n=1 stride=8 acquired=0 contended=8 wait=24 hold=688 buckets=160 steps=4",
        "a at=65536 n=1 stride=8 acquired=0 contended=8 wait=24 hold=688 buckets=160",         /* steps missing */
        "a at=65536 n=1 stride=8 acquired=0 contended=8 wait=24 hold=688 buckets=160 steps=3", /* no power of two */
        "a at=65536 n=1 stride=8 acquired=0 contended=8 wait=24 hold=688 buckets=257 steps=4",
        "a at=65536 n=65537 stride=8 acquired=0 contended=8 wait=24 hold=688 buckets=160 steps=4",
        "a at=1 n=1 stride=8 acquired=0 contended=8 wait=24 hold=688 buckets=160 steps=4",
        "a at=0x7ffffffff000 n=65536 stride=1048576 acquired=0 contended=8 wait=24 hold=688 buckets=160 steps=4",
        "a at=65536 n=-1 stride=8 acquired=0 contended=8 wait=24 hold=688 buckets=160 steps=4",
        "a colour=1",
        "a at",
        "name-that-is-longer-than-it-may-be at=65536",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        assert_false(app_locks_parse(bad[i], &t));
    }
}

/* The bucket that a value falls into, by the definition in app_locks.h. */
static u32 bucket_of(u64 value, u32 steps)
{
    u32 shift = (u32)__builtin_ctz(steps);
    if (value < steps) {
        return (u32)value;
    }
    u32 power = 63 - (u32)__builtin_clzll(value);
    return (power - shift + 1) * steps + (u32)(value >> (power - shift) & (steps - 1));
}

static void quantiles(void **state)
{
    (void)state;
    for (u32 steps = 1; steps <= 8; steps *= 2) {
        struct app_hist h = { 0 };
        for (u64 value = 1; value <= 1000; value++) {
            h.n++;
            h.sum += value;
            h.max = value;
            h.count[bucket_of(value, steps)]++;
        }
        u64 median = app_hist_quantile(&h, APP_LOCKS_BUCKETS, steps, 500);
        u64 p99 = app_hist_quantile(&h, APP_LOCKS_BUCKETS, steps, 990);
        assert_true(median >= 500 && median <= 500 + 500 / steps + 1);
        assert_true(p99 >= 990 && p99 <= 1000);
        assert_int_equal(app_hist_quantile(&h, APP_LOCKS_BUCKETS, steps, 1000), 1000);
    }
    struct app_hist empty = { 0 };
    assert_int_equal(app_hist_quantile(&empty, APP_LOCKS_BUCKETS, 4, 990), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters),
        cmocka_unit_test(parameters_are_cut),
        cmocka_unit_test(calls),
        cmocka_unit_test_setup(frame_pointers, reset_stack),
        cmocka_unit_test_setup(library_leaves_register, reset_stack),
        cmocka_unit_test_setup(library_uses_register, reset_stack),
        cmocka_unit_test_setup(random_stacks, reset_stack),
        cmocka_unit_test(owners),
        cmocka_unit_test(cycles),
        cmocka_unit_test(random_cycles),
        cmocka_unit_test(published_tables),
        cmocka_unit_test(quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
