/* Every tunable number of the key-value server, with its unit and the reason for its value. */
#ifndef KV_TUNABLES_H
#define KV_TUNABLES_H

/* ---- memory ---- */

/* Bytes of one page of the page heap; the machine's page, so that a freed run can go back whole. */
#define KV_PAGE_SIZE 4096u
/* Bytes of one chunk asked of the system. Aligned to its own size, so that a block finds its chunk
 * by masking its address. 1 MB: small enough to be given back often, large enough that mmap stays
 * out of sight. */
#define KV_CHUNK_SIZE  (1024u * 1024u)
#define KV_CHUNK_PAGES (KV_CHUNK_SIZE / KV_PAGE_SIZE)
/* Completely free chunks kept before one is unmapped; avoids map/unmap at a boundary. */
#define KV_CHUNK_SPARE 2u
/* Largest block cut from a shard's slabs, bytes. Beyond it the copy costs more than the page
 * heap's lock. */
#define KV_SLAB_MAX 32768u
/* Smallest slab, bytes: one lock of the page heap buys about 90 items of 176 bytes. */
#define KV_SLAB_MIN_SPAN 16384u
/* Fewest blocks in a slab of large blocks: bounds the tail loss of a slab to 1/8. */
#define KV_SLAB_MIN_BLOCKS 8u
/* Memory credit a shard takes from the limit at once, bytes (upper bound). */
#define KV_CREDIT_MAX 65536u
/* All credits together are at most 1/32 of the limit, so that the limit is met within 3%. */
#define KV_CREDIT_SHARE 32u

/* ---- table ---- */

/* Buckets of an empty shard; a power of two. */
#define KV_TABLE_MIN 16u
/* Non-empty buckets moved by one operation while a shard grows, and empty ones skipped at most:
 * twice as fast as inserts can fill the new table, so that a rehash always ends before the next. */
#define KV_REHASH_STEP  2u
#define KV_REHASH_EMPTY 16u
/* Shrink when fewer than 1/8 of the buckets hold an item. */
#define KV_TABLE_SHRINK 8u
/* Bucket arrays of this many bytes or more come straight from mmap: zeroed on demand. */
#define KV_TABLE_MMAP 65536u

#define KV_SHARDS_MAX     4096u
#define KV_SHARDS_DEFAULT 64u
#define KV_CACHE_LINE     64u

/* ---- eviction and expiry ---- */

/* Items compared for one eviction in the own shard, and in each foreign one that can be had without
 * waiting. 5 is where sampled LRU is near true LRU (Redis measured the same figure). */
#define KV_EVICT_SAMPLES 5u
#define KV_EVICT_SHARDS  2u
/* Buckets looked at to find the samples of one eviction. */
#define KV_EVICT_BUCKETS 64u
/* Evictions one store may pay for before it is refused (a large value pushes out many small). */
#define KV_EVICT_MAX 65536u
/* Items that one new one pushes out above the soft level (memory.high): more than one, so that the store shrinks. */
#define KV_SOFT_EVICTIONS 4u
/* Growth after which the soft level is looked up again, and what it stays below memory.high for blocks that are kept, bytes. */
#define KV_LEVEL_STEP   (1024u * 1024u)
#define KV_LEVEL_MARGIN (2u * 1024u * 1024u)
/* Buckets drawn for a random item before they are gone through in turn: a table that is not about to shrink has an item in
 * every eighth, and misses so often once in 30 million times. */
#define KV_RANDOM_DRAWS 128u
/* Maintenance period while something has an expiry time, milliseconds. */
#define KV_MAINT_MS 100
/* Buckets examined under one hold of a shard's lock by the active expiry. */
#define KV_EXPIRE_BUCKETS 32u
/* Rounds of KV_EXPIRE_BUCKETS per shard and period; more only while at least a quarter expired. */
#define KV_EXPIRE_ROUNDS     4u
#define KV_EXPIRE_ROUNDS_MAX 256u

/* ---- connections ---- */

