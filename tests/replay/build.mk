# weir-replay: policy calls that a guest recorded, made again on this host with the very objects that are in the kernel (built for
# addresses that fit in 32 bits, hence -no-pie).
REPLAY_OBJS := $(patsubst %.c,build/host/weir-replay.d/%.o,tests/replay/main.c tests/replay/replay.c)
REPLAY_POLICIES := $(patsubst %.c,$(O)/kernel/%.o,$(POLICY_SRCS))

$(REPLAY_OBJS): build/host/weir-replay.d/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -std=gnu11 -O2 $(COMMON_CFLAGS) -D_GNU_SOURCE -fno-pie -MMD -MP -c $< -o $@

$(O)/weir-replay: $(REPLAY_OBJS) $(REPLAY_POLICIES)
	$(call say,LINK,$@)$(CC) -no-pie -z noexecstack $^ -o $@

.PHONY: replay
replay: $(O)/weir-replay ## make recorded policy calls again and compare: FILE=path (from the guest's page /policy-record)
	@$(O)/weir-replay '$(FILE)'

-include $(wildcard $(REPLAY_OBJS:.o=.d))

UNIT_TESTS += replay
replay_TEST_SRCS := tests/replay/test_replay.c tests/replay/replay.c sched/policy_record.c core/base/format.c core/base/string.c \
	$(wildcard sched/policies/*.c)
