/* libFuzzer: sequences of frames, application calls and time against a net of two instances.
 *
 * The input is a program: each step is one byte of what, then its data.  Frames are given raw, or as a template (ARP, TCP of a
 * live connection, UDP, ICMP, fragments) whose bytes the input then changes, so that the fuzzer starts from packets that
 * get past the first checks.  Found: whatever the sanitizers or lwIP's assertions see, and a connection beside that
 * stops working. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "net/socket_impl.h"
#include "tests/unit/net/fake_kernel.h"

struct input {
    const u8 *data;
    size_t left;
};

static u8 next(struct input *in)
{
    if (in->left == 0) {
        return 0;
    }
    in->left--;
    return *in->data++;
}

static struct socket *listener, *client, *server, *datagrams;

static void close_socket(struct socket **s)
{
    if (*s != NULL) {
        socket_close(*s);
        *s = NULL;
    }
}

static void open_pair(void)
{
    client = connect_to(net_of_domain(1), SERVER_IP, 80);
    server = accept_from(listener);
}

static void start(void)
{
    struct net_addr any = addr_of(0, 53);
    fake_use_sanitized = true;
    fake_kernel_start(1, 1);
    wire_up(1, 0, 0, 1);
    listener = listen_on(net_of_domain(0), 80, 16);
    if (socket_create(net_of_domain(0), AF_INET, SOCK_DGRAM, 0, &datagrams) != 0 || socket_bind(datagrams, &any) != 0) {
        abort();
    }
}

/* Puts a frame into the server's instance as its device would. */
static void receive(const u8 *frame, size_t len, u16 flags)
{
    struct instance *in = &net_of_domain(0)->instances[0];
    struct receive_batch rx = { .in = in };
    struct wake_batch batch;
    irqflags_t irq = instance_enter(in, &batch);
    struct packet *p = instance_packet_alloc(in);
    if (p != NULL) {
        p->start = 12;
        p->len = (u16)len;
        p->flags = flags;
        memcpy(p->data + p->start, frame, len);
        net_receive(&rx, p);
    }
    instance_leave(in, &batch, irq);
}

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

enum { TEMPLATE_BYTES = 200 };

/* Ethernet and IP header; returns where the payload starts. */
static size_t ip_header(u8 *f, u8 protocol, u32 payload)
{
    static const u8 macs[12] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2 };
    memcpy(f, macs, sizeof(macs));
    put16(f + 12, 0x0800);
    f[14] = 0x45;
    put16(f + 16, 20 + payload);
    f[22] = 64;
    f[23] = protocol;
    put32(f + 26, CLIENT_IP);
    put32(f + 30, SERVER_IP);
    return 34;
}

