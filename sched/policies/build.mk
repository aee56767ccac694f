# Every policy of this folder goes into the kernel; which ones can be chosen is the list in policies.h.
POLICY_SRCS := $(sort $(wildcard sched/policies/*.c))
KERNEL_SRCS += $(POLICY_SRCS)

CHECKS += policies
.PHONY: check-policies
check-policies:
	@$(PYTHON) scripts/check-policies $(POLICY_SRCS)
