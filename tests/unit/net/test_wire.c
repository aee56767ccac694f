/* Two nets over the wire: connections, data both ways, ends, limits. */
#include <errno.h>
#include <string.h>

#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/net/fake_kernel.h"

static int set_up(void **state)
{
    (void)state;
    fake_kernel_start(1, 1);
    wire_up(1, 0, 0, 1);
    return 0;
}

static void echo(void **state)
{
    (void)state;
    struct socket *listener = listen_on(net_of_domain(0), 6379, 16);
    struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 6379);
    struct socket *server = accept_from(listener);
    char buf[64];
    assert_int_equal(send_all(client, "hello", 5), 5);
    assert_int_equal(recv_some(server, buf, sizeof(buf)), 5);
    assert_memory_equal(buf, "hello", 5);
    assert_int_equal(recv_now(server, buf, sizeof(buf)), -EAGAIN);
    assert_int_equal(send_all(server, "world!", 6), 6);
    assert_int_equal(recv_some(client, buf, sizeof(buf)), 6);
    assert_memory_equal(buf, "world!", 6);
    socket_close(client);
    assert_int_equal(recv_some(server, buf, sizeof(buf)), 0);
    socket_close(server);
    socket_close(listener);
    world_pass(30 * NSEC_PER_SEC);
    assert_int_equal(counter_sum("net_tcp_active"), 0);
    assert_int_equal(counter_sum("net_tcp_time_wait"), 0);
    assert_int_equal(counter_sum("net_sockets"), 0);
}

static void bulk(struct socket *from, struct socket *to, size_t bytes)
{
    static u8 out[100000], in[30000];
    size_t sent = 0, received = 0;
    while (received < bytes) {
        while (sent < bytes) {
            size_t n = MIN(sizeof(out), bytes - sent);
            for (size_t i = 0; i < n; i++) {
                out[i] = (u8)((sent + i) * 7 + ((sent + i) >> 8));
            }
            struct net_iov iov = { (u64)(uintptr_t)out, n };
            struct net_buf buf = { &iov, 1, true };
            i64 r = socket_send(from, &buf, NET_NONBLOCK, NULL, NO_DEADLINE);
            if (r == -EAGAIN) {
                break;
            }
            assert_true(r > 0);
            sent += (size_t)r;
        }
        i64 r = recv_some(to, in, sizeof(in));
        assert_true(r > 0);
        for (i64 i = 0; i < r; i++) {
            size_t at = received + (size_t)i;
            assert_int_equal(in[i], (u8)(at * 7 + (at >> 8)));
        }
        received += (size_t)r;
    }
}

static void bulk_both_ways(void **state)
{
    (void)state;
    struct socket *listener = listen_on(net_of_domain(0), 7000, 16);
    struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 7000);
    struct socket *server = accept_from(listener);
    bulk(client, server, 3000000);
    bulk(server, client, 3000000);
    assert_int_equal(counter_sum("net_tcp_retransmits_total"), 0);
    socket_close(server);
    socket_close(client);
    socket_close(listener);
    world_pass(30 * NSEC_PER_SEC);
    assert_int_equal(counter_sum("net_packets_held"), 0);
}

static void refused_and_reset(void **state)
{
    (void)state;
    struct socket *s;
    struct net_addr addr = addr_of(SERVER_IP, 1234);
    char buf[8];
    assert_int_equal(socket_create(net_of_domain(1), 2, 1, 0, &s), 0);
    assert_int_equal(socket_connect(s, &addr, 0, NO_DEADLINE), -ECONNREFUSED);
    socket_close(s);

    struct socket *listener = listen_on(net_of_domain(0), 1234, 16);
    struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 1234);
    struct socket *server = accept_from(listener);
    assert_int_equal(send_all(client, "unread", 6), 6);
    world_pass(NSEC_PER_MSEC);
    socket_close(server); /* with unread data: a reset */
    assert_int_equal(recv_some(client, buf, sizeof(buf)), -ECONNRESET);
    assert_int_equal(send_all(client, "x", 1), -EPIPE);
    socket_close(client);
    socket_close(listener);
}

static void half_close(void **state)
{
    (void)state;
    struct socket *listener = listen_on(net_of_domain(0), 1235, 16);
    struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 1235);
    struct socket *server = accept_from(listener);
    char buf[8];
    assert_int_equal(send_all(client, "ask", 3), 3);
    assert_int_equal(socket_shutdown(client, 1), 0);
    assert_int_equal(send_all(client, "more", 4), -EPIPE);
    assert_int_equal(recv_some(server, buf, sizeof(buf)), 3);
    assert_int_equal(recv_some(server, buf, sizeof(buf)), 0);
    assert_int_equal(send_all(server, "reply", 5), 5);
    assert_int_equal(recv_some(client, buf, sizeof(buf)), 5);
    socket_close(server);
    assert_int_equal(recv_some(client, buf, sizeof(buf)), 0);
    socket_close(client);
    socket_close(listener);
}

static void loopback(void **state)
{
    (void)state;
    u32 addresses[] = { 0x7f000001, SERVER_IP };
    for (u32 i = 0; i < ARRAY_SIZE(addresses); i++) {
        struct socket *listener = listen_on(net_of_domain(0), (u16)(2000 + i), 16);
        struct socket *client = connect_to(net_of_domain(0), addresses[i], (u16)(2000 + i));
        struct socket *server = accept_from(listener);
        bulk(client, server, 1000000);
        socket_close(client);
        socket_close(server);
        socket_close(listener);
    }
}

