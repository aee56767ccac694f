#include "apps/kv/command.h"

#include <string.h>
#include <strings.h>

#define W   CMD_WRITE
#define R   CMD_READONLY
#define M   CMD_DENYOOM
#define F   CMD_FAST
#define A   CMD_ADMIN
#define N   CMD_NOMULTI
#define ALL CMD_WHOLE

static const struct command table[] = {
    /* name, handler, arity, flags, first, last, step, group, since, summary */
    {"get", cmd_get, 2, R | F, 1, 1, 1, "string", "1.0.0", "Get the value of a key"},
    {"set", cmd_set, -3, W | M, 1, 1, 1, "string", "1.0.0", "Set the value of a key"},
    {"setnx", cmd_setnx, 3, W | M | F, 1, 1, 1, "string", "1.0.0",
     "Set the value of a key that does not exist"},
    {"setex", cmd_setex, 4, W | M, 1, 1, 1, "string", "2.0.0",
     "Set the value and the time to live in seconds"},
    {"psetex", cmd_psetex, 4, W | M, 1, 1, 1, "string", "2.6.0",
     "Set the value and the time to live in milliseconds"},
    {"getset", cmd_getset, 3, W | M | F, 1, 1, 1, "string", "1.0.0",
     "Set a value and return the old one"},
    {"getdel", cmd_getdel, 2, W | F, 1, 1, 1, "string", "6.2.0", "Return a value and delete it"},
    {"getex", cmd_getex, -2, W | F, 1, 1, 1, "string", "6.2.0",
     "Return a value and set its expiry"},
    {"mget", cmd_mget, -2, R | F, 1, -1, 1, "string", "1.0.0", "Get the values of many keys"},
    {"mset", cmd_mset, -3, W | M, 1, -1, 2, "string", "1.0.1", "Set many keys at once"},
    {"msetnx", cmd_msetnx, -3, W | M, 1, -1, 2, "string", "1.0.1",
     "Set many keys if none of them exists"},
    {"append", cmd_append, 3, W | M | F, 1, 1, 1, "string", "2.0.0", "Append to a value"},
    {"strlen", cmd_strlen, 2, R | F, 1, 1, 1, "string", "2.2.0", "Length of a value"},
    {"setrange", cmd_setrange, 4, W | M, 1, 1, 1, "string", "2.2.0", "Overwrite part of a value"},
    {"getrange", cmd_getrange, 4, R, 1, 1, 1, "string", "2.4.0", "Part of a value"},
    {"substr", cmd_getrange, 4, R, 1, 1, 1, "string", "1.0.0", "Part of a value"},
    {"incr", cmd_incr, 2, W | M | F, 1, 1, 1, "string", "1.0.0", "Add one"},
    {"decr", cmd_decr, 2, W | M | F, 1, 1, 1, "string", "1.0.0", "Subtract one"},
    {"incrby", cmd_incrby, 3, W | M | F, 1, 1, 1, "string", "1.0.0", "Add a whole number"},
    {"decrby", cmd_decrby, 3, W | M | F, 1, 1, 1, "string", "1.0.0", "Subtract a whole number"},
    {"incrbyfloat", cmd_incrbyfloat, 3, W | M | F, 1, 1, 1, "string", "2.6.0",
     "Add a floating-point number"},
    {"del", cmd_del, -2, W, 1, -1, 1, "generic", "1.0.0", "Delete keys"},
    {"unlink", cmd_del, -2, W | F, 1, -1, 1, "generic", "4.0.0", "Delete keys"},
    {"exists", cmd_exists, -2, R | F, 1, -1, 1, "generic", "1.0.0", "Count existing keys"},
    {"type", cmd_type, 2, R | F, 1, 1, 1, "generic", "1.0.0", "Type of a key"},
    {"expire", cmd_expire, -3, W | F, 1, 1, 1, "generic", "1.0.0",
     "Set the time to live in seconds"},
    {"pexpire", cmd_pexpire, -3, W | F, 1, 1, 1, "generic", "2.6.0",
     "Set the time to live in milliseconds"},
    {"expireat", cmd_expireat, -3, W | F, 1, 1, 1, "generic", "1.2.0",
     "Set the Unix time of expiry in seconds"},
    {"pexpireat", cmd_pexpireat, -3, W | F, 1, 1, 1, "generic", "2.6.0",
     "Set the Unix time of expiry in milliseconds"},
    {"expiretime", cmd_expiretime, 2, R | F, 1, 1, 1, "generic", "7.0.0",
     "Unix time of expiry in seconds"},
    {"pexpiretime", cmd_pexpiretime, 2, R | F, 1, 1, 1, "generic", "7.0.0",
     "Unix time of expiry in milliseconds"},
    {"ttl", cmd_ttl, 2, R | F, 1, 1, 1, "generic", "1.0.0", "Time to live in seconds"},
    {"pttl", cmd_pttl, 2, R | F, 1, 1, 1, "generic", "2.6.0", "Time to live in milliseconds"},
    {"persist", cmd_persist, 2, W | F, 1, 1, 1, "generic", "2.2.0", "Remove the expiry"},
    {"keys", cmd_keys, 2, R | ALL, 0, 0, 0, "generic", "1.0.0", "Keys matching a pattern"},
    {"scan", cmd_scan, -2, R | ALL, 0, 0, 0, "generic", "2.8.0", "Iterate over the keys"},
    {"randomkey", cmd_randomkey, 1, R | ALL, 0, 0, 0, "generic", "1.0.0", "A random key"},
    {"rename", cmd_rename, 3, W, 1, 2, 1, "generic", "1.0.0", "Rename a key"},
    {"renamenx", cmd_renamenx, 3, W | F, 1, 2, 1, "generic", "1.0.0",
     "Rename a key if the new name is free"},
    {"touch", cmd_touch, -2, R | F, 1, -1, 1, "generic", "3.2.1", "Note an access to keys"},
    {"dbsize", cmd_dbsize, 1, R | F | ALL, 0, 0, 0, "server", "1.0.0", "Number of keys"},
    {"flushdb", cmd_flushall, -1, W | ALL, 0, 0, 0, "server", "1.0.0", "Delete every key"},
    {"flushall", cmd_flushall, -1, W | ALL, 0, 0, 0, "server", "1.0.0", "Delete every key"},
    {"copy", cmd_copy, -3, W | M, 1, 2, 1, "generic", "6.2.0", "Copy a value to another key"},
    {"object", cmd_object, -2, R, 2, 2, 1, "generic", "2.2.3", "How a key is stored"},
    {"multi", cmd_multi, 1, F | N, 0, 0, 0, "transactions", "1.2.0", "Start a transaction"},
    {"exec", cmd_exec, 1, N, 0, 0, 0, "transactions", "1.2.0", "Execute a transaction"},
    {"discard", cmd_discard, 1, F | N, 0, 0, 0, "transactions", "2.0.0", "Drop a transaction"},
    {"watch", cmd_watch, -2, F | N, 1, -1, 1, "transactions", "2.2.0",
     "Make EXEC depend on keys being unchanged"},
    {"unwatch", cmd_unwatch, 1, F, 0, 0, 0, "transactions", "2.2.0", "Forget watched keys"},
    {"ping", cmd_ping, -1, F, 0, 0, 0, "connection", "1.0.0", "Answer"},
    {"echo", cmd_echo, 2, F, 0, 0, 0, "connection", "1.0.0", "Answer with the argument"},
    {"select", cmd_select, 2, F, 0, 0, 0, "connection", "1.0.0", "Choose database 0"},
    {"quit", cmd_quit, -1, F | N, 0, 0, 0, "connection", "1.0.0", "Close the connection"},
    {"reset", cmd_reset, 1, F | N, 0, 0, 0, "connection", "6.2.0", "Reset the session"},
    {"hello", cmd_hello, -1, F, 0, 0, 0, "connection", "6.0.0", "Choose the protocol version"},
    {"auth", cmd_auth, -2, F, 0, 0, 0, "connection", "1.0.0", "Authenticate"},
    {"info", cmd_info, -1, ALL, 0, 0, 0, "server", "1.0.0", "Counters and settings"},
    {"command", cmd_command, -1, 0, 0, 0, 0, "server", "2.8.13", "Describe the commands"},
    {"config", cmd_config, -2, A | ALL, 0, 0, 0, "server", "2.0.0", "Read or change settings"},
    {"client", cmd_client, -2, 0, 0, 0, 0, "connection", "2.4.0", "Describe connections"},
    {"time", cmd_time, 1, F, 0, 0, 0, "server", "2.6.0", "The server's time"},
    {"memory", cmd_memory, -2, R | ALL, 0, 0, 0, "server", "4.0.0", "Memory of a key"},
    {"debug", cmd_debug, -2, A | ALL | CMD_DEBUG, 0, 0, 0, "server", "1.0.0", "For tests"},
    {"shutdown", cmd_shutdown, -1, A | N, 0, 0, 0, "server", "1.0.0", "Stop the server"},
    {"post", cmd_security, -1, N, 0, 0, 0, "server", "3.2.0", "Refuses HTTP"},
    {"host:", cmd_security, -1, N, 0, 0, 0, "server", "3.2.0", "Refuses HTTP"},
};

