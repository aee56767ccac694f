/* Tables of call stacks with a count and a sum each, one a CPU, filled in any context without locks.
 *
 * A stack is a row of words: STACK_HEAD words of who and why, then return addresses, innermost first. Memory is fixed: what finds
 * no place is counted as lost, with its value. */
#ifndef WEIR_CORE_KERN_OBS_STACKS_H
#define WEIR_CORE_KERN_OBS_STACKS_H

#include "core/kern/obs/unwind.h"

/* Distinct stacks of a CPU, and words for them: 2,048 stacks of 12 words on average; 290 KiB a CPU. */
#define STACK_SLOTS 2048
#define STACK_WORDS 24576

enum stack_word {
    STACK_NAME,                                /* two words: name of the thread */
    STACK_PROCESS = STACK_NAME + 2,            /* index of its process + 1; 0: the kernel */
    STACK_KIND,                                /* enum wait_kind; STACK_ON_CPU */
    STACK_OBJECT,
    STACK_WAKER,                               /* two words: name of who ended the wait; empty: an interrupt */
    STACK_HEAD = STACK_WAKER + 2,
};
#define STACK_ON_CPU (~0ull)
#define STACK_MAX (STACK_HEAD + UNWIND_MAX)

struct stack_entry {
    u32 hash;
    u32 first; /* index of its first word */
    u32 words; /* 0: free */
    u64 count, sum, max;
};

struct stack_table {
    u32 used; /* words */
    u64 lost_count, lost_sum;
    struct stack_entry slots[STACK_SLOTS];
    u64 data[STACK_WORDS];
};

/* Adds value to a stack; the caller owns the table (its CPU, interrupts off). */
void stack_add(struct stack_table *t, const u64 *words, u32 n, u64 value);
/* Adds what has been summed up elsewhere; false: no place. */
bool stack_merge(struct stack_table *t, const u64 *words, u32 n, const struct stack_entry *sums);
/* Thread name as two words. */
void stack_name(u64 out[2], const char name[THREAD_NAME_MAX]);

/* One table a CPU. start: allocates them all, -ENOMEM. stop: waits until nobody fills them any more (the filling hook must be
 * off). Thread context. */
int stacks_start(void);
void stacks_stop(void);
/* The table of this CPU, NULL between stop and start; interrupts off. Give it back with stacks_put(). */
struct stack_table *stacks_get(void);
void stacks_put(void);
/* After stop: calls fn for every distinct stack of all CPUs, then frees the tables. fn NULL: only frees. */
struct stack_losses {
    u64 count, sum;
};
void stacks_finish(void (*fn)(const u64 *words, u32 n, const struct stack_entry *sums, void *arg), void *arg);
void stacks_losses(struct stack_losses *out);

#endif
