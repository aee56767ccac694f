/* Self-test guest of the virtual-time plugin: constants shared by C and assembly. */
#ifndef SELFTEST_H
#define SELFTEST_H

#define MAX_CPUS 64
#define STACK_SIZE 4096
#define AP_START_PAGE 0x8000        /* below 1 MiB, 4 KiB aligned: its number is the SIPI vector */

#define SERIAL_PORT 0x3f8
#define DEBUG_EXIT_PORT 0xf4        /* QEMU isa-debug-exit; status is (value << 1) | 1 */
#define PIC_MASTER_MASK 0x21
#define PIC_SLAVE_MASK 0xa1
#define EXIT_GOOD 0x10
#define EXIT_FAULT 0x11

/* Local APIC, xAPIC mode (Intel SDM volume 3, chapter "APIC"). */
#define LAPIC_BASE 0xfee00000
#define LAPIC_ID 0x20
#define LAPIC_EOI 0xb0
#define LAPIC_SVR 0xf0
#define LAPIC_ICR_LOW 0x300
#define LAPIC_ICR_HIGH 0x310
#define LAPIC_LVT_TIMER 0x320
#define LAPIC_TIMER_INITIAL 0x380
#define LAPIC_TIMER_DIVIDE 0x3e0

/* HPET (IA-PC HPET specification 1.0a), at QEMU q35's address. */
#define HPET_BASE 0xfed00000
#define HPET_PERIOD 0x4             /* femtoseconds per tick */
#define HPET_CONFIG 0x10
#define HPET_COUNTER 0xf0

#define VECTOR_TIMER 0x40
#define VECTOR_PING 0x41
#define VECTOR_SPURIOUS 0xff

#endif
