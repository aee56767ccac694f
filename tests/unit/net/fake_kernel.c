#include "tests/unit/net/fake_kernel.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/mm/mm.h"
#include "net/stack/image.h"
#include "tests/unit/fake/cmocka_all.h"

struct thread test_thread;
u64 fake_alloc_budget = UINT64_MAX;
u64 fake_allocs_live;
bool fake_use_sanitized = true;

static struct sched_domain_info domains[MAX_DOMAINS];

/* ---- memory: the host's, so that the sanitizer sees every overrun ---- */

static bool may_allocate(void)
{
    if (fake_alloc_budget == 0) {
        return false;
    }
    fake_alloc_budget -= fake_alloc_budget != UINT64_MAX;
    fake_allocs_live++;
    return true;
}

void *kmalloc(size_t bytes)
{
    return may_allocate() ? aligned_alloc(64, ALIGN_UP(MAX(bytes, (size_t)1), (size_t)64)) : NULL;
}

void *kzalloc(size_t bytes)
{
    void *p = kmalloc(bytes);
    if (p != NULL) {
        memset(p, 0, bytes);
    }
    return p;
}

void kfree(void *p)
{
    fake_allocs_live -= p != NULL;
    free(p);
}

struct slab_cache {
    size_t bytes, align;
};

struct slab_cache *slab_create(const char *name, size_t bytes, size_t align, enum mem_kind kind)
{
    (void)name;
    (void)kind;
    struct slab_cache *c = malloc(sizeof(*c));
    *c = (struct slab_cache){ bytes, MAX(align, (size_t)16) };
    return c;
}

void *slab_alloc(struct slab_cache *c)
{
    return may_allocate() ? aligned_alloc(c->align, ALIGN_UP(c->bytes, c->align)) : NULL;
}

void slab_free(struct slab_cache *c, void *p)
{
    (void)c;
    kfree(p);
}

paddr_t page_alloc(u32 order, enum mem_kind kind)
{
    (void)kind;
    void *p = may_allocate() ? aligned_alloc(PAGE_SIZE, PAGE_SIZE << order) : NULL;
    return p != NULL ? virt_to_phys(p) : 0;
}

paddr_t page_alloc_zeroed(u32 order, enum mem_kind kind)
{
    paddr_t pa = page_alloc(order, kind);
    if (pa != 0) {
        memset(phys_to_virt(pa), 0, PAGE_SIZE << order);
    }
    return pa;
}

bool arch_copy_from_app(void *dst, u64 src, size_t bytes)
{
    if (src < FAKE_BAD_ADDRESS) {
        return false;
    }
    memcpy(dst, (const void *)(uintptr_t)src, bytes);
    return true;
}

bool arch_copy_to_app(u64 dst, const void *src, size_t bytes)
{
    if (dst < FAKE_BAD_ADDRESS) {
        return false;
    }
    memcpy((void *)(uintptr_t)dst, src, bytes);
    return true;
}

const struct boot_info *arch_boot_info(void)
{
    return NULL;
}

/* ---- scheduling ---- */

static struct softwork *works[MAX_CPUS];
static struct timer *timers[4096];
static u32 num_timers;
static cpumask_t call_ipis;
void (*sched_ipi_call_hook)(void);

struct sched_domain_info sched_domain(u32 domain)
{
    return domains[domain];
}

void sched_add_receive_path(u32 cpu)
{
    (void)cpu;
}

void softwork_init(struct softwork *w, u32 cpu, bool (*fn)(struct softwork *w, bool in_irq))
{
    *w = (struct softwork){ .fn = fn, .cpu = cpu };
}

void softwork_raise(struct softwork *w)
{
    assert_int_equal(w->cpu, fake_cpu);
    if (!w->queued) {
        w->queued = true;
        w->next = works[w->cpu];
        works[w->cpu] = w;
    }
}

void timer_init(struct timer *t, void (*fn)(struct timer *t))
{
    *t = (struct timer){ .fn = fn };
}

void timer_arm(struct timer *t, u64 deadline_ns)
{
    t->node.key = deadline_ns;
    t->cpu = fake_cpu;
    if (!t->armed) {
        assert_true(num_timers < ARRAY_SIZE(timers));
        timers[num_timers++] = t;
        t->armed = true;
    }
}

bool timer_cancel(struct timer *t)
{
    for (u32 i = 0; i < num_timers; i++) {
        if (timers[i] == t) {
            timers[i] = timers[--num_timers];
            t->armed = false;
            return true;
        }
    }
    return false;
}

void arch_send_ipi(u32 cpu, enum arch_ipi ipi)
{
    assert_int_equal(ipi, ARCH_IPI_CALL);
    fake_ipis[cpu][ipi]++;
    call_ipis |= BIT(cpu);
}

void thread_unpark_batch(struct thread *t, struct wake_batch *b)
{
    b->wakes++;
    t->token = true;
}

void wake_batch_flush(struct wake_batch *b)
{
    (void)b;
    preempt_enable();
}

