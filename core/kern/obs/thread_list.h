/* References to all threads, to be looked at one by one without the thread table's lock. Thread context. */
#ifndef WEIR_CORE_KERN_OBS_THREAD_LIST_H
#define WEIR_CORE_KERN_OBS_THREAD_LIST_H

#include "sched/sched.h"

/* Calls fn for every thread there is, with a reference held and no lock. False: no memory. Threads that come meanwhile may be
 * left out. */
bool thread_list_each(void (*fn)(struct thread *t, void *arg), void *arg);

#endif
