/* The two functions that the compiler may call on its own. */
#include "arch/x86_64/uefi/loader.h"

void *memcpy(void *dst, const void *src, size_t n)
{
    void *result = dst;

    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(n) : : "memory");
    return result;
}

void *memset(void *dst, int value, size_t n)
{
    void *result = dst;

    __asm__ volatile("rep stosb" : "+D"(dst), "+c"(n) : "a"(value) : "memory");
    return result;
}
