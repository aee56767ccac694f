# The x86-64 port: boot, traps, interrupt controllers, clocks, paging, PCI, console.
KERNEL_SRCS += $(sort $(wildcard arch/x86_64/*.c arch/x86_64/*.S))

include tests/guest/arch/build.mk
