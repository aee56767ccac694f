# core/base and core/mm; core/kern has a fragment of its own.
KERNEL_SRCS += $(sort $(wildcard core/base/*.c core/mm/*.c))
