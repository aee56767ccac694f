/* The stats command of the memcached protocol. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "apps/kv/info.h"
#include "apps/kv/mc_proto.h"
#include "apps/kv/reply.h"

typedef unsigned long long ull;

static void stat_u64(struct conn *c, const char *name, uint64_t v)
{
    reply_printf(c, "STAT %s %llu\r\n", name, (ull)v);
}

static void stat_str(struct conn *c, const char *name, const char *v)
{
    reply_printf(c, "STAT %s %s\r\n", name, v);
}

static void stat_time(struct conn *c, const char *name, uint64_t us)
{
    reply_printf(c, "STAT %s %llu.%06llu\r\n", name, (ull)(us / 1000000), (ull)(us % 1000000));
}

static void general_process(struct conn *c)
{
    uint64_t user, sys;

    info_cpu(&user, &sys);
    stat_u64(c, "pid", (uint64_t)getpid());
    stat_u64(c, "uptime", (c->op.now_ms - c->srv->start_ms) / 1000);
    stat_u64(c, "time", c->op.now_ms / 1000);
    stat_str(c, "version", KV_MC_VERSION);
    stat_u64(c, "pointer_size", 64);
    stat_time(c, "rusage_user", user);
    stat_time(c, "rusage_system", sys);
}

static void general_conns(struct conn *c, const struct conn_totals *t)
{
    struct counters *n = &c->srv->count;
    struct pool_stats p;

    dispatch_pool_stats(c->srv, &p);
    stat_u64(c, "max_connections", atomic_load(&c->srv->max_conns));
    stat_u64(c, "curr_connections", t->connected);
    stat_u64(c, "total_connections", n->accepted);
    stat_u64(c, "rejected_connections", n->refused_limit);
    stat_u64(c, "connection_structures", t->peak);
    stat_u64(c, "bytes_read", t->bytes_in);
    stat_u64(c, "bytes_written", t->bytes_out);
    stat_u64(c, "threads", c->srv->pool ? p.width : t->connected);
    stat_u64(c, "idle_kicks", n->timed_out_idle);
}

static const struct {
    const char *name;
    enum shard_stat stat;
} shard_stats[] = {{"get_hits", ST_GET_HITS},       {"get_misses", ST_GET_MISSES},
                   {"get_expired", ST_GET_EXPIRED}, {"delete_misses", ST_DELETE_MISSES},
                   {"delete_hits", ST_DELETE_HITS}, {"incr_misses", ST_INCR_MISSES},
                   {"incr_hits", ST_INCR_HITS},     {"decr_misses", ST_DECR_MISSES},
                   {"decr_hits", ST_DECR_HITS},     {"cas_misses", ST_CAS_MISSES},
                   {"cas_hits", ST_CAS_HITS},       {"cas_badval", ST_CAS_BADVAL},
                   {"touch_hits", ST_TOUCH_HITS},   {"touch_misses", ST_TOUCH_MISSES},
                   {"total_items", ST_TOTAL_ITEMS}, {"evictions", ST_EVICTED},
                   {"reclaimed", ST_EXPIRED},       {"store_no_memory", ST_OOM}};

static void general(struct conn *c)
{
    struct store_totals t;
    struct conn_totals ct;

    store_totals(&c->op, &t);
    server_conn_totals(c->srv, &ct);
    general_process(c);
    general_conns(c, &ct);
    stat_u64(c, "cmd_get", t.stat[ST_GET_HITS] + t.stat[ST_GET_MISSES]);
    stat_u64(c, "cmd_set", t.stat[ST_SETS]);
    stat_u64(c, "cmd_touch", t.stat[ST_TOUCH_HITS] + t.stat[ST_TOUCH_MISSES]);
    for (size_t i = 0; i < sizeof(shard_stats) / sizeof(shard_stats[0]); i++) {
        stat_u64(c, shard_stats[i].name, t.stat[shard_stats[i].stat]);
    }
    stat_u64(c, "curr_items", t.items);
    stat_u64(c, "bytes", t.item_bytes);
    stat_u64(c, "limit_maxbytes", atomic_load(&c->srv->store.mem.limit));
    stat_u64(c, "used_memory", store_used_memory(&c->op));
    stat_u64(c, "hash_bytes", t.table_bytes);
    stat_u64(c, "hash_is_expanding", t.rehashing != 0);
    stat_u64(c, "shards", c->op.st->nshards);
}

static void settings(struct conn *c)
{
    const struct config *f = &c->srv->cfg;

    stat_u64(c, "maxbytes", atomic_load(&c->srv->store.mem.limit));
    stat_u64(c, "maxconns", atomic_load(&c->srv->max_conns));
    stat_u64(c, "tcpport", f->mc_port);
    stat_u64(c, "udpport", 0);
    stat_str(c, "inter", f->bind);
    stat_str(c, "evictions", atomic_load(&c->srv->store.policy) == EVICT_NONE ? "off" : "on");
    stat_str(c, "policy", config_policy_name((uint64_t)atomic_load(&c->srv->store.policy)));
    stat_u64(c, "item_size_max", f->mc_max_value);
    stat_str(c, "cas_enabled", "yes");
    stat_str(c, "flush_enabled", "yes");
    stat_str(c, "auth_enabled_ascii", "no");
    stat_str(c, "hash_algorithm", "siphash13");
    stat_str(c, "binding_protocol", "ascii");
    stat_str(c, "dispatch", c->srv->pool ? "pool" : "thread");
    stat_u64(c, "shards", f->shards);
}

static void dispatch(struct conn *c)
{
    struct pool_stats p;
    struct conn_totals t;

    dispatch_pool_stats(c->srv, &p);
    server_conn_totals(c->srv, &t);
    stat_str(c, "mode", c->srv->pool ? "pool" : "thread");
    stat_u64(c, "in_flight", t.in_flight);
    stat_u64(c, "workers_min", p.min);
    stat_u64(c, "workers_max", p.max);
    stat_u64(c, "workers_width", p.width);
    stat_u64(c, "workers_busy", p.busy);
    stat_u64(c, "queue_length", p.queued);
    stat_u64(c, "queue_peak", p.queue_peak);
    stat_u64(c, "queue_served", p.dequeued);
    stat_u64(c, "queue_time_total_us", p.queue_ns / 1000);
    stat_u64(c, "queue_time_max_us", p.queue_ns_max / 1000);
}

static void locks(struct conn *c)
{
    struct lockstat l;

    stat_str(c, "lock_stats", info_locks(&c->op, &l) ? "on" : "off");
    stat_u64(c, "acquisitions", l.acquired);
    stat_u64(c, "contended", l.contended);
    stat_u64(c, "wait_p50_ns", hist_quantile(&l.wait, 500));
    stat_u64(c, "wait_p99_ns", hist_quantile(&l.wait, 990));
    stat_u64(c, "wait_max_ns", l.wait.max);
    stat_u64(c, "hold_p50_ns", hist_quantile(&l.hold, 500));
    stat_u64(c, "hold_p99_ns", hist_quantile(&l.hold, 990));
    stat_u64(c, "hold_max_ns", l.hold.max);
}

static void shards(struct conn *c)
{
    for (unsigned i = 0; i < c->op.st->nshards; i++) {
        struct shard *s = op_lock_shard(&c->op, i);

        reply_printf(c,
                     "STAT %u:items %zu\r\nSTAT %u:bytes %zu\r\nSTAT %u:get_hits %llu\r\n"
                     "STAT %u:evictions %llu\r\n",
                     i, s->table.used, i, s->item_bytes, i, (ull)s->stat[ST_GET_HITS], i,
                     (ull)s->stat[ST_EVICTED]);
        op_unlock_shard(&c->op, i);
    }
}

static void sizes(struct conn *c)
{
    stat_str(c, "sizes_status", "disabled");
}

static void nothing(struct conn *c)
{
    (void)c; /* memcached's slab classes do not exist here: the list is empty */
}

static const struct {
    const char *name;
    void (*fn)(struct conn *c);
} kinds[] = {{"settings", settings}, {"dispatch", dispatch}, {"locks", locks}, {"shards", shards},
             {"items", nothing},     {"slabs", nothing},     {"sizes", sizes}};

size_t mc_stats(struct conn *c, struct mc_line *l)
{
    if (l->n == 1) {
        general(c);
        MC_REPLY(c, false, "END");
        return l->total;
    }
    if (mc_tok_is(&l->tok[1], "reset")) {
        store_reset_stats(&c->op);
        MC_REPLY(c, false, "RESET");
        return l->total;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (mc_tok_is(&l->tok[1], kinds[i].name)) {
            kinds[i].fn(c);
            MC_REPLY(c, false, "END");
            return l->total;
        }
    }
    MC_ERROR(c, "ERROR");
    return l->total;
}
