/* Counting: what generated code adds up per vCPU, and when it calls back. See vtime.h. */
#include "vtime.h"

#include <string.h>

#define MARKER_BYTES 8          /* more than the prefixes and opcode that matter elsewhere */

struct qemu_plugin_scoreboard *vt_scores;

static qemu_plugin_u64 counter_ref;

void vt_count_init(void)
{
    vt_scores = qemu_plugin_scoreboard_new(sizeof(struct vt_counter));
    counter_ref.score = vt_scores;
    counter_ref.offset = offsetof(struct vt_counter, units);
}

static struct vt_counter *counter_of(struct vt_vcpu *v)
{
    return qemu_plugin_scoreboard_find(vt_scores, (unsigned)(v - vt_vcpus));
}

uint64_t vt_counter_read(struct vt_vcpu *v)
{
    uint64_t units = counter_of(v)->units;
    uint64_t preset = v->rechecking ? vt_opt.quantum * VT_UNIT : 0;

    return units > preset ? units - preset : 0;
}

uint64_t vt_counter_take(struct vt_vcpu *v)
{
    uint64_t units = vt_counter_read(v);

    counter_of(v)->units = 0;
    v->rechecking = 0;
    v->units += units;
    return units;
}

void vt_counter_recheck(struct vt_vcpu *v)
{
    v->rechecking = 1;
    counter_of(v)->units = vt_opt.quantum * VT_UNIT;
}

/* What an instruction costs beyond being one instruction. */
struct surcharge {
    uint64_t once;          /* units per execution */
    uint64_t per_access;    /* units per memory access of the kind `access` */
    int access;
};

/* Repeated string instructions: opcode -> which access of an iteration stands for it. */
static int string_access(unsigned char opcode)
{
    switch (opcode) {
    case 0xa4: case 0xa5:   /* movs */
    case 0xaa: case 0xab:   /* stos */
    case 0x6c: case 0x6d:   /* ins */
        return QEMU_PLUGIN_MEM_W;
    case 0xa6: case 0xa7:   /* cmps: two reads an iteration, so charged twice */
    case 0xac: case 0xad:   /* lods */
    case 0xae: case 0xaf:   /* scas */
    case 0x6e: case 0x6f:   /* outs */
        return QEMU_PLUGIN_MEM_R;
    default:
        return 0;
    }
}

/* Classifies the first bytes of an instruction (Intel SDM volume 2, prefixes and map 1). */
static struct surcharge classify(const unsigned char *code, size_t len)
{
    struct surcharge s = {0, 0, 0};
    bool repeat = false, narrow = false, wide = false;
    size_t i = 0;

    for (; i < len; i++) {
        if (code[i] == 0xf3 || code[i] == 0xf2) {
            repeat = true;
        } else if (code[i] == 0x66) {
            narrow = true;
        } else if ((code[i] & 0xf0) == 0x40 && i + 1 < len && string_access(code[i + 1])) {
            wide = code[i] & 8;     /* REX.W */
        } else if (code[i] != 0x67) {
            break;
        }
    }
    if (!repeat || i >= len) {
        return s;
    }
    if (code[i] == 0x90) {
        s.once = vt_opt.pause * VT_UNIT;
        return s;
    }
    s.access = string_access(code[i]);
    if (s.access) {
        s.per_access = !(code[i] & 1) ? 1 : wide ? 8 : narrow ? 2 : 4;
    }
    return s;
}

int vt_marked;

static void on_marker(unsigned vcpu, void *unused)
{
    (void)vcpu;
    (void)unused;
    VT_STORE(vt_marked, 1);
}

/* nopl VT_MARKER(%rax,%rax,1) */
static bool is_marker(const unsigned char *code, size_t len)
{
    static const unsigned char marker[MARKER_BYTES] = {
        0x0f, 0x1f, 0x84, 0x00, VT_MARKER & 0xff, VT_MARKER >> 8 & 0xff, VT_MARKER >> 16 & 0xff,
        VT_MARKER >> 24,
    };

    return len == MARKER_BYTES && memcmp(code, marker, MARKER_BYTES) == 0;
}

void vt_on_translate(qemu_plugin_id_t id, struct qemu_plugin_tb *tb)
{
    size_t n = qemu_plugin_tb_n_insns(tb);
    uint64_t units = n * VT_UNIT;

    (void)id;
    for (size_t k = 0; k < n; k++) {
        struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, k);
        unsigned char code[MARKER_BYTES];
        size_t len = qemu_plugin_insn_data(insn, code, sizeof(code));
        struct surcharge s = classify(code, len);

        if (is_marker(code, len)) {
            qemu_plugin_register_vcpu_insn_exec_cb(insn, on_marker, QEMU_PLUGIN_CB_NO_REGS, NULL);
        }

        units += s.once;
        if (s.access) {
            qemu_plugin_register_vcpu_mem_inline_per_vcpu(
                insn, s.access, QEMU_PLUGIN_INLINE_ADD_U64, counter_ref, s.per_access);
        }
    }
    qemu_plugin_register_vcpu_tb_exec_inline_per_vcpu(tb, QEMU_PLUGIN_INLINE_ADD_U64, counter_ref,
                                                      units);
    qemu_plugin_register_vcpu_tb_exec_cond_cb(tb, vt_on_quantum, QEMU_PLUGIN_CB_NO_REGS,
                                              QEMU_PLUGIN_COND_GE, counter_ref,
                                              vt_opt.quantum * VT_UNIT, NULL);
}
