#include "tests/fuzz/kv/fuzz_protocol.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/kv/kv_harness.h"

/* Small limits, so that the fuzzer reaches them. */
#define MEMORY (4u << 20)
#define VALUE  20000u
#define QUERY  65536u
#define OUTPUT (1u << 20)

static struct harness h;
static size_t idle_bytes;

static void die(const char *what)
{
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

static void open_server(void)
{
    static int is_open;
    struct config cfg;

    if (is_open) {
        return;
    }
    is_open = 1;
    config_defaults(&cfg);
    cfg.shards = 4;
    cfg.max_memory = MEMORY;
    cfg.max_value = VALUE;
    cfg.mc_max_value = VALUE;
    cfg.max_query = QUERY;
    cfg.max_output = OUTPUT;
    cfg.max_line = 4096;
    cfg.debug = 0;
    harness_start(&h, &cfg);
    idle_bytes = atomic_load(&h.srv.store.mem.used);
}

/* Commands whose replies differ from run to run: clocks, counters, chance, sizes of buffers, and
 * settings that would outlive the input. Where they occur, only well-formedness is checked. */
static int varies(const uint8_t *data, size_t n)
{
    static const char *const words[] = {"info",   "time",  "client", "random",   "memory", "object",
                                        "config", "hello", "stats",  "shutdown", "cas",    "gets",
                                        "reset",  "me ",   "scan",   "keys"};

    for (size_t i = 0; i < n; i++) {
        for (size_t w = 0; w < sizeof(words) / sizeof(words[0]); w++) {
            size_t len = strlen(words[w]), j = 0;

            while (j < len && i + j < n && tolower(data[i + j]) == words[w][j]) {
                j++;
            }
            if (j == len) {
                return 1;
            }
        }
    }
    return 0;
}

/* A memcached value holds a cas number, which counts from the start of the server. */
static int asks_for_cas(const uint8_t *data, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        if (data[i] == ' ' && (data[i + 1] == 'c' || data[i + 1] == 'C')) {
            return 1;
        }
    }
    return 0;
}

static char *run(const struct proto *proto, const uint8_t *data, size_t n, unsigned most,
                 size_t *len, int *dropped)
{
    struct conn *c = harness_conn(&h, proto);
    unsigned long long seed = most;
    char *out;
    struct op op;

    for (size_t at = 0; at < n;) {
        size_t part;

        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        part = most ? (size_t)(seed >> 33) % most + 1 : n;
        part = part < n - at ? part : n - at;
        if (!harness_feed(c, data + at, part)) {
            break;
        }
        at += part;
    }
    *dropped = c->dropping;
    out = harness_take(c, len);
    harness_close(c);
    op_begin(&op, &h.srv.store, harness_now_ms);
    store_set_limit(&h.srv.store, MEMORY);
    atomic_store(&h.srv.store.policy, EVICT_NONE);
    atomic_store(&h.srv.max_conns, h.srv.cfg.max_conns);
    atomic_store(&h.srv.store.flush_at_ms, 0);
    store_flush(&op);
    store_reclaim(&h.srv.store);
    for (unsigned i = 0; i < h.srv.store.nshards; i++) {
        struct shard *s = &h.srv.store.shards[i];

        if (s->table.used || s->item_bytes || s->nvolatile || s->watches) {
            die("something is left in a flushed shard");
        }
        shard_release_credit(s);
    }
    return out;
}

static size_t settled(void)
{
    size_t used = atomic_load(&h.srv.store.mem.used);

    /* The tables may have been replaced by smaller ones; nothing may be above the start. */
    return used > idle_bytes ? used - idle_bytes : 0;
}

void fuzz_protocol(const struct proto *proto, const uint8_t *data, size_t n, fuzz_check check)
{
    size_t len1, len2;
    int dropped1, dropped2, vary;
    char *whole, *pieces;

    if (n < 1) {
        return;
    }
    open_server();
    vary = varies(data + 1, n - 1) || (proto == &proto_mc && asks_for_cas(data + 1, n - 1));
    whole = run(proto, data + 1, n - 1, 0, &len1, &dropped1);
    pieces = run(proto, data + 1, n - 1, data[0] % 64 + 1u, &len2, &dropped2);
    check(whole, len1, dropped1);
    check(pieces, len2, dropped2);
    /* A request over the query limit is refused by length of what is held, which depends on pieces;
     * what was replied before is lost when a connection is dropped. */
    if (!vary && !dropped1 && !dropped2 && n < QUERY / 2 &&
        (len1 != len2 || memcmp(whole, pieces, len1) != 0)) {
        fprintf(stderr, "whole:  %.*s\npieces: %.*s\n", (int)len1, whole, (int)len2, pieces);
        die("the replies depend on how the input was cut");
    }
    if (settled() > 65536) {
        die("memory stays charged");
    }
    free(whole);
    free(pieces);
}
