#include "core/mm/residency.h"

#include "core/base/log.h"
#include "core/base/string.h"
#include "core/mm/mm.h"

/* Three levels: 256 x 512 GiB, 512 x 1 GiB, 512 x 2 MiB. Levels 2 and 3 are made on first use and
 * stay: 1 KiB for each GiB that was ever touched. */
#define REGION_SHIFT 21
#define LEAF_BITS    9
#define MID_BITS     9
#define TOP_ENTRIES  256

struct leaf {
    u16 pages[1 << LEAF_BITS];
};

struct mid {
    struct leaf *leaves[1 << MID_BITS];
};

static struct mid *top[TOP_ENTRIES];

#define LEAF_SPAN (1ull << (REGION_SHIFT + LEAF_BITS))
#define MID_SPAN  (LEAF_SPAN << MID_BITS)

static u32 top_index(u64 va)
{
    return (u32)(va / MID_SPAN);
}

static u32 mid_index(u64 va)
{
    return (u32)(va / LEAF_SPAN) & ((1u << MID_BITS) - 1);
}

static u32 leaf_index(u64 va)
{
    return (u32)(va >> REGION_SHIFT) & ((1u << LEAF_BITS) - 1);
}

void residency_init(void)
{
    memset(top, 0, sizeof(top));
}

static struct leaf *leaf_of(u64 va)
{
    struct mid *m = top[top_index(va)];
    return m != NULL ? m->leaves[mid_index(va)] : NULL;
}

bool residency_prepare(u64 va)
{
    struct mid **m = &top[top_index(va)];
    if (*m == NULL && (*m = kzalloc(sizeof(**m))) == NULL) {
        return false;
    }
    struct leaf **l = &(*m)->leaves[mid_index(va)];
    return *l != NULL || (*l = kzalloc(sizeof(**l))) != NULL;
}

void residency_add(u64 va)
{
    leaf_of(va)->pages[leaf_index(va)]++;
}

void residency_drop(u64 va)
{
    u16 *pages = &leaf_of(va)->pages[leaf_index(va)];
    DEBUG_ASSERT(*pages > 0);
    (*pages)--;
}

u64 residency_next(u64 va, u64 end)
{
    while (va < end) {
        if (top[top_index(va)] == NULL) {
            va = ALIGN_DOWN(va, MID_SPAN) + MID_SPAN;
            continue;
        }
        const struct leaf *l = leaf_of(va);
        if (l == NULL) {
            va = ALIGN_DOWN(va, LEAF_SPAN) + LEAF_SPAN;
        } else if (l->pages[leaf_index(va)] == 0) {
            va = ALIGN_DOWN(va, RESIDENCY_REGION) + RESIDENCY_REGION;
        } else {
            return va;
        }
    }
    return end;
}
