/* Interrupt dispatch and vectors for devices. */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/errno.h"
#include "core/base/log.h"

#define MSI_ADDRESS 0xfee00000u /* Intel SDM vol. 3, "message signalled interrupts" */

#define NUM_SLOTS (VECTOR_SCI - VECTOR_FIRST_FREE)

struct irq_slot {
    void (*handler)(void *arg); /* published last, withdrawn first */
    void *arg;
};

/* One per CPU, in a page of its own. */
struct irq_table {
    u64 used[ALIGN_UP(NUM_SLOTS, 64) / 64]; /* atomic bits */
    struct irq_slot slots[NUM_SLOTS];
};
_Static_assert(sizeof(struct irq_table) <= PAGE_SIZE, "irq_tables_init allocates a page");

static struct irq_table *table_of(const struct percpu *pc)
{
    return (struct irq_table *)(uintptr_t)pc->arch_private[PRIV_VECTORS];
}

int irq_tables_init(u32 num_cpus)
{
    for (u32 cpu = 0; cpu < num_cpus; cpu++) {
        paddr_t page = arch_page_alloc();
        if (!page) {
            return -ENOMEM;
        }
        percpu_of(cpu)->arch_private[PRIV_VECTORS] = (u64)(uintptr_t)phys_to_virt(page);
    }
    return 0;
}

static void device_interrupt(const struct percpu *pc, u32 vector)
{
    struct irq_slot *slot = &table_of(pc)->slots[vector - VECTOR_FIRST_FREE];
    void (*handler)(void *) = LOAD_ACQUIRE(slot->handler);
    if (handler) {
        handler(slot->arg);
    }
}

/* On the CPU's interrupt stack, interrupts off. */
void irq_dispatch(struct arch_regs *regs)
{
    struct percpu *pc = this_cpu();
    u32 vector = (u32)regs->vector;
    if (pc->arch_private[PRIV_IDLE]) {
        tlb_leave_idle(pc);
    }
    pc->irq_count[vector]++;
    pc->irq_depth = 1;
    switch (vector) {
    case VECTOR_TIMER:
        lapic_timer_interrupt(regs);
        break;
    case VECTOR_RESCHED:
        upcall_ipi_resched();
        break;
    case VECTOR_CALL:
        upcall_ipi_call();
        break;
    case VECTOR_TLB:
        arch_tlb_poll();
        break;
    case VECTOR_SCI:
        irq_handle_sci();
        break;
    case VECTOR_APIC_ERROR:
        log_warn("cpu %u: local APIC error %x", pc->cpu, lapic_error_status());
        break;
    default:
        if (vector >= VECTOR_FIRST_FREE) {
            device_interrupt(pc, vector);
        }
        break;
    }
    if (vector != VECTOR_SPURIOUS && vector >= VECTOR_FIRST_FREE) {
        lapic_eoi();
    }
    upcall_irq_tail();
    pc->irq_depth = 0;
}

int arch_irq_alloc_msi(u32 cpu, void (*handler)(void *arg), void *arg, struct arch_msi *msi)
{
    struct irq_table *table = table_of(percpu_of(cpu));
    u32 apic_id = (u32)percpu_of(cpu)->arch_private[PRIV_APIC_ID];
    if (!table || apic_id > 255) {
        return -ENOSPC; /* an MSI carries 8 bits of APIC id without interrupt remapping */
    }
    for (u32 i = 0; i < NUM_SLOTS; i++) {
        u64 bit = BIT(i % 64);
        if (!(__atomic_fetch_or(&table->used[i / 64], bit, __ATOMIC_ACQUIRE) & bit)) {
            table->slots[i].arg = arg;
            STORE_RELEASE(table->slots[i].handler, handler);
            msi->address = MSI_ADDRESS | apic_id << 12;
            msi->data = VECTOR_FIRST_FREE + i;
            return (int)msi->data;
        }
    }
    return -ENOSPC;
}

void arch_irq_free(u32 cpu, int vector)
{
    struct irq_table *table = table_of(percpu_of(cpu));
    if (vector < VECTOR_FIRST_FREE || vector >= VECTOR_SCI) {
        return;
    }
    u32 i = (u32)vector - VECTOR_FIRST_FREE;
    STORE_RELEASE(table->slots[i].handler, NULL);
    __atomic_fetch_and(&table->used[i / 64], ~BIT(i % 64), __ATOMIC_RELEASE);
}
