/* One connection of the generator; see conn.h. */
#include "apps/load/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static size_t buffer_size(uint32_t pipeline, size_t each)
{
    size_t need = (size_t)pipeline * each;

    return need < LOAD_BUFFER_BYTES ? LOAD_BUFFER_BYTES : need;
}

bool conn_init(struct conn *c, uint32_t pipeline, uint32_t value_max)
{
    memset(c, 0, sizeof(*c));
    c->fd = -1;
    c->ring = pipeline;
    c->in_size = buffer_size(pipeline < LOAD_BATCH_REPLIES ? pipeline : LOAD_BATCH_REPLIES,
                             value_max + PROTO_REPLY_OVERHEAD);
    c->out_size = buffer_size(pipeline, value_max + PROTO_REQUEST_OVERHEAD);
    c->flight = malloc(pipeline * sizeof(*c->flight));
    c->in = malloc(c->in_size);
    c->out = malloc(c->out_size);
    return c->flight && c->in && c->out;
}

void conn_free(struct conn *c)
{
    conn_close(c);
    free(c->flight);
    free(c->in);
    free(c->out);
    c->flight = NULL;
    c->in = c->out = NULL;
}

/* Binds a chosen local port. A port in use is not worth a failure: any other will do. */
static void bind_port(struct conn *c, int fd)
{
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_port = htons(c->local_port)};

    if (c->local_port) {
        bind(fd, (const struct sockaddr *)&from, sizeof(from));
        c->local_port = 0;
    }
}

int conn_open(struct conn *c, const struct sockaddr_in *to, bool blocking)
{
    int one = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0);

    if (fd < 0) {
        return -errno;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    bind_port(c, fd);
    if (connect(fd, (const struct sockaddr *)to, sizeof(*to)) == 0) {
        c->state = CONN_OPEN;
    } else if (errno == EINPROGRESS) {
        c->state = CONN_CONNECTING;
    } else {
        int error = errno;

        close(fd);
        return -error;
    }
    c->served = c->flight_head = c->in_flight = 0;
    c->in_start = c->in_end = c->out_start = c->out_end = 0;
    c->want_write = false;
    __atomic_store_n(&c->fd, fd, __ATOMIC_RELEASE);
    return 0;
}

int conn_set_nonblocking(struct conn *c)
{
    int flags = fcntl(c->fd, F_GETFL);

    return flags < 0 || fcntl(c->fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int conn_finish_open(struct conn *c)
{
    int error = 0;
    socklen_t size = sizeof(error);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) < 0) {
        return -errno;
    }
    if (!error) {
        c->state = CONN_OPEN;
    }
    return -error;
}

void conn_close(struct conn *c)
{
    int fd = c->fd;

    if (fd >= 0) {
        __atomic_store_n(&c->fd, -1, __ATOMIC_RELEASE);
        close(fd);
    }
    c->state = CONN_CLOSED;
}

char *conn_room(struct conn *c, size_t bytes)
{
    if (c->out_end + bytes > c->out_size) {
        memmove(c->out, c->out + c->out_start, c->out_end - c->out_start);
        c->out_end -= c->out_start;
        c->out_start = 0;
    }
    return c->out + c->out_end;
}

struct request *conn_note(struct conn *c)
{
    uint32_t at = c->flight_head + c->in_flight++;

    return &c->flight[at < c->ring ? at : at - c->ring];
}

void conn_drop_oldest(struct conn *c)
{
    c->in_flight--;
    if (++c->flight_head == c->ring) {
        c->flight_head = 0;
    }
}

int conn_flush(struct conn *c)
{
    while (c->out_start < c->out_end) {
        ssize_t n = send(c->fd, c->out + c->out_start, c->out_end - c->out_start, MSG_NOSIGNAL);

        if (n > 0) {
            c->out_start += (size_t)n;
        } else if (n < 0 && errno == EINTR) {
            continue;
        } else if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return 1;
        } else {
            return n < 0 ? -errno : -EPIPE;
        }
    }
    c->out_start = c->out_end = 0;
    return 0;
}

long conn_fill(struct conn *c)
{
    ssize_t n;

    if (c->in_start > 0) {
        /* At most one reply that is not whole: cheap to move, and room for all that follow. */
        memmove(c->in, c->in + c->in_start, c->in_end - c->in_start);
        c->in_end -= c->in_start;
        c->in_start = 0;
    }
    if (c->in_end == c->in_size) {
        return -EMSGSIZE;           /* a reply larger than any that was asked for */
    }
    do {
        n = recv(c->fd, c->in + c->in_end, c->in_size - c->in_end, 0);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        c->in_end += (size_t)n;
        return n;
    }
    return n == 0 ? -EPIPE : errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
}
