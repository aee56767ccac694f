# The UEFI application (gnu-efi), and the disk image that holds it.
#
# $(O)/uefi/stub.efi is the loader alone; scripts/mkefi adds kernel, application and command line as
# sections of the PE file. IMAGE_APP and CMDLINE choose what goes into weir.efi and weir.img.

UEFI_DIR := arch/x86_64/uefi
UEFI_O := build/uefi
IMAGE_APP ?= build/apps/kv
CMDLINE ?= http=9100

UEFI_CFLAGS := -std=gnu11 -O2 $(COMMON_CFLAGS) -ffreestanding -fpic -fshort-wchar -mno-red-zone -mgeneral-regs-only \
	-fno-stack-protector -fcf-protection=none -fno-asynchronous-unwind-tables -DGNU_EFI_USE_MS_ABI=1 \
	-isystem /usr/include/efi -isystem /usr/include/efi/x86_64
UEFI_LDFLAGS := -nostdlib -znocombreloc -shared -Bsymbolic -z noexecstack --no-warn-rwx-segments --no-undefined \
	-T /usr/lib/elf_x86_64_efi.lds
UEFI_OBJS := $(patsubst $(UEFI_DIR)/%.c,$(UEFI_O)/%.o,$(sort $(wildcard $(UEFI_DIR)/*.c))) $(UEFI_O)/handoff.o

$(UEFI_O)/%.o: $(UEFI_DIR)/%.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(UEFI_CFLAGS) -MMD -MP -c $< -o $@

$(UEFI_O)/%.o: $(UEFI_DIR)/%.S
	@mkdir -p $(@D)
	$(call say,AS,$@)$(CC) -I. -m64 -c $< -o $@

$(UEFI_O)/stub.so: $(UEFI_OBJS)
	$(call say,LD,$@)$(LD) $(UEFI_LDFLAGS) /usr/lib/crt0-efi-x86_64.o $(UEFI_OBJS) -L/usr/lib -lgnuefi -o $@

$(UEFI_O)/stub.efi: $(UEFI_O)/stub.so
	$(call say,EFI,$@)$(OBJCOPY) -j .text -j .sdata -j .data -j .dynamic -j .dynsym -j .rel -j .rela -j .reloc \
		--target=efi-app-x86_64 --subsystem=10 $< $@

-include $(wildcard $(UEFI_O)/*.d)

$(O)/uefi/.inputs: FORCE
	@mkdir -p $(@D)
	@echo '$(IMAGE_APP) $(CMDLINE)' | cmp -s - $@ || echo '$(IMAGE_APP) $(CMDLINE)' > $@

$(O)/weir.efi: $(UEFI_O)/stub.efi $(O)/weir.elf $(IMAGE_APP) $(O)/uefi/.inputs scripts/mkefi
	$(call say,EFI,$@)$(PYTHON) scripts/mkefi --stub $(UEFI_O)/stub.efi --kernel $(O)/weir.elf --app $(IMAGE_APP) --cmdline '$(CMDLINE)' -o $@

$(O)/weir.img: $(O)/weir.efi scripts/mkimage
	$(call say,IMG,$@)scripts/mkimage $(O)/weir.efi $@

.PHONY: image
image: $(O)/weir.img $(O)/weir.efi ## UEFI application and disk image: build/weir.efi, build/weir.img
