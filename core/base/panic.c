/* Panic: says what, where, on which CPU and thread, with which locks held, then powers off.
 *
 * Nothing here takes a lock or allocates: the state of both is what may be broken. The first CPU to
 * panic stops the others and writes to the console alone; one that panics meanwhile waits to be
 * stopped. A panic inside the panic (a hook that faults, say) prints one line and powers off. */
#include "arch/arch.h"
#include "core/base/console.h"
#include "core/base/log.h"
#include "core/base/param.h"
#include "core/base/spinlock.h"
#include "core/base/string.h"
#include "core/base/symbols.h"

#define NOBODY UINT32_MAX

void (*panic_extra)(void);
void (*panic_describe_thread)(char *buf, size_t n);
bool (*panic_app_symbol)(u64 pc, char *buf, size_t n);

static u32 panic_owner = NOBODY; /* CPU that panicked first */
static u32 panic_step;           /* what that CPU was printing, to name it if that panics again */

enum { STEP_REASON, STEP_THREAD, STEP_TRACE, STEP_LOCKS, STEP_EXTRA };
static const char *const step_names[] = {"reason", "thread", "back trace", "locks", "extra"};

static void print_frame(u32 index, u64 pc, bool is_return_address)
{
    char name[128];
    if (pc < APP_MAX) {
        if (panic_app_symbol != NULL && panic_app_symbol(pc, name, sizeof(name))) {
            console_line("", "  #%-2u %016lx application: %s", index, pc, name);
        } else {
            console_line("", "  #%-2u %016lx application", index, pc);
        }
        return;
    }
    /* A call at the very end of a function returns into the next one: look up the call itself. */
    u64 offset = 0;
    const char *symbol = sym_lookup(is_return_address ? pc - 1 : pc, &offset);
    if (symbol != NULL) {
        console_line("", "  #%-2u %016lx %s+0x%lx", index, pc, symbol,
                     offset + (is_return_address ? 1 : 0));
    } else {
        console_line("", "  #%-2u %016lx ?", index, pc);
    }
}

static void print_backtrace(u64 pc, u64 fp)
{
    u64 pcs[PANIC_MAX_FRAMES];
    size_t n = arch_backtrace(fp, pcs, ARRAY_SIZE(pcs));
    console_line("", "back trace:");
    u32 index = 0;
    if (pc != 0) {
        print_frame(index++, pc, false);
    }
    for (size_t i = 0; i < n; i++) {
        print_frame(index++, pcs[i], true);
    }
}

static void print_thread(void)
{
    char text[128] = "none yet";
    if (panic_describe_thread != NULL) {
        panic_describe_thread(text, sizeof(text));
    }
    console_line("", "thread: %s", text);
}

/* Decides who prints.  Returns only to the one CPU that does. */
static void claim_panic(u32 cpu)
{
    u32 owner = NOBODY;
    if (__atomic_compare_exchange_n(&panic_owner, &owner, cpu, false, __ATOMIC_SEQ_CST,
                                    __ATOMIC_SEQ_CST)) {
        return;
    }
    if (owner == cpu) {
        console_line("", "panic inside the panic, while printing: %s",
                     step_names[READ_ONCE(panic_step)]);
        arch_power_off(PANIC_EXIT_CODE);
    }
    arch_irq_enable(); /* the stop request arrives as an interrupt */
    for (;;) {
        arch_cpu_relax();
    }
}

static void panic_common(u64 pc, u64 fp, const char *fmt, va_list args) __noreturn;
static void panic_common(u64 pc, u64 fp, const char *fmt, va_list args)
{
    char reason[256];
    arch_irq_disable();
    u32 cpu = this_cpu()->cpu;
    claim_panic(cpu);
    console_panic_mode(cpu);
    arch_stop_other_cpus();
    WRITE_ONCE(panic_step, STEP_REASON);
    str_vformat(reason, sizeof(reason), fmt, args);
    console_line("", "panic on CPU %u: %s", cpu, reason);
    WRITE_ONCE(panic_step, STEP_THREAD);
    print_thread();
    WRITE_ONCE(panic_step, STEP_TRACE);
    print_backtrace(pc, fp);
    WRITE_ONCE(panic_step, STEP_LOCKS);
    spin_print_held();
    WRITE_ONCE(panic_step, STEP_EXTRA);
    if (panic_extra != NULL) {
        panic_extra();
    }
    console_line("", "end of panic, powering off with code %d", PANIC_EXIT_CODE);
    arch_power_off(PANIC_EXIT_CODE);
}

void panic(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    panic_common(0, (u64)(uintptr_t)__builtin_frame_address(0), fmt, args);
}

void panic_at(const struct arch_regs *regs, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    panic_common(arch_regs_pc(regs), arch_regs_fp(regs), fmt, args);
}
