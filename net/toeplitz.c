#include "net/toeplitz.h"

#include "core/base/string.h"

/* The 32 bits of the key that start at bit `bit`. */
static u32 key_window(const u8 *key, u32 bit)
{
    u64 word = 0;
    for (u32 i = 0; i < 5; i++) {
        word = word << 8 | key[bit / 8 + i];
    }
    return (u32)(word >> (8 - bit % 8));
}

void toeplitz_init(struct toeplitz *t, const u8 key[TOEPLITZ_KEY_BYTES])
{
    memcpy(t->key, key, TOEPLITZ_KEY_BYTES);
    for (u32 byte = 0; byte < TOEPLITZ_INPUT_BYTES; byte++) {
        for (u32 value = 0; value < 256; value++) {
            u32 hash = 0;
            for (u32 bit = 0; bit < 8; bit++) {
                if ((value & (0x80u >> bit)) != 0) {
                    hash ^= key_window(key, byte * 8 + bit);
                }
            }
            t->table[byte][value] = hash;
        }
    }
}
