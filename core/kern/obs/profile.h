/* What the recording half of the profiles (profile_record.c) and the writing half (profile.c) share. */
#ifndef WEIR_CORE_KERN_OBS_PROFILE_H
#define WEIR_CORE_KERN_OBS_PROFILE_H

#include "core/kern/http_pages.h"
#include "core/kern/obs/stacks.h"

enum profile_mode { PROFILE_ONCPU, PROFILE_OFFCPU };

struct profile_options {
    u64 mode;    /* enum profile_mode */
    u64 ms, hz;
    u64 idle;    /* on-CPU: idle CPUs too */
    u64 kinds;   /* off-CPU: set of enum wait_kind */
};

/* Fills the stack tables, which are open, from start to stop. Thread context. */
void profile_start(const struct profile_options *options);
void profile_stop(void);

/* The stack tables for one recording at a time, opened; false: out is the 409 or 503. profile_let_go() after
 * stacks_finish(). */
bool profile_claim(struct http_answer *out);
void profile_let_go(void);
/* The end of a profile from boot: prints it. */
void profile_print(void);

#endif