/* ---- the world ---- */

static void run_interrupt(u32 cpu, void (*fn)(void *arg), void *arg)
{
    u32 old = fake_cpu;
    fake_cpu_set(cpu);
    arch_irq_disable();
    fn(arg);
    arch_irq_enable();
    fake_cpu_set(old);
}

static void ipi_interrupt(void *arg)
{
    (void)arg;
    sched_ipi_call_hook();
}

static void work_interrupt(void *arg)
{
    struct softwork *w = arg;
    if (w->fn(w, true)) {
        softwork_raise(w);
    }
}

static void timer_interrupt(void *arg)
{
    struct timer *t = arg;
    t->fn(t);
}

bool world_step(void)
{
    bool ran = false;
    while (call_ipis != 0) {
        u32 cpu = (u32)__builtin_ctzll(call_ipis);
        call_ipis &= call_ipis - 1;
        run_interrupt(cpu, ipi_interrupt, NULL);
        ran = true;
    }
    for (u32 cpu = 0; cpu < MAX_CPUS; cpu++) {
        struct softwork *w = works[cpu];
        works[cpu] = NULL;
        while (w != NULL) {
            struct softwork *next = w->next;
            w->queued = false;
            run_interrupt(cpu, work_interrupt, w);
            w = next;
            ran = true;
        }
    }
    for (u32 i = 0; i < num_timers;) {
        struct timer *t = timers[i];
        if (t->node.key > fake_clock_now) {
            i++;
            continue;
        }
        timer_cancel(t);
        run_interrupt(t->cpu, timer_interrupt, t);
        ran = true;
    }
    return ran;
}

/* Moves the clock to the next timer, at most to limit; false if that is where it stands. */
static bool advance_clock(u64 limit)
{
    u64 next = limit;
    for (u32 i = 0; i < num_timers; i++) {
        next = MIN(next, timers[i]->node.key);
    }
    if (fake_clock_now >= limit) {
        return false;
    }
    fake_clock_now = MAX(next, fake_clock_now + 1);
    return true;
}

bool world_run(bool (*condition)(void *arg), void *arg, u64 limit_ns)
{
    u64 limit = limit_ns == UINT64_MAX ? UINT64_MAX : fake_clock_now + limit_ns;
    for (;;) {
        if (condition(arg)) {
            return true;
        }
        if (!world_step() && !advance_clock(limit)) {
            return condition(arg);
        }
    }
}

static bool never(void *arg)
{
    (void)arg;
    return false;
}

void world_pass(u64 ns)
{
    (void)world_run(never, NULL, ns);
}

static bool has_token(void *arg)
{
    return ((struct thread *)arg)->token;
}

/* Nothing that a test waits for takes longer than this; a wait without end would hang the test. */
#define LONGEST_WAIT_NS (300 * NSEC_PER_SEC)

enum park_result thread_park(u64 deadline_ns, enum wait_kind kind, u64 object)
{
    (void)kind;
    (void)object;
    spin_assert_none_held("parking");
    assert_int_equal(this_cpu()->preempt_count, 0);
    u64 limit = deadline_ns == NO_DEADLINE ? LONGEST_WAIT_NS : deadline_ns > fake_clock_now ? deadline_ns - fake_clock_now : 0;
    bool woken = world_run(has_token, &test_thread, limit);
    test_thread.token = false;
    if (!woken && deadline_ns == NO_DEADLINE) {
        fail_msg("waited for ever");
    }
    return woken ? PARK_WOKEN : PARK_TIMEOUT;
}

enum park_result thread_park_uninterruptible(u64 deadline_ns, enum wait_kind kind, u64 object)
{
    return thread_park(deadline_ns, kind, object);
}

void fake_kernel_start(u32 server_cpus, u32 client_cpus)
{
    domains[0] = (struct sched_domain_info){ 0, server_cpus };
    domains[1] = (struct sched_domain_info){ server_cpus, client_cpus };
    fake_clock_now = NSEC_PER_SEC;
    for (u32 i = 0; i < MAX_CPUS; i++) {
        percpu_of(i)->current = &test_thread;
    }
}

/* ---- images ---- */

static u64 host_reserve(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? 0 : (u64)(uintptr_t)p;
}

/* The file's own pages, as the kernel maps the blob's. */
static int image_fd = -1;
static const u8 *image_file;
static size_t image_bytes;

static int host_map_shared(u64 va, const void *from, size_t pages, bool exec)
{
    void *p = mmap((void *)(uintptr_t)va, pages * PAGE_SIZE, PROT_READ | (exec ? PROT_EXEC : 0), MAP_SHARED | MAP_FIXED,
                   image_fd, (const u8 *)from - image_file);
    return p == MAP_FAILED ? -ENOMEM : 0;
}

