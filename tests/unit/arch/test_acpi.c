/* The ACPI parser on tables made here, good, bad and mutated. */
#include "tests/unit/fake/cmocka_all.h"

#include <string.h>

#include "arch/x86_64/acpi.h"
#include "core/base/errno.h"
#include "tests/unit/arch/fake_log.h"

/* ---- a small physical memory ---- */

#define MEMORY_SIZE (1u << 20)
static u8 memory[MEMORY_SIZE];
static u32 top; /* next free byte for tables */

/* Every mapping is a copy of exactly the bytes asked for, so that the sanitizer sees any read
 * beyond. */
#define MAX_COPIES 4096
static void *copies[MAX_COPIES];
static u32 num_copies;

static const void *map(void *ctx, u64 phys, size_t bytes)
{
    (void)ctx;
    if (phys > MEMORY_SIZE || bytes > MEMORY_SIZE - phys || num_copies == MAX_COPIES) {
        return NULL;
    }
    void *copy = malloc(bytes);
    memcpy(copy, memory + phys, bytes);
    return copies[num_copies++] = copy;
}

static const struct acpi_memory accessor = {map, NULL};

static int setup(void **state)
{
    (void)state;
    memset(memory, 0, sizeof(memory));
    top = 0x10000;
    fake_log_reset();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    while (num_copies > 0) {
        free(copies[--num_copies]);
    }
    return 0;
}

/* ---- writing tables ---- */

static void put(u32 at, u64 value, u32 bytes)
{
    for (u32 i = 0; i < bytes; i++) {
        memory[at + i] = (u8)(value >> (8 * i));
    }
}

static void fix_sum(u32 at, u32 bytes, u32 field)
{
    u8 total = 0;
    memory[at + field] = 0;
    for (u32 i = 0; i < bytes; i++) {
        total = (u8)(total + memory[at + i]);
    }
    memory[at + field] = (u8)-total;
}

/* Starts a table; its length grows with add(), finish() seals it. */
static u32 begin(const char *signature)
{
    u32 at = top = ALIGN_UP(top, 16u);
    memcpy(memory + at, signature, 4);
    top += 36;
    return at;
}

static void add(u64 value, u32 bytes)
{
    put(top, value, bytes);
    top += bytes;
}

static void finish(u32 at)
{
    put(at + 4, top - at, 4);
    fix_sum(at, top - at, 9);
}

static void add_lapic(u32 id, u32 flags)
{
    add(0, 1);
    add(8, 1);
    add(id, 1); /* processor */
    add(id, 1);
    add(flags, 4);
}

static void add_x2apic(u32 id, u32 flags)
{
    add(9, 1);
    add(16, 1);
    add(0, 2);
    add(id, 4);
    add(flags, 4);
    add(0, 4);
}

static void add_ioapic(u32 id, u32 address, u32 base)
{
    add(1, 1);
    add(12, 1);
    add(id, 1);
    add(0, 1);
    add(address, 4);
    add(base, 4);
}

static void add_override(u32 irq, u32 gsi, u32 flags)
{
    add(2, 1);
    add(10, 1);
    add(0, 1);
    add(irq, 1);
    add(gsi, 4);
    add(flags, 2);
}

static u32 begin_madt(void)
{
    u32 at = begin("APIC");
    add(0xfee00000, 4);
    add(1, 4);
    return at;
}

static u32 make_madt(u32 cpus)
{
    u32 at = begin_madt();
    for (u32 i = 0; i < cpus; i++) {
        add_lapic(i, 1);
    }
    finish(at);
    return at;
}

static u32 make_dsdt(const u8 *aml, u32 bytes)
{
    u32 at = begin("DSDT");
    for (u32 i = 0; i < bytes; i++) {
        add(aml[i], 1);
    }
    finish(at);
    return at;
}

static u32 make_fadt(u32 dsdt)
{
    u32 at = begin("FACP");
    top = at + 244;
    put(at + 40, dsdt, 4);
    put(at + 46, 9, 2);
    put(at + 48, 0xb2, 4);
    put(at + 52, 2, 1);
    put(at + 56, 0x600, 4);
    put(at + 64, 0x604, 4);
    put(at + 76, 0x608, 4);
    put(at + 88, 4, 1);
    put(at + 91, 4, 1);
    put(at + 112, BIT(10), 4);
    put(at + 116, ACPI_SPACE_IO, 1);
    put(at + 120, 0xcf9, 8);
    put(at + 128, 0xf, 1);
    finish(at);
    return at;
}

