#include "apps/kv/server.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apps/kv/clock.h"
#include "apps/kv/command.h"

/* Descriptors kept for the server itself: standard ones, listeners, event descriptors, epoll. */
#define OWN_FDS 32

/* Raises the descriptor limit for the connections asked for, or lowers their number with a line. */
static void fit_descriptors(struct config *cfg)
{
    struct rlimit rl;
    rlim_t want = cfg->max_conns + OWN_FDS;

    if (getrlimit(RLIMIT_NOFILE, &rl) != 0 || rl.rlim_cur >= want) {
        return;
    }
    if (rl.rlim_max < want) {
        struct rlimit more = {want, want};

        if (setrlimit(RLIMIT_NOFILE, &more) == 0) {
            return;
        }
        want = rl.rlim_max;
    }
    rl.rlim_cur = want;
    if (setrlimit(RLIMIT_NOFILE, &rl) != 0) {
        getrlimit(RLIMIT_NOFILE, &rl);
        want = rl.rlim_cur;
    }
    if (want < cfg->max_conns + OWN_FDS) {
        cfg->max_conns = want > 2 * OWN_FDS ? want - OWN_FDS : OWN_FDS;
        fprintf(stderr, "kv: the system allows %llu descriptors: KV_MAX_CONNS lowered to %llu\n",
                (unsigned long long)want, (unsigned long long)cfg->max_conns);
    }
}

static int fill_random(void *p, size_t n)
{
    return getrandom(p, n, 0) == (ssize_t)n ? 0 : -1;
}

static int init_store(struct server *srv)
{
    struct store_config sc = {
        .nshards = (unsigned)srv->cfg.shards,
        .max_memory = srv->cfg.max_memory,
        .policy = (enum evict_policy)srv->cfg.policy,
        .stop_the_world = srv->cfg.stop_the_world,
        .lock_stats = srv->cfg.lock_stats,
    };

    if (fill_random(sc.secret, sizeof(sc.secret)) != 0) {
        fprintf(stderr, "kv: no random numbers for the hash key: %s\n", strerror(errno));
        return -1;
    }
    if (store_init(&srv->store, &sc) != 0) {
        fprintf(stderr, "kv: not enough memory for %u shards\n", sc.nshards);
        return -1;
    }
    return 0;
}

int server_init(struct server *srv, const struct config *cfg)
{
    memset(srv, 0, sizeof(*srv));
    srv->cfg = *cfg;
    fit_descriptors(&srv->cfg);
    srv->max_conns = srv->cfg.max_conns;
    srv->idle_timeout_s = srv->cfg.idle_timeout_s;
    srv->start_ms = clock_wall_ms();
    srv->cpus = cpus_granted();
    srv->width = config_width(&srv->cfg, srv->cpus);
    pthread_mutex_init(&srv->conns_lock, NULL);
    srv->cmd_slots = aligned_alloc(_Alignof(struct cmd_slot), CMD_SLOTS * sizeof(struct cmd_slot));
    srv->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (!srv->cmd_slots || srv->stop_fd < 0) {
        fprintf(stderr, "kv: cannot start: %s\n", strerror(errno));
        return -1;
    }
    memset(srv->cmd_slots, 0, CMD_SLOTS * sizeof(struct cmd_slot));
    command_init();
    return init_store(srv);
}

static int listen_on(const struct config *cfg, uint64_t port, const char *what)
{
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int one = 1;
    int fd;

    if (inet_pton(AF_INET, cfg->bind, &sa.sin_addr) != 1) {
        fprintf(stderr, "kv: KV_BIND: '%s' is not an IPv4 address\n", cfg->bind);
        return -1;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        fprintf(stderr, "kv: cannot create a socket: %s\n", strerror(errno));
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) != 0 || listen(fd, KV_BACKLOG) != 0) {
        fprintf(stderr, "kv: cannot listen on %s:%llu (%s): %s\n", cfg->bind,
                (unsigned long long)port, what, strerror(errno));
        close(fd);
        return -1;
    }
    return fd;
}

int server_listen(struct server *srv, int fds[2])
{
    fds[0] = -1;
    fds[1] = -1;
    if (srv->cfg.resp_port) {
        fds[0] = listen_on(&srv->cfg, srv->cfg.resp_port, "KV_RESP_PORT");
        if (fds[0] < 0) {
            return -1;
        }
    }
    if (srv->cfg.mc_port) {
        fds[1] = listen_on(&srv->cfg, srv->cfg.mc_port, "KV_MC_PORT");
        if (fds[1] < 0) {
            return -1;
        }
    }
    return 0;
}

void server_conn_totals(struct server *srv, struct conn_totals *t)
{
    pthread_mutex_lock(&srv->conns_lock);
    *t = (struct conn_totals){.commands = srv->count.commands,
                              .bytes_in = srv->count.bytes_in,
                              .bytes_out = srv->count.bytes_out,
                              .batches = srv->count.batches,
                              .connected = srv->nconns,
                              .peak = srv->peak_conns};
    for (struct conn *c = srv->conns; c; c = c->next) {
        t->commands += atomic_load_explicit(&c->commands, memory_order_relaxed);
        t->bytes_in += atomic_load_explicit(&c->bytes_in, memory_order_relaxed);
        t->bytes_out += atomic_load_explicit(&c->bytes_out, memory_order_relaxed);
        t->batches += atomic_load_explicit(&c->batches, memory_order_relaxed);
        t->held += atomic_load_explicit(&c->held, memory_order_relaxed);
        t->in_flight += atomic_load_explicit(&c->replying, memory_order_relaxed);
    }
    pthread_mutex_unlock(&srv->conns_lock);
}
