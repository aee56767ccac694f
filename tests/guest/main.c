/* Runs the tests and prints TAP-like lines. Arguments (or the variable WEIR_TEST) choose tests by prefix. */
#include <sched.h>
#include <signal.h>
#include <sys/utsname.h>

#include "tests/guest/test.h"

/* A test that has not ended after this time hangs: the program ends with what is known. Generous: emulation on a loaded
 * host is slow. */
#define HANG_NS 240000000000ull

static struct test *first, **last = &first;
static const char *current = "";
static int number, passed, failed;
static int failures; /* of the current test */
static uint64_t started_ns;
static bool watching;

void test_register(struct test *t)
{
    *last = t;
    last = &t->next;
}

void test_failed(const char *file, int line, const char *what)
{
    if (ADD(failures, 1) <= 10) {
        printf("# %s: %s:%d: %s\n", current, file, line, what);
        fflush(stdout);
    }
}

bool in_weir(void)
{
    struct utsname u;
    return uname(&u) == 0 && strstr(u.release, "weir") != NULL;
}

uint64_t now_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void sleep_ms(unsigned ms)
{
    struct timespec ts = { ms / 1000, (long)(ms % 1000) * 1000000 };
    while (nanosleep(&ts, &ts) == -1 && errno == EINTR) {
    }
}

int num_cpus(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

pthread_t start(void *(*fn)(void *), void *arg)
{
    pthread_t t;
    int error = pthread_create(&t, NULL, fn, arg);
    if (error) {
        printf("# %s: pthread_create: %s\n", current, strerror(error));
        exit(2);
    }
    return t;
}

void join(pthread_t t)
{
    int error = pthread_join(t, NULL);
    if (error) {
        printf("# %s: pthread_join: %s\n", current, strerror(error));
        exit(2);
    }
}

static void *watch(void *arg)
{
    (void)arg;
    /* Signals to the process are the tests'. */
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    STORE(watching, true);
    for (;;) {
        sleep_ms(200);
        if (now_ns() - LOAD(started_ns) > HANG_NS) {
            printf("not ok %d %s # hangs\n%d passed, %d failed\n", number, current, passed, failed + 1);
            fflush(stdout);
            _exit(1);
        }
    }
    return NULL;
}

static bool chosen(const char *name, int argc, char **argv)
{
    const char *variable = getenv("WEIR_TEST");
    if (argc < 2 && !variable) {
        return true;
    }
    for (int i = 1; i < argc; i++) {
        if (strncmp(name, argv[i], strlen(argv[i])) == 0) {
            return true;
        }
    }
    return variable && strncmp(name, variable, strlen(variable)) == 0;
}

int main(int argc, char **argv)
{
    STORE(started_ns, now_ns());
    pthread_t watcher = start(watch, NULL);
    pthread_detach(watcher);
    while (!LOAD(watching)) {
        sched_yield();
    }
    for (struct test *t = first; t; t = t->next) {
        if (!chosen(t->name, argc, argv)) {
            continue;
        }
        STORE(started_ns, now_ns());
        current = t->name;
        STORE(failures, 0);
        number++;
        t->run();
        bool good = LOAD(failures) == 0;
        passed += good;
        failed += !good;
        printf("%s %d %s\n", good ? "ok" : "not ok", number, t->name);
        fflush(stdout);
    }
    printf("%d passed, %d failed\n", passed, failed);
    fflush(stdout);
    return failed || !passed ? 1 : 0;
}
