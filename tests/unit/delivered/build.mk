# What a CPU is really given: the arithmetic.
UNIT_TESTS += sched_delivered
sched_delivered_TEST_SRCS := tests/unit/delivered/test_delivered.c
