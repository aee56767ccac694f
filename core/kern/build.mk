# core/kern: composition root, processes, system calls, files, HTTP port.
KERNEL_SRCS += $(sort $(wildcard core/kern/*.c)) core/kern/vdso/blob.S
KERNEL_SRCS += $(sort $(wildcard core/kern/obs/*.c))

# The vDSO: code for applications, so with their ABI (red zone, position-independent), embedded as an image.
VDSO_IMAGE := $(O)/vdso/vdso.so
VDSO_CFLAGS := -std=gnu11 -O2 $(COMMON_CFLAGS) -ffreestanding -nostdinc -isystem $(shell $(CC) -print-file-name=include) \
	-m64 -mgeneral-regs-only -fPIC -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none -fno-common

$(VDSO_IMAGE): core/kern/vdso/vdso.c core/kern/vdso/vdso_data.h core/kern/vdso/vdso.ld $(O)/kernel/.flags
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(VDSO_CFLAGS) -c core/kern/vdso/vdso.c -o $(@D)/vdso.o && \
	$(LD) -shared -Bsymbolic -z text -z defs -z noexecstack -z max-page-size=4096 --hash-style=sysv --build-id=none \
		-soname linux-vdso.so.1 -s -T core/kern/vdso/vdso.ld $(@D)/vdso.o -o $@

$(O)/kernel/core/kern/vdso/blob.o: $(VDSO_IMAGE)
KCFLAGS_core/kern/vdso/blob.S := -DVDSO_IMAGE_FILE=\"$(VDSO_IMAGE)\"
