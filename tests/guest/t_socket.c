/* Sockets over loopback. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "tests/guest/test.h"

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(port),
                                 .sin_addr = { htonl(INADDR_LOOPBACK) } };
}

/* A listener on a free port of the loopback interface. */
static int listener(uint16_t *port, int backlog)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    struct sockaddr_in a = loopback(0);
    socklen_t len = sizeof(a);
    CHECK(fd >= 0);
    CHECK(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0);
    CHECK(bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    CHECK(listen(fd, backlog) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&a, &len) == 0);
    *port = ntohs(a.sin_port);
    CHECK(*port != 0);
    return fd;
}

static int connect_to(uint16_t port)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in a = loopback(port);
    CHECK(connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0);
    return fd;
}

/* A connected pair. */
static void pair(int fds[2])
{
    uint16_t port;
    int l = listener(&port, 4);
    fds[0] = connect_to(port);
    fds[1] = accept(l, NULL, NULL);
    CHECK(fds[1] >= 0);
    close(l);
}

TEST(socket_echo)
{
    int s[2];
    char buf[16];
    struct sockaddr_in a, b;
    socklen_t len = sizeof(a);
    pair(s);
    CHECK(send(s[0], "ping", 4, 0) == 4);
    CHECK(recv(s[1], buf, sizeof(buf), 0) == 4 && memcmp(buf, "ping", 4) == 0);
    CHECK(write(s[1], "pong!", 5) == 5);
    CHECK(recv(s[0], buf, 4, MSG_PEEK) == 4);
    CHECK(recv(s[0], buf, 5, MSG_WAITALL) == 5 && memcmp(buf, "pong!", 5) == 0);
    CHECK(getpeername(s[0], (struct sockaddr *)&a, &len) == 0);
    CHECK(getsockname(s[1], (struct sockaddr *)&b, &len) == 0);
    CHECK(a.sin_port == b.sin_port && a.sin_addr.s_addr == htonl(INADDR_LOOPBACK));
    CHECK_ERRNO(recv(s[0], buf, 1, MSG_DONTWAIT), EAGAIN);
    CHECK(shutdown(s[0], SHUT_WR) == 0);
    CHECK(recv(s[1], buf, 1, 0) == 0);
    CHECK(send(s[1], "late", 4, 0) == 4);
    CHECK(recv(s[0], buf, 4, MSG_WAITALL) == 4);
    close(s[0]);
    close(s[1]);
}

struct stream {
    int fd;
    long bytes;
    uint32_t sum;
};

static void *send_stream(void *arg)
{
    struct stream *s = arg;
    unsigned char buf[10007];
    for (long done = 0; done < s->bytes;) {
        size_t n = (size_t)(s->bytes - done) < sizeof(buf) ? (size_t)(s->bytes - done) : sizeof(buf);
        for (size_t i = 0; i < n; i++) {
            buf[i] = (unsigned char)((done + (long)i) * 7 >> 2);
            s->sum = s->sum * 31 + buf[i];
        }
        for (size_t at = 0; at < n;) {
            long sent = send(s->fd, buf + at, n - at, 0);
            if (sent <= 0) {
                CHECK(sent > 0);
                return NULL;
            }
            at += (size_t)sent;
        }
        done += (long)n;
    }
    shutdown(s->fd, SHUT_WR);
    return NULL;
}

TEST(socket_bulk_both_ways)
{
    int s[2];
    pair(s);
    struct stream out[2] = { { s[0], 1 << 20, 0 }, { s[1], 1 << 20, 0 } };
    pthread_t t[2] = { start(send_stream, &out[0]), start(send_stream, &out[1]) };
    uint32_t sum[2] = { 0, 0 };
    long got[2] = { 0, 0 };
    bool open_[2] = { true, true };
    while (open_[0] || open_[1]) {
        struct pollfd p[2] = { { open_[0] ? s[0] : -1, POLLIN, 0 }, { open_[1] ? s[1] : -1, POLLIN, 0 } };
        CHECK(poll(p, 2, -1) > 0);
        for (int i = 0; i < 2; i++) {
            unsigned char buf[8192];
            if (!p[i].revents) {
                continue;
            }
            long n = recv(s[i], buf, sizeof(buf), 0);
            CHECK(n >= 0);
            open_[i] = n > 0;
            for (long k = 0; k < n; k++) {
                sum[i] = sum[i] * 31 + buf[k];
            }
            got[i] += n > 0 ? n : 0;
        }
    }
    join(t[0]);
    join(t[1]);
    CHECK(got[0] == 1 << 20 && got[1] == 1 << 20);
    CHECK(sum[0] == out[1].sum && sum[1] == out[0].sum);
    close(s[0]);
    close(s[1]);
}

