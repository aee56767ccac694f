/*
 * load: loads a key-value server over TCP and prints one JSON line per phase.
 *
 * The same static binary runs on Linux and inside Weir, where it is the second process: it is
 * linked at another address than the server, since both live in one address space.
 * Exit status: 0 all phases ran and every value read was right; 1 otherwise; 2 bad options.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "apps/load/phase.h"

static struct phase_result result;      /* too large for a small stack */

/* Tells an emulator that measures instructions that the measured part begins: a NOP that names
 * itself by its displacement (tests/bench/vtime/vtime.h). */
static void mark_measurement(void)
{
#ifdef __x86_64__
    __asm__ volatile(".byte 0x0f, 0x1f, 0x84, 0x00; .ascii \"WEIR\"");
#endif
}

static bool run_preload(const struct options *o, const struct keyspace *space,
                        const struct sockaddr_in *server)
{
    struct phase_spec spec = {
        .name = "preload",
        .conns = LOAD_PRELOAD_CONNS,
        .pipeline = LOAD_PRELOAD_PIPELINE,
        .time_ms = LOAD_MAX_TIME_MS,
        .preload = true,
    };

    if (!phase_run(o, space, server, &spec, &result)) {
        return false;
    }
    if (result.counts.requests != space->keys || result.counts.errors) {
        fprintf(stderr, "load: preload: %llu of %llu keys set, %llu errors\n",
                (unsigned long long)(result.counts.requests - result.counts.errors),
                (unsigned long long)space->keys, (unsigned long long)result.counts.errors);
        return false;
    }
    return true;
}

static bool run_one(const struct options *o, const struct keyspace *space,
                    const struct sockaddr_in *server, struct phase_spec *spec)
{
    int n = snprintf(spec->name, sizeof(spec->name), "%s%sc=%u", o->name, *o->name ? "/" : "",
                     spec->conns);

    if (spec->rate) {
        n += snprintf(spec->name + n, sizeof(spec->name) - (size_t)n, "/rate=%u", spec->rate);
    }
    snprintf(spec->name + n, sizeof(spec->name) - (size_t)n, "/rep=%u", spec->rep);
    if (!phase_run(o, space, server, spec, &result)) {
        return false;
    }
    report_phase(o, spec, &result);
    if (o->info && !info_report(server, o->info, spec->name)) {
        return false;
    }
    if (result.counts.bad_values) {
        fprintf(stderr, "load: phase %s: %llu values read were wrong\n", spec->name,
                (unsigned long long)result.counts.bad_values);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct options o;
    struct keyspace space;
    struct sockaddr_in server = {.sin_family = AF_INET};
    bool help, good = true;
    uint32_t rates;

    if (!options_parse(&o, argc, argv, &help)) {
        return help ? 0 : 2;
    }
    server.sin_port = htons((uint16_t)o.port);
    if (inet_pton(AF_INET, o.host, &server.sin_addr) != 1) {
        fprintf(stderr, "load: --host %s: not an IPv4 address\n", o.host);
        return 2;
    }
    if (!keyspace_init(&space, o.keys, o.theta, o.value_min, o.value_max)) {
        fprintf(stderr, "load: out of memory for %u keys\n", o.keys);
        return 1;
    }
    worker_init_gaps();
    mark_measurement();
    good = !o.preload || run_preload(&o, &space, &server);
    rates = o.rates_count ? o.rates_count : 1;
    for (uint32_t rep = 1; rep <= o.reps; rep++) {
        for (uint32_t i = 0; good && i < o.conns_count * rates; i++) {
            struct phase_spec spec = {
                .conns = o.conns[i / rates],
                .rate = o.rates_count ? o.rates[i % rates] : 0,
                .rep = rep,
                .pipeline = o.pipeline,
                .warmup_ms = o.warmup_ms,
                .time_ms = o.time_ms,
            };

            good = run_one(&o, &space, &server, &spec);
        }
    }
    keyspace_free(&space);
    return good ? 0 : 1;
}
