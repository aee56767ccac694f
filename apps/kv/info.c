#include "apps/kv/info.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "apps/kv/command.h"
#include "apps/kv/pages.h"

typedef unsigned long long ull;

size_t info_rss(void)
{
    unsigned long size, rss = 0;
    FILE *f = fopen("/proc/self/statm", "re");

    if (f) {
        if (fscanf(f, "%lu %lu", &size, &rss) != 2) {
            rss = 0;
        }
        fclose(f);
    }
    return rss * (size_t)KV_PAGE_SIZE;
}

void info_cpu(uint64_t *user_us, uint64_t *sys_us)
{
    struct rusage ru;

    memset(&ru, 0, sizeof(ru));
    getrusage(RUSAGE_SELF, &ru);
    *user_us = (uint64_t)ru.ru_utime.tv_sec * 1000000 + (uint64_t)ru.ru_utime.tv_usec;
    *sys_us = (uint64_t)ru.ru_stime.tv_sec * 1000000 + (uint64_t)ru.ru_stime.tv_usec;
}

bool info_locks(const struct op *op, struct lockstat *sum)
{
    memset(sum, 0, sizeof(*sum));
    if (!op->st->shards[0].ls) {
        return false;
    }
    for (unsigned i = 0; i < op->st->nshards; i++) {
        lockstat_merge(sum, op_lock_shard(op, i)->ls);
        op_unlock_shard(op, i);
    }
    return true;
}

static const char *human(size_t n, char *text, size_t cap)
{
    static const char units[] = "BKMG";
    double v = (double)n;
    size_t u = 0;

    while (v >= 1024 && u + 1 < sizeof(units) - 1) {
        v /= 1024;
        u++;
    }
    snprintf(text, cap, "%.2f%c", v, units[u]);
    return text;
}

static void section_server(struct conn *c)
{
    struct server *srv = c->srv;
    uint64_t up = (c->op.now_ms - srv->start_ms) / 1000;

    reply_printf(c,
                 "# Server\r\nredis_version:%s\r\nkv_version:%s\r\nredis_mode:standalone\r\n"
                 "arch_bits:64\r\nprocess_id:%d\r\ntcp_port:%llu\r\nmemcached_port:%llu\r\n",
                 KV_REDIS_VERSION, KV_VERSION, (int)getpid(), (ull)srv->cfg.resp_port,
                 (ull)srv->cfg.mc_port);
    reply_printf(c,
                 "uptime_in_seconds:%llu\r\nuptime_in_days:%llu\r\nserver_time_usec:%llu\r\n"
                 "cpus_granted:%u\r\nshards:%u\r\nrehash:%s\r\n",
                 (ull)up, (ull)(up / 86400), (ull)c->op.now_ms * 1000, srv->cpus,
                 srv->store.nshards, srv->cfg.stop_the_world ? "stop-the-world" : "incremental");
}

static void section_clients(struct conn *c)
{
    struct conn_totals t;

    server_conn_totals(c->srv, &t);
    reply_printf(c,
                 "# Clients\r\nconnected_clients:%llu\r\nmaxclients:%llu\r\n"
                 "peak_connected_clients:%llu\r\nblocked_clients:0\r\nclient_buffers:%zu\r\n",
                 (ull)t.connected, (ull)atomic_load(&c->srv->max_conns), (ull)t.peak, t.held);
}

static void section_memory(struct conn *c)
{
    struct store_totals t;
    struct mem *m = &c->srv->store.mem;
    size_t used = store_used_memory(&c->op);
    size_t limit = atomic_load(&m->limit), peak = atomic_load(&m->peak);
    char h1[32], h2[32], h3[32];

    store_totals(&c->op, &t);
    reply_printf(c,
                 "# Memory\r\nused_memory:%zu\r\nused_memory_human:%s\r\nused_memory_rss:%zu\r\n"
                 "used_memory_peak:%zu\r\nused_memory_peak_human:%s\r\nused_memory_dataset:%zu\r\n",
                 used, human(used, h1, sizeof(h1)), info_rss(), peak, human(peak, h2, sizeof(h2)),
                 t.item_bytes);
    reply_printf(c,
                 "used_memory_tables:%zu\r\nshard_credit:%zu\r\narena_used:%zu\r\n"
                 "arena_reserved:%zu\r\nmapped:%zu\r\nmaxmemory:%zu\r\nmaxmemory_human:%s\r\n"
                 "maxmemory_policy:%s\r\nrefused_reservations:%zu\r\nsoft_memory:%zu\r\n"
                 "soft_evictions:%llu\r\n",
                 t.table_bytes, t.credit, t.arena_used, t.arena_reserved, pages_mapped(), limit,
                 human(limit, h3, sizeof(h3)),
                 config_policy_name((uint64_t)atomic_load(&c->srv->store.policy)),
                 atomic_load(&m->refused), atomic_load(&m->soft), (ull)t.stat[ST_EVICTED_SOFT]);
}

