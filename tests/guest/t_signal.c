/* Signals. */
#include <signal.h>
#include <sys/syscall.h>

#include "tests/guest/test.h"

static int count, last_signo, last_code;
static pthread_t handled_by;
static void *last_value;

static void on_signal(int signo, siginfo_t *info, void *context)
{
    (void)context;
    STORE(last_signo, signo);
    STORE(last_code, info->si_code);
    last_value = info->si_value.sival_ptr;
    handled_by = pthread_self();
    ADD(count, 1);
}

static void install(int signo, int flags)
{
    struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags };
    CHECK(sigaction(signo, &sa, NULL) == 0);
    STORE(count, 0);
}

TEST(signal_raise)
{
    install(SIGUSR1, 0);
    CHECK(raise(SIGUSR1) == 0);
    CHECK(count == 1 && last_signo == SIGUSR1 && last_code == SI_TKILL);
    CHECK(kill(getpid(), SIGUSR1) == 0);
    CHECK(WAIT_UNTIL(LOAD(count) == 2));
    CHECK(last_code == SI_USER);
    CHECK(kill(getpid(), 0) == 0);
    CHECK_ERRNO(kill(999999, 0), ESRCH);
    CHECK_ERRNO(kill(getpid(), 99), EINVAL);
}

TEST(signal_registers_survive)
{
    install(SIGUSR1, 0);
    unsigned long r12, r13;
    double x = 1.25, y = 0;
    __asm__ volatile("movq $0x1234, %%r12\n\tmovq $0x5678, %%r13\n\tmovsd %3, %%xmm7\n\t"
                     "movl $200, %%eax\n\tsyscall\n\t" /* tkill */
                     "movq %%r12, %0\n\tmovq %%r13, %1\n\tmovsd %%xmm7, %2"
                     : "=m"(r12), "=m"(r13), "=m"(y)
                     : "m"(x), "D"(syscall(SYS_gettid)), "S"((long)SIGUSR1)
                     : "rax", "rcx", "r11", "r12", "r13", "xmm7", "memory");
    CHECK(count == 1);
    CHECK(r12 == 0x1234 && r13 == 0x5678 && y == 1.25);
}

