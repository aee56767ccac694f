# A kernel of arch/x86_64 and core/base alone, whose kernel_main() tests the port: `make test-arch`.
ARCH_TEST_O := $(O)/arch-test
ARCH_TEST_SRCS := $(sort $(wildcard arch/x86_64/*.c arch/x86_64/*.S core/base/*.c tests/guest/arch/*.c \
	tests/guest/arch/*.S))
ARCH_TEST_OBJS := $(addprefix $(ARCH_TEST_O)/,$(addsuffix .o,$(ARCH_TEST_SRCS)))

$(ARCH_TEST_O)/%.c.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(KCFLAGS) -MMD -MP -c $< -o $@

$(ARCH_TEST_O)/%.S.o: %.S
	@mkdir -p $(@D)
	$(call say,AS,$@)$(CC) $(KASFLAGS) -MMD -MP -c $< -o $@

$(ARCH_TEST_O)/pass1.elf: $(ARCH_TEST_OBJS) arch/x86_64/kernel.ld
	$(call say,LD,$@)$(LD) $(KLDFLAGS) -T arch/x86_64/kernel.ld $(ARCH_TEST_OBJS) -o $@

$(ARCH_TEST_O)/symbols.S: $(ARCH_TEST_O)/pass1.elf scripts/mksyms
	$(call say,SYMS,$@)scripts/mksyms $< > $@

$(ARCH_TEST_O)/test.elf: $(ARCH_TEST_O)/symbols.S
	$(call say,LD,$@)$(CC) $(KASFLAGS) -c $< -o $(ARCH_TEST_O)/symbols.o && \
	$(LD) $(KLDFLAGS) -T arch/x86_64/kernel.ld $(ARCH_TEST_OBJS) $(ARCH_TEST_O)/symbols.o -o $@

-include $(ARCH_TEST_OBJS:.o=.d)

TEST_TIERS += arch
.PHONY: test-arch
test-arch: $(ARCH_TEST_O)/test.elf ## the x86-64 port alone, on several emulated machines; T=name runs one
	@$(PYTHON) tests/guest/arch/run.py --kernel $< $(T)
