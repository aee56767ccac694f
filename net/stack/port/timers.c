/* lwIP's periodic functions, run only while something waits for them.
 *
 * lwIP's own timeouts tick for ever.  Here the TCP tick runs while there is a connection, and the slow ones (ARP table,
 * reassembly, DHCP) while there is an entry, so that an idle instance has no timer at all. */
#include "net/stack/port/demux.h"
#include "net/stack/port/port.h"

#include "lwip/dhcp.h"
#include "lwip/etharp.h"
#include "lwip/ip4_frag.h"
#include "lwip/sys.h"

#define NSEC_PER_MS 1000000ull
#define TCP_TICK_NS (TCP_TMR_INTERVAL * NSEC_PER_MS)
/* The slow ones' common tick; the others are whole multiples of it. */
#define SLOW_TICK_MS DHCP_FINE_TIMER_MSECS
#define SLOW_TICK_NS (SLOW_TICK_MS * NSEC_PER_MS)
#define NEVER UINT64_MAX
/* Lost ticks that are made up for after a pause; more would only burn time. */
#define MAX_CATCH_UP 10
/* lwIP drops an unused ARP entry after ARP_MAXAGE (300) seconds: without traffic the tick may stop after that. */
#define ARP_LIFE_TICKS (310 * 1000 / SLOW_TICK_MS)

static uint32_t slow_ticks;      /* since start */
static uint32_t slow_until_tick; /* nothing ages after that one */

void port_timers_start(void)
{
    port.next_tcp_ns = NEVER;
    port.next_slow_ns = NEVER;
}

/* lwIP calls this whenever it registers a connection. */
void tcp_timer_needed(void)
{
    if (port.next_tcp_ns == NEVER && (tcp_active_pcbs != NULL || tcp_tw_pcbs != NULL)) {
        port.next_tcp_ns = port.env->now_ns(port.env->self) + TCP_TICK_NS;
    }
}

void port_slow_timer_needed(void)
{
    slow_until_tick = slow_ticks + ARP_LIFE_TICKS;
    if (port.next_slow_ns == NEVER) {
        port.next_slow_ns = port.env->now_ns(port.env->self) + SLOW_TICK_NS;
    }
}

static void slow_tick(void)
{
    slow_ticks++;
    if (port.dhcp_on) {
        dhcp_fine_tmr();
        if (slow_ticks % (DHCP_COARSE_TIMER_SECS * 1000 / SLOW_TICK_MS) == 0) {
            dhcp_coarse_tmr();
        }
    }
    if (slow_ticks % (ARP_TMR_INTERVAL / SLOW_TICK_MS) == 0) {
        etharp_tmr();
    }
    if (slow_ticks % (IP_TMR_INTERVAL / SLOW_TICK_MS) == 0) {
        ip_reass_tmr();
    }
}

/* The next point of a raster of step that lies after now; ticks between are made up for by the caller. */
static uint64_t advance(uint64_t due, uint64_t step, uint64_t now)
{
    due += step;
    return due + MAX_CATCH_UP * step < now ? now + step : due;
}

uint64_t port_run_timers(uint64_t now)
{
    while (port.next_tcp_ns <= now) {
        tcp_tmr();
        demux_relink();
        port.next_tcp_ns = advance(port.next_tcp_ns, TCP_TICK_NS, now);
        if (tcp_active_pcbs == NULL && tcp_tw_pcbs == NULL) {
            port.next_tcp_ns = NEVER;
        }
    }
    while (port.next_slow_ns <= now) {
        slow_tick();
        port.next_slow_ns = advance(port.next_slow_ns, SLOW_TICK_NS, now);
        if (!port.dhcp_on && slow_ticks >= slow_until_tick) {
            port.next_slow_ns = NEVER;
        }
    }
    return port_next_timer();
}

uint64_t port_next_timer(void)
{
    return port.next_tcp_ns < port.next_slow_ns ? port.next_tcp_ns : port.next_slow_ns;
}

u32_t sys_now(void)
{
    return (u32_t)(port.env->now_ns(port.env->self) / NSEC_PER_MS);
}
