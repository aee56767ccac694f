# Benchmarks: the virtual-time plugin, its self-test guest, the harness.
VTIME_DIR := tests/bench/vtime
VTIME_SRCS := $(wildcard $(VTIME_DIR)/*.c)
VTIME_SELFTEST := $(VTIME_DIR)/selftest
BENCH_PYTHON := $(PYTHON)

build/vtime/vtime.so: $(VTIME_SRCS) $(wildcard $(VTIME_DIR)/*.h)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -std=gnu11 -O2 $(COMMON_CFLAGS) -fPIC -shared -fvisibility=hidden $(VTIME_SRCS) -o $@ -lpthread

# 32-bit on purpose: PVH enters in protected mode, and the guest needs nothing more.
build/vtime/selftest.elf: $(VTIME_SELFTEST)/start.S $(VTIME_SELFTEST)/guest.c $(VTIME_SELFTEST)/selftest.h $(VTIME_SELFTEST)/selftest.ld
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -m32 -march=i686 -O2 -ffreestanding -fno-pic -fno-stack-protector \
		-fno-asynchronous-unwind-tables -mgeneral-regs-only -I. -Wall -Wextra -Werror -Wshadow -nostdlib -static -no-pie \
		-Wl,-T,$(VTIME_SELFTEST)/selftest.ld -Wl,--build-id=none -Wl,--no-warn-rwx-segments \
		$(VTIME_SELFTEST)/start.S $(VTIME_SELFTEST)/guest.c -o $@

build/qemu-vtime/qemu-system-x86_64:
	@scripts/deps-qemu-vtime > /dev/null

.PHONY: vtime vtime-selftest
vtime: build/vtime/vtime.so build/vtime/selftest.elf build/qemu-vtime/qemu-system-x86_64 ## build the virtual-time plugin and fetch an emulator for it

vtime-selftest: vtime ## is virtual time independent of how many vCPUs are busy?
	@$(BENCH_PYTHON) $(VTIME_DIR)/selftest.py

# ---- the Linux peer ----

build/linux/peerstat: tests/bench/linux/peerstat.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(MUSL_CC) -static -std=gnu11 -O2 $(COMMON_CFLAGS) $< -o $@

build/linux/.complete:
	@tests/bench/linux/fetch

.PHONY: peers
peers: build/linux/.complete build/linux/peerstat build/apps/kv build/apps/load

# ---- the harness ----

BENCH := $(BENCH_PYTHON) tests/bench/bench.py

.PHONY: bench bench-quick test-bench
bench: vtime kernel apps peers ## measure all policies and peers; report under build/bench/ (ARGS= more options)
	@$(BENCH) full $(ARGS)

bench-quick: vtime kernel apps peers ## the same in 3 minutes: fewer connections, one repetition (ARGS= more options)
	@$(BENCH) quick $(ARGS)

.PHONY: bench-pool bench-tail
bench-pool: vtime kernel apps ## the dispatch pool too narrow, cured, too wide, with verdicts; 5 minutes (ARGS= options)
	@$(BENCH_PYTHON) tests/bench/pool.py $(ARGS)

bench-tail: vtime kernel apps ## the tail of a rehash under one mutex, and its cures; 5 minutes (ARGS= options)
	@$(BENCH_PYTHON) tests/bench/tail.py $(ARGS)

TEST_TIERS += bench
test-bench: vtime kernel apps ## the harness's own tests and the virtual-time self-test; T=words
	@$(PYTHON) scripts/test-pytest bench tests/bench $(if $(T),'$(T)')
