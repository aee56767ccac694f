/* Compiler and platform as lwIP sees them: nothing but the compiler's own headers. */
#ifndef WEIR_LWIP_CC_H
#define WEIR_LWIP_CC_H

#include <stddef.h>
#include <stdint.h>

#define BYTE_ORDER              LITTLE_ENDIAN
#define LWIP_NO_INTTYPES_H      1
#define LWIP_NO_UNISTD_H        1
#define LWIP_NO_CTYPE_H         1
#define LWIP_NO_LIMITS_H        1
#ifndef INT_MAX
#define INT_MAX                 0x7fffffff
#endif
#ifndef SSIZE_MAX
typedef long ssize_t;
#define SSIZE_MAX               0x7fffffffffffffffL
#endif
#define X8_F                    "02x"
#define U16_F                   "u"
#define S16_F                   "d"
#define X16_F                   "x"
#define U32_F                   "u"
#define S32_F                   "d"
#define X32_F                   "x"
#define SZT_F                   "zu"

#define lwip_htons(x)           ((u16_t)__builtin_bswap16(x))
#define lwip_htonl(x)           ((u32_t)__builtin_bswap32(x))

/* Constant sizes become moves: freestanding compilation alone would call memcpy for the 6 bytes of an Ethernet address. */
#define SMEMCPY(dst, src, len)  __builtin_memcpy((dst), (src), (len))
#define MEMCPY(dst, src, len)   __builtin_memcpy((dst), (src), (len))

/* lwIP's assertions cost 3% of its instructions: debug kernels and host tests have them. */
#if !defined(WEIR_DEBUG) && !defined(WEIR_HOST_TEST)
#define LWIP_NOASSERT           1
#endif

void port_fail(const char *message, const char *file, int line) __attribute__((noreturn));
uint64_t port_random(void);
void *port_malloc(size_t bytes);
void *port_calloc(size_t count, size_t bytes);
void port_free(void *p);
uint16_t port_checksum(const void *data, int len);

#define LWIP_PLATFORM_DIAG(x)   do { } while (0)
#define LWIP_PLATFORM_ASSERT(x) port_fail((x), __FILE__, __LINE__)
#define LWIP_RAND()             ((uint32_t)port_random())

#endif
