# core/mm on the host, with the fake port's RAM and page tables.
FAKE_MM = $(FAKE_BASE) tests/unit/fake/fake_pages.c $(sort $(wildcard core/mm/*.c))

UNIT_TESTS += mm_memrange mm_pages mm_slab mm_kstack mm_vmtree mm_vm mm_limits
mm_memrange_TEST_SRCS := tests/unit/mm/test_memrange.c core/mm/memrange.c
mm_vmtree_TEST_SRCS := tests/unit/mm/test_vmtree.c core/mm/vmtree.c
mm_pages_TEST_SRCS = tests/unit/mm/test_pages.c $(FAKE_MM)
mm_slab_TEST_SRCS = tests/unit/mm/test_slab.c $(FAKE_MM)
mm_kstack_TEST_SRCS = tests/unit/mm/test_kstack.c $(FAKE_MM)
mm_vm_TEST_SRCS = tests/unit/mm/test_vm.c tests/unit/mm/test_vm_model.c $(FAKE_MM)
mm_limits_TEST_SRCS = tests/unit/mm/test_limits.c $(FAKE_MM)
