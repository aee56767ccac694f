/* What the simulated machine charges for each step of the mechanism: one file, every figure with its source.
 *
 * Unit: nanoseconds of simulated time.  The default is the machine that the harness measures in, a guest in virtual time at
 * 1 ns per instruction, with a charge for what that mode leaves out (migration, IPI latency); set any of them with
 * `weir-sim --cost NAME=NS`.  `weir-sim --list-costs` prints this table. */
#ifndef WEIR_TESTS_SIM_COST_H
#define WEIR_TESTS_SIM_COST_H

#include <stdint.h>

/*  name           default  what it is, and where the figure comes from */
#define SIM_COSTS(X)                                                                                                     \
    X(switch_ns,       200, "switch to another thread: run-queue pick, stack and register switch")                       \
    X(wake_ns,         120, "unpark: token, state change, default placement")                                            \
    X(place_ns,        150, "extra for a wakeup that asks the policy: view and answer")                                  \
    X(enqueue_ns,       60, "insertion into a run queue under its lock")                                                 \
    X(ipi_send_ns,     100, "sender's share of an IPI: one x2APIC register write")                                       \
    X(ipi_latency_ns,  500, "from the send to the target's handler; not charged by virtual time itself")                 \
    X(irq_ns,          250, "interrupt entry and exit")                                                                  \
    X(halt_exit_ns,    500, "from the interrupt to the first instruction of a halted CPU")                               \
    X(poll_notice_ns,   60, "an idle CPU that polls sees its wake list")                                                 \
    X(migrate_ns,     1000, "refill of the private caches by a thread that ran elsewhere under 500 us ago (~10 misses)") \
    X(move_ns,         150, "moving one queued thread: both locks, dequeue, enqueue")                                    \
    X(pull_ns,         150, "one look for work by a CPU going idle, besides the move")                                   \
    X(lock_hold_ns,    100, "time a run-queue lock is held by a pull; others that come meanwhile give up")               \
    X(pass_base_ns,     50, "balance pass, fixed part (DESIGN.md: 50 + 6n instructions)")                                \
    X(pass_cpu_ns,       6, "balance pass, per CPU looked at")                                                           \
    X(rx_packet_ns,   1500, "receive path per packet: driver, TCP input, socket; interrupt context")                     \
    X(handler_ns,     4500, "a request from the handler's first instruction to its last: read, command, write, TX")      \
    X(wire_ns,        5000, "one way between client and guest")                                                          \
    X(client_ns,       500, "client: from a reply that has been received to the next request, on a CPU of its own")      \
    X(client_more_ns,    0, "... in addition where several connections share the CPU")

/* The same for the generator and the wire of the harness (tests/bench), fitted to its sweep in docs/benchmarks.md: a generator's
 * CPU is busy for 4.3 us a request with one connection, for 6 to 7 us with several.  --harness sets them. */
#define SIM_HARNESS_COSTS(X) X(wire_ns, 100) X(client_ns, 2900) X(client_more_ns, 2500)

struct sim_cost {
#define X(name, value, what) uint64_t name;
    SIM_COSTS(X)
#undef X
};

/* Figures of the mechanism that are not costs. */
#define SIM_IDLE_SPIN_NS 20000u            /* an idle CPU polls at most this long before it halts */
#define SIM_IDLE_SPIN_MIN_NS 500u          /* ... and at least, unless polling does not pay (sched/idle.c) */
#define SIM_RX_BUDGET 32u              /* packets of one receive pass; wakeups of a pass are flushed together */
#define SIM_MIN_CANDIDATES 128u            /* a pass sees that many queued threads, or 2 n if that is more */
#define SIM_GROUP_CPUS 8u              /* CPUs that share a cache: one group */

extern const struct sim_cost sim_cost_default;
/* Sets one figure by "name=ns".  0, or -1 if there is no such name or the value is not a number. */
int sim_cost_set(struct sim_cost *cost, const char *setting);
void sim_cost_list(void);
void sim_cost_harness(struct sim_cost *cost);

#endif
