/* Clocks: which one arch_clock_ns() reads, calibration, wall time.
 *
 * The reference is the HPET, else the ACPI timer; never the PIT, which has no counter that a
 * virtual-time host could keep exact.  Calibration windows are short, for in virtual time every
 * instruction of a busy loop is simulated. */
#include "arch/x86_64/clock_math.h"
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"
#include "core/base/errno.h"
#include "core/base/log.h"

#define CALIBRATE_WINDOW_NS (2 * NSEC_PER_MSEC) /* with brackets of 0.1..0.3 us: 150 ppm */
#define CALIBRATE_SAMPLES   6                   /* the narrowest bracket of these counts */
#define CALIBRATE_TRIES     4
#define BRACKET_MAX_RATIO                                                                          \
    256 /* a bracket wider than 1/256 of the window: host preempted us, try again */

/* HPET specification 1.0a. */
#define HPET_SIZE          1024
#define HPET_CAPABILITIES  0x00
#define HPET_CONFIG        0x10
#define HPET_COUNTER       0xf0
#define HPET_CAP_64BIT     BIT(13)
#define HPET_ENABLE        BIT(0)
#define HPET_MAX_PERIOD_FS 100000000ull

#define PM_TIMER_HZ   3579545ull
#define FEMTO_PER_SEC 1000000000000000ull

#define CPUID_HYPERVISOR_BASE   0x40000000u
#define CPUID_APM               0x80000007u
#define CPUID_APM_INVARIANT_TSC BIT(8)

enum clock_source { CLOCK_NONE, CLOCK_TSC, CLOCK_KVM, CLOCK_HPET };

static enum clock_source source;
static volatile u8 *hpet;
static bool hpet_64bit;
static u64 hpet_period_fs, hpet_base;
static struct clock_scale hpet_scale;
static u16 pm_timer_port;
static u32 pm_timer_mask;
static u64 tsc_hz, tsc_base;
static struct clock_scale tsc_scale, tsc_inverse;
static u64 kvm_base_ns;
static u64 wall_base_ns;

static u64 ordered_tsc(void)
{
    __asm__ volatile("lfence" ::
                         : "memory"); /* else a read may float before a load it must follow */
    return arch_tsc();
}

u64 arch_clock_ns(void)
{
    switch (source) {
    case CLOCK_TSC:
        return clock_scale_apply(tsc_scale, ordered_tsc() - tsc_base);
    case CLOCK_KVM:
        return kvmclock_read_ns() - kvm_base_ns;
    case CLOCK_HPET:
        return clock_scale_apply(hpet_scale, mmio_read64(hpet + HPET_COUNTER) - hpet_base);
    case CLOCK_NONE:
        break;
    }
    return 0; /* before arch_init() */
}

u64 arch_wall_base_ns(void)
{
    return wall_base_ns;
}

const char *arch_clock_name(u64 *hz)
{
    static const char *const names[] = {[CLOCK_NONE] = "none",
                                        [CLOCK_TSC] = "tsc",
                                        [CLOCK_KVM] = "kvmclock",
                                        [CLOCK_HPET] = "hpet"};
    if (hz) {
        *hz = source == CLOCK_HPET ? FEMTO_PER_SEC / hpet_period_fs : tsc_hz;
    }
    return names[source];
}

bool arch_clock_params(u64 *base_tsc, u64 *base_ns, u32 *mult, u32 *shift)
{
    if (source != CLOCK_TSC) {
        return false;
    }
    *base_tsc = tsc_base;
    *base_ns = 0;
    *mult = tsc_scale.mult;
    *shift = tsc_scale.shift;
    return true;
}

bool clock_tsc_at(u64 clock_ns, u64 *tsc)
{
    *tsc = tsc_base + clock_scale_apply(tsc_inverse, clock_ns);
    return source == CLOCK_TSC;
}

void clock_delay_ns(u64 ns)
{
    u64 end = arch_clock_ns() + ns;
    while (arch_clock_ns() < end) {
        arch_cpu_relax();
    }
}

/* ---- reference counters ---- */

