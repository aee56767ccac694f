/* The Internet checksum (RFC 1071) by 8 bytes at a time: one's complement sums may be taken in any width. */
#include <stdint.h>

#include "lwip/inet_chksum.h"

uint16_t port_checksum(const void *data, int len)
{
    typedef uint64_t __attribute__((may_alias, aligned(1))) word64;
    typedef uint16_t __attribute__((may_alias, aligned(1))) word16;
    const uint8_t *p = (const uint8_t *)data;
    uint64_t sum = 0;
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t word = *(const word64 *)p;
        sum += word;
        sum += sum < word; /* end-around carry */
    }
    uint64_t rest = 0;
    for (; len >= 2; len -= 2, p += 2) {
        rest += *(const word16 *)p;
    }
    if (len > 0) {
        rest += *p; /* little endian: the last byte is the low one of its pair */
    }
    sum += rest;
    sum += sum < rest;
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}
