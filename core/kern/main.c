/* Composition root: brings the rooms up in order and starts the programs. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/config.h"
#include "core/kern/file.h"
#include "core/kern/futex.h"
#include "core/kern/grant.h"
#include "core/kern/http.h"
#include "core/kern/initrd.h"
#include "core/kern/mark.h"
#include "core/kern/obs/obs.h"
#include "core/kern/pressure.h"
#include "core/kern/proc.h"
#include "core/kern/random.h"
#include "core/kern/shutdown.h"
#include "core/kern/signal.h"
#include "core/kern/start.h"
#include "core/kern/vfs.h"
#include "core/mm/mm.h"
#include "net/net.h"
#include "sched/sched.h"

static struct config config;

/* Wire of the benchmark: 10.1.0.1 is the server's end, 10.1.0.2 the generator's. */
#define WIRE_SERVER_IP 0x0a010001u
#define WIRE_GENERATOR_IP 0x0a010002u
#define WIRE_MASK 0xffffff00u

static void __noreturn give_up(int code)
{
    log_info("weir: exit code %d", code);
    arch_power_off(code);
}

/* ---- the network ---- */

static int init_wire(void)
{
    /* A queue for each of the server's CPUs unless the command line says otherwise. */
    u32 queues = config.wire_queues ? (u32)config.wire_queues : sched_domain(0).num_cpus;
    struct wire_config wire = {
        .queues = queues,
        .delay_ns = config.wire_delay_ns,
        .loss_ppm = (u32)config.wire_loss_ppm,
        .seed = config.wire_seed,
    };
    for (u32 i = 0; i < 2; i++) {
        wire.ends[i] = (struct net_config){
            .mode = NET_STATIC,
            .ip = i == 0 ? WIRE_SERVER_IP : WIRE_GENERATOR_IP,
            .mask = WIRE_MASK,
            .queues = queues,
            .instances = (u32)config.net_instances,
        };
    }
    return net_init_wire(&wire);
}

static void init_network(void)
{
    struct net_config net = {
        .mode = config.net == CONFIG_NET_STATIC ? NET_STATIC
                : config.net == CONFIG_NET_NONE ? NET_NONE
                                                : NET_DHCP,
        .ip = config.ip,
        .mask = config.mask,
        .gateway = config.gateway,
        .queues = (u32)config.net_queues,
        .instances = (u32)config.net_instances,
    };
    int error = config.net == CONFIG_NET_WIRE ? init_wire() : net_init_domain(0, &net);
    if (error < 0 && config.net != CONFIG_NET_NONE) {
        log_error("weir: no network (error %d): give the machine a virtio-net device, or say net=none",
                  -error);
        weir_exit(EXIT_NO_RESOURCES);
    }
    if (config.gen && config.net != CONFIG_NET_WIRE) {
        struct net_config none = { .mode = NET_NONE };
        net_init_domain(1, &none);
    }
}

/* ---- programs ---- */

/* The splitting buffers live as long as the machine: argv strings are copied only when the stack is built. */
static struct proc *start_program(const char *line, u32 domain)
{
    static char words[CONFIG_TEXT];
    static struct proc_spec spec;
    static char test_env[CONFIG_TEXT + 16];
    struct proc *p;
    memset(&spec, 0, sizeof(spec));
    spec.domain = domain;
    spec.argc = config_split(line, words, sizeof(words), spec.argv, APP_MAX_ARGS);
    if (spec.argc <= 0) {
        log_error("weir: program line \"%s\": %s", line,
                  spec.argc == -EINVAL ? "a quote without end"
                  : spec.argc == 0     ? "empty"
                                       : "more words than fit");
        weir_exit(EXIT_BAD_CONFIG);
    }
    for (u32 i = 0; i < config.num_env; i++) {
        spec.envp[spec.envc++] = config.env[i];
    }
    if (config.test) {
        str_format(test_env, sizeof(test_env), "WEIR_TEST=%s", config.test);
        spec.envp[spec.envc++] = test_env;
    }
    if (proc_start(&spec, &p) < 0) {
        weir_exit(EXIT_BAD_CONFIG);
    }
    return p;
}

static const char *default_program(void)
{
    static const char *const candidates[] = { "/app", "/init" };
    for (size_t i = 0; i < ARRAY_SIZE(candidates); i++) {
        if (initrd_find(candidates[i])) {
            return candidates[i];
        }
    }
    log_error("weir: no application: hand one over as initrd (an ELF file, or a cpio archive with "
              "/init), or name one in the archive with app=");
    weir_exit(EXIT_BAD_CONFIG);
}

