/* A simulated multiprocessor for the interleaving tests.
 *
 * Every simulated CPU runs kernel code as coroutines on the one host thread.  At each vm_point() the machine draws, from a seeded
 * generator, which CPU goes on; before a CPU goes on, pending interrupts are delivered if its interrupts are on.  So
 * a schedule is a function of its seed, and a failure replays. */
#ifndef WEIR_TESTS_SCHED_VMACH_H
#define WEIR_TESTS_SCHED_VMACH_H

#include <stdbool.h>
#include <stdint.h>

struct vm_cpu {
    uint32_t cpu;
    bool irqs_on;
    bool in_irq;
    bool halted;
    bool ipi_pending;
    uint64_t timer_ns; /* UINT64_MAX: off */
    void *sp;          /* coroutine that it was in when the machine went on with another CPU */
    uint32_t park_preempt;
};

struct vm_cpu *vm_here(void);
uint64_t vm_now(void);
void vm_point(void);
void vm_idle_wait(void);
void vm_skip(uint64_t ns);
uint32_t vm_random(uint32_t below);

/* Runs entry(cpu) on `cpus` simulated CPUs until vm_stop() or a failure: all CPUs halted with nothing pending ("lost wakeup"),
 * or more than max_points points ("livelock").  Returns NULL or what went wrong. */
const char *vm_run(uint32_t cpus, uint64_t seed, uint64_t max_points, void (*entry)(uint32_t cpu));
void vm_stop(void);
void vm_fail(const char *what);
uint64_t vm_points(void);
/* The last events of the scheduler, from trace_stub.c. */
void trace_print(void);
/* Halted, and no interrupt is about to end that. */
bool vm_asleep(uint32_t cpu);

#endif
