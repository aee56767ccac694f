/* futex(2)'s numbers: musl installs no kernel headers. */
#ifndef WEIR_TESTS_GUEST_FUTEX_ABI_H
#define WEIR_TESTS_GUEST_FUTEX_ABI_H

#define FUTEX_WAIT 0
#define FUTEX_WAKE 1
#define FUTEX_CMP_REQUEUE 4
#define FUTEX_WAKE_OP 5
#define FUTEX_WAIT_BITSET 9
#define FUTEX_WAKE_BITSET 10
#define FUTEX_PRIVATE_FLAG 128
#define FUTEX_CLOCK_REALTIME 256
#define FUTEX_WAIT_PRIVATE (FUTEX_WAIT | FUTEX_PRIVATE_FLAG)
#define FUTEX_WAKE_PRIVATE (FUTEX_WAKE | FUTEX_PRIVATE_FLAG)
#define FUTEX_BITSET_MATCH_ANY 0xffffffffu

#define FUTEX_OP_SET 0u
#define FUTEX_OP_ADD 1u
#define FUTEX_OP_OR 2u
#define FUTEX_OP_OPARG_SHIFT 8u
#define FUTEX_OP_CMP_EQ 0u
#define FUTEX_OP_CMP_GT 4u
#define FUTEX_OP(op, oparg, cmp, cmparg)                                                           \
    ((op) << 28 | (cmp) << 24 | ((oparg)&0xfffu) << 12 | ((cmparg)&0xfffu))

#endif
