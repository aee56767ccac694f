/* 16550 console at COM1, polled. */
#include "arch/x86_64/cpu.h"
#include "arch/x86_64/internal.h"

#define COM1 0x3f8
enum { UART_DATA = 0, UART_IER = 1, UART_FCR = 2, UART_LCR = 3, UART_MCR = 4, UART_LSR = 5 };
#define LCR_8N1          0x03
#define LCR_DLAB         0x80
#define FCR_ENABLE_CLEAR 0x07
#define MCR_DTR_RTS      0x03
#define MCR_LOOPBACK     0x10
#define LSR_DATA_READY   0x01
#define LSR_THR_EMPTY    0x20
#define DIVISOR_115200   1
#define PROBE_BYTE       0xae
#define PROBE_POLLS      1000
/* A byte takes 87 us at 115,200 baud; a port read at least 0.1 us.  Beyond that the line is stuck:
 * drop output. */
#define THR_MAX_POLLS 100000

static bool present;

void serial_init(void)
{
    outb(COM1 + UART_IER, 0);
    outb(COM1 + UART_LCR, LCR_DLAB);
    outb(COM1 + UART_DATA, DIVISOR_115200);
    outb(COM1 + UART_IER, 0);
    outb(COM1 + UART_LCR, LCR_8N1);
    outb(COM1 + UART_FCR, FCR_ENABLE_CLEAR);
    outb(COM1 + UART_MCR, MCR_DTR_RTS | MCR_LOOPBACK);
    outb(COM1 + UART_DATA, PROBE_BYTE);
    for (u32 i = 0; i < PROBE_POLLS && !(inb(COM1 + UART_LSR) & LSR_DATA_READY); i++) {
    }
    present = inb(COM1 + UART_DATA) == PROBE_BYTE;
    outb(COM1 + UART_MCR, MCR_DTR_RTS);
}

static void put(char c)
{
    for (u32 i = 0; i < THR_MAX_POLLS; i++) {
        if (inb(COM1 + UART_LSR) & LSR_THR_EMPTY) {
            outb(COM1 + UART_DATA, (u8)c);
            return;
        }
    }
}

void arch_console_write(const char *s, size_t n)
{
    if (!present) {
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\n') {
            put('\r');
        }
        put(s[i]);
    }
}
