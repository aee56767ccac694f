#include "arch/x86_64/boot_util.h"

#include "core/base/param.h"

#define ADDRESS_LIMIT (~0ull & ~(PAGE_SIZE - 1))

static u64 range_end(const struct boot_range *r)
{
    return r->size > ADDRESS_LIMIT - MIN(r->base, ADDRESS_LIMIT) ? ADDRESS_LIMIT
                                                                 : r->base + r->size;
}

static void sort(struct boot_range *r, u32 n)
{
    for (u32 i = 1; i < n; i++) { /* insertion: maps are short and nearly sorted */
        struct boot_range key = r[i];
        u32 j = i;
        for (; j > 0 && r[j - 1].base > key.base; j--) {
            r[j] = r[j - 1];
        }
        r[j] = key;
    }
}

u32 boot_ranges_merge(struct boot_range *r, u32 n)
{
    u32 kept = 0;
    sort(r, n);
    for (u32 i = 0; i < n; i++) {
        u64 end = range_end(&r[i]);
        if (r[i].base >= end) {
            continue;
        }
        if (kept > 0 && r[i].base <= range_end(&r[kept - 1])) {
            struct boot_range *last = &r[kept - 1];
            last->size = MAX(range_end(last), end) - last->base;
        } else {
            r[kept] = r[i];
            r[kept++].size = end - r[i].base;
        }
    }
    return kept;
}

u64 boot_ranges_carve(struct boot_range *r, u32 *n, u32 max, u64 base, u64 size)
{
    struct boot_range hole = {.base = base, .size = size};
    u64 lost = 0, from = ALIGN_DOWN(base, PAGE_SIZE), hole_end = range_end(&hole);
    u64 to = hole_end >= ADDRESS_LIMIT ? ADDRESS_LIMIT : ALIGN_UP(hole_end, PAGE_SIZE);
    if (size == 0) {
        return 0;
    }
    for (u32 i = 0; i < *n;) {
        u64 start = r[i].base, end = range_end(&r[i]);
        if (r[i].type != BOOT_MEM_USABLE || to <= start || from >= end) {
            i++;
            continue;
        }
        u64 before = from > start ? from - start : 0, after = end > to ? end - to : 0;
        if (before && after && *n < max) {
            r[(*n)++] = (struct boot_range){.base = to, .size = after, .type = BOOT_MEM_USABLE};
            r[i++].size = before;
        } else if (before || after) {
            lost += before && after ? MIN(before, after) : 0;
            bool keep_after = after > before;
            r[i].base = keep_after ? to : start;
            r[i++].size = keep_after ? after : before;
        } else {
            r[i] = r[--(*n)];
        }
    }
    sort(r, *n);
    return lost;
}

u32 boot_ranges_usable(const struct boot_range *in, u32 num_in, struct boot_range *out, u32 max,
                       u64 *lost)
{
    u32 n = 0;
    *lost = 0;
    for (u32 i = 0; i < num_in; i++) {
        if (in[i].type != BOOT_MEM_USABLE) {
            continue;
        }
        u64 end = ALIGN_DOWN(range_end(&in[i]), PAGE_SIZE);
        u64 base = in[i].base > ADDRESS_LIMIT ? ADDRESS_LIMIT : ALIGN_UP(in[i].base, PAGE_SIZE);
        if (base >= end) {
            continue;
        }
        if (n == max) {
            *lost += end - base;
            continue;
        }
        out[n++] = (struct boot_range){.base = base, .size = end - base, .type = BOOT_MEM_USABLE};
    }
    n = boot_ranges_merge(out, n);
    for (u32 i = 0; i < num_in; i++) {
        if (in[i].type != BOOT_MEM_USABLE) {
            *lost += boot_ranges_carve(out, &n, max, in[i].base, in[i].size);
        }
    }
    return n;
}

bool boot_copy_cmdline(char *dst, size_t dst_size, const char *src, size_t readable)
{
    size_t i = 0;
    for (; i + 1 < dst_size && i < readable && src[i]; i++) {
        u8 c = (u8)src[i];
        dst[i] = c < ' ' || c == 127 ? ' ' : (char)c;
    }
    dst[i] = 0;
    return i >= readable || src[i] == 0;
}
