/* Names of code addresses, of the kernel and of the applications. */
#ifndef WEIR_CORE_KERN_SYMBOL_H
#define WEIR_CORE_KERN_SYMBOL_H

#include "core/kern/proc.h"

#define SYMBOL_BYTES 96

/* Writes "name+0x12" (or "?") into buf and returns it. p: whose application addresses are meant; NULL: the process that
 * maps the address. Any context. */
const char *symbol_name(const struct proc *p, u64 pc, char buf[SYMBOL_BYTES]);

#endif
