/* The memory level that the system wants this group of processes to stay below: memory.high of the control group (v2; Weir
 * shows grant.memory_high there). Above it the system slows down whoever takes memory, so a store that may evict does so
 * before. Read again whenever the store has grown by a step: a server that takes nothing reads nothing. */
#include <stdio.h>
#include <string.h>

#include "apps/kv/server.h"

#define PATH_LEN 256

/* The number in a file of the group; false if there is none ("max", or no such file). */
static bool read_bytes(const char *dir, const char *name, unsigned long long *bytes)
{
    char path[PATH_LEN];
    FILE *f;
    bool ok;

    snprintf(path, sizeof(path), "%s/%s", dir, name);
    f = fopen(path, "re");
    ok = f && fscanf(f, "%llu", bytes) == 1;
    if (f) {
        fclose(f);
    }
    return ok;
}

size_t memlevel_soft(const char *dir, size_t used)
{
    unsigned long long high, current, other;

    if (!read_bytes(dir, "memory.high", &high) || !read_bytes(dir, "memory.current", &current)) {
        return 0;
    }
    /* What is in use but not counted by the store: the program, stacks, blocks kept for later. */
    other = (current > used ? current - used : 0) + KV_LEVEL_MARGIN;
    return high > other ? (size_t)(high - other) : 1;
}

void memlevel_look(struct store *st)
{
    size_t used = atomic_load(&st->mem.used);

    if (used < atomic_load(&st->mem.look_at)) {
        return;
    }
    atomic_store(&st->mem.soft, memlevel_soft("/sys/fs/cgroup", used));
    atomic_store(&st->mem.look_at, used + KV_LEVEL_STEP);
}
