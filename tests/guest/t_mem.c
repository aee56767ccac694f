/* Memory: brk, mmap and its kin, malloc, faults. */
#include <malloc.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/guest/test.h"

#define PAGE 4096ul

static sigjmp_buf fault_env;
static volatile uintptr_t fault_addr;
static volatile int fault_code, fault_signal;

static void on_fault(int signo, siginfo_t *info, void *context)
{
    (void)context;
    fault_addr = (uintptr_t)info->si_addr;
    fault_code = info->si_code;
    fault_signal = signo;
    siglongjmp(fault_env, 1);
}

static void catch_faults(void)
{
    struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };
    sigaction(SIGSEGV, &sa, NULL);
    sigaction(SIGBUS, &sa, NULL);
    sigaction(SIGILL, &sa, NULL);
    sigaction(SIGFPE, &sa, NULL);
    sigaction(SIGTRAP, &sa, NULL);
}

/* True if the statement faults. */
#define FAULTS(statement)                                                                          \
    ({                                                                                             \
        catch_faults();                                                                            \
        fault_signal = 0;                                                                          \
        if (sigsetjmp(fault_env, 1) == 0) {                                                        \
            statement;                                                                             \
        }                                                                                          \
        fault_signal != 0;                                                                         \
    })

TEST(mem_mmap_is_zero_and_writable)
{
    size_t n = 300 * PAGE;
    unsigned char *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    for (size_t i = 0; i < n; i += 512) {
        CHECK(p[i] == 0);
        p[i] = (unsigned char)(i >> 9);
    }
    for (size_t i = 0; i < n; i += 512) {
        CHECK(p[i] == (unsigned char)(i >> 9));
    }
    CHECK(munmap(p, n) == 0);
    CHECK(FAULTS(*(volatile char *)p));
    CHECK(fault_addr == (uintptr_t)p && fault_code == SEGV_MAPERR && fault_signal == SIGSEGV);
}

TEST(mem_munmap_in_the_middle)
{
    char *p = mmap(NULL, 5 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 1, 5 * PAGE);
    CHECK(munmap(p + 2 * PAGE, PAGE) == 0);
    CHECK(p[2 * PAGE - 1] == 1 && p[3 * PAGE] == 1);
    CHECK(FAULTS(p[2 * PAGE] = 1));
    CHECK(munmap(p, 5 * PAGE) == 0); /* holes do not matter */
    CHECK_ERRNO(munmap(p + 1, PAGE), EINVAL);
    CHECK_ERRNO(munmap(p, 0), EINVAL);
}

TEST(mem_mprotect)
{
    char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[PAGE] = 7;
    CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == 0);
    CHECK(p[PAGE] == 7);
    CHECK(FAULTS(p[PAGE] = 8));
    CHECK(fault_code == SEGV_ACCERR);
    p[0] = p[2 * PAGE] = 1;
    CHECK(mprotect(p + 3 * PAGE, PAGE, PROT_READ) == 0);
    CHECK(FAULTS(p[3 * PAGE] = 8)); /* never touched before */
    CHECK(fault_code == SEGV_ACCERR);
    CHECK(mprotect(p + PAGE, PAGE, PROT_NONE) == 0);
    CHECK(FAULTS(*(volatile char *)(p + PAGE)));
    CHECK(mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
    CHECK(p[PAGE] == 7);
    CHECK_ERRNO(syscall(SYS_mprotect, p + 1, PAGE, PROT_READ), EINVAL); /* musl aligns by itself */
    munmap(p, 4 * PAGE);
    CHECK_ERRNO(mprotect(p, PAGE, PROT_READ), ENOMEM);
}

TEST(mem_no_execute)
{
    static const unsigned char ret[] = { 0xc3 };
    char *p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, ret, 1);
    CHECK(FAULTS(((void (*)(void))(uintptr_t)p)()));
    CHECK(mprotect(p, PAGE, PROT_READ | PROT_EXEC) == 0);
    ((void (*)(void))(uintptr_t)p)();
    CHECK(FAULTS(*p = 1));
    munmap(p, PAGE);
}

