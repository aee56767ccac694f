/* The HTTP port: one acceptor thread, one that refuses, one thread for each client, at most HTTP_MAX_CLIENTS. Every client has a bounded
 * request and a bounded time; a slow one holds only its own thread and the text made for it. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/http.h"
#include "core/kern/http_pages.h"
#include "core/kern/tunables.h"
#include "core/mm/mm.h"

#define AF_INET 2
#define SOCK_STREAM 1
#define SOL_SOCKET 1
#define SO_REUSEADDR 2
#define HEADER_BYTES 256
#define ACCEPT_RETRY_NS (100 * NSEC_PER_MSEC)

struct http_client {
    struct socket *socket;
    u64 deadline_ns;
    char request[HTTP_MAX_REQUEST + 1]; /* room for the NUL behind the last parameter */
};

static struct socket *listener;
static bool port_writable;
static u32 clients;

static bool send_all(struct http_client *c, const char *data, size_t n)
{
    while (n > 0) {
        struct net_iov iov = { (u64)(uintptr_t)data, n };
        struct net_buf buf = { &iov, 1, true };
        i64 sent = socket_send(c->socket, &buf, 0, NULL, c->deadline_ns);
        if (sent <= 0) {
            return false;
        }
        data += sent;
        n -= (size_t)sent;
    }
    return true;
}

static bool send_chunk(void *arg, const char *data, size_t n)
{
    struct http_client *c = arg;
    char size[24];
    int digits = str_format(size, sizeof(size), "%lx\r\n", n);
    return send_all(c, size, (size_t)digits) && send_all(c, data, n) && send_all(c, "\r\n", 2);
}

static bool send_plain(void *arg, const char *data, size_t n)
{
    return send_all(arg, data, n);
}

/* A body that is made while it is sent: chunked, since its length is not known before; for HTTP/1.0 the end of the connection
 * is the end of the body. */
static void send_stream(struct http_client *c, struct http_answer *a, bool body, bool chunks)
{
    char header[HEADER_BYTES];
    struct out *out = body ? kmalloc(sizeof(*out)) : NULL;
    int n = str_format(header, sizeof(header),
                       "HTTP/1.1 %d %s\r\nContent-Type: %s\r\n%s"
                       "Connection: close\r\nCache-Control: no-store\r\n\r\n",
                       a->status, http_status_text(a->status), a->type,
                       chunks ? "Transfer-Encoding: chunked\r\n" : "");
    c->deadline_ns = arch_clock_ns() + a->stream_ns;
    if (out) {
        out_init(out, chunks ? send_chunk : send_plain, c);
        out->failed = !send_all(c, header, (size_t)n);
    } else {
        send_all(c, header, (size_t)n);
    }
    a->stream(a, out);
    if (out && out_flush(out) && chunks) {
        send_all(c, "0\r\n\r\n", 5);
    }
    kfree(out);
}

static void send_answer(struct http_client *c, const struct http_answer *a, bool body)
{
    char header[HEADER_BYTES];
    int n = str_format(header, sizeof(header),
                       "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %lu\r\n"
                       "Connection: close\r\nCache-Control: no-store\r\n\r\n",
                       a->status, http_status_text(a->status), a->type, a->body.len);
    if (send_all(c, header, (size_t)n) && body) {
        send_all(c, a->body.data, a->body.len);
    }
}

/* Receives until the request is complete: its status as http_parse gives it; 0: the client is gone or too slow. */
static int receive_request(struct http_client *c, struct http_request *request)
{
    size_t n = 0;
    for (;;) {
        struct net_iov iov = { (u64)(uintptr_t)(c->request + n), HTTP_MAX_REQUEST - n };
        struct net_buf buf = { &iov, 1, true };
        i64 got = socket_recv(c->socket, &buf, 0, NULL, c->deadline_ns);
        if (got <= 0) {
            return 0;
        }
        n += (size_t)got;
        int status = http_parse(c->request, n, HTTP_MAX_REQUEST, request);
        if (status != 0) {
            return status;
        }
    }
}

static void serve(struct http_client *c)
{
    struct http_request request;
    struct http_answer answer;
    int status = receive_request(c, &request);
    if (status == 0) {
        return;
    }
    if (status == 200) {
        http_answer(&request, port_writable, &answer);
    } else {
        http_answer_error(status, &answer);
    }
    bool body = status != 200 || request.method != HTTP_HEAD;
    if (answer.stream) {
        send_stream(c, &answer, body, request.chunks);
    } else {
        send_answer(c, &answer, body);
    }
    text_free(&answer.body);
    /* What the client still sends must not turn the answer into a reset: say that no more comes, then read until it
     * closes, within its time. */
    socket_shutdown(c->socket, 1);
    struct net_iov iov = { (u64)(uintptr_t)c->request, HTTP_MAX_REQUEST };
    struct net_buf buf = { &iov, 1, true };
    for (u32 i = 0; i < HTTP_MAX_DRAIN && socket_recv(c->socket, &buf, 0, NULL, c->deadline_ns) > 0; i++) {
    }
}

