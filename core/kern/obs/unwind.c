#include "core/kern/obs/unwind.h"

#include "core/base/string.h"
#include "core/kern/elf_format.h"

#define REGS_BYTES 512

/* ---- memory, read through the page tables ----
 *
 * Reads go to the direct map, which never faults: a translation that has become stale gives wrong words, nothing worse. That of
 * code is remembered from one call to the next, since code stays where it is; that of stacks within a call. */

struct page_view {
    u64 page; /* address | 1 once it has been looked up */
    const u8 *data;
};

#define CODE_VIEWS 16u /* pages of code that a CPU remembers: those of the server's hot paths */

static struct {
    struct page_view pages[CODE_VIEWS];
} __cacheline_aligned code_views[MAX_CPUS];

struct memory {
    struct page_view stack;
    struct page_view *code; /* CODE_VIEWS of them */
};

/* Interrupts are off: the CPU's memory of code is used by one walk at a time. */
static struct memory new_memory(void)
{
    return (struct memory){ .code = code_views[this_cpu()->cpu].pages };
}

static const u8 *view(struct page_view *v, u64 addr)
{
    u64 page = ALIGN_DOWN(addr, PAGE_SIZE);
    if (v->page != (page | 1)) {
        paddr_t pa = addr >= APP_MIN && (addr < APP_MAX || addr >= DIRECT_MAP_BASE) ? arch_pt_lookup(page) : 0;
        /* Only RAM is in the direct map: device memory must not be read. */
        v->data = pa && arch_pt_lookup(DIRECT_MAP_BASE + pa) == pa ? phys_to_virt(pa) : NULL;
        v->page = page | 1;
    }
    return v->data ? v->data + (addr - page) : NULL;
}

static bool read_word(void *arg, u64 addr, u64 *value)
{
    struct memory *m = arg;
    const u8 *at = IS_ALIGNED(addr, sizeof(u64)) ? view(&m->stack, addr) : NULL;
    if (!at) {
        return false;
    }
    *value = READ_ONCE(*(const u64 *)(const void *)at);
    return true;
}

bool unwind_read_word(u64 addr, u64 *value)
{
    struct memory m = { 0 };
    return read_word(&m, addr, value);
}

static bool read_code(void *arg, u64 pc, u8 before[UNWIND_CALL_BYTES])
{
    struct memory *m = arg;
    u64 from = pc - UNWIND_CALL_BYTES;
    const u8 *at = view(&m->code[from / PAGE_SIZE % CODE_VIEWS], from);
    size_t here = MIN((size_t)(PAGE_SIZE - from % PAGE_SIZE), (size_t)UNWIND_CALL_BYTES);
    if (!at) {
        return false;
    }
    memcpy(before, at, here);
    if (here < UNWIND_CALL_BYTES) {
        at = view(&m->code[(from / PAGE_SIZE + 1) % CODE_VIEWS], from + here);
        if (!at) {
            return false;
        }
        memcpy(before + here, at, UNWIND_CALL_BYTES - here);
    }
    return true;
}

/* ---- kernel frames ---- */

/* Where the kernel's frames end: application code that was left by a system call or an interrupt. */
struct entry {
    u64 pc, fp; /* pc 0: there is none */
};

static size_t walk_kernel(struct memory *m, u64 fp, u64 *pcs, size_t max, struct entry *entry)
{
    size_t n = 0;
    u64 next, pc;
    *entry = (struct entry){ 0, 0 };
    while (n < max && fp >= DIRECT_MAP_BASE && read_word(m, fp, &next) && read_word(m, fp + sizeof(u64), &pc) && pc) {
        if (pc < APP_MAX) {
            *entry = (struct entry){ pc, next };
            break;
        }
        pcs[n++] = pc;
        if (next == fp) {
            break;
        }
        fp = next;
    }
    return n;
}

/* Copies the registers that k's system call saved: word by word, since the thread may end meanwhile. */
static bool copy_regs(struct memory *m, const struct kthread *k, u64 words[REGS_BYTES / sizeof(u64)])
{
    u64 from = (u64)(uintptr_t)READ_ONCE(k->regs);
    size_t bytes = arch_regs_size();
    if (!from || bytes > REGS_BYTES) {
        return false;
    }
    for (size_t i = 0; i < bytes / sizeof(u64); i++) {
        if (!read_word(m, from + i * sizeof(u64), &words[i])) {
            return false;
        }
    }
    return true;
}

/* Application frames of a thread that left application code at entry->pc; 0 if that was not by its system call. */
/* Where the code of a process lies: its executable segment, from the file that it was loaded from. */
static struct code_range {
    u64 start, end;
} code_ranges[MAX_PROCS];

static struct code_range find_code(const struct proc *p)
{
    struct elf_header h;
    struct elf_phdr segment;
    struct code_range range = { p->image_end, p->image_start };
    memcpy(&h, p->elf, sizeof(h)); /* was checked when it was loaded */
    for (u32 i = 0; i < h.phnum; i++) {
        memcpy(&segment, (const u8 *)p->elf + h.phoff + i * sizeof(segment), sizeof(segment));
        if (segment.type == ELF_PT_LOAD && (segment.flags & ELF_PF_X)) {
            range.start = MIN(range.start, segment.vaddr + p->load_bias);
            range.end = MAX(range.end, segment.vaddr + segment.filesz + p->load_bias);
        }
    }
    return range;
}

