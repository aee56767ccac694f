#include "core/mm/memrange.h"

#include "core/base/param.h"
#include "core/base/string.h"

static bool insert_at(struct memrange_set *set, u32 i, u64 start, u64 end)
{
    if (set->count == MEMRANGE_MAX) {
        return false;
    }
    memmove(&set->r[i + 1], &set->r[i], (set->count - i) * sizeof(set->r[0]));
    set->r[i] = (struct memrange){start, end};
    set->count++;
    return true;
}

static void delete_at(struct memrange_set *set, u32 i)
{
    set->count--;
    memmove(&set->r[i], &set->r[i + 1], (set->count - i) * sizeof(set->r[0]));
}

bool memrange_add(struct memrange_set *set, u64 start, u64 end)
{
    if (start >= end) {
        return true;
    }
    u32 i = 0;
    while (i < set->count && set->r[i].end < start) {
        i++;
    }
    while (i < set->count && set->r[i].start <= end) {
        start = MIN(start, set->r[i].start);
        end = MAX(end, set->r[i].end);
        delete_at(set, i);
    }
    return insert_at(set, i, start, end);
}

bool memrange_remove(struct memrange_set *set, u64 start, u64 end)
{
    if (start >= end) {
        return true;
    }
    for (u32 i = 0; i < set->count;) {
        struct memrange *r = &set->r[i];
        if (r->end <= start || r->start >= end) {
            i++;
        } else if (r->start < start && r->end > end) {
            u64 tail = r->end;
            if (set->count == MEMRANGE_MAX) {
                return false;
            }
            r->end = start;
            return insert_at(set, i + 1, end, tail);
        } else if (r->start < start) {
            r->end = start;
            i++;
        } else if (r->end > end) {
            r->start = end;
            i++;
        } else {
            delete_at(set, i);
        }
    }
    return true;
}

void memrange_trim_to_pages(struct memrange_set *set)
{
    for (u32 i = 0; i < set->count;) {
        struct memrange *r = &set->r[i];
        r->start = ALIGN_UP(r->start, PAGE_SIZE);
        r->end = ALIGN_DOWN(r->end, PAGE_SIZE);
        if (r->start >= r->end) {
            delete_at(set, i);
        } else {
            i++;
        }
    }
}

u64 memrange_bytes(const struct memrange_set *set)
{
    u64 sum = 0;
    for (u32 i = 0; i < set->count; i++) {
        sum += set->r[i].end - set->r[i].start;
    }
    return sum;
}
