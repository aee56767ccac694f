/*
 * peerstat: the Linux peer's counters between two phase marks of the load generator.
 *
 * usage: peerstat FIFO PROCESS CPU_RANGE
 * Takes lines "NAME begin" and "NAME end" from FIFO, and opens FIFO.ack when it has counted; after "end" it
 * prints
 *   #stat {"phase": ..., "event": "end", "seconds": ..., "idle_share": ..., ...}
 * with the differences since "begin", for the CPUs CPU_RANGE ("0-15") and the threads of the
 * process named PROCESS. Sources:
 *   idle_share  idle_sleeptime in /proc/timer_list (ns; /proc/stat counts in 10 ms). The kernel
 *               adds to it when a CPU wakes, so a helper runs on each CPU for a moment first
 *   cpus_used   distinct last CPUs of the threads that ran in between (/proc/PID/task/N/stat)
 *   migrations  sum of nr_migrations in /proc/PID/task/N/sched
 *   switches    sum of both kinds of context switches in /proc/PID/task/N/status
 *   ipis        RES, CAL and TLB rows of /proc/interrupts
 * A thread that ended in between is left out. null: this kernel does not tell.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define MAX_THREADS 4096
#define MAX_CPUS 256

struct thread_counts {
    int tid;
    int cpu;
    uint64_t switches;
    uint64_t migrations;
    uint64_t run_ns;
};

struct snapshot {
    uint64_t when_ns;
    uint64_t idle_ns;
    uint64_t ipis;
    bool has_idle, has_migrations;
    size_t nthreads;
    struct thread_counts threads[MAX_THREADS];
};

static int first_cpu, last_cpu;

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static void read_idle(struct snapshot *s)
{
    FILE *f = fopen("/proc/timer_list", "r");
    char line[256];
    int cpu = -1;

    s->idle_ns = 0;
    s->has_idle = false;
    while (f && fgets(line, sizeof(line), f)) {
        unsigned long long ns;

        if (sscanf(line, "cpu: %d", &cpu) == 1) {
            continue;
        }
        if (sscanf(line, " .idle_sleeptime : %llu", &ns) == 1 && cpu >= first_cpu &&
            cpu <= last_cpu) {
            s->idle_ns += ns;
            s->has_idle = true;
        }
    }
    if (f) {
        fclose(f);
    }
}

static void read_ipis(struct snapshot *s)
{
    FILE *f = fopen("/proc/interrupts", "r");
    static char line[16384];

    s->ipis = 0;
    while (f && fgets(line, sizeof(line), f)) {
        char *p = line;

        while (isspace((unsigned char)*p)) {
            p++;
        }
        if (strncmp(p, "RES:", 4) != 0 && strncmp(p, "CAL:", 4) != 0 && strncmp(p, "TLB:", 4) != 0) {
            continue;
        }
        p += 4;
        for (int cpu = 0; cpu <= last_cpu; cpu++) {
            char *end;
            unsigned long long n = strtoull(p, &end, 10);

            if (end == p) {
                break;
            }
            s->ipis += cpu >= first_cpu ? n : 0;
            p = end;
        }
    }
    if (f) {
        fclose(f);
    }
}

/* ---- the helper that wakes the server's CPUs --------------------------------------------- */

#define SERVER_GROUP "/sys/fs/cgroup/server/cgroup.procs"

static int ask[2], answer[2];

/* Lives in the server's cgroup, without which its CPUs are out of reach. Never returns. */
static void wake_loop(void)
{
    int group = open(SERVER_GROUP, O_WRONLY);
    char byte;

    if (group >= 0 && write(group, "0", 1) != 1) {
        fprintf(stderr, "peerstat: %s: %s\n", SERVER_GROUP, strerror(errno));
    }
    while (read(ask[0], &byte, 1) == 1) {
        for (int cpu = first_cpu; cpu <= last_cpu; cpu++) {
            cpu_set_t set;

            CPU_ZERO(&set);
            CPU_SET(cpu, &set);
            sched_setaffinity(0, sizeof(set), &set);    /* returns on that CPU */
        }
        if (write(answer[1], &byte, 1) != 1) {
            break;
        }
    }
    _exit(0);
}

