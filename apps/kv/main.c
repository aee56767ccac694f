/* kv: a key-value server that speaks the Redis and the memcached protocol over one store. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/kv/config.h"
#include "apps/kv/publish.h"
#include "apps/kv/server.h"

extern char **environ;

static struct server server;

static void say(const char *line)
{
    fprintf(stderr, "kv: %s\n", line);
}

/* Async-signal-safe: wakes main, which ends the server in order. */
static void on_stop(int sig)
{
    uint64_t one = 1;
    int saved = errno;

    (void)sig;
    (void)!write(server.stop_fd, &one, sizeof(one));
    errno = saved;
}

static void install_signals(void)
{
    struct sigaction sa;

    memset(&sa, 0, sizeof(sa));
    sa.sa_handler = on_stop;
    sigaction(SIGTERM, &sa, NULL);
    sigaction(SIGINT, &sa, NULL);
    sa.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &sa, NULL);
}

static void wait_for_stop(void)
{
    uint64_t n;

    while (read(server.stop_fd, &n, sizeof(n)) < 0 && errno == EINTR) {
    }
}

int main(int argc, char **argv)
{
    struct config cfg;
    int fds[2];
    int rc;

    config_defaults(&cfg);
    if (config_env(&cfg, environ, say, say) != 0) {
        return EXIT_FAILURE;
    }
    rc = config_args(&cfg, argc, argv, say);
    if (rc != 0) {
        return rc > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (config_check(&cfg, say) != 0 || server_init(&server, &cfg) != 0) {
        return EXIT_FAILURE;
    }
    publish_locks(&server.store);
    install_signals();
    if (server_listen(&server, fds) != 0 || maint_start(&server) != 0 ||
        dispatch_start(&server, fds) != 0) {
        return EXIT_FAILURE;
    }
    printf("kv: ready resp=%llu mc=%llu shards=%llu dispatch=%s\n",
           (unsigned long long)cfg.resp_port, (unsigned long long)cfg.mc_port,
           (unsigned long long)cfg.shards, cfg.dispatch == DISPATCH_POOL ? "pool" : "thread");
    fflush(stdout);
    wait_for_stop();
    atomic_store(&server.stopping, true);
    printf("kv: stopped\n");
    fflush(stdout);
    _exit(EXIT_SUCCESS);
}
