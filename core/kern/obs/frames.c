#include "core/kern/obs/frames.h"

#include "core/base/hash.h"
#include "core/base/string.h"
#include "core/kern/obs/tunables.h"
#include "core/mm/mm.h"

#define UNKNOWN UINT64_MAX

struct frame {
    u64 pc;
    u64 offset; /* from the function's start; UNKNOWN: it has no name */
    const struct proc *proc;
    char name[SYMBOL_BYTES];
};

struct frames {
    bool offsets;
    struct frame cache[SYMBOL_CACHE]; /* direct-mapped */
};

struct frames *frames_create(bool offsets)
{
    struct frames *f = kzalloc(sizeof(struct frames));
    if (f) {
        f->offsets = offsets;
    }
    return f;
}

void frames_free(struct frames *f)
{
    kfree(f);
}

/* Separators of folded stacks have no place in a name. */
static void clean(char *name)
{
    for (; *name; name++) {
        if (*name == ';' || *name == ' ' || (u8)*name < ' ') {
            *name = '_';
        }
    }
}

/* Cuts "+0x12" off a name, and returns it. */
static u64 cut_offset(char *name)
{
    char *plus = NULL;
    u64 offset;
    for (char *c = name; *c; c++) {
        plus = *c == '+' ? c : plus;
    }
    if (!plus || str_parse_u64(plus + 1, strlen(plus + 1), &offset) < 0) {
        return UNKNOWN;
    }
    *plus = '\0';
    return offset;
}

static struct frame *look_up(struct frames *f, const struct proc *p, u64 pc, bool is_return)
{
    /* A call at a function's end returns to what lies behind it: the call's last byte is looked up. */
    u64 at = is_return ? pc - 1 : pc;
    struct frame *frame = &f->cache[mix64(at) & (SYMBOL_CACHE - 1)];
    if (frame->pc == at && frame->proc == p && frame->name[0]) {
        return frame;
    }
    frame->pc = at;
    frame->proc = p;
    symbol_name(p, at, frame->name);
    frame->offset = cut_offset(frame->name);
    if (frame->offset == UNKNOWN) {
        str_format(frame->name, SYMBOL_BYTES, "0x%lx", pc);
    } else if (f->offsets) {
        size_t n = strlen(frame->name);
        str_format(frame->name + n, SYMBOL_BYTES - n, "+0x%lx", frame->offset + (is_return ? 1 : 0));
    }
    clean(frame->name);
    return frame;
}

const char *frames_name(struct frames *f, const struct proc *p, u64 pc, bool is_return)
{
    return look_up(f, p, pc, is_return)->name;
}

u64 frames_start(struct frames *f, const struct proc *p, u64 pc, bool is_return)
{
    const struct frame *frame = look_up(f, p, pc, is_return);
    return frame->offset == UNKNOWN ? pc : frame->pc - frame->offset;
}