#define C(field) (ull) atomic_load_explicit(&n->field, memory_order_relaxed)

static void section_stats(struct conn *c)
{
    struct counters *n = &c->srv->count;
    struct conn_totals t;
    struct store_totals s;

    server_conn_totals(c->srv, &t);
    store_totals(&c->op, &s);
    reply_printf(c,
                 "# Stats\r\ntotal_connections_received:%llu\r\ntotal_commands_processed:%llu\r\n"
                 "total_batches:%llu\r\ntotal_net_input_bytes:%llu\r\n"
                 "total_net_output_bytes:%llu\r\nrejected_connections:%llu\r\n"
                 "refused_by_system:%llu\r\n",
                 C(accepted), (ull)t.commands, (ull)t.batches, (ull)t.bytes_in, (ull)t.bytes_out,
                 C(refused_limit), C(refused_system));
    reply_printf(c,
                 "expired_keys:%llu\r\nevicted_keys:%llu\r\nkeyspace_hits:%llu\r\n"
                 "keyspace_misses:%llu\r\nstores_refused_oom:%llu\r\ntotal_error_replies:%llu\r\n"
                 "protocol_errors:%llu\r\n",
                 (ull)s.stat[ST_EXPIRED], (ull)s.stat[ST_EVICTED], (ull)s.stat[ST_GET_HITS],
                 (ull)s.stat[ST_GET_MISSES], (ull)s.stat[ST_OOM], C(cmd_errors), C(proto_errors));
    reply_printf(c,
                 "closed_partial_timeout:%llu\r\nclosed_idle_timeout:%llu\r\n"
                 "closed_write_timeout:%llu\r\nclosed_query_limit:%llu\r\n"
                 "closed_output_limit:%llu\r\nover_line:%llu\r\nover_key:%llu\r\n"
                 "over_value:%llu\r\nover_args:%llu\r\nover_watch:%llu\r\n",
                 C(timed_out_partial), C(timed_out_idle), C(timed_out_write), C(over_query),
                 C(over_output), C(over_line), C(over_key), C(over_value), C(over_args),
                 C(over_watch));
    reply_printf(c, "rehashes:%llu\r\nrehashing_shards:%zu\r\n", (ull)s.rehashes, s.rehashing);
}

static void section_dispatch(struct conn *c)
{
    struct pool_stats p;
    struct conn_totals t;

    server_conn_totals(c->srv, &t);
    dispatch_pool_stats(c->srv, &p);
    reply_printf(c, "# Dispatch\r\ndispatch_mode:%s\r\nrequests_in_flight:%llu\r\n",
                 c->srv->pool ? "pool" : "thread", (ull)t.in_flight);
    reply_printf(c,
                 "workers_min:%u\r\nworkers_max:%u\r\nworkers_width:%u\r\nworkers_busy:%u\r\n"
                 "queue_length:%llu\r\nqueue_peak:%llu\r\nqueue_served:%llu\r\n"
                 "queue_time_total_us:%llu\r\nqueue_time_mean_us:%.3f\r\n"
                 "queue_time_max_us:%llu\r\n",
                 p.min, p.max, p.width, p.busy, (ull)p.queued, (ull)p.queue_peak, (ull)p.dequeued,
                 (ull)(p.queue_ns / 1000),
                 p.dequeued ? (double)p.queue_ns / 1000 / (double)p.dequeued : 0.0,
                 (ull)(p.queue_ns_max / 1000));
}

static void section_locks(struct conn *c)
{
    struct lockstat l;

    reply_printf(c, "# Locks\r\n");
    if (!info_locks(&c->op, &l)) {
        reply_printf(c, "lock_stats:off\r\n");
        return;
    }
    reply_printf(c,
                 "lock_stats:on\r\nlock_acquisitions:%llu\r\nlock_contended:%llu\r\n"
                 "lock_wait_p50_ns:%llu\r\nlock_wait_p99_ns:%llu\r\nlock_wait_max_ns:%llu\r\n"
                 "lock_wait_total_ns:%llu\r\n",
                 (ull)l.acquired, (ull)l.contended, (ull)hist_quantile(&l.wait, 500),
                 (ull)hist_quantile(&l.wait, 990), (ull)l.wait.max, (ull)l.wait.sum);
    reply_printf(c,
                 "lock_hold_p50_ns:%llu\r\nlock_hold_p99_ns:%llu\r\nlock_hold_max_ns:%llu\r\n"
                 "lock_hold_total_ns:%llu\r\n",
                 (ull)hist_quantile(&l.hold, 500), (ull)hist_quantile(&l.hold, 990),
                 (ull)l.hold.max, (ull)l.hold.sum);
}

