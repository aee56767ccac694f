# The key-value server on Linux, driven by real clients (pytest), and under ThreadSanitizer.
# Against another server (a guest): KV_HOST=... KV_RESP_PORT=... KV_MC_PORT=... make test-kv
include tests/fuzz/kv/build.mk

TEST_TIERS += kv

build/host-tsan/kv-stress.d/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -fsanitize=thread -fno-pie $(APP_CFLAGS) -MMD -MP -c $< -o $@

build/host-tsan/kv-stress: $(patsubst %.c,build/host-tsan/kv-stress.d/%.o,tests/kv/stress.c \
		tests/unit/kv/kv_harness.c $(kv_LIB_SRCS))
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) -fsanitize=thread -no-pie $(APP_CFLAGS) $^ -Wl,--wrap=conn_flush -lm -o $@

build/kv-clients/hiredis: tests/kv/clients/hiredis.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) -std=gnu11 -O1 $(COMMON_CFLAGS) $< -o $@ -lhiredis

build/npm/.complete: tests/kv/clients/package.json tests/kv/clients/package-lock.json
	@scripts/deps-npm
	@touch $@

.PHONY: test-kv kv-clients
kv-clients: build/kv-clients/hiredis build/npm/.complete

test-kv: kv-clients build/host/kv build/host-san/kv build/host-tsan/kv build/host-tsan/kv-stress ## the key-value server on Linux, with real clients; T= as for test-qemu
	@$(PYTHON) scripts/test-pytest kv tests/kv $(if $(T),'$(T)')
