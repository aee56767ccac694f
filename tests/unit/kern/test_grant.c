/* Words of the grant: each limit and one past it; what contradicts itself gets one line and a safe choice. */
#include <string.h>

#include "core/kern/grant_words.h"
#include "tests/unit/fake/cmocka_all.h"

static char lines[16][GRANT_LINE];
static u32 num_lines;

static void keep(const char *line, void *arg)
{
    (void)arg;
    if (num_lines < 16) {
        strcpy(lines[num_lines], line);
    }
    num_lines++;
}

static struct grant_limits g;
static struct grant_notes notes;

/* Resolves two texts; checks the number of complaints and a part of the first. */
static void resolve(const char *host, const char *own, u32 complaints, const char *part)
{
    struct grant_words h = { 0 }, o = { 0 };
    notes = (struct grant_notes){ keep, NULL, 0 };
    num_lines = 0;
    grant_text(&h, host, "host", &notes);
    grant_text(&o, own, "own", &notes);
    grant_resolve(&h, &o, &g, &notes);
    if (notes.count != complaints || (part && !strstr(lines[0], part))) {
        fail_msg("'%s' + '%s': %u complaints, the first '%s'", host, own, notes.count, num_lines ? lines[0] : "");
    }
    assert_int_equal(num_lines, notes.count);
}

static void nothing_said(void **state)
{
    (void)state;
    resolve("", "", 0, NULL);
    assert_int_equal(g.quota_us, 0);
    assert_int_equal(g.period_us, 100000);
    assert_int_equal(g.memory, 0);
    assert_int_equal(grant_whole_cpus(&g, 16), 16);
    resolve("", " \n\t ", 0, NULL);
    resolve("", "cpus=max quota_us=max memory=max memory_high=max", 0, NULL);
    assert_int_equal(g.quota_us, 0);
    assert_int_equal(g.memory, 0);
}

static void cpus_and_quota(void **state)
{
    (void)state;
    resolve("", "cpus=1.5", 0, NULL);
    assert_int_equal(g.quota_us, 150000);
    assert_int_equal(grant_whole_cpus(&g, 16), 2);
    assert_int_equal(grant_whole_cpus(&g, 1), 1);
    resolve("", "cpus=1", 0, NULL);
    assert_int_equal(grant_whole_cpus(&g, 16), 1);
    resolve("", "cpus=1.0001", 0, NULL); /* rounded up: never less than asked */
    assert_int_equal(g.quota_us, 100100);
    resolve("", "cpus=2 period_us=1000", 0, NULL);
    assert_int_equal(g.quota_us, 2000);
    resolve("quota_us=100001 period_us=100000", "", 0, NULL);
    assert_int_equal(grant_whole_cpus(&g, 16), 2);
    resolve("", "cpus=1 quota_us=50000", 1, "the smaller");
    assert_int_equal(g.quota_us, 50000);
}

static void limits_and_one_past(void **state)
{
    (void)state;
    resolve("", "cpus=0.01", 0, NULL);
    assert_int_equal(g.quota_us, 1000);
    resolve("", "cpus=0.009", 1, "below 1%");
    assert_int_equal(g.quota_us, 1000);
    resolve("", "quota_us=10000 period_us=1000000", 0, NULL);
    resolve("", "quota_us=9999 period_us=1000000", 1, "below 1%");
    assert_int_equal(g.quota_us, 10000);
    resolve("", "quota_us=1000 period_us=1000", 0, NULL);
    resolve("", "quota_us=999 period_us=1000", 1, "1 ms");
    assert_int_equal(g.quota_us, 1000);
    resolve("", "quota_us=1000 period_us=999", 1, "100000 is used");
    assert_int_equal(g.period_us, 100000);
    resolve("", "quota_us=100000 period_us=1000001", 1, "period_us");
    resolve("", "quota_us=100000 period_us=0", 1, "period_us");
    assert_int_equal(g.period_us, 100000);
    resolve("", "memory=70368744177664", 0, NULL);
    resolve("", "memory=70368744177665", 1, "memory");
    assert_int_equal(g.memory, 0);
}

static void garbage(void **state)
{
    static const char *const words[] = { "cpus=", "cpus=abc", "cpus=-1", "cpus=1.", "cpus=1.x", "cpus=.5x", "cpus=1,5",
                                         "quota_us=1.5", "period_us=max", "memory=lots", "memory=1T", "memory_low=max",
                                         "cpus=99999999999999999999", "nonsense", "=1", "color=blue", "cpus=0", "quota_us=0" };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
        resolve("", words[i], 1, "ignored");
        assert_int_equal(g.quota_us, 0);
        resolve(words[i], "", 1, "ignored");
    }
    char longest[300];
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    resolve("", longest, 1, "ignored");
    /* The good words beside a bad one count. */
    resolve("", "cpus=2 memory=x", 1, "memory");
    assert_int_equal(g.quota_us, 200000);
}

static void host_and_command_line(void **state)
{
    (void)state;
    resolve("quota_us=150000 period_us=100000 memory=1G", "cpus=1 memory=512M", 0, NULL); /* less is fine */
    assert_int_equal(g.quota_us, 100000);
    assert_int_equal(g.memory, 512 << 20);
    resolve("quota_us=150000 period_us=100000", "cpus=1.5", 0, NULL);
    resolve("quota_us=150000 period_us=100000", "cpus=1.501", 1, "more than the host's");
    assert_int_equal(g.quota_us, 150000);
    resolve("quota_us=15000 period_us=10000", "quota_us=1400000 period_us=1000000", 0, NULL); /* 1.4 of 1.5 */
    assert_int_equal(g.quota_us, 1400000);
    resolve("quota_us=150000 period_us=100000", "cpus=max", 1, "host");
    assert_int_equal(g.quota_us, 150000);
    resolve("memory=64M", "memory=65M", 1, "host");
    assert_int_equal(g.memory, 64 << 20);
    resolve("memory=64M", "memory=max", 1, "host");
    assert_int_equal(g.memory, 64 << 20);
}

static void levels(void **state)
{
    (void)state;
    resolve("", "memory=64M memory_high=64M memory_low=64M", 0, NULL);
    resolve("", "memory=64M memory_high=67108865", 1, "memory_high");
    assert_int_equal(g.memory_high, 0);
    assert_int_equal(g.memory, 64 << 20);
    resolve("", "memory_high=32M memory_low=33M", 1, "memory_low");
    assert_int_equal(g.memory_low, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_said), cmocka_unit_test(cpus_and_quota), cmocka_unit_test(limits_and_one_past),
        cmocka_unit_test(garbage),      cmocka_unit_test(host_and_command_line), cmocka_unit_test(levels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
