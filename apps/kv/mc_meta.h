/* Flags of a meta command, parsed; shared by mc_meta.c and mc_meta_cmd.c. */
#ifndef KV_MC_META_H
#define KV_MC_META_H

#include "apps/kv/mc_proto.h"

#define META_OPAQUE_MAX 32

struct meta {
    struct key key;
    char bin[KV_MC_KEY_MAX]; /* the key, if it came as base64 */
    const struct arg *flags; /* the words that carry flags */
    unsigned nflags;
    bool b64, quiet;
    char mode; /* M token; 0 = none */
    bool has_cas, has_ttl, has_vivify, has_recache, value, invalidate, no_update;
    uint64_t cas;
    uint64_t expire_ms; /* of T */
    uint64_t vivify_ms; /* of N */
    int64_t recache_s;
    uint32_t client_flags;
    uint64_t delta, initial;
};

/* Parses key (tok[1]) and flags (from tok[first]); `allowed` lists the flags of the command. false:
 * replied. */
bool meta_parse(struct conn *c, const struct mc_line *l, unsigned first, const char *allowed,
                struct meta *m);

/* Appends " <flag><value>" for every flag that returns something. it may be NULL (k, O and b only).
 * hit and idle_s: state before this access. */
struct meta_seen {
    bool hit;
    uint32_t idle_s;
    bool refused; /* a store: the cas returned is 0 */
};
void meta_flags(struct conn *c, const struct meta *m, struct item *it, struct meta_seen seen);

size_t meta_get(struct conn *c, struct mc_line *l);
size_t meta_set(struct conn *c, struct mc_line *l);
size_t meta_delete(struct conn *c, struct mc_line *l);
size_t meta_arithmetic(struct conn *c, struct mc_line *l);

#endif
