# The idle time of a CPU, read while it changes.
UNIT_TESTS += sched_idle_clock
sched_idle_clock_TEST_SRCS := tests/unit/idle/test_idle_clock.c
