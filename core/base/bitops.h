/* Bit operations on words and CPU sets.  Any context. */
#ifndef WEIR_CORE_BASE_BITOPS_H
#define WEIR_CORE_BASE_BITOPS_H

#include "core/base/types.h"

/* Number of the lowest / highest set bit; v must not be 0. */
static inline u32 bit_lowest(u64 v)
{
    return (u32)__builtin_ctzll(v);
}

static inline u32 bit_highest(u64 v)
{
    return 63 - (u32)__builtin_clzll(v);
}

/* Number of set bits. Kernighan's loop would depend on the value; this one is branch-free without a
 * popcnt instruction, which the oldest supported CPUs lack. */
static inline u32 bit_count(u64 v)
{
    v -= (v >> 1) & 0x5555555555555555ull;
    v = (v & 0x3333333333333333ull) + ((v >> 2) & 0x3333333333333333ull);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0full;
    return (u32)((v * 0x0101010101010101ull) >> 56);
}

/* Smallest order with 2^order >= v; v >= 1. */
static inline u32 order_for(u64 v)
{
    return v <= 1 ? 0 : bit_highest(v - 1) + 1;
}

/* Bits of the CPUs 0..n-1; n 0..64. */
static inline cpumask_t cpumask_first(u32 n)
{
    return n >= 64 ? ~0ull : BIT(n) - 1;
}

#define for_each_bit(bit, mask)                                                                    \
    for (u64 rest_##bit = (mask), bit; rest_##bit != 0 && ((bit = bit_lowest(rest_##bit)), 1);     \
         rest_##bit &= rest_##bit - 1)

#endif
