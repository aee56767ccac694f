# Fuzzers of the network (libFuzzer): frames in sequences.
#   make fuzz-net FUZZ_SECONDS=600       runs it for that long from the seeds
ifndef FUZZ_NET_CC
FUZZ_NET_CC := clang
FUZZ_NET_CFLAGS := -std=gnu11 -O1 -g -fno-omit-frame-pointer -D_GNU_SOURCE -DWEIR_HOST_TEST=1 -DWEIR_DEBUG=1 -I. -w \
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-sanitize=alignment,function \
	-DSTACK_IMAGE_FILE='"$(CURDIR)/$(STACK_DIR)/stack.img"'
FUZZ_NET_LWIP := $(patsubst %.c,build/fuzz/net/lwip/%.o,$(LWIP_FILES)) \
	$(patsubst net/stack/port/%.c,build/fuzz/net/port/%.o,$(filter-out net/stack/port/libc.c,$(PORT_FILES)))
FUZZ_NET_OBJS := $(patsubst %.c,build/fuzz/net/%.o,$(NET_HOST_SRCS) tests/fuzz/net/frames.c)
FUZZ_SECONDS ?= 60

build/fuzz/net/lwip/%.o: build/lwip/.complete net/stack/port/lwipopts.h
	@mkdir -p $(@D)
	$(call say,CC,$@)$(FUZZ_NET_CC) $(FUZZ_NET_CFLAGS) -fno-strict-aliasing $(STACK_INCLUDES) -MMD -MP -c $(LWIP_SRC)/$*.c -o $@
build/fuzz/net/port/%.o: net/stack/port/%.c build/lwip/.complete
	@mkdir -p $(@D)
	$(call say,CC,$@)$(FUZZ_NET_CC) $(FUZZ_NET_CFLAGS) -fno-strict-aliasing $(STACK_INCLUDES) -MMD -MP -c $< -o $@
$(FUZZ_NET_OBJS): build/fuzz/net/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(FUZZ_NET_CC) $(FUZZ_NET_CFLAGS) -MMD -MP -c $< -o $@
build/fuzz/net/frames: $(FUZZ_NET_OBJS) $(FUZZ_NET_LWIP) | $(STACK_DIR)/stack.img
	$(call say,LINK,$@)$(FUZZ_NET_CC) -fsanitize=fuzzer,address,undefined $^ -lcmocka -o $@
-include $(wildcard $(FUZZ_NET_OBJS:.o=.d) $(FUZZ_NET_LWIP:.o=.d))

.PHONY: fuzz-net
fuzz-net: build/fuzz/net/frames ## fuzz the network with frames (FUZZ_SECONDS=)
	@mkdir -p build/fuzz/net/corpus
	build/fuzz/net/frames -max_total_time=$(FUZZ_SECONDS) -max_len=2048 -timeout=20 -print_final_stats=1 build/fuzz/net/corpus
endif
