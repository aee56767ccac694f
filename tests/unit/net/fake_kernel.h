/* A small kernel under the network code, on the host, in one thread.
 *
 * Time stands still but when the test waits: thread_park() of the test's thread runs the world (interrupts, deferred work,
 * timers, with the clock jumping to the next deadline) until it is unparked or its own deadline comes.  So every test is
 * deterministic. */
#ifndef WEIR_TESTS_NET_FAKE_KERNEL_H
#define WEIR_TESTS_NET_FAKE_KERNEL_H

#include "net/net_impl.h"
#include "tests/unit/fake/fake_arch.h"

/* One thread: the test. */
struct thread {
    struct thread_head head;
    bool token;
};
extern struct thread test_thread;

/* CPUs of domain 0 and 1. */
void fake_kernel_start(u32 server_cpus, u32 client_cpus);
/* Runs what is pending, without moving the clock; true if anything ran. */
bool world_step(void);
/* Runs the world until condition(arg) or the clock has moved by limit_ns; false in the latter case. */
bool world_run(bool (*condition)(void *arg), void *arg, u64 limit_ns);
/* Lets ns pass. */
void world_pass(u64 ns);

/* Application addresses below this one fault. */
#define FAKE_BAD_ADDRESS 0x1000ull

/* The n-th allocation from now on fails (and all later ones until this is set again); UINT64_MAX: none. */
extern u64 fake_alloc_budget;
extern u64 fake_allocs_live;
/* The instances' images: the sanitized build linked into the test for the first one, the real image for the others. */
extern bool fake_use_sanitized;

/* Two nets, 10.0.0.1 (domain 0) and 10.0.0.2 (domain 1), over a wire. */
void wire_up(u32 queues, u64 delay_ns, u32 loss_ppm, u64 seed);
#define SERVER_IP 0x0a000001u
#define CLIENT_IP 0x0a000002u

struct net_addr addr_of(u32 ip, u16 port);
struct socket *listen_on(struct net *net, u16 port, int backlog);
struct socket *connect_to(struct net *net, u32 ip, u16 port);
struct socket *accept_from(struct socket *listener);
i64 send_all(struct socket *s, const void *data, size_t n);
i64 recv_some(struct socket *s, void *data, size_t n);
i64 recv_now(struct socket *s, void *data, size_t n); /* without waiting */
u64 counter_sum(const char *name);

#endif
