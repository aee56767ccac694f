/* Pipes, poll, select, epoll, eventfd, timerfd. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/timerfd.h>

#include "tests/guest/test.h"

TEST(pipe_blocks_and_fills)
{
    int fds[2];
    char buf[4096];
    long total = 0, n;
    memset(buf, 'p', sizeof(buf));
    CHECK(pipe2(fds, O_NONBLOCK) == 0);
    while ((n = write(fds[1], buf, sizeof(buf))) > 0) {
        total += n;
    }
    CHECK(errno == EAGAIN && total == 65536);
    int readable = 0;
    CHECK(ioctl(fds[0], FIONREAD, &readable) == 0 && readable == 65536);
    struct pollfd p = { fds[1], POLLOUT, 0 };
    CHECK(poll(&p, 1, 0) == 0);
    for (int i = 0; i < 16; i++) {
        CHECK(read(fds[0], buf, sizeof(buf)) == sizeof(buf));
    }
    CHECK(poll(&p, 1, 0) == 1 && p.revents == POLLOUT);
    CHECK_ERRNO(read(fds[0], buf, 1), EAGAIN);
    close(fds[1]);
    CHECK(read(fds[0], buf, 1) == 0);
    p = (struct pollfd){ fds[0], POLLIN, 0 };
    CHECK(poll(&p, 1, 0) == 1 && (p.revents & POLLHUP));
    close(fds[0]);
    CHECK_ERRNO(pipe2(fds, 0x40000000), EINVAL);
}

struct pipe_pair {
    int fds[2];
    long bytes;
};

static void *pipe_writer(void *arg)
{
    struct pipe_pair *p = arg;
    unsigned char buf[7001];
    long done = 0;
    while (done < p->bytes) {
        size_t n = sizeof(buf) < (size_t)(p->bytes - done) ? sizeof(buf) : (size_t)(p->bytes - done);
        for (size_t i = 0; i < n; i++) {
            buf[i] = (unsigned char)((done + (long)i) * 31 >> 3);
        }
        CHECK(write(p->fds[1], buf, n) == (long)n);
        done += (long)n;
    }
    close(p->fds[1]);
    return NULL;
}

TEST(pipe_stream_of_a_megabyte)
{
    struct pipe_pair p = { .bytes = 1 << 20 };
    unsigned char buf[5003];
    long at = 0, n;
    bool same = true;
    CHECK(pipe(p.fds) == 0);
    pthread_t t = start(pipe_writer, &p);
    while ((n = read(p.fds[0], buf, sizeof(buf))) > 0) {
        for (long i = 0; i < n; i++) {
            same &= buf[i] == (unsigned char)((at + i) * 31 >> 3);
        }
        at += n;
    }
    join(t);
    CHECK(n == 0 && at == p.bytes && same);
    close(p.fds[0]);
}

static void *write_later(void *arg)
{
    sleep_ms(10);
    CHECK(write(*(int *)arg, "x", 1) == 1);
    return NULL;
}

TEST(poll_waits_for_a_writer)
{
    int fds[2], other[2];
    CHECK(pipe(fds) == 0 && pipe(other) == 0);
    struct pollfd p[3] = { { fds[0], POLLIN, 0 }, { -1, POLLIN, 7 }, { other[0], POLLIN, 0 } };
    CHECK(poll(p, 3, 5) == 0);
    pthread_t t = start(write_later, &other[1]);
    CHECK(poll(p, 3, -1) == 1);
    CHECK(p[0].revents == 0 && p[1].revents == 0 && p[2].revents == POLLIN);
    join(t);
    struct pollfd bad = { 999, POLLIN, 0 };
    CHECK(poll(&bad, 1, 0) == 1 && bad.revents == POLLNVAL);
    CHECK(poll(NULL, 0, 1) == 0);
    struct timespec ts = { 0, 1000000 };
    char c;
    CHECK(read(other[0], &c, 1) == 1);
    CHECK(ppoll(p, 3, &ts, NULL) == 0);
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        close(other[i]);
    }
}

TEST(poll_many_descriptors)
{
    enum { N = 100 };
    int fds[N][2];
    struct pollfd p[N];
    for (int i = 0; i < N; i++) {
        CHECK(pipe(fds[i]) == 0);
        p[i] = (struct pollfd){ fds[i][0], POLLIN, 0 };
    }
    pthread_t t = start(write_later, &fds[77][1]);
    CHECK(poll(p, N, -1) == 1 && p[77].revents == POLLIN);
    join(t);
    for (int i = 0; i < N; i++) {
        close(fds[i][0]);
        close(fds[i][1]);
    }
}

TEST(select_reads_and_writes)
{
    int fds[2];
    fd_set in, out;
    struct timeval tv = { 0, 1000 };
    CHECK(pipe(fds) == 0);
    FD_ZERO(&in);
    FD_ZERO(&out);
    FD_SET(fds[0], &in);
    FD_SET(fds[1], &out);
    CHECK(select(fds[1] + 1, &in, &out, NULL, &tv) == 1);
    CHECK(!FD_ISSET(fds[0], &in) && FD_ISSET(fds[1], &out));
    pthread_t t = start(write_later, &fds[1]);
    FD_ZERO(&in);
    FD_SET(fds[0], &in);
    CHECK(select(fds[0] + 1, &in, NULL, NULL, NULL) == 1 && FD_ISSET(fds[0], &in));
    join(t);
    close(fds[0]);
    close(fds[1]);
    FD_ZERO(&in);
    FD_SET(fds[0], &in);
    CHECK_ERRNO(select(fds[0] + 1, &in, NULL, NULL, &tv), EBADF);
}

TEST(eventfd_counts)
{
    uint64_t v;
    int fd = eventfd(3, EFD_NONBLOCK);
    CHECK(read(fd, &v, 8) == 8 && v == 3);
    CHECK_ERRNO(read(fd, &v, 8), EAGAIN);
    v = 5;
    CHECK(write(fd, &v, 8) == 8 && write(fd, &v, 8) == 8);
    CHECK(read(fd, &v, 8) == 8 && v == 10);
    v = UINT64_MAX;
    CHECK_ERRNO(write(fd, &v, 8), EINVAL);
    v = UINT64_MAX - 1;
    CHECK(write(fd, &v, 8) == 8);
    v = 1;
    CHECK_ERRNO(write(fd, &v, 8), EAGAIN);
    CHECK_ERRNO(read(fd, &v, 4), EINVAL);
    close(fd);
    fd = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK);
    CHECK(read(fd, &v, 8) == 8 && v == 1 && read(fd, &v, 8) == 8 && v == 1);
    CHECK_ERRNO(read(fd, &v, 8), EAGAIN);
    close(fd);
}

static void *add_event(void *arg)
{
    uint64_t one = 1;
    for (int i = 0; i < 500; i++) {
        CHECK(write(*(int *)arg, &one, 8) == 8);
    }
    return NULL;
}

TEST(eventfd_between_threads)
{
    int fd = eventfd(0, 0);
    uint64_t sum = 0, v;
    pthread_t a = start(add_event, &fd), b = start(add_event, &fd);
    while (sum < 1000) {
        CHECK(read(fd, &v, 8) == 8);
        sum += v;
    }
    join(a);
    join(b);
    CHECK(sum == 1000);
    close(fd);
}

TEST(timerfd_expires)
{
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK);
    struct itimerspec spec = { { 0, 2000000 }, { 0, 5000000 } }, now;
    uint64_t n = 0;
    CHECK(fd >= 0);
    CHECK_ERRNO(read(fd, &n, 8), EAGAIN);
    uint64_t begin = now_ns();
    CHECK(timerfd_settime(fd, 0, &spec, NULL) == 0);
    CHECK(timerfd_gettime(fd, &now) == 0 && now.it_interval.tv_nsec == 2000000);
    struct pollfd p = { fd, POLLIN, 0 };
    CHECK(poll(&p, 1, -1) == 1 && p.revents == POLLIN);
    CHECK(now_ns() - begin >= 5000000);
    CHECK(read(fd, &n, 8) == 8 && n >= 1);
    uint64_t total = n;
    while (total < 5) {
        CHECK(poll(&p, 1, -1) == 1);
        if (read(fd, &n, 8) == 8) {
            total += n;
        }
    }
    CHECK(now_ns() - begin >= 5000000 + 4 * 2000000);
    struct itimerspec off = { { 0, 0 }, { 0, 0 } }, old;
    CHECK(timerfd_settime(fd, 0, &off, &old) == 0 && old.it_interval.tv_nsec == 2000000);
    CHECK_ERRNO(read(fd, &n, 8), EAGAIN);
    CHECK(poll(&p, 1, 5) == 0);
    close(fd);
    CHECK_ERRNO(timerfd_create(77, 0), EINVAL);
}

TEST(timerfd_absolute_and_blocking)
{
    int fd = timerfd_create(CLOCK_REALTIME, 0);
    struct itimerspec spec = { { 0, 0 }, { 0, 0 } };
    uint64_t n = 0;
    clock_gettime(CLOCK_REALTIME, &spec.it_value);
    spec.it_value.tv_sec--;
    CHECK(timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL) == 0); /* in the past */
    CHECK(read(fd, &n, 8) == 8 && n == 1);
    close(fd);
}