static bool start_waker(void)
{
    pid_t pid;

    if (pipe(ask) < 0 || pipe(answer) < 0 || (pid = fork()) < 0) {
        return false;
    }
    if (pid == 0) {
        close(ask[1]);
        wake_loop();
    }
    close(ask[0]);
    return true;
}

static void wake_cpus(void)
{
    char byte = 0;

    if (write(ask[1], &byte, 1) != 1 || read(answer[0], &byte, 1) != 1) {
        fprintf(stderr, "peerstat: the helper is gone\n");
    }
}

/* ---- threads of the server --------------------------------------------------------------- */

static FILE *open_task(int pid, int tid, const char *name)
{
    char path[96];

    snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", pid, tid, name);
    return fopen(path, "r");
}

/* Field 39 of stat is the last CPU; the name before it may hold blanks, so count from its ')'. */
static int last_cpu_of(int pid, int tid)
{
    FILE *f = open_task(pid, tid, "stat");
    char line[1024] = "";
    char *p;
    int field = 2;

    if (!f) {
        return -1;
    }
    p = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
    fclose(f);
    for (; p && field < 39; field++) {
        p = strchr(p + 1, ' ');
    }
    return p ? atoi(p + 1) : -1;
}

static void read_thread(struct snapshot *s, int pid, int tid)
{
    struct thread_counts *t = &s->threads[s->nthreads];
    char line[256];
    unsigned long long n, m;
    FILE *f;

    memset(t, 0, sizeof(*t));
    t->tid = tid;
    t->cpu = last_cpu_of(pid, tid);
    f = open_task(pid, tid, "status");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "voluntary_ctxt_switches: %llu", &n) == 1 ||
            sscanf(line, "nonvoluntary_ctxt_switches: %llu", &n) == 1) {
            t->switches += n;
        }
    }
    if (f) {
        fclose(f);
    }
    f = open_task(pid, tid, "sched");
    while (f && fgets(line, sizeof(line), f)) {
        if (sscanf(line, "se.nr_migrations : %llu", &n) == 1) {
            t->migrations = n;
            s->has_migrations = true;
        }
    }
    if (f) {
        fclose(f);
    }
    f = open_task(pid, tid, "schedstat");
    if (f) {
        t->run_ns = fscanf(f, "%llu %llu", &n, &m) == 2 ? n : 0;
        fclose(f);
    }
    s->nthreads++;
}

static int pid_of(const char *process)
{
    DIR *proc = opendir("/proc");
    struct dirent *e;
    int found = -1;

    while (proc && found < 0 && (e = readdir(proc))) {
        char path[300], name[64] = "";
        FILE *f;

        if (!isdigit((unsigned char)e->d_name[0])) {
            continue;
        }
        snprintf(path, sizeof(path), "/proc/%s/comm", e->d_name);
        f = fopen(path, "r");
        if (f && fgets(name, sizeof(name), f)) {
            name[strcspn(name, "\n")] = '\0';
            found = strcmp(name, process) == 0 ? atoi(e->d_name) : -1;
        }
        if (f) {
            fclose(f);
        }
    }
    if (proc) {
        closedir(proc);
    }
    return found;
}

static void take(struct snapshot *s, const char *process)
{
    int pid = pid_of(process);
    char path[64];
    DIR *tasks;
    struct dirent *e;

    wake_cpus();
    s->when_ns = now_ns();
    read_idle(s);
    read_ipis(s);
    s->nthreads = 0;
    s->has_migrations = false;
    snprintf(path, sizeof(path), "/proc/%d/task", pid);
    tasks = pid > 0 ? opendir(path) : NULL;
    while (tasks && (e = readdir(tasks)) && s->nthreads < MAX_THREADS) {
        if (isdigit((unsigned char)e->d_name[0])) {
            read_thread(s, pid, atoi(e->d_name));
        }
    }
    if (tasks) {
        closedir(tasks);
    }
}

