#include "tests/unit/sched/vmach.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "core/base/console.h"
#include "core/base/log.h"
#include "core/mm/mm.h"
#include "sched/sched.h"

#define VM_STACK_BYTES (64 * 1024)

struct percpu percpu_blocks[MAX_CPUS];
static struct vm_cpu cpus[MAX_CPUS];
static uint32_t num_cpus, here;
static uint64_t now_ns, rng, points, points_max;
static const char *failure;
static bool stopped, running;
static void *machine_sp;

/* void vm_switch(void **save_sp, void *load_sp): callee-saved registers on the stack, as the kernel's own switch does. */
void vm_switch(void **save_sp, void *load_sp);
__asm__(".text\n.globl vm_switch\nvm_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n");

static void *make_context(uint64_t top, void (*start)(void))
{
    uint64_t *sp = (uint64_t *)(uintptr_t)(top & ~15ull);
    *--sp = 0; /* start's return address: it never returns */
    *--sp = (uint64_t)(uintptr_t)start;
    sp -= 6;
    memset(sp, 0, 48);
    return sp;
}

struct vm_cpu *vm_here(void)
{
    return &cpus[here];
}

uint64_t vm_now(void)
{
    return now_ns;
}

void vm_skip(uint64_t ns)
{
    now_ns += ns;
}

uint64_t vm_points(void)
{
    return points;
}

uint32_t vm_random(uint32_t below)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (uint32_t)(rng >> 20) % below;
}

void vm_stop(void)
{
    stopped = true;
}

void vm_fail(const char *what)
{
    if (!failure) {
        failure = what;
    }
    if (running) {
        void *lost;
        vm_switch(&lost, machine_sp);
    }
}

static bool interrupt_pending(const struct vm_cpu *c)
{
    return c->ipi_pending || c->timer_ns <= now_ns;
}

bool vm_asleep(uint32_t cpu)
{
    return cpus[cpu].halted && !interrupt_pending(&cpus[cpu]);
}

static void deliver_interrupts(void)
{
    struct vm_cpu *c = vm_here();
    if (!c->irqs_on || c->in_irq || !interrupt_pending(c)) {
        return;
    }
    c->irqs_on = false;
    c->in_irq = true;
    c->halted = false;
    percpu_blocks[c->cpu].irq_depth = 1;
    if (c->timer_ns <= now_ns) {
        c->timer_ns = UINT64_MAX;
        upcall_timer(NULL);
    }
    if (c->ipi_pending) {
        c->ipi_pending = false;
        upcall_ipi_resched();
    }
    upcall_irq_tail();
    percpu_blocks[c->cpu].irq_depth = 0;
    c->in_irq = false;
    upcall_irq_exit(NULL);
    vm_here()->irqs_on = true; /* iret: of the CPU that the thread resumed on */
}

/* Gives control to the machine's loop, which comes back when it draws this CPU again. */
static void leave_cpu(void)
{
    struct vm_cpu *c = vm_here();
    vm_switch(&c->sp, machine_sp);
    deliver_interrupts();
}

void vm_point(void)
{
    if (!running) {
        return;
    }
    now_ns += 10 + vm_random(200);
    if (++points > points_max) {
        vm_fail("livelock: too many steps");
    }
    /* Long runs of one CPU and close interleavings both matter: change over at a third of the points. */
    if (vm_random(3) == 0) {
        leave_cpu();
    } else {
        deliver_interrupts();
    }
}

void vm_idle_wait(void)
{
    struct vm_cpu *c = vm_here();
    c->irqs_on = true;
    c->halted = true;
    while (c->halted) {
        leave_cpu();
    }
    c->irqs_on = false;
}

static void (*cpu_entry)(uint32_t cpu);

static void cpu_start(void)
{
    cpu_entry(here);
    vm_fail("a CPU's entry returned");
}

/* The next CPU to go on, or -1 when nothing can ever happen again. */
static int draw_cpu(void)
{
    uint32_t first = vm_random(num_cpus);
    for (uint32_t i = 0; i < num_cpus; i++) {
        uint32_t n = (first + i) % num_cpus;
        if (!cpus[n].halted || interrupt_pending(&cpus[n])) {
            return (int)n;
        }
    }
    uint64_t next = UINT64_MAX;
    for (uint32_t i = 0; i < num_cpus; i++) {
        next = MIN(next, cpus[i].timer_ns);
    }
    if (next == UINT64_MAX) {
        return -1;
    }
    now_ns = next;
    return draw_cpu();
}