/* ---- epoll ---- */

static void control(int ep, int op, int fd, uint32_t events)
{
    struct epoll_event e = { .events = events, .data = { .fd = fd } };
    CHECK(epoll_ctl(ep, op, fd, &e) == 0);
}

TEST(epoll_level_and_edge)
{
    int fds[2], ep = epoll_create1(0);
    struct epoll_event e[4];
    char c;
    CHECK(pipe(fds) == 0);
    control(ep, EPOLL_CTL_ADD, fds[0], EPOLLIN);
    CHECK(epoll_wait(ep, e, 4, 0) == 0);
    CHECK(write(fds[1], "ab", 2) == 2);
    CHECK(epoll_wait(ep, e, 4, 0) == 1 && e[0].data.fd == fds[0] && e[0].events == EPOLLIN);
    CHECK(epoll_wait(ep, e, 4, 0) == 1); /* level: again */
    CHECK(read(fds[0], &c, 1) == 1);
    CHECK(epoll_wait(ep, e, 4, 0) == 1);
    control(ep, EPOLL_CTL_MOD, fds[0], EPOLLIN | EPOLLET);
    CHECK(epoll_wait(ep, e, 4, 0) == 1); /* ready when it was changed */
    CHECK(epoll_wait(ep, e, 4, 0) == 0); /* edge: not again */
    CHECK(write(fds[1], "c", 1) == 1);
    CHECK(epoll_wait(ep, e, 4, 0) == 1);
    CHECK(epoll_wait(ep, e, 4, 0) == 0);
    control(ep, EPOLL_CTL_MOD, fds[0], EPOLLIN | EPOLLONESHOT);
    CHECK(epoll_wait(ep, e, 4, 0) == 1);
    CHECK(write(fds[1], "d", 1) == 1);
    CHECK(epoll_wait(ep, e, 4, 0) == 0); /* fired */
    control(ep, EPOLL_CTL_MOD, fds[0], EPOLLIN | EPOLLONESHOT);
    CHECK(epoll_wait(ep, e, 4, 0) == 1);
    CHECK(epoll_ctl(ep, EPOLL_CTL_DEL, fds[0], NULL) == 0);
    CHECK(epoll_wait(ep, e, 4, 0) == 0);
    close(fds[0]);
    close(fds[1]);
    close(ep);
}

