# SPIN models of the protocol under the policies.

TEST_TIERS += model
.PHONY: test-model test-model-nightly
test-model: ## SPIN models of waking, switching and balancing, and their mutants (T=name: one)
	@$(PYTHON) tests/model/run.py $(if $(T),--only '$(T)')
test-model-nightly: ## the same, with three CPUs and three threads by bit-state search
	@$(PYTHON) tests/model/run.py --nightly
