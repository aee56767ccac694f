#include "tests/guest/arch/test.h"

#include "arch/x86_64/regs.h"
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/base/symbols.h"

#define RW             (ARCH_PROT_READ | ARCH_PROT_WRITE)
#define APP_TEXT       0x400000ull
#define SPIN_TEXT      0x401000ull
#define APP_STACK_TOP  0x700000ull
#define APP_STACK_SIZE 0x8000ull
#define COUNTERS       (DEMAND_BASE + 8 * PAGE_SIZE)
#define TLS            0x123000ull
#define SLICE_NS       (200 * NSEC_PER_USEC)
#define SWITCHES       20u

extern const char app_code[], app_code_end[], app_spin[], app_spin_end[];

struct test_thread {
    struct arch_thread arch;
};

static struct test_thread main_thread, threads[2];
static struct test_thread *current;
static u32 syscalls, switches;
static u32 signals_seen; /* bit per signal number */
static bool preempting;

static void switch_to(struct test_thread *next)
{
    struct test_thread *prev = current;
    current = next;
    arch_switch(&prev->arch, &next->arch);
}

static void make_thread(struct test_thread *t, void (*entry)(void *arg), void *arg)
{
    arch_thread_init(&t->arch, test_stack(KSTACK_SIZE), test_stack(THREAD_IRQ_STACK_SIZE),
                     test_stack(THREAD_FAULT_STACK_SIZE), entry, arg);
    arch_thread_init_fpu(&t->arch);
}

i64 upcall_syscall(u64 nr, const u64 args[6], struct arch_regs *regs)
{
    u64 mask = 0;
    syscalls++;
    CHECK(arch_irqs_on());
    switch (nr) {
    case 1:
        CHECK(arch_regs_in_app(regs) && arch_regs_sp(regs) == APP_STACK_TOP);
        return (i64)(args[0] + args[1] * 2 + args[2] * 3 + args[3] * 4 + args[4] * 5 + args[5] * 6);
    case 2:
        arch_irq_disable();
        switch_to(&main_thread);
        return 0;
    case 4:
        CHECK(arch_signal_pop(regs, &current->arch, &mask) && mask == 0x1234);
        return -1; /* without effect: all registers were restored */
    case 5: {
        const struct arch_signal signal = {
            .signo = 10, .handler = args[0], .restorer = args[1], .mask = 0x1234};
        struct arch_signal bad = signal;
        bad.alt_sp = 0x8000;
        CHECK(!arch_signal_push(regs, &current->arch, &bad));
        bad = signal;
        bad.handler = ~0ull;
        CHECK(!arch_signal_push(regs, &current->arch, &bad));
        arch_regs_set_return(regs, 4321);
        CHECK(arch_signal_push(regs, &current->arch, &signal));
        return -1;
    }
    default:
        return -ENOSYS;
    }
}

void upcall_app_exception(u32 signo, i32 code, u64 addr, struct arch_regs *regs)
{
    (void)code;
    (void)addr;
    CHECK(regs->rbx >= APP_TEXT && regs->rbx < APP_TEXT + PAGE_SIZE);
    signals_seen |= 1u << signo;
    /* This stack may be faulted on again: writing to a demand page does. */
    u32 word = signo;
    CHECK(arch_copy_to_app(DEMAND_BASE + 10 * PAGE_SIZE + signo, &word, 4));
    arch_regs_set_pc(regs, regs->rbx);
}

void threads_irq_exit(struct arch_regs *regs)
{
    if (!preempting || this_cpu()->cpu != 0 || !arch_regs_in_app(regs) || !timer_hits[0]) {
        return;
    }
    timer_hits[0] = 0;
    if (++switches > SWITCHES) {
        switch_to(&main_thread);
        return;
    }
    arch_timer_arm(arch_clock_ns() + SLICE_NS);
    switch_to(current == &threads[0] ? &threads[1] : &threads[0]);
}

