# libFuzzer targets of the key-value server: both parsers and the store against a model.
#   make test-kv-fuzz                a short run with a fixed seed, for CI
#   make fuzz-kv TARGET=resp TIME=60 a longer one, which keeps what it finds below build/fuzz/
FUZZ_CC ?= clang
KV_FUZZERS := resp mc store
# Executions of the short run: seconds each, a minute on a busy machine.
KV_FUZZ_RUNS ?= 5000
FUZZ_CFLAGS = -std=gnu11 -O1 $(COMMON_CFLAGS) -D_GNU_SOURCE -pthread \
	-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all
KV_FUZZ_OBJS := $(patsubst %.c,build/fuzz/kv.d/%.o,$(kv_LIB_SRCS) tests/unit/kv/kv_harness.c \
	tests/fuzz/kv/fuzz_protocol.c)

build/fuzz/kv.d/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(FUZZ_CC) $(FUZZ_CFLAGS) -MMD -MP -c $< -o $@

$(addprefix build/fuzz/kv-,$(KV_FUZZERS)): build/fuzz/kv-%: build/fuzz/kv.d/tests/fuzz/kv/fuzz_%.o $(KV_FUZZ_OBJS)
	$(call say,LINK,$@)$(FUZZ_CC) $(FUZZ_CFLAGS) -fsanitize=fuzzer $^ -Wl,--wrap=conn_flush -lm -o $@

-include $(KV_FUZZ_OBJS:.o=.d)

.PHONY: test-kv-fuzz fuzz-kv
TEST_TIERS += kv-fuzz
test-kv-fuzz: $(addprefix build/fuzz/kv-,$(KV_FUZZERS)) ## short fuzzing of the key-value server with a fixed seed
	@$(PYTHON) tests/fuzz/kv/smoke.py $(KV_FUZZ_RUNS) $(KV_FUZZERS)

fuzz-kv: build/fuzz/kv-$(or $(TARGET),resp) ## longer fuzzing: TARGET=resp|mc|store TIME=seconds
	@mkdir -p build/fuzz/corpus/$(or $(TARGET),resp)
	cd build/fuzz && ./kv-$(or $(TARGET),resp) -max_total_time=$(or $(TIME),60) -max_len=4096 \
		corpus/$(or $(TARGET),resp) $(wildcard $(CURDIR)/tests/fuzz/kv/seeds/$(or $(TARGET),resp))