TEST(mem_writable_and_executable_is_refused)
{
    if (!in_weir()) {
        return; /* Linux allows it */
    }
    CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), EINVAL);
}

TEST(mem_fixed_mappings)
{
    char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    p[PAGE] = 1;
    CHECK(mmap(p + PAGE, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p + PAGE);
    CHECK(p[PAGE] == 0);
    CHECK_ERRNO(mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
    munmap(p, 4 * PAGE);
    CHECK(mmap(p, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == p);
    munmap(p, PAGE);
    CHECK_ERRNO(mmap(p, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), EINVAL);
    CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0), EINVAL);
    CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 999, 0), EBADF);
    CHECK_ERRNO(mmap((char *)1, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), EINVAL);
    CHECK_ERRNO(mmap(NULL, 1ul << 47, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
}

TEST(mem_mremap)
{
    char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 4; i++) {
        p[i * PAGE] = (char)(i + 1);
    }
    char *q = mremap(p, 4 * PAGE, 64 * PAGE, MREMAP_MAYMOVE);
    CHECK(q != MAP_FAILED);
    for (int i = 0; i < 4; i++) {
        CHECK(q[i * PAGE] == (char)(i + 1));
    }
    CHECK(q[63 * PAGE] == 0);
    q[63 * PAGE] = 1;
    CHECK(mremap(q, 64 * PAGE, 2 * PAGE, 0) == q);
    CHECK(q[PAGE] == 2);
    CHECK(FAULTS(q[2 * PAGE] = 1));
    munmap(q, 2 * PAGE);
    CHECK_ERRNO(mremap(q + 1, PAGE, PAGE, 0), EINVAL);
}

TEST(mem_madvise_dontneed)
{
    char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(p, 3, 8 * PAGE);
    CHECK(madvise(p + PAGE, 2 * PAGE, MADV_DONTNEED) == 0);
    CHECK(p[0] == 3 && p[PAGE] == 0 && p[3 * PAGE - 1] == 0 && p[3 * PAGE] == 3);
    CHECK(madvise(p, PAGE, MADV_WILLNEED) == 0);
    CHECK_ERRNO(madvise(p, PAGE, 999), EINVAL);
    munmap(p, 8 * PAGE);
}

TEST(mem_brk)
{
    char *start_brk = sbrk(0);
    char *now = (char *)syscall(SYS_brk, 0);
    CHECK(now != NULL);
    char *grown = (char *)syscall(SYS_brk, now + 10 * PAGE);
    if (grown == now + 10 * PAGE) {
        memset(now, 5, 10 * PAGE);
        CHECK((char *)syscall(SYS_brk, now) == now);
    }
    CHECK((char *)syscall(SYS_brk, 16) == now); /* impossible: the old one comes back */
    CHECK(start_brk != (void *)-1);
}

static void *malloc_worker(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    void *blocks[64] = { 0 };
    for (int i = 0; i < 3000; i++) {
        int slot = (int)((unsigned)rand_r(&seed) % 64);
        free(blocks[slot]);
        size_t n = (size_t)rand_r(&seed) % 5000 + 1;
        blocks[slot] = malloc(n);
        CHECK(blocks[slot] != NULL);
        memset(blocks[slot], slot, n);
    }
    for (int i = 0; i < 64; i++) {
        free(blocks[i]);
    }
    return NULL;
}

TEST(mem_malloc_threads)
{
    pthread_t t[6];
    for (int i = 0; i < 6; i++) {
        t[i] = start(malloc_worker, (void *)(uintptr_t)(i + 1));
    }
    for (int i = 0; i < 6; i++) {
        join(t[i]);
    }
}

static void *map_worker(void *arg)
{
    for (int i = 0; i < 200; i++) {
        char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        CHECK(p != MAP_FAILED);
        p[0] = p[7 * PAGE] = 1;
        CHECK(munmap(p, 8 * PAGE) == 0);
    }
    return arg;
}

