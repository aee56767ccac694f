/* Signal frames in the layout of Linux on x86-64, which is what libc and debuggers expect. */
#include "arch/x86_64/asm_defs.h"
#include "arch/x86_64/internal.h"
#include "core/base/string.h"

#define RED_ZONE    128 /* System V ABI: below the stack pointer, still in use */
#define FX_MXCSR    24
#define MXCSR_VALID 0xffffu
/* Flags that an application may set for itself: CF PF AF ZF SF TF DF OF AC ID. */
#define RFLAGS_APP 0x240dd5ull

struct sigcontext {
    u64 r8, r9, r10, r11, r12, r13, r14, r15;
    u64 rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip, rflags;
    u16 cs, gs, fs, ss;
    u64 error, trap, old_mask, cr2;
    u64 fpstate; /* address of the FXSAVE image */
    u64 reserved[8];
};

struct app_ucontext {
    u64 flags, link;
    u64 stack_sp;
    u32 stack_flags, pad;
    u64 stack_size;
    struct sigcontext mcontext;
    u64 mask;
};

struct app_siginfo {
    i32 signo, error, code, pad;
    union {
        struct {
            u32 pid, uid;
            u64 value;
        } sender;
        struct {
            u64 addr;
        } fault;
        u8 bytes[112];
    } u;
};

struct signal_frame {
    u64 restorer; /* the handler's return address */
    struct app_ucontext context;
    struct app_siginfo info;
};

_Static_assert(sizeof(struct sigcontext) == 256, "Linux layout");
_Static_assert(sizeof(struct app_ucontext) == 304, "Linux layout, 64-bit mask");
_Static_assert(sizeof(struct app_siginfo) == 128, "Linux layout");

static void fill_context(struct app_ucontext *uc, const struct arch_regs *r, u64 mask, u64 fpstate)
{
    memset(uc, 0, sizeof(*uc));
    uc->mask = mask;
    uc->mcontext = (struct sigcontext){
        .r8 = r->r8,
        .r9 = r->r9,
        .r10 = r->r10,
        .r11 = r->r11,
        .r12 = r->r12,
        .r13 = r->r13,
        .r14 = r->r14,
        .r15 = r->r15,
        .rdi = r->rdi,
        .rsi = r->rsi,
        .rbp = r->rbp,
        .rbx = r->rbx,
        .rdx = r->rdx,
        .rax = r->rax,
        .rcx = r->rcx,
        .rsp = r->rsp,
        .rip = r->rip,
        .rflags = r->rflags,
        .cs = SEL_CODE,
        .ss = SEL_DATA,
        .error = r->vector < VECTOR_FIRST_IRQ ? r->error : 0,
        .trap = r->vector < VECTOR_FIRST_IRQ ? r->vector : 0,
        .old_mask = mask,
        .fpstate = fpstate,
    };
}

bool arch_signal_push(struct arch_regs *r, struct arch_thread *t, const struct arch_signal *sig)
{
    u64 sp = sig->alt_sp ? sig->alt_sp : r->rsp - RED_ZONE;
    if (sp > APP_MAX || sp < APP_MIN + sizeof(t->fpu) + sizeof(struct signal_frame) + 128 ||
        sig->handler >= APP_MAX) {
        return false;
    }
    u64 fpstate = ALIGN_DOWN(sp - sizeof(t->fpu), 64);
    /* As after a call: 8 below a multiple of 16. */
    u64 at = ALIGN_DOWN(fpstate - sizeof(struct signal_frame), 16) - 8;

    /* t->fpu is free while t runs; if it is switched out in between, the same state is saved there
     * again. */
    __asm__ volatile("fxsave64 %0" : "=m"(t->fpu));
    if (!arch_copy_to_app(fpstate, t->fpu, sizeof(t->fpu))) {
        return false;
    }
    struct app_siginfo info;
    memset(&info, 0, sizeof(info));
    info.signo = (i32)sig->signo;
    info.code = sig->code;
    if (sig->code > 0) { /* raised by the kernel: a fault */
        info.u.fault.addr = sig->value;
    } else {
        info.u.sender.pid = sig->sender_pid;
        info.u.sender.value = sig->value;
    }
    struct app_ucontext uc;
    fill_context(&uc, r, sig->mask, fpstate);
    if (!arch_copy_to_app(at + offsetof(struct signal_frame, restorer), &sig->restorer, 8) ||
        !arch_copy_to_app(at + offsetof(struct signal_frame, context), &uc, sizeof(uc)) ||
        !arch_copy_to_app(at + offsetof(struct signal_frame, info), &info, sizeof(info))) {
        return false;
    }
    r->rip = sig->handler;
    r->rsp = at;
    r->rdi = sig->signo;
    r->rsi = at + offsetof(struct signal_frame, info);
    r->rdx = at + offsetof(struct signal_frame, context);
    r->rax = 0;
    r->rflags &= ~(u64)(RFLAGS_DF | RFLAGS_TF);
    if (r->vector == VECTOR_SYSCALL) {
        r->vector = VECTOR_RESUME; /* all registers were set, rax too */
    }
    return true;
}

static bool load_fpu(u64 fpstate)
{
    u8 image[ARCH_FPU_SIZE] __aligned(16);
    u32 mxcsr;
    if (!arch_copy_from_app(image, fpstate, sizeof(image))) {
        return false;
    }
    memcpy(&mxcsr, image + FX_MXCSR, sizeof(mxcsr));
    mxcsr &= MXCSR_VALID; /* reserved bits would raise an exception in the kernel */
    memcpy(image + FX_MXCSR, &mxcsr, sizeof(mxcsr));
    __asm__ volatile("fxrstor64 %0" ::"m"(image));
    return true;
}

bool arch_signal_pop(struct arch_regs *r, struct arch_thread *t, u64 *mask)
{
    struct app_ucontext uc;
    (void)t;
    /* The handler's return took the restorer's address off the stack. */
    if (!arch_copy_from_app(&uc, r->rsp, sizeof(uc))) {
        return false;
    }
    const struct sigcontext *c = &uc.mcontext;
    if (c->rip >= APP_MAX || c->rsp > APP_MAX || (c->fpstate && !load_fpu(c->fpstate))) {
        return false;
    }
    *mask = uc.mask;
    r->r8 = c->r8;
    r->r9 = c->r9;
    r->r10 = c->r10;
    r->r11 = c->r11;
    r->r12 = c->r12;
    r->r13 = c->r13;
    r->r14 = c->r14;
    r->r15 = c->r15;
    r->rdi = c->rdi;
    r->rsi = c->rsi;
    r->rbp = c->rbp;
    r->rbx = c->rbx;
    r->rdx = c->rdx;
    r->rax = c->rax;
    r->rcx = c->rcx;
    r->rsp = c->rsp;
    r->rip = c->rip;
    r->rflags = (c->rflags & RFLAGS_APP) | RFLAGS_IF | 2;
    r->vector = VECTOR_RESUME; /* leave with every register as it was, not by the short way */
    return true;
}
