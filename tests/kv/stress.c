/* Many threads on one store, both protocols, with eviction, expiry, flushes, scans, transactions and
 * maintenance at the same time; for ThreadSanitizer. No sockets: connections are fed directly.
 *
 * usage: kv-stress [SEED [STEPS]]; prints the seed, ends with 0 if the invariants held. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "apps/kv/info.h"
#include "tests/unit/kv/kv_harness.h"

#define THREADS 8
#define STEPS   4000
#define KEYS    200

static struct harness h;
static unsigned long steps = STEPS;
static unsigned long long first_seed = 1;
static _Atomic int bad;
static _Atomic bool done;

static unsigned roll(unsigned long long *seed)
{
    *seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(*seed >> 33);
}

static void check(bool ok, const char *what, const char *reply)
{
    if (!ok) {
        fprintf(stderr, "stress: %s: got %.200s\n", what, reply);
        atomic_store(&bad, 1);
    }
}

/* Keys p<i> and q<i> are only written together: whoever reads both in one command sees them equal,
 * unless one has been evicted. */
static void pairs(struct conn *c, unsigned long long *seed)
{
    char ask[256], *got, *second;
    unsigned i = roll(seed) % 20, v = roll(seed) % 1000;

    switch (roll(seed) % 3) {
    case 0:
        snprintf(ask, sizeof(ask), "MSET p%u %u q%u %u\r\n", i, v, i, v);
        got = harness_ask(c, ask);
        check(strcmp(got, "+OK\r\n") == 0 || strncmp(got, "-OOM", 4) == 0, ask, got);
        break;
    case 1:
        snprintf(ask, sizeof(ask), "MULTI\r\nDEL p%u\r\nDEL q%u\r\nEXEC\r\n", i, i);
        got = harness_ask(c, ask);
        check(strstr(got, "*2\r\n:") || strstr(got, "*-1\r\n"), ask, got); /* k1 may be watched */
        break;
    default:
        snprintf(ask, sizeof(ask), "MGET p%u q%u\r\n", i, i);
        got = harness_ask(c, ask);
        second = got + 4 + (strlen(got) - 4) / 2;
        check(strncmp(got, "*2\r\n", 4) == 0 &&
                  (strstr(got, "$-1") || strncmp(got + 4, second, strlen(second)) == 0),
              ask, got);
    }
    free(got);
}

static void single(struct conn *c, unsigned long long *seed)
{
    static const char *const forms[] = {
        "SET k%u %0*u\r\n",        "GET k%u\r\n",       "INCR n%u\r\n",
        "APPEND k%u %0*u\r\n",     "DEL k%u\r\n",       "EXPIRE k%u 1\r\n",
        "SET k%u %0*u PX 20\r\n",  "RENAME k%u k1\r\n", "SCAN %u COUNT 20\r\n",
        "COPY k%u k2 REPLACE\r\n", "GETDEL k%u\r\n",    "RANDOMKEY\r\n",
    };
    char ask[4096];
    unsigned f = roll(seed) % (sizeof(forms) / sizeof(forms[0]));

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(ask, sizeof(ask), forms[f], roll(seed) % KEYS, (int)(roll(seed) % 3000) + 1, 7u);
#pragma GCC diagnostic pop
    free(harness_ask(c, ask));
}

static void whole(struct conn *c, unsigned long long *seed)
{
    static const char *const asks[] = {"INFO all\r\n",
                                       "DBSIZE\r\n",
                                       "KEYS k1*\r\n",
                                       "CLIENT LIST\r\n",
                                       "MULTI\r\nDBSIZE\r\nFLUSHALL\r\nDBSIZE\r\nEXEC\r\n",
                                       "FLUSHALL\r\n",
                                       "CONFIG RESETSTAT\r\n",
                                       "WATCH k1 k2\r\n",
                                       "UNWATCH\r\n"};

    free(harness_ask(c, asks[roll(seed) % (sizeof(asks) / sizeof(asks[0]))]));
}

static void memcached(struct conn *c, unsigned long long *seed)
{
    static const char *const forms[] = {"set k%u 0 1 3\r\nabc\r\n", "get k%u k1 k2\r\n",
                                        "mg k%u v t N30\r\n",       "ms k%u 2 T1\r\nhi\r\n",
                                        "md k%u I T1\r\n",          "gat 1 k%u\r\n",
                                        "incr n%u 5\r\n",           "append k%u 0 0 2\r\nxy\r\n",
                                        "delete k%u\r\n",           "stats\r\n"};
    char ask[128];

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    snprintf(ask, sizeof(ask), forms[roll(seed) % (sizeof(forms) / sizeof(forms[0]))],
             roll(seed) % KEYS);
#pragma GCC diagnostic pop
    free(harness_ask(c, ask));
}

static void *work(void *arg)
{
    unsigned id = (unsigned)(uintptr_t)arg;
    unsigned long long seed = first_seed * 1000 + id;
    struct conn *r = harness_conn(&h, &proto_resp), *m = harness_conn(&h, &proto_mc);

    for (unsigned long i = 0; i < steps && !atomic_load(&bad); i++) {
        unsigned kind = roll(&seed) % 100;

        if (kind < 40) {
            single(r, &seed);
        } else if (kind < 65) {
            pairs(r, &seed);
        } else if (kind < 98) {
            memcached(m, &seed);
        } else {
            whole(r, &seed);
        }
        atomic_fetch_add(&harness_now_ms, 1);
        if (i % 500 == 499) { /* connections come and go */
            harness_close(r);
            r = harness_conn(&h, &proto_resp);
        }
    }
    harness_close(r);
    harness_close(m);
    return NULL;
}

static void *maintain(void *arg)
{
    (void)arg;
    while (!atomic_load(&done)) {
        store_maintain(&h.srv.store, atomic_load(&harness_now_ms));
        store_reclaim(&h.srv.store);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t t[THREADS], keeper;
    struct config cfg;

    if (argc > 1) {
        first_seed = strtoull(argv[1], NULL, 10);
    }
    if (argc > 2) {
        steps = strtoul(argv[2], NULL, 10);
    }
    printf("stress: seed %llu, %lu steps in each of %d threads\n", first_seed, steps, THREADS);
    config_defaults(&cfg);
    cfg.shards = 4;
    cfg.max_memory = 2u << 20;
    cfg.policy = EVICT_ALL_LRU;
    cfg.lock_stats = 1;
    harness_start(&h, &cfg);
    pthread_create(&keeper, NULL, maintain, NULL);
    for (uintptr_t i = 0; i < THREADS; i++) {
        pthread_create(&t[i], NULL, work, (void *)i);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(t[i], NULL);
    }
    atomic_store(&done, true);
    pthread_join(keeper, NULL);
    harness_stop(&h);
    if (atomic_load(&h.srv.store.mem.used) != sizeof(struct shard) * cfg.shards) {
        fprintf(stderr, "stress: %zu bytes are still charged\n",
                atomic_load(&h.srv.store.mem.used));
        return 1;
    }
    return atomic_load(&bad);
}
