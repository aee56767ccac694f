/* The few places where the Linux ABI shows the machine: kept in abi_x86_64.c, so that the rest of core/kern is portable. */
#ifndef WEIR_CORE_KERN_ABI_H
#define WEIR_CORE_KERN_ABI_H

#include "core/base/types.h"

/* Machine code of the gate page: makes system call SYS_WEIR_GATE. Interrupt handlers send threads of an ending process
 * there, since they cannot end a thread themselves. Returns its length. */
size_t abi_gate_code(u8 *out, size_t max);
/* Bytes by which a system-call instruction precedes the address it returns to. */
#define ABI_SYSCALL_BYTES 2
/* AT_HWCAP, AT_PLATFORM and uname's machine. */
u64 abi_hwcap(void);
#define ABI_MACHINE "x86_64"
/* Smallest signal stack that a frame fits: AT_MINSIGSTKSZ. */
#define ABI_MIN_SIGNAL_STACK 2048
/* Bytes below the stack pointer that application code may use without moving it. */
#define ABI_RED_ZONE 128

#endif
