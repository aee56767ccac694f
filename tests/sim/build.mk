# The simulator: the kernel's policies and run queue, built for this host for up to 1,024 CPUs.

SIM_SRCS := $(filter-out tests/sim/test_%.c,$(wildcard tests/sim/*.c)) sched/runq.c $(wildcard sched/policies/*.c)
SIM_OBJS := $(patsubst %.c,build/sim/%.o,$(SIM_SRCS))
SIM_CFLAGS := -std=gnu11 -O2 $(COMMON_CFLAGS) -D_GNU_SOURCE -DPOLICY_MAX_CPUS=1024

build/sim/.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(SIM_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(SIM_CFLAGS)' > $@

$(SIM_OBJS): build/sim/%.o: %.c build/sim/.flags
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(SIM_CFLAGS) -MMD -MP -c $< -o $@

# An impure policy would link here, against this host's libc, but not into the kernel: it fails at once instead.
SIM_POLICIES := $(wildcard sched/policies/*.c)
build/sim/.pure: $(SIM_POLICIES) $(wildcard sched/policies/*.h) sched/policy.h scripts/check-policies
	@mkdir -p $(@D)
	@$(PYTHON) scripts/check-policies $(SIM_POLICIES)
	@touch $@

build/sim/weir-sim: $(SIM_OBJS) build/sim/.pure
	$(call say,LINK,$@)$(CC) $(SIM_OBJS) -lm -o $@

-include $(wildcard $(SIM_OBJS:.o=.d))

POLICY ?= drain
CPUS ?= 16
WORKLOAD ?= server
.PHONY: sim
sim: build/sim/weir-sim ## simulate: POLICY=drain CPUS=16 WORKLOAD=server|closed|open|spinners|pipeline|bugs|file:PATH|trace:PATH SEED= ARGS=
	@build/sim/weir-sim --policy '$(POLICY)' --compare --cpus '$(CPUS)' --workload '$(WORKLOAD)' $(if $(SEED),--seed '$(SEED)') $(ARGS)

TEST_TIERS += sim
.PHONY: test-sim
test-sim: build/sim/weir-sim ## tests of the simulator and of the policies in it (T=name: one)
	@$(PYTHON) tests/sim/test_sim.py $(if $(T),--only '$(T)')
