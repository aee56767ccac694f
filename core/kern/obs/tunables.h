/* Tunables of core/kern/obs, with their units and the reason for their values. */
#ifndef WEIR_CORE_KERN_OBS_TUNABLES_H
#define WEIR_CORE_KERN_OBS_TUNABLES_H

/* Recordings, in thousandths of a second: long enough for a rare event, short enough that a forgotten one ends. */
#define OBS_MIN_MS 1
#define OBS_MAX_MS 60000
#define OBS_DEFAULT_MS 1000
/* Time that a reader has for the text after the recording, ns: a trace of 50 MB at 1 MB/s. */
#define OBS_SEND_NS (60 * NSEC_PER_SEC)

/* Samples a second and CPU: 997 is prime, so that it does not run in step with anything periodic. */
#define PROFILE_DEFAULT_HZ 997
#define PROFILE_MAX_HZ 10000

/* Events a ring keeps, a power of two, 32 bytes each: 2 MiB a CPU hold about a second of a busy server's. Fewer where that would
 * take more than a quarter of the free memory. */
#define TRACE_EVENTS_MAX 65536u
#define TRACE_EVENTS_MIN 1024u
#define TRACE_MEMORY_DIVISOR 4
/* Threads that a trace can tell apart; further ones appear on the CPUs' tracks only. Power of two, about 100 bytes each. */
#define TRACE_THREADS_MAX 32768u
/* Events that a panic prints. */
#define TRACE_PANIC_EVENTS 40

/* Policy calls: the buffer, KiB. A call on 16 CPUs takes 1.3 KB, a balancer's pass at most 20 KB more. As much as
 * kmalloc() has at most. Longest wait for a call under
 * way at the end, ns: the watchdog cuts calls off well before. */
#define PLANS_MIN_KB 64
#define PLANS_MAX_KB 4096
#define PLANS_DEFAULT_KB 2048
#define PLANS_END_POLL_NS (NSEC_PER_MSEC)
#define PLANS_END_NS (2 * NSEC_PER_SEC)

/* Placement: samples of one recording, and the shortest period, us (a sample of 64 CPUs takes about 2 us). */
#define PLACEMENT_MAX_SAMPLES 20000
#define PLACEMENT_MIN_US 100
#define PLACEMENT_DEFAULT_US 10000

/* Symbols remembered while a profile is written: a lookup in an application searches its whole table. Power of two. */
#define SYMBOL_CACHE 1024

/* Threads followed from waiter to owner before a cycle counts as none; as many as a dump can hold. */
#define LOCK_TABLES_MAX 8

#endif
