/* The first thread's stack: what Linux's ABI puts there before a program starts.
 *
 * From the stack pointer up: argc, argv..., 0, envp..., 0, auxiliary vector, then the strings. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/abi.h"
#include "core/kern/random.h"
#include "core/kern/start.h"
#include "core/mm/mm.h"

enum aux {
    AT_NULL = 0,
    AT_PHDR = 3,
    AT_PHENT = 4,
    AT_PHNUM = 5,
    AT_PAGESZ = 6,
    AT_BASE = 7,
    AT_FLAGS = 8,
    AT_ENTRY = 9,
    AT_UID = 11,
    AT_EUID = 12,
    AT_GID = 13,
    AT_EGID = 14,
    AT_PLATFORM = 15,
    AT_HWCAP = 16,
    AT_CLKTCK = 17,
    AT_SECURE = 23,
    AT_RANDOM = 25,
    AT_EXECFN = 31,
    AT_SYSINFO_EHDR = 33,
    AT_MINSIGSTKSZ = 51,
};

#define RANDOM_BYTES 16
#define PHDR_BYTES 56
#define CLOCK_TICKS 100
#define STACK_ALIGN 16ull
#define MAX_WORDS (1 + APP_MAX_ARGS + 1 + APP_MAX_ENV + 1 + 2 * 24)

struct builder {
    u64 base;          /* address of strings[0] */
    u64 words[MAX_WORDS];
    size_t num_words;
    char strings[APP_MAX_STRINGS];
    size_t used;
    bool full;
};

static void push(struct builder *b, u64 word)
{
    if (b->num_words < MAX_WORDS) {
        b->words[b->num_words++] = word;
    } else {
        b->full = true;
    }
}

static u64 add_bytes(struct builder *b, const void *bytes, size_t n)
{
    if (n > APP_MAX_STRINGS - b->used) {
        b->full = true;
        return 0;
    }
    memcpy(b->strings + b->used, bytes, n);
    b->used += n;
    return b->base + b->used - n;
}

static u64 add_string(struct builder *b, const char *s)
{
    return add_bytes(b, s, strlen(s) + 1);
}

static void push_aux(struct builder *b, enum aux tag, u64 value)
{
    push(b, tag);
    push(b, value);
}

static void push_aux_vector(struct builder *b, const struct proc *p)
{
    u8 random[RANDOM_BYTES];
    random_bytes(random, sizeof(random));
    push_aux(b, AT_RANDOM, add_bytes(b, random, sizeof(random)));
    push_aux(b, AT_PLATFORM, add_string(b, ABI_MACHINE));
    push_aux(b, AT_EXECFN, add_string(b, p->path));
    if (p->phdr) {
        push_aux(b, AT_PHDR, p->phdr);
        push_aux(b, AT_PHENT, PHDR_BYTES);
        push_aux(b, AT_PHNUM, p->phnum);
    }
    push_aux(b, AT_PAGESZ, PAGE_SIZE);
    push_aux(b, AT_BASE, 0);
    push_aux(b, AT_FLAGS, 0);
    push_aux(b, AT_ENTRY, p->entry);
    push_aux(b, AT_UID, 0);
    push_aux(b, AT_EUID, 0);
    push_aux(b, AT_GID, 0);
    push_aux(b, AT_EGID, 0);
    push_aux(b, AT_HWCAP, abi_hwcap());
    push_aux(b, AT_CLKTCK, CLOCK_TICKS);
    push_aux(b, AT_SECURE, 0);
    push_aux(b, AT_MINSIGSTKSZ, ABI_MIN_SIGNAL_STACK);
    if (vdso_address()) {
        push_aux(b, AT_SYSINFO_EHDR, vdso_address());
    }
    push_aux(b, AT_NULL, 0);
}

static void fill(struct builder *b, const struct proc *p, const struct proc_spec *spec)
{
    push(b, (u64)spec->argc);
    for (int i = 0; i < spec->argc; i++) {
        push(b, add_string(b, spec->argv[i]));
    }
    push(b, 0);
    for (int i = 0; i < spec->envc; i++) {
        push(b, add_string(b, spec->envp[i]));
    }
    push(b, 0);
    push_aux_vector(b, p);
}

int stack_build(struct proc *p, const struct proc_spec *spec, u64 *sp)
{
    i64 stack = mm_map(0, APP_STACK_SIZE, MM_READ | MM_WRITE, MM_STACK, p);
    if (stack < 0) {
        log_error("weir: %s: no room for a stack", p->path);
        return (int)stack;
    }
    struct builder *b = kzalloc(sizeof(*b));
    if (!b) {
        return -ENOMEM;
    }
    b->base = (u64)stack + APP_STACK_SIZE - APP_MAX_STRINGS;
    fill(b, p, spec);
    size_t bytes = b->num_words * sizeof(u64);
    *sp = ALIGN_DOWN(b->base - bytes, STACK_ALIGN);
    int result = 0;
    if (b->full) {
        log_error("weir: %s: arguments and environment are too long (more than %d bytes)", p->path,
                  APP_MAX_STRINGS);
        result = -E2BIG;
    } else if (!arch_copy_to_app(b->base, b->strings, b->used) ||
               !arch_copy_to_app(*sp, b->words, bytes)) {
        log_error("weir: %s: no memory for its stack", p->path);
        result = -ENOMEM;
    }
    kfree(b);
    return result;
}
