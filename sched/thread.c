/* Thread life: creation, table, references, end. */
#include "sched/thread.h"
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/base/trace.h"
#include "core/mm/mm.h"

#define TABLE_BUCKETS 4096u /* MAX_THREADS / 8: short chains at the limit */
/* Ended threads kept with their stacks for the next creation: connections come and go by the thousand. */
#define FREE_THREADS_MAX 1024u
#define TID_LIMIT (1u << 22) /* as on Linux */

void (*thread_exit_hook)(struct thread *t);
void (*thread_free_hook)(struct thread *t);

static struct lock_class table_lock_class = { .name = "threads", .rank = RANK_THREADS, .irq = true };
/* Protects everything below. */
static struct spinlock table_lock = SPINLOCK_INIT(&table_lock_class);
static struct thread *table[TABLE_BUCKETS];
static struct list living = LIST_INIT(living);
static struct list free_threads = LIST_INIT(free_threads);      /* with stacks */
static struct list bare_threads = LIST_INIT(bare_threads);      /* memory only */
static u32 num_free, num_threads, next_id = 1;
struct thread_limits thread_limits;

static u32 new_id(void)
{
    for (;;) {
        u32 id = next_id;
        next_id = next_id + 1 == TID_LIMIT ? 2 : next_id + 1;
        struct thread *t = table[id % TABLE_BUCKETS];
        while (t && t->head.id != id) {
            t = t->hash_next;
        }
        if (!t) {
            return id;
        }
    }
}

static void table_insert(struct thread *t)
{
    t->head.id = new_id();
    t->hash_next = table[t->head.id % TABLE_BUCKETS];
    table[t->head.id % TABLE_BUCKETS] = t;
    list_push_back(&living, &t->table);
    num_threads++;
    if (num_threads > thread_limits.peak) {
        thread_limits.peak = num_threads;
    }
}

static void table_remove(struct thread *t)
{
    struct thread **link = &table[t->head.id % TABLE_BUCKETS];
    while (*link != t) {
        link = &(*link)->hash_next;
    }
    *link = t->hash_next;
    list_remove(&t->table);
    num_threads--;
}

static void free_stacks(struct thread *t)
{
    if (t->kstack) {
        kstack_free(t->kstack, KSTACK_SIZE);
    }
    if (t->irq_stack) {
        kstack_free(t->irq_stack, THREAD_IRQ_STACK_SIZE);
    }
    if (t->fault_stack) {
        kstack_free(t->fault_stack, THREAD_FAULT_STACK_SIZE);
    }
    t->kstack = t->irq_stack = t->fault_stack = 0;
}

static bool alloc_stacks(struct thread *t)
{
    t->kstack = kstack_alloc(KSTACK_SIZE);
    t->irq_stack = kstack_alloc(THREAD_IRQ_STACK_SIZE);
    t->fault_stack = kstack_alloc(THREAD_FAULT_STACK_SIZE);
    return t->kstack && t->irq_stack && t->fault_stack;
}

/* Gives back the stacks of ended threads beyond FREE_THREADS_MAX. */
static void trim_free_threads(void)
{
    for (;;) {
        irqflags_t flags = spin_lock_irq(&table_lock);
        struct thread *t = NULL;
        if (num_free > FREE_THREADS_MAX) {
            t = list_entry(list_pop_front(&free_threads), struct thread, table);
            num_free--;
        }
        spin_unlock_irq(&table_lock, flags);
        if (!t) {
            return;
        }
        free_stacks(t);
        flags = spin_lock_irq(&table_lock);
        list_push_front(&bare_threads, &t->table);
        spin_unlock_irq(&table_lock, flags);
    }
}

