#include "core/kern/obs/waits.h"

#include "core/base/string.h"
#include "core/kern/obs/unwind.h"
#include "core/mm/mm.h"

/* ---- owners ---- */

static bool is_living(u32 id, void *arg)
{
    struct thread *t = thread_find(id);
    if (!t) {
        return false;
    }
    const struct kthread *k = thread_head(t)->app;
    bool same = k && k->proc == arg;
    thread_put(t);
    return same;
}

/* ---- nodes in order of a number ---- */

struct ordered {
    u64 key;
    u32 index; /* of the node */
};

/* Heap sort. */
static void sift(struct ordered *o, u32 at, u32 n)
{
    for (u32 child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && o[child].key < o[child + 1].key;
        if (o[at].key >= o[child].key) {
            return;
        }
        struct ordered swapped = o[at];
        o[at] = o[child];
        o[child] = swapped;
    }
}

static void sort(struct ordered *o, u32 n)
{
    for (u32 i = n / 2; i-- > 0;) {
        sift(o, i, n);
    }
    while (n-- > 1) {
        struct ordered last = o[n];
        o[n] = o[0];
        o[0] = last;
        sift(o, 0, n);
    }
}

/* The last one whose key is not above; NULL: there is none. */
static const struct ordered *find_floor(const struct ordered *o, u32 n, u64 key)
{
    u32 low = 0, high = n;
    while (low < high) {
        u32 middle = low + (high - low) / 2;
        if (o[middle].key <= key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low ? &o[low - 1] : NULL;
}

/* What the nodes are looked up by, while a graph is made. */
struct lookup {
    struct wait_graph *g;
    struct ordered *ids, *tls; /* by thread id; by TLS pointer */
};

/* pthread_join(): waits on a word within the other thread's control block, which its TLS pointer points to; in glibc it is the word
 * that the kernel clears at the thread's end. Bytes of a control block: about 200 in musl, 2,304 in glibc. */
#define MUSL_BLOCK 256u
#define GLIBC_BLOCK 4096u

static u32 joined_thread(const struct lookup *l, const struct kthread *k, u64 addr)
{
    const struct ordered *o = find_floor(l->tls, l->g->n, addr);
    if (!o || !o->key || addr - o->key >= GLIBC_BLOCK) {
        return 0;
    }
    const struct wait_node *node = wait_graph_node(l->g, o->index);
    const struct kthread *other = thread_head(node->thread)->app;
    bool same = other && other != k && other->proc == k->proc;
    return same && (addr - o->key < MUSL_BLOCK || addr == READ_ONCE(other->clear_child_tid)) ? node->info.id : 0;
}

static struct wait_target look_at_futex(const struct lookup *l, const struct thread_info *info, const struct kthread *k)
{
    struct futex_words w = { 0 };
    u64 addr = info->wait_object;
    /* A word that cannot be read counts as 0: it then looks like nothing. */
    (void)arch_load_app(addr - 4, &w.before);
    (void)arch_load_app(addr, &w.word);
    for (u32 i = 0; i < ARRAY_SIZE(w.after); i++) {
        (void)arch_load_app(addr + 4 * (i + 1), &w.after[i]);
    }
    u32 joined = joined_thread(l, k, addr);
    return joined ? (struct wait_target){ "join", joined } : wait_judge(&w, is_living, k->proc);
}

/* A mutex of the kernel: its first field is the owner. It may be gone: only mapped memory is read, and only an address that is
 * a living thread's counts. */
static struct wait_target look_at_kernel_mutex(struct wait_graph *g, u64 address)
{
    u64 owner = 0;
    _Static_assert(offsetof(struct mutex, owner) == 0, "the owner is read at the mutex's address");
    if (unwind_read_word(address, &owner) && owner) {
        for (u32 i = 0; i < g->n; i++) {
            if ((u64)(uintptr_t)wait_graph_node(g, i)->thread == owner) {
                return (struct wait_target){ "kernel mutex", wait_graph_node(g, i)->info.id };
            }
        }
    }
    return (struct wait_target){ "kernel mutex", 0 };
}

static struct wait_target look(const struct lookup *l, const struct thread_info *info, struct thread *t)
{
    const struct kthread *k = thread_head(t)->app;
    if (strcmp(info->state, "blocked") == 0) {
        switch (info->wait_kind) {
        case WAIT_FUTEX:
            if (k) {
                return look_at_futex(l, info, k);
            }
            break;
        case WAIT_LOCK:
            return look_at_kernel_mutex(l->g, info->wait_object);
        case WAIT_JOIN:
            return (struct wait_target){ "join", (u32)info->wait_object };
        default:
            break;
        }
    }
    return (struct wait_target){ wait_kind_name(info->wait_kind), 0 };
}

/* ---- the graph ---- */

static void add_node(struct thread *t, void *arg)
{
    struct wait_graph *g = arg;
    if (g->n < WAIT_CHUNK * WAIT_CHUNKS && g->chunks[g->n / WAIT_CHUNK]) {
        thread_get(t);
        wait_graph_node(g, g->n++)->thread = t;
    }
}

/* A cycle is real if each of its threads still waits the same wait, after all of them had been looked at. */
static bool still_waiting(const struct lookup *l, const struct wait_node *node)
{
    struct thread_info now;
    thread_info(node->thread, &now);
    struct wait_target target = look(l, &now, node->thread);
    return strcmp(now.state, "blocked") == 0 && now.switches == node->info.switches && now.wait_object == node->info.wait_object &&
           target.owner == node->target.owner;
}

static void find_deadlocks(struct wait_graph *g, const struct lookup *l, u32 *next, u32 *cycle)
{
    for (u32 i = 0; i < g->n; i++) {
        u32 owner = wait_graph_node(g, i)->target.owner;
        const struct ordered *o = owner ? find_floor(l->ids, g->n, owner) : NULL;
        next[i] = o && o->key == owner ? o->index : UINT32_MAX;
    }
    if (wait_find_cycles(g->n, next, cycle) == 0) {
        return;
    }
    for (u32 i = 0; i < g->n; i++) {
        if (cycle[i] && !still_waiting(l, wait_graph_node(g, i))) {
            next[i] = UINT32_MAX;
        }
    }
    g->cycles = wait_find_cycles(g->n, next, cycle);
    for (u32 i = 0; i < g->n; i++) {
        wait_graph_node(g, i)->cycle = cycle[i];
    }
}

static void look_at_all(struct wait_graph *g, const struct lookup *l)
{
    for (u32 i = 0; i < g->n; i++) {
        struct wait_node *node = wait_graph_node(g, i);
        thread_info(node->thread, &node->info);
        l->ids[i] = (struct ordered){ node->info.id, i };
        l->tls[i] = (struct ordered){ thread_head(node->thread)->app ? thread_arch(node->thread)->fs_base : 0, i };
    }
    sort(l->ids, g->n);
    sort(l->tls, g->n);
    for (u32 i = 0; i < g->n; i++) {
        struct wait_node *node = wait_graph_node(g, i);
        node->target = look(l, &node->info, node->thread);
    }
}

struct wait_graph *wait_graph_create(void)
{
    struct wait_graph *g = kzalloc(sizeof(*g));
    u32 n = thread_count() + 64; /* some may come meanwhile; further ones are left out */
    u32 chunks = MIN(n / WAIT_CHUNK + 1, WAIT_CHUNKS);
    for (u32 i = 0; g && i < chunks; i++) {
        g->chunks[i] = kzalloc(WAIT_CHUNK * sizeof(struct wait_node));
        if (!g->chunks[i]) {
            wait_graph_free(g);
            return NULL;
        }
    }
    n = chunks * WAIT_CHUNK;
    struct ordered *ordered = kmalloc(2 * n * sizeof(*ordered));
    u32 *numbers = kmalloc(2 * n * sizeof(*numbers));
    if (g && ordered && numbers) {
        struct lookup l = { g, ordered, ordered + n };
        thread_for_each(add_node, g);
        look_at_all(g, &l);
        find_deadlocks(g, &l, numbers, numbers + n);
    } else if (g) {
        wait_graph_free(g);
        g = NULL;
    }
    kfree(ordered);
    kfree(numbers);
    return g;
}

void wait_graph_free(struct wait_graph *g)
{
    for (u32 i = 0; i < g->n; i++) {
        thread_put(wait_graph_node(g, i)->thread);
    }
    for (u32 i = 0; i < WAIT_CHUNKS; i++) {
        kfree(g->chunks[i]);
    }
    kfree(g);
}
