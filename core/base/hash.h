/* Mixing of words into hash values.  Not keyed: for tables whose keys nobody outside chooses. */
#ifndef WEIR_CORE_BASE_HASH_H
#define WEIR_CORE_BASE_HASH_H

#include "core/base/types.h"

/* Bijective; every input bit changes every output bit with probability near 1/2. Constants:
 * finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * 2014). */
static inline u64 mix64(u64 x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebull;
    x ^= x >> 31;
    return x;
}

#endif
