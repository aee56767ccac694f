/* Every tunable of core/kern, with its unit and the reason for its value. */
#ifndef WEIR_CORE_KERN_TUNABLES_H
#define WEIR_CORE_KERN_TUNABLES_H

/* Processes: a server and a load generator are the use; a few more for tests. */
#define MAX_PROCS 8

/* File descriptors of a process: 10,000 connections with room for as many more, in chunks of one page of pointers. */
#define FD_CHUNK 512
#define FD_CHUNKS 128
#define FD_MAX (FD_CHUNK * FD_CHUNKS)

/* Stack of a process's first thread in bytes: Linux's default limit, demand-zero, so only what is touched costs. */
#define APP_STACK_SIZE (8ull << 20)
/* Arguments and environment of a process: what fits one command line, and the vector of pointers to it. */
#define APP_MAX_ARGS 128
#define APP_MAX_ENV 64
#define APP_MAX_STRINGS 16384
/* Program headers of one ELF file: linkers make about ten. */
#define ELF_MAX_SEGMENTS 32

/* Futex hash buckets: several for each of 64 CPUs x a handful of waiting threads. Power of two. */
#define FUTEX_BUCKETS 1024
/* Futex words with statistics of their own; further ones share one entry. Power of two. */
#define FUTEX_STATS 1024
/* Robust-list entries walked at thread exit: Linux's bound. */
#define ROBUST_LIST_LIMIT 2048

/* Bytes a pipe holds: Linux's default. Power of two. */
#define PIPE_BYTES 65536u
/* Most bytes one read or write moves: Linux's MAX_RW_COUNT. */
#define RW_MAX 0x7ffff000ull
/* Most pieces of one vector call: Linux's UIO_MAXIOV. */
#define IOV_MAX_PIECES 1024
/* Pieces that fit the caller's stack; longer vectors are allocated. */
#define IOV_ON_STACK 8
/* Descriptors polled without allocating. */
#define POLL_ON_STACK 8
/* Events that one epoll_wait looks at before it lets others run. */
#define EPOLL_BATCH 512
/* Buckets of an epoll set's table of descriptors; grows with the set. Power of two. */
#define EPOLL_BUCKETS_MIN 64

/* Files in /tmp, and the most bytes of one of them (whole pages are charged to MEM_FILE). */
#define TMP_MAX_FILES 1024
#define TMP_MAX_BYTES (64ull << 20)
#define PATH_BYTES 256

/* Signals queued for one process with its threads: Linux's RLIMIT_SIGPENDING is of this order. */
#define SIGNALS_QUEUED_MAX 4096

/* Text views (/proc, /sys, HTTP): most bytes of one view, the largest kmalloc. */
#define TEXT_MAX (4u << 20)

/* Longest that an idle CPU polls before it halts, ns, unless the command line says otherwise: about the cost of an IPI with
 * the wake from HLT that it saves.  On emulated CPUs the default is 0: there polling only slows down the CPU waited for. */
#define IDLE_SPIN_NS 20000
#define IDLE_SPIN_AUTO UINT64_MAX

/* Orderly shutdown: guest time that processes have after SIGTERM, nanoseconds.  Two seconds were too short for 16 busy vCPUs
 * emulated on two cores. */
#define SHUTDOWN_GRACE_NS (10 * NSEC_PER_SEC)

/* A CPU counts as used in a phase if application threads ran on it for more than 1 / this of the phase. */
#define MARK_CPU_USED_DIVISOR 100

/* HTTP port: bounds that keep any client from holding more than a little memory for more than a little time. */
#define HTTP_MAX_CLIENTS 8
#define HTTP_MAX_REQUEST 8192
/* Clients that are refused at a time, and how long each has to send its request: an answer to a connection that is closed with
 * something unread in it would be lost by the reset. */
#define HTTP_MAX_REFUSED 1024 /* power of two */
#define HTTP_REFUSE_NS NSEC_PER_SEC
#define HTTP_CLIENT_NS (30 * NSEC_PER_SEC)
/* Connections that wait to be accepted.  Far more than are served at once: each of them gets its answer or a 503 in its turn,
 * while the SYN of one too many is dropped and comes again only after seconds. */
#define HTTP_BACKLOG 1024
#define HTTP_MAX_DRAIN 64 /* reads after the answer */

#endif
