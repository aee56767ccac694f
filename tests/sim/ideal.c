/* The yardstick: one queue for all CPUs, first come first served, at no cost.  A thread that wakes runs at once on any idle
 * CPU it may use, its last one first; a CPU that becomes free takes the first thread that may run there. */
#include "tests/sim/internal.h"

void ideal_put(struct sim *s, struct sim_thread *t)
{
    t->state = T_QUEUED;
    t->central_next = NULL;
    if (s->central == NULL) {
        s->central = t;
    } else {
        s->central_tail->central_next = t;
    }
    s->central_tail = t;
    s->central_len++;
}

struct sim_thread *ideal_take(struct sim *s, uint32_t cpu)
{
    struct sim_thread *before = NULL;

    for (struct sim_thread *t = s->central; t != NULL; before = t, t = t->central_next) {
        if (!thread_allowed(t, cpu)) {
            continue;
        }
        if (before == NULL) {
            s->central = t->central_next;
        } else {
            before->central_next = t->central_next;
        }
        if (s->central_tail == t) {
            s->central_tail = before;
        }
        s->central_len--;
        return t;
    }
    return NULL;
}

/* An idle CPU not in the receive path, the preferred one first. */
static int32_t free_cpu(const struct sim *s, const struct sim_thread *t, int32_t prefer)
{
    if (prefer >= 0 && thread_allowed(t, (uint32_t)prefer) && cpu_is_idle(s, &s->cpus[prefer])) {
        return prefer;
    }
    for (uint32_t w = 0; w < s->words; w++) {
        uint64_t bits = s->idle_bits[w] & t->affinity[w];

        for (; bits != 0; bits &= bits - 1) {
            uint32_t c = w * 64 + (uint32_t)__builtin_ctzll(bits);

            if (s->cpus[c].in_rx == 0) {
                return (int32_t)c;
            }
        }
    }
    return -1;
}

void ideal_wake(struct sim *s, struct sim_thread *t, int32_t prefer)
{
    int32_t to = free_cpu(s, t, prefer);

    t->queued_at = s->now;
    if (to < 0) {
        ideal_put(s, t);
        return;
    }
    if (to != prefer) {
        note_move(s, t, prefer, t->last_cpu < 0 ? MOVE_NEW : MOVE_WAKE, true);
    }
    cpu_enqueue(s, &s->cpus[to], t, RUNQ_NEW);
    sim_event_add(s, s->now, EV_NOTICE, 0, &s->cpus[to], NULL);
}
