/* The one function of the C library's stdlib.h that lwIP uses: port/libc.c. */
#ifndef WEIR_PORT_STDLIB_H
#define WEIR_PORT_STDLIB_H

#include <stddef.h>

int atoi(const char *s);

#endif
