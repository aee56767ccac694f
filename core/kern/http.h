/* The guest's HTTP port: text views of the kernel for people and monitoring. Read-only unless http.write=1. */
#ifndef WEIR_CORE_KERN_HTTP_H
#define WEIR_CORE_KERN_HTTP_H

#include "core/base/types.h"
#include "net/net.h"

/* Starts the acceptor thread; failures are logged and leave the port off. */
void http_start(struct net *net, u16 port, bool writable);

#endif