#define COUNT (sizeof(table) / sizeof(table[0]))
_Static_assert(COUNT <= CMD_MAX, "CMD_MAX counts every command");

/* Open addressing by a hash of length, first, second and last letter, lower case. */
#define SLOTS        256u
#define NAME_MAX_LEN 15u

static uint8_t slots[SLOTS]; /* index + 1 */

static unsigned hash_of(const char *p, size_t len)
{
    unsigned a = (unsigned char)p[0] | 0x20, b = (unsigned char)p[len > 1] | 0x20;
    unsigned y = (unsigned char)p[len - 1] | 0x20, z = (unsigned char)p[len / 2] | 0x20;

    return (a * 31 + b * 7 + y * 131 + z * 17 + (unsigned)len * 59) % SLOTS;
}

void command_init(void)
{
    memset(slots, 0, sizeof(slots));
    for (size_t i = 0; i < COUNT; i++) {
        unsigned h = hash_of(table[i].name, strlen(table[i].name));

        while (slots[h]) {
            h = (h + 1) % SLOTS;
        }
        slots[h] = (uint8_t)(i + 1);
    }
}

/* Names are letters (and one ':'), for which this comparison equals strncasecmp. */
static bool same(const char *name, const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        char ch = p[i];

        if (ch >= 'A' && ch <= 'Z') {
            ch = (char)(ch | 0x20);
        }
        if (name[i] != ch) {
            return false; /* also at the end of a shorter name */
        }
    }
    return name[len] == '\0';
}

