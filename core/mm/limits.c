/* Who uses how much, and the levels of the grant.
 *
 * The levels count every page in use, whatever it is for, as the host's memory controller does.
 * What is refused at max is memory of applications, packet buffers and files; the kernel's own
 * pages are always given, because a kernel that cannot allocate cannot answer with an error either.
 * */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/mm/page.h"
#include "core/mm/vm.h"

/* Pages beyond what the kernel uses already that a limit must leave: one connection's buffers and a
 * small program. */
#define MIN_APP_PAGES 256

struct kind_count {
    u64 pages;
} __cacheline_aligned;

static struct kind_count kinds[NUM_MEM_KINDS];

static u64 low_pages;               /* protected: reclaim leaves this much alone */
static u64 high_pages = UINT64_MAX; /* UINT64_MAX: none */
static u64 max_pages = UINT64_MAX;
static bool over_high;
static u64 events_high, events_max, events_oom;

void limits_init(void)
{
    for (u32 k = 0; k < NUM_MEM_KINDS; k++) {
        kinds[k].pages = 0;
    }
    low_pages = 0;
    high_pages = max_pages = UINT64_MAX;
    over_high = false;
}

static u64 pages_in_use(void)
{
    u64 sum = 0;
    for (u32 k = 0; k < NUM_MEM_KINDS; k++) {
        sum += READ_ONCE(kinds[k].pages);
    }
    return sum;
}

static void update_over_high(void)
{
    bool over = pages_in_use() > READ_ONCE(high_pages);
    if (over != READ_ONCE(over_high) &&
        __atomic_exchange_n(&over_high, over, __ATOMIC_RELAXED) != over && over) {
        __atomic_fetch_add(&events_high, 1, __ATOMIC_RELAXED);
    }
}

bool mm_over_high(void)
{
    return READ_ONCE(over_high);
}

/* An allocation that fails: for the limit, or for want of RAM. */
static void note_refusal(bool limited)
{
    __atomic_fetch_add(&events_oom, 1, __ATOMIC_RELAXED);
    if (limited) {
        __atomic_fetch_add(&events_max, 1, __ATOMIC_RELAXED);
    }
}

bool mem_charge(enum mem_kind kind, u64 pages)
{
    __atomic_fetch_add(&kinds[kind].pages, pages, __ATOMIC_RELAXED);
    if (kind != MEM_KERNEL) {
        bool limited = READ_ONCE(max_pages) != UINT64_MAX && pages_in_use() > READ_ONCE(max_pages);
        if (unlikely(limited || pages_free_shared() < PAGE_KERNEL_RESERVE + pages)) {
            __atomic_fetch_sub(&kinds[kind].pages, pages, __ATOMIC_RELAXED);
            note_refusal(limited);
            return false;
        }
    }
    if (unlikely(READ_ONCE(high_pages) != UINT64_MAX)) {
        update_over_high();
    }
    return true;
}

void mem_uncharge(enum mem_kind kind, u64 pages)
{
    __atomic_fetch_sub(&kinds[kind].pages, pages, __ATOMIC_RELAXED);
    if (unlikely(READ_ONCE(over_high))) {
        update_over_high();
    }
}

u64 mem_pages_available(void)
{
    u64 free = pages_free_shared(), used = pages_in_use(), max = READ_ONCE(max_pages);
    u64 by_ram = free > PAGE_KERNEL_RESERVE ? free - PAGE_KERNEL_RESERVE : 0;
    u64 by_grant = max > used ? max - used : 0;
    return MIN(by_ram, by_grant);
}

void mem_note_refused(void)
{
    note_refusal(READ_ONCE(max_pages) != UINT64_MAX);
}

u64 mm_reclaim(void)
{
    u64 before = pages_in_use();
    if (before <= READ_ONCE(low_pages)) {
        return 0;
    }
    vm_drain_limbo();
    u64 after = pages_in_use();
    return before > after ? before - after : 0;
}

static u64 to_pages(u64 bytes)
{
    return bytes == 0 ? UINT64_MAX : bytes >> PAGE_SHIFT;
}

int mm_set_limits(u64 low, u64 high, u64 max)
{
    u64 needed = (READ_ONCE(kinds[MEM_KERNEL].pages) + MIN_APP_PAGES) << PAGE_SHIFT;
    if ((max != 0 && max < needed) || (high != 0 && high < needed)) {
        log_error(
            "grant: memory limit of %lu bytes is below the %lu bytes that the kernel needs now",
            max != 0 && max < needed ? max : high, needed);
        return -EINVAL;
    }
    WRITE_ONCE(low_pages, low >> PAGE_SHIFT);
    WRITE_ONCE(high_pages, to_pages(high));
    WRITE_ONCE(max_pages, to_pages(max));
    update_over_high();
    return 0;
}

void mem_stats(struct mem_stats *out)
{
    pages_stats(out);
    vm_stats(out);
    for (u32 k = 0; k < NUM_MEM_KINDS; k++) {
        out->kind_pages[k] = READ_ONCE(kinds[k].pages);
    }
    out->limit_pages = READ_ONCE(max_pages);
    out->low_pages = READ_ONCE(low_pages);
    out->high_pages = READ_ONCE(high_pages);
    out->events_high = READ_ONCE(events_high);
    out->events_max = READ_ONCE(events_max);
    out->events_oom = READ_ONCE(events_oom);
}