static struct thread *take_thread(void)
{
    irqflags_t flags = spin_lock_irq(&table_lock);
    struct list *node = list_empty(&free_threads) ? NULL : free_threads.prev;
    if (node) {
        list_remove(node);
        num_free--;
    } else {
        node = list_pop_front(&bare_threads);
    }
    spin_unlock_irq(&table_lock, flags);
    struct thread *t = node ? list_entry(node, struct thread, table) : NULL;
    if (!t) {
        static struct slab_cache *cache;
        if (!cache) {
            cache = slab_create("thread", sizeof(struct thread), 64, MEM_KERNEL);
        }
        t = cache ? slab_alloc(cache) : NULL;
        if (!t) {
            return NULL;
        }
        memset(t, 0, sizeof(*t));
        t->state = T_DEAD;
        list_init(&t->table);
        waitq_init(&t->join_waiters);
        thread_park_init(t);
    }
    if (!t->kstack && !alloc_stacks(t)) {
        free_stacks(t);
        flags = spin_lock_irq(&table_lock);
        list_push_front(&bare_threads, &t->table);
        spin_unlock_irq(&table_lock, flags);
        return NULL;
    }
    return t;
}

/* Resets what a new life must not inherit.  wake_token and the park timer may still be touched by a late waker: they are
 * left as they are, which costs at most one superfluous wakeup. */
static void reset_thread(struct thread *t, const struct thread_attr *attr)
{
    const struct domain *d = &domains[attr->domain];
    t->head = (struct thread_head){ .app = attr->app, .domain = attr->domain, .receive_cpu = -1 };
    str_copy(t->head.name, attr->name ? attr->name : "thread", sizeof(t->head.name));
    t->refs = 2; /* the creator's, and its own until it has ended and left its CPU */
    runq_entity_init(&t->entity, runq_weight_of_nice(attr->nice));
    t->nice = attr->nice;
    t->quota = attr->quota;
    list_init(&t->throttle_node);
    t->affinity = attr->affinity ? attr->affinity & d->cpus : d->cpus;
    t->cpu = t->last_cpu = d->first_cpu;
    t->ran = t->new_place = t->pinned_kernel = t->ended = false;
    t->exec_start_ns = t->burst_ns = t->runtime_ns = t->last_ran_ns = t->wait_since_ns = 0;
    t->avg_run_ns = t->migrations = 0;
    t->switches = 0;
    t->on_cpu = 0;
}

static void thread_first(void *arg)
{
    schedule_finish_first();
    struct thread *t = arg;
    t->entry(t->arg);
    thread_exit();
}

int thread_create(const struct thread_attr *attr, void (*entry)(void *arg), void *arg, struct thread **out)
{
    if (attr->domain >= num_domains || attr->nice < -20 || attr->nice > 19 ||
        (attr->affinity && !(attr->affinity & domains[attr->domain].cpus))) {
        return -EINVAL;
    }
    if (READ_ONCE(num_threads) >= MAX_THREADS) {
        __atomic_fetch_add(&thread_limits.refused, 1, __ATOMIC_RELAXED);
        return -EAGAIN;
    }
    struct thread *t = take_thread();
    if (!t) {
        __atomic_fetch_add(&thread_limits.refused, 1, __ATOMIC_RELAXED);
        return -ENOMEM;
    }
    state_move(&t->state, T_DEAD, T_NEW);
    reset_thread(t, attr);
    t->entry = entry;
    t->arg = arg;
    arch_thread_init(&t->arch, t->kstack + KSTACK_SIZE, t->irq_stack + THREAD_IRQ_STACK_SIZE,
                     t->fault_stack + THREAD_FAULT_STACK_SIZE, thread_first, t);
    if (attr->copy_fpu) {
        arch_thread_copy_fpu(&t->arch);
    } else if (attr->has_fpu) {
        arch_thread_init_fpu(&t->arch);
    }
    irqflags_t flags = spin_lock_irq(&table_lock);
    table_insert(t);
    spin_unlock_irq(&table_lock, flags);
    *out = t;
    return 0;
}

void thread_start(struct thread *t)
{
    trace_text(TRACE_CAT_SCHED, TRACE_THREAD, t->head.id, t->head.name);
    wake_new(t);
}

static void leave_table(struct thread *t)
{
    irqflags_t flags = spin_lock_irq(&table_lock);
    table_remove(t);
    spin_unlock_irq(&table_lock, flags);
}