const char *vm_run(uint32_t n, uint64_t seed, uint64_t max_points, void (*entry)(uint32_t cpu))
{
    static uint8_t stacks[MAX_CPUS][VM_STACK_BYTES] __attribute__((aligned(64)));
    num_cpus = n;
    rng = seed * 0x9e3779b97f4a7c15ull + 0x1234567;
    now_ns = 1000;
    points = 0;
    points_max = max_points;
    failure = NULL;
    stopped = false;
    cpu_entry = entry;
    for (uint32_t i = 0; i < n; i++) {
        cpus[i] = (struct vm_cpu){ .cpu = i, .timer_ns = UINT64_MAX };
        memset(&percpu_blocks[i], 0, sizeof(percpu_blocks[i]));
        percpu_blocks[i].self = &percpu_blocks[i];
        percpu_blocks[i].cpu = i;
        cpus[i].sp = make_context((uint64_t)(uintptr_t)(stacks[i] + VM_STACK_BYTES), cpu_start);
    }
    running = true;
    while (!stopped && !failure) {
        int next = draw_cpu();
        if (next < 0) {
            failure = "lost wakeup: every CPU halted, nothing pending";
            break;
        }
        here = (uint32_t)next;
        vm_switch(&machine_sp, cpus[here].sp);
    }
    running = false;
    return failure;
}

/* ---- what the scheduler asks of arch, mm and base ---- */

static void thread_start_trampoline(void)
{
    struct arch_thread *t = thread_arch(current_thread());
    ((void (*)(void *))(uintptr_t)t->fs_base)((void *)(uintptr_t)t->kstack_top);
    vm_fail("a thread's entry returned");
}

void arch_thread_init(struct arch_thread *t, u64 kstack_top, u64 irq_top, u64 fault_top, void (*entry)(void *), void *arg)
{
    (void)irq_top;
    (void)fault_top;
    t->sp = (u64)(uintptr_t)make_context(kstack_top, thread_start_trampoline);
    t->fs_base = (u64)(uintptr_t)entry;
    t->kstack_top = (u64)(uintptr_t)arg;
}

void arch_switch(struct arch_thread *prev, struct arch_thread *next)
{
    vm_switch((void **)(void *)&prev->sp, (void *)(uintptr_t)next->sp);
}

void arch_thread_init_fpu(struct arch_thread *t)
{
    (void)t;
}

void arch_thread_copy_fpu(struct arch_thread *t)
{
    (void)t;
}

u64 arch_clock_ns(void)
{
    return now_ns;
}

bool arch_steal_ns(u32 cpu, u64 *ns)
{
    (void)cpu;
    (void)ns;
    return false;
}

void arch_timer_arm(u64 deadline_ns)
{
    vm_here()->timer_ns = deadline_ns;
}

void arch_send_ipi(u32 cpu, enum arch_ipi ipi)
{
    (void)ipi;
    cpus[cpu].ipi_pending = true;
    vm_point();
}

int arch_recovery_set(struct arch_recovery *r)
{
    (void)r;
    return 0; /* nothing runs away here */
}

void arch_recover(struct arch_regs *regs, const struct arch_recovery *r)
{
    (void)regs;
    (void)r;
}

bool arch_regs_in_app(const struct arch_regs *r)
{
    (void)r;
    return false;
}

size_t arch_backtrace(u64 fp, u64 *pcs, size_t max)
{
    (void)fp;
    (void)pcs;
    (void)max;
    return 0;
}

u64 arch_thread_saved_fp(const struct arch_thread *t)
{
    (void)t;
    return 0;
}

void arch_tlb_poll(void)
{
}

/* Host functions need more stack than a kernel thread has: the part below `bytes` is hidden from the kernel. */
u64 kstack_alloc(size_t bytes)
{
    u8 *p = aligned_alloc(64, VM_STACK_BYTES);
    return (u64)(uintptr_t)p + VM_STACK_BYTES - bytes;
}

void kstack_free(u64 base, size_t bytes)
{
    free((void *)(uintptr_t)(base + bytes - VM_STACK_BYTES));
}

struct slab_cache *slab_create(const char *name, size_t bytes, size_t align, enum mem_kind kind)
{
    (void)name;
    (void)align;
    (void)kind;
    static size_t size;
    size = bytes;
    return (struct slab_cache *)(void *)&size;
}

void *slab_alloc(struct slab_cache *c)
{
    return aligned_alloc(64, ALIGN_UP(*(size_t *)(void *)c, 64));
}

void (*panic_describe_thread)(char *buf, size_t n);
enum log_level log_threshold = LOG_ERROR;

void log_line(enum log_level level, const char *fmt, ...)
{
    (void)level;
    (void)fmt;
}

void console_line(const char *tag, const char *fmt, ...)
{
    (void)tag;
    (void)fmt;
}

void panic(const char *fmt, ...)
{
    static char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    vm_fail(text);
    fprintf(stderr, "panic outside of the machine: %s\n", text);
    abort();
}
