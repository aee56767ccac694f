/* CPUs granted, not CPUs seen: the affinity mask and the cgroup quota (v2 cpu.max, v1
 * cpu.cfs_quota_us / cpu.cfs_period_us), the smaller one. Files that do not exist mean no quota. */
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "apps/kv/server.h"

#define PATH_LEN 512

/* First line of a file; false if it cannot be read. */
static bool read_line(const char *path, char *line, size_t cap)
{
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(line, (int)cap, f);

    if (f) {
        fclose(f);
    }
    return ok;
}

static unsigned at_least_one(long quota, long period)
{
    return quota <= 0 || period <= 0 ? 0 : (unsigned)((quota + period - 1) / period);
}

/* CPUs of the quota in this cgroup directory; 0 = none. */
static unsigned quota_v2(const char *dir)
{
    char path[PATH_LEN + 32], line[64];
    long quota, period;

    snprintf(path, sizeof(path), "%s/cpu.max", dir);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%ld %ld", &quota, &period) != 2) {
        return 0; /* absent, or "max" */
    }
    return at_least_one(quota, period);
}

static unsigned quota_v1(const char *dir)
{
    char path[PATH_LEN + 32], line[64];
    long quota, period;

    snprintf(path, sizeof(path), "%s/cpu.cfs_quota_us", dir);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%ld", &quota) != 1) {
        return 0;
    }
    snprintf(path, sizeof(path), "%s/cpu.cfs_period_us", dir);
    if (!read_line(path, line, sizeof(line)) || sscanf(line, "%ld", &period) != 1) {
        return 0;
    }
    return at_least_one(quota, period);
}

/* The smallest quota from the process's group up to the root. */
static unsigned quota_of(const char *root, const char *group, unsigned (*read)(const char *))
{
    char dir[PATH_LEN];
    unsigned best = 0, n;
    char *slash;

    snprintf(dir, sizeof(dir), "%s%s", root, group);
    for (;;) {
        n = read(dir);
        if (n && (!best || n < best)) {
            best = n;
        }
        slash = strrchr(dir, '/');
        if (strlen(dir) <= strlen(root) || !slash) {
            return best;
        }
        *slash = '\0';
    }
}

/* The quota of the group named in one line of /proc/self/cgroup ("id:controllers:path"). */
static unsigned quota_of_line(char *line)
{
    char *controllers = strchr(line, ':');
    char *group = controllers ? strchr(controllers + 1, ':') : NULL;

    if (!group) {
        return 0;
    }
    *group++ = '\0';
    group[strcspn(group, "\n")] = '\0';
    controllers++;
    if (*controllers == '\0') {
        return quota_of("/sys/fs/cgroup", group, quota_v2);
    }
    if (strstr(controllers, "cpu") && !strstr(controllers, "cpuset")) {
        return quota_of("/sys/fs/cgroup/cpu", group, quota_v1);
    }
    return 0;
}

static unsigned quota(void)
{
    char line[PATH_LEN / 2];
    unsigned best = quota_v2("/sys/fs/cgroup"), n;
    FILE *f = fopen("/proc/self/cgroup", "re");

    while (f && fgets(line, sizeof(line), f)) {
        n = quota_of_line(line);
        if (n && (!best || n < best)) {
            best = n;
        }
    }
    if (f) {
        fclose(f);
    }
    return best;
}

unsigned cpus_granted(void)
{
    cpu_set_t set;
    unsigned n = 1, limit = quota();

    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0) {
        n = (unsigned)CPU_COUNT(&set);
    }
    return limit && limit < n ? limit : n;
}
