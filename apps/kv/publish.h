/* Lets the operating system show the shards' lock statistics: on Weir, by one line in /proc/weir/locks that says where they lie
 * (core/kern/obs/app_locks.h describes it). Elsewhere there is no such file, and nothing happens. */
#ifndef KV_PUBLISH_H
#define KV_PUBLISH_H

#include "apps/kv/store.h"

/* The store must stay where it is. Does nothing without KV_LOCK_STATS. */
void publish_locks(const struct store *st);

#endif
