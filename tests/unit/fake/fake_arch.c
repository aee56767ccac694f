#include "tests/unit/fake/fake_arch.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/log.h"
#include "core/base/spinlock.h"
#include "core/base/string.h"
#include "core/base/symbols.h"

#define WEAK         __attribute__((weak))
#define CONSOLE_SIZE 65536

struct percpu percpu_blocks[MAX_CPUS];
_Thread_local u32 fake_cpu;
_Thread_local bool fake_irqs_on = true;
void (*fake_irqs_enabled_hook)(void);

u64 fake_clock_now;
u64 fake_timer_deadline[MAX_CPUS];
u64 fake_ipis[MAX_CPUS][4];

static char console[CONSOLE_SIZE];
static size_t console_len;

__attribute__((constructor)) static void fake_start(void)
{
    fake_reset_cpus();
}

void fake_cpu_set(u32 n)
{
    fake_cpu = n;
    fake_irqs_on = true;
}

void fake_reset_cpus(void)
{
    memset(percpu_blocks, 0, sizeof(percpu_blocks));
    for (u32 i = 0; i < MAX_CPUS; i++) {
        percpu_blocks[i].self = &percpu_blocks[i];
        percpu_blocks[i].cpu = i;
        fake_timer_deadline[i] = UINT64_MAX;
    }
}

void fake_relax(void)
{
    sched_yield();
}

WEAK void fake_idle_wait(void)
{
    arch_irq_enable();
    sched_yield();
    arch_irq_disable();
}

/* Rises by a step that varies, like a cycle counter read from a pipeline. */
WEAK u64 fake_tsc(void)
{
    static u64 now;
    return __atomic_add_fetch(&now, 37 + (now & 15), __ATOMIC_RELAXED);
}

/* ---- console and panic ---- */

const char *fake_console_text(void)
{
    return console;
}

void fake_console_clear(void)
{
    console_len = 0;
    console[0] = '\0';
}

WEAK void arch_console_write(const char *s, size_t n)
{
    fake_console_write(s, n);
}

void fake_console_write(const char *s, size_t n)
{
    size_t fits = MIN(n, CONSOLE_SIZE - 1 - console_len);
    memcpy(console + console_len, s, fits);
    console_len += fits;
    console[console_len] = '\0';
    if (getenv("FAKE_CONSOLE") != NULL) {
        fwrite(s, 1, n, stderr);
    }
}

/* Power-off of a test process: shows why, unless the test is the child that was meant to. */
static int panic_pipe = -1;

WEAK void arch_power_off(int code)
{
    if (panic_pipe >= 0) {
        ssize_t done = write(panic_pipe, console, console_len);
        _exit(done == (ssize_t)console_len ? code : 1);
    }
    fwrite(console, 1, console_len, stderr);
    abort();
}

WEAK void arch_stop_other_cpus(void)
{
}

const char *fake_expect_panic(void (*fn)(void *arg), void *arg)
{
    static char text[CONSOLE_SIZE];
    int fds[2], status = 0;
    size_t len = 0;
    assert_int_equal(pipe(fds), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        panic_pipe = fds[1];
        fake_console_clear();
        fn(arg);
        _exit(0);
    }
    close(fds[1]);
    for (ssize_t n;
         len < sizeof(text) - 1 && (n = read(fds[0], text + len, sizeof(text) - 1 - len)) > 0;) {
        len += (size_t)n;
    }
    text[len] = '\0';
    close(fds[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != PANIC_EXIT_CODE) {
        fail_msg("no panic: wait status %#x, console: %s", status, text);
    }
    return text;
}

void fake_assert_panics(void (*fn)(void *arg), void *arg, const char *part)
{
    const char *text = fake_expect_panic(fn, arg);
    if (strstr(text, part) == NULL) {
        fail_msg("the panic does not say \"%s\" but: %s", part, text);
    }
}

WEAK size_t arch_backtrace(u64 fp, u64 *pcs, size_t max)
{
    (void)fp;
    if (max < 2) {
        return 0;
    }
    pcs[0] = KERNEL_IMAGE_BASE + 0x1234;
    pcs[1] = APP_MIN + 0x40;
    return 2;
}

WEAK const char *sym_lookup(u64 pc, u64 *offset)
{
    *offset = pc & 0xfff;
    return pc >= KERNEL_IMAGE_BASE ? "fake_symbol" : NULL;
}

WEAK u64 arch_regs_pc(const struct arch_regs *r)
{
    return (u64)(uintptr_t)r;
}

WEAK u64 arch_regs_fp(const struct arch_regs *r)
{
    (void)r;
    return 0;
}

/* ---- time, interrupts, randomness ---- */

WEAK u64 arch_clock_ns(void)
{
    return READ_ONCE(fake_clock_now);
}

WEAK void arch_timer_arm(u64 deadline_ns)
{
    fake_timer_deadline[fake_cpu] = deadline_ns;
}

WEAK void arch_timer_disarm(void)
{
    fake_timer_deadline[fake_cpu] = UINT64_MAX;
}

WEAK void arch_send_ipi(u32 cpu, enum arch_ipi ipi)
{
    __atomic_fetch_add(&fake_ipis[cpu][ipi], 1, __ATOMIC_RELAXED);
}

WEAK void arch_tlb_poll(void)
{
}

WEAK bool arch_random(u64 *out)
{
    static u64 state = 0x9e3779b97f4a7c15ull;
    *out = __atomic_add_fetch(&state, 0x9e3779b97f4a7c15ull, __ATOMIC_RELAXED);
    return true;
}

WEAK void preempt_enable_slow(void)
{
    this_cpu()->need_resched = 0;
}