TEST(epoll_errors)
{
    int fds[2], ep = epoll_create1(0);
    struct epoll_event e = { .events = EPOLLIN };
    CHECK(pipe(fds) == 0);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_DEL, fds[0], NULL), ENOENT);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_MOD, fds[0], &e), ENOENT);
    CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e) == 0);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, fds[0], &e), EEXIST);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, 999, &e), EBADF);
    CHECK_ERRNO(epoll_ctl(999, EPOLL_CTL_ADD, fds[0], &e), EBADF);
    CHECK_ERRNO(epoll_ctl(fds[1], EPOLL_CTL_ADD, fds[0], &e), EINVAL);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, ep, &e), EINVAL);
    CHECK_ERRNO(epoll_ctl(ep, 77, fds[1], &e), EINVAL);
    CHECK_ERRNO(epoll_wait(ep, &e, 0, 0), EINVAL);
    CHECK_ERRNO(epoll_wait(fds[0], &e, 1, 0), EINVAL);
    CHECK_ERRNO(epoll_create1(1), EINVAL);
    int file = open("/tmp/weir-epoll", O_RDWR | O_CREAT, 0600);
    CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_ADD, file, &e), EPERM);
    close(file);
    unlink("/tmp/weir-epoll");
    close(fds[0]);
    close(fds[1]);
    close(ep);
}

