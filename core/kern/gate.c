/* The gate page: code in application memory that makes one system call, for threads whose process ends while they run
 * application code. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/kern/abi.h"
#include "core/kern/start.h"
#include "core/mm/mm.h"

static u64 gate;

/* Belongs to no process: it stays. */
static char gate_owner;

int gate_init(void)
{
    u8 code[32];
    size_t n = abi_gate_code(code, sizeof(code));
    i64 at = mm_map(0, PAGE_SIZE, MM_READ | MM_WRITE, MM_POPULATE, &gate_owner);
    if (at < 0) {
        return (int)at;
    }
    if (!arch_copy_to_app((u64)at, code, n)) {
        return -ENOMEM;
    }
    gate = (u64)at;
    return mm_protect(gate, PAGE_SIZE, MM_READ | MM_EXEC);
}

u64 gate_address(void)
{
    return gate;
}
