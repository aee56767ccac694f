/* A bad wire: loss, delay; a full house: backlog bursts, SYN floods, connection limits, memory that runs out. */
#include <errno.h>
#include <string.h>

#include "tests/unit/fake/cmocka_all.h"
#include "tests/unit/net/fake_kernel.h"

#define LOSS_PPM 30000 /* 3% */
#define DELAY_NS 200000

static int set_up(void **state)
{
    (void)state;
    fake_kernel_start(2, 2);
    wire_up(2, DELAY_NS, LOSS_PPM, test_seed(7));
    return 0;
}

struct transfer {
    struct socket *from, *to;
    size_t sent, received, total;
};

static u8 pattern(size_t at)
{
    return (u8)(at * 31 + (at >> 9));
}

/* One step of a transfer without waiting; fails the test on wrong data. */
static void step(struct transfer *t)
{
    static u8 out[5000], in[7000];
    if (t->sent < t->total) {
        size_t n = MIN(sizeof(out), t->total - t->sent);
        for (size_t i = 0; i < n; i++) {
            out[i] = pattern(t->sent + i);
        }
        struct net_iov iov = { (u64)(uintptr_t)out, n };
        struct net_buf buf = { &iov, 1, true };
        i64 r = socket_send(t->from, &buf, NET_NONBLOCK, NULL, NO_DEADLINE);
        assert_true(r > 0 || r == -EAGAIN);
        t->sent += r > 0 ? (size_t)r : 0;
    }
    i64 r = recv_now(t->to, in, sizeof(in));
    assert_true(r > 0 || r == -EAGAIN);
    for (i64 i = 0; i < r; i++) {
        assert_int_equal(in[i], pattern(t->received + (size_t)i));
    }
    t->received += r > 0 ? (size_t)r : 0;
}

static bool transfers_done(void *arg)
{
    bool done = true;
    for (struct transfer *t = arg; t->from != NULL; t++) {
        step(t);
        done &= t->received == t->total;
    }
    return done;
}

static void lossy_transfers_arrive_whole(void **state)
{
    (void)state;
    enum { NUM = 6 };
    struct socket *listener = listen_on(net_of_domain(0), 80, 64);
    struct transfer t[NUM + 1] = { 0 };
    for (int i = 0; i < NUM; i += 2) {
        struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 80), *server = accept_from(listener);
        t[i] = (struct transfer){ client, server, 0, 0, 300000 };
        t[i + 1] = (struct transfer){ server, client, 0, 0, 300000 };
    }
    assert_true(world_run(transfers_done, t, 600 * NSEC_PER_SEC));
    assert_true(counter_sum("net_tcp_retransmits_total") > 0);
    assert_true(counter_sum("wire_lost_total") > 0);
    for (int i = 0; i < NUM; i += 2) {
        socket_close(t[i].from);
        socket_close(t[i].to);
    }
    socket_close(listener);
    world_pass(120 * NSEC_PER_SEC);
    assert_int_equal(counter_sum("net_tcp_active"), 0);
    assert_int_equal(counter_sum("net_packets_held"), 0);
}

/* Many clients at once: the queue takes what its backlog says, the others come when there is room. */
static void a_burst_beyond_the_backlog(void **state)
{
    (void)state;
    enum { CLIENTS = 300, BACKLOG = 40 };
    static struct socket *clients[CLIENTS];
    struct socket *listener = listen_on(net_of_domain(0), 81, BACKLOG);
    struct net_addr addr = addr_of(SERVER_IP, 81);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(socket_create(net_of_domain(1), 2, 1, 0, &clients[i]), 0);
        assert_int_equal(socket_connect(clients[i], &addr, NET_NONBLOCK, NO_DEADLINE), -EINPROGRESS);
    }
    world_pass(NSEC_PER_SEC / 2);
    assert_true(counter_sum("net_syn_dropped_backlog_total") > 0);
    for (int i = 0; i < CLIENTS; i++) {
        struct socket *server = accept_from(listener); /* waits for those whose SYN was dropped */
        socket_close(server);
    }
    for (int i = 0; i < CLIENTS; i++) {
        socket_close(clients[i]);
    }
    socket_close(listener);
    world_pass(120 * NSEC_PER_SEC);
    assert_int_equal(counter_sum("net_tcp_active"), 0);
}