static u32 make_root(const u32 *tables, u32 count, bool wide)
{
    u32 at = begin(wide ? "XSDT" : "RSDT");
    for (u32 i = 0; i < count; i++) {
        add(tables[i], wide ? 8 : 4);
    }
    finish(at);
    return at;
}

static u32 make_rsdp(u32 at, u32 rsdt, u32 xsdt)
{
    memcpy(memory + at, "RSD PTR ", 8);
    memory[at + 15] = xsdt ? 2 : 0;
    put(at + 16, rsdt, 4);
    fix_sum(at, 20, 8);
    if (xsdt) {
        put(at + 20, 36, 4);
        put(at + 24, xsdt, 8);
        fix_sum(at, 36, 32);
    }
    return at;
}

static const u8 s5_bytes[] = {0x08, '_',  'S',  '5',  '_',  0x12, 0x06,
                              0x04, 0x0a, 0x05, 0x0a, 0x06, 0,    0};

static u32 make_machine(void)
{
    u32 madt = begin_madt();
    add_lapic(0, 1);
    add_lapic(2, 0); /* disabled */
    add_lapic(1, 1);
    add_lapic(0xff, 1); /* no id */
    add_x2apic(0x1234, 1);
    add_x2apic(1, 1); /* named twice */
    add_x2apic(0x55, 0);
    add(0x7f, 1); /* unknown type */
    add(6, 1);
    add(0, 4);
    add_ioapic(3, 0xfec00000, 0);
    add_override(0, 2, 0);
    add_override(9, 9, 0xd);
    finish(madt);
    u32 hpet = begin("HPET");
    add(0x8086a201, 4);
    add(ACPI_SPACE_MEMORY, 4);
    add(0xfed00000, 8);
    add(0, 4);
    finish(hpet);
    u32 mcfg = begin("MCFG");
    add(0, 8);
    add(0xb0000000, 8);
    add(0, 2);
    add(0, 1);
    add(255, 1);
    add(0, 4);
    finish(mcfg);
    u32 fadt = make_fadt(make_dsdt(s5_bytes, sizeof(s5_bytes)));
    const u32 tables[] = {fadt, madt, hpet, mcfg};
    return make_rsdp(0xf0000, make_root(tables, 4, false), make_root(tables, 4, true));
}

/* ---- tests ---- */

static void check_machine(const struct acpi_info *info)
{
    assert_int_equal(info->num_cpus, 3);
    assert_int_equal(info->apic_ids[0], 0);
    assert_int_equal(info->apic_ids[1], 1);
    assert_int_equal(info->apic_ids[2], 0x1234);
    assert_int_equal(info->lapic_base, 0xfee00000);
    assert_int_equal(info->num_ioapics, 1);
    assert_int_equal(info->ioapics[0].address, 0xfec00000);
    assert_int_equal(info->num_overrides, 2);
    assert_int_equal(info->overrides[0].gsi, 2);
    assert_false(info->overrides[0].polarity_given);
    assert_true(info->overrides[1].level);
    assert_true(info->overrides[1].trigger_given);
    assert_false(info->overrides[1].active_low);
    assert_int_equal(info->hpet_base, 0xfed00000);
    assert_int_equal(info->num_ecam, 1);
    assert_int_equal(info->ecam[0].last_bus, 255);
    assert_int_equal(info->sci_irq, 9);
    assert_int_equal(info->pm1a_event, 0x600);
    assert_int_equal(info->pm1a_control, 0x604);
    assert_int_equal(info->pm_timer_port, 0x608);
    assert_false(info->pm_timer_32bit);
    assert_true(info->have_reset);
    assert_int_equal(info->reset_address, 0xcf9);
    assert_true(info->have_s5);
    assert_int_equal(info->s5_type_a, 5);
    assert_int_equal(info->s5_type_b, 6);
}

static void whole_machine(void **state)
{
    struct acpi_info info;
    (void)state;
    assert_int_equal(acpi_parse(&accessor, make_machine(), &info), 0);
    check_machine(&info);
    assert_int_equal(fake_log_lines, 0);
}

static void rsdp_is_found_in_the_bios_area(void **state)
{
    struct acpi_info info;
    (void)state;
    make_machine();
    assert_int_equal(acpi_parse(&accessor, 0, &info), 0);
    check_machine(&info);
}

static void rsdp_is_found_in_the_ebda(void **state)
{
    struct acpi_info info;
    (void)state;
    u32 madt = make_madt(2);
    make_rsdp(0x9fc20, make_root(&madt, 1, false), 0);
    put(0x40e, 0x9fc0, 2);
    assert_int_equal(acpi_parse(&accessor, 0, &info), 0);
    assert_int_equal(info.num_cpus, 2);
}

