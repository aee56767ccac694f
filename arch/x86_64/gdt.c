/* Per-CPU descriptor tables, control registers and system-call MSRs; the shared IDT. */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/string.h"

struct tss {
    u32 reserved0;
    u64 rsp[3];
    u64 reserved1;
    u64 ist[7];
    u64 reserved2;
    u16 reserved3;
    u16 iomap_base;
} __packed;

struct table_ptr {
    u16 limit;
    u64 base;
} __packed;

struct idt_gate {
    u16 offset_low;
    u16 selector;
    u8 ist;
    u8 type;
    u16 offset_mid;
    u32 offset_high;
    u32 reserved;
};

#define GATE_INTERRUPT 0x8e /* present, DPL 0, 64-bit interrupt gate: IF off on entry */
#define GDT_CODE64     0x00af9b000000ffffull
#define GDT_DATA       0x00cf93000000ffffull
#define GDT_TSS_TYPE   0x0000890000000000ull /* present, available 64-bit TSS */

static struct {
    u64 gdt[5];
    struct tss tss;
} __cacheline_aligned cpu_tables[MAX_CPUS];

struct percpu percpu_blocks[MAX_CPUS];

static struct idt_gate idt[256] __aligned(16);

_Static_assert(offsetof(struct tss, ist) == TSS_IST1, "entry code writes the TSS");
_Static_assert(sizeof(struct tss) == 104, "hardware layout");
_Static_assert(sizeof(struct idt_gate) == 16, "hardware layout");

#define CPUID_1_EDX_MCE      BIT(7)
#define CPUID_7_EBX_FSGSBASE BIT(0)
#define CPUID_7_EBX_SMEP     BIT(7)
#define CPUID_7_ECX_UMIP     BIT(2)

static u8 ist_of(u32 vector)
{
    if (vector >= VECTOR_FIRST_IRQ) {
        return IST_IRQ;
    }
    switch (vector) {
    case 2:
        return IST_NMI;
    case 8:
    case 18:
        return IST_DOUBLE;
    default:
        return IST_FAULT;
    }
}

void idt_init(void)
{
    for (u32 v = 0; v < 256; v++) {
        u64 stub = (u64)(uintptr_t)vector_stubs + 16 * (u64)v;
        idt[v] = (struct idt_gate){
            .offset_low = (u16)stub,
            .selector = SEL_CODE,
            .ist = ist_of(v),
            .type = GATE_INTERRUPT,
            .offset_mid = (u16)(stub >> 16),
            .offset_high = (u32)(stub >> 32),
        };
    }
}

static void load_tables(u32 cpu)
{
    u64 *gdt = cpu_tables[cpu].gdt;
    u64 tss = (u64)(uintptr_t)&cpu_tables[cpu].tss;
    gdt[0] = 0;
    gdt[SEL_CODE / 8] = GDT_CODE64;
    gdt[SEL_DATA / 8] = GDT_DATA;
    gdt[SEL_TSS / 8] =
        GDT_TSS_TYPE | (sizeof(struct tss) - 1) | (tss & 0xffffff) << 16 | (tss >> 24 & 0xff) << 56;
    gdt[SEL_TSS / 8 + 1] = tss >> 32;

    struct table_ptr gdtr = {sizeof(cpu_tables[cpu].gdt) - 1, (u64)(uintptr_t)gdt};
    struct table_ptr idtr = {sizeof(idt) - 1, (u64)(uintptr_t)idt};
    __asm__ volatile("lgdt %0\n\t"
                     "lidt %1\n\t"
                     "pushq %2\n\t"
                     "leaq 1f(%%rip), %%rax\n\t"
                     "pushq %%rax\n\t"
                     "lretq\n"
                     "1:\n\t"
                     "movl %3, %%eax\n\t"
                     "movl %%eax, %%ss\n\t"
                     "movl %%eax, %%ds\n\t"
                     "movl %%eax, %%es\n\t"
                     "xorl %%eax, %%eax\n\t"
                     "movl %%eax, %%fs\n\t"
                     "movl %%eax, %%gs\n\t"
                     "ltr %w4"
                     :
                     : "m"(gdtr), "m"(idtr), "i"(SEL_CODE), "i"(SEL_DATA), "r"(SEL_TSS)
                     : "rax", "memory");
}

bool cpu_has_fsgsbase; /* the same on all CPUs; read by switch.S */

static void set_features(void)
{
    u64 cr0 = read_cr0();
    cr0 &= ~(u64)(CR0_EM | CR0_TS | CR0_CD | CR0_NW);
    write_cr0(cr0 | CR0_MP | CR0_NE | CR0_WP);

    /* OSXSAVE stays off: applications then see no AVX, and FXSAVE holds all of their state. */
    u64 cr4 = CR4_PAE | CR4_OSFXSR | CR4_OSXMMEXCPT;
    cr4 |= cpuid(1, 0).edx & CPUID_1_EDX_MCE ? CR4_MCE : 0;
    if (cpuid(0, 0).eax >= 7) {
        struct cpuid_regs r = cpuid(7, 0);
        cpu_has_fsgsbase = (r.ebx & CPUID_7_EBX_FSGSBASE) != 0;
        cr4 |= cpu_has_fsgsbase ? CR4_FSGSBASE : 0;
        cr4 |= r.ebx & CPUID_7_EBX_SMEP ? CR4_SMEP : 0;
        cr4 |= r.ecx & CPUID_7_ECX_UMIP ? CR4_UMIP : 0;
    }
    write_cr4(cr4);
}

void cpu_init(u32 cpu, const struct cpu_stack_tops *tops)
{
    struct tss *tss = &cpu_tables[cpu].tss;
    memset(tss, 0, sizeof(*tss));
    tss->iomap_base = sizeof(*tss);
    tss->ist[IST_IRQ - 1] = tops->thread_irq;
    tss->ist[IST_FAULT - 1] = tops->fault;
    tss->ist[IST_NMI - 1] = tops->nmi;
    tss->ist[IST_DOUBLE - 1] = tops->fatal;
    load_tables(cpu);
    set_features();

    struct percpu *pc = percpu_of(cpu);
    pc->self = pc;
    pc->cpu = cpu;
    pc->irq_stack_top = tops->irq;
    pc->arch_private[PRIV_TSS] = (u64)(uintptr_t)tss;
    pc->arch_private[PRIV_FS_BASE] = 0;
    wrmsr(MSR_FS_BASE, 0);
    wrmsr(MSR_GS_BASE, (u64)(uintptr_t)pc);

    wrmsr(MSR_EFER, rdmsr(MSR_EFER) | EFER_SCE | EFER_NXE);
    wrmsr(MSR_STAR, (u64)SEL_CODE << 32);
    wrmsr(MSR_LSTAR, (u64)(uintptr_t)syscall_entry);
    /* Interrupts, direction, trap, nested task and alignment check are off in the kernel. */
    wrmsr(MSR_FMASK, RFLAGS_IF | RFLAGS_DF | RFLAGS_TF | 0x4000 | 0x40000);
    __asm__ volatile("fninit");
}
