/* State of the memcached protocol on a connection. */
#ifndef KV_MC_H
#define KV_MC_H

#include <stddef.h>
#include <stdint.h>

struct mc_state {
    size_t need;      /* bytes from in.pos that the unfinished request takes; 0 = not yet known */
    size_t scanned;   /* bytes of the unfinished line already searched for its end */
    uint64_t swallow; /* bytes of a refused data block still to be skipped */
};

#endif
