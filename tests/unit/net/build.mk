# The network on the host: the socket layer, instances and the wire under the sanitizers, over a small kernel in one thread
# (fake_kernel.c).  Instance 0 is lwIP compiled with the sanitizers too; the others are the image that the kernel embeds.

NET_HOST_KERNEL := tests/unit/net/fake_kernel.c tests/unit/fake/fake_arch.c core/base/format.c core/base/log.c \
	core/base/panic.c core/base/spinlock.c core/base/string.c
NET_HOST_SRCS := $(filter-out net/stack/image_kernel.c net/virtio/%,$(wildcard net/*.c net/stack/*.c)) $(NET_HOST_KERNEL)

# lwIP and its port for the tests: sanitized, with assertions.
NET_HOST_LWIP := $(patsubst %.c,build/unit/net-lwip/lwip/%.o,$(LWIP_FILES)) \
	$(patsubst net/stack/port/%.c,build/unit/net-lwip/port/%.o,$(filter-out net/stack/port/libc.c,$(PORT_FILES)))
NET_HOST_LWIP_CFLAGS := -std=gnu11 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined \
	-fno-sanitize-recover=all -fno-strict-aliasing -fno-common -w $(STACK_INCLUDES)

build/unit/net-lwip/lwip/%.o: build/lwip/.complete net/stack/port/lwipopts.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(NET_HOST_LWIP_CFLAGS) -MMD -MP -c $(LWIP_SRC)/$*.c -o $@
build/unit/net-lwip/port/%.o: net/stack/port/%.c build/lwip/.complete
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(NET_HOST_LWIP_CFLAGS) -MMD -MP -c $< -o $@
build/unit/net-lwip/liblwip.a: $(NET_HOST_LWIP)
	@rm -f $@
	@ar rcs $@ $^
-include $(wildcard $(NET_HOST_LWIP:.o=.d))

define net_unit
UNIT_TESTS += $(1)
$(1)_TEST_SRCS := tests/unit/net/test_$(patsubst net_%,%,$(1)).c $(2)
$(1)_TEST_CFLAGS := -DSTACK_IMAGE_FILE='"$(CURDIR)/$(STACK_DIR)/stack.img"'
build/unit/$(1): build/unit/net-lwip/liblwip.a | $(STACK_DIR)/stack.img
endef
$(eval $(call net_unit,net_wire,$(NET_HOST_SRCS)))
UNIT_TESTS += net_toeplitz net_ring
net_toeplitz_TEST_SRCS := tests/unit/net/test_toeplitz.c net/toeplitz.c
net_ring_TEST_SRCS := tests/unit/net/test_ring.c net/virtio/ring.c
$(eval $(call net_unit,net_trouble,$(NET_HOST_SRCS)))
$(eval $(call net_unit,net_scale,$(NET_HOST_SRCS)))
UNIT_TESTS += net_image
net_image_TEST_SRCS := tests/unit/net/test_image.c net/stack/image.c
net_image_TEST_CFLAGS := -DSTACK_IMAGE_FILE='"$(CURDIR)/$(STACK_DIR)/stack.img"'
build/unit/net_image: | $(STACK_DIR)/stack.img
$(eval $(call net_unit,net_virtio,$(NET_HOST_SRCS) net/virtio/datapath.c net/virtio/ring.c))
include tests/fuzz/net/build.mk
