/* Looking into the running kernel: what the HTTP port's pages record, and what a panic tells of the recent past.
 *
 * Nothing here costs anything until it is asked for: recording is switched on by a request and off at its end; memory is
 * taken then and given back (the trace rings stay). One recording of a kind at a time: a second one is answered by 409. */
#ifndef WEIR_CORE_KERN_OBS_OBS_H
#define WEIR_CORE_KERN_OBS_OBS_H

#include "core/kern/http_pages.h"

/* ---- pages: each checks its parameters, then fills the answer or leaves it to be streamed ---- */

void obs_trace(const struct http_request *request, struct http_answer *out);
void obs_profile(const struct http_request *request, struct http_answer *out);
void obs_locks(const struct http_request *request, struct http_answer *out);
void obs_futex(const struct http_request *request, struct http_answer *out);
void obs_threads(const struct http_request *request, struct http_answer *out);
void obs_placement(const struct http_request *request, struct http_answer *out);
void obs_policy_record(const struct http_request *request, struct http_answer *out);

/* ---- start-up ---- */

/* The panic's tail; and the flight recorder: categories with commas between them, NULL for none. Thread context, after
 * sched_init(). False: not the names of categories. */
bool obs_init(const char *categories);
/* profile=oncpu|offcpu|HZ on the command line: a profile from boot to the end, printed as lines "#profile STACK VALUE" by
 * obs_shutdown(): for runs that no HTTP client can reach, such as those in virtual time. Takes the place of /profile. False: none
 * of these words. Thread context, after the CPUs have started. */
bool obs_boot_profile(const char *what);
/* Before the power goes: prints what was recorded from boot. */
void obs_shutdown(void);
#define OBS_CATEGORIES "sched,ipi,idle,futex,lock,net,queue"

/* Claims a recorder; false if it is taken. */
static inline bool obs_claim(u32 *taken)
{
    return !__atomic_exchange_n(taken, 1, __ATOMIC_ACQUIRE);
}

static inline void obs_release(u32 *taken)
{
    __atomic_store_n(taken, 0, __ATOMIC_RELEASE);
}

#endif
