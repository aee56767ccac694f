#include "tests/guest/arch/test.h"

#include "core/base/errno.h"
#include "core/base/string.h"

const char *test_name = "start";
u32 test_cpus;
volatile u32 timer_hits[MAX_CPUS];

static volatile u32 cpus_up, resched_hits[MAX_CPUS], call_hits, irq_tails;
static volatile bool power_button;

/* ---- memory: the largest usable range, page by page ---- */

static paddr_t next_page, end_page;

paddr_t test_page(void)
{
    paddr_t page = __atomic_fetch_add(&next_page, PAGE_SIZE, __ATOMIC_RELAXED);
    if (page >= end_page) {
        return 0;
    }
    memset(phys_to_virt(page), 0, PAGE_SIZE);
    return page;
}

static void release_page(paddr_t page)
{
    (void)page;
}

u64 test_stack(u64 bytes)
{
    static u64 next = DYNAMIC_MAP_BASE;
    u64 base = next + PAGE_SIZE;
    next = base + bytes;
    for (u64 at = base; at < next; at += PAGE_SIZE) {
        CHECK(arch_pt_map(at, test_page(), 1, ARCH_PROT_READ | ARCH_PROT_WRITE) == 0);
    }
    return next;
}

/* ---- upcalls ---- */

void preempt_enable_slow(void);
void preempt_enable_slow(void)
{
}

void upcall_timer(struct arch_regs *regs)
{
    (void)regs;
    CHECK(!arch_irqs_on() && this_cpu()->irq_depth == 1);
    timer_hits[this_cpu()->cpu]++;
}

void upcall_ipi_resched(void)
{
    resched_hits[this_cpu()->cpu]++;
}

void upcall_ipi_call(void)
{
    __atomic_fetch_add(&call_hits, 1, __ATOMIC_SEQ_CST);
}

void upcall_nmi(struct arch_regs *regs)
{
    panic_at(regs, "an NMI that nobody sent");
}

void upcall_irq_tail(void)
{
    irq_tails++;
}

void upcall_irq_exit(struct arch_regs *regs)
{
    CHECK(!arch_irqs_on() && this_cpu()->irq_depth == 0);
    threads_irq_exit(regs);
}

void upcall_power_button(void)
{
    power_button = true;
}

/* ---- tests ---- */

static void test_boot_info(void)
{
    const struct boot_info *b = arch_boot_info();
    u64 kernel_end = b->kernel_phys + b->kernel_size;
    CHECK(b->magic == BOOT_INFO_MAGIC);
    for (u32 i = 0; i < b->num_ranges; i++) {
        const struct boot_range *r = &b->ranges[i];
        u64 end = r->base + r->size;
        if (r->type != BOOT_MEM_USABLE) {
            continue;
        }
        /* Free for use: not the kernel's, not the initial file's, and mapped from end to end. */
        CHECK(end <= b->kernel_phys || r->base >= kernel_end);
        CHECK(end <= b->initrd_phys || r->base >= b->initrd_phys + b->initrd_size);
        CHECK(r->base >= 0x100000);
        for (u64 at = r->base; at < end; at += (end - r->base) / 64 + PAGE_SIZE) {
            CHECK(arch_pt_lookup(DIRECT_MAP_BASE + at) == at);
            *(volatile u64 *)phys_to_virt(ALIGN_DOWN(at, PAGE_SIZE)) = at;
        }
        if (r->size > end_page - next_page) {
            next_page = r->base;
            end_page = end;
        }
    }
    /* run.py gives 5000 bytes of "weir" as the initial file. */
    CHECK(b->initrd_size == 5000);
    for (u32 i = 0; i < 5000; i++) {
        CHECK(((const char *)phys_to_virt(b->initrd_phys))[i] == "weir"[i % 4]);
    }
}

static void test_init(void)
{
    int cpus = arch_init();
    CHECK(cpus >= 1);
    test_cpus = (u32)cpus;
    u64 hz, a = arch_clock_ns();
    CHECK(arch_clock_name(&hz) && hz > 1000000);
    CHECK(arch_clock_ns() >= a);
    CHECK(arch_wall_base_ns() > 1700000000 * NSEC_PER_SEC); /* after 2023 */
}

static void other_cpu(void)
{
    __atomic_fetch_add(&cpus_up, 1, __ATOMIC_SEQ_CST);
    arch_timer_arm(arch_clock_ns() + NSEC_PER_MSEC);
    for (;;) {
        arch_idle_wait();
    }
}

static void test_smp(void)
{
    u32 running = arch_start_cpus(test_cpus, other_cpu);
    CHECK(running == test_cpus);
    WAIT_FOR(cpus_up == running - 1);
}

static void test_ipis(void)
{
    for (u32 cpu = 1; cpu < test_cpus; cpu++) {
        arch_send_ipi(cpu, ARCH_IPI_RESCHED);
        arch_send_ipi(cpu, ARCH_IPI_CALL);
    }
    WAIT_FOR(call_hits == test_cpus - 1);
    for (u32 cpu = 1; cpu < test_cpus; cpu++) {
        WAIT_FOR(resched_hits[cpu] == 1 && timer_hits[cpu] == 1);
    }
}

