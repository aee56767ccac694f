# Rules that build the applications. Included by the top Makefile after the fragments apps/*/build.mk,
# which only set variables; the conventions are in the comment at the top of the Makefile.

APP_CFLAGS := -std=gnu11 -O2 $(COMMON_CFLAGS) -D_GNU_SOURCE -pthread
APP_SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all

# app_rules NAME, VARIANT (a folder below build/), COMPILER, extra flags: objects in build/VARIANT/NAME.d/.
define app_rules
build/$(2)/$(1): $$(patsubst %.c,build/$(2)/$(1).d/%.o,$$($(1)_SRCS))
	@mkdir -p $$(@D)
	$$(call say,LINK,$$@)$(3) $(4) $$(APP_CFLAGS) $$($(1)_CFLAGS) $$^ $$($(1)_LDFLAGS) -o $$@

build/$(2)/$(1).d/%.o: %.c build/$(2)/.flags
	@mkdir -p $$(@D)
	$$(call say,CC,$$@)$(3) $(4) $$(APP_CFLAGS) $$($(1)_CFLAGS) -MMD -MP -c $$< -o $$@

-include $$(wildcard $$(patsubst %.c,build/$(2)/$(1).d/%.d,$$($(1)_SRCS)))
endef

# variant_flags VARIANT, flags: a changed compiler or flag rebuilds the variant.
define variant_flags
build/$(1)/.flags: FORCE
	@mkdir -p $$(@D)
	@echo '$(2) $$(APP_CFLAGS)' | cmp -s - $$@ || echo '$(2) $$(APP_CFLAGS)' > $$@
endef

GUEST_APPS := $(sort $(APPS) $(GUEST_APPS))
HOST_TOOLS := $(sort $(APPS) $(HOST_TOOLS))
$(foreach a,$(sort $(GUEST_APPS) $(HOST_TOOLS)),$(if $($(a)_SRCS),,$(eval $(a)_SRCS := $(sort $(wildcard apps/$(a)/*.c)))))

$(eval $(call variant_flags,apps,$(MUSL_CC) -static))
$(eval $(call variant_flags,host,$(CC)))
$(eval $(call variant_flags,host-san,$(CC) $(APP_SANITIZE)))
# -static, not -static-pie: the distribution's musl-gcc silently makes a dynamic executable of the latter.
$(foreach a,$(GUEST_APPS),$(eval $(call app_rules,$(a),apps,$(MUSL_CC),-static)))
$(foreach a,$(HOST_TOOLS),$(eval $(call app_rules,$(a),host,$(CC),)))
$(foreach a,$(HOST_TOOLS),$(eval $(call app_rules,$(a),host-san,$(CC),$(APP_SANITIZE))))

.PHONY: apps host-apps host-san-apps
apps: $(addprefix build/apps/,$(GUEST_APPS)) ## build the applications for the guest
host-apps: $(addprefix build/host/,$(HOST_TOOLS)) ## build the applications for this host
host-san-apps: $(addprefix build/host-san/,$(HOST_TOOLS))
