/*
 * The part of QEMU that the virtual-time plugin touches, declared by hand.
 *
 * Two groups. The first is the public TCG plugin interface, version 4 (QEMU 9.1 to 10.x); QEMU
 * checks the version number when it loads us. The second is not an interface at all: functions
 * that the emulator happens to export, and one table whose layout is checked before it is
 * written (layout.c). They are looked up by name at load, so that an emulator without them is
 * refused with one line rather than failing half-way.
 */
#ifndef VTIME_QEMU_API_H
#define VTIME_QEMU_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- public plugin interface ---------------------------------------------------------- */

typedef uint64_t qemu_plugin_id_t;

struct qemu_plugin_tb;          /* a block under translation */
struct qemu_plugin_insn;
struct qemu_plugin_scoreboard;  /* an array with one element per vCPU, grown by QEMU */

typedef struct {
    struct qemu_plugin_scoreboard *score;
    size_t offset;
} qemu_plugin_u64;

typedef struct {
    const char *target_name;
    struct {
        int min;
        int cur;
    } version;
    bool system_emulation;
    struct {
        int smp_vcpus;
        int max_vcpus;
    } system;
} qemu_info_t;

enum { QEMU_PLUGIN_CB_NO_REGS = 0 };
enum { QEMU_PLUGIN_COND_GE = 7 };
enum { QEMU_PLUGIN_INLINE_ADD_U64 = 0 };
enum { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W = 2 };

typedef void (*qemu_plugin_vcpu_cb)(qemu_plugin_id_t, unsigned vcpu);
typedef void (*qemu_plugin_vcpu_udata_cb)(unsigned vcpu, void *udata);
typedef void (*qemu_plugin_tb_trans_cb)(qemu_plugin_id_t, struct qemu_plugin_tb *);
typedef void (*qemu_plugin_exit_cb)(qemu_plugin_id_t, void *udata);

void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb);
void qemu_plugin_register_vcpu_idle_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb);
void qemu_plugin_register_vcpu_resume_cb(qemu_plugin_id_t, qemu_plugin_vcpu_cb);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, qemu_plugin_tb_trans_cb);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, qemu_plugin_exit_cb, void *udata);
void qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(struct qemu_plugin_tb *, int op,
                                                       qemu_plugin_u64, uint64_t imm);
void qemu_plugin_register_vcpu_tb_exec_cond_cb(struct qemu_plugin_tb *,
                                               qemu_plugin_vcpu_udata_cb, int flags, int cond,
                                               qemu_plugin_u64, uint64_t imm, void *udata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *, qemu_plugin_vcpu_udata_cb,
                                            int flags, void *udata);
void qemu_plugin_register_vcpu_mem_inline_per_vcpu(struct qemu_plugin_insn *, int rw, int op,
                                                   qemu_plugin_u64, uint64_t imm);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
size_t qemu_plugin_insn_data(const struct qemu_plugin_insn *, void *dest, size_t len);
struct qemu_plugin_scoreboard *qemu_plugin_scoreboard_new(size_t element_size);
void *qemu_plugin_scoreboard_find(struct qemu_plugin_scoreboard *, unsigned vcpu);
const void *qemu_plugin_request_time_control(void);

/* ---- exported internals ---------------------------------------------------------------- */

typedef struct CPUState CPUState;

enum { QEMU_CLOCK_VIRTUAL = 1 };
enum { QEMU_TIMER_ATTR_ALL = -1 };

/* Bytes from the start of the accelerator's operations table (class AccelOpsClass). */
enum {
    ACCEL_OPS_KICK_VCPU_THREAD = 0x80,
    ACCEL_OPS_GET_VIRTUAL_CLOCK = 0xc0,
    ACCEL_OPS_SET_VIRTUAL_CLOCK = 0xc8,
    ACCEL_OPS_GET_ELAPSED_TICKS = 0xd0,
};

struct qemu_internals {
    void **(*cpus_get_accel)(void);
    const char *(*object_class_get_name)(void *klass);
    void (*mttcg_kick_vcpu_thread)(CPUState *);
    CPUState *(*qemu_get_cpu)(int index);
    bool (*cpu_thread_is_idle)(CPUState *);
    bool (*all_cpu_threads_idle)(void);     /* big lock held */
    void (*bql_lock_impl)(const char *file, int line);
    void (*bql_unlock)(void);
    bool (*bql_locked)(void);
    int64_t (*cpu_get_clock)(void);
    /* ns until the next timer of that clock; 0 when one is due, -1 without timers */
    int64_t (*qemu_clock_deadline_ns_all)(int clock, int attributes);
    bool (*qemu_clock_run_timers)(int clock);   /* big lock held */
    bool (*runstate_is_running)(void);
    int (*qemu_shutdown_requested_get)(void);   /* a cause, 0 when none */
    void (*rcu_register_thread)(void);
};

#endif