static bool hpet_init(paddr_t base)
{
    hpet = base ? arch_mmio_map(base, HPET_SIZE) : NULL;
    if (!hpet) {
        return false;
    }
    u64 capabilities = mmio_read64(hpet + HPET_CAPABILITIES);
    hpet_period_fs = capabilities >> 32;
    hpet_64bit = (capabilities & HPET_CAP_64BIT) != 0;
    if (hpet_period_fs == 0 || hpet_period_fs > HPET_MAX_PERIOD_FS) {
        log_warn("clock: HPET with an impossible period of %lu fs ignored", hpet_period_fs);
        hpet = NULL;
        return false;
    }
    mmio_write32(hpet + HPET_CONFIG, mmio_read32(hpet + HPET_CONFIG) | HPET_ENABLE);
    hpet_scale = clock_scale_make(FEMTO_PER_SEC / hpet_period_fs, NSEC_PER_SEC);
    return true;
}

static u32 reference_read(void)
{
    return hpet ? mmio_read32(hpet + HPET_COUNTER) : inl(pm_timer_port) & pm_timer_mask;
}

struct sample {
    u64 tsc, width;
    u32 reference, lapic;
};

static struct sample take_sample(void)
{
    struct sample best = {0, UINT64_MAX, 0, 0};
    for (u32 i = 0; i < CALIBRATE_SAMPLES; i++) {
        u64 before = ordered_tsc();
        u32 reference = reference_read();
        u32 lapic = lapic_timer_count();
        u64 width = ordered_tsc() - before;
        if (width < best.width) {
            best = (struct sample){before + width / 2, width, reference, lapic};
        }
    }
    return best;
}

static void calibrate(u64 *found_tsc_hz, u64 *found_lapic_hz)
{
    u64 period_fs = hpet ? hpet_period_fs : FEMTO_PER_SEC / PM_TIMER_HZ;
    u32 mask = hpet ? UINT32_MAX : pm_timer_mask;
    u32 window = (u32)(CALIBRATE_WINDOW_NS * 1000000 / period_fs);
    for (u32 attempt = 1;; attempt++) {
        lapic_timer_calibrate_begin();
        struct sample start = take_sample(), end;
        while (((reference_read() - start.reference) & mask) < window) {
            arch_cpu_relax();
        }
        end = take_sample();
        u64 elapsed = (end.reference - start.reference) & mask;
        *found_tsc_hz = clock_frequency(end.tsc - start.tsc, elapsed, period_fs);
        *found_lapic_hz = clock_frequency(start.lapic - end.lapic, elapsed, period_fs);
        u64 limit = (end.tsc - start.tsc) / BRACKET_MAX_RATIO;
        if (start.width <= limit && end.width <= limit) {
            return;
        }
        if (attempt == CALIBRATE_TRIES) {
            log_warn("clock: calibration disturbed %u times, may be off by 1%%", attempt);
            return;
        }
    }
}

/* ---- choice of the clock ---- */

bool arch_emulated(void)
{
    if (!cpu_in_hypervisor()) {
        return false;
    }
    struct cpuid_regs r = cpuid(CPUID_HYPERVISOR_BASE, 0);
    return r.ebx == 0x54474354 && r.ecx == 0x43544743 && r.edx == 0x47435447; /* TCGTCGTCGTCG */
}

static bool tsc_invariant(void)
{
    return cpuid(0x80000000u, 0).eax >= CPUID_APM &&
           cpuid(CPUID_APM, 0).edx & CPUID_APM_INVARIANT_TSC;
}

static void use_tsc(void)
{
    tsc_scale = clock_scale_make(tsc_hz, NSEC_PER_SEC);
    tsc_inverse = clock_scale_make(NSEC_PER_SEC, tsc_hz);
    u64 now = arch_tsc();
    u64 start = boot_info_copy.boot_start_tsc;
    tsc_base = start && start < now ? start : now;
    source = CLOCK_TSC;
}

static void choose_clock(void)
{
    bool kvm = kvmclock_usable();
    if (kvm && kvmclock_tsc_hz()) {
        tsc_hz = kvmclock_tsc_hz(); /* the host knows it exactly */
    }
    /* QEMU's TCG does not call its counter invariant, but derives it from one host clock for all
     * vCPUs. */
    if (tsc_hz && (tsc_invariant() || arch_emulated())) {
        use_tsc();
    } else if (kvm) {
        kvm_base_ns = kvmclock_read_ns();
        source = CLOCK_KVM;
    } else if (hpet && hpet_64bit) {
        hpet_base = mmio_read64(hpet + HPET_COUNTER);
        source = CLOCK_HPET;
    } else if (tsc_hz) {
        log_warn("clock: the TSC is not declared invariant, but there is no 64-bit HPET: using it");
        use_tsc();
    }
}

