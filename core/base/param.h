/* Every tunable of the kernel, with its unit and the reason for its value. */
#ifndef WEIR_CORE_BASE_PARAM_H
#define WEIR_CORE_BASE_PARAM_H

/* CPUs.  64: a CPU set is one machine word everywhere (cpumask_t). */
#define MAX_CPUS 64

/* Pages. */
#define PAGE_SHIFT 12
#define PAGE_SIZE 4096ull

/* Largest block of the page allocator: 2^10 pages, 4 MiB. */
#define PAGE_MAX_ORDER 10
/* Free single pages that a CPU keeps for itself, and how many it takes or gives at once.  64 pages are 256 KiB a CPU; a
 * batch of 32 makes one trip to the shared lists for 32 page faults. */
#define PAGE_CACHE_MAX 64
#define PAGE_CACHE_BATCH 32
/* Least usable RAM in bytes: kernel tables, 64 per-CPU areas and one lwIP instance need about 12 MiB. */
#define MEM_MIN_BYTES (16ull << 20)

/* Pages that only the kernel may take: application memory, packet buffers and files are refused before the kernel itself
 * runs dry, so that it can still answer, count and log.  512 pages are 2 MiB. */
#define PAGE_KERNEL_RESERVE 512

/* Pages that promises of memory to applications leave alone: page tables, stacks that grow deeper, mappings that were
 * made without a promise.  256 pages are 1 MiB. */
#define MM_PROMISE_SLACK 256

/* Mappings of all applications together; 112 bytes each.  A thread has two (stack and its guard), so 10,000 threads need
 * 20,000; Linux allows 65,530. */
#define MM_MAX_MAPPINGS 131072
/* Unmapped ranges and pages that may wait for a common TLB flush: 2 MiB at most, and the stacks of 64 threads that ended. */
#define MM_LIMBO_RANGES 64
#define MM_LIMBO_PAGES 512
/* Pages that are unmapped or moved with the address space locked (interrupts off) at a time: about 30 us. */
#define MM_CHUNK_PAGES 256

/* Objects that a CPU keeps per slab cache; 31 pointers and two counters are four cache lines. */
#define SLAB_MAGAZINE_SIZE 31
/* A magazine holds at most this many bytes of objects, so that large classes do not hoard memory. */
#define SLAB_MAGAZINE_BYTES (16 * 1024)
/* Largest slab is 2^3 pages (32 KiB): eight objects of a page each. */
#define SLAB_MAX_ORDER 3
/* Slabs without any object in use that a cache keeps before it gives pages back. */
#define SLAB_MAX_EMPTY 4
#define SLAB_MAX_CACHES 64

/* Free kernel stacks that stay mapped: per CPU and size, and shared per size.  A connection's thread needs three stacks
 * (28 KiB); 16 of each a CPU and 256 shared absorb bursts of a few hundred short connections with at most about 20 MiB. */
#define KSTACK_CPU_CACHE 16
#define KSTACK_SHARED_CACHE 256
/* Largest stack in pages; sizes are powers of two. */
#define KSTACK_MAX_PAGES 16
/* Stacks that are unmapped with one TLB flush. */
#define KSTACK_UNMAP_BATCH 32

/* Kernel stack of a thread in bytes: system calls run on it.  lwIP's deepest output path measured under 4 KiB. */
#define KSTACK_SIZE (16 * 1024)
/* Interrupt stack of a thread: holds the trap frame and whatever runs at the end of an interrupt: the scheduler, a signal frame
 * under construction.  Handlers themselves run on the per-CPU stack. */
#define THREAD_IRQ_STACK_SIZE (8 * 1024)
/* Fault stack of a thread: the page-fault handler neither blocks nor nests. */
#define THREAD_FAULT_STACK_SIZE (8 * 1024)
/* Per-CPU stack on which interrupt handlers (network receive included) run. */
#define CPU_IRQ_STACK_SIZE (32 * 1024)

/* Longest log line in characters, prefix included: a line is built on the stack of whoever logs. */
#define LOG_LINE_MAX 500
/* Frames printed by a panic.  The deepest call chain of a system call is about 25. */
#define PANIC_MAX_FRAMES 48

#endif
