/* System calls: dispatch and the handlers by family.
 *
 * A handler runs on the calling thread's kernel stack with interrupts on and no locks; a[] are the six argument registers.
 * It returns what the application sees: a value or a negative errno, or -ERESTART. */
#ifndef WEIR_CORE_KERN_SYSCALL_H
#define WEIR_CORE_KERN_SYSCALL_H

#include "core/base/errno.h"
#include "core/kern/proc.h"

/* Internal result: a signal came before anything was done. Becomes EINTR, or the call is made again if the handler has
 * SA_RESTART or there was no handler to run. Linux's ERESTARTSYS has the same number. */
#define ERESTART 512

typedef i64 (*syscall_fn)(struct kthread *k, const u64 *a);

#define NUM_SYSCALLS 462
struct syscall_entry {
    syscall_fn fn; /* NULL: -ENOSYS */
    const char *name;
};
extern const struct syscall_entry syscall_table[NUM_SYSCALLS];

/* Calls made of number nr, over all CPUs. Counters are per CPU and not atomic: a preemption inside the increment may lose one. */
u64 syscall_count(u32 nr);
u64 syscall_unknown_count(void);
/* "?" for numbers without a name. */
const char *syscall_name(u64 nr);

/* Not Linux's: what the gate page calls for a thread whose process ends (start.c). */
#define SYS_WEIR_GATE 0x77656972u

/* sys_io.c */
i64 sys_read(struct kthread *k, const u64 *a);
i64 sys_write(struct kthread *k, const u64 *a);
i64 sys_readv(struct kthread *k, const u64 *a);
i64 sys_writev(struct kthread *k, const u64 *a);
i64 sys_pread64(struct kthread *k, const u64 *a);
i64 sys_pwrite64(struct kthread *k, const u64 *a);
i64 sys_preadv(struct kthread *k, const u64 *a);
i64 sys_pwritev(struct kthread *k, const u64 *a);
i64 sys_lseek(struct kthread *k, const u64 *a);
i64 sys_ioctl(struct kthread *k, const u64 *a);
i64 sys_sendfile(struct kthread *k, const u64 *a);

/* sys_file.c */
i64 sys_open(struct kthread *k, const u64 *a);
i64 sys_openat(struct kthread *k, const u64 *a);
i64 sys_close(struct kthread *k, const u64 *a);
i64 sys_close_range(struct kthread *k, const u64 *a);
i64 sys_stat(struct kthread *k, const u64 *a);
i64 sys_fstat(struct kthread *k, const u64 *a);
i64 sys_newfstatat(struct kthread *k, const u64 *a);
i64 sys_access(struct kthread *k, const u64 *a);
i64 sys_faccessat(struct kthread *k, const u64 *a);
i64 sys_readlink(struct kthread *k, const u64 *a);
i64 sys_readlinkat(struct kthread *k, const u64 *a);
i64 sys_unlink(struct kthread *k, const u64 *a);
i64 sys_unlinkat(struct kthread *k, const u64 *a);
i64 sys_rename(struct kthread *k, const u64 *a);
i64 sys_mkdir(struct kthread *k, const u64 *a);
i64 sys_rmdir(struct kthread *k, const u64 *a);
i64 sys_ftruncate(struct kthread *k, const u64 *a);
i64 sys_fsync(struct kthread *k, const u64 *a);
i64 sys_getcwd(struct kthread *k, const u64 *a);
i64 sys_chdir(struct kthread *k, const u64 *a);
i64 sys_umask(struct kthread *k, const u64 *a);
i64 sys_getdents64(struct kthread *k, const u64 *a);

/* sys_fd.c */
i64 sys_dup(struct kthread *k, const u64 *a);
i64 sys_dup2(struct kthread *k, const u64 *a);
i64 sys_dup3(struct kthread *k, const u64 *a);
i64 sys_fcntl(struct kthread *k, const u64 *a);
i64 sys_pipe(struct kthread *k, const u64 *a);
i64 sys_pipe2(struct kthread *k, const u64 *a);
i64 sys_eventfd(struct kthread *k, const u64 *a);
i64 sys_eventfd2(struct kthread *k, const u64 *a);
i64 sys_timerfd_create(struct kthread *k, const u64 *a);
i64 sys_timerfd_settime(struct kthread *k, const u64 *a);
i64 sys_timerfd_gettime(struct kthread *k, const u64 *a);

/* sys_poll.c */
i64 sys_poll(struct kthread *k, const u64 *a);
i64 sys_ppoll(struct kthread *k, const u64 *a);
i64 sys_select(struct kthread *k, const u64 *a);
i64 sys_pselect6(struct kthread *k, const u64 *a);

/* sys_epoll.c */
i64 sys_epoll_create(struct kthread *k, const u64 *a);
i64 sys_epoll_create1(struct kthread *k, const u64 *a);
i64 sys_epoll_ctl(struct kthread *k, const u64 *a);
i64 sys_epoll_wait(struct kthread *k, const u64 *a);
i64 sys_epoll_pwait(struct kthread *k, const u64 *a);