static void wrong_rsdp_address_falls_back_to_the_search(void **state)
{
    struct acpi_info info;
    (void)state;
    make_machine();
    assert_int_equal(acpi_parse(&accessor, 0x5000, &info), 0);
    check_machine(&info);
    assert_int_equal(fake_log_lines, 1);
}

static void bad_extended_rsdp_falls_back_to_the_rsdt(void **state)
{
    struct acpi_info info;
    u32 rsdp = make_machine();
    (void)state;
    memory[rsdp + 32]++;
    assert_int_equal(acpi_parse(&accessor, rsdp, &info), 0);
    check_machine(&info);
    assert_non_null(strstr(fake_log_last, "RSDT"));
}

static void no_root_table(void **state)
{
    struct acpi_info info;
    (void)state;
    assert_int_equal(acpi_parse(&accessor, 0, &info), -ENOENT);
    make_rsdp(0xf0000, 0xfffffff0u, 0);
    assert_int_equal(acpi_parse(&accessor, 0xf0000, &info), -ENOENT);
    u32 madt = make_madt(1);
    u32 root = make_root(&madt, 1, false);
    memory[root + 9]++;
    make_rsdp(0xf0000, root, 0);
    assert_int_equal(acpi_parse(&accessor, 0xf0000, &info), -ENOENT);
}

static void no_madt(void **state)
{
    struct acpi_info info;
    (void)state;
    u32 madt = make_madt(2);
    memory[madt + 9]++; /* its checksum is wrong, so it does not count */
    u32 rsdp = make_rsdp(0xf0000, make_root(&madt, 1, false), 0);
    assert_int_equal(acpi_parse(&accessor, rsdp, &info), -EINVAL);
    assert_non_null(strstr(fake_log_last, "MADT"));
}

static void cpus_beyond_the_limit_are_counted(void **state)
{
    struct acpi_info info;
    (void)state;
    u32 madt = begin_madt();
    for (u32 i = 0; i < MAX_CPUS + 7; i++) {
        add_x2apic(1000 + i, 1);
    }
    finish(madt);
    u32 rsdp = make_rsdp(0xf0000, make_root(&madt, 1, false), 0);
    assert_int_equal(acpi_parse(&accessor, rsdp, &info), 0);
    assert_int_equal(info.num_cpus, MAX_CPUS);
    assert_int_equal(info.cpus_ignored, 7);
    assert_non_null(strstr(fake_log_last, "7 CPUs"));
}

static void madt_entry_of_length_zero_ends_it(void **state)
{
    struct acpi_info info;
    (void)state;
    u32 madt = begin_madt();
    add_lapic(4, 1);
    add(0, 1);
    add(0, 1);
    add_lapic(5, 1);
    finish(madt);
    u32 rsdp = make_rsdp(0xf0000, make_root(&madt, 1, false), 0);
    assert_int_equal(acpi_parse(&accessor, rsdp, &info), 0);
    assert_int_equal(info.num_cpus, 1);
    assert_int_equal(fake_log_lines, 1);
}

static void short_and_impossible_tables_are_named(void **state)
{
    struct acpi_info info;
    (void)state;
    u32 hpet = begin("HPET");
    finish(hpet);
    u32 fadt = begin("FACP");
    finish(fadt);
    u32 mcfg = begin("MCFG");
    add(0, 8);
    add(0xb0000001, 8); /* not aligned */
    add(0, 8);
    finish(mcfg);
    u32 huge = begin("SSDT");
    put(huge + 4, 0xffffffff, 4);
    const u32 tables[] = {make_madt(1), hpet, fadt, mcfg, huge, 0xfffffff};
    u32 rsdp = make_rsdp(0xf0000, make_root(tables, 6, false), 0);
    assert_int_equal(acpi_parse(&accessor, rsdp, &info), 0);
    assert_int_equal(info.hpet_base, 0);
    assert_int_equal(info.num_ecam, 0);
    assert_false(info.have_fadt);
    assert_int_equal(fake_log_lines, 5);
}

static void parse_s5(struct acpi_info *info, const u8 *aml, u32 bytes)
{
    setup(NULL);
    const u32 tables[] = {make_madt(1), make_fadt(make_dsdt(aml, bytes))};
    u32 rsdp = make_rsdp(0xf0000, make_root(tables, 2, false), 0);
    assert_int_equal(acpi_parse(&accessor, rsdp, info), 0);
}