const struct command *command_find(const char *p, size_t len)
{
    if (len == 0 || len > NAME_MAX_LEN) {
        return NULL;
    }
    for (unsigned h = hash_of(p, len); slots[h]; h = (h + 1) % SLOTS) {
        const struct command *cmd = &table[slots[h] - 1];

        if (same(cmd->name, p, len)) {
            return cmd;
        }
    }
    return NULL;
}

unsigned command_index(const struct command *cmd)
{
    return (unsigned)(cmd - table);
}

size_t command_count(void)
{
    return COUNT;
}

const struct command *command_at(size_t i)
{
    return &table[i];
}

bool command_arity_ok(const struct command *cmd, unsigned argc)
{
    return cmd->arity >= 0 ? argc == (unsigned)cmd->arity : argc >= (unsigned)-cmd->arity;
}

unsigned command_keys(const struct command *cmd, unsigned argc)
{
    int last = cmd->last < 0 ? (int)argc + cmd->last : cmd->last;

    if (cmd->first == 0 || last < cmd->first) {
        return 0;
    }
    if (last >= (int)argc) {
        last = (int)argc - 1;
    }
    return (unsigned)((last - cmd->first) / cmd->step + 1);
}

unsigned command_key_pos(const struct command *cmd, unsigned i)
{
    return (unsigned)(cmd->first + (int)i * cmd->step);
}

bool arg_is(const struct arg *a, const char *word)
{
    size_t n = strlen(word);

    return a->len == n && strncasecmp(a->p, word, n) == 0;
}
