UNIT_TESTS += policies
policies_TEST_SRCS := tests/unit/policies/test_policies.c $(wildcard sched/policies/*.c)
