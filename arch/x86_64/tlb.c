/* TLB shootdown, and halting, which spares a CPU the shootdowns.
 *
 * One request at a time.  The requester fills it, marks every other CPU as waiting, sets the CPU's
 * pending word and sends an IPI.  A target clears its pending word, reads the request, flushes and
 * clears its bit; the request is stable until the last bit is gone.  Whoever spins with interrupts
 * off calls arch_tlb_poll(), so nobody waits for a CPU that waits for him.
 *
 * A halted CPU is neither woken nor waited for: its pending word says "flush everything", and it
 * does so before anything else when it wakes.  Requester: write pending, read idle.  Target: write
 * idle = 0, read pending.  With a full fence between the two on both sides one of them sees the
 * other. */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/log.h"

/* Beyond this a full flush costs less: about what Linux chose by measurement
 * (tlb_single_page_flush_ceiling). */
#define MAX_SINGLE_PAGES 33

/* Bits of a CPU's pending word. */
enum { PENDING_REQUEST = 1, PENDING_ALL = 2 };

cpumask_t cpus_online = 1;

static struct {
    u32 lock;
    u64 va;
    size_t pages;
    cpumask_t waiting;
} request __cacheline_aligned;

void tlb_flush_all_local(void)
{
    write_cr3(read_cr3());
}

static void flush_local(u64 va, size_t pages)
{
    if (pages > MAX_SINGLE_PAGES) {
        tlb_flush_all_local();
        return;
    }
    for (size_t i = 0; i < pages; i++) {
        invlpg(va + i * PAGE_SIZE);
    }
}

/* Interrupts off. */
static void serve(struct percpu *pc)
{
    u64 pending = __atomic_exchange_n(&pc->arch_private[PRIV_TLB_PENDING], 0, __ATOMIC_ACQUIRE);
    if (pending & PENDING_ALL) {
        tlb_flush_all_local();
    } else if (pending & PENDING_REQUEST) {
        flush_local(request.va, request.pages);
    }
    if (pending & PENDING_REQUEST) {
        __atomic_fetch_and(&request.waiting, ~BIT(pc->cpu), __ATOMIC_RELEASE);
    }
}

void arch_tlb_poll(void)
{
    if (likely(!READ_ONCE(this_cpu()->arch_private[PRIV_TLB_PENDING]))) {
        return;
    }
    irqflags_t flags = arch_irq_save(); /* the IPI itself may come in between */
    serve(this_cpu());
    arch_irq_restore(flags);
}

void tlb_leave_idle(struct percpu *pc)
{
    __atomic_exchange_n(&pc->arch_private[PRIV_IDLE], 0, __ATOMIC_SEQ_CST);
    if (READ_ONCE(pc->arch_private[PRIV_TLB_PENDING])) {
        serve(pc);
    }
}

void arch_idle_wait(void)
{
    struct percpu *pc = this_cpu();
    __atomic_exchange_n(&pc->arch_private[PRIV_IDLE], 1, __ATOMIC_SEQ_CST);
    /* A request that was made before this CPU counted as idle waits for an answer; its IPI ends the
     * halt. sti takes effect after the next instruction: no interrupt can come between the two. */
    __asm__ volatile("sti\n\thlt\n\tcli" ::: "memory");
    if (pc->arch_private[PRIV_IDLE]) {
        tlb_leave_idle(pc); /* woken by something that is not an interrupt */
    }
}

/* Asks one CPU; false if it is halted and will flush by itself. */
static bool ask(u32 cpu)
{
    u64 *private = percpu_of(cpu)->arch_private;
    if (READ_ONCE(private[PRIV_IDLE])) {
        __atomic_fetch_or(&private[PRIV_TLB_PENDING], PENDING_ALL, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(&private[PRIV_IDLE], __ATOMIC_SEQ_CST)) {
            return false;
        }
    }
    __atomic_fetch_or(&private[PRIV_TLB_PENDING], PENDING_REQUEST, __ATOMIC_SEQ_CST);
    arch_send_ipi(cpu, ARCH_IPI_TLB);
    return true;
}

void arch_tlb_flush(u64 va, size_t pages)
{
    irqflags_t flags = arch_irq_save(); /* stay on this CPU; polling answers the others meanwhile */
    flush_local(va, pages);
    cpumask_t others = READ_ONCE(cpus_online) & ~BIT(this_cpu()->cpu);
    if (others) {
        while (__atomic_exchange_n(&request.lock, 1, __ATOMIC_ACQUIRE)) {
            while (READ_ONCE(request.lock)) {
                arch_tlb_poll();
                arch_cpu_relax();
            }
        }
        request.va = va;
        request.pages = pages;
        WRITE_ONCE(request.waiting, others);
        for (cpumask_t left = others; left; left &= left - 1) {
            u32 cpu = (u32)__builtin_ctzll(left);
            if (!ask(cpu)) {
                __atomic_fetch_and(&request.waiting, ~BIT(cpu), __ATOMIC_RELAXED);
            }
        }
        while (LOAD_ACQUIRE(request.waiting)) {
            arch_tlb_poll();
            arch_cpu_relax();
        }
        STORE_RELEASE(request.lock, 0);
    }
    arch_irq_restore(flags);
}