static void map_code(u64 va, const char *from, const char *to)
{
    paddr_t page = test_page();
    memcpy(phys_to_virt(page), from, (size_t)(to - from));
    CHECK(arch_pt_map(va, page, 1, ARCH_PROT_READ | ARCH_PROT_EXEC) == 0);
}

static void start_app(void *arg)
{
    (void)arg;
    arch_set_tls(&current->arch, TLS);
    arch_enter_app(APP_TEXT, APP_STACK_TOP);
}

void test_app(void)
{
    map_code(APP_TEXT, app_code, app_code_end);
    for (u64 at = APP_STACK_TOP - APP_STACK_SIZE; at < APP_STACK_TOP; at += PAGE_SIZE) {
        CHECK(arch_pt_map(at, test_page(), 1, RW) == 0);
    }
    current = &main_thread;
    main_thread.arch.irq_stack_top = test_stack(THREAD_IRQ_STACK_SIZE);
    main_thread.arch.fault_stack_top = test_stack(THREAD_FAULT_STACK_SIZE);
    make_thread(&threads[0], start_app, NULL);
    arch_irq_disable();
    switch_to(&threads[0]);
    arch_irq_enable();
    const struct arch_regs *regs =
        (const struct arch_regs *)(uintptr_t)threads[0].arch.kstack_top - 1;
    if (regs->r14 != 1) {
        log_error("application failed before 0x%lx", regs->rip);
    }
    CHECK(regs->r14 == 1 && syscalls == 4);
    CHECK(signals_seen == (1u << 11 | 1u << 4 | 1u << 8 | 1u << 5));
    CHECK(threads[0].arch.fs_base == TLS);
}

static void start_spin(void *arg)
{
    u64 index = (u64)(uintptr_t)arg;
    struct arch_regs regs;
    memset(&regs, 0, sizeof(regs));
    arch_regs_set_pc(&regs, SPIN_TEXT);
    arch_regs_set_sp(&regs, APP_STACK_TOP - index * PAGE_SIZE);
    regs.rdi = COUNTERS + index * 64;
    regs.rsi = 1000 + index;
    arch_resume_app(&regs);
}

void test_preemption(void)
{
    u32 counts[2];
    map_code(SPIN_TEXT, app_spin, app_spin_end);
    for (u64 i = 0; i < 2; i++) {
        make_thread(&threads[i], start_spin, (void *)(uintptr_t)i);
    }
    arch_irq_disable();
    timer_hits[0] = 0;
    preempting = true;
    arch_timer_arm(arch_clock_ns() + SLICE_NS);
    switch_to(&threads[0]);
    preempting = false;
    arch_irq_enable();
    CHECK(arch_load_app(COUNTERS, &counts[0]) && arch_load_app(COUNTERS + 64, &counts[1]));
    CHECK(counts[0] && counts[1] && switches == SWITCHES + 1);
}

static bool names(u64 pc, const char *wanted)
{
    u64 offset;
    const char *name = sym_lookup(pc, &offset);
    return name && strcmp(name, wanted) == 0 && offset > 0;
}

void test_backtrace(void)
{
    u64 pcs[8];
    size_t n = arch_backtrace((u64)(uintptr_t)__builtin_frame_address(0), pcs, ARRAY_SIZE(pcs));
    CHECK(n >= 2 && names(pcs[0], "kernel_main") && names(pcs[1], "boot_main"));
    CHECK(arch_backtrace(0, pcs, 8) == 0);
    CHECK(arch_backtrace(0x40000000, pcs, 8) == 0);         /* not mapped */
    CHECK(arch_backtrace(0x8000000000000000, pcs, 8) == 0); /* not canonical */
    u64 loop[2] = {(u64)(uintptr_t)loop, 1};
    CHECK(arch_backtrace((u64)(uintptr_t)loop, pcs, 8) <= 8);     /* leads to itself */
    CHECK(arch_backtrace((u64)(uintptr_t)loop + 1, pcs, 8) == 0); /* not aligned */
    CHECK(sym_lookup(0, &pcs[0]) == NULL && sym_lookup(~0ull, &pcs[0]) == NULL);
}