static void s5_in_all_its_forms(void **state)
{
    static const u8 constants[] = {0x5b, 0x08, '\\', '_', 'S', '5', '_', 0x12, 0x04, 2, 0x01, 0x00};
    static const u8 long_length[] = {0x08, '_', 'S', '5',  '_', 0x12, 0x47, 0x00, 4,
                                     0x0b, 3,   0,   0x0c, 2,   0,    0,    0};
    static const u8 mentioned[] = {'_', 'S', '5',  '_', 0x08, '_',  'S',
                                   '5', '_', 0x12, 4,   1,    0x0a, 7};
    struct acpi_info info;
    (void)state;
    parse_s5(&info, constants, sizeof(constants));
    assert_true(info.have_s5);
    assert_int_equal(info.s5_type_a, 1);
    assert_int_equal(info.s5_type_b, 0);
    parse_s5(&info, long_length, sizeof(long_length));
    assert_true(info.have_s5);
    assert_int_equal(info.s5_type_a, 3);
    assert_int_equal(info.s5_type_b, 2);
    parse_s5(&info, mentioned, sizeof(mentioned));
    assert_true(info.have_s5);
    assert_int_equal(info.s5_type_a, 7);
}

static void s5_that_is_none(void **state)
{
    static const u8 cut[][8] = {
        {0x08, '_', 'S', '5', '_', 0x12, 0x06, 0x04}, /* ends before the elements */
        {0x08, '_', 'S', '5', '_', 0x12, 0xc6, 0x04}, /* four length bytes announced */
        {0x08, '_', 'S', '5', '_', 0x0a, 0x05, 0x00}, /* no package */
        {0x00, 0x00, 0x00, 0x08, '_', 'S', '5', '_'}, /* nothing behind */
    };
    static const u8 range[] = {0x08, '_', 'S', '5', '_', 0x12, 5, 2, 0x0a, 8, 0x0a, 0};
    struct acpi_info info;
    (void)state;
    for (u32 i = 0; i < ARRAY_SIZE(cut); i++) {
        parse_s5(&info, cut[i], sizeof(cut[i]));
        assert_false(info.have_s5);
        assert_non_null(strstr(fake_log_last, "_S5_"));
    }
    parse_s5(&info, range, sizeof(range));
    assert_false(info.have_s5);
}

/* Random damage, with the checksums made right again half of the time so that it gets past them: no
 * read outside what was mapped (the sanitizer watches), and results within their bounds. */
static void mutations_do_no_harm(void **state)
{
    u64 rng = test_seed(42);
    for (u32 round = 0; round < 20000; round++) {
        struct acpi_info info;
        setup(NULL);
        u32 rsdp = make_machine(), end = top;
        u32 changes = 1 + (u32)test_below(&rng, 8);
        for (u32 i = 0; i < changes; i++) {
            u32 at = 0x10000 + (u32)test_below(&rng, end - 0x10000);
            memory[at] =
                test_below(&rng, 3) ? (u8)test_random(&rng) : (u8)(test_below(&rng, 2) ? 0xff : 0);
        }
        for (u32 at = 0x10000; at + 36 < end && test_below(&rng, 2); at += 16) {
            u32 bytes = (u32)memory[at + 4] | (u32)memory[at + 5] << 8;
            if (memory[at] >= 'A' && memory[at] <= 'Z' && bytes >= 36 && at + bytes <= end) {
                fix_sum(at, bytes, 9);
            }
        }
        int err = acpi_parse(&accessor, rsdp, &info);
        assert_true(err == 0 || err == -ENOENT || err == -EINVAL);
        assert_true(info.num_cpus <= MAX_CPUS && info.num_ioapics <= ACPI_MAX_IOAPICS);
        assert_true(info.num_ecam <= ACPI_MAX_ECAM && info.num_overrides <= ACPI_MAX_OVERRIDES);
        assert_true(info.s5_type_a <= 7 && info.s5_type_b <= 7);
        teardown(state);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(whole_machine),
        TEST(rsdp_is_found_in_the_bios_area),
        TEST(rsdp_is_found_in_the_ebda),
        TEST(wrong_rsdp_address_falls_back_to_the_search),
        TEST(bad_extended_rsdp_falls_back_to_the_rsdt),
        TEST(no_root_table),
        TEST(no_madt),
        TEST(cpus_beyond_the_limit_are_counted),
        TEST(madt_entry_of_length_zero_ends_it),
        TEST(short_and_impossible_tables_are_named),
        TEST(s5_in_all_its_forms),
        TEST(s5_that_is_none),
        TEST(mutations_do_no_harm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
