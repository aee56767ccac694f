/* Slab caches as core/mm itself sees them.  The interface for others is in core/mm/mm.h. */
#ifndef WEIR_CORE_MM_SLAB_H
#define WEIR_CORE_MM_SLAB_H

#include "core/base/spinlock.h"
#include "core/mm/page.h"

#define SLAB_MIN_ALIGN 16
#define SLAB_MAX_SIZE  4096

/* Free objects of one cache that a CPU keeps. Touched by that CPU alone, interrupts off; counts are
 * read by anybody. */
struct magazine {
    u32 count;
    u32 capacity;
    void *objects[SLAB_MAGAZINE_SIZE];
};

struct slab_cache {
    /* Never change after slab_create. */
    const char *name;
    u32 size; /* bytes, a multiple of the alignment */
    u32 order, per_slab;
    u32 magazine_capacity;
    enum mem_kind kind;
    u16 number;
    struct magazine *magazines[MAX_CPUS];
    /* Under lock. */
    struct spinlock lock;
    struct lock_class lock_class;
    u32 partial; /* first slab with a free object, NO_PAGE if none */
    u32 slabs, empty;
    u64 objects_out; /* handed out or in magazines */
    /* Relaxed. */
    u64 failures;
};

extern struct slab_cache slab_caches[SLAB_MAX_CACHES]; /* by number */
/* Panics unless p is the start of an object of c. */
void slab_check_object(const struct slab_cache *c, const void *p);

#endif
