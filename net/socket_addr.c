/* Socket addresses as the Linux ABI has them: struct sockaddr_in; struct sockaddr_in6 with mapped IPv4 addresses. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "net/socket_impl.h"

enum {
    SOCKADDR_IN_BYTES = 16, SOCKADDR_IN6_BYTES = 28,
    PORT_AT = 2, IN_ADDR_AT = 4, IN6_ADDR_AT = 8, IN6_V4_AT = IN6_ADDR_AT + 12,
};

static u32 get32(const u8 *p)
{
    return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

/* ::ffff:a.b.c.d, or :: (any). */
static bool is_ipv4_in_ipv6(const u8 *a)
{
    static const u8 mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };
    static const u8 zeros[16];
    return memcmp(a, mapped, sizeof(mapped)) == 0 || memcmp(a, zeros, sizeof(zeros)) == 0;
}

int socket_addr_parse(const struct net_addr *addr, u32 *ip, u16 *port)
{
    u16 family;
    if (addr->len < sizeof(family)) {
        return -EINVAL;
    }
    memcpy(&family, addr->bytes, sizeof(family));
    *port = (u16)(addr->bytes[PORT_AT] << 8 | addr->bytes[PORT_AT + 1]);
    if (family == AF_INET) {
        *ip = get32(addr->bytes + IN_ADDR_AT);
        return addr->len >= SOCKADDR_IN_BYTES ? 0 : -EINVAL;
    }
    if (family == AF_INET6) {
        if (addr->len < SOCKADDR_IN6_BYTES) {
            return -EINVAL;
        }
        *ip = get32(addr->bytes + IN6_V4_AT);
        return is_ipv4_in_ipv6(addr->bytes + IN6_ADDR_AT) ? 0 : -EAFNOSUPPORT;
    }
    return -EAFNOSUPPORT;
}

void socket_addr_make(struct net_addr *out, u32 ip, u16 port)
{
    u16 family = AF_INET;
    memset(out, 0, sizeof(*out));
    memcpy(out->bytes, &family, sizeof(family));
    out->bytes[PORT_AT] = (u8)(port >> 8);
    out->bytes[PORT_AT + 1] = (u8)port;
    for (u32 i = 0; i < 4; i++) {
        out->bytes[IN_ADDR_AT + i] = (u8)(ip >> (24 - 8 * i));
    }
    out->len = SOCKADDR_IN_BYTES;
}
