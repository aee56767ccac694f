#include "apps/kv/publish.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#define LOCKS_FILE "/proc/weir/locks"
#define HIST_STEPS 4 /* buckets per doubling: hist.h */

void publish_locks(const struct store *st)
{
    char line[256];
    int fd, n;

    if (st->nshards == 0 || st->shards[0].ls == NULL) {
        return;
    }
    fd = open(LOCKS_FILE, O_WRONLY | O_CLOEXEC);
    if (fd < 0) {
        return;
    }
    n = snprintf(line, sizeof(line),
                 "shard at=%p n=%u stride=%zu ptr=%zu acquired=%zu contended=%zu wait=%zu hold=%zu buckets=%d steps=%d",
                 (void *)st->shards, st->nshards, sizeof(st->shards[0]), offsetof(struct shard, ls),
                 offsetof(struct lockstat, acquired), offsetof(struct lockstat, contended),
                 offsetof(struct lockstat, wait), offsetof(struct lockstat, hold), HIST_BUCKETS, HIST_STEPS);
    if (write(fd, line, (size_t)n) != n) {
        fprintf(stderr, "kv: warning: the lock statistics could not be published\n");
    }
    close(fd);
}
