# Tests that run inside the guest: one static musl program, the same on Linux (the reference).
GUEST_APPS += guest-tests
guest-tests_SRCS := $(sort $(wildcard tests/guest/*.c))
guest-tests_LDFLAGS := -static

TEST_TIERS += guest
.PHONY: test-guest
# T=name-prefix runs some; SMPS="1 4" chooses the machines.
test-guest: kernel build/apps/guest-tests ## tests inside the guest on 1, 2, 4 and 16 CPUs, and on Linux; T=prefix, SMPS="1 4"
	@$(PYTHON) tests/guest/run $(if $(T),--test '$(T)') $(if $(SMPS),--smp '$(SMPS)')
