/* The C library's memory and string functions that lwIP uses: port/libc.c. */
#ifndef WEIR_PORT_STRING_H
#define WEIR_PORT_STRING_H

#include <stddef.h>

void *memcpy(void *restrict dst, const void *restrict src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
size_t strlen(const char *s);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strncpy(char *restrict dst, const char *restrict src, size_t n);

#endif