static void section_shards(struct conn *c)
{
    reply_printf(c, "# Shards\r\n");
    for (unsigned i = 0; i < c->op.st->nshards; i++) {
        struct shard *s = op_lock_shard(&c->op, i);

        reply_printf(c,
                     "shard%u:keys=%zu,expires=%zu,bytes=%zu,buckets=%zu,rehashing=%d,hits=%llu,"
                     "misses=%llu,expired=%llu,evicted=%llu",
                     i, s->table.used, s->nvolatile, s->item_bytes, table_buckets(&s->table),
                     table_rehashing(&s->table), (ull)s->stat[ST_GET_HITS],
                     (ull)s->stat[ST_GET_MISSES], (ull)s->stat[ST_EXPIRED],
                     (ull)s->stat[ST_EVICTED]);
        if (s->ls) {
            reply_printf(c,
                         ",acquired=%llu,contended=%llu,wait_p99_ns=%llu,wait_max_ns=%llu,"
                         "hold_p50_ns=%llu,hold_p99_ns=%llu,hold_max_ns=%llu",
                         (ull)s->ls->acquired, (ull)s->ls->contended,
                         (ull)hist_quantile(&s->ls->wait, 990), (ull)s->ls->wait.max,
                         (ull)hist_quantile(&s->ls->hold, 500),
                         (ull)hist_quantile(&s->ls->hold, 990), (ull)s->ls->hold.max);
        }
        op_unlock_shard(&c->op, i);
        reply_printf(c, "\r\n");
    }
}

static void section_cpu(struct conn *c)
{
    uint64_t user, sys;

    info_cpu(&user, &sys);
    reply_printf(c, "# CPU\r\nused_cpu_sys:%.6f\r\nused_cpu_user:%.6f\r\n", (double)sys / 1e6,
                 (double)user / 1e6);
}

static void section_persistence(struct conn *c)
{
    reply_printf(c, "# Persistence\r\nloading:0\r\n"); /* nothing is loaded: kept in memory only */
}

static void section_replication(struct conn *c)
{
    reply_printf(c, "# Replication\r\nrole:master\r\nconnected_slaves:0\r\n");
}

static void section_commandstats(struct conn *c)
{
    reply_printf(c, "# Commandstats\r\n");
    for (size_t i = 0; i < command_count(); i++) {
        uint64_t calls = 0;

        for (int s = 0; s < CMD_SLOTS; s++) {
            calls += atomic_load_explicit(&c->srv->cmd_slots[s].calls[i], memory_order_relaxed);
        }
        if (calls) {
            reply_printf(c, "cmdstat_%s:calls=%llu\r\n", command_at(i)->name, (ull)calls);
        }
    }
}

static void section_keyspace(struct conn *c)
{
    struct store_totals t;

    store_totals(&c->op, &t);
    reply_printf(c, "# Keyspace\r\n");
    if (t.items) {
        reply_printf(c, "db0:keys=%zu,expires=%zu,avg_ttl=0\r\n", t.items, t.nvolatile);
    }
}

static const struct {
    const char *name;
    void (*write)(struct conn *c);
    bool usual;
} sections[] = {
    {"server", section_server, true},  {"clients", section_clients, true},
    {"memory", section_memory, true},  {"persistence", section_persistence, true},
    {"stats", section_stats, true},    {"replication", section_replication, true},
    {"cpu", section_cpu, true},        {"dispatch", section_dispatch, true},
    {"locks", section_locks, true},    {"commandstats", section_commandstats, false},
    {"shards", section_shards, false}, {"keyspace", section_keyspace, true},
};

static bool asked(size_t i, unsigned argc, const struct arg *argv)
{
    if (argc == 0) {
        return sections[i].usual;
    }
    for (unsigned a = 0; a < argc; a++) {
        if (arg_is(&argv[a], sections[i].name) || arg_is(&argv[a], "all") ||
            arg_is(&argv[a], "everything") || (arg_is(&argv[a], "default") && sections[i].usual)) {
            return true;
        }
    }
    return false;
}

void info_write(struct conn *c, unsigned argc, const struct arg *argv)
{
    bool first = true;

    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        if (asked(i, argc, argv)) {
            if (!first) {
                reply_printf(c, "\r\n");
            }
            first = false;
            sections[i].write(c);
        }
    }
}
