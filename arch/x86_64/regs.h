/* Register set of an interrupted or system-calling context, as the entry code pushes it.
 *
 * rdi..r9 stand in the order of the six system-call arguments, so that their address is the
 * argument array. */
#ifndef WEIR_ARCH_X86_64_REGS_H
#define WEIR_ARCH_X86_64_REGS_H

#include "core/base/types.h"

struct arch_regs {
    u64 r15, r14, r13, r12, rbp, rbx;
    u64 rdi, rsi, rdx, r10, r8, r9;
    u64 rcx, r11, rax;
    u64 vector; /* 0..255 interrupt or exception; VECTOR_SYSCALL, VECTOR_RESUME */
    u64 error;  /* exception: the CPU's error code; system call: its number */
    u64 rip, cs, rflags, rsp, ss;
};

#endif
