# Rules that build and run the unit tests on the host: cmocka programs under ASan + UBSan.
#
# The tests are declared by UNIT_TESTS and NAME_TEST_SRCS in the fragments of the rooms, in
# tests/unit/NAME.mk or in tests/unit/NAME/build.mk; the top Makefile includes this file after them.

UNIT_CFLAGS := -std=gnu11 -O1 $(COMMON_CFLAGS) -D_GNU_SOURCE -DWEIR_HOST_TEST=1 -DWEIR_DEBUG=1 -pthread \
	-fsanitize=address,undefined -fno-sanitize-recover=all
UNIT_TESTS := $(sort $(UNIT_TESTS))

# Each test has objects of its own: two tests may build one source with different flags.
define unit_rules
build/unit/$(1): $$(patsubst %.c,build/unit/$(1).d/%.o,$$($(1)_TEST_SRCS))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)$(CC) $$(UNIT_CFLAGS) $$^ $$($(1)_TEST_LDFLAGS) -lcmocka -o $$@

build/unit/$(1).d/%.o: %.c build/unit/.flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$(CC) $$(UNIT_CFLAGS) $$($(1)_TEST_CFLAGS) -MMD -MP -c $$< -o $$@

-include $$(wildcard $$(patsubst %.c,build/unit/$(1).d/%.d,$$($(1)_TEST_SRCS)))
endef
$(foreach t,$(UNIT_TESTS),$(eval $(call unit_rules,$(t))))

build/unit/.flags: FORCE
	@mkdir -p $(@D)
	@echo '$(CC) $(UNIT_CFLAGS)' | cmp -s - $@ || echo '$(CC) $(UNIT_CFLAGS)' > $@

TEST_TIERS += unit
UNIT_SELECTED := $(if $(T),$(T),$(UNIT_TESTS))
UNIT_UNKNOWN := $(filter-out $(UNIT_TESTS),$(UNIT_SELECTED))

.PHONY: test-unit unit-tests
unit-tests: $(addprefix build/unit/,$(UNIT_TESTS))
test-unit: $(if $(UNIT_UNKNOWN),unit-unknown,$(addprefix build/unit/,$(UNIT_SELECTED))) ## host unit tests; T=name runs one
	@$(PYTHON) scripts/test-unit $(addprefix build/unit/,$(UNIT_SELECTED))

.PHONY: unit-unknown
unit-unknown:
	@echo "no unit test named $(UNIT_UNKNOWN); there are: $(UNIT_TESTS)" >&2; exit 1
