/* One JSON line per phase. Times in microseconds of the machine's clock. */
#include <stdio.h>

#include "apps/load/phase.h"

#define NS_PER_US 1000.0

static double quantile_us(const struct hist *h, double share)
{
    return (double)hist_quantile(h, share) / NS_PER_US;
}

static void print_share(const char *name, double share)
{
    if (share < 0) {
        printf(", \"%s\": null", name);
    } else {
        printf(", \"%s\": %.4f", name, share);
    }
}

static void print_slices(const struct phase_result *r)
{
    if (!r->slice_ms) {
        return;
    }
    printf(", \"slice_ms\": %u, \"slices\": [", r->slice_ms);
    for (uint32_t i = 0; i < r->slices_used; i++) {
        printf("%s%llu", i ? "," : "", (unsigned long long)r->slices[i]);
    }
    printf("]");
}

void report_phase(const struct options *o, const struct phase_spec *spec,
                  const struct phase_result *r)
{
    const struct counts *c = &r->counts;
    const struct hist *h = &r->latency;

    printf("{\"phase\": \"%s\", \"conns\": %u, \"rep\": %u, \"threads\": %u, \"loop\": \"%s\", "
           "\"proto\": \"%s\", \"pipeline\": %u, \"seconds\": %.6f",
           spec->name, spec->conns, spec->rep, r->threads, spec->rate ? "open" : "closed",
           o->proto == PROTO_RESP ? "resp" : "memcache", spec->pipeline, r->seconds);
    printf(", \"requests\": %llu, \"rps\": %.1f, \"offered_rps\": %u, \"gets\": %llu, "
           "\"sets\": %llu, \"hits\": %llu",
           (unsigned long long)c->requests, (double)c->requests / r->seconds, spec->rate,
           (unsigned long long)c->gets, (unsigned long long)c->sets, (unsigned long long)c->hits);
    printf(", \"errors\": %llu, \"bad_values\": %llu, \"disconnects\": %llu, \"replaced\": %llu, "
           "\"unfinished\": %llu",
           (unsigned long long)c->errors, (unsigned long long)c->bad_values,
           (unsigned long long)c->disconnects, (unsigned long long)c->replaced,
           (unsigned long long)c->unfinished);
    printf(", \"mean_us\": %.3f, \"min_us\": %.3f, \"p50_us\": %.3f, \"p90_us\": %.3f, "
           "\"p99_us\": %.3f, \"p999_us\": %.3f, \"max_us\": %.3f",
           hist_mean(h) / NS_PER_US, h->count ? (double)h->min / NS_PER_US : 0.0,
           quantile_us(h, 0.5), quantile_us(h, 0.9), quantile_us(h, 0.99), quantile_us(h, 0.999),
           (double)h->max / NS_PER_US);
    print_share("client_busy_mean", r->busy_mean);
    print_share("client_busy_max", r->busy_max);
    print_share("client_queue_share", r->queue_share);
    printf(", \"client_late_p99_us\": %.3f, \"client_bound\": %s", quantile_us(&r->late, 0.99),
           r->client_bound ? "true" : "false");
    print_slices(r);
    printf("}\n");
    fflush(stdout);
}
