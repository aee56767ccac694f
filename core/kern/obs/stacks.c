#include "core/kern/obs/stacks.h"

#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/mm/mm.h"

#define PROBES 16

static struct stack_table *tables[MAX_CPUS];
static bool open; /* stacks may be added */
static struct {
    u32 flag; /* the CPU uses its table */
} __cacheline_aligned busy[MAX_CPUS];

/* Multiplication spreads a word over the higher bits, the rotation brings them down for the next one. */
static u32 hash_words(const u64 *words, u32 n)
{
    u64 h = n;
    for (u32 i = 0; i < n; i++) {
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15ull;
        h = h << 31 | h >> 33;
    }
    return (u32)(h ^ h >> 32);
}

static bool same_words(const u64 *a, const u64 *b, u32 n)
{
    for (u32 i = 0; i < n; i++) {
        if (a[i] != b[i]) {
            return false;
        }
    }
    return true;
}

static struct stack_entry *find(struct stack_table *t, const u64 *words, u32 n, u32 hash)
{
    for (u32 i = 0; i < PROBES; i++) {
        struct stack_entry *e = &t->slots[(hash + i) & (STACK_SLOTS - 1)];
        if (e->words == 0) {
            return e;
        }
        if (e->hash == hash && e->words == n && same_words(&t->data[e->first], words, n)) {
            return e;
        }
    }
    return NULL;
}

/* The stack's entry, made if it is new; NULL: no place. */
static struct stack_entry *place(struct stack_table *t, const u64 *words, u32 n)
{
    u32 hash = hash_words(words, n);
    struct stack_entry *e = find(t, words, n, hash);
    if (e && e->words == 0) {
        if (n > STACK_WORDS - t->used) {
            return NULL;
        }
        *e = (struct stack_entry){ .hash = hash, .first = t->used, .words = n };
        memcpy(&t->data[t->used], words, n * sizeof(u64));
        t->used += n;
    }
    return e;
}

void stack_add(struct stack_table *t, const u64 *words, u32 n, u64 value)
{
    struct stack_entry *e = place(t, words, n);
    if (!e) {
        t->lost_count++;
        t->lost_sum += value;
        return;
    }
    e->count++;
    e->sum += value;
    e->max = MAX(e->max, value);
}

bool stack_merge(struct stack_table *t, const u64 *words, u32 n, const struct stack_entry *sums)
{
    struct stack_entry *e = place(t, words, n);
    if (e) {
        e->count += sums->count;
        e->sum += sums->sum;
        e->max = MAX(e->max, sums->max);
    }
    return e != NULL;
}

void stack_name(u64 out[2], const char name[THREAD_NAME_MAX])
{
    out[0] = out[1] = 0;
    memcpy(out, name, strnlen(name, THREAD_NAME_MAX));
}

int stacks_start(void)
{
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        tables[cpu] = kzalloc(sizeof(*tables[cpu]));
        if (!tables[cpu]) {
            stacks_finish(NULL, NULL);
            return -ENOMEM;
        }
    }
    STORE_RELEASE(open, true);
    return 0;
}

struct stack_table *stacks_get(void)
{
    u32 cpu = this_cpu()->cpu;
    /* Both sequentially consistent: either stop sees busy, or open is seen to be false here. */
    __atomic_store_n(&busy[cpu].flag, 1, __ATOMIC_SEQ_CST);
    if (!__atomic_load_n(&open, __ATOMIC_SEQ_CST)) {
        stacks_put();
        return NULL;
    }
    return tables[cpu];
}

void stacks_put(void)
{
    __atomic_store_n(&busy[this_cpu()->cpu].flag, 0, __ATOMIC_RELEASE);
}

void stacks_stop(void)
{
    __atomic_store_n(&open, false, __ATOMIC_SEQ_CST);
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        while (__atomic_load_n(&busy[cpu].flag, __ATOMIC_SEQ_CST)) {
            arch_cpu_relax();
        }
    }
}

void stacks_losses(struct stack_losses *out)
{
    *out = (struct stack_losses){ 0, 0 };
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        if (tables[cpu]) {
            out->count += tables[cpu]->lost_count;
            out->sum += tables[cpu]->lost_sum;
        }
    }
}

/* Adds what the CPUs from `cpu` on have of this stack, and takes it from them. */
static void gather(u32 cpu, const u64 *words, struct stack_entry *sums)
{
    for (; cpu < sched_num_cpus(); cpu++) {
        struct stack_entry *e = find(tables[cpu], words, sums->words, sums->hash);
        if (e && e->words && e->count) {
            sums->count += e->count;
            sums->sum += e->sum;
            sums->max = MAX(sums->max, e->max);
            e->count = 0;
        }
    }
}

void stacks_finish(void (*fn)(const u64 *words, u32 n, const struct stack_entry *sums, void *arg), void *arg)
{
    for (u32 cpu = 0; fn && cpu < sched_num_cpus(); cpu++) {
        for (u32 i = 0; i < STACK_SLOTS; i++) {
            struct stack_entry sums = tables[cpu]->slots[i];
            const u64 *words = &tables[cpu]->data[sums.first];
            if (sums.words && sums.count) {
                gather(cpu + 1, words, &sums);
                fn(words, sums.words, &sums, arg);
            }
        }
    }
    for (u32 cpu = 0; cpu < sched_num_cpus(); cpu++) {
        kfree(tables[cpu]);
        tables[cpu] = NULL;
    }
}
