# Weir: builds the kernel, its applications and its tests; boots, measures and checks them.
# `make help` lists the commands.
#
# Everything that is built goes below build/. Each room adds to the build by a fragment,
# <room>/build.mk, which is included here and only sets variables or adds targets of its own:
#
#   kernel    KERNEL_SRCS += path/x.c path/y.S     (paths from the top; .S goes through the C preprocessor)
#             KERNEL_OBJS += $(O)/path/x.o         objects that the room builds by rules of its own
#             KCFLAGS_path/x.c := flags            extra flags of one source
#             Objects: $(O)/kernel/path/x.o. Include path: the top of the tree.
#             $(O) is build for BUILD=release and build/debug for BUILD=debug (lock checker and
#             expensive assertions: -DWEIR_DEBUG=1). Result: $(O)/weir.elf.
#   apps      APPS += name                          built for the guest (musl, static: build/apps/name), for this
#                                                   host (build/host/name) and with sanitizers (build/host-san/name)
#             GUEST_APPS += name                    only for the guest
#             HOST_TOOLS += name                    only for this host
#             name_SRCS, name_CFLAGS, name_LDFLAGS  sources (default: apps/name/*.c) and extra flags
#   unit      UNIT_TESTS += name                    cmocka program, built with ASan + UBSan as build/unit/name
#             name_TEST_SRCS                        the test and the sources under test
#             name_TEST_CFLAGS, name_TEST_LDFLAGS   extra flags (-DWEIR_HOST_TEST is always given)
#   tiers     TEST_TIERS += name                    `make test` then runs `make test-name`, whose output must
#                                                   end in a line "N passed, N failed" (non-zero exit on failure)
#   checks    CHECKS += name                        `make check` then runs the target check-name
#   commands  target: ## one line                   shown by `make help`

MAKEFLAGS += --no-builtin-rules --no-print-directory
SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:
.DEFAULT_GOAL := all

# ---- settings (command line or environment) ----

BUILD ?= release
ifeq ($(BUILD),release)
O := build
else ifeq ($(BUILD),debug)
O := build/debug
else
$(error BUILD=$(BUILD): use BUILD=release or BUILD=debug)
endif

ifeq ($(origin CC),default)
CC := gcc
endif
LD := ld
OBJCOPY := objcopy
MUSL_CC ?= musl-gcc
# Debian's interpreter, which sees Debian's python3-* packages whatever else is first on PATH.
PYTHON ?= /usr/bin/python3
export WEIR_BUILD := $(BUILD)

WARNINGS := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wundef -Wvla \
	-Wpointer-arith -Wcast-qual -Wwrite-strings -Wimplicit-fallthrough
COMMON_CFLAGS := -g -fno-omit-frame-pointer -ffile-prefix-map=$(CURDIR)/= -I. $(WARNINGS)

# Freestanding headers (stdint.h, stddef.h, stdarg.h ...) come from the compiler alone.
KCFLAGS := -std=gnu11 -O2 $(COMMON_CFLAGS) -ffreestanding -nostdinc \
	-isystem $(shell $(CC) -print-file-name=include) \
	-m64 -mno-red-zone -mgeneral-regs-only -mcmodel=kernel -fno-pic -fno-pie -fno-stack-protector \
	-fno-asynchronous-unwind-tables -fcf-protection=none -fno-strict-aliasing -fno-common -DWEIR_KERNEL=1
KASFLAGS := -g -I. -m64 -DWEIR_KERNEL=1 -DWEIR_ASSEMBLY=1 -ffile-prefix-map=$(CURDIR)/=
KLDFLAGS := -nostdlib -static -z max-page-size=4096 -z noexecstack --build-id=none --no-undefined
ifeq ($(BUILD),debug)
KCFLAGS += -DWEIR_DEBUG=1 -DWEIR_TEST_POLICIES=1
endif

# ---- the rooms ----

CHECKS := includes sizes debug $(if $(shell command -v clang),clang)
TEST_TIERS := check

all: kernel apps ## build the kernel and the applications (BUILD=release|debug)

-include arch/x86_64/build.mk core/build.mk sched/build.mk sched/policies/build.mk net/build.mk
-include $(wildcard core/*/build.mk net/*/build.mk)
-include $(sort $(wildcard apps/*/build.mk))
-include $(sort $(filter-out tests/unit/build.mk,$(wildcard tests/*/build.mk tests/unit/*.mk tests/unit/*/build.mk)))
# Rules made from what the fragments above declared.
include arch/x86_64/uefi/build.mk
include apps/build.mk
include tests/unit/build.mk

# ---- kernel ----

KERNEL_SRCS := $(sort $(KERNEL_SRCS))
KERNEL_C_OBJS := $(patsubst %.c,$(O)/kernel/%.o,$(filter %.c,$(KERNEL_SRCS)))
# x.S becomes x.o, or x.S.o where x.c is there too.
asm_object = $(O)/kernel/$(basename $(1))$(if $(filter $(1:.S=.c),$(KERNEL_SRCS)),.S).o
KERNEL_S_OBJS := $(foreach s,$(filter %.S,$(KERNEL_SRCS)),$(call asm_object,$(s)))
KERNEL_LINK := $(KERNEL_C_OBJS) $(KERNEL_S_OBJS) $(KERNEL_OBJS)
KERNEL_LDS := arch/x86_64/kernel.ld

