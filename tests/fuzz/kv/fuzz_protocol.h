/* What the fuzz targets of both protocols share. */
#ifndef KV_FUZZ_PROTOCOL_H
#define KV_FUZZ_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "apps/kv/conn.h"

/* Checks one whole output; aborts if it is not made of well-formed replies. `last` says that the
 * connection was dropped, so that the output may end in the middle. */
typedef void (*fuzz_check)(const char *p, size_t n, int last);

/* Runs the input twice on one protocol, as a whole and in pieces, and compares:
 *   - the outputs are equal, unless the input contains a word that makes replies vary (see the .c);
 *   - everything charged is given back when the connection closes and the store is flushed.
 * The first byte of the input seeds the lengths of the pieces. */
void fuzz_protocol(const struct proto *proto, const uint8_t *data, size_t n, fuzz_check check);

#endif
