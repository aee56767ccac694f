/* Runs all groups in one program, so that the server is compiled once for them. */
#include "tests/unit/kv/kv_tests.h"

int main(void)
{
    int failed = kv_base_tests() + kv_config_tests() + kv_table_tests() + kv_store_tests() + kv_level_tests() +
                 kv_resp_tests() + kv_resp_state_tests() + kv_mc_tests();

    return failed ? 1 : 0;
}