TEST(mem_mmap_threads)
{
    pthread_t t[6];
    for (int i = 0; i < 6; i++) {
        t[i] = start(map_worker, NULL);
    }
    for (int i = 0; i < 6; i++) {
        join(t[i]);
    }
}

static char *shared_page;

static void *touch_shared(void *arg)
{
    for (size_t i = 0; i < 256; i++) {
        __atomic_add_fetch(&shared_page[i * PAGE], 1, __ATOMIC_RELAXED);
    }
    return arg;
}

TEST(mem_demand_zero_race)
{
    pthread_t t[6];
    shared_page = mmap(NULL, 256 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 6; i++) {
        t[i] = start(touch_shared, NULL);
    }
    for (int i = 0; i < 6; i++) {
        join(t[i]);
    }
    for (size_t i = 0; i < 256; i++) {
        CHECK(shared_page[i * PAGE] == 6);
    }
    munmap(shared_page, 256 * PAGE);
}

TEST(fault_null_pointer)
{
    volatile uintptr_t low = 0x10;
    CHECK(FAULTS(*(volatile int *)low));
    CHECK(fault_addr == 0x10 && fault_signal == SIGSEGV);
}

TEST(fault_kernel_address)
{
    if (!in_weir()) {
        return; /* Weir applications run in ring 0: a wild pointer into the kernel is the application's own risk */
    }
    volatile uintptr_t wild = 0xdead00000000ul;
    CHECK(FAULTS(*(volatile int *)wild));
}

TEST(fault_divide_and_illegal)
{
    volatile int zero = 0;
    CHECK(FAULTS(zero = 100 / zero));
    CHECK(fault_signal == SIGFPE && fault_code == FPE_INTDIV);
    CHECK(FAULTS(__asm__ volatile("ud2")));
    CHECK(fault_signal == SIGILL);
    CHECK(FAULTS(__asm__ volatile("int3")));
    CHECK(fault_signal == SIGTRAP);
}

/* Endless recursion runs into the guard page; the handler needs a stack of its own. */
static volatile int depth, no_limit = 1;

static int recurse(int n)
{
    volatile char frame[512];
    frame[0] = (char)n;
    depth = n;
    return (no_limit ? recurse(n + 1) : 0) + frame[0];
}

static void *overflow(void *arg)
{
    static char alt[16384];
    stack_t ss = { .ss_sp = alt, .ss_size = sizeof(alt) };
    CHECK(sigaltstack(&ss, NULL) == 0);
    struct sigaction sa = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK };
    sigaction(SIGSEGV, &sa, NULL);
    fault_signal = 0;
    if (sigsetjmp(fault_env, 1) == 0) {
        recurse(0);
    }
    CHECK(fault_signal == SIGSEGV);
    CHECK(depth > 50);
    ss.ss_flags = SS_DISABLE;
    sigaltstack(&ss, NULL);
    return arg;
}

TEST(fault_stack_overflow_on_alternate_stack)
{
    join(start(overflow, NULL));
}

TEST(fault_system_calls_give_efault)
{
    char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fds[2];
    munmap(p + PAGE, PAGE);
    CHECK(pipe(fds) == 0);
    CHECK_ERRNO(write(fds[1], (void *)8, 4), EFAULT);
    CHECK_ERRNO(write(fds[1], (void *)0xffff800000000000ul, 4), EFAULT);
    CHECK(write(fds[1], "abcd", 4) == 4);
    CHECK_ERRNO(read(fds[0], p + PAGE, 4), EFAULT);
    CHECK_ERRNO(syscall(SYS_clock_gettime, 0, p + PAGE), EFAULT);
    CHECK(mprotect(p, PAGE, PROT_READ) == 0);
    CHECK_ERRNO(syscall(SYS_clock_gettime, 0, p), EFAULT);
    CHECK_ERRNO(syscall(SYS_clock_gettime, 0, p + PAGE - 4), EFAULT);
    close(fds[0]);
    close(fds[1]);
    munmap(p, PAGE);
}