static void bad_address_of_the_application(void **state)
{
    (void)state;
    struct socket *listener = listen_on(net_of_domain(0), 1236, 16);
    struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 1236);
    struct socket *server = accept_from(listener);
    char data[8], got[8] = { 0 };
    struct net_iov bad = { 16, 8 };
    struct net_buf buf = { &bad, 1, false };
    assert_int_equal(socket_send(client, &buf, 0, NULL, NO_DEADLINE), -EFAULT);
    /* The first piece is good, the second is not: the connection carries nothing of the failed segment and goes on. */
    struct net_iov two[] = { { (u64)(uintptr_t)data, 4 }, { 16, 4 } };
    struct net_buf half = { two, 2, false };
    assert_int_equal(socket_send(client, &half, 0, NULL, NO_DEADLINE), -EFAULT);
    assert_int_equal(send_all(client, "fine", 4), 4);
    world_pass(NSEC_PER_MSEC);
    assert_int_equal(socket_recv(server, &buf, 0, NULL, NO_DEADLINE), -EFAULT);
    assert_int_equal(recv_some(server, got, sizeof(got)), 4);
    assert_memory_equal(got, "fine", 4);
    socket_close(client);
    socket_close(server);
    socket_close(listener);
}

static void peek_and_waitall(void **state)
{
    (void)state;
    struct socket *listener = listen_on(net_of_domain(0), 1237, 16);
    struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 1237);
    struct socket *server = accept_from(listener);
    char got[16];
    struct net_iov iov = { (u64)(uintptr_t)got, 6 };
    struct net_buf buf = { &iov, 1, true };
    assert_int_equal(send_all(client, "abc", 3), 3);
    world_pass(NSEC_PER_MSEC);
    assert_int_equal(socket_recv(server, &buf, NET_PEEK, NULL, NO_DEADLINE), 3);
    assert_int_equal(send_all(client, "def", 3), 3);
    assert_int_equal(socket_recv(server, &buf, NET_WAITALL, NULL, NO_DEADLINE), 6);
    assert_memory_equal(got, "abcdef", 6);
    assert_int_equal(socket_recv(server, &buf, 0, NULL, fake_clock_now + NSEC_PER_MSEC), -EAGAIN);
    socket_close(client);
    socket_close(server);
    socket_close(listener);
}

static void datagrams(void **state)
{
    (void)state;
    struct socket *a, *b;
    struct net_addr at = addr_of(0, 5353), to = addr_of(SERVER_IP, 5353), from;
    static char big[20000], got[20000];
    struct net_iov out = { (u64)(uintptr_t)big, sizeof(big) }, in = { (u64)(uintptr_t)got, sizeof(got) };
    struct net_buf send = { &out, 1, true }, recv = { &in, 1, true };
    for (size_t i = 0; i < sizeof(big); i++) {
        big[i] = (char)(i * 11);
    }
    assert_int_equal(socket_create(net_of_domain(0), 2, 2, 0, &a), 0);
    assert_int_equal(socket_bind(a, &at), 0);
    assert_int_equal(socket_create(net_of_domain(1), 2, 2, 0, &b), 0);
    assert_int_equal(socket_send(b, &send, 0, NULL, NO_DEADLINE), -EDESTADDRREQ);
    /* Larger than a frame: fragments. */
    assert_int_equal(socket_send(b, &send, 0, &to, NO_DEADLINE), sizeof(big));
    assert_int_equal(socket_recv(a, &recv, 0, &from, NO_DEADLINE), sizeof(big));
    assert_memory_equal(got, big, sizeof(big));
    assert_int_equal(socket_connect(a, &from, 0, NO_DEADLINE), 0);
    out.len = 10;
    assert_int_equal(socket_send(a, &send, 0, NULL, NO_DEADLINE), 10);
    assert_int_equal(socket_recv(b, &recv, 0, &from, NO_DEADLINE), 10);
    assert_memory_equal(&from, &to, sizeof(to));
    socket_close(a);
    socket_close(b);
}

static void addresses_in_use(void **state)
{
    (void)state;
    struct socket *a = listen_on(net_of_domain(0), 1240, 16), *b;
    struct net_addr addr = addr_of(0, 1240), free_port = addr_of(0, 0), far = addr_of(0x08080808, 1), name;
    assert_int_equal(socket_create(net_of_domain(0), 2, 1, 0, &b), 0);
    assert_int_equal(socket_bind(b, &addr), -EADDRINUSE);
    assert_int_equal(socket_bind(b, &far), -EADDRNOTAVAIL);
    assert_int_equal(socket_bind(b, &free_port), 0);
    assert_int_equal(socket_bind(b, &free_port), -EINVAL);
    assert_int_equal(socket_local_addr(b, &name), 0);
    assert_true((name.bytes[2] << 8 | name.bytes[3]) >= NET_EPHEMERAL_FIRST);
    socket_close(a);
    socket_close(b);
    b = listen_on(net_of_domain(0), 1240, 16);
    socket_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(echo),
        cmocka_unit_test(bulk_both_ways),
        cmocka_unit_test(refused_and_reset),
        cmocka_unit_test(half_close),
        cmocka_unit_test(loopback),
        cmocka_unit_test(bad_address_of_the_application),
        cmocka_unit_test(peek_and_waitall),
        cmocka_unit_test(datagrams),
        cmocka_unit_test(addresses_in_use),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
