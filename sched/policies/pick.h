/* Choices that more than one policy makes: ties broken without bias, the next most migratable thread, the quick look that
 * lets a balanced pass end early.  Pure and inline, like everything a policy may use. */
#ifndef WEIR_SCHED_POLICIES_PICK_H
#define WEIR_SCHED_POLICIES_PICK_H

#include "sched/policies/limits.h"
#include "sched/policy.h"

/* 32 well-mixed bits from the view's seed and a counter (the finaliser of SplitMix64). */
static inline uint32_t pick_mix(uint64_t seed, uint64_t count)
{
    uint64_t z = seed + (count + 1) * 0x9e3779b97f4a7c15ull;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return (uint32_t)(z >> 32);
}

/* Random bits to a number in 0..n-1 without division; the bias is below n / 2^32. */
static inline uint32_t pick_below(uint32_t random, uint32_t n)
{
    return (uint32_t)(((uint64_t)random * n) >> 32);
}

/* Number of set bits.  Written out: the compiler's builtin becomes a library call on a CPU without popcnt. */
static inline uint32_t pick_count_bits(uint64_t bits)
{
    bits -= (bits >> 1) & 0x5555555555555555ull;
    bits = (bits & 0x3333333333333333ull) + ((bits >> 2) & 0x3333333333333333ull);
    bits = (bits + (bits >> 4)) & 0x0f0f0f0f0f0f0f0full;
    return (uint32_t)((bits * 0x0101010101010101ull) >> 56);
}

/* Place of the k-th set bit (k from 0); `bits` has more than k. */
static inline uint32_t pick_nth_bit(uint64_t bits, uint32_t k)
{
    while (k-- > 0) {
        bits &= bits - 1;
    }
    return (uint32_t)__builtin_ctzll(bits);
}

/* Would a thread be better off on a CPU of load `there` than on one of load `here` that it is counted in?  That is: does
 * moving it make the larger of the two relative loads strictly smaller?  Each such move lowers the sum of pairwise
 * differences, which is why repeated passes come to an end (the argument of "Work conservation", HotOS'17). */
static inline bool pick_worth_moving(uint32_t here, uint32_t cap_here, uint32_t there, uint32_t cap_there)
{
    return policy_less_loaded(there + 1, cap_there, here, cap_here);
}

/* Is there any CPU that a thread of `self` might be worth moving to?  May say yes wrongly when capacities differ, never no
 * wrongly: it measures the others as if they had full capacity, which needs one comparison a CPU.  Unrolled by hand so that
 * a balanced pass stays within 50 + 6n instructions (tests/unit/policies counts them). */
static inline bool pick_any_target(const struct policy_view *view, uint32_t self_load, uint32_t self_cap)
{
    const struct policy_cpu *cpu = view->cpus;
    const struct policy_cpu *end = cpu + view->num_cpus;
    const struct policy_cpu *end4 = cpu + (view->num_cpus & ~3u);
    uint32_t limit; /* a load below it is worth a look */

    if (self_cap == 0) {
        return true;
    }
    /* (load + 1) / FULL < self_load / self_cap  <=>  load + 1 < ceil(self_load * FULL / self_cap) */
    limit = (uint32_t)(((uint64_t)self_load * POLICY_CAPACITY_FULL + self_cap - 1) / self_cap);
    if (limit < 2) {
        return false;
    }
    limit -= 1;
    while (cpu != end4) {
        if (policy_load(&cpu[0]) < limit || policy_load(&cpu[1]) < limit || policy_load(&cpu[2]) < limit ||
            policy_load(&cpu[3]) < limit) {
            return true;
        }
        cpu += 4;
    }
    while (cpu != end) {
        if (policy_load(cpu) < limit) {
            return true;
        }
        cpu++;
    }
    return false;
}

/* How willingly thread `index` moves; larger is more so, and no two threads of a view are equal.  In this order: one whose
 * cache is cold, one that has moved less often (so that one thread is not thrown to and fro), one farther back in the queue
 * (it would wait longest here). */
static inline uint64_t pick_migratability(const struct policy_view *view, uint32_t index)
{
    const struct policy_thread *thread = &view->threads[index];
    uint32_t moved = thread->migrations < 0x7fffffffu ? thread->migrations : 0x7fffffffu;
    uint64_t cold = thread->last_cpu == POLICY_NO_CPU || view->now_ns - thread->last_ran_ns >= POLICY_CACHE_HOT_NS;

    return cold << 63 | (uint64_t)(0x7fffffffu - moved) << 32 | index;
}

/* The most migratable thread below *bound, which is lowered to it: repeated calls walk all threads from the most to the
 * least migratable without a table of those already seen.  Start with *bound = UINT64_MAX.  False when none is left. */
static inline bool pick_next_thread(const struct policy_view *view, uint64_t *bound, uint32_t *index)
{
    uint64_t best = 0;
    bool found = false;

    for (uint32_t i = 0; i < view->num_threads; i++) {
        uint64_t score = pick_migratability(view, i);

        if (score < *bound && (!found || score > best)) {
            best = score;
            found = true;
        }
    }
    if (found) {
        *bound = best;
        *index = (uint32_t)best;
    }
    return found;
}

#endif
