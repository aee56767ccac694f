/* Base64 (RFC 4648, with padding). Pure. */
#ifndef KV_BASE64_H
#define KV_BASE64_H

#include <stddef.h>

/* Bytes of text for n bytes of data. */
#define BASE64_LEN(n) (((n) + 2) / 3 * 4)

/* `to` has BASE64_LEN(n) bytes; returns their number. */
size_t base64_encode(const void *data, size_t n, char *to);
/* `to` has n / 4 * 3 bytes; returns the length, or -1 for what is not strict base64. */
long base64_decode(const char *text, size_t n, void *to);

#endif
