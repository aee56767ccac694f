# The scheduler's own code under random interleavings (a plain program: it forks one process per schedule).
#   build/unit/interleave [SCHEDULES [FIRST_SEED]]
INTERLEAVE_SCHEDULES ?= 20000
INTERLEAVE_CFLAGS = -std=gnu11 -O1 $(COMMON_CFLAGS) -DWEIR_HOST_TEST=1 -DWEIR_DEBUG=1 \
	'-DWEIR_ARCH_INLINE="tests/unit/sched/arch_inline.h"'
INTERLEAVE_KERNEL := $(filter sched/%.c,$(KERNEL_SRCS))
INTERLEAVE_PLAIN := $(wildcard tests/unit/sched/*.c sched/policies/*.c) core/base/string.c core/base/format.c
INTERLEAVE_OBJS := $(patsubst %.c,build/interleave/%.o,$(filter-out sched/policies/%,$(INTERLEAVE_KERNEL)) core/base/spinlock.c)
INTERLEAVE_PLAIN_OBJS := $(patsubst %.c,build/interleave/%.o,$(INTERLEAVE_PLAIN))

$(INTERLEAVE_OBJS): build/interleave/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(INTERLEAVE_CFLAGS) -include tests/unit/sched/points.h -MMD -MP -c $< -o $@

$(INTERLEAVE_PLAIN_OBJS): build/interleave/%.o: %.c
	@mkdir -p $(@D)
	@$(CC) $(INTERLEAVE_CFLAGS) -MMD -MP -c $< -o $@

build/unit/interleave: $(INTERLEAVE_OBJS) $(INTERLEAVE_PLAIN_OBJS)
	@mkdir -p $(@D)
	@$(CC) -o $@ $^

.PHONY: test-interleave
test-interleave: build/unit/interleave ## scheduler code under random interleavings (INTERLEAVE_SCHEDULES=)
	build/unit/interleave $(INTERLEAVE_SCHEDULES)

TEST_TIERS += interleave

# What is too long for every change.
NIGHTLY_SCHEDULES ?= 1000000
.PHONY: nightly
nightly: build/unit/interleave ## NIGHTLY_SCHEDULES=1000000 interleavings and the larger models; half an hour to hours
	build/unit/interleave $(NIGHTLY_SCHEDULES)
	@$(PYTHON) tests/model/run.py --nightly
-include $(INTERLEAVE_OBJS:.o=.d) $(INTERLEAVE_PLAIN_OBJS:.o=.d)
