/* What a blocked thread waits for, and who could let it go on. */
#ifndef WEIR_CORE_KERN_OBS_WAITS_H
#define WEIR_CORE_KERN_OBS_WAITS_H

#include "core/kern/proc.h"

struct wait_target {
    const char *what; /* "mutex", "join" ...; never NULL */
    u32 owner;        /* thread id, 0: unknown */
};

/* The words around a futex word, as read from the application. */
struct futex_words {
    u32 before;      /* at -4 */
    u32 word;
    u32 after[4];    /* at +4 .. +16 */
};

/* Judges by the words whether the futex is a mutex of musl or glibc, and whose. is_thread: is this the id of a living thread
 * of the process? Pure. */
struct wait_target wait_judge(const struct futex_words *w, bool (*is_thread)(u32 id, void *arg), void *arg);

/* ---- all threads at one time ---- */

struct wait_node {
    struct thread *thread; /* with a reference */
    struct thread_info info;
    struct wait_target target;
    u32 cycle; /* 1..: number of the deadlock cycle it is part of; 0: none */
};

#define WAIT_CHUNK 1024u /* nodes of one allocation */
#define WAIT_CHUNKS 40u

struct wait_graph {
    u32 n, cycles;
    struct wait_node *chunks[WAIT_CHUNKS];
};

/* Looks at every thread, and looks again at those that seem to be in a cycle. Holds a reference to each. NULL: no memory. Thread
 * context; no CPU is stopped, and no lock held but the thread table's for about 20 instructions a thread. */
struct wait_graph *wait_graph_create(void);
static inline struct wait_node *wait_graph_node(struct wait_graph *g, u32 i)
{
    return &g->chunks[i / WAIT_CHUNK][i % WAIT_CHUNK];
}
void wait_graph_free(struct wait_graph *g);

/* Finds the cycles of "next" among n nodes (UINT32_MAX: none); cycle[i] becomes its number, 1.., or 0. Returns how many.
 * Pure, linear. */
u32 wait_find_cycles(u32 n, const u32 *next, u32 *cycle);

#endif
