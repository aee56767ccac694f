/* The Toeplitz hash against the vectors of Microsoft's RSS specification ("Verifying the RSS hash calculation"). */
#include "net/toeplitz.h"
#include "tests/unit/fake/cmocka_all.h"

static const u8 key[TOEPLITZ_KEY_BYTES] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
    0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

#define IP(a, b, c, d) ((u32)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static void published_vectors(void **state)
{
    static const struct {
        u32 dst;
        u16 dst_port;
        u32 src;
        u16 src_port;
        u32 with_ports, addresses_only;
    } v[] = {
        { IP(161, 142, 100, 80), 1766, IP(66, 9, 149, 187), 2794, 0x51ccc178, 0x323e8fc2 },
        { IP(65, 69, 140, 83), 4739, IP(199, 92, 111, 2), 14230, 0xc626b0ea, 0xd718262a },
        { IP(12, 22, 207, 184), 38024, IP(24, 19, 198, 95), 12898, 0x5c2b394a, 0xd2d0a5de },
        { IP(209, 142, 163, 6), 2217, IP(38, 27, 205, 30), 48228, 0xafc7327f, 0x82989176 },
        { IP(202, 188, 127, 2), 1303, IP(153, 39, 163, 191), 44251, 0x10e828a2, 0x5d1809c5 },
    };
    static struct toeplitz t;
    (void)state;
    toeplitz_init(&t, key);
    for (size_t i = 0; i < ARRAY_SIZE(v); i++) {
        assert_int_equal(toeplitz_hash(&t, v[i].src, v[i].dst, v[i].src_port, v[i].dst_port), v[i].with_ports);
        assert_int_equal(toeplitz_hash_ip(&t, v[i].src, v[i].dst), v[i].addresses_only);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
