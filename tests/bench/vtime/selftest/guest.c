/*
 * Self-test guest: does virtual time depend on how many vCPUs are busy?
 *
 * Three measurements, each printed on the serial port as one JSON line, in nanoseconds of the
 * HPET (that is, of the virtual clock):
 *   spin  n CPUs execute the same number of instructions at once; the time must not depend on n
 *   ping  two CPUs wake each other from HLT by IPI; the mean round trip
 *   sleep one CPU halts until a one-shot APIC timer fires; the mean of the overshoot
 * Command line: "n=CPUS spin=ITERATIONS pings=COUNT gap=ITERATIONS
 * sleep_ns=NS mark=1"; mark: execute the marker of the measured part first; gap: what a CPU spins before each ping, so that the other one has surely halted.
 */
#include "selftest.h"

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned char u8;

struct hvm_start_info {         /* PVH boot protocol, version 1; addresses below 4 GiB here */
    u32 magic, version, flags, nr_modules;
    u64 modlist, cmdline, rsdp;
};

struct idt_gate {
    unsigned short offset_low, selector, flags, offset_high;
} __attribute__((packed));

void first_cpu(u32 unused, const struct hvm_start_info *info);
void other_cpu(u32 number);
extern char ap_start[], ap_start_end[];
extern void on_timer(void), on_ping(void), on_fault(void);

u32 cpus_started;               /* numbers are handed out from 1: see ap_protected */
volatile u32 timer_ticks;
volatile u32 pings[256];        /* by APIC id */

static struct idt_gate idt[256];
static volatile u32 go, finished, ping_partner_id;
static u32 spin_iterations, ping_count, ping_gap, sleep_ns, cpus = 1;

static volatile u32 *lapic(u32 reg) { return (volatile u32 *)(LAPIC_BASE + reg); }
static volatile u32 *hpet(u32 reg) { return (volatile u32 *)(HPET_BASE + reg); }
static void outb(u32 port, u8 value) { __asm__ volatile("outb %0, %w1" : : "a"(value), "Nd"(port)); }
static void pause(void) { __asm__ volatile("pause" : : : "memory"); }

static void print(const char *text)
{
    for (; *text; text++) {
        outb(SERIAL_PORT, (u8)*text);
    }
}

static void print_number(u32 value)
{
    char digits[11];
    char *p = digits + sizeof(digits) - 1;

    *p = '\0';
    do {
        *--p = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    print(p);
}

static void print_field(const char *name, u32 value)
{
    print(name);
    print_number(value);
}

/* HPET ticks since the counter was enabled; 32 bits, 42 s at QEMU's 10 ns. */
static u32 hpet_now(void) { return *hpet(HPET_COUNTER); }
static u32 ticks_to_ns(u32 ticks) { return ticks * (*hpet(HPET_PERIOD) / 1000000); }

/* Two instructions an iteration, no memory access. */
static void spin(u32 iterations)
{
    __asm__ volatile("1: dec %0; jnz 1b" : "+r"(iterations));
}

static void set_gate(u32 vector, void (*handler)(void))
{
    u32 address = (u32)handler;

    idt[vector] = (struct idt_gate){(unsigned short)address, 0x08, 0x8e00,
                                    (unsigned short)(address >> 16)};
}

static void enable_interrupts_here(void)
{
    struct { unsigned short limit; u32 base; } __attribute__((packed)) p = {sizeof(idt) - 1,
                                                                           (u32)idt};

    __asm__ volatile("lidt %0" : : "m"(p));
    *lapic(LAPIC_SVR) = 0x100 | VECTOR_SPURIOUS;
}

static void send_ipi(u32 apic_id, u32 command)
{
    *lapic(LAPIC_ICR_HIGH) = apic_id << 24;
    *lapic(LAPIC_ICR_LOW) = command;
}

/* Halts until *word differs from `was`. Interrupts are off on entry and return; STI takes
 * effect after HLT has begun, so that no wake-up is lost between the check and the halt. */
static void halt_until_changed(volatile u32 *word, u32 was)
{
    while (*word == was) {
        __asm__ volatile("sti; hlt; cli" : : : "memory");
    }
}

static u32 argument(const char *line, const char *name, u32 otherwise)
{
    for (; *line; line++) {
        const char *a = line, *b = name;
        u32 value = 0;

        while (*b && *a == *b) {
            a++;
            b++;
        }
        if (*b) {
            continue;
        }
        for (; *a >= '0' && *a <= '9'; a++) {
            value = value * 10 + (u32)(*a - '0');
        }
        return value;
    }
    return otherwise;
}

static void start_others(void)
{
    char *page = (char *)AP_START_PAGE;

    for (char *p = ap_start; p < ap_start_end; p++) {
        *page++ = *p;
    }
    cpus_started = 1;
    for (u32 id = 1; id < cpus; id++) {
        send_ipi(id, 0x4500);                               /* INIT, assert */
        send_ipi(id, 0x4600 | (AP_START_PAGE >> 12));       /* SIPI */
        while (*(volatile u32 *)&cpus_started <= id) {
            pause();
        }
    }
}

void other_cpu(u32 number)
{
    enable_interrupts_here();
    while (!go) {
        pause();
    }
    spin(spin_iterations);
    __sync_fetch_and_add(&finished, 1);
    if (number != 1) {
        return;                                             /* halts, interrupts off */
    }
    /* Partner of the ping test: answer every ping of the first CPU. */
    u32 me = *lapic(LAPIC_ID) >> 24;
    for (u32 seen = 0; seen < ping_count; seen++) {
        halt_until_changed(&pings[me], seen);
        spin(ping_gap + 1);
        send_ipi(0, VECTOR_PING);
    }
}

/* The marker of the plugin (vtime.h), by a program that has it. */
static void mark_measurement(void)
{
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .ascii \"WEIR\"");
}

