/* Initial sequence numbers: RFC 6528, ISN = clock + keyed hash of the end points.
 *
 * The hash is SipHash over the 12 bytes of addresses and ports, with half of the boot's secret as its key.  The clock counts
 * 4 microseconds, as RFC 793 asks, so that sequence numbers of one pair of end points only rise: an old duplicate is not
 * taken for new, and a SYN may reuse a connection in TIME_WAIT. */
#include "net/siphash.h"
#include "net/stack/port/hooks.h"
#include "net/stack/port/port.h"

#define CLOCK_STEP_NS 4000

u32_t port_tcp_isn(const ip_addr_t *local_ip, u16_t local_port, const ip_addr_t *remote_ip, u16_t remote_port)
{
    uint64_t addresses = (uint64_t)ip4_addr_get_u32(ip_2_ip4(remote_ip)) << 32 | ip4_addr_get_u32(ip_2_ip4(local_ip));
    uint32_t ports = (uint32_t)remote_port << 16 | local_port;
    struct siphash s = siphash_start(port.config.secret);
    siphash_word(&s, addresses);
    siphash_word(&s, ports | 12ull << 56); /* 12 bytes in all */
    return (u32_t)(port.env->now_ns(port.env->self) / CLOCK_STEP_NS + siphash_finish(&s));
}
