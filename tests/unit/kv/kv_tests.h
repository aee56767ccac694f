/* The groups of the unit tests of the key-value server; each returns the number of failures. */
#ifndef KV_TESTS_H
#define KV_TESTS_H

int kv_base_tests(void);
int kv_config_tests(void);
int kv_store_tests(void);
int kv_level_tests(void);
int kv_table_tests(void);
int kv_resp_tests(void);
int kv_resp_state_tests(void);
int kv_mc_tests(void);

#endif
