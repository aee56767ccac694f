/* Signals: sending, choosing, delivering.
 *
 * A signal is pending with a thread or with a process (under proc.siglock). Sending marks the threads that could take it
 * with thread_interrupt(); a marked thread looks at its pending signals when a system call ends, when an interrupt
 * returns to application code (sched_signal_hook), and when an interruptible wait ends early. */
#ifndef WEIR_CORE_KERN_SIGNAL_H
#define WEIR_CORE_KERN_SIGNAL_H

#include "core/kern/proc.h"

/* Linux numbers. */
#define SIGHUP 1
#define SIGINT 2
#define SIGQUIT 3
#define SIGILL 4
#define SIGTRAP 5
#define SIGABRT 6
#define SIGBUS 7
#define SIGFPE 8
#define SIGKILL 9
#define SIGSEGV 11
#define SIGPIPE 13
#define SIGALRM 14
#define SIGTERM 15
#define SIGCHLD 17
#define SIGCONT 18
#define SIGSTOP 19
#define SIGTSTP 20
#define SIGTTIN 21
#define SIGTTOU 22
#define SIGURG 23
#define SIGWINCH 28
#define SIGRT_MIN 32

#define SIG_DFL 0ull
#define SIG_IGN 1ull

#define SA_ONSTACK 0x08000000ull
#define SA_RESTART 0x10000000ull
#define SA_NODEFER 0x40000000ull
#define SA_RESETHAND 0x80000000ull

#define SI_USER 0
#define SI_KERNEL 0x80
#define SI_QUEUE (-1)
#define SI_TKILL (-6)

#define SS_ONSTACK 1u
#define SS_DISABLE 2u

#define SIGBIT(signo) (1ull << ((signo) - 1))
#define SIG_UNBLOCKABLE (SIGBIT(SIGKILL) | SIGBIT(SIGSTOP))

struct sig_node {
    struct list node;
    u32 signo;
    i32 code;
    u64 value;
    u32 sender_pid;
};

/* Sends; k NULL: to the process. Any context, no lock of rank >= RANK_FILE held. 0, -ESRCH (it ended), -EINVAL, -EAGAIN
 * (too many queued, counted). */
int signal_send(struct proc *p, struct kthread *k, u32 signo, i32 code, u64 value);
/* A thread's own signal of a system call (SIGPIPE). */
void signal_self(u32 signo);
/* Ends every process by SIGTERM; interrupt-safe. */
void signal_all_procs(u32 signo);

/* After an interruptible wait ended with PARK_INTERRUPTED: is there something to do (a handler to run, the end of the
 * process)? If not, the mark is taken back and the wait goes on. */
bool signal_wait_ends(void);
/* Signals that the thread would act upon now. */
u64 signal_deliverable(struct kthread *k);
/* End of a system call of a marked thread: delivers, restarts, or ends the thread. The value for the application. */
i64 signal_syscall_exit(struct kthread *k, i64 result);
/* A new thread's first step: delivers what came meanwhile to regs, or ends the thread. Returns with interrupts off. */
void signal_before_app(struct kthread *k, struct arch_regs *regs);
/* Replaces the mask for the length of one call (ppoll, sigsuspend ...). */
void signal_set_temporary_mask(struct kthread *k, u64 mask);
/* End of a call with a temporary mask that no signal cut short. */
void signal_end_temporary_mask(struct kthread *k);
/* Sets the blocked signals and looks for ones that were waiting for it. */
void signal_set_mask(struct kthread *k, u64 mask);
/* Frees what is queued. */
void signal_drop_pending(struct sig_pending *pending, struct proc *p);
void sig_pending_init(struct sig_pending *pending);
void signal_init(void);

/* Takes the oldest pending signal of the set (thread first); 0: none. siglock held. */
u32 signal_take_locked(struct kthread *k, u64 set, struct sig_node *out);
/* Does the default action end the process? */
bool signal_default_kills(u32 signo);
const char *signal_name(u32 signo);
/* Prints why a process dies of a fault: registers' pc, address and back trace. */
void signal_report_fault(struct kthread *k, u32 signo, u64 addr, const struct arch_regs *regs);

#endif
