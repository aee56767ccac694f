/* Unpredictable numbers for the network: secrets, ephemeral ports, DHCP transaction numbers. */
#ifndef WEIR_NET_RANDOM_H
#define WEIR_NET_RANDOM_H

#include "core/base/types.h"

/* Any context. */
u64 net_random(void);

#endif