static void ip_checksum(u8 *f)
{
    u32 sum = 0;
    put16(f + 24, 0);
    for (int i = 14; i < 34; i += 2) {
        sum += (u32)f[i] << 8 | f[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    put16(f + 24, ~sum);
}

/* A segment of the live connection, or from nowhere; the input chooses flags, offsets of the numbers, and the data. */
static size_t tcp_template(u8 *f, struct input *in)
{
    u32 data = next(in) % 64;
    size_t at = ip_header(f, PROTO_TCP, 20 + data);
    struct stack_flow flow = server != NULL ? server->flow : (struct stack_flow){ SERVER_IP, CLIENT_IP, 80, 4000 };
    put16(f + at, next(in) % 8 == 0 ? next(in) : flow.remote_port);
    put16(f + at + 2, flow.local_port);
    put32(f + at + 4, (u32)next(in) << 24 | (u32)next(in) << 8);
    put32(f + at + 8, (u32)next(in) << 24 | (u32)next(in) << 8);
    f[at + 12] = (u8)(5 << 4);
    f[at + 13] = next(in);
    put16(f + at + 14, (u32)next(in) << 8);
    return at + 20 + data;
}

static size_t make_template(u8 *f, u8 kind, struct input *in)
{
    static const u8 arp[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2, 0, 0, 0, 0, 2, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 2,
                              10, 0, 0, 2, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1 };
    size_t at;
    switch (kind % 5) {
    case 0:
        memcpy(f, arp, sizeof(arp));
        return sizeof(arp);
    case 1:
        at = ip_header(f, PROTO_UDP, 8 + 32);
        put16(f + at, 53);
        put16(f + at + 2, next(in) % 2 == 0 ? 53 : 68);
        put16(f + at + 4, 40);
        return at + 40;
    case 2:
        at = ip_header(f, 1, 40);
        f[at] = 8;
        return at + 40;
    case 3: /* a fragment */
        at = ip_header(f, PROTO_UDP, 64);
        put16(f + 18, next(in) % 4);
        put16(f + 20, (u32)(next(in) % 3 == 0 ? 0 : 0x2000) | (next(in) % 16));
        return at + 64;
    default:
        return tcp_template(f, in);
    }
}

static void step_frame(struct input *in, bool raw)
{
    u8 frame[256] = { 0 };
    size_t len;
    if (raw) {
        len = next(in);
        len = MIN(len, in->left);
        memcpy(frame, in->data, len);
        in->data += len;
        in->left -= len;
    } else {
        len = make_template(frame, next(in), in);
        for (u32 changes = next(in) % 8; changes > 0; changes--) {
            u8 where = next(in);
            frame[where % TEMPLATE_BYTES] = next(in);
        }
        if (next(in) % 4 != 0) {
            ip_checksum(frame);
        }
        if (next(in) % 8 == 0) {
            len = next(in);
        }
    }
    receive(frame, len, PACKET_CSUM_OK);
}

static void step_call(struct input *in)
{
    static u8 buf[4096];
    struct net_iov iov = { (u64)(uintptr_t)buf, (size_t)next(in) * 16 };
    struct net_buf nb = { &iov, 1, true };
    switch (next(in) % 10) {
    case 0:
        close_socket(&server);
        break;
    case 1:
        close_socket(&client);
        break;
    case 2:
        if (server != NULL) {
            (void)socket_send(server, &nb, NET_NONBLOCK, NULL, NO_DEADLINE);
        }
        break;
    case 3:
        if (server != NULL) {
            (void)socket_recv(server, &nb, NET_NONBLOCK, NULL, NO_DEADLINE);
        }
        break;
    case 4:
        if (client != NULL) {
            (void)socket_send(client, &nb, NET_NONBLOCK, NULL, NO_DEADLINE);
        }
        break;
    case 5:
        if (server != NULL) {
            (void)socket_shutdown(server, next(in) % 3);
        }
        break;
    case 6:
        (void)socket_recv(datagrams, &nb, NET_NONBLOCK, NULL, NO_DEADLINE);
        break;
    case 7: {
        struct socket *s;
        if (socket_accept(listener, NET_NONBLOCK, NO_DEADLINE, &s, NULL) == 0) {
            socket_close(s);
        }
        break;
    }
    case 8:
        world_pass((u64)next(in) * 10 * NSEC_PER_MSEC);
        break;
    default:
        (void)world_step();
        break;
    }
}

/* Whatever happened, a new connection must work. */
static void must_still_work(void)
{
    char got[8];
    struct socket *s;
    close_socket(&client);
    close_socket(&server);
    world_pass(100 * NSEC_PER_MSEC);
    while (socket_accept(listener, NET_NONBLOCK, NO_DEADLINE, &s, NULL) == 0) {
        socket_close(s);
    }
    open_pair();
    if (send_all(client, "alive", 5) != 5 || recv_some(server, got, sizeof(got)) != 5) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static bool started;
    struct input in = { data, size };
    if (!started) {
        start();
        started = true;
    }
    if (client == NULL) {
        open_pair();
    }
    for (u32 steps = 0; in.left > 0 && steps < 64; steps++) {
        u8 what = next(&in);
        if (what % 4 == 3) {
            step_call(&in);
        } else {
            step_frame(&in, what % 4 == 0);
        }
    }
    must_still_work();
    return 0;
}
