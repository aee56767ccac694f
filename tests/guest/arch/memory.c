#include "tests/guest/arch/test.h"

#include "core/base/errno.h"
#include "core/base/string.h"

#define RW        (ARCH_PROT_READ | ARCH_PROT_WRITE)
#define NOWHERE   0x40000000ull /* never mapped */
#define FIXED     0x600000ull
#define COPY_SIZE 2000u

volatile u64 demand_faults;

bool upcall_page_fault(u64 addr, bool write, bool exec, struct arch_regs *regs)
{
    (void)write;
    (void)exec;
    (void)regs;
    u64 end = DEMAND_BASE + DEMAND_PAGES * PAGE_SIZE;
    if (addr < DEMAND_BASE || addr >= end || arch_pt_lookup(addr)) {
        return false;
    }
    demand_faults++;
    return arch_pt_map(ALIGN_DOWN(addr, PAGE_SIZE), test_page(), 1, RW) == 0;
}

void test_memory_map(void)
{
    paddr_t page = test_page();
    CHECK(arch_pt_map(FIXED, page, 1, RW | ARCH_PROT_EXEC) == -EINVAL);
    CHECK(arch_pt_lookup(FIXED) == 0);
    CHECK(arch_pt_map(FIXED, page, 1, RW) == 0);
    CHECK(arch_pt_lookup(FIXED + 0x123) == page + 0x123);
    CHECK(arch_pt_unmap(FIXED) == page);
    CHECK(arch_pt_unmap(FIXED) == 0 && arch_pt_unmap(NOWHERE) == 0);
    CHECK(!arch_pt_protect(NOWHERE, RW));
    /* Across the ends of two levels of tables. */
    u64 va = (1ull << 39) - 2 * PAGE_SIZE;
    CHECK(arch_pt_map(va, page, 4, ARCH_PROT_READ) == 0);
    for (u32 i = 0; i < 4; i++) {
        CHECK(arch_pt_unmap(va + i * PAGE_SIZE) == page + i * PAGE_SIZE);
    }
    arch_tlb_flush(va, 4);
}

static void check_all_lengths(void)
{
    u8 from[COPY_SIZE], back[COPY_SIZE + 1];
    for (u32 i = 0; i < COPY_SIZE; i++) {
        from[i] = (u8)(i * 7 + 1);
    }
    for (u32 n = 0; n <= COPY_SIZE; n = n < 80 ? n + 1 : n + 96) {
        memset(back, 0xee, sizeof(back));
        CHECK(arch_copy_to_app(DEMAND_BASE + 3, from, n));
        CHECK(arch_copy_from_app(back, DEMAND_BASE + 3, n));
        CHECK(memcmp(from, back, n) == 0 && back[n] == 0xee);
    }
}

void test_memory_copy(void)
{
    char text[128];
    u32 word = 5, old = 0;
    check_all_lengths();
    CHECK(demand_faults == 1);
    CHECK(arch_copy_to_app(DEMAND_BASE + 2 * PAGE_SIZE - 50, text, 100) && demand_faults == 3);
    CHECK(!arch_copy_to_app(NOWHERE, text, 8) && !arch_copy_from_app(text, NOWHERE, 8));
    CHECK(!arch_copy_from_app(text, 8, 1) && !arch_copy_from_app(text, APP_MAX - 4, 8));
    CHECK(!arch_copy_from_app(text, ~0ull - 3, 8) && !arch_copy_from_app(text, DIRECT_MAP_BASE, 8));
    u64 end = DEMAND_BASE + DEMAND_PAGES * PAGE_SIZE;
    CHECK(!arch_copy_from_app(text, end - 10, 20) && arch_copy_from_app(text, end - 10, 10));

    CHECK(arch_copy_to_app(DEMAND_BASE, "hello", 6));
    CHECK(arch_copy_string_from_app(text, DEMAND_BASE, sizeof(text)) == 5);
    CHECK(arch_copy_string_from_app(text, DEMAND_BASE, 5) == -ENAMETOOLONG);
    CHECK(arch_copy_string_from_app(text, NOWHERE, 5) == -EFAULT);
    CHECK(arch_copy_to_app(end - 3, "abc", 3));
    CHECK(arch_copy_string_from_app(text, end - 3, sizeof(text)) == -EFAULT);

    CHECK(arch_copy_to_app(DEMAND_BASE, &word, 4));
    CHECK(arch_cmpxchg_app(DEMAND_BASE, 5, 6, &old) && old == 5);
    CHECK(arch_cmpxchg_app(DEMAND_BASE, 5, 7, &old) && old == 6);
    CHECK(arch_load_app(DEMAND_BASE, &word) && word == 6);
    CHECK(!arch_cmpxchg_app(NOWHERE, 5, 7, &old) && !arch_load_app(NOWHERE, &word));
    CHECK(!arch_cmpxchg_app(DEMAND_BASE + 1, 5, 7, &old) && !arch_load_app(DEMAND_BASE + 2, &word));
    CHECK(arch_zero_app(DEMAND_BASE, PAGE_SIZE + 3) && !arch_zero_app(NOWHERE, 1));
    CHECK(arch_load_app(DEMAND_BASE + PAGE_SIZE, &word) && (word & 0xffffff) == 0);
}

void test_memory_protect(void)
{
    u32 word = 77;
    CHECK(arch_copy_to_app(DEMAND_BASE, &word, 4));
    paddr_t page = arch_pt_lookup(DEMAND_BASE);
    CHECK(arch_pt_protect(DEMAND_BASE, 0));
    arch_tlb_flush(DEMAND_BASE, 1);
    CHECK(!arch_load_app(DEMAND_BASE, &word) && arch_pt_lookup(DEMAND_BASE) == page);
    CHECK(arch_pt_protect(DEMAND_BASE, ARCH_PROT_READ));
    CHECK(arch_load_app(DEMAND_BASE, &word) && word == 77);
    CHECK(!arch_copy_to_app(DEMAND_BASE, &word, 4));
    /* Wider without a flush: what the TLB holds is out of date and explained away. */
    CHECK(arch_pt_protect(DEMAND_BASE, RW));
    CHECK(arch_copy_to_app(DEMAND_BASE, &word, 4));
}

void test_memory_flush(void)
{
    u32 a = 1, b = 2, word = 0;
    paddr_t first = test_page(), second = test_page();
    memcpy(phys_to_virt(first), &a, 4);
    memcpy(phys_to_virt(second), &b, 4);
    for (u32 i = 0; i < 200; i++) {
        CHECK(arch_pt_map(FIXED, i & 1 ? second : first, 1, ARCH_PROT_READ) == 0);
        CHECK(arch_load_app(FIXED, &word) && word == (i & 1 ? b : a));
        CHECK(arch_pt_unmap(FIXED));
        arch_tlb_flush(FIXED, i % 50 == 0 ? 100 : 1);
        CHECK(!arch_load_app(FIXED, &word));
    }
}
