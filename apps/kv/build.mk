# The key-value server. Besides the usual variants there is one with ThreadSanitizer.
APPS += kv
kv_SRCS := $(sort $(wildcard apps/kv/*.c))
# All but main: what tests link.
kv_LIB_SRCS := $(filter-out apps/kv/main.c,$(kv_SRCS))
kv_LDFLAGS := -lm

# Not PIE: ThreadSanitizer's fixed shadow layout does not suit every kernel's address randomisation.
build/host-tsan/kv.d/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -fsanitize=thread -fno-pie $(APP_CFLAGS) -MMD -MP -c $< -o $@

build/host-tsan/kv: $(patsubst %.c,build/host-tsan/kv.d/%.o,$(kv_SRCS))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -fsanitize=thread -no-pie $(APP_CFLAGS) $^ $(kv_LDFLAGS) -o $@

-include $(wildcard build/host-tsan/kv.d/apps/kv/*.d)
