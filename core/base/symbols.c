#include "core/base/symbols.h"

/* Made by scripts/mksyms in a second link; absent in the first. */
struct kernel_symbols {
    u64 base; /* address of the first function */
    u32 count, reserved;
    struct {
        u32 offset; /* from base; ascending */
        u32 name;   /* from the end of this array */
    } entries[];
};
extern const struct kernel_symbols kernel_symbols __attribute__((weak));
extern const char __text_end[] __attribute__((weak));

const char *sym_lookup(u64 pc, u64 *offset)
{
    const struct kernel_symbols *table = &kernel_symbols;
    if (!table || table->count == 0 || pc < table->base || pc >= (u64)(uintptr_t)__text_end) {
        return NULL;
    }
    u64 distance = pc - table->base;
    u32 low = 0, high = table->count; /* entries[low] <= distance < entries[high] */
    while (high - low > 1) {
        u32 middle = low + (high - low) / 2;
        if (table->entries[middle].offset <= distance) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *offset = distance - table->entries[low].offset;
    return (const char *)&table->entries[table->count] + table->entries[low].name;
}
