/* hiredis with typical use: synchronous calls, binary values, a pipeline, MULTI, errors.
 * usage: hiredis HOST PORT; exit status 0 when all replies were right. */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PIPELINE 10000

static redisContext *context;

static void fail(const char *what, const redisReply *r)
{
    fprintf(stderr, "hiredis: %s: %s\n", what, r ? (r->str ? r->str : "another reply") : context->errstr);
    exit(1);
}

static redisReply *command(const char *format, ...)
{
    va_list args;
    redisReply *r;

    va_start(args, format);
    r = redisvCommand(context, format, args);
    va_end(args);
    if (!r) {
        fail(format, NULL);
    }
    return r;
}

static void expect_text(redisReply *r, int type, const char *text)
{
    if (r->type != type || strcmp(r->str, text) != 0) {
        fail(text, r);
    }
    freeReplyObject(r);
}

static void expect_number(redisReply *r, long long number)
{
    if (r->type != REDIS_REPLY_INTEGER || r->integer != number) {
        fail("a number", r);
    }
    freeReplyObject(r);
}

static void expect_nil(redisReply *r)
{
    if (r->type != REDIS_REPLY_NIL) {
        fail("nil", r);
    }
    freeReplyObject(r);
}

static void check_error(void)
{
    redisReply *r = command("LPUSH l 1");

    if (r->type != REDIS_REPLY_ERROR || !strstr(r->str, "unknown command")) {
        fail("LPUSH is refused", r);
    }
    freeReplyObject(r);
}

static void check_strings(void)
{
    char binary[4096];
    redisReply *r;

    for (size_t i = 0; i < sizeof(binary); i++) {
        binary[i] = (char)(i * 11);
    }
    expect_text(command("PING"), REDIS_REPLY_STATUS, "PONG");
    expect_text(command("SET %s %s EX 100", "key with blanks", "value"), REDIS_REPLY_STATUS, "OK");
    expect_text(command("GET %s", "key with blanks"), REDIS_REPLY_STRING, "value");
    expect_nil(command("GET none"));
    expect_number(command("INCRBY n %d", 41), 41);
    expect_number(command("EXISTS n none"), 1);
    expect_text(command("SET b %b", binary, sizeof(binary)), REDIS_REPLY_STATUS, "OK");
    r = command("GET b");
    if (r->type != REDIS_REPLY_STRING || r->len != sizeof(binary) || memcmp(r->str, binary, r->len) != 0) {
        fail("a binary value", r);
    }
    freeReplyObject(r);
}

static void check_pipeline(void)
{
    redisReply *r;

    for (int i = 1; i <= PIPELINE; i++) {
        redisAppendCommand(context, "INCR pipeline");
    }
    for (int i = 1; i <= PIPELINE; i++) {
        if (redisGetReply(context, (void **)&r) != REDIS_OK) {
            fail("pipeline", NULL);
        }
        expect_number(r, i);
    }
}

static void check_multi(void)
{
    redisReply *r;

    expect_text(command("MULTI"), REDIS_REPLY_STATUS, "OK");
    expect_text(command("SET m 1"), REDIS_REPLY_STATUS, "QUEUED");
    expect_text(command("INCR m"), REDIS_REPLY_STATUS, "QUEUED");
    r = command("EXEC");
    if (r->type != REDIS_REPLY_ARRAY || r->elements != 2 || r->element[1]->integer != 2) {
        fail("EXEC", r);
    }
    freeReplyObject(r);
}

int main(int argc, char **argv)
{
    struct timeval patience = {60, 0};

    if (argc != 3) {
        fprintf(stderr, "usage: hiredis HOST PORT\n");
        return 2;
    }
    context = redisConnectWithTimeout(argv[1], atoi(argv[2]), patience);
    if (!context || context->err) {
        fprintf(stderr, "hiredis: %s\n", context ? context->errstr : "no memory");
        return 1;
    }
    redisSetTimeout(context, patience);
    check_strings();
    check_pipeline();
    check_multi();
    check_error();
    redisFree(context);
    printf("all good\n");
    return 0;
}