void thread_discard(struct thread *t)
{
    state_move(&t->state, T_NEW, T_DEAD);
    leave_table(t);
    thread_put(t);
    thread_put(t);
}

void thread_exit(void)
{
    struct thread *t = current_thread();
    if (thread_exit_hook && t->head.app) {
        thread_exit_hook(t);
    }
    trim_free_threads();
    leave_table(t);
    irqflags_t flags = spin_lock_irq(&t->join_waiters.lock);
    t->ended = true;
    spin_unlock_irq(&t->join_waiters.lock, flags);
    (void)waitq_wake(&t->join_waiters, UINT32_MAX, NULL);
    trace(TRACE_CAT_SCHED, TRACE_EXIT, 0, t->head.id, 0, 0);
    arch_irq_disable();
    state_move(&t->state, T_RUNNING, T_DEAD);
    schedule();
    panic("thread %u runs after its end", t->head.id);
}

void thread_reap(struct thread *t)
{
    thread_put(t);
}

void thread_join(struct thread *t)
{
    for (;;) {
        struct waiter w;
        waitq_enter(&t->join_waiters, &w);
        if (LOAD_ACQUIRE(t->ended)) {
            waitq_leave(&t->join_waiters, &w);
            return;
        }
        while (!LOAD_ACQUIRE(w.woken)) {
            (void)thread_park_uninterruptible(NO_DEADLINE, WAIT_JOIN, t->head.id);
        }
        waitq_leave(&t->join_waiters, &w);
    }
}

void thread_get(struct thread *t)
{
    __atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
}

void thread_put(struct thread *t)
{
    if (__atomic_sub_fetch(&t->refs, 1, __ATOMIC_ACQ_REL)) {
        return;
    }
    if (thread_free_hook && t->head.app) {
        thread_free_hook(t);
    }
    irqflags_t flags = spin_lock_irq(&table_lock);
    list_push_back(&free_threads, &t->table);
    num_free++;
    spin_unlock_irq(&table_lock, flags);
}

struct thread *thread_find(u32 id)
{
    irqflags_t flags = spin_lock_irq(&table_lock);
    struct thread *t = table[id % TABLE_BUCKETS];
    while (t && t->head.id != id) {
        t = t->hash_next;
    }
    if (t) {
        thread_get(t);
    }
    spin_unlock_irq(&table_lock, flags);
    return t;
}

void thread_for_each(void (*fn)(struct thread *t, void *arg), void *arg)
{
    irqflags_t flags = spin_lock_irq(&table_lock);
    list_for_each(pos, &living)
    {
        fn(list_entry(pos, struct thread, table), arg);
    }
    spin_unlock_irq(&table_lock, flags);
}

u32 thread_count(void)
{
    return READ_ONCE(num_threads);
}

/* Turns the running boot context of a CPU into thread t. */
void thread_adopt(struct thread *t, const char *name, u32 cpu, bool idle)
{
    const struct thread_attr attr = { .name = name, .domain = sched_of(cpu)->domain };
    waitq_init(&t->join_waiters);
    thread_park_init(t);
    reset_thread(t, &attr);
    t->irq_stack = kstack_alloc(THREAD_IRQ_STACK_SIZE);
    t->fault_stack = kstack_alloc(THREAD_FAULT_STACK_SIZE);
    if (!t->irq_stack || !t->fault_stack) {
        panic("no memory for the stacks of CPU %u", cpu);
    }
    t->arch.irq_stack_top = t->irq_stack + THREAD_IRQ_STACK_SIZE;
    t->arch.fault_stack_top = t->fault_stack + THREAD_FAULT_STACK_SIZE;
    t->state = T_RUNNING;
    t->on_cpu = 1;
    t->cpu = t->last_cpu = cpu;
    t->ran = true;
    t->exec_start_ns = arch_clock_ns();
    t->pinned_kernel = idle;
    list_init(&t->table);
    if (!idle) {
        irqflags_t flags = spin_lock_irq(&table_lock);
        table_insert(t);
        spin_unlock_irq(&table_lock, flags);
    }
}
