# Unit tests of the key-value server: the whole server without main, sockets and threads.

UNIT_TESTS += kv
kv_TEST_SRCS := $(sort $(wildcard tests/unit/kv/test_*.c)) tests/unit/kv/kv_harness.c $(kv_LIB_SRCS)
kv_TEST_LDFLAGS := -Wl,--wrap=conn_flush -lm