static void test_timer(void)
{
    for (u32 i = 0; i < 3; i++) {
        u32 hits = timer_hits[0];
        arch_irq_disable();
        u64 deadline = arch_clock_ns() + NSEC_PER_MSEC;
        arch_timer_arm(deadline + NSEC_PER_SEC * 1000);
        arch_timer_arm(deadline); /* the last one counts */
        arch_irq_enable();
        WAIT_FOR(timer_hits[0] != hits);
        CHECK(arch_clock_ns() >= deadline);
    }
    u32 hits = timer_hits[0];
    arch_irq_disable();
    arch_timer_arm(1); /* long past */
    arch_irq_enable();
    WAIT_FOR(timer_hits[0] == hits + 1);
    arch_irq_disable();
    arch_timer_arm(arch_clock_ns() + NSEC_PER_MSEC);
    arch_timer_disarm();
    arch_irq_enable();
    u64 end = arch_clock_ns() + 3 * NSEC_PER_MSEC;
    WAIT_FOR(arch_clock_ns() > end);
    CHECK(timer_hits[0] == hits + 1);
    CHECK(irq_tails >= hits + 1);
}

static void device_handler(void *arg)
{
    (*(u32 *)arg)++;
}

/* Sends the message that a device would send: QEMU takes it from a CPU as well. */
static void send_message(const struct arch_msi *msi)
{
    volatile u32 *page = arch_mmio_map(ALIGN_DOWN(msi->address, PAGE_SIZE), PAGE_SIZE);
    CHECK(page);
    page[(msi->address & (PAGE_SIZE - 1)) / 4] = msi->data;
}

static void test_vectors(void)
{
    static u32 count;
    struct arch_msi msi;
    u32 cpu = test_cpus - 1, allocated = 0;
    int vectors[256];
    int vector = arch_irq_alloc_msi(cpu, device_handler, &count, &msi);
    CHECK(vector > 0);
    send_message(&msi);
    WAIT_FOR(READ_ONCE(count) == 1);
    CHECK(percpu_of(cpu)->irq_count[vector] == 1);
    arch_irq_free(cpu, vector);
    while ((vector = arch_irq_alloc_msi(cpu, device_handler, &count, &msi)) >= 0) {
        CHECK((u32)vector == msi.data && vector >= 32 && vector < 256 && allocated < 224);
        vectors[allocated++] = vector;
    }
    CHECK(vector == -ENOSPC && allocated > 190);
    arch_irq_free(cpu, vectors[3]);
    CHECK(arch_irq_alloc_msi(cpu, device_handler, &count, &msi) == vectors[3]);
    for (u32 i = 0; i < allocated; i++) {
        arch_irq_free(cpu, vectors[i]);
    }
}

static bool look_at_device(const struct arch_pci_dev *dev, void *arg)
{
    u32 *found = arg;
    CHECK(arch_pci_read(dev, 0, 2) == dev->vendor && arch_pci_read(dev, 2, 2) == dev->device);
    CHECK(arch_pci_read(dev, 0, 4) == (u32)(dev->vendor | dev->device << 16));
    if (dev->vendor == 0x1af4) { /* virtio: run.py adds one behind a bridge, too */
        paddr_t base;
        u64 bytes = arch_pci_bar(dev, 4, &base);
        CHECK(bytes >= 4096 && base && IS_ALIGNED(base, bytes));
        volatile u32 *regs = arch_mmio_map(base, bytes);
        u32 command = arch_pci_read(dev, 4, 2);
        arch_pci_write(dev, 4, 2, command | 2);
        CHECK(regs && *regs != UINT32_MAX);
        (*found)++;
    }
    return true;
}

static void test_pci(void)
{
    u32 found = 0;
    arch_pci_scan(look_at_device, &found);
    CHECK(found == 2);
}

static void test_platform(void)
{
    char buf[16];
    u64 random[2];
    CHECK(arch_fw_cfg_read("opt/weir/test", buf, sizeof(buf)) == 5);
    CHECK(memcmp(buf, "hello", 5) == 0);
    CHECK(arch_fw_cfg_read("opt/weir/test", buf, 3) == 3);
    CHECK(arch_fw_cfg_read("opt/weir/none", buf, sizeof(buf)) == -ENOENT);
    if (arch_random(&random[0])) {
        CHECK(arch_random(&random[1]) && random[0] != random[1]);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} tests[] = {
    {"boot_info", test_boot_info},
    {"init", test_init},
    {"smp", test_smp},
    {"ipis", test_ipis},
    {"timer", test_timer},
    {"vectors", test_vectors},
    {"pci", test_pci},
    {"platform", test_platform},
    {"memory_map", test_memory_map},
    {"memory_copy", test_memory_copy},
    {"memory_protect", test_memory_protect},
    {"memory_flush", test_memory_flush},
    {"backtrace", test_backtrace},
    {"app", test_app},
    {"preemption", test_preemption},
};

void kernel_main(void)
{
    const char *line = arch_boot_info()->cmdline;
    arch_set_page_source(test_page, release_page);
    for (u32 i = 0; i < ARRAY_SIZE(tests); i++) {
        test_name = tests[i].name;
        tests[i].run();
        log_info("ok %s", test_name);
        if (tests[i].run == test_smp) {
            arch_irq_enable();
        }
    }
    test_name = "fatal";
    if (strcmp(line, "button") == 0) {
        log_info("waiting for the power button");
        WAIT_FOR(power_button);
        log_info("ok power_button");
    } else if (str_starts_with(line, "fatal=")) {
        fatal(line + strlen("fatal="));
    }
    log_info("all passed");
    arch_power_off(5);
}
