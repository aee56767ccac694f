/* x86-64: what a return address looks like from the bytes in front of it. */
#include "core/base/string.h"
#include "core/kern/obs/unwind.h"

#define CALL_REL32 0xe8
#define GROUP5 0xff /* with /2 in the second byte: call through register or memory */

static bool is_indirect(u8 modrm, u32 bytes_after)
{
    u32 mod = modrm >> 6, reg = modrm >> 3 & 7, rm = modrm & 7;
    if (reg != 2) {
        return false;
    }
    u32 sib = mod != 3 && rm == 4;
    u32 displacement = mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0;
    return bytes_after == sib + displacement;
}

bool unwind_is_call(const u8 before[UNWIND_CALL_BYTES], i32 *target)
{
    const u8 *end = before + UNWIND_CALL_BYTES;
    *target = 0;
    if (end[-5] == CALL_REL32) {
        memcpy(target, end - 4, sizeof(*target));
        return true;
    }
    for (u32 len = 2; len <= UNWIND_CALL_BYTES; len++) {
        if (end[-(i32)len] == GROUP5 && is_indirect(end[1 - (i32)len], len - 2)) {
            return true;
        }
    }
    return false;
}
