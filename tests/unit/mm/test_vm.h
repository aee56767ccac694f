#ifndef WEIR_TESTS_MM_TEST_VM_H
#define WEIR_TESTS_MM_TEST_VM_H

int vm_set_up(void **state);
int vm_tear_down(void **state);
void vm_random_operations(void **state);
void vm_many_cpus(void **state);

#endif
