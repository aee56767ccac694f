# The parts of the UEFI loader that need no firmware.
UNIT_TESTS += uefi_elf uefi_text uefi_memmap uefi_pe uefi_paging
uefi_elf_TEST_SRCS := tests/unit/uefi/test_elf.c arch/x86_64/uefi/elf.c
uefi_text_TEST_SRCS := tests/unit/uefi/test_text.c arch/x86_64/uefi/text.c
uefi_memmap_TEST_SRCS := tests/unit/uefi/test_memmap.c arch/x86_64/uefi/memmap.c
uefi_pe_TEST_SRCS := tests/unit/uefi/test_pe.c arch/x86_64/uefi/pe.c
uefi_paging_TEST_SRCS := tests/unit/uefi/test_paging.c arch/x86_64/uefi/paging.c