/* ---- frames made by hand ---- */

struct frame {
    u8 bytes[128];
    u16 len;
};

static void put16(u8 *p, u32 v)
{
    p[0] = (u8)(v >> 8);
    p[1] = (u8)v;
}

static void put32(u8 *p, u32 v)
{
    put16(p, v >> 16);
    put16(p + 2, v);
}

enum { SYN = 2, RST = 4, ACK = 16 };

/* A TCP segment without options from ip:port to the server's port 82; checksums are not looked at on the wire. */
static struct frame segment(u32 ip, u16 port, u8 flags, u32 seq)
{
    struct frame f = { { 0 }, 14 + 20 + 20 };
    static const u8 macs[12] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 };
    memcpy(f.bytes, macs, sizeof(macs));
    put16(f.bytes + 12, 0x0800);
    f.bytes[14] = 0x45;
    put16(f.bytes + 16, 40);
    f.bytes[22] = 64;
    f.bytes[23] = 6;
    put32(f.bytes + 26, ip);
    put32(f.bytes + 30, SERVER_IP);
    put16(f.bytes + 34, port);
    put16(f.bytes + 36, 82);
    put32(f.bytes + 38, seq);
    f.bytes[46] = 5 << 4;
    f.bytes[47] = flags;
    put16(f.bytes + 48, 65535);
    return f;
}

static void inject(const struct frame *f)
{
    struct net *net = net_of_domain(0);
    u32 ip = (u32)f->bytes[26] << 24 | (u32)f->bytes[27] << 16 | (u32)f->bytes[28] << 8 | f->bytes[29];
    u32 target = net_flow_instance(net, ip, SERVER_IP, (u16)(f->bytes[34] << 8 | f->bytes[35]), 82);
    struct instance *in = &net->instances[target];
    struct wake_batch batch;
    irqflags_t flags = instance_enter(in, &batch);
    struct packet *p = instance_packet_alloc(in);
    p->start = 0;
    p->len = f->len;
    memcpy(p->data, f->bytes, f->len);
    instance_input(in, p);
    instance_leave(in, &batch, flags);
    world_step();
}

/* Spoofed SYNs that are never followed up: an established connection is served all along, the half-open state is
 * bounded, and a real client still gets in. */
static void a_syn_flood_stops_nobody(void **state)
{
    (void)state;
    struct socket *listener = listen_on(net_of_domain(0), 82, NET_MAX_BACKLOG);
    struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 82), *server = accept_from(listener);
    u64 seed = test_seed(3);
    for (u32 i = 0; i < 6 * NET_SYN_LIMIT; i++) {
        struct frame f = segment(0x0a000003 + (u32)test_below(&seed, 200), (u16)test_random(&seed), SYN, (u32)test_random(&seed));
        inject(&f);
        if (i % 1000 == 0) {
            char got[8];
            assert_int_equal(send_all(client, "ping", 4), 4);
            assert_int_equal(recv_some(server, got, sizeof(got)), 4);
        }
    }
    assert_true(counter_sum("net_tcp_half_open") <= 2 * NET_SYN_LIMIT);
    assert_true(counter_sum("net_half_open_evicted_total") > 0);
    struct socket *late = connect_to(net_of_domain(1), SERVER_IP, 82), *late_server = accept_from(listener);
    socket_close(late);
    socket_close(late_server);
    socket_close(client);
    socket_close(server);
    socket_close(listener);
    world_pass(120 * NSEC_PER_SEC);
    assert_int_equal(counter_sum("net_tcp_half_open"), 0);
    assert_int_equal(counter_sum("net_tcp_active"), 0);
}

