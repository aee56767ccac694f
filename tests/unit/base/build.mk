# core/base on the host.  FAKE_BASE is what any test of kernel code links: the fake CPU port and core/base itself.
FAKE_BASE := tests/unit/fake/fake_arch.c core/base/format.c core/base/log.c core/base/panic.c core/base/spinlock.c \
	core/base/string.c

UNIT_TESTS += base_format base_mem base_string base_log base_spinlock
base_format_TEST_SRCS := tests/unit/base/test_format.c core/base/format.c
base_mem_TEST_SRCS := tests/unit/base/test_mem.c core/base/mem.c
# Under names of their own, beside the C library's.
base_mem_TEST_CFLAGS := -fno-builtin $(foreach f,memcpy memmove memset memcmp memchr strlen strnlen strcmp strncmp strchr,-D$(f)=weir_$(f))
base_string_TEST_SRCS := tests/unit/base/test_string.c core/base/string.c
base_log_TEST_SRCS := tests/unit/base/test_log.c $(FAKE_BASE)
base_spinlock_TEST_SRCS := tests/unit/base/test_spinlock.c $(FAKE_BASE)