TEST(signal_blocked_stays_pending)
{
    sigset_t set, old, pending;
    install(SIGUSR1, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    CHECK(pthread_sigmask(SIG_BLOCK, &set, &old) == 0);
    raise(SIGUSR1);
    raise(SIGUSR1);
    CHECK(count == 0);
    CHECK(sigpending(&pending) == 0 && sigismember(&pending, SIGUSR1) == 1);
    CHECK(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
    CHECK(count == 1); /* standard signals do not queue */
}

TEST(signal_real_time_queue)
{
    sigset_t set, old;
    install(SIGRTMIN + 1, 0);
    sigemptyset(&set);
    sigaddset(&set, SIGRTMIN + 1);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    for (int i = 0; i < 5; i++) {
        CHECK(sigqueue(getpid(), SIGRTMIN + 1, (union sigval){ .sival_int = 40 + i }) == 0);
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    CHECK(WAIT_UNTIL(LOAD(count) == 5));
    CHECK(last_code == SI_QUEUE && (int)(uintptr_t)last_value == 44);
}

/* ---- interrupted calls ---- */

static int blocked, result, result_errno;
static int pipe_fds[2];

static void *read_pipe(void *arg)
{
    char c;
    STORE(blocked, (int)syscall(SYS_gettid));
    long n = read(pipe_fds[0], &c, 1);
    STORE(result_errno, errno);
    STORE(result, (int)n);
    return arg;
}

static void interrupt_read(int flags, int want, int want_errno)
{
    install(SIGUSR1, flags);
    CHECK(pipe(pipe_fds) == 0);
    STORE(blocked, 0);
    STORE(result, -2);
    pthread_t t = start(read_pipe, NULL);
    CHECK(WAIT_UNTIL(LOAD(blocked)));
    sleep_ms(10);
    pthread_kill(t, SIGUSR1);
    CHECK(WAIT_UNTIL(LOAD(count) == 1));
    CHECK(pthread_equal(handled_by, t));
    if (want == 1) {
        sleep_ms(10);
        CHECK(LOAD(result) == -2); /* still waiting */
        CHECK(write(pipe_fds[1], "x", 1) == 1);
    }
    join(t);
    CHECK(result == want);
    CHECK(want != -1 || result_errno == want_errno);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
}

TEST(signal_interrupts_read_with_eintr)
{
    interrupt_read(0, -1, EINTR);
}

TEST(signal_restarts_read)
{
    interrupt_read(SA_RESTART, 1, 0);
}

static void *sleep_long(void *arg)
{
    struct timespec ts = { 1000, 0 }, rest = { 0, 0 };
    STORE(blocked, 1);
    STORE(result, nanosleep(&ts, &rest));
    CHECK(errno == EINTR);
    CHECK(rest.tv_sec > 900 && rest.tv_sec < 1000);
    return arg;
}

TEST(signal_interrupts_nanosleep)
{
    install(SIGUSR1, SA_RESTART);
    STORE(blocked, 0);
    pthread_t t = start(sleep_long, NULL);
    CHECK(WAIT_UNTIL(LOAD(blocked)));
    sleep_ms(10);
    pthread_kill(t, SIGUSR1);
    join(t);
    CHECK(result == -1 && count == 1);
}

static int spinning;

static void *spin_until_signal(void *arg)
{
    STORE(spinning, 1);
    while (LOAD(count) == 0) {
    }
    return arg;
}

TEST(signal_reaches_a_spinner)
{
    install(SIGUSR1, 0);
    STORE(spinning, 0);
    pthread_t t = start(spin_until_signal, NULL);
    CHECK(WAIT_UNTIL(LOAD(spinning)));
    CHECK(pthread_kill(t, SIGUSR1) == 0);
    join(t);
    CHECK(pthread_equal(handled_by, t));
}

static void *signal_storm_target(void *arg)
{
    volatile double x = 1;
    while (!LOAD(*(int *)arg)) {
        x = x * 1.0000001;
        if (x > 2) {
            x = 1;
        }
    }
    return NULL;
}

TEST(signal_storm_on_a_computing_thread)
{
    int stop = 0;
    install(SIGUSR1, 0);
    pthread_t t = start(signal_storm_target, &stop);
    for (int i = 1; i <= 300; i++) {
        int seen = LOAD(count);
        pthread_kill(t, SIGUSR1);
        CHECK(WAIT_UNTIL(LOAD(count) > seen));
    }
    STORE(stop, 1);
    join(t);
    CHECK(count == 300);
}

TEST(signal_masks_during_handler)
{
    struct sigaction sa = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESETHAND }, now;
    STORE(count, 0);
    CHECK(sigaction(SIGUSR2, &sa, NULL) == 0);
    raise(SIGUSR2);
    CHECK(count == 1);
    CHECK(sigaction(SIGUSR2, NULL, &now) == 0);
    CHECK(now.sa_handler == SIG_DFL);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    CHECK(!sigismember(&mask, SIGUSR2));
    CHECK_ERRNO(sigaction(SIGKILL, &sa, NULL), EINVAL);
    CHECK_ERRNO(sigaction(SIGSTOP, &sa, NULL), EINVAL);
}

TEST(signal_ignored)
{
    signal(SIGUSR2, SIG_IGN);
    CHECK(raise(SIGUSR2) == 0);
    signal(SIGUSR2, SIG_DFL);
    CHECK(raise(SIGCHLD) == 0); /* its default is nothing */
    CHECK(raise(SIGWINCH) == 0);
}

TEST(signal_sigpipe)
{
    int fds[2];
    install(SIGPIPE, 0);
    CHECK(pipe(fds) == 0);
    close(fds[0]);
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    CHECK(count == 1 && last_signo == SIGPIPE);
    signal(SIGPIPE, SIG_IGN);
    CHECK_ERRNO(write(fds[1], "x", 1), EPIPE);
    signal(SIGPIPE, SIG_DFL);
    close(fds[1]);
}

static void *wait_for_signal(void *arg)
{
    sigset_t *set = arg;
    siginfo_t info;
    STORE(blocked, 1);
    int signo = sigwaitinfo(set, &info);
    STORE(result, signo);
    return NULL;
}

TEST(signal_sigwait)
{
    sigset_t set, old;
    struct timespec zero = { 0, 0 }, little = { 0, 5000000 };
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    CHECK_ERRNO(sigtimedwait(&set, NULL, &zero), EAGAIN);
    CHECK_ERRNO(sigtimedwait(&set, NULL, &little), EAGAIN);
    STORE(blocked, 0);
    STORE(result, 0);
    pthread_t t = start(wait_for_signal, &set);
    CHECK(WAIT_UNTIL(LOAD(blocked)));
    sleep_ms(5);
    pthread_kill(t, SIGUSR1);
    join(t);
    CHECK(result == SIGUSR1);
    raise(SIGUSR1);
    CHECK(sigtimedwait(&set, NULL, &zero) == SIGUSR1);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

static void *suspended(void *arg)
{
    sigset_t block, empty;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &block, NULL);
    STORE(blocked, 1);
    sigemptyset(&empty);
    STORE(result, sigsuspend(&empty));
    CHECK(errno == EINTR);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    CHECK(sigismember(&mask, SIGUSR1)); /* the old mask is back */
    return arg;
}

TEST(signal_sigsuspend)
{
    install(SIGUSR1, 0);
    STORE(blocked, 0);
    STORE(result, 0);
    pthread_t t = start(suspended, NULL);
    CHECK(WAIT_UNTIL(LOAD(blocked)));
    pthread_kill(t, SIGUSR1);
    join(t);
    CHECK(result == -1 && count == 1);
}

static char alt_stack[65536];
static bool on_alt;

static void on_alt_signal(int signo)
{
    char here;
    (void)signo;
    on_alt = &here >= alt_stack && &here < alt_stack + sizeof(alt_stack);
}

TEST(signal_alternate_stack)
{
    stack_t ss = { .ss_sp = alt_stack, .ss_size = sizeof(alt_stack) }, now;
    CHECK(sigaltstack(&ss, NULL) == 0);
    struct sigaction sa = { .sa_handler = on_alt_signal, .sa_flags = SA_ONSTACK };
    sigaction(SIGUSR1, &sa, NULL);
    on_alt = false;
    raise(SIGUSR1);
    CHECK(on_alt);
    CHECK(sigaltstack(NULL, &now) == 0 && now.ss_sp == alt_stack && now.ss_flags == 0);
    ss.ss_size = 100;
    CHECK_ERRNO(sigaltstack(&ss, NULL), ENOMEM);
    ss.ss_flags = SS_DISABLE;
    CHECK(sigaltstack(&ss, NULL) == 0);
    raise(SIGUSR1);
    CHECK(!on_alt);
}

TEST(signal_to_a_dead_thread)
{
    CHECK_ERRNO(syscall(SYS_tgkill, getpid(), 999999, SIGUSR1), ESRCH);
    CHECK_ERRNO(syscall(SYS_tgkill, -1, 1, SIGUSR1), EINVAL);
    CHECK_ERRNO(syscall(SYS_tkill, 0, SIGUSR1), EINVAL);
}
