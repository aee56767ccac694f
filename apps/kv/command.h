/* The table of Redis commands: names, arity, where the keys are, and who executes them. */
#ifndef KV_COMMAND_H
#define KV_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "apps/kv/reply.h"
#include "apps/kv/server.h"

#define CMD_WRITE    1u
#define CMD_READONLY 2u
#define CMD_DENYOOM  4u /* may need memory */
#define CMD_FAST     8u
#define CMD_ADMIN    16u
#define CMD_NOMULTI  32u  /* runs at once even between MULTI and EXEC */
#define CMD_WHOLE    64u  /* looks at every shard */
#define CMD_DEBUG    128u /* exists only with KV_DEBUG=1 */

struct command {
    const char *name; /* lower case */
    void (*run)(struct conn *c, unsigned argc, struct arg *argv);
    int arity; /* exact count with the name, or minus the least */
    unsigned flags;
    int first, last, step; /* positions of keys; last < 0 counts from the end; first 0 = none */
    const char *group;
    const char *since;
    const char *summary;
};

/* Builds the name index; once, before any lookup. */
void command_init(void);
/* NULL when unknown. Any case. */
const struct command *command_find(const char *name, size_t len);
unsigned command_index(const struct command *cmd);
size_t command_count(void);
const struct command *command_at(size_t i);

bool command_arity_ok(const struct command *cmd, unsigned argc);
/* Number of keys, and the position of the i-th (0..n-1). */
unsigned command_keys(const struct command *cmd, unsigned argc);
unsigned command_key_pos(const struct command *cmd, unsigned i);

/* Executes the command in argv (resp_exec.c). */
void resp_execute(struct conn *c, unsigned argc, struct arg *argv);

/* Commands with subcommands: argv[1] chooses; arity counts all words, as in struct command. */
struct subcommand {
    const char *name;
    int arity;
    void (*run)(struct conn *c, unsigned argc, struct arg *argv);
};
void sub_dispatch(struct conn *c, const struct subcommand *subs, size_t n, unsigned argc,
                  struct arg *argv);
#define SUB_DISPATCH(c, subs, argc, argv)                                                          \
    sub_dispatch((c), (subs), sizeof(subs) / sizeof((subs)[0]), (argc), (argv))
void sub_help(struct conn *c, const char *const *lines, size_t n);
#define SUB_HELP(c, lines) sub_help((c), (lines), sizeof(lines) / sizeof((lines)[0]))

/* True if the argument is this word, in any case. */
bool arg_is(const struct arg *a, const char *word);
/* Replies the usual error when false. */
bool arg_i64(struct conn *c, const struct arg *a, int64_t *v);
/* A key made of an argument; false (and an error reply) if it exceeds the limit. */
bool arg_key(struct conn *c, const struct arg *a, struct key *k);
/* false (and an error reply) if a value of this length exceeds the limit. */
bool value_fits(struct conn *c, uint64_t len);

/* Printable text without blanks, shorter than max; false (replied) otherwise. what: its name in the
 * message. */
bool name_ok(struct conn *c, const struct arg *a, size_t max, const char *what);

/* Sets or replaces a value and clears flags and expiry; false: out of memory (replied). */
bool put_value(struct conn *c, struct shard *s, const struct key *k, struct item *old,
               const char *p, size_t len);

/* Turns an expiry argument into Unix ms; false (replied) if out of range.
 * unit_ms 1 or 1000; relative: counts from now.
 * name: of the command, for the message. */
bool expire_time(struct conn *c, const char *name, const struct arg *a, int64_t unit_ms,
                 bool relative, int64_t *ms);

/* glob.c: Redis patterns (* ? [a-z] [^x] \x); no recursion, at most len(pattern) x len(text). */
bool glob_match(const char *pat, size_t plen, const char *s, size_t slen);

/* resp_multi.c */
void multi_queue(struct conn *c, const struct command *cmd, unsigned argc, struct arg *argv);
void multi_reset(struct conn *c);
void multi_unwatch(struct conn *c);

#define HANDLER(name) void cmd_##name(struct conn *c, unsigned argc, struct arg *argv)

HANDLER(get);
HANDLER(set);
HANDLER(setnx);
HANDLER(setex);
HANDLER(psetex);
HANDLER(getset);
HANDLER(getdel);
HANDLER(getex);
HANDLER(mget);
HANDLER(mset);
HANDLER(msetnx);
HANDLER(append);
HANDLER(strlen);
HANDLER(setrange);
HANDLER(getrange);
HANDLER(incr);
HANDLER(decr);
HANDLER(incrby);
HANDLER(decrby);
HANDLER(incrbyfloat);
HANDLER(del);
HANDLER(exists);
HANDLER(type);
HANDLER(expire);
HANDLER(pexpire);
HANDLER(expireat);
HANDLER(pexpireat);
HANDLER(expiretime);
HANDLER(pexpiretime);
HANDLER(ttl);
HANDLER(pttl);
HANDLER(persist);
HANDLER(keys);
HANDLER(scan);
HANDLER(randomkey);
HANDLER(rename);
HANDLER(renamenx);
HANDLER(touch);
HANDLER(dbsize);
HANDLER(flushall);
HANDLER(copy);
HANDLER(object);
HANDLER(multi);
HANDLER(exec);
HANDLER(discard);
HANDLER(watch);
HANDLER(unwatch);
HANDLER(ping);
HANDLER(echo);
HANDLER(select);
HANDLER(quit);
HANDLER(reset);
HANDLER(hello);
HANDLER(auth);
HANDLER(info);
HANDLER(command);
HANDLER(config);
HANDLER(client);
HANDLER(time);
HANDLER(memory);
HANDLER(debug);
HANDLER(security);
HANDLER(shutdown);

#endif
