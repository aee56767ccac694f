# QEMU from outside: boots guests in every way and points real clients at them.
TEST_TIERS += qemu

# Most tests boot the debug flavour (lock checker, expensive assertions); those of booting what is shipped.
.PHONY: test-qemu qemu-tests-built
qemu-tests-built:
	@$(MAKE) BUILD=release kernel apps image build/weir-replay
	@$(MAKE) BUILD=debug kernel

test-qemu: qemu-tests-built kv-clients ## guests under QEMU, driven from outside; T=file.py, T=file.py::test or T=words
	@$(PYTHON) scripts/test-pytest qemu tests/qemu $(if $(T),'$(T)')
