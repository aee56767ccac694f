/* lwIP's tcp.c over the connection table. */
#include "net/stack/port/demux.h"

#include "core/tcp.c"
