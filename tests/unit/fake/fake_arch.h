/* What host tests control and see of the fake CPU port. Link tests/unit/fake/fake_arch.c (and
 * fake_pages.c for memory). Every function of arch/arch.h there is a weak symbol: a test that needs
 * another behaviour defines its own. */
#ifndef WEIR_TESTS_FAKE_ARCH_H
#define WEIR_TESTS_FAKE_ARCH_H

#include "arch/arch.h"
#include "core/base/types.h"

/* The calling pthread is CPU n from now on, interrupts on. */
void fake_cpu_set(u32 n);
/* Gives every per-CPU block its number and clears the rest. */
void fake_reset_cpus(void);

/* Time of arch_clock_ns(), set by the test. */
extern u64 fake_clock_now;
/* Deadline that a CPU armed last; UINT64_MAX if none. */
extern u64 fake_timer_deadline[MAX_CPUS];
/* IPIs sent, by target and kind. */
extern u64 fake_ipis[MAX_CPUS][4];

/* Console output since the last fake_console_clear(), NUL-terminated; cut at 64 KiB. */
const char *fake_console_text(void);
void fake_console_clear(void);
void fake_console_write(const char *s, size_t n);

/* Runs fn(arg) in a child process and returns what it wrote to the console if it panicked; fails
 * the test if it did anything else. The text is valid until the next call. */
const char *fake_expect_panic(void (*fn)(void *arg), void *arg);
/* Same, and the text must contain `part`. */
void fake_assert_panics(void (*fn)(void *arg), void *arg, const char *part);

/* ---- memory (fake_pages.c) ---- */

/* Maps `bytes` of host memory as the machine's RAM, fills the boot information that
 * arch_boot_info() returns (one usable range) and empties the page tables. Physical addresses are
 * such that phys_to_virt() gives the host address. */
struct boot_info *fake_ram_init(u64 bytes);
void fake_ram_free(void);
extern u64 fake_ram_base; /* physical address of its first byte */

/* Access of the calling CPU to application memory the way a CPU does it: through a TLB that keeps
 * translations until they are flushed, with faults going to mm_handle_fault(). NULL: the access is
 * not allowed. */
u8 *fake_access(u64 va, bool write);
/* Number of TLB entries, over all CPUs, that the page tables no longer agree with. */
u32 fake_tlb_stale(void);
/* Pages in the page tables; protection of one. */
u64 fake_pt_pages(void);
bool fake_pt_query(u64 va, paddr_t *pa, u32 *prot);
/* The next n calls of arch_pt_map that would need a new page-table page succeed, then they fail;
 * UINT64_MAX: never. */
extern u64 fake_pt_map_budget;
extern u64 fake_tlb_flushes;

#endif
