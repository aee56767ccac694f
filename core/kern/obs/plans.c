/* /policy-record: records what the policy is asked and what it answers for a while, then sends that as it is, for a replay on
 * another machine (tests/replay). */
#include "core/base/string.h"
#include "core/kern/obs/obs.h"
#include "core/kern/obs/query.h"
#include "core/kern/obs/tunables.h"
#include "core/mm/mm.h"
#include "sched/sched.h"

static u32 taken;

struct plans {
    u64 ms, kb;
    u8 *memory; /* whole pages, as all that is larger than one */
};

/* The buffer may be freed only after the last call that writes to it.  0: one never came back, and keeps it. */
static u64 stop(void)
{
    u64 lost, bytes, until = arch_clock_ns() + PLANS_END_NS;
    while (!(bytes = policy_record_stop(&lost)) && arch_clock_ns() < until) {
        thread_sleep_until(arch_clock_ns() + PLANS_END_POLL_NS);
    }
    return bytes;
}

static void write_plans(struct http_answer *a, struct out *out)
{
    struct plans *p = a->stream_arg;
    bool ours = true;
    if (out && policy_record_start(p->memory, p->kb << 10) == 0) {
        thread_sleep_until(arch_clock_ns() + p->ms * NSEC_PER_MSEC);
        u64 bytes = stop();
        ours = bytes != 0;
        for (u64 at = 0; at < bytes && !out->failed; at += OUT_BYTES) {
            out_append(out, (const char *)p->memory + at, MIN(bytes - at, (u64)OUT_BYTES));
        }
    }
    if (ours) {
        kfree(p->memory);
    }
    kfree(p);
    obs_release(&taken);
}

void obs_policy_record(const struct http_request *request, struct http_answer *out)
{
    u64 ms = OBS_DEFAULT_MS, kb = PLANS_DEFAULT_KB;
    const struct query_param params[] = {
        { "seconds", QUERY_MILLI, OBS_MIN_MS, OBS_MAX_MS, NULL, &ms },
        { "kb", QUERY_NUMBER, PLANS_MIN_KB, PLANS_MAX_KB, NULL, &kb },
    };
    if (!query_parse(request, params, ARRAY_SIZE(params), out)) {
        return;
    }
    if (!obs_claim(&taken)) {
        query_busy(out, "a recording of the policy's calls");
        return;
    }
    struct plans *p = kzalloc(sizeof(*p));
    u8 *memory = p ? kmalloc(kb << 10) : NULL;
    if (!memory) {
        kfree(p);
        obs_release(&taken);
        out->status = 503;
        text_add(&out->body, "not enough memory for a buffer of %lu KiB\n", kb);
        return;
    }
    *p = (struct plans){ .ms = ms, .kb = kb, .memory = memory };
    out->stream = write_plans;
    out->stream_arg = p;
    out->stream_ns = ms * NSEC_PER_MSEC + PLANS_END_NS + OBS_SEND_NS;
}