static void measure_spin(void)
{
    u32 start = hpet_now();

    go = 1;
    spin(spin_iterations);
    while (finished != cpus - 1) {
        pause();
    }
    print_field("{\"test\": \"spin\", \"cpus\": ", cpus);
    print_field(", \"instructions\": ", spin_iterations * 2);
    print_field(", \"ns\": ", ticks_to_ns(hpet_now() - start));
    print("}\n");
}

static void measure_ping(void)
{
    u32 start = hpet_now(), ns;

    for (u32 i = 0; i < ping_count; i++) {
        spin(ping_gap + 1);
        send_ipi(1, VECTOR_PING);
        halt_until_changed(&pings[0], i);
    }
    ns = ticks_to_ns(hpet_now() - start);
    print_field("{\"test\": \"ping\", \"round_trips\": ", ping_count);
    print_field(", \"mean_ns\": ", ns / ping_count);
    print("}\n");
}

/* The APIC timer's rate is taken from one shot against the HPET, then used for the sleep. */
static void measure_sleep(void)
{
    const u32 probe = 1000000;
    u32 start = hpet_now(), was = timer_ticks, probe_us, ns;

    *lapic(LAPIC_TIMER_DIVIDE) = 0xb;                       /* by 1 */
    *lapic(LAPIC_LVT_TIMER) = VECTOR_TIMER;
    *lapic(LAPIC_TIMER_INITIAL) = probe;
    halt_until_changed(&timer_ticks, was);
    probe_us = ticks_to_ns(hpet_now() - start) / 1000;
    was = timer_ticks;
    start = hpet_now();
    *lapic(LAPIC_TIMER_INITIAL) = probe / probe_us * (sleep_ns / 1000);
    halt_until_changed(&timer_ticks, was);
    ns = ticks_to_ns(hpet_now() - start);
    print_field("{\"test\": \"sleep\", \"asked_ns\": ", sleep_ns);
    print_field(", \"ns\": ", ns);
    print("}\n");
}

void first_cpu(u32 unused, const struct hvm_start_info *info)
{
    const char *line = (const char *)(u32)info->cmdline;

    (void)unused;
    cpus = argument(line, "n=", 1);
    spin_iterations = argument(line, "spin=", 1000000);
    ping_count = argument(line, "pings=", 1000);
    ping_gap = argument(line, "gap=", 0);
    sleep_ns = argument(line, "sleep_ns=", 1000000);
    for (u32 vector = 0; vector < 256; vector++) {
        set_gate(vector, on_fault);
    }
    set_gate(VECTOR_TIMER, on_timer);
    set_gate(VECTOR_PING, on_ping);
    outb(PIC_MASTER_MASK, 0xff);        /* the firmware leaves the 18 Hz timer running */
    outb(PIC_SLAVE_MASK, 0xff);
    enable_interrupts_here();
    *hpet(HPET_CONFIG) |= 1;
    if (cpus < 1 || cpus > MAX_CPUS) {
        print("selftest: n is outside 1..64\n");
        outb(DEBUG_EXIT_PORT, EXIT_FAULT);
    }
    start_others();
    if (argument(line, "mark=", 0)) {
        mark_measurement();
    }
    measure_spin();
    if (cpus > 1) {
        measure_ping();
    }
    measure_sleep();
    outb(DEBUG_EXIT_PORT, EXIT_GOOD);
}
