/* INFO sections and the sums that stats share with them. */
#ifndef KV_INFO_H
#define KV_INFO_H

#include "apps/kv/server.h"

/* Appends the sections named (argc words), or the default ones. */
void info_write(struct conn *c, unsigned argc, const struct arg *argv);
/* Bytes resident, from /proc/self/statm; 0 if the system does not tell. */
size_t info_rss(void);
/* User and system CPU time of the process, microseconds. */
void info_cpu(uint64_t *user_us, uint64_t *sys_us);
/* Sum of the lock statistics of all shards; false when they are off. */
bool info_locks(const struct op *op, struct lockstat *sum);

#endif
