/* Log lines and panics as they appear on the console. */
#include <pthread.h>

#include "core/base/log.h"
#include "core/base/param.h"
#include "core/base/spinlock.h"
#include "core/base/string.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/fake/fake_arch.h"

static int set_up(void **state __unused)
{
    fake_reset_cpus();
    fake_cpu_set(3);
    fake_clock_now = 1234567890ull;
    fake_console_clear();
    log_threshold = LOG_INFO;
    panic_extra = NULL;
    panic_describe_thread = NULL;
    panic_app_symbol = NULL;
    return 0;
}

static void lines(void **state __unused)
{
    log_info("hello %d", 5);
    log_warn("careful");
    log_error("bad");
    log_debug("not shown");
    log_threshold = LOG_DEBUG;
    log_debug("shown");
    log_threshold = LOG_ERROR;
    log_warn("not shown");
    log_raw("raw\n", 4);
    assert_string_equal(fake_console_text(), "[    1.234567 c3] hello 5\n"
                                             "[    1.234567 c3] warning: careful\n"
                                             "[    1.234567 c3] error: bad\n"
                                             "[    1.234567 c3] debug: shown\n"
                                             "raw\n");
}

static void long_lines_are_cut(void **state __unused)
{
    char text[2 * LOG_LINE_MAX];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    log_info("%s", text);
    size_t len = strlen(fake_console_text());
    assert_int_equal(len, LOG_LINE_MAX + 1);
    assert_string_equal(fake_console_text() + len - 5, "x...\n");
    fake_console_clear();
    text[LOG_LINE_MAX - strlen("[    1.234567 c3] ")] = '\0'; /* the longest that fits */
    log_info("%s", text);
    assert_int_equal(strlen(fake_console_text()), LOG_LINE_MAX + 1);
    assert_null(strstr(fake_console_text(), "..."));
}

#define WRITERS 4
#define LINES   200

static void *writer(void *arg)
{
    fake_cpu_set((u32)(uintptr_t)arg);
    for (u32 i = 0; i < LINES; i++) {
        log_info("abcdefghijklmnopqrstuvwxyz");
    }
    return NULL;
}

static void lines_stay_whole(void **state __unused)
{
    pthread_t threads[WRITERS];
    for (u64 i = 0; i < WRITERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, writer, (void *)(uintptr_t)i), 0);
    }
    for (u32 i = 0; i < WRITERS; i++) {
        pthread_join(threads[i], NULL);
    }
    u32 n = 0;
    for (const char *p = fake_console_text(), *end; *p != '\0'; p = end + 1, n++) {
        end = strchr(p, '\n');
        assert_non_null(end);
        assert_true(end - p == 44 && strncmp(p + 18, "abcdefghijklmnopqrstuvwxyz", 26) == 0);
    }
    assert_int_equal(n, WRITERS * LINES);
}

/* ---- panics ---- */

static struct lock_class outer_class = {.name = "outer", .rank = RANK_NET, .irq = true};
static struct spinlock outer = SPINLOCK_INIT(&outer_class);

static void describe(char *buf, size_t n)
{
    str_copy(buf, "worker (7)", n);
}

static bool app_symbol(u64 pc, char *buf, size_t n)
{
    str_format(buf, n, "main+0x%llx", pc - APP_MIN);
    return true;
}

static void extra(void)
{
    log_error("tail of the trace");
}

static void plain_panic(void *arg __unused)
{
    panic_describe_thread = describe;
    panic_app_symbol = app_symbol;
    panic_extra = extra;
    spin_lock_irq(&outer);
    panic("it broke: %d", 42);
}

static void says_all(void **state __unused)
{
    const char *text = fake_expect_panic(plain_panic, NULL);
    static const char *const parts[] = {
        "panic on CPU 3: it broke: 42\n",
        "thread: worker (7)\n",
        "back trace:\n",
        "fake_symbol+0x234\n",
        "application: main+0x40\n",
        "locks held by this CPU:",
        "  outer (0x",
        "error: tail of the trace\n",
    };
    for (u32 i = 0; i < ARRAY_SIZE(parts); i++) {
        const char *found = strstr(text, parts[i]);
        if (found == NULL) {
            fail_msg("missing or out of order: %s in %s", parts[i], text);
        }
        text = found;
    }
}

static void failed_assertion(void *arg __unused)
{
    volatile int one = 1;
    ASSERT(one == 2);
}

static void nested(char *buf __unused, size_t n __unused)
{
    panic("again");
}

static void nested_panic(void *arg __unused)
{
    panic_describe_thread = nested;
    panic("first");
}

static void *panic_elsewhere(void *arg __unused)
{
    fake_cpu_set(1);
    panic("from another CPU");
    return NULL;
}

/* A panic while this CPU holds the console lock (a fault in the console driver) must still be
 * heard. */
static bool panic_in_console;

void arch_console_write(const char *s, size_t n)
{
    if (panic_in_console) {
        panic_in_console = false;
        panic("console broke");
    }
    fake_console_write(s, n);
}

static void panic_under_console_lock(void *arg __unused)
{
    panic_in_console = true;
    log_info("never complete");
}

static void second_cpu_panics(void *arg __unused)
{
    pthread_t t;
    pthread_create(&t, NULL, panic_elsewhere, NULL);
    pthread_join(t, NULL);
}

static void other_panics(void **state __unused)
{
    fake_assert_panics(failed_assertion, NULL, "test_log.c:");
    fake_assert_panics(failed_assertion, NULL, "assertion failed: one == 2");
    const char *text = fake_expect_panic(nested_panic, NULL);
    assert_non_null(strstr(text, "first"));
    assert_non_null(strstr(text, "panic inside the panic, while printing: thread"));
    assert_null(strstr(text, "back trace"));
    fake_assert_panics(panic_under_console_lock, NULL, "panic on CPU 3: console broke");
    fake_assert_panics(second_cpu_panics, NULL, "panic on CPU 1: from another CPU");
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup(f, set_up)
    const struct CMUnitTest tests[] = {
        TEST(lines),    TEST(long_lines_are_cut), TEST(lines_stay_whole),
        TEST(says_all), TEST(other_panics),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
