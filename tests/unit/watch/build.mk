# The budget around the calls of a policy.
UNIT_TESTS += sched_watch
sched_watch_TEST_SRCS := tests/unit/watch/test_watch.c $(FAKE_BASE)
