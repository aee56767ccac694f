/* Processes and their threads: core/kern's own part.
 *
 * Lock order: proc_table_lock (RANK_PROC) > fd_table.lock (RANK_PROC, never both) > proc.siglock (RANK_FILE, irq). */
#ifndef WEIR_CORE_KERN_PROC_H
#define WEIR_CORE_KERN_PROC_H

#include "arch/arch.h"
#include "core/base/list.h"
#include "core/base/spinlock.h"
#include "core/base/types.h"
#include "core/kern/tunables.h"
#include "net/net.h"
#include "sched/sched.h"

struct file;

#define NUM_SIGNALS 64

/* Linux's struct kernel_sigaction on x86-64. */
struct sig_action {
    u64 handler, flags, restorer, mask;
};

struct sig_pending {
    u64 mask;          /* bit signo - 1 */
    struct list queue; /* struct sig_node, oldest first */
};

struct fd_table {
    struct spinlock lock;              /* changes of slots; lookups take none (file.c) */
    struct file **chunks[FD_CHUNKS];   /* FD_CHUNK slots each, allocated on demand, freed with the process */
    u64 *cloexec;                      /* unused bits: there is no exec, kept for F_GETFD */
    u32 first_free;                    /* no free slot below it */
    u32 open;                          /* slots in use */
    u64 limit_hits;                    /* EMFILE given */
};

enum proc_state { PROC_UNUSED, PROC_STARTING, PROC_RUNNING, PROC_EXITING, PROC_ENDED };

struct proc {
    /* Fixed after start. */
    u32 pid; /* id of its first thread */
    u32 index;
    u32 domain;
    struct net *net;
    char name[THREAD_NAME_MAX];
    char path[PATH_BYTES];
    char *cmdline; /* arguments, each with its NUL */
    size_t cmdline_len;
    u64 entry, phdr, phnum, load_bias, image_start, image_end;
    u64 start_ns;
    const void *elf; /* its file in the initrd, for symbols */
    size_t elf_size;

    struct fd_table fds;

    /* Under brk_mutex. */
    struct mutex brk_mutex;
    u64 brk_start, brk_end, brk_mapped;

    /* Under siglock. */
    struct spinlock siglock;
    struct list threads; /* struct kthread.node */
    u32 num_threads;
    u32 threads_started; /* since start */
    enum proc_state state;
    int exit_code;
    int term_signal; /* nonzero: killed by it */
    struct sig_action actions[NUM_SIGNALS];
    struct sig_pending pending;
    u32 signals_queued;
    u64 dead_runtime_ns; /* of threads that have ended */

    u32 umask;
};

/* An application thread: thread_head.app. Written by the thread itself unless a lock is named. */
struct kthread {
    struct proc *proc;
    struct thread *thread;
    struct arch_regs *regs; /* of the system call it is in */
    u64 syscall_nr;
    u64 clear_child_tid;
    u64 robust_list;
    struct list node; /* proc.siglock */

    /* Signals: under proc.siglock, but sig_mask is written by its thread without (signal.c: signal_set_mask). */
    u64 sig_mask;
    u64 wait_set;        /* signals that sigtimedwait waits for */
    u64 saved_mask;      /* put back after the next delivery or at the end of the call (sigsuspend, ppoll) */
    bool has_saved_mask;
    bool ended;
    struct sig_pending pending;
    u64 alt_sp, alt_size, alt_flags;

    u32 high_debt; /* pages taken above grant.memory_high, to be paid for (pressure.c) */
    /* The last page fault that could not be served: what the SIGSEGV of it says. */
    u64 fault_addr;
    u8 fault_cause; /* enum fault_cause (signal_deliver.c) */

    u8 start_regs[] __aligned(16); /* what a cloned thread starts with: arch_regs_size() bytes */
};

extern struct proc procs[MAX_PROCS];

static inline struct kthread *current_kthread(void)
{
    return thread_head(current_thread())->app;
}

/* What to start. Strings are the caller's; argv[0] is the path. */
struct proc_spec {
    u32 domain;
    int argc, envc;
    const char *argv[APP_MAX_ARGS];
    const char *envp[APP_MAX_ENV];
};

/* Loads and starts a program. Blocks. Errors are logged in one line: -ENOENT, -ENOEXEC, -ENOMEM, -EEXIST. */
int proc_start(const struct proc_spec *spec, struct proc **out);
/* Makes a thread's application part with one place in the process; NULL: no memory. */
struct kthread *kthread_create(struct proc *p);
/* Undoes kthread_create() for a thread that was never started. */
void kthread_discard(struct kthread *k);
/* Ends the process: all its threads leave the kernel for good at their next chance. signo 0: exit_group. Any context. */
void proc_kill(struct proc *p, int exit_code, int signo);
/* True once the process ends: its threads must not go back to application code. */
static inline bool proc_exiting(const struct proc *p)
{
    return READ_ONCE(p->state) >= PROC_EXITING;
}
/* The running process with this pid, NULL if there is none. Stays valid: procs are never reused. */
struct proc *proc_find(u32 pid);
/* Sum over its threads, living and dead. */
u64 proc_runtime_ns(struct proc *p);
void proc_init(void);

#endif
