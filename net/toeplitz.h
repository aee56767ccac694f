/* The hash of receive-side scaling (Microsoft, "RSS hashing functions"): for every set bit of the input, the 32 bits of the
 * key that start at that bit's place are added (XOR).  Table-driven: one look-up per input byte. */
#ifndef WEIR_NET_TOEPLITZ_H
#define WEIR_NET_TOEPLITZ_H

#include "core/base/types.h"

#define TOEPLITZ_KEY_BYTES 40
#define TOEPLITZ_INPUT_BYTES 12 /* IPv4: source and destination address, source and destination port */

struct toeplitz {
    u8 key[TOEPLITZ_KEY_BYTES];
    u32 table[TOEPLITZ_INPUT_BYTES][256];
};

void toeplitz_init(struct toeplitz *t, const u8 key[TOEPLITZ_KEY_BYTES]);

/* Of a packet that comes from src to dst; all in host byte order.  Any context. */
static inline u32 toeplitz_hash(const struct toeplitz *t, u32 src_ip, u32 dst_ip, u16 src_port, u16 dst_port)
{
    u32 hash = 0;
    for (u32 i = 0; i < 4; i++) {
        hash ^= t->table[i][(src_ip >> (24 - 8 * i)) & 0xff] ^ t->table[4 + i][(dst_ip >> (24 - 8 * i)) & 0xff];
    }
    return hash ^ t->table[8][src_port >> 8] ^ t->table[9][src_port & 0xff] ^ t->table[10][dst_port >> 8] ^
           t->table[11][dst_port & 0xff];
}

/* Addresses only: what is used for packets without ports. */
static inline u32 toeplitz_hash_ip(const struct toeplitz *t, u32 src_ip, u32 dst_ip)
{
    u32 hash = 0;
    for (u32 i = 0; i < 4; i++) {
        hash ^= t->table[i][(src_ip >> (24 - 8 * i)) & 0xff] ^ t->table[4 + i][(dst_ip >> (24 - 8 * i)) & 0xff];
    }
    return hash;
}

#endif