static void client_thread(void *arg)
{
    struct http_client *c = arg;
    serve(c);
    socket_close(c->socket);
    kfree(c);
    __atomic_fetch_sub(&clients, 1, __ATOMIC_RELEASE);
    thread_exit();
}

static bool start_client(struct socket *s)
{
    if (LOAD_ACQUIRE(clients) >= HTTP_MAX_CLIENTS) {
        return false;
    }
    struct http_client *c = kmalloc(sizeof(*c));
    if (!c) {
        return false;
    }
    c->socket = s;
    c->deadline_ns = arch_clock_ns() + HTTP_CLIENT_NS;
    struct thread_attr attr = { .name = "http" };
    struct thread *t;
    if (thread_create(&attr, client_thread, c, &t) < 0) {
        kfree(c);
        return false;
    }
    __atomic_fetch_add(&clients, 1, __ATOMIC_RELAXED);
    thread_start(t);
    thread_put(t);
    return true;
}

/* ---- refusing: by one thread, in order, each within its own time ---- */

static struct refused {
    struct socket *socket;
    u64 deadline_ns;
} refused[HTTP_MAX_REFUSED];
static u32 refused_in, refused_out; /* written by the acceptor, by the refuser */
static struct thread *refuser;

static void refuse(struct socket *s, u64 deadline_ns)
{
    static const char text[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n"
                               "Connection: close\r\n\r\n";
    static char request[HTTP_MAX_REQUEST]; /* the refuser's */
    struct net_iov in = { (u64)(uintptr_t)request, sizeof(request) }, iov = { (u64)(uintptr_t)text, sizeof(text) - 1 };
    struct net_buf given = { &in, 1, true }, buf = { &iov, 1, true };
    socket_recv(s, &given, 0, NULL, deadline_ns);
    socket_send(s, &buf, NET_NONBLOCK, NULL, NO_DEADLINE);
    socket_close(s);
}

static void refuser_thread(void *arg)
{
    (void)arg;
    for (;;) {
        while (refused_out == LOAD_ACQUIRE(refused_in)) {
            thread_park_uninterruptible(NO_DEADLINE, WAIT_WORK, 0);
        }
        const struct refused *r = &refused[refused_out % HTTP_MAX_REFUSED];
        refuse(r->socket, r->deadline_ns);
        STORE_RELEASE(refused_out, refused_out + 1);
    }
}

static void hand_to_refuser(struct socket *s)
{
    if (refused_in - LOAD_ACQUIRE(refused_out) == HTTP_MAX_REFUSED) {
        socket_close(s);
        return;
    }
    refused[refused_in % HTTP_MAX_REFUSED] = (struct refused){ s, arch_clock_ns() + HTTP_REFUSE_NS };
    STORE_RELEASE(refused_in, refused_in + 1);
    thread_unpark(refuser);
}

static void acceptor_thread(void *arg)
{
    (void)arg;
    for (;;) {
        struct net_addr peer;
        struct socket *s;
        int error = socket_accept(listener, 0, NO_DEADLINE, &s, &peer);
        if (error < 0) {
            thread_sleep_until(arch_clock_ns() + ACCEPT_RETRY_NS);
        } else if (!start_client(s)) {
            hand_to_refuser(s);
        }
    }
}

static int open_listener(struct net *net, u16 port)
{
    struct net_addr addr = { .bytes = { AF_INET, 0, (u8)(port >> 8), (u8)port }, .len = 16 };
    u32 on = 1;
    int error = net ? socket_create(net, AF_INET, SOCK_STREAM, 0, &listener) : -ENODEV;
    if (error < 0) {
        return error;
    }
    socket_set_option(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    error = socket_bind(listener, &addr);
    if (error == 0) {
        error = socket_listen(listener, HTTP_BACKLOG);
    }
    if (error < 0) {
        socket_close(listener);
    }
    return error;
}

void http_start(struct net *net, u16 port, bool writable)
{
    struct thread_attr attr = { .name = "http-accept" }, attr_refuser = { .name = "http-refuse" };
    struct thread *t;
    port_writable = writable;
    int error = open_listener(net, port);
    if (error == 0) {
        error = thread_create(&attr_refuser, refuser_thread, NULL, &refuser);
    }
    if (error == 0) {
        error = thread_create(&attr, acceptor_thread, NULL, &t);
    }
    if (error < 0) {
        log_error("weir: http=%u: the port stays off: error %d", port, -error);
        return;
    }
    thread_start(refuser);
    thread_start(t);
    thread_put(t);
    log_info("http: port %u, %s", port, writable ? "may change things" : "read-only");
}
