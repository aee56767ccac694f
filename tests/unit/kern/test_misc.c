/* Paths, ChaCha20, growing text. */
#include <errno.h>
#include <string.h>

#include "core/kern/file.h"
#include "core/kern/random.h"
#include "core/kern/text.h"
#include "core/mm/mm.h"
#include "tests/unit/fake/cmocka_all.h"

/* text.c's memory: counts what is out, may run dry. */
static size_t most = SIZE_MAX;
static int blocks;

void *kmalloc(size_t bytes)
{
    void *p = bytes <= most ? malloc(bytes) : NULL;
    blocks += p != NULL;
    return p;
}

void kfree(void *p)
{
    blocks -= p != NULL;
    free(p);
}

static void normalised(const char *in, const char *want)
{
    char out[32];
    assert_int_equal(path_normalise(in, out, sizeof(out)), 0);
    assert_string_equal(out, want);
}

static void paths(void **state)
{
    char small[8];
    (void)state;
    normalised("", "/");
    normalised("/", "/");
    normalised("kv", "/kv");
    normalised("./kv", "/kv");
    normalised("//a///b/", "/a/b");
    normalised("/a/./b/../c", "/a/c");
    normalised("/..", "/");
    normalised("/a/../../b", "/b");
    normalised("/a/..", "/");
    normalised("/a.b/..c", "/a.b/..c");
    assert_int_equal(path_normalise("/abcdef", small, sizeof(small)), 0);
    assert_int_equal(path_normalise("/abcdefg", small, sizeof(small)), -ENAMETOOLONG);
}

/* RFC 8439, section 2.3.2. */
static void chacha20_known_answer(void **state)
{
    static const u8 want[64] = {
        0x10, 0xf1, 0xe7, 0xe4, 0xd1, 0x3b, 0x59, 0x15, 0x50, 0x0f, 0xdd, 0x1f, 0xa3, 0x20, 0x71, 0xc4,
        0xc7, 0xd1, 0xf4, 0xc7, 0x33, 0xc0, 0x68, 0x03, 0x04, 0x22, 0xaa, 0x9a, 0xc3, 0xd4, 0x6c, 0x4e,
        0xd2, 0x82, 0x64, 0x46, 0x07, 0x9f, 0xaa, 0x09, 0x14, 0xc2, 0xd7, 0x05, 0xd9, 0x8b, 0x02, 0xa2,
        0xb5, 0x12, 0x9c, 0xd1, 0xde, 0x16, 0x4e, 0xb9, 0xcb, 0xd0, 0x83, 0xe8, 0xa2, 0x50, 0x3c, 0x4e,
    };
    u8 key_bytes[32], out[64];
    u32 key[8], nonce[3] = { 0x09000000, 0x4a000000, 0 };
    (void)state;
    for (u32 i = 0; i < 32; i++) {
        key_bytes[i] = (u8)i;
    }
    memcpy(key, key_bytes, sizeof(key));
    chacha20_block(key, 1, nonce, out);
    assert_memory_equal(out, want, sizeof(want));
}

static void text_grows(void **state)
{
    struct text t;
    (void)state;
    text_init(&t);
    for (int i = 0; i < 3000; i++) {
        text_add(&t, "%d,", i);
    }
    assert_false(t.failed);
    assert_int_equal(strlen(t.data), t.len);
    assert_int_equal(strncmp(t.data, "0,1,2,", 6), 0);
    assert_string_equal(t.data + t.len - 5, "2999,");
    text_free(&t);
    assert_int_equal(blocks, 0);
}

static void text_without_memory_is_cut(void **state)
{
    struct text t;
    (void)state;
    text_init(&t);
    most = 2048;
    for (int i = 0; i < 1000; i++) {
        text_add(&t, "line %d\n", i);
    }
    assert_true(t.failed);
    assert_int_equal(strlen(t.data), t.len);
    assert_true(t.len < 2048);
    most = SIZE_MAX;
    text_free(&t);
    assert_int_equal(blocks, 0);
}

static void json_strings(void **state)
{
    struct text t;
    (void)state;
    text_init(&t);
    text_json(&t, "a\"b\\c\n\x01\xff");
    assert_string_equal(t.data, "\"a\\\"b\\\\c\\u000a\\u0001\\u00ff\"");
    text_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(paths),      cmocka_unit_test(chacha20_known_answer),
        cmocka_unit_test(text_grows), cmocka_unit_test(text_without_memory_is_cut),
        cmocka_unit_test(json_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
