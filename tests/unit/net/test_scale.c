/* Many instances and many connections. */
#include <errno.h>
#include <string.h>

#include "net/socket_impl.h"
#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/net/fake_kernel.h"

enum { QUEUES = 4, CONNECTIONS = 10000 };

static int set_up(void **state)
{
    (void)state;
    fake_kernel_start(QUEUES, QUEUES);
    wire_up(QUEUES, 0, 0, 1);
    return 0;
}

static struct socket *clients[CONNECTIONS], *servers[CONNECTIONS];

static void open_all(struct socket *listener)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        fake_cpu_set(QUEUES + (u32)i % QUEUES); /* the client's thread runs on one of its domain's CPUs */
        clients[i] = connect_to(net_of_domain(1), SERVER_IP, 80);
        /* Its packets come back to the CPU that asked. */
        assert_int_equal(clients[i]->in->cpu, QUEUES + (u32)i % QUEUES);
        servers[i] = accept_from(listener);
    }
    fake_cpu_set(0);
}

static void echo_on(int i)
{
    char got[16];
    assert_int_equal(send_all(clients[i], &i, sizeof(i)), sizeof(i));
    assert_int_equal(recv_some(servers[i], got, sizeof(got)), sizeof(i));
    assert_int_equal(send_all(servers[i], got, sizeof(i)), sizeof(i));
    assert_int_equal(recv_some(clients[i], got, sizeof(got)), sizeof(i));
    assert_memory_equal(got, &i, sizeof(i));
}

static void ten_thousand_connections(void **state)
{
    (void)state;
    u64 seed = test_seed(1);
    u32 per_instance[QUEUES] = { 0 };
    struct socket *listener = listen_on(net_of_domain(0), 80, 64);
    open_all(listener);
    assert_int_equal(counter_sum("net_tcp_active"), 2 * CONNECTIONS);
    for (int i = 0; i < CONNECTIONS; i++) {
        per_instance[servers[i]->in->index]++;
    }
    for (u32 q = 0; q < QUEUES; q++) {
        /* Binomial with mean 2500 and deviation 43. */
        assert_in_range(per_instance[q], 2500 - 300, 2500 + 300);
    }
    for (int n = 0; n < 2000; n++) {
        echo_on((int)test_below(&seed, CONNECTIONS));
    }
    assert_int_equal(counter_sum("net_steered_out_total"), 0);
    assert_int_equal(counter_sum("net_tcp_retransmits_total"), 0);
    /* Idle connections hold little: the last packet read, until the next send gives it back.  Both ends of each are here. */
    world_pass(5 * NSEC_PER_SEC);
    assert_true(counter_sum("net_packets_held") <= 2000);
    assert_true(counter_sum("net_stack_heap_bytes") < 2 * CONNECTIONS * 512ull);
    for (int i = 0; i < CONNECTIONS; i++) {
        socket_close(clients[i]);
        socket_close(servers[i]);
    }
    socket_close(listener);
    world_pass(60 * NSEC_PER_SEC);
    assert_int_equal(counter_sum("net_tcp_active"), 0);
    assert_int_equal(counter_sum("net_tcp_time_wait"), 0);
    assert_int_equal(counter_sum("net_sockets"), 0);
    assert_int_equal(counter_sum("net_packets_held"), 0);
}

