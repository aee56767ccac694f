# Looking into a running guest: host tests of the parts, pytest against one guest.
UNIT_TESTS += obs_parts obs_trace
OBS := core/kern/obs
obs_parts_TEST_SRCS := tests/obs/test_parts.c $(OBS)/query.c $(OBS)/unwind_app.c $(OBS)/unwind_x86_64.c $(OBS)/waits_judge.c \
	$(OBS)/app_locks_parse.c core/kern/text.c core/base/string.c core/base/format.c
obs_trace_TEST_SRCS = tests/obs/test_trace.c $(OBS)/trace_merge.c $(OBS)/trace_json.c $(OBS)/trace_threads.c $(OBS)/out.c \
	$(OBS)/stacks.c core/base/trace.c $(FAKE_BASE)

# A program whose threads wait for each other, for test_waits.py; stripped, to see what is said without symbols.
GUEST_APPS += obs-waits
obs-waits_SRCS := tests/obs/waits.c

build/obs/waits-stripped: build/apps/obs-waits
	@mkdir -p $(@D)
	@strip -o $@ $<

.PHONY: test-obs
TEST_TIERS += obs
# The debug kernel, as for the tests under QEMU.
test-obs: build/obs/waits-stripped build/apps/kv build/sim/weir-sim ## pages that look into a running guest; T=file.py, T=file.py::test or T=words
	@$(MAKE) BUILD=debug kernel
	@$(PYTHON) scripts/test-pytest obs tests/obs $(if $(T),'$(T)')
