# The network: the lwIP image, its loader, devices, and the socket layer.

# ---- the lwIP image: one position-independent object that imports nothing (docs/adr) ----

LWIP_SRC := build/lwip/src
# tcp.c, tcp_in.c and tcp_out.c come in through net/stack/port.
LWIP_FILES := core/def.c core/inet_chksum.c core/init.c core/ip.c core/mem.c core/memp.c core/netif.c \
	core/pbuf.c core/stats.c core/sys.c core/udp.c core/ipv4/dhcp.c core/ipv4/etharp.c core/ipv4/icmp.c \
	core/ipv4/ip4.c core/ipv4/ip4_addr.c core/ipv4/ip4_frag.c netif/ethernet.c
PORT_FILES := $(sort $(wildcard net/stack/port/*.c))

STACK_DIR := $(O)/stack
STACK_INCLUDES := -I. -Inet/stack/port -Inet/stack/port/include -isystem $(LWIP_SRC)/include -isystem $(LWIP_SRC)
STACK_CFLAGS := -std=gnu11 -O2 $(filter-out -I.,$(COMMON_CFLAGS)) -ffreestanding -nostdinc $(STACK_INCLUDES) \
	-isystem $(shell $(CC) -print-file-name=include) -m64 -mno-red-zone -mgeneral-regs-only -fPIC \
	-fvisibility=hidden -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none \
	-fno-strict-aliasing -fno-common
# Across files: lwIP's small functions are inlined into each other, 15% fewer instructions a request.
ifeq ($(findstring clang,$(CC)),)
STACK_CFLAGS += -flto=auto
else
# clang names each compiler flag that a link has no use for.
STACK_LINK_QUIET := -Wno-unused-command-line-argument
endif
ifeq ($(BUILD),debug)
STACK_CFLAGS += -DWEIR_DEBUG=1
endif
STACK_OBJS := $(patsubst %.c,$(STACK_DIR)/lwip/%.o,$(LWIP_FILES)) $(patsubst net/stack/port/%.c,$(STACK_DIR)/port/%.o,$(PORT_FILES))
STACK_IMAGE := $(STACK_DIR)/stack.so

$(STACK_DIR)/.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(STACK_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(STACK_CFLAGS)' > $@

# lwIP's sources are not ours to warn about.
$(STACK_DIR)/lwip/%.o: $(STACK_DIR)/.flags build/lwip/.complete
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(filter-out -W%,$(STACK_CFLAGS)) -w -MD -MP -c $(LWIP_SRC)/$*.c -o $@

$(STACK_DIR)/port/%.o: net/stack/port/%.c $(STACK_DIR)/.flags build/lwip/.complete
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(STACK_CFLAGS) -MD -MP -c $< -o $@

# The compiler may call these at any time, also when it links.
$(STACK_DIR)/port/libc.o: private STACK_CFLAGS := $(filter-out -flto%,$(STACK_CFLAGS))

$(STACK_IMAGE): $(STACK_OBJS) net/stack/image.ld net/stack/check-image
	$(call say,LD,$@)$(CC) $(STACK_CFLAGS) $(STACK_LINK_QUIET) -shared -nostdlib -fno-builtin -Wl,-Bsymbolic,-z,text,-z,defs,-z,noexecstack \
		-Wl,-z,max-page-size=4096,--hash-style=sysv,--build-id=none -Wl,-T,net/stack/image.ld $(STACK_OBJS) -o $@.new
	@net/stack/check-image $@.new
	@mv $@.new $@

# What the kernel embeds: without symbols (stack.so keeps them for back traces).
$(STACK_DIR)/stack.img: $(STACK_IMAGE)
	@$(OBJCOPY) -S $< $@

-include $(wildcard $(STACK_OBJS:.o=.d))

# ---- kernel ----

NET_SRCS := $(sort $(wildcard net/*.c) $(filter-out net/stack/port/%,$(wildcard net/stack/*.c)) $(wildcard net/virtio/*.c))
KERNEL_SRCS += $(NET_SRCS) net/stack/blob.S
$(O)/kernel/net/stack/blob.o: $(STACK_DIR)/stack.img
KCFLAGS_net/stack/blob.S := -DSTACK_IMAGE_FILE=\"$(STACK_DIR)/stack.img\"