TEST(epoll_forgets_closed_files)
{
    int fds[2], ep = epoll_create1(0);
    struct epoll_event e[2];
    CHECK(pipe(fds) == 0);
    control(ep, EPOLL_CTL_ADD, fds[0], EPOLLIN);
    CHECK(write(fds[1], "x", 1) == 1);
    close(fds[0]);
    CHECK(epoll_wait(ep, e, 2, 0) == 0);
    close(fds[1]);
    /* And the set may go before its files. */
    CHECK(pipe(fds) == 0);
    control(ep, EPOLL_CTL_ADD, fds[0], EPOLLIN);
    close(ep);
    CHECK(write(fds[1], "x", 1) == 1);
    close(fds[0]);
    close(fds[1]);
}

TEST(epoll_set_is_pollable)
{
    int fd = eventfd(0, 0), ep = epoll_create1(0);
    struct pollfd p = { ep, POLLIN, 0 };
    control(ep, EPOLL_CTL_ADD, fd, EPOLLIN);
    CHECK(poll(&p, 1, 0) == 0);
    uint64_t one = 1;
    CHECK(write(fd, &one, 8) == 8);
    CHECK(poll(&p, 1, -1) == 1 && p.revents == POLLIN);
    close(fd);
    close(ep);
}

/* Many threads take one-shot events of many files: each event is taken once, none is lost. */
enum { HAMMER_FILES = 16, HAMMER_THREADS = 6, HAMMER_EVENTS = 3000 };
static int hammer_ep, hammer_fds[HAMMER_FILES], hammer_taken;

static void *hammer_worker(void *arg)
{
    for (;;) {
        struct epoll_event e;
        int n = epoll_wait(hammer_ep, &e, 1, -1);
        CHECK(n == 1);
        if (e.data.fd < 0) {
            return arg; /* the stop event is level-triggered: all see it */
        }
        uint64_t v;
        if (read(e.data.fd, &v, 8) == 8) {
            ADD(hammer_taken, (int)v);
        }
        struct epoll_event again = { .events = EPOLLIN | EPOLLONESHOT, .data = { .fd = e.data.fd } };
        CHECK(epoll_ctl(hammer_ep, EPOLL_CTL_MOD, e.data.fd, &again) == 0);
    }
}

TEST(epoll_one_shot_hammer)
{
    pthread_t t[HAMMER_THREADS];
    hammer_taken = 0;
    hammer_ep = epoll_create1(0);
    for (int i = 0; i < HAMMER_FILES; i++) {
        hammer_fds[i] = eventfd(0, EFD_NONBLOCK);
        control(hammer_ep, EPOLL_CTL_ADD, hammer_fds[i], EPOLLIN | EPOLLONESHOT);
    }
    int stop = eventfd(0, 0);
    struct epoll_event e = { .events = EPOLLIN, .data = { .fd = -1 } };
    CHECK(epoll_ctl(hammer_ep, EPOLL_CTL_ADD, stop, &e) == 0);
    for (int i = 0; i < HAMMER_THREADS; i++) {
        t[i] = start(hammer_worker, NULL);
    }
    uint64_t one = 1;
    for (int i = 0; i < HAMMER_EVENTS; i++) {
        CHECK(write(hammer_fds[i % HAMMER_FILES], &one, 8) == 8);
    }
    CHECK(WAIT_UNTIL(LOAD(hammer_taken) == HAMMER_EVENTS));
    CHECK(write(stop, &one, 8) == 8);
    for (int i = 0; i < HAMMER_THREADS; i++) {
        join(t[i]);
    }
    CHECK(hammer_taken == HAMMER_EVENTS);
    for (int i = 0; i < HAMMER_FILES; i++) {
        close(hammer_fds[i]);
    }
    close(stop);
    close(hammer_ep);
}
