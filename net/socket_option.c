/* Socket options by their Linux numbers. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "net/socket_impl.h"

enum { SOL_SOCKET = 1, SOL_IP = 0, SOL_TCP = 6, SOL_IPV6 = 41 };
enum {
    SO_REUSEADDR = 2, SO_TYPE = 3, SO_ERROR = 4, SO_BROADCAST = 6, SO_SNDBUF = 7, SO_RCVBUF = 8, SO_KEEPALIVE = 9,
    SO_PRIORITY = 12, SO_LINGER = 13, SO_REUSEPORT = 15, SO_RCVLOWAT = 18, SO_SNDLOWAT = 19, SO_RCVTIMEO = 20,
    SO_SNDTIMEO = 21, SO_ACCEPTCONN = 30, SO_INCOMING_CPU = 49, SO_PROTOCOL = 38, SO_DOMAIN = 39,
};
enum {
    TCP_NODELAY = 1, TCP_MAXSEG = 2, TCP_CORK = 3, TCP_KEEPIDLE = 4, TCP_KEEPINTVL = 5, TCP_KEEPCNT = 6, TCP_SYNCNT = 7,
    TCP_DEFER_ACCEPT = 9, TCP_QUICKACK = 12, TCP_USER_TIMEOUT = 18, TCP_FASTOPEN = 23,
};
enum { IP_TOS = 1, IP_TTL = 2, IPV6_V6ONLY = 26 };

/* Linux's bounds for the keepalive settings. */
#define KEEP_MAX_S 32767
#define KEEP_MAX_COUNT 127
#define BUFFER_MIN 4608u

struct linger {
    i32 on, seconds;
};

struct timeval {
    i64 sec, usec;
};

static int get_int(const void *value, u32 len, i32 *out)
{
    if (len < sizeof(*out)) {
        return -EINVAL;
    }
    memcpy(out, value, sizeof(*out));
    return 0;
}

static int set_timeout(const void *value, u32 len, u64 *out)
{
    struct timeval tv;
    if (len < sizeof(tv)) {
        return -EINVAL;
    }
    memcpy(&tv, value, sizeof(tv));
    if (tv.usec < 0 || tv.usec >= 1000000) {
        return -EDOM;
    }
    bool bounded = tv.sec >= 0 && tv.sec < (i64)(UINT64_MAX / NSEC_PER_SEC / 2);
    *out = bounded ? (u64)tv.sec * NSEC_PER_SEC + (u64)tv.usec * NSEC_PER_USEC : 0;
    return 0;
}

/* The value is doubled for bookkeeping on Linux, and programs read it back so. */
static u32 buffer_limit(i32 value, u32 max)
{
    u32 asked = value < 0 ? max : (u32)value;
    return MAX(BUFFER_MIN, MIN(asked, max / 2) * 2);
}

static int set_socket_level(struct socket *s, int name, const void *value, u32 len)
{
    struct socket_options *o = &s->options;
    i32 v;
    switch (name) {
    case SO_RCVTIMEO:
        return set_timeout(value, len, &o->recv_timeout_ns);
    case SO_SNDTIMEO:
        return set_timeout(value, len, &o->send_timeout_ns);
    case SO_LINGER: {
        struct linger l;
        if (len < sizeof(l)) {
            return -EINVAL;
        }
        memcpy(&l, value, sizeof(l));
        o->linger = l.on != 0;
        o->linger_s = l.seconds;
        return 0;
    }
    default:
        break;
    }
    int error = get_int(value, len, &v);
    if (error != 0) {
        return error;
    }
    switch (name) {
    case SO_REUSEADDR:
        o->reuse_addr = v != 0;
        return 0;
    case SO_KEEPALIVE:
        o->keepalive = v != 0;
        return 0;
    case SO_BROADCAST:
        o->broadcast = v != 0;
        return 0;
    case SO_SNDBUF:
        o->send_limit = buffer_limit(v, NET_TCP_SEND_BUFFER);
        return 0;
    case SO_RCVBUF:
        o->recv_limit = buffer_limit(v, NET_UDP_RECV_BUFFER);
        return 0;
    case SO_PRIORITY:
    case SO_RCVLOWAT:
    case SO_INCOMING_CPU:
        return 0; /* hints that change nothing here */
    case SO_TYPE:
    case SO_ERROR:
    case SO_ACCEPTCONN:
    case SO_PROTOCOL:
    case SO_DOMAIN:
        return -ENOPROTOOPT; /* read-only */
    default:
        return -ENOPROTOOPT;
    }
}

static int set_tcp_level(struct socket *s, int name, i32 v)
{
    struct socket_options *o = &s->options;
    switch (name) {
    case TCP_NODELAY:
        o->nodelay = v != 0;
        return 0;
    case TCP_KEEPIDLE:
    case TCP_KEEPINTVL:
        if (v < 1 || v > KEEP_MAX_S) {
            return -EINVAL;
        }
        *(name == TCP_KEEPIDLE ? &o->keep_idle_s : &o->keep_interval_s) = (u32)v;
        return 0;
    case TCP_KEEPCNT:
        if (v < 1 || v > KEEP_MAX_COUNT) {
            return -EINVAL;
        }
        o->keep_count = (u32)v;
        return 0;
    case TCP_CORK:
    case TCP_SYNCNT:
    case TCP_DEFER_ACCEPT:
    case TCP_QUICKACK:
    case TCP_USER_TIMEOUT:
        return 0; /* hints that change nothing here */
    default:
        return -ENOPROTOOPT;
    }
}

