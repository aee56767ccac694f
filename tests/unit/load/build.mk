UNIT_TESTS += load
load_TEST_SRCS := tests/unit/load/test_load.c apps/load/hist.c apps/load/keys.c apps/load/options.c apps/load/proto.c \
	apps/spread/timeline.c
load_TEST_LDFLAGS := -lm