.PHONY: kernel
kernel: $(O)/weir.elf ## build only the kernel

# A changed compiler or flag rebuilds what it affects.
$(O)/kernel/.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(KCFLAGS) $(KASFLAGS) $(KLDFLAGS)' | cmp -s - $@ || echo '$(CC) $(KCFLAGS) $(KASFLAGS) $(KLDFLAGS)' > $@

$(KERNEL_C_OBJS): $(O)/kernel/%.o: %.c $(O)/kernel/.flags
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(KCFLAGS) $(KCFLAGS_$<) -MMD -MP -c $< -o $@

define asm_rule
$(call asm_object,$(1)): $(1) $(O)/kernel/.flags
	@mkdir -p $$(@D)
	$$(call say,AS,$$@)$(CC) $$(KASFLAGS) $$(KCFLAGS_$(1)) -MMD -MP -c $$< -o $$@
endef
$(foreach s,$(filter %.S,$(KERNEL_SRCS)),$(eval $(call asm_rule,$(s))))

# Two passes: the first link tells where the functions lie; the second holds their table, placed
# behind everything else so that it moves none of them.
$(O)/kernel/pass1.elf: $(KERNEL_LINK) $(KERNEL_LDS)
	$(call say,LD,$@)$(LD) $(KLDFLAGS) -T $(KERNEL_LDS) $(KERNEL_LINK) -o $@.$$PPID.new
	@mv $@.$$PPID.new $@

$(O)/kernel/symbols.S: $(O)/kernel/pass1.elf scripts/mksyms
	$(call say,SYMS,$@)scripts/mksyms $< > $@.$$PPID.new
	@mv $@.$$PPID.new $@

$(O)/kernel/symbols.o: $(O)/kernel/symbols.S
	$(call say,AS,$@)$(CC) $(KASFLAGS) -c $< -o $@

$(O)/weir.elf: $(KERNEL_LINK) $(KERNEL_LDS) $(O)/kernel/symbols.o
	$(call say,LD,$@)$(LD) $(KLDFLAGS) -T $(KERNEL_LDS) $(KERNEL_LINK) $(O)/kernel/symbols.o -o $@.$$PPID.new
	@mv $@.$$PPID.new $@

-include $(wildcard $(KERNEL_C_OBJS:.o=.d) $(KERNEL_S_OBJS:.o=.d))

# V=1 shows the commands.
ifdef V
say =
else
say = @printf '  %-5s %s\n' '$(1)' '$(2)';
endif

# ---- commands ----

SMP ?= 16
.PHONY: run gdb top flame deps clean help FORCE
run: ## build and boot 16 vCPUs: RESP on 6379, memcached on 11211, HTTP on 9100; Ctrl-C stops (ARGS= more options)
	@scripts/deps run
	@$(MAKE) all
	@$(PYTHON) scripts/weir run --smp $(SMP) $(ARGS)

gdb: all ## boot paused and attach gdb (ARGS= options of gdb, then -- options of scripts/weir run)
	@scripts/gdb $(ARGS)

top: ## live view of the running guest (HTTP=9100)
	@$(PYTHON) scripts/weir top --http $(or $(HTTP),9100)

flame: ## flame graph of the running guest: MODE=on|off SECONDS=2 HTTP=9100
	@$(PYTHON) scripts/weir flame --mode $(or $(MODE),oncpu) --seconds $(or $(SECONDS),2) --http $(or $(HTTP),9100)

deps: ## install what is missing, saying what and why (no-op when all is there)
	@scripts/deps

build/lwip/.complete:
	@scripts/deps-lwip

clean: ## remove what was built (fetched sources and emulators stay)
	rm -rf $(filter-out build/lwip build/qemu-vtime build/linux build/bench build/run build/npm build/conformance,$(wildcard build/*))

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

FORCE:

# ---- checks ----

.PHONY: check format check-includes check-sizes
check: $(addprefix check-,$(CHECKS)) ## static checks: include rights, sizes, purity of the policies

check-includes:
	@$(PYTHON) scripts/check-includes
check-sizes:
	@$(PYTHON) scripts/check-sizes

# The kernel must also build in its debug flavour and with the other compiler.
.PHONY: check-debug check-clang
check-debug:
	@$(MAKE) BUILD=debug kernel
check-clang:
	@$(MAKE) CC=clang O=build/clang kernel

C_FILES = $(shell git ls-files '*.c' '*.h')
format: ## format all C files in place (clang-format)
	clang-format -i $(C_FILES)

# ---- tests ----

# From fast to slow; a tier that no fragment declares is left out.
TIER_ORDER := check unit scripts interleave sim model fuzz kv conformance load bench arch guest qemu
TIERS := $(filter $(TEST_TIERS),$(TIER_ORDER)) $(filter-out $(TIER_ORDER),$(TEST_TIERS))

.PHONY: test test-check
test: ## everything that CI runs; ends with "N passed, N failed"
	@$(PYTHON) scripts/test-tiers $(TIERS)

test-check:
	@$(PYTHON) scripts/test-count $(foreach c,$(CHECKS),'$(MAKE) check-$(c)')