int socket_set_option(struct socket *s, int level, int name, const void *value, u32 len)
{
    int error;
    i32 v;
    if (level == SOL_SOCKET) {
        error = set_socket_level(s, name, value, len);
    } else if (level == SOL_TCP && s->type == SOCK_STREAM) {
        error = get_int(value, len, &v);
        error = error != 0 ? error : set_tcp_level(s, name, v);
    } else if ((level == SOL_IP && (name == IP_TOS || name == IP_TTL)) || (level == SOL_IPV6 && name == IPV6_V6ONLY)) {
        error = 0;
    } else {
        error = -ENOPROTOOPT;
    }
    if (error == 0 && s->in != NULL) {
        struct wake_batch batch;
        irqflags_t flags = socket_enter(s, &batch);
        stream_apply_options(s);
        instance_leave(s->in, &batch, flags);
    }
    return error;
}

static int give(void *value, u32 *len, const void *from, u32 bytes)
{
    *len = MIN(*len, bytes);
    memcpy(value, from, *len);
    return 0;
}

static int give_int(void *value, u32 *len, i64 v)
{
    i32 word = (i32)v;
    return give(value, len, &word, sizeof(word));
}

static int give_timeout(void *value, u32 *len, u64 ns)
{
    struct timeval tv = { (i64)(ns / NSEC_PER_SEC), (i64)(ns % NSEC_PER_SEC / NSEC_PER_USEC) };
    return give(value, len, &tv, sizeof(tv));
}

static i32 pending_error(struct socket *s)
{
    if (s->in == NULL) {
        return 0;
    }
    struct wake_batch batch;
    irqflags_t flags = socket_enter(s, &batch);
    i32 error = -socket_take_error(s);
    instance_leave(s->in, &batch, flags);
    return error;
}

static int get_socket_level(struct socket *s, int name, void *value, u32 *len)
{
    const struct socket_options *o = &s->options;
    switch (name) {
    case SO_REUSEADDR:
        return give_int(value, len, o->reuse_addr);
    case SO_TYPE:
        return give_int(value, len, s->type);
    case SO_ERROR:
        return give_int(value, len, pending_error(s));
    case SO_BROADCAST:
        return give_int(value, len, o->broadcast);
    case SO_SNDBUF:
        return give_int(value, len, o->send_limit);
    case SO_RCVBUF:
        return give_int(value, len, o->recv_limit);
    case SO_KEEPALIVE:
        return give_int(value, len, o->keepalive);
    case SO_LINGER: {
        struct linger l = { o->linger, o->linger_s };
        return give(value, len, &l, sizeof(l));
    }
    case SO_RCVLOWAT:
    case SO_SNDLOWAT:
        return give_int(value, len, 1);
    case SO_RCVTIMEO:
        return give_timeout(value, len, o->recv_timeout_ns);
    case SO_SNDTIMEO:
        return give_timeout(value, len, o->send_timeout_ns);
    case SO_ACCEPTCONN:
        return give_int(value, len, s->listener != NULL);
    case SO_PROTOCOL:
        return give_int(value, len, s->type == SOCK_STREAM ? PROTO_TCP : PROTO_UDP);
    case SO_DOMAIN:
        return give_int(value, len, s->family);
    case SO_INCOMING_CPU:
        return give_int(value, len, s->in != NULL ? (i64)s->in->cpu : -1);
    default:
        return -ENOPROTOOPT;
    }
}

/* lwIP's defaults where nothing was set. */
enum { DEFAULT_KEEPIDLE_S = 7200, DEFAULT_KEEPINTVL_S = 75, DEFAULT_KEEPCNT = 9 };

static int get_tcp_level(struct socket *s, int name, void *value, u32 *len)
{
    const struct socket_options *o = &s->options;
    switch (name) {
    case TCP_NODELAY:
        return give_int(value, len, o->nodelay);
    case TCP_MAXSEG:
        return give_int(value, len, NET_MTU - 40);
    case TCP_KEEPIDLE:
        return give_int(value, len, o->keep_idle_s != 0 ? o->keep_idle_s : DEFAULT_KEEPIDLE_S);
    case TCP_KEEPINTVL:
        return give_int(value, len, o->keep_interval_s != 0 ? o->keep_interval_s : DEFAULT_KEEPINTVL_S);
    case TCP_KEEPCNT:
        return give_int(value, len, o->keep_count != 0 ? o->keep_count : DEFAULT_KEEPCNT);
    default:
        return -ENOPROTOOPT;
    }
}

int socket_get_option(struct socket *s, int level, int name, void *value, u32 *len)
{
    if (level == SOL_SOCKET) {
        return get_socket_level(s, name, value, len);
    }
    if (level == SOL_TCP && s->type == SOCK_STREAM) {
        return get_tcp_level(s, name, value, len);
    }
    return -ENOPROTOOPT;
}