static const struct thread_counts *find(const struct snapshot *s, int tid)
{
    for (size_t i = 0; i < s->nthreads; i++) {
        if (s->threads[i].tid == tid) {
            return &s->threads[i];
        }
    }
    return NULL;
}

static void print_count(const char *name, bool known, uint64_t value)
{
    if (known) {
        printf(", \"%s\": %llu", name, (unsigned long long)value);
    } else {
        printf(", \"%s\": null", name);
    }
}

static void report(const char *name, const struct snapshot *begin, const struct snapshot *end)
{
    static bool used[MAX_CPUS];
    uint64_t switches = 0, migrations = 0, run_ns = 0;
    double seconds = (double)(end->when_ns - begin->when_ns) / 1e9;
    int cpus = last_cpu - first_cpu + 1, cpus_used = 0;

    memset(used, 0, sizeof(used));
    for (size_t i = 0; i < end->nthreads; i++) {
        const struct thread_counts *now = &end->threads[i], *was = find(begin, now->tid);

        if (!was) {
            continue;
        }
        switches += now->switches - was->switches;
        migrations += now->migrations - was->migrations;
        run_ns += now->run_ns - was->run_ns;
        if (now->run_ns > was->run_ns && now->cpu >= 0 && now->cpu < MAX_CPUS && !used[now->cpu]) {
            used[now->cpu] = true;
            cpus_used++;
        }
    }
    printf("#stat {\"phase\": \"%s\", \"event\": \"end\", \"seconds\": %.6f", name, seconds);
    if (begin->has_idle && end->has_idle) {
        printf(", \"idle_share\": %.4f",
               (double)(end->idle_ns - begin->idle_ns) / 1e9 / (seconds * cpus));
    } else {
        printf(", \"idle_share\": null");
    }
    printf(", \"cpus_used\": %d, \"cpus_busy_in_threads\": %.3f", cpus_used,
           (double)run_ns / 1e9 / seconds);
    print_count("migrations", end->has_migrations, migrations);
    print_count("switches", true, switches);
    print_count("ipis", true, end->ipis - begin->ipis);
    printf(", \"wakes_remote\": null, \"threads\": %zu}\n", end->nthreads);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static struct snapshot begin, end;
    char line[256], name[200], what[16];
    char ack[256];
    FILE *marks;
    int fd;

    if (argc != 4 || sscanf(argv[3], "%d-%d", &first_cpu, &last_cpu) < 1) {
        fprintf(stderr, "usage: peerstat FIFO PROCESS FIRST-LAST\n");
        return 2;
    }
    if (!strchr(argv[3], '-')) {
        last_cpu = first_cpu;
    }
    if (!start_waker()) {
        fprintf(stderr, "peerstat: no helper: %s\n", strerror(errno));
        return 1;
    }
    snprintf(ack, sizeof(ack), "%s.ack", argv[1]);
    fd = open(argv[1], O_RDWR);     /* for writing too, so that it never ends */
    marks = fd >= 0 ? fdopen(fd, "r") : NULL;
    while (marks && fgets(line, sizeof(line), marks)) {
        if (sscanf(line, "%199s %15s", name, what) != 2) {
            continue;
        }
        if (strcmp(what, "begin") == 0) {
            take(&begin, argv[2]);
        } else {
            take(&end, argv[2]);
            report(name, &begin, &end);
        }
        fd = open(ack, O_WRONLY);   /* the generator waits for this */
        if (fd >= 0) {
            close(fd);
        }
    }
    fprintf(stderr, "peerstat: %s: %s\n", argv[1], strerror(errno));
    return 1;
}