/* ---- real-time clock (MC146818) ---- */

enum { RTC_SECOND = 0, RTC_MINUTE = 2, RTC_HOUR = 4, RTC_DAY = 7, RTC_MONTH = 8, RTC_YEAR = 9 };
#define RTC_STATUS_A  0x0a
#define RTC_STATUS_B  0x0b
#define RTC_UPDATING  0x80
#define RTC_BINARY    0x04
#define RTC_24_HOURS  0x02
#define RTC_PM        0x80
#define RTC_MAX_POLLS 10000

static u8 rtc_read(u8 reg)
{
    outb(0x70, reg);
    return inb(0x71);
}

static u32 rtc_value(u8 raw, u8 status_b)
{
    return status_b & RTC_BINARY ? raw : (raw >> 4) * 10u + (raw & 15u);
}

static u64 rtc_seconds(void)
{
    static const u8 regs[6] = {RTC_SECOND, RTC_MINUTE, RTC_HOUR, RTC_DAY, RTC_MONTH, RTC_YEAR};
    u8 raw[6], again[6];
    bool same = false;
    for (u32 polls = 0; !same && polls < RTC_MAX_POLLS; polls++) {
        if (rtc_read(RTC_STATUS_A) & RTC_UPDATING) {
            continue;
        }
        for (u32 i = 0; i < 6; i++) {
            raw[i] = rtc_read(regs[i]);
        }
        same = true;
        for (u32 i = 0; i < 6; i++) {
            again[i] = rtc_read(regs[i]);
            same = same && again[i] == raw[i];
        }
    }
    if (!same) {
        log_warn("clock: the real-time clock does not stand still; wall time starts at 1970");
        return 0;
    }
    u8 b = rtc_read(RTC_STATUS_B);
    u32 hour = rtc_value(raw[2] & (u8)~RTC_PM, b);
    if (!(b & RTC_24_HOURS)) {
        hour = hour % 12 + (raw[2] & RTC_PM ? 12 : 0);
    }
    u32 month = rtc_value(raw[4], b), day = rtc_value(raw[3], b);
    if (month < 1 || month > 12 || day < 1 || day > 31) {
        log_warn("clock: the real-time clock holds no date; wall time starts at 1970");
        return 0;
    }
    return clock_unix_seconds(2000 + rtc_value(raw[5], b), month, day, hour, rtc_value(raw[1], b),
                              rtc_value(raw[0], b));
}

int clock_init(const struct acpi_info *acpi)
{
    u64 lapic_hz = 0;
    bool have_hpet = hpet_init(acpi->hpet_base);
    pm_timer_port = acpi->pm_timer_port;
    pm_timer_mask = acpi->pm_timer_32bit ? UINT32_MAX : (u32)BIT(24) - 1;
    if (!have_hpet && !pm_timer_port) {
        log_error("clock: neither an HPET nor an ACPI timer to calibrate against");
        return -ENODEV;
    }
    kvmclock_detect();
    kvmclock_init_this_cpu(0);
    calibrate(&tsc_hz, &lapic_hz);
    choose_clock();
    if (source == CLOCK_NONE || lapic_hz == 0) {
        log_error("clock: no usable clock (TSC %lu Hz, APIC timer %lu Hz)", tsc_hz, lapic_hz);
        return -ENODEV;
    }
    lapic_timer_calibrate_end(lapic_hz);
    u64 seconds = rtc_seconds();
    u64 now = arch_clock_ns();
    wall_base_ns = seconds * NSEC_PER_SEC > now ? seconds * NSEC_PER_SEC - now : 0;
    log_info("clock: %s, TSC %lu.%03lu MHz, APIC timer %lu.%03lu MHz against %s",
             arch_clock_name(NULL), tsc_hz / 1000000, tsc_hz / 1000 % 1000, lapic_hz / 1000000,
             lapic_hz / 1000 % 1000, have_hpet ? "HPET" : "ACPI timer");
    return 0;
}