/* Frames that are wrong in every header field that can be: nothing breaks, and the connection beside goes on. */
static void malformed_segments(void **state)
{
    (void)state;
    struct socket *listener = listen_on(net_of_domain(0), 82, 16);
    struct socket *client = connect_to(net_of_domain(1), SERVER_IP, 82), *server = accept_from(listener);
    u64 seed = test_seed(11);
    for (u32 i = 0; i < 20000; i++) {
        struct frame f = segment(CLIENT_IP, (u16)(40000 + test_below(&seed, 20)), (u8)test_random(&seed), (u32)test_random(&seed));
        for (u64 flips = test_below(&seed, 4); flips > 0; flips--) {
            f.bytes[12 + test_below(&seed, f.len - 12u)] = (u8)test_random(&seed);
        }
        f.len = (u16)(test_below(&seed, 3) == 0 ? test_below(&seed, f.len) + 1 : f.len);
        inject(&f);
    }
    char got[8];
    assert_int_equal(send_all(client, "still", 5), 5);
    assert_int_equal(recv_some(server, got, sizeof(got)), 5);
    socket_close(client);
    socket_close(server);
    socket_close(listener);
    world_pass(120 * NSEC_PER_SEC);
    assert_int_equal(counter_sum("net_packets_held"), 0);
}

/* A client that comes back with the same port while the server's side is still in TIME_WAIT (RFC 1122, 4.2.2.13). */
static void a_port_is_used_again(void **state)
{
    (void)state;
    struct socket *listener = listen_on(net_of_domain(0), 83, 16);
    struct net_addr local = addr_of(0, 45000), remote = addr_of(SERVER_IP, 83);
    for (int i = 0; i < 5; i++) {
        struct socket *client;
        assert_int_equal(socket_create(net_of_domain(1), 2, 1, 0, &client), 0);
        assert_int_equal(socket_bind(client, &local), 0);
        assert_int_equal(socket_connect(client, &remote, 0, NO_DEADLINE), 0);
        struct socket *server = accept_from(listener);
        char got[8];
        socket_close(server); /* the server closes first: TIME_WAIT is its */
        assert_int_equal(recv_some(client, got, sizeof(got)), 0);
        socket_close(client);
        world_pass(2 * NSEC_PER_SEC);
    }
    assert_true(counter_sum("net_time_wait_reused_total") >= 4);
    socket_close(listener);
}

/* Every allocation fails in turn, from the first to the last that a connection's life makes. */
static void memory_runs_out_anywhere(void **state)
{
    (void)state;
    struct net_addr addr = addr_of(SERVER_IP, 84);
    struct socket *listener = listen_on(net_of_domain(0), 84, 16);
    world_pass(300 * NSEC_PER_SEC);
    for (u64 budget = 0; budget < 60; budget++) {
        struct socket *client, *server = NULL;
        static u8 data[20000];
        fake_alloc_budget = budget;
        if (socket_create(net_of_domain(1), 2, 1, 0, &client) == 0) {
            int error = socket_connect(client, &addr, 0, fake_clock_now + 3 * NSEC_PER_SEC);
            assert_true(error == 0 || error == -EINPROGRESS || error == -ENOMEM || error == -ENOBUFS || error == -ECONNRESET ||
                        error == -ECONNREFUSED || error == -ETIMEDOUT);
            if (error == 0) {
                i64 r = send_all(client, data, sizeof(data));
                assert_true(r > 0 || r == -ENOBUFS || r == -ECONNRESET || r == -EPIPE);
                (void)socket_accept(listener, NET_NONBLOCK, NO_DEADLINE, &server, NULL);
            }
            world_pass(NSEC_PER_SEC);
            fake_alloc_budget = UINT64_MAX;
            socket_close(client);
        }
        fake_alloc_budget = UINT64_MAX;
        if (server != NULL) {
            socket_close(server);
        }
        while (socket_accept(listener, NET_NONBLOCK, NO_DEADLINE, &server, NULL) == 0) {
            socket_close(server);
        }
        world_pass(300 * NSEC_PER_SEC);
        assert_int_equal(counter_sum("net_packets_held"), 0);
        assert_int_equal(counter_sum("net_tcp_active"), 0);
    }
    socket_close(listener);
    struct socket *s = listen_on(net_of_domain(0), 84, 16), *c = connect_to(net_of_domain(1), SERVER_IP, 84);
    socket_close(c);
    socket_close(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lossy_transfers_arrive_whole),
        cmocka_unit_test(a_burst_beyond_the_backlog),
        cmocka_unit_test(a_syn_flood_stops_nobody),
        cmocka_unit_test(malformed_segments),
        cmocka_unit_test(a_port_is_used_again),
        cmocka_unit_test(memory_runs_out_anywhere),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
