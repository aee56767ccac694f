/* Application frames. Pure: memory is read through the caller's functions. */
#include "core/kern/obs/unwind.h"

/* Words of stack looked at where there is no frame pointer: the C library's frames below a system call take about 40. */
#define SCAN_WORDS 96
/* Frames found by scanning: stale return addresses must not pile up. */
#define SCAN_FRAMES 6
/* A frame lies within this many bytes of the one below: anything larger is no frame pointer. */
#define FRAME_SPAN (1ull << 20)
/* Most functions are shorter: an instruction this close behind a function's start is taken to be in it. */
#define FUNCTION_SPAN 1024ull
/* A called function and the instruction it has come to lie this close to each other, jumps to its neighbours included. */
#define CALL_SPAN 4096ull

struct app_walk {
    const struct unwind_memory *m;
    u64 *pcs;
    size_t n, max;
};

static void push(struct app_walk *w, u64 pc)
{
    if (w->n < w->max) {
        w->pcs[w->n++] = pc;
    }
}

/* target: first instruction of the function called, 0 if unknown. */
static bool is_return(const struct unwind_memory *m, u64 pc, u64 *target)
{
    u8 before[UNWIND_CALL_BYTES];
    i32 distance;
    if (pc <= m->code_start || pc > m->code_end || !m->code(m->arg, pc, before) || !unwind_is_call(before, &distance)) {
        return false;
    }
    *target = distance ? pc + (u64)(i64)distance : 0;
    return true;
}

/* Does fp point to a saved frame pointer with a return address above it, somewhere above `below`? */
static bool is_frame(const struct unwind_memory *m, u64 fp, u64 below, u64 *function)
{
    u64 ret;
    return IS_ALIGNED(fp, sizeof(u64)) && fp >= below && fp - below < FRAME_SPAN && m->word(m->arg, fp + sizeof(u64), &ret) &&
           is_return(m, ret, function);
}

static bool within(u64 pc, u64 function, u64 span)
{
    return function && pc >= function && pc - function < span;
}

/* May the function called at `target` (0: not known) have come to pc? Tells live return addresses from stale ones. */
static bool leads_to(u64 target, u64 pc)
{
    return !target || (pc >= target ? pc - target : target - pc) < CALL_SPAN;
}

/* The frames between sp and the frame that fp belongs to. Returns that frame's pointer, 0 if there is none.
 *
 * Where fp is none, a function below has saved it: among the registers right below its return address, above its local
 * variables. So the last word before a return address that looks like a frame pointer is the one. */
static u64 scan(struct app_walk *w, u64 pc, u64 sp, u64 fp)
{
    u64 function = 0, target, word, saved = 0, saved_function = 0;
    bool framed = is_frame(w->m, fp, sp, &function);
    if (framed && within(pc, function, FUNCTION_SPAN)) {
        return fp; /* the usual case: the code interrupted is the frame's own */
    }
    u32 found = 0;
    for (u32 i = 0; i < SCAN_WORDS && found < SCAN_FRAMES; i++) {
        u64 at = sp + i * sizeof(u64);
        if ((framed && at >= fp) || !w->m->word(w->m->arg, at, &word)) {
            break;
        }
        if (is_return(w->m, word, &target) && leads_to(target, pc)) {
            push(w, word);
            pc = word;
            found++;
            if (!framed && saved > at) {
                framed = true;
                fp = saved;
                function = saved_function;
            }
            if (framed && within(word, function, CALL_SPAN)) {
                break;
            }
        } else if (!framed && word > at && is_frame(w->m, word, at + sizeof(u64), &target)) {
            saved = word;
            saved_function = target;
        }
    }
    return framed ? fp : 0;
}

size_t unwind_app(const struct unwind_memory *m, u64 pc, u64 sp, u64 fp, u64 *pcs, size_t max)
{
    struct app_walk w = { m, pcs, 0, max };
    u64 next, ret, target;
    push(&w, pc);
    sp = ALIGN_DOWN(sp + sizeof(u64) - 1, sizeof(u64));
    fp = scan(&w, pc, sp, fp);
    while (fp && w.n < max && m->word(m->arg, fp, &next) && m->word(m->arg, fp + sizeof(u64), &ret) &&
           is_return(m, ret, &target)) {
        push(&w, ret);
        fp = next > fp && next - fp < FRAME_SPAN ? next : 0;
    }
    return w.n;
}
