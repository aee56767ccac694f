/* KVM's paravirtual clock and steal-time report.  Interface: Linux,
 * Documentation/virt/kvm/x86/{cpuid,msr}.rst.
 *
 * Not run on the development machines, which have no KVM: the arithmetic (clock_math.c) is checked
 * by host tests. */
#include "arch/x86_64/clock_math.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/log.h"

#define CPUID_HYPERVISOR_FIRST   0x40000000u
#define CPUID_HYPERVISOR_LAST    0x40010000u
#define CPUID_HYPERVISOR_STEP    0x100u
#define KVM_FEATURE_CLOCKSOURCE2 BIT(3)
#define KVM_FEATURE_STEAL_TIME   BIT(5)
#define MSR_KVM_SYSTEM_TIME_NEW  0x4b564d01u
#define MSR_KVM_STEAL_TIME       0x4b564d03u
#define MSR_ENABLE               BIT(0)

static bool have_clock, have_steal;
static struct pvclock_time clocks[MAX_CPUS] __cacheline_aligned;
static struct kvm_steal_time steals[MAX_CPUS] __cacheline_aligned;
static u64 last_ns; /* keeps unstable per-CPU clocks monotonic across CPUs */

_Static_assert(sizeof(struct pvclock_time) == 32, "published layout");
_Static_assert(sizeof(struct kvm_steal_time) == 64,
               "published layout; 64-byte alignment is required");

bool kvmclock_detect(void)
{
    if (!cpu_in_hypervisor()) {
        return false;
    }
    /* KVM's leaves may lie behind those of a second interface (Hyper-V emulation). */
    for (u32 base = CPUID_HYPERVISOR_FIRST; base < CPUID_HYPERVISOR_LAST;
         base += CPUID_HYPERVISOR_STEP) {
        struct cpuid_regs r = cpuid(base, 0);
        if (r.ebx == 0x4b4d564b && r.ecx == 0x564b4d56 && r.edx == 0x0000004d) { /* KVMKVMKVM */
            u32 features = cpuid(base + 1, 0).eax;
            have_clock = features & KVM_FEATURE_CLOCKSOURCE2;
            have_steal = features & KVM_FEATURE_STEAL_TIME;
            log_info("kvm: clock %s, steal time %s", have_clock ? "yes" : "no",
                     have_steal ? "yes" : "no");
            return true;
        }
    }
    return false;
}

void kvmclock_init_this_cpu(u32 cpu)
{
    if (have_clock) {
        wrmsr(MSR_KVM_SYSTEM_TIME_NEW, image_phys(&clocks[cpu]) | MSR_ENABLE);
    }
    if (have_steal) {
        wrmsr(MSR_KVM_STEAL_TIME, image_phys(&steals[cpu]) | MSR_ENABLE);
    }
}

bool kvmclock_usable(void)
{
    return have_clock;
}

u64 kvmclock_tsc_hz(void)
{
    struct pvclock_time t;
    while (!pvclock_snapshot(&clocks[0], &t)) {
        arch_cpu_relax();
    }
    return pvclock_tsc_hz(&t);
}

u64 kvmclock_read_ns(void)
{
    struct pvclock_time t;
    irqflags_t flags = arch_irq_save(); /* structure and counter must be of one CPU */
    u32 cpu = this_cpu()->cpu;
    u64 tsc;
    do {
        __asm__ volatile("lfence" ::: "memory");
        tsc = arch_tsc();
    } while (!pvclock_snapshot(&clocks[cpu], &t));
    arch_irq_restore(flags);
    u64 ns = pvclock_ns(&t, tsc);
    if (t.flags & PVCLOCK_TSC_STABLE) {
        return ns;
    }
    u64 last = __atomic_load_n(&last_ns, __ATOMIC_RELAXED);
    while (ns > last && !__atomic_compare_exchange_n(&last_ns, &last, ns, true, __ATOMIC_RELAXED,
                                                     __ATOMIC_RELAXED)) {
    }
    return MAX(ns, last);
}

bool arch_steal_ns(u32 cpu, u64 *ns)
{
    if (!have_steal || cpu >= MAX_CPUS) {
        return false;
    }
    while (!steal_snapshot(&steals[cpu], ns)) {
        arch_cpu_relax();
    }
    return true;
}