static struct unwind_memory app_memory(struct memory *m, const struct kthread *k)
{
    struct code_range *range = &code_ranges[k->proc->index];
    if (unlikely(!range->end)) {
        struct code_range found = find_code(k->proc);
        range->start = found.start;
        STORE_RELEASE(range->end, found.end);
    }
    return (struct unwind_memory){ read_word, read_code, m, range->start, range->end };
}

static size_t walk_syscall(struct memory *m, struct thread *t, u64 pc, u64 *pcs, size_t max)
{
    union {
        u64 words[REGS_BYTES / sizeof(u64)];
        u8 bytes[REGS_BYTES];
    } copy;
    const struct kthread *k = thread_head(t)->app;
    const struct arch_regs *regs = (const void *)copy.bytes;
    if (!pc || !k || !max) {
        return 0;
    }
    if (t == current_thread()) {
        regs = k->regs; /* on its own stack, which stays */
    } else if (!copy_regs(m, k, copy.words)) {
        return 0;
    }
    if (!regs || arch_regs_pc(regs) != pc) {
        return 0;
    }
    struct unwind_memory memory = app_memory(m, k);
    return unwind_app(&memory, pc, arch_regs_sp(regs), arch_regs_fp(regs), pcs, max);
}

static size_t add_app(struct memory *m, struct thread *t, const struct entry *entry, u64 *pcs, size_t n, size_t max)
{
    size_t more = walk_syscall(m, t, entry->pc, pcs + n, max - n);
    const struct kthread *k = thread_head(t)->app;
    if (more == 0 && k && entry->pc && n < max) {
        /* By an interrupt: the frame pointer is all there is. */
        struct unwind_memory memory = app_memory(m, k);
        more = unwind_app(&memory, entry->pc, entry->fp, entry->fp, pcs + n, max - n);
    }
    return n + more;
}

size_t unwind_interrupted(struct thread *t, const struct arch_regs *regs, u64 *pcs, size_t max)
{
    struct memory m = new_memory();
    const struct kthread *k = thread_head(t)->app;
    if (arch_regs_in_app(regs) && k) {
        struct unwind_memory memory = app_memory(&m, k);
        return unwind_app(&memory, arch_regs_pc(regs), arch_regs_sp(regs), arch_regs_fp(regs), pcs, max);
    }
    struct entry entry;
    pcs[0] = arch_regs_pc(regs);
    size_t n = 1 + walk_kernel(&m, arch_regs_fp(regs), pcs + 1, max - 1, &entry);
    return add_app(&m, t, &entry, pcs, n, max);
}

/* The current thread's own kernel frames need no care: the kernel's chain of frame pointers is whole, its stack is mapped. */
static size_t walk_own(u64 fp, u64 *pcs, size_t max, struct entry *entry)
{
    size_t n = 0;
    *entry = (struct entry){ 0, 0 };
    u64 start = fp, low = fp;
    while (n < max && fp >= low && fp - start < KSTACK_SIZE && IS_ALIGNED(fp, sizeof(u64))) {
        const u64 *frame = (const u64 *)fp;
        if (frame[1] < APP_MAX) {
            *entry = (struct entry){ frame[1], frame[0] };
            break;
        }
        pcs[n++] = frame[1];
        low = fp + 1;
        fp = frame[0];
    }
    return n;
}

size_t unwind_current(u64 fp, u64 *pcs, size_t max)
{
    struct entry entry;
    irqflags_t flags = arch_irq_save();
    struct memory m = new_memory();
    size_t n = walk_own(fp, pcs, max, &entry);
    n = add_app(&m, current_thread(), &entry, pcs, n, max);
    arch_irq_restore(flags);
    return n;
}

static size_t walk_waiting(struct thread *t, const struct thread_info *info, u64 *pcs, size_t max)
{
    struct thread_info again;
    struct memory m = new_memory();
    size_t n = 0;
    while (n < info->num_pcs && n < max && info->pcs[n] >= APP_MAX) {
        pcs[n] = info->pcs[n];
        n++;
    }
    if (n == info->num_pcs || n == max) {
        return n;
    }
    size_t more = walk_syscall(&m, t, info->pcs[n], pcs + n, max - n);
    if (more == 0) {
        while (n + more < info->num_pcs && n + more < max) {
            pcs[n + more] = info->pcs[n + more];
            more++;
        }
    }
    thread_info(t, &again);
    return again.num_pcs > 0 && again.switches == info->switches ? n + more : 0;
}

size_t unwind_waiting(struct thread *t, struct thread_info *info, u64 *pcs, size_t max)
{
    thread_info(t, info);
    irqflags_t flags = arch_irq_save();
    size_t n = walk_waiting(t, info, pcs, max);
    arch_irq_restore(flags);
    return n;
}