static void init_thread(void *arg)
{
    struct proc *list[2];
    u32 n = 0;
    (void)arg;
    init_network();
    if (config.http_port) {
        http_start(net_of_domain(0), (u16)config.http_port, config.http_write);
    }
    list[n++] = start_program(config.app ? config.app : default_program(), 0);
    if (config.gen) {
        list[n++] = start_program(config.gen, 1);
    }
    shutdown_wait(list, n, list[n - 1]);
}

/* ---- start-up ---- */

static void read_config(const struct boot_info *boot)
{
    char why[CONFIG_ERROR];
    if (strnlen(boot->cmdline, BOOT_MAX_CMDLINE) >= BOOT_MAX_CMDLINE - 1) {
        /* The loader has filled the buffer: more may have been behind it. */
        log_error("weir: command line: longer than %u characters", BOOT_MAX_CMDLINE - 2);
        give_up(EXIT_BAD_CONFIG);
    }
    if (!config_parse(&config, boot->cmdline, why)) {
        log_error("weir: command line: %s", why);
        give_up(EXIT_BAD_CONFIG);
    }
    lock_stats_on = config.lock_stats;
    log_threshold = (enum log_level)config.log_level;
}

static void init_memory(const struct boot_info *boot)
{
    if (mm_init(boot) < 0) {
        give_up(EXIT_NO_RESOURCES);
    }
}

static void init_cpus(void)
{
    int usable = arch_init();
    if (usable <= 0) {
        log_error("weir: no usable CPUs: error %d", usable);
        give_up(EXIT_NO_RESOURCES);
    }
    u32 wanted = MIN((u32)usable, (u32)config.cpus);
    struct sched_config sched = {
        .num_cpus = wanted,
        .server_cpus = (u32)config.server_cpus,
        .policy = config.policy,
        .interval_ms = (u32)config.interval_ms,
        .migration_ns = (u32)config.migration_ns,
        .idle_spin_ns = config.idle_spin_ns != IDLE_SPIN_AUTO ? (u32)config.idle_spin_ns
                        : arch_emulated()                     ? 0
                                                              : IDLE_SPIN_NS,
    };
    if (sched_init(&sched) < 0) {
        give_up(EXIT_BAD_CONFIG);
    }
    arch_irq_enable();
    u32 running = arch_start_cpus(wanted, sched_cpu_entry);
    if (running < wanted) {
        log_error("weir: only %u of %u CPUs started", running, wanted);
        give_up(EXIT_NO_RESOURCES);
    }
    if (sched_start_workers() < 0) {
        log_error("weir: not enough memory for the CPUs' worker threads");
        give_up(EXIT_NO_RESOURCES);
    }
    log_info("%u CPUs", running);
}

static void init_own(const struct boot_info *boot)
{
    if (grant_init(&config) < 0) {
        give_up(EXIT_BAD_CONFIG);
    }
    random_init();
    futex_init();
    pressure_init();
    proc_init();
    signal_init();
    tmp_init();
    mark_init();
    if (!obs_init(config.trace)) {
        log_error("weir: command line: trace=%s: some of " OBS_CATEGORIES ", or all, are wanted", config.trace);
        give_up(EXIT_BAD_CONFIG);
    }
    if (config.profile && !obs_boot_profile(config.profile)) {
        log_error("weir: command line: profile=%s: oncpu, offcpu or a rate of 1..10000 Hz is wanted", config.profile);
        give_up(EXIT_BAD_CONFIG);
    }
    if (gate_init() < 0 || vdso_init() < 0) {
        log_error("weir: not enough memory for the gate page and the vDSO");
        give_up(EXIT_NO_RESOURCES);
    }
    if (boot->initrd_size > 0 &&
        initrd_init(phys_to_virt(boot->initrd_phys), boot->initrd_size) < 0) {
        log_error("weir: no application: the initrd cannot be used");
        give_up(EXIT_BAD_CONFIG);
    }
}

void kernel_main(void)
{
    const struct boot_info *boot = arch_boot_info();
    log_info("Weir: %lu KiB kernel, booted by %s", boot->kernel_size / 1024,
             boot->source == BOOT_FROM_UEFI ? "UEFI" : "PVH");
    read_config(boot);
    init_memory(boot);
    init_cpus();
    init_own(boot);
    struct thread_attr attr = { .name = "init" };
    struct thread *init;
    if (thread_create(&attr, init_thread, NULL, &init) < 0) {
        log_error("weir: not enough memory for the first thread");
        give_up(EXIT_NO_RESOURCES);
    }
    thread_start(init);
    thread_put(init);
    for (;;) {
        /* The boot stack is needed no more, but it is nobody's to free. */
        thread_park_uninterruptible(NO_DEADLINE, WAIT_WORK, 0);
    }
}
