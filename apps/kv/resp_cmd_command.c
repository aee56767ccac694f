/* COMMAND: the table of commands as clients and redis-cli read it. */
#include <string.h>

#include "apps/kv/command.h"

static const struct {
    unsigned flag;
    const char *name;
} flag_names[] = {{CMD_WRITE, "write"}, {CMD_READONLY, "readonly"}, {CMD_DENYOOM, "denyoom"},
                  {CMD_FAST, "fast"},   {CMD_ADMIN, "admin"},       {CMD_NOMULTI, "no_multi"}};

#define NFLAGS (sizeof(flag_names) / sizeof(flag_names[0]))

static void describe(struct conn *c, const struct command *cmd)
{
    uint64_t n = 0;

    reply_array(c, 10);
    reply_bulk_str(c, cmd->name);
    reply_int(c, cmd->arity);
    for (size_t i = 0; i < NFLAGS; i++) {
        n += (cmd->flags & flag_names[i].flag) != 0;
    }
    reply_set(c, n);
    for (size_t i = 0; i < NFLAGS; i++) {
        if (cmd->flags & flag_names[i].flag) {
            reply_status(c, flag_names[i].name);
        }
    }
    reply_int(c, cmd->first);
    reply_int(c, cmd->last);
    reply_int(c, cmd->step);
    for (int i = 0; i < 4; i++) {
        reply_array(c, 0); /* ACL categories, tips, key specifications, subcommands: none told */
    }
}

static void document(struct conn *c, const struct command *cmd)
{
    reply_bulk_str(c, cmd->name);
    reply_map(c, 4);
    reply_bulk_str(c, "summary");
    reply_bulk_str(c, cmd->summary);
    reply_bulk_str(c, "since");
    reply_bulk_str(c, cmd->since);
    reply_bulk_str(c, "group");
    reply_bulk_str(c, cmd->group);
    reply_bulk_str(c, "arguments");
    reply_array(c, 0);
}

static bool visible(const struct conn *c, const struct command *cmd)
{
    return !(cmd->flags & CMD_DEBUG) || c->srv->cfg.debug;
}

static uint64_t visible_count(const struct conn *c)
{
    uint64_t n = 0;

    for (size_t i = 0; i < command_count(); i++) {
        n += visible(c, command_at(i));
    }
    return n;
}

static void each_command(struct conn *c, void (*fn)(struct conn *, const struct command *))
{
    for (size_t i = 0; i < command_count(); i++) {
        if (visible(c, command_at(i))) {
            fn(c, command_at(i));
        }
    }
}

static void name_only(struct conn *c, const struct command *cmd)
{
    reply_bulk_str(c, cmd->name);
}

static void command_docs(struct conn *c, unsigned argc, struct arg *argv)
{
    uint64_t n = 0;

    if (argc == 2) {
        reply_map(c, visible_count(c));
        each_command(c, document);
        return;
    }
    for (unsigned i = 2; i < argc; i++) {
        n += command_find(argv[i].p, argv[i].len) != NULL;
    }
    reply_map(c, n);
    for (unsigned i = 2; i < argc; i++) {
        const struct command *cmd = command_find(argv[i].p, argv[i].len);

        if (cmd) {
            document(c, cmd);
        }
    }
}

static void command_info(struct conn *c, unsigned argc, struct arg *argv)
{
    if (argc == 2) {
        reply_array(c, visible_count(c));
        each_command(c, describe);
        return;
    }
    reply_array(c, argc - 2);
    for (unsigned i = 2; i < argc; i++) {
        const struct command *cmd = command_find(argv[i].p, argv[i].len);

        if (cmd) {
            describe(c, cmd);
        } else {
            reply_null(c);
        }
    }
}

static void command_getkeys(struct conn *c, unsigned argc, struct arg *argv)
{
    const struct command *cmd = command_find(argv[2].p, argv[2].len);
    unsigned n;

    if (!cmd) {
        reply_error(c, "ERR Invalid command specified");
        return;
    }
    if (!command_arity_ok(cmd, argc - 2)) {
        reply_error(c, "ERR Invalid number of arguments specified for command");
        return;
    }
    n = command_keys(cmd, argc - 2);
    if (n == 0) {
        reply_error(c, "ERR The command has no key arguments");
        return;
    }
    reply_array(c, n);
    for (unsigned i = 0; i < n; i++) {
        const struct arg *a = &argv[2 + command_key_pos(cmd, i)];

        reply_bulk(c, a->p, a->len);
    }
}

static void command_count_all(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    reply_int(c, (int64_t)visible_count(c));
}

static void command_list(struct conn *c, unsigned argc, struct arg *argv)
{
    (void)argc;
    (void)argv;
    reply_array(c, visible_count(c));
    each_command(c, name_only);
}

static void command_help(struct conn *c, unsigned argc, struct arg *argv)
{
    static const char *const lines[] = {"COMMAND <subcommand> [<arg> ...]. Subcommands are:",
                                        "(no subcommand)",
                                        "COUNT",
                                        "DOCS [<name> ...]",
                                        "GETKEYS <command>",
                                        "INFO [<name> ...]",
                                        "LIST",
                                        "HELP"};

    (void)argc;
    (void)argv;
    SUB_HELP(c, lines);
}

void cmd_command(struct conn *c, unsigned argc, struct arg *argv)
{
    static const struct subcommand subs[] = {
        {"count", 2, command_count_all},  {"docs", -2, command_docs},
        {"info", -2, command_info},       {"list", 2, command_list},
        {"getkeys", -3, command_getkeys}, {"help", 2, command_help}};

    if (argc == 1) {
        reply_array(c, visible_count(c));
        each_command(c, describe);
    } else {
        SUB_DISPATCH(c, subs, argc, argv);
    }
}
