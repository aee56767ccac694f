/* Names of code addresses. */
#include "core/base/string.h"
#include "core/base/symbols.h"
#include "core/kern/elf.h"
#include "core/kern/symbol.h"

static const struct proc *owner_of(u64 pc)
{
    for (u32 i = 0; i < MAX_PROCS; i++) {
        const struct proc *p = &procs[i];
        if (READ_ONCE(p->state) >= PROC_RUNNING && pc >= p->image_start && pc < p->image_end) {
            return p;
        }
    }
    return NULL;
}

static const char *find(const struct proc *p, u64 pc, u64 *offset)
{
    if (pc >= APP_MAX) {
        return sym_lookup(pc, offset);
    }
    if (!p || pc < p->image_start || pc >= p->image_end) {
        p = owner_of(pc);
    }
    return p ? elf_symbol(p->elf, p->elf_size, pc - p->load_bias, offset) : NULL;
}

const char *symbol_name(const struct proc *p, u64 pc, char buf[SYMBOL_BYTES])
{
    u64 offset = 0;
    const char *name = find(p, pc, &offset);
    if (name) {
        str_format(buf, SYMBOL_BYTES, "%s+0x%lx", name, offset);
    } else {
        str_copy(buf, "?", SYMBOL_BYTES);
    }
    return buf;
}