static void *host_map_private(u64 va, bool write)
{
    (void)write;
    void *p = mmap((void *)(uintptr_t)va, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

static void host_seal(u64 va, bool write)
{
    mprotect((void *)(uintptr_t)va, PAGE_SIZE, PROT_READ | (write ? PROT_WRITE : 0));
}

extern const struct stack_ops *stack_image_entry(void);

int image_load_kernel(u64 *base, stack_entry_fn *entry)
{
    static const struct image_space space = { host_reserve, host_map_shared, host_map_private, host_seal };
    static bool sanitized_used;
    if (fake_use_sanitized && !sanitized_used) {
        sanitized_used = true;
        *base = 0;
        *entry = stack_image_entry;
        return 0;
    }
    if (image_file == NULL) {
        struct stat st;
        image_fd = open(STACK_IMAGE_FILE, O_RDONLY);
        assert_true(image_fd >= 0 && fstat(image_fd, &st) == 0);
        image_bytes = (size_t)st.st_size;
        image_file = mmap(NULL, image_bytes, PROT_READ, MAP_SHARED, image_fd, 0);
        assert_true(image_file != MAP_FAILED);
    }
    struct image image;
    if (image_parse(image_file, image_bytes, &image) != 0) {
        fail_msg("image refused: %s", image.error);
    }
    return image_load(&image, &space, base, entry);
}

/* ---- helpers ---- */

int virtio_net_find(u32 num_queues, u32 first_cpu, u32 num_cpus, const u8 key[TOEPLITZ_KEY_BYTES], struct netdev **out)
    __attribute__((weak));
int virtio_net_find(u32 num_queues, u32 first_cpu, u32 num_cpus, const u8 key[TOEPLITZ_KEY_BYTES], struct netdev **out)
{
    (void)num_queues;
    (void)first_cpu;
    (void)num_cpus;
    (void)key;
    (void)out;
    return -ENODEV;
}

void virtio_net_ready(struct netdev *dev) __attribute__((weak));
void virtio_net_ready(struct netdev *dev)
{
    (void)dev;
}

void wire_up(u32 queues, u64 delay_ns, u32 loss_ppm, u64 seed)
{
    const struct wire_config config = {
        .queues = queues,
        .delay_ns = delay_ns,
        .loss_ppm = loss_ppm,
        .seed = seed,
        .ends = { { .mode = NET_STATIC, .ip = SERVER_IP, .mask = 0xffffff00 },
                  { .mode = NET_STATIC, .ip = CLIENT_IP, .mask = 0xffffff00 } },
    };
    assert_int_equal(net_init_wire(&config), 0);
}

struct net_addr addr_of(u32 ip, u16 port)
{
    return (struct net_addr){
        .bytes = { 2, 0, (u8)(port >> 8), (u8)port, (u8)(ip >> 24), (u8)(ip >> 16), (u8)(ip >> 8), (u8)ip },
        .len = 16,
    };
}

struct socket *listen_on(struct net *net, u16 port, int backlog)
{
    struct socket *s;
    struct net_addr addr = addr_of(0, port);
    assert_int_equal(socket_create(net, 2, 1, 0, &s), 0);
    assert_int_equal(socket_bind(s, &addr), 0);
    assert_int_equal(socket_listen(s, backlog), 0);
    return s;
}

struct socket *connect_to(struct net *net, u32 ip, u16 port)
{
    struct socket *s;
    struct net_addr addr = addr_of(ip, port);
    assert_int_equal(socket_create(net, 2, 1, 0, &s), 0);
    assert_int_equal(socket_connect(s, &addr, 0, NO_DEADLINE), 0);
    return s;
}

struct socket *accept_from(struct socket *listener)
{
    struct socket *s;
    assert_int_equal(socket_accept(listener, 0, NO_DEADLINE, &s, NULL), 0);
    return s;
}

static i64 receive(struct socket *s, void *data, size_t n, u32 flags)
{
    struct net_iov iov = { (u64)(uintptr_t)data, n };
    struct net_buf buf = { &iov, 1, true };
    return socket_recv(s, &buf, flags, NULL, NO_DEADLINE);
}

i64 send_all(struct socket *s, const void *data, size_t n)
{
    struct net_iov iov = { (u64)(uintptr_t)data, n };
    struct net_buf buf = { &iov, 1, true };
    return socket_send(s, &buf, 0, NULL, NO_DEADLINE);
}

i64 recv_some(struct socket *s, void *data, size_t n)
{
    return receive(s, data, n, 0);
}

i64 recv_now(struct socket *s, void *data, size_t n)
{
    return receive(s, data, n, NET_NONBLOCK);
}

struct sum {
    const char *name;
    u64 value;
};

static void add_up(const char *name, const char *labels, u64 value, void *arg)
{
    struct sum *sum = arg;
    (void)labels;
    if (strcmp(name, sum->name) == 0) {
        sum->value += value;
    }
}

u64 counter_sum(const char *name)
{
    struct sum sum = { name, 0 };
    net_for_each_counter(add_up, &sum);
    return sum.value;
}

/* The leak checker cannot see the instances' data (mapped pages): tests count allocations instead. */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}