/* Short connections one after another, faster than TIME_WAIT passes: none is refused, and TIME_WAIT stays bounded. */
static void a_storm_of_short_connections(void **state)
{
    (void)state;
    /* Two ports: one client address has too few of its own to fill TIME_WAIT. */
    struct socket *listeners[] = { listen_on(net_of_domain(0), 90, 64), listen_on(net_of_domain(0), 91, 64) };
    for (int i = 0; i < 3 * NET_TIME_WAIT_LIMIT * QUEUES / 2; i++) {
        fake_cpu_set(QUEUES + (u32)i % QUEUES);
        struct socket *client = connect_to(net_of_domain(1), SERVER_IP, (u16)(90 + i % 2));
        struct socket *server = accept_from(listeners[i % 2]);
        char got[8];
        assert_int_equal(send_all(client, "x", 1), 1);
        assert_int_equal(recv_some(server, got, sizeof(got)), 1);
        socket_close(server);
        assert_int_equal(recv_some(client, got, sizeof(got)), 0);
        socket_close(client);
        world_pass(100 * NSEC_PER_USEC); /* 10,000 connections a second */
    }
    fake_cpu_set(0);
    assert_true(counter_sum("net_tcp_time_wait") <= NET_TIME_WAIT_LIMIT * QUEUES);
    assert_true(counter_sum("net_time_wait_evicted_total") > 0);
    socket_close(listeners[0]);
    socket_close(listeners[1]);
    world_pass(60 * NSEC_PER_SEC);
    assert_int_equal(counter_sum("net_tcp_time_wait"), 0);
}

/* A socket is used from a CPU that is not its instance's: counted, and it works. */
static void sockets_from_other_cpus(void **state)
{
    (void)state;
    struct socket *listener = listen_on(net_of_domain(0), 82, 64);
    clients[0] = connect_to(net_of_domain(1), SERVER_IP, 82);
    servers[0] = accept_from(listener);
    u64 before = counter_sum("net_remote_calls_total");
    for (u32 cpu = 0; cpu < QUEUES; cpu++) {
        fake_cpu_set(cpu);
        echo_on(0);
    }
    fake_cpu_set(0);
    assert_true(counter_sum("net_remote_calls_total") > before);
    socket_close(clients[0]);
    socket_close(servers[0]);
    socket_close(listener);
}

/* Readiness: an observer hears of every change towards it, and poll agrees. */
struct seen {
    struct socket *s;
    u32 events;
};

static void observe(void *arg, u32 events, struct wake_batch *batch)
{
    struct seen *seen = arg;
    (void)batch;
    seen->events |= events;
    assert_true(spin_held(&seen->s->in->lock));
}

static void readiness(void **state)
{
    (void)state;
    static u8 data[65536];
    struct socket *listener = listen_on(net_of_domain(0), 83, 64);
    struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 83), *server = accept_from(listener);
    struct seen c = { client, 0 }, s = { server, 0 };
    socket_set_observer(client, observe, &c);
    socket_set_observer(server, observe, &s);
    assert_int_equal(socket_poll(server) & (POLLIN | POLLOUT), POLLOUT);
    (void)send_all(client, "x", 1);
    world_pass(NSEC_PER_MSEC);
    assert_true((s.events & POLLIN) != 0 && (socket_poll(server) & POLLIN) != 0);
    assert_int_equal(socket_bytes_readable(server), 1);
    (void)recv_some(server, data, 1);
    assert_int_equal(socket_poll(server) & POLLIN, 0);
    /* Full: not writable; writable again once the peer has read. */
    struct net_iov iov = { (u64)(uintptr_t)data, sizeof(data) };
    struct net_buf buf = { &iov, 1, true };
    while (socket_send(client, &buf, NET_NONBLOCK, NULL, NO_DEADLINE) > 0) {
        world_pass(NSEC_PER_MSEC);
    }
    assert_int_equal(socket_poll(client) & POLLOUT, 0);
    c.events = 0;
    while (recv_now(server, data, sizeof(data)) > 0) {
        world_pass(NSEC_PER_MSEC);
    }
    assert_true((c.events & POLLOUT) != 0 && (socket_poll(client) & POLLOUT) != 0);
    socket_shutdown(client, 1);
    world_pass(NSEC_PER_MSEC);
    assert_true((s.events & POLLRDHUP) != 0 && (socket_poll(server) & (POLLIN | POLLRDHUP)) == (POLLIN | POLLRDHUP));
    socket_set_observer(client, NULL, NULL);
    socket_set_observer(server, NULL, NULL);
    socket_close(client);
    socket_close(server);
    socket_close(listener);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ten_thousand_connections),
        cmocka_unit_test(a_storm_of_short_connections),
        cmocka_unit_test(sockets_from_other_cpus),
        cmocka_unit_test(readiness),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
