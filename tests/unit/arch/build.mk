# The parts of arch/x86_64 that do not touch the machine.
UNIT_TESTS += arch_acpi arch_clock arch_boot
arch_acpi_TEST_SRCS := tests/unit/arch/test_acpi.c tests/unit/arch/fake_log.c arch/x86_64/acpi.c
arch_clock_TEST_SRCS := tests/unit/arch/test_clock.c arch/x86_64/clock_math.c
arch_boot_TEST_SRCS := tests/unit/arch/test_boot.c arch/x86_64/boot_util.c
