/* Memory, string and formatting functions of the kernel.  Any context, no locks. */
#ifndef WEIR_CORE_BASE_STRING_H
#define WEIR_CORE_BASE_STRING_H

#include <stdarg.h>

#include "core/base/types.h"

#if defined(WEIR_HOST_TEST)
#include <string.h>
#else
void *memcpy(void *restrict dst, const void *restrict src, size_t n);
void *memmove(void *dst, const void *src, size_t n);
void *memset(void *dst, int c, size_t n);
int memcmp(const void *a, const void *b, size_t n);
void *memchr(const void *s, int c, size_t n);
size_t strlen(const char *s);
size_t strnlen(const char *s, size_t max);
int strcmp(const char *a, const char *b);
int strncmp(const char *a, const char *b, size_t n);
char *strchr(const char *s, int c);
#endif

/* Formats like snprintf: %d %i %u %x %X %p %s %c %% with l, ll, z, h, width, '-', '0' and precision for strings.  Always
 * NUL-terminates if n > 0.  Returns the length that the whole text needs, without NUL. */
int str_format(char *buf, size_t n, const char *fmt, ...) __printf(3, 4);
int str_vformat(char *buf, size_t n, const char *fmt, va_list args);

/* Copies at most n - 1 characters and NUL-terminates; true if all of src fitted. */
bool str_copy(char *dst, const char *src, size_t n);
bool str_starts_with(const char *s, const char *prefix);

/* Parses an unsigned decimal or 0x number that fills all of s (length n).  -EINVAL, -ERANGE. */
int str_parse_u64(const char *s, size_t n, u64 *value);

#endif
