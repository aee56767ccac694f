/* Load generator: its limits and defaults, with unit and reason. */
#ifndef LOAD_TUNABLES_H
#define LOAD_TUNABLES_H

#define LOAD_MAX_CONNS 20000        /* connections of a phase: the server is sized for 10,000 */
#define LOAD_MAX_THREADS 256
#define LOAD_MAX_STEPS 64           /* entries of a --conns or --rate list */
#define LOAD_MAX_PIPELINE 1024      /* requests in flight on one connection */
#define LOAD_MAX_KEYS 10000000      /* 8 bytes each with --skew zipf */
#define LOAD_MAX_VALUE 1048576      /* bytes; memcached's own limit */
#define LOAD_MAX_TIME_MS 3600000
#define LOAD_MAX_SLICES 400         /* entries of the time series of a phase */
#define LOAD_MAX_RATE 100000000     /* requests a second of an open loop */

#define LOAD_KEY_BYTES 16           /* "key:" and 12 digits */
#define LOAD_NAME_BYTES 128         /* of a phase */
#define LOAD_BUFFER_BYTES 2048      /* least size of a buffer; 10,000 connections have two each */
#define LOAD_BATCH_REPLIES 64       /* replies that one read may bring, at most */

#define LOAD_CONNECT_WAIT_MS 10000  /* how long a server may take to listen */
#define LOAD_CONNECT_RETRY_US 1000
#define LOAD_DRAIN_MS 2000          /* after the end of a phase, for replies still to come */

#define LOAD_PRELOAD_CONNS 16
#define LOAD_PRELOAD_PIPELINE 32

/* The generator says that it was the bottleneck when its threads were this busy on average ... */
#define LOAD_BOUND_BUSY 0.90
/* ... or when this share of the mean latency was replies waiting for the generator itself. */
#define LOAD_BOUND_QUEUE 0.25

#endif