TEST(socket_errors)
{
    struct sockaddr_in a = loopback(1);
    uint16_t port;
    char c;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_ERRNO(connect(fd, (struct sockaddr *)&a, sizeof(a)), ECONNREFUSED);
    close(fd);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_ERRNO(recv(fd, &c, 1, 0), ENOTCONN);
    CHECK_ERRNO(getpeername(fd, (struct sockaddr *)&a, &(socklen_t){ sizeof(a) }), ENOTCONN);
    CHECK_ERRNO(accept(fd, NULL, NULL), EINVAL);
    CHECK_ERRNO(bind(fd, (struct sockaddr *)&a, 3), EINVAL);
    close(fd);
    CHECK_ERRNO(socket(AF_INET, 77, 0), EINVAL);
    CHECK_ERRNO(socket(999, SOCK_STREAM, 0), EAFNOSUPPORT);
    CHECK_ERRNO(listen(1, 5), ENOTSOCK);
    CHECK_ERRNO(send(0, "x", 1, 0), ENOTSOCK);
    CHECK_ERRNO(recv(999, &c, 1, 0), EBADF);
    int l = listener(&port, 4);
    a = loopback(port);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    CHECK_ERRNO(bind(fd, (struct sockaddr *)&a, sizeof(a)), EADDRINUSE);
    close(fd);
    CHECK(fcntl(l, F_SETFL, O_NONBLOCK) == 0);
    CHECK_ERRNO(accept(l, NULL, NULL), EAGAIN);
    close(l);
}

TEST(socket_send_after_close_gives_epipe)
{
    int s[2];
    signal(SIGPIPE, SIG_IGN);
    pair(s);
    close(s[1]);
    /* The first may still be accepted; its answer is a reset. */
    CHECK(WAIT_UNTIL(send(s[0], "x", 1, 0) == -1));
    CHECK(errno == EPIPE || errno == ECONNRESET);
    CHECK_ERRNO(send(s[0], "x", 1, MSG_NOSIGNAL), EPIPE);
    close(s[0]);
    signal(SIGPIPE, SIG_DFL);
}

TEST(socket_time_outs)
{
    int s[2];
    char c;
    struct timeval tv = { 0, 10000 }, back = { 0, 0 };
    socklen_t len = sizeof(back);
    pair(s);
    CHECK(setsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)) == 0);
    CHECK(getsockopt(s[0], SOL_SOCKET, SO_RCVTIMEO, &back, &len) == 0 && back.tv_sec == 0);
    uint64_t begin = now_ns();
    CHECK_ERRNO(recv(s[0], &c, 1, 0), EAGAIN);
    CHECK(now_ns() - begin >= 10000000);
    close(s[0]);
    close(s[1]);
}

TEST(socket_options)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0), v = 1;
    socklen_t len = sizeof(v);
    CHECK(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, sizeof(v)) == 0);
    v = 0;
    CHECK(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &v, &len) == 0 && v != 0);
    v = 1;
    CHECK(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &v, sizeof(v)) == 0);
    len = sizeof(v);
    CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len) == 0 && v == 0);
    len = sizeof(v);
    CHECK(getsockopt(fd, SOL_SOCKET, SO_TYPE, &v, &len) == 0 && v == SOCK_STREAM);
    CHECK_ERRNO(setsockopt(fd, SOL_SOCKET, 9999, &v, sizeof(v)), ENOPROTOOPT);
    close(fd);
}

