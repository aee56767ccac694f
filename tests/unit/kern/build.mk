# The parts of core/kern that do not touch the machine, and futexes over a fake scheduler of pthreads.
UNIT_TESTS += kern_elf kern_cpio kern_config kern_http kern_misc kern_futex kern_grant
kern_elf_TEST_SRCS := tests/unit/kern/test_elf.c core/kern/elf.c core/kern/elf_sym.c
kern_cpio_TEST_SRCS := tests/unit/kern/test_cpio.c core/kern/cpio.c
kern_config_TEST_SRCS := tests/unit/kern/test_config.c core/kern/config.c core/kern/grant_words.c core/base/string.c core/base/format.c
kern_grant_TEST_SRCS := tests/unit/kern/test_grant.c core/kern/grant_words.c core/base/string.c core/base/format.c
kern_http_TEST_SRCS := tests/unit/kern/test_http.c core/kern/http_parse.c core/base/string.c core/base/format.c
kern_misc_TEST_SRCS := tests/unit/kern/test_misc.c core/kern/path.c core/kern/chacha20.c core/kern/text.c core/base/string.c \
	core/base/format.c
kern_futex_TEST_SRCS := tests/unit/kern/test_futex.c core/kern/futex.c core/kern/futex_stat.c $(FAKE_BASE)
