/* lwIP's heap: blocks from the kernel, with a limit, and freed blocks of small sizes kept for the next of that size.
 *
 * A segment, its control block and a loopback packet are allocated and freed for every request; taking them from a list
 * of this instance costs a dozen instructions and no lock. */
#include "net/stack/port/port.h"

#include "lwip/mem.h"

#include <string.h>

#define NUM_CLASSES (NET_STACK_CACHE_BYTES / NET_STACK_CACHE_STEP)
#define NOT_CACHED UINT32_MAX

/* In front of each block; 16 bytes keep the alignment. */
struct block {
    union {
        struct block *next; /* while free */
        uint64_t bytes;     /* what was asked of the kernel */
    };
    uint32_t class;
    uint32_t reserved;
};

static struct {
    struct block *first;
    uint32_t kept;
} classes[NUM_CLASSES];

uint64_t port_heap_bytes, port_heap_failures;

static void *block_memory(struct block *b)
{
    return b + 1;
}

static struct block *from_kernel(size_t bytes)
{
    if (port_heap_bytes + bytes > NET_STACK_HEAP_LIMIT) {
        port_heap_failures++;
        return NULL;
    }
    struct block *b = (struct block *)port.env->alloc(port.env->self, bytes);
    if (b == NULL) {
        port_heap_failures++;
        return NULL;
    }
    port_heap_bytes += bytes;
    return b;
}

void *port_malloc(size_t bytes)
{
    size_t total = bytes + sizeof(struct block);
    if (bytes > NET_STACK_CACHE_BYTES || bytes == 0) {
        struct block *b = from_kernel(total);
        if (b == NULL) {
            return NULL;
        }
        b->bytes = total;
        b->class = NOT_CACHED;
        return block_memory(b);
    }
    uint32_t class = (uint32_t)((bytes - 1) / NET_STACK_CACHE_STEP);
    struct block *b = classes[class].first;
    if (b != NULL) {
        classes[class].first = b->next;
        classes[class].kept--;
    } else {
        total = (class + 1) * (size_t)NET_STACK_CACHE_STEP + sizeof(struct block);
        b = from_kernel(total);
        if (b == NULL) {
            return NULL;
        }
        b->class = class;
    }
    b->bytes = (class + 1) * (size_t)NET_STACK_CACHE_STEP + sizeof(struct block);
    return block_memory(b);
}

void *port_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (__builtin_mul_overflow(count, bytes, &total)) {
        return NULL;
    }
    void *p = port_malloc(total);
    if (p != NULL) {
        memset(p, 0, total);
    }
    return p;
}

void port_free(void *p)
{
    struct block *b = (struct block *)p - 1;
    uint32_t class = b->class;
    if (class != NOT_CACHED && classes[class].kept < NET_STACK_CACHE_KEEP) {
        b->next = classes[class].first;
        classes[class].first = b;
        classes[class].kept++;
        return;
    }
    port_heap_bytes -= b->bytes;
    port.env->free(port.env->self, b);
}
