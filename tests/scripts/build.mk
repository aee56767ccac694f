# The scripts on the host, without a guest.
TEST_TIERS += scripts

.PHONY: test-scripts
test-scripts: ## scripts/weir and the checks, without a guest; T= as in test-qemu
	@$(PYTHON) scripts/test-pytest scripts tests/scripts $(if $(T),'$(T)')
