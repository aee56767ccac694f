/* Tests of the port that run in its place: the machine, and nothing else of the kernel. */
#ifndef WEIR_TESTS_GUEST_ARCH_TEST_H
#define WEIR_TESTS_GUEST_ARCH_TEST_H

#include "arch/arch.h"
#include "core/base/log.h"

/* The first failure ends the run. */
#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            log_error("not ok %s: %s:%d: %s", test_name, __FILE__, __LINE__, #cond);               \
            arch_power_off(1);                                                                     \
        }                                                                                          \
    } while (0)

/* Polls a condition; 30 s of the guest's clock are far beyond anything that still works. */
#define WAIT_FOR(cond)                                                                             \
    do {                                                                                           \
        u64 wait_end = arch_clock_ns() + 30 * NSEC_PER_SEC;                                        \
        while (!(cond)) {                                                                          \
            CHECK(arch_clock_ns() < wait_end);                                                     \
            arch_cpu_relax();                                                                      \
        }                                                                                          \
    } while (0)

extern const char *test_name;
extern u32 test_cpus; /* that run */

/* main.c */
paddr_t test_page(void);
u64 test_stack(u64 bytes); /* returns the top */
extern volatile u32 timer_hits[MAX_CPUS];

/* memory.c */
#define DEMAND_BASE  0x50000000ull /* pages here appear when they are touched */
#define DEMAND_PAGES 16
extern volatile u64 demand_faults;
void test_memory_map(void);
void test_memory_copy(void);
void test_memory_protect(void);
void test_memory_flush(void);

/* threads.c */
void test_app(void);
void test_preemption(void);
void test_backtrace(void);
void threads_irq_exit(struct arch_regs *regs);

/* fatal.c: does what the kernel must not survive; returns if `what` names nothing. */
void fatal(const char *what);

#endif