/* sys_socket.c, sys_sockmsg.c */
i64 sys_socket(struct kthread *k, const u64 *a);
i64 sys_bind(struct kthread *k, const u64 *a);
i64 sys_listen(struct kthread *k, const u64 *a);
i64 sys_accept(struct kthread *k, const u64 *a);
i64 sys_accept4(struct kthread *k, const u64 *a);
i64 sys_connect(struct kthread *k, const u64 *a);
i64 sys_getsockname(struct kthread *k, const u64 *a);
i64 sys_getpeername(struct kthread *k, const u64 *a);
i64 sys_shutdown(struct kthread *k, const u64 *a);
i64 sys_setsockopt(struct kthread *k, const u64 *a);
i64 sys_getsockopt(struct kthread *k, const u64 *a);
i64 sys_sendto(struct kthread *k, const u64 *a);
i64 sys_recvfrom(struct kthread *k, const u64 *a);
i64 sys_sendmsg(struct kthread *k, const u64 *a);
i64 sys_recvmsg(struct kthread *k, const u64 *a);

/* sys_mem.c */
i64 sys_brk(struct kthread *k, const u64 *a);
i64 sys_mmap(struct kthread *k, const u64 *a);
i64 sys_munmap(struct kthread *k, const u64 *a);
i64 sys_mprotect(struct kthread *k, const u64 *a);
i64 sys_mremap(struct kthread *k, const u64 *a);
i64 sys_madvise(struct kthread *k, const u64 *a);
i64 sys_mlock(struct kthread *k, const u64 *a);
i64 sys_msync(struct kthread *k, const u64 *a);

/* sys_thread.c */
i64 sys_clone(struct kthread *k, const u64 *a);
i64 sys_exit(struct kthread *k, const u64 *a);
i64 sys_exit_group(struct kthread *k, const u64 *a);
i64 sys_getpid(struct kthread *k, const u64 *a);
i64 sys_getppid(struct kthread *k, const u64 *a);
i64 sys_gettid(struct kthread *k, const u64 *a);
i64 sys_set_tid_address(struct kthread *k, const u64 *a);
i64 sys_set_robust_list(struct kthread *k, const u64 *a);
i64 sys_get_robust_list(struct kthread *k, const u64 *a);
i64 sys_arch_prctl(struct kthread *k, const u64 *a);
i64 sys_prctl(struct kthread *k, const u64 *a);
i64 sys_sched_yield(struct kthread *k, const u64 *a);
i64 sys_membarrier(struct kthread *k, const u64 *a);
i64 sys_wait4(struct kthread *k, const u64 *a);

/* sys_sched.c */
i64 sys_sched_getaffinity(struct kthread *k, const u64 *a);
i64 sys_sched_setaffinity(struct kthread *k, const u64 *a);
i64 sys_sched_getscheduler(struct kthread *k, const u64 *a);
i64 sys_sched_setscheduler(struct kthread *k, const u64 *a);
i64 sys_sched_getparam(struct kthread *k, const u64 *a);
i64 sys_sched_setparam(struct kthread *k, const u64 *a);
i64 sys_sched_prio_max(struct kthread *k, const u64 *a);
i64 sys_sched_prio_min(struct kthread *k, const u64 *a);
i64 sys_getpriority(struct kthread *k, const u64 *a);
i64 sys_setpriority(struct kthread *k, const u64 *a);
i64 sys_getcpu(struct kthread *k, const u64 *a);

/* sys_futex.c */
i64 sys_futex(struct kthread *k, const u64 *a);

/* sys_time.c */
i64 sys_nanosleep(struct kthread *k, const u64 *a);
i64 sys_clock_nanosleep(struct kthread *k, const u64 *a);
i64 sys_clock_gettime(struct kthread *k, const u64 *a);
i64 sys_clock_getres(struct kthread *k, const u64 *a);
i64 sys_clock_settime(struct kthread *k, const u64 *a);
i64 sys_gettimeofday(struct kthread *k, const u64 *a);
i64 sys_time(struct kthread *k, const u64 *a);
i64 sys_times(struct kthread *k, const u64 *a);
i64 sys_getrusage(struct kthread *k, const u64 *a);

/* sys_signal.c */
i64 sys_rt_sigaction(struct kthread *k, const u64 *a);
i64 sys_rt_sigprocmask(struct kthread *k, const u64 *a);
i64 sys_rt_sigreturn(struct kthread *k, const u64 *a);
i64 sys_rt_sigpending(struct kthread *k, const u64 *a);
i64 sys_rt_sigsuspend(struct kthread *k, const u64 *a);
i64 sys_rt_sigtimedwait(struct kthread *k, const u64 *a);
i64 sys_rt_sigqueueinfo(struct kthread *k, const u64 *a);
i64 sys_sigaltstack(struct kthread *k, const u64 *a);
i64 sys_kill(struct kthread *k, const u64 *a);
i64 sys_tkill(struct kthread *k, const u64 *a);
i64 sys_tgkill(struct kthread *k, const u64 *a);
i64 sys_pause(struct kthread *k, const u64 *a);

/* sys_misc.c */
i64 sys_uname(struct kthread *k, const u64 *a);
i64 sys_sysinfo(struct kthread *k, const u64 *a);
i64 sys_getrandom(struct kthread *k, const u64 *a);
i64 sys_prlimit64(struct kthread *k, const u64 *a);
i64 sys_getrlimit(struct kthread *k, const u64 *a);
i64 sys_setrlimit(struct kthread *k, const u64 *a);
i64 sys_zero(struct kthread *k, const u64 *a);
i64 sys_getgroups(struct kthread *k, const u64 *a);

#endif
