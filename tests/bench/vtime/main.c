/*
 * Entry points of the virtual-time plugin: options, registration, closing report.
 *
 * usage: qemu-system-x86_64 -accel tcg,thread=multi -rtc clock=vm -plugin vtime.so[,option=N...]
 * The options are the fields of struct vt_options (vtime.h).
 */
#define _GNU_SOURCE
#include "vtime.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

/* Version of the plugin interface that qemu_api.h declares. */
EXPORT int qemu_plugin_version = 4;
EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc,
                               char **argv);

/* Defaults: at a window of 2 us for two running vCPUs a round trip of 13 us spread by 5% from run
 * to run, at 500 ns by 1%. A quantum of half the window keeps vCPUs in step. */
struct vt_options vt_opt = {
    .quantum = 250,
    .ns1000 = 1000,
    .tsc1000 = 1000,
    .pause = 40,
    .window = 500,
    .crowd = 4,
};
struct vt_stats vt_stats;

static int64_t host_start;

struct option_name {
    const char *name;
    void *field;
    int64_t least;
    int64_t most;
};

static const struct option_name option_names[] = {
    {"quantum", &vt_opt.quantum, 100, 10000000},
    {"ns1000", &vt_opt.ns1000, 1, 1000000},
    {"tsc1000", &vt_opt.tsc1000, 1, 1000000},
    {"pause", &vt_opt.pause, 0, 10000},
    {"window", &vt_opt.window, 100, 100000000},
    {"crowd", &vt_opt.crowd, 1, VT_MAX_VCPUS},
    {"coarse", &vt_opt.coarse, 0, 100000000},
    {"ipi_send", &vt_opt.ipi_send, 0, 1000000},
    {"ipi_wake", &vt_opt.ipi_wake, 0, 1000000},
    {"limit", &vt_opt.limit, 0, INT64_MAX},
};

static bool set_integer(const char *name, const char *text)
{
    for (size_t i = 0; i < sizeof(option_names) / sizeof(option_names[0]); i++) {
        const struct option_name *o = &option_names[i];
        char *end;
        int64_t value;

        if (strcmp(o->name, name) != 0) {
            continue;
        }
        errno = 0;
        value = strtoll(text, &end, 10);
        if (errno || end == text || *end || value < o->least || value > o->most) {
            fprintf(stderr, "vtime: %s=%s is outside %lld..%lld\n", name, text,
                    (long long)o->least, (long long)o->most);
            return false;
        }
        memcpy(o->field, &value, sizeof(value));    /* every field is 64 bits wide */
        return true;
    }
    fprintf(stderr, "vtime: unknown option %s\n", name);
    return false;
}

static bool set_option(char *text)
{
    char *value = strchr(text, '=');
    char *end;

    if (!value) {
        fprintf(stderr, "vtime: option %s needs a value\n", text);
        return false;
    }
    *value++ = '\0';
    if (strcmp(text, "idlerate") != 0) {
        return set_integer(text, value);
    }
    vt_opt.idlerate = strtod(value, &end);
    if (end == value || *end || !(vt_opt.idlerate > 0) || vt_opt.idlerate > 1000) {
        fprintf(stderr, "vtime: idlerate=%s is not a number above 0, at most 1000\n", value);
        return false;
    }
    return true;
}

static void on_vcpu_init(qemu_plugin_id_t id, unsigned vcpu)
{
    static int installed;

    (void)id;
    vt_vcpus[vcpu].cpu = vt_qemu.qemu_get_cpu((int)vcpu);
    if (!VT_SWAP(installed, 1)) {
        host_start = vt_host_ns();
        vt_clock_install();
    }
}

static void on_exit_report(qemu_plugin_id_t id, void *unused)
{
    uint64_t units = 0, waits = 0, timeouts = 0, kicks = 0;
    double host = (double)(vt_host_ns() - host_start) / 1e9;

    (void)id;
    (void)unused;
    for (int i = 0; i < vt_ncpus; i++) {
        units += vt_vcpus[i].units;
        waits += vt_vcpus[i].waits;
        timeouts += vt_vcpus[i].timeouts;
        kicks += vt_vcpus[i].kicks;
    }
    fprintf(stderr,
            "vtime: {\"host_s\": %.3f, \"virtual_s\": %.6f, \"idle_s\": %.6f, "
            "\"minstructions\": %.1f, \"advances\": %llu, \"timer_runs\": %llu, \"waits\": %llu, "
            "\"timeouts\": %llu, \"kicks\": %llu, \"reverted\": %llu}\n",
            host, (double)vt_clock_now() / 1e9, (double)vt_stats.idle_ns / 1e9,
            (double)units / VT_UNIT / 1e6, (unsigned long long)vt_stats.advances,
            (unsigned long long)vt_stats.timer_runs, (unsigned long long)waits,
            (unsigned long long)timeouts, (unsigned long long)kicks,
            (unsigned long long)vt_stats.reverted_kicks);
}

int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        if (!set_option(argv[i])) {
            return -1;
        }
    }
    if (!info->system_emulation || info->system.smp_vcpus > VT_MAX_VCPUS) {
        fprintf(stderr, "vtime: refused: needs system emulation of at most %d vCPUs\n",
                VT_MAX_VCPUS);
        return -1;
    }
    if (!vt_layout_find()) {
        return -1;
    }
    if (!qemu_plugin_request_time_control()) {
        fprintf(stderr, "vtime: refused: another plugin controls time\n");
        return -1;
    }
    vt_ncpus = info->system.smp_vcpus;
    vt_count_init();
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
    qemu_plugin_register_vcpu_idle_cb(id, vt_on_idle);
    qemu_plugin_register_vcpu_resume_cb(id, vt_on_resume);
    qemu_plugin_register_vcpu_tb_trans_cb(id, vt_on_translate);
    qemu_plugin_register_atexit_cb(id, on_exit_report, NULL);
    return 0;
}
