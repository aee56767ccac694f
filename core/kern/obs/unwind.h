/* Call stacks through kernel and application, for profiles and dumps.
 *
 * The kernel keeps frame pointers throughout. Applications are asked to (-fno-omit-frame-pointer), but the C library below
 * them does not, and uses the frame-pointer register for other things: there the stack is scanned for return addresses
 * (words behind a call instruction) until the chain of frame pointers is found again. Nothing here can fault, whatever
 * the stack holds: memory is read through the page tables. No locks; about 1,000 instructions for 15 frames. */
#ifndef WEIR_CORE_KERN_OBS_UNWIND_H
#define WEIR_CORE_KERN_OBS_UNWIND_H

#include "core/kern/proc.h"

#define UNWIND_MAX 40 /* frames: the deepest system call has about 25, an application's handler about 10 */

/* Each stores return addresses, innermost first, and returns how many.
 * Interrupted: t is the current thread of this CPU; interrupts off. The first one is the interrupted instruction. */
size_t unwind_interrupted(struct thread *t, const struct arch_regs *regs, u64 *pcs, size_t max);
/* The current thread from frame pointer fp up. */
size_t unwind_current(u64 fp, u64 *pcs, size_t max);
/* A thread that does not run; the caller holds a reference. 0 if it runs or ran meanwhile. info: what thread_info() says. */
size_t unwind_waiting(struct thread *t, struct thread_info *info, u64 *pcs, size_t max);

/* Reads a word of the kernel or an application; false if nothing is mapped there. Any context. */
bool unwind_read_word(u64 addr, u64 *value);

/* ---- for the parts ---- */

/* Is the instruction that ends right before the n bytes of code end at `end` a call? (unwind_x86_64.c) target: where a
 * direct call goes, relative to the return address; 0 if it is indirect. */
#define UNWIND_CALL_BYTES 7
bool unwind_is_call(const u8 before[UNWIND_CALL_BYTES], i32 *target);

struct unwind_memory {
    bool (*word)(void *arg, u64 addr, u64 *value);
    bool (*code)(void *arg, u64 pc, u8 before[UNWIND_CALL_BYTES]);
    void *arg;
    u64 code_start, code_end; /* where the application's code lies: other words are no return addresses */
};
/* Application frames from a register set, pc included. Pure but for m. */
size_t unwind_app(const struct unwind_memory *m, u64 pc, u64 sp, u64 fp, u64 *pcs, size_t max);

#endif
