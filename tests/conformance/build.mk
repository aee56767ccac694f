# The public test suites of redis and memcached, as far as they are about what the server speaks.
TEST_TIERS += conformance

build/conformance/.complete: tests/conformance/fetch
	@tests/conformance/fetch
	@touch $@

.PHONY: conformance test-conformance
conformance: test-conformance ## redis' and memcached's own tests against the server on Linux; T=words

test-conformance: build/host/kv build/conformance/.complete
	@$(PYTHON) scripts/test-pytest conformance tests/conformance $(if $(T),'$(T)')
