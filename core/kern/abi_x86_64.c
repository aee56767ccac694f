/* x86-64: gate code and hardware capabilities. */
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/abi.h"
#include "core/kern/syscall.h"

size_t abi_gate_code(u8 *out, size_t max)
{
    /* mov $SYS_WEIR_GATE, %eax; syscall; ud2 */
    u8 code[] = { 0xb8, 0, 0, 0, 0, 0x0f, 0x05, 0x0f, 0x0b };
    u32 nr = SYS_WEIR_GATE;
    memcpy(code + 1, &nr, sizeof(nr));
    ASSERT(max >= sizeof(code));
    memcpy(out, code, sizeof(code));
    return sizeof(code);
}

u64 abi_hwcap(void)
{
    u32 a = 1, b, c, d;
    /* Linux gives CPUID leaf 1's EDX. */
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "=c"(c), "=d"(d));
    return d;
}