TEST(socket_nonblocking_connect)
{
    uint16_t port;
    int l = listener(&port, 4), v = -1;
    socklen_t len = sizeof(v);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in a = loopback(port);
    int r = connect(fd, (struct sockaddr *)&a, sizeof(a));
    CHECK(r == 0 || errno == EINPROGRESS);
    struct pollfd p = { fd, POLLOUT, 0 };
    CHECK(poll(&p, 1, 60000) == 1 && (p.revents & POLLOUT));
    CHECK(getsockopt(fd, SOL_SOCKET, SO_ERROR, &v, &len) == 0 && v == 0);
    int s = accept4(l, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    CHECK(s >= 0 && (fcntl(s, F_GETFL) & O_NONBLOCK) && fcntl(s, F_GETFD) == FD_CLOEXEC);
    close(s);
    close(fd);
    close(l);
}

TEST(socket_messages)
{
    int s[2];
    char a[3] = "", b[8] = "";
    struct iovec out[2] = { { (void *)(uintptr_t)"abc", 3 }, { (void *)(uintptr_t)"defg", 4 } };
    struct iovec in[2] = { { a, 2 }, { b, 8 } };
    struct msghdr m = { .msg_iov = out, .msg_iovlen = 2 };
    pair(s);
    CHECK(sendmsg(s[0], &m, 0) == 7);
    m = (struct msghdr){ .msg_iov = in, .msg_iovlen = 2 };
    CHECK(recvmsg(s[1], &m, 0) == 7);
    CHECK(memcmp(a, "ab", 2) == 0 && memcmp(b, "cdefg", 5) == 0);
    close(s[0]);
    close(s[1]);
}

TEST(socket_datagrams)
{
    int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
    struct sockaddr_in to = loopback(0), from;
    socklen_t len = sizeof(to);
    char buf[32];
    CHECK(bind(b, (struct sockaddr *)&to, sizeof(to)) == 0);
    CHECK(getsockname(b, (struct sockaddr *)&to, &len) == 0);
    CHECK(sendto(a, "datagram", 8, 0, (struct sockaddr *)&to, sizeof(to)) == 8);
    len = sizeof(from);
    CHECK(recvfrom(b, buf, 4, 0, (struct sockaddr *)&from, &len) == 4); /* the rest is lost */
    CHECK(memcmp(buf, "data", 4) == 0 && len == sizeof(from) && from.sin_family == AF_INET);
    CHECK(connect(a, (struct sockaddr *)&to, sizeof(to)) == 0);
    CHECK(send(a, "x", 1, 0) == 1 && recv(b, buf, sizeof(buf), 0) == 1);
    CHECK_ERRNO(recv(b, buf, 1, MSG_DONTWAIT), EAGAIN);
    close(a);
    close(b);
}

/* ---- a small server with a thread for each connection ---- */

static uint16_t echo_port;
static int served;

static void *echo_connection(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char buf[256];
    long n;
    while ((n = recv(fd, buf, sizeof(buf), 0)) > 0) {
        CHECK(send(fd, buf, (size_t)n, 0) == n);
    }
    close(fd);
    ADD(served, 1);
    return NULL;
}

static void *echo_server(void *arg)
{
    int l = *(int *)arg;
    for (;;) {
        int fd = accept(l, NULL, NULL);
        if (fd < 0) {
            return NULL;
        }
        pthread_detach(start(echo_connection, (void *)(intptr_t)fd));
    }
}

static void *echo_client(void *arg)
{
    int rounds = (int)(intptr_t)arg, fd = connect_to(echo_port);
    for (int i = 0; i < rounds; i++) {
        char out[32], in[32];
        int n = snprintf(out, sizeof(out), "message %d", i);
        CHECK(send(fd, out, (size_t)n, 0) == n);
        CHECK(recv(fd, in, (size_t)n, MSG_WAITALL) == n && memcmp(in, out, (size_t)n) == 0);
    }
    close(fd);
    return NULL;
}

TEST(socket_thread_per_connection)
{
    enum { CLIENTS = 20, ROUNDS = 30 };
    pthread_t t[CLIENTS];
    int l = listener(&echo_port, 64);
    STORE(served, 0);
    pthread_t server = start(echo_server, &l);
    for (int i = 0; i < CLIENTS; i++) {
        t[i] = start(echo_client, (void *)(intptr_t)ROUNDS);
    }
    for (int i = 0; i < CLIENTS; i++) {
        join(t[i]);
    }
    CHECK(WAIT_UNTIL(LOAD(served) == CLIENTS));
    shutdown(l, SHUT_RDWR);
    join(server);
    close(l);
}

TEST(socket_short_connections)
{
    int l = listener(&echo_port, 64);
    STORE(served, 0);
    pthread_t server = start(echo_server, &l);
    for (int i = 0; i < 100; i++) {
        echo_client((void *)1);
    }
    CHECK(WAIT_UNTIL(LOAD(served) == 100));
    shutdown(l, SHUT_RDWR);
    join(server);
    close(l);
}

TEST(socket_epoll_server)
{
    enum { CLIENTS = 10 };
    pthread_t t[CLIENTS];
    int l = listener(&echo_port, 64), ep = epoll_create1(0), closed = 0;
    struct epoll_event e = { .events = EPOLLIN, .data = { .fd = l } };
    CHECK(fcntl(l, F_SETFL, O_NONBLOCK) == 0);
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, l, &e) == 0);
    for (int i = 0; i < CLIENTS; i++) {
        t[i] = start(echo_client, (void *)20);
    }
    while (closed < CLIENTS) {
        struct epoll_event events[8];
        int n = epoll_wait(ep, events, 8, 60000);
        CHECK(n > 0);
        if (n <= 0) {
            break;
        }
        for (int i = 0; i < n; i++) {
            char buf[256];
            if (events[i].data.fd == l) {
                int fd;
                while ((fd = accept4(l, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    struct epoll_event add = { .events = EPOLLIN | EPOLLET, .data = { .fd = fd } };
                    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &add) == 0);
                }
                continue;
            }
            long got;
            while ((got = recv(events[i].data.fd, buf, sizeof(buf), 0)) > 0) {
                CHECK(send(events[i].data.fd, buf, (size_t)got, 0) == got);
            }
            if (got == 0) {
                close(events[i].data.fd);
                closed++;
            } else {
                CHECK(errno == EAGAIN);
            }
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        join(t[i]);
    }
    close(ep);
    close(l);
}
