/* The grant. Domain 0 (the server) has it; the load generator's domain measures and is not limited. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/grant.h"
#include "core/mm/mm.h"

#define FW_CFG_FILE "opt/weir/grant"
#define FW_CFG_BYTES 512

static struct quota app_quota;
static struct mutex change_mutex = MUTEX_INIT(change_mutex);

/* Under change_mutex; read by anybody, word by word. */
static struct grant_words host, own;
static struct grant_limits limits = { .period_us = GRANT_PERIOD_US };
static bool park = true, show_all;
static u64 complaints, changes;

/* Logs a complaint; arg: a line to copy the first one to, or NULL. */
static void complain(const char *line, void *arg)
{
    log_warn("weir: grant: %s", line);
    __atomic_fetch_add(&complaints, 1, __ATOMIC_RELAXED);
    if (arg && !*(char *)arg) {
        str_copy(arg, line, GRANT_LINE);
    }
}

/* Runs threads on the CPUs that are granted, or on all. */
static void follow_parking(void)
{
    u32 cpus = sched_domain(0).num_cpus;
    u32 count = park ? grant_whole_cpus(&limits, cpus) : cpus;
    if (count != sched_active(0)) {
        sched_set_active(0, count);
    }
}

/* Makes new figures hold; nothing has changed on failure. */
static int apply(const struct grant_limits *g)
{
    if (mm_set_limits(g->memory_low, g->memory_high, g->memory) < 0) {
        return -EINVAL;
    }
    if ((g->quota_us != limits.quota_us || g->period_us != limits.period_us) &&
        quota_set(&app_quota, g->quota_us * NSEC_PER_USEC, g->period_us * NSEC_PER_USEC) < 0) {
        log_error("weir: grant: %lu us of CPU time in %lu us is impossible", g->quota_us, g->period_us);
        mm_set_limits(limits.memory_low, limits.memory_high, limits.memory);
        return -EINVAL;
    }
    limits = *g;
    follow_parking();
    return 0;
}

static void read_host(struct grant_notes *notes)
{
    char text[FW_CFG_BYTES + 1];
    i64 n = arch_fw_cfg_read(FW_CFG_FILE, text, FW_CFG_BYTES);
    if (n > 0) {
        text[n] = '\0';
        grant_text(&host, text, "the host's grant", notes);
    }
}

int grant_init(const struct config *c)
{
    struct grant_notes notes = { complain, NULL, 0 };
    struct grant_limits g;
    quota_init(&app_quota);
    park = c->grant_park;
    show_all = c->grant_show_all;
    read_host(&notes);
    for (u32 i = 0; i < c->num_grant_words; i++) {
        grant_word(&own, c->grant_words[i].key, c->grant_words[i].value, &notes);
    }
    grant_resolve(&host, &own, &g, &notes);
    if (apply(&g) < 0) {
        return -EINVAL; /* what is impossible has been said */
    }
    if (sched_delivered_start(c->grant_delivered == GRANT_DELIVERED_AUTO ? !arch_emulated() : c->grant_delivered) < 0) {
        log_error("weir: not enough memory to watch what the host delivers");
        return -EINVAL;
    }
    if (g.quota_us) {
        log_info("grant: %lu us of CPU time in %lu us: %u of %u CPUs run threads", g.quota_us, g.period_us, sched_active(0),
                 sched_domain(0).num_cpus);
    }
    return 0;
}

static void merge(struct grant_words *to, const struct grant_words *from)
{
    if (from->milli_cpus || from->quota_us) {
        /* One way of saying it replaces the other. */
        to->milli_cpus = from->milli_cpus;
        to->quota_us = from->quota_us;
    }
    to->period_us = from->period_us ? from->period_us : to->period_us;
    to->memory = from->memory ? from->memory : to->memory;
    to->memory_high = from->memory_high ? from->memory_high : to->memory_high;
    to->memory_low = from->memory_low ? from->memory_low : to->memory_low;
}

int grant_change(const struct grant_change *change, char *why)
{
    struct grant_limits g;
    *why = '\0';
    struct grant_notes notes = { complain, why, 0 };
    mutex_lock(&change_mutex);
    struct grant_words old_host = host, old_own = own;
    merge(change->from_host ? &host : &own, &change->words);
    grant_resolve(&host, &own, &g, &notes);
    bool old_park = park;
    park = change->park < 0 ? park : change->park;
    int error = apply(&g);
    if (error) {
        host = old_host;
        own = old_own;
        park = old_park;
        complain("refused: the kernel needs more memory than that (its log says how much)", NULL);
        str_copy(why, "the kernel needs more memory than that (its log says how much): nothing is changed", GRANT_LINE);
    } else {
        show_all = change->show_all < 0 ? show_all : change->show_all;
        changes++;
        log_info("grant: changed: quota %lu us in %lu us, %u CPUs run threads", limits.quota_us, limits.period_us,
                 sched_active(0));
    }
    mutex_unlock(&change_mutex);
    return error;
}

u32 grant_cpus(u32 domain)
{
    u32 cpus = sched_domain(domain).num_cpus;
    return domain == 0 ? grant_whole_cpus(&limits, cpus) : cpus;
}

u32 grant_shown_cpus(u32 domain)
{
    return READ_ONCE(show_all) ? sched_domain(domain).num_cpus : grant_cpus(domain);
}

cpumask_t grant_affinity(struct thread *t)
{
    cpumask_t mask = thread_affinity(t), out = 0;
    u32 left = grant_shown_cpus(thread_head(t)->domain);
    for (; mask && left > 0; left--) {
        out |= mask & -mask;
        mask &= mask - 1;
    }
    return out;
}

struct quota *grant_quota(u32 domain)
{
    return domain == 0 ? &app_quota : NULL;
}

void grant_info(struct grant_info *out)
{
    *out = (struct grant_info){ .limits = limits, .active = sched_active(0), .park = park, .show_all = show_all,
                                .complaints = __atomic_load_n(&complaints, __ATOMIC_RELAXED), .changes = changes };
    quota_stats(&app_quota, &out->cpu);
}