/* First size of the input and output buffer, bytes; fits the commands of an interactive client. */
#define KV_BUF_MIN 1024u
/* Input buffer a busy (pipelining) connection grows to by itself, and the size kept when idle. */
#define KV_BUF_KEEP 16384u
/* Replies beyond this many bytes are written before the next command runs. */
#define KV_OUT_FLUSH 16384u
/* Buffers above this size must fit the memory limit; smaller ones are charged unconditionally. */
#define KV_BUF_FREE_CHARGE 65536u
/* Batches a large buffer may stay unused before it is given back. */
#define KV_BUF_SHRINK_BATCHES 64u
/* Stack of a connection's thread, bytes. The deepest command needs under 16 KB; sanitizers need
 * several times as much. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KV_STACK_SIZE (512u * 1024u)
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KV_STACK_SIZE (512u * 1024u)
#else
#define KV_STACK_SIZE (64u * 1024u)
#endif
#else
#define KV_STACK_SIZE (64u * 1024u)
#endif
/* Resident bytes of a connection's stack and control block that count towards the limit. */
#define KV_CONN_CHARGE 8192u
/* Longest single wait, ms: a changed time-out is noticed after it. */
#define KV_POLL_MAX_MS 60000
/* Period of the pool's search for connections whose time-out has passed, ms. */
#define KV_SWEEP_MS 500
/* Connections that wait to be accepted; what comes beyond tries again after seconds. As much as Linux and Weir allow. */
#define KV_BACKLOG 4096
/* Milliseconds that the acceptor pauses when the system refuses a thread or a descriptor. */
#define KV_ACCEPT_PAUSE_MS 10
/* Arguments kept inline in a connection; more are allocated as they arrive. */
#define KV_ARGV_INLINE 8u
/* Longest argument vector kept between commands. */
#define KV_ARGV_KEEP 64u
/* Milliseconds that a reply may wait for a client that does not read. */
#define KV_WRITE_TIMEOUT_MS 60000

/* ---- pool dispatch (the width policy) ---- */

#define KV_WORKERS_PER_CPU       16u
#define KV_WORKERS_LOW           64u
#define KV_WORKERS_HIGH          1024u
#define KV_WORKERS_FLOOR_PER_CPU 4u
#define KV_WORKERS_FLOOR         4u
#define KV_WORKERS_LIMIT         4096u
/* Seconds an idle worker above the floor waits before it ends. */
#define KV_WORKER_IDLE_S 10
/* CPUs granted per thread that waits for input. One poller finds and hands out about 650,000
 * connections a second (virtual time), four CPUs serve somewhat fewer. */
#define KV_CPUS_PER_POLLER 4u
/* Events taken from epoll at once. */
#define KV_POLL_BATCH 256

/* ---- protocol ---- */

#define KV_MC_KEY_MAX       250u
#define KV_MC_VALUE_DEFAULT (1024u * 1024u)
/* Longest memcached command line except the get family, bytes, as memcached has it. */
#define KV_MC_LINE_MAX     2048u
#define KV_RESP_INLINE_MAX 65536u
#define KV_BULK_MAX        (512u * 1024u * 1024u)
#define KV_ARGS_MAX        (1024u * 1024u)
#define KV_QUERY_MAX       (1024ull * 1024u * 1024u)
#define KV_OUTPUT_MAX      (1024ull * 1024u * 1024u)
#define KV_CONNS_MAX       10000u
/* Seconds in which a request that has begun must be complete. */
#define KV_PARTIAL_TIMEOUT_S 60u
/* Keys one connection may watch. */
#define KV_WATCH_MAX 1024u
/* memcached: relative expiry times reach this far; larger ones are points in time. Seconds. */
#define KV_MC_REALTIME_MAXDELTA (60 * 60 * 24 * 30)

#define KV_VERSION "1.0.0"
/* The versions whose behaviour the two protocols follow; clients switch features on them. */
#define KV_REDIS_VERSION "7.0.15"
#define KV_MC_VERSION    "1.6.18"

#endif
