/* The little harness of the guest tests.
 *
 * A test is a function made by TEST(name). It fails by CHECK; the rest of it still runs. Conditions that need time are
 * polled with wait_until(), whose bound only ends a hang. */
#ifndef WEIR_TESTS_GUEST_TEST_H
#define WEIR_TESTS_GUEST_TEST_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct test {
    const char *name;
    void (*run)(void);
    struct test *next;
};

void test_register(struct test *t);
void test_failed(const char *file, int line, const char *what);
/* True if running inside Weir (uname's release says so). */
bool in_weir(void);

#define TEST(id)                                                                                   \
    static void run_##id(void);                                                                    \
    static struct test test_##id = { #id, run_##id, NULL };                                        \
    __attribute__((constructor)) static void register_##id(void)                                   \
    {                                                                                              \
        test_register(&test_##id);                                                                 \
    }                                                                                              \
    static void run_##id(void)

#define CHECK(cond)                                                                                \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            test_failed(__FILE__, __LINE__, #cond);                                                \
        }                                                                                          \
    } while (0)

/* A call that must fail with this errno. */
#define CHECK_ERRNO(call, wanted)                                                                  \
    do {                                                                                           \
        errno = 0;                                                                                 \
        if ((long)(call) != -1 || errno != (wanted)) {                                             \
            char text_[160];                                                                       \
            snprintf(text_, sizeof(text_), "%s: wanted %s, errno %d", #call, #wanted, errno);      \
            test_failed(__FILE__, __LINE__, text_);                                                \
        }                                                                                          \
    } while (0)

#define LOAD(x) __atomic_load_n(&(x), __ATOMIC_SEQ_CST)
#define STORE(x, v) __atomic_store_n(&(x), (v), __ATOMIC_SEQ_CST)
#define ADD(x, n) __atomic_add_fetch(&(x), (n), __ATOMIC_SEQ_CST)

uint64_t now_ns(void);
void sleep_ms(unsigned ms);
int num_cpus(void); /* that this process may use */

/* Polls until the condition holds; false after a minute. */
#define WAIT_UNTIL(cond)                                                                           \
    ({                                                                                             \
        uint64_t end_ = now_ns() + 60000000000ull;                                                 \
        bool held_;                                                                                \
        while (!(held_ = (cond)) && now_ns() < end_) {                                             \
            sleep_ms(1);                                                                           \
        }                                                                                          \
        held_;                                                                                     \
    })

/* Starts a thread or ends the program. */
pthread_t start(void *(*fn)(void *), void *arg);
void join(pthread_t t);

#endif
