/* What is measured: work conservation, waiting, spread. */
#include <string.h>

#include "tests/sim/internal.h"

void track_close_stretch(struct sim *s)
{
    if (s->stretch_from != SIM_NEVER && s->now - s->stretch_from > s->st.longest_stretch) {
        s->st.longest_stretch = s->now - s->stretch_from;
    }
}

/* Threads with partial affinity: looked at one by one (workloads with them are small). */
static uint64_t advance_partial(struct sim *s, uint64_t dt)
{
    uint64_t lost = 0;

    for (uint32_t i = 0; i < s->num_threads; i++) {
        struct sim_thread *t = s->threads[i];

        if (t->partial && (t->state == T_QUEUED || t->state == T_WAKING) && t->cpu >= 0 && idle_for(s, t) >= 0 &&
            sim_load(s, (uint32_t)t->cpu) > 1) {
            t->partial_gap += dt;
            lost += dt;
        }
    }
    return lost;
}

void track_advance(struct sim *s)
{
    uint64_t dt = s->now - s->track_mark;

    if (dt == 0) {
        return;
    }
    s->track_mark = s->now;
    if (s->idle_cpus == 0) {
        return;
    }
    s->gap += dt;
    if (s->have_partial) {
        uint64_t most = dt * s->idle_cpus;
        uint64_t lost = advance_partial(s, dt) + dt * s->waiting;

        s->st.overloaded += lost < most ? lost : most;
    } else if (s->waiting != 0) {
        s->st.overloaded += dt * (s->waiting < s->idle_cpus ? s->waiting : s->idle_cpus);
    }
}

static void track_stretch(struct sim *s)
{
    bool violated = s->idle_cpus != 0 && s->waiting != 0;

    if (violated == (s->stretch_from != SIM_NEVER)) {
        return;
    }
    if (violated) {
        s->stretch_from = s->now;
        return;
    }
    track_close_stretch(s);
    s->stretch_from = SIM_NEVER;
}

static void look_at_spread(struct sim *s)
{
    uint32_t least = UINT32_MAX;
    uint32_t most = 0;

    for (uint32_t c = 0; c < s->n; c++) {
        uint32_t load = sim_load(s, c);

        least = load < least ? load : least;
        most = load > most ? load : most;
    }
    if (most - least <= 1) {
        s->spread_at = (int64_t)s->now;
        s->spread_passes = s->st.move_passes;
    }
}

void track_cpu(struct sim *s, uint32_t c)
{
    struct sim_cpu *cpu = &s->cpus[c];
    uint32_t load = sim_load(s, c);
    bool idle = load == 0 && s->pcpus[c].capacity != 0;
    uint32_t waiting = load > 1 ? (load - 1 < cpu->movable ? load - 1 : cpu->movable) : 0;
    bool tracked = idle && cpu->in_rx == 0;

    if (idle) {
        s->idle_bits[c / 64] |= 1ull << (c % 64);
    } else {
        s->idle_bits[c / 64] &= ~(1ull << (c % 64));
    }
    if (tracked != cpu->tracked_idle || waiting != cpu->waiting) {
        track_advance(s);
        s->idle_cpus += (uint32_t)tracked - (uint32_t)cpu->tracked_idle;
        cpu->tracked_idle = tracked;
        s->waiting += waiting - cpu->waiting;
        cpu->waiting = waiting;
    }
    if (cpu->overloaded != (s->pcpus[c].running != 0 && s->pcpus[c].queued != 0)) {
        cpu->overloaded = !cpu->overloaded;
        s->overloaded_cpus += cpu->overloaded ? 1u : UINT32_MAX;
    }
    track_stretch(s);
    if (s->watch_spread && s->spread_at < 0) {
        look_at_spread(s);
    }
}

/* A thread begins to wait for a CPU: t->cpu is where. */
void track_wait_begin(struct sim *s, struct sim_thread *t)
{
    track_advance(s);
    t->gap_mark = s->gap;
    t->partial_gap = 0;
    if (!t->pinned && !t->partial) {
        s->cpus[t->cpu].movable++;
    }
}

void track_wait_end(struct sim *s, struct sim_thread *t)
{
    uint64_t gap = t->partial_gap;

    track_advance(s);
    if (!t->pinned && !t->partial) {
        s->cpus[t->cpu].movable--;
        gap = s->gap - t->gap_mark;
    }
    if (!t->pinned && gap > s->st.longest_gap) {
        s->st.longest_gap = gap;
    }
}

void sim_reset_stats(struct sim *s)
{
    track_advance(s);
    memset(&s->st, 0, sizeof(s->st));
    s->st.since = s->now;
    s->stretch_from = s->stretch_from != SIM_NEVER ? s->now : SIM_NEVER;
    for (uint32_t c = 0; c < s->n; c++) {
        struct sim_cpu *cpu = &s->cpus[c];

        cpu->idle_ns = cpu->irq_busy_ns = 0;
        cpu->idle_mark = s->now;
        cpu->used = false;
    }
    for (uint32_t i = 0; i < s->num_threads; i++) {
        struct sim_thread *t = s->threads[i];

        t->ops = t->runtime = 0;
        t->gap_mark = s->gap; /* what it waited before does not count */
        t->partial_gap = 0;
    }
}
