#include "net/stack/port/demux.h"

#include "net/stack/port/port.h"

enum { ON_NONE, ON_ACTIVE, ON_TIME_WAIT };

static struct {
    struct tcp_pcb **buckets;
    u32_t num_buckets; /* power of two */
    u32_t num_hashed;
    u32_t num_active, num_time_wait, num_half_open;
    struct tcp_pcb *time_wait_tail;
    struct tcp_pcb *half_first, *half_last;
    bool relink; /* lwIP has unlinked something by hand */
} demux;

static struct tcp_pcb *slot_pcb(const struct tcp_pcb *pcb, enum demux_slot slot)
{
    return (struct tcp_pcb *)pcb->ext_args[slot].data;
}

static void set_slot(struct tcp_pcb *pcb, enum demux_slot slot, void *data)
{
    pcb->ext_args[slot].data = data;
}

static uintptr_t which_list(const struct tcp_pcb *pcb)
{
    return (uintptr_t)pcb->ext_args[DEMUX_LIST].data;
}

/* ---- hash ---- */

static u32_t bucket_of(u32_t remote_ip, u16_t remote_port, u16_t local_port)
{
    uint64_t x = ((uint64_t)remote_ip << 32 | (uint32_t)remote_port << 16 | local_port) ^ port.config.secret[2];
    x *= port.config.secret[3] | 1; /* multiply-shift hashing with a random odd factor: no peer can aim at a bucket */
    x ^= x >> 32;
    return (u32_t)x & (demux.num_buckets - 1);
}

static u32_t bucket_of_pcb(const struct tcp_pcb *pcb)
{
    return bucket_of(ip4_addr_get_u32(ip_2_ip4(&pcb->remote_ip)), pcb->remote_port, pcb->local_port);
}

static struct tcp_pcb **new_table(u32_t buckets)
{
    return (struct tcp_pcb **)port_calloc(buckets, sizeof(struct tcp_pcb *));
}

int demux_start(void)
{
    demux.buckets = new_table(NET_DEMUX_MIN_BUCKETS);
    demux.num_buckets = NET_DEMUX_MIN_BUCKETS;
    return demux.buckets != NULL ? 0 : -PORT_ENOMEM;
}

/* Doubles the table; without memory the chains just get longer. */
static void grow(void)
{
    struct tcp_pcb **old = demux.buckets;
    u32_t old_buckets = demux.num_buckets;
    struct tcp_pcb **table = new_table(old_buckets * 2);
    if (table == NULL) {
        return;
    }
    demux.buckets = table;
    demux.num_buckets = old_buckets * 2;
    for (u32_t i = 0; i < old_buckets; i++) {
        struct tcp_pcb *next;
        for (struct tcp_pcb *pcb = old[i]; pcb != NULL; pcb = next) {
            next = slot_pcb(pcb, DEMUX_HASH_NEXT);
            u32_t b = bucket_of_pcb(pcb);
            set_slot(pcb, DEMUX_HASH_NEXT, table[b]);
            table[b] = pcb;
        }
    }
    port_free(old);
}

static void hash_insert(struct tcp_pcb *pcb)
{
    if (demux.num_hashed >= demux.num_buckets) {
        grow();
    }
    u32_t b = bucket_of_pcb(pcb);
    set_slot(pcb, DEMUX_HASH_NEXT, demux.buckets[b]);
    demux.buckets[b] = pcb;
    demux.num_hashed++;
}

static void hash_remove(struct tcp_pcb *pcb)
{
    u32_t b = bucket_of_pcb(pcb);
    struct tcp_pcb *prev = NULL;
    for (struct tcp_pcb *p = demux.buckets[b]; p != NULL; prev = p, p = slot_pcb(p, DEMUX_HASH_NEXT)) {
        if (p == pcb) {
            if (prev != NULL) {
                set_slot(prev, DEMUX_HASH_NEXT, slot_pcb(pcb, DEMUX_HASH_NEXT));
            } else {
                demux.buckets[b] = slot_pcb(pcb, DEMUX_HASH_NEXT);
            }
            demux.num_hashed--;
            return;
        }
    }
    LWIP_ASSERT("connection missing from its hash bucket", 0);
}

struct tcp_pcb *demux_find(const ip_addr_t *local_ip, u16_t local_port, const ip_addr_t *remote_ip, u16_t remote_port)
{
    u32_t remote = ip4_addr_get_u32(ip_2_ip4(remote_ip)), local = ip4_addr_get_u32(ip_2_ip4(local_ip));
    struct tcp_pcb *pcb = demux.buckets[bucket_of(remote, remote_port, local_port)];
    for (; pcb != NULL; pcb = slot_pcb(pcb, DEMUX_HASH_NEXT)) {
        if (pcb->remote_port == remote_port && pcb->local_port == local_port &&
            ip4_addr_get_u32(ip_2_ip4(&pcb->remote_ip)) == remote && ip4_addr_get_u32(ip_2_ip4(&pcb->local_ip)) == local) {
            return pcb;
        }
    }
    return NULL;
}

/* ---- half-open connections ---- */

static void count_at_listener(struct tcp_pcb *pcb, intptr_t change)
{
    if (pcb->listener != NULL) {
        intptr_t count = (intptr_t)pcb->listener->ext_args[DEMUX_LIST].data + change;
        pcb->listener->ext_args[DEMUX_LIST].data = (void *)count;
    }
}

static bool is_half_open(const struct tcp_pcb *pcb)
{
    return demux.half_first == pcb || slot_pcb(pcb, DEMUX_HALF_PREV) != NULL;
}

static void half_open_add(struct tcp_pcb *pcb)
{
    set_slot(pcb, DEMUX_HALF_PREV, NULL);
    set_slot(pcb, DEMUX_HALF_NEXT, demux.half_first);
    if (demux.half_first != NULL) {
        set_slot(demux.half_first, DEMUX_HALF_PREV, pcb);
    } else {
        demux.half_last = pcb;
    }
    demux.half_first = pcb;
    demux.num_half_open++;
    count_at_listener(pcb, 1);
}

void demux_half_open_done(struct tcp_pcb *pcb)
{
    if (!is_half_open(pcb)) {
        return;
    }
    struct tcp_pcb *prev = slot_pcb(pcb, DEMUX_HALF_PREV), *next = slot_pcb(pcb, DEMUX_HALF_NEXT);
    if (prev != NULL) {
        set_slot(prev, DEMUX_HALF_NEXT, next);
    } else {
        demux.half_first = next;
    }
    if (next != NULL) {
        set_slot(next, DEMUX_HALF_PREV, prev);
    } else {
        demux.half_last = prev;
    }
    set_slot(pcb, DEMUX_HALF_PREV, NULL);
    set_slot(pcb, DEMUX_HALF_NEXT, NULL);
    demux.num_half_open--;
    count_at_listener(pcb, -1);
}

struct tcp_pcb *demux_oldest_half_open(void)
{
    return demux.half_last;
}

u32_t demux_half_open_count(void)
{
    return demux.num_half_open;
}

u32_t demux_half_open_of(const struct tcp_pcb_listen *listener)
{
    return (u32_t)(uintptr_t)listener->ext_args[DEMUX_LIST].data;
}

/* ---- lists ---- */

/* A control block is freed.  If it is still on a list, lwIP's slow timer has unlinked it by hand. */
static void on_destroy(u8_t id, void *data)
{
    LWIP_UNUSED_ARG(id);
    struct tcp_pcb *pcb = (struct tcp_pcb *)data;
    demux_half_open_done(pcb);
    if (which_list(pcb) != ON_NONE) {
        if (which_list(pcb) == ON_ACTIVE) {
            demux.num_active--;
        } else {
            demux.num_time_wait--;
        }
        hash_remove(pcb);
        demux.relink = true;
    }
}

static const struct tcp_ext_arg_callbacks destroy_callbacks = { on_destroy, NULL };

static void link_front(struct tcp_pcb **list, struct tcp_pcb *pcb)
{
    pcb->next = *list;
    set_slot(pcb, DEMUX_PREV, NULL);
    if (*list != NULL) {
        set_slot(*list, DEMUX_PREV, pcb);
    } else if (list == &tcp_tw_pcbs) {
        demux.time_wait_tail = pcb;
    }
    *list = pcb;
}

static void unlink(struct tcp_pcb **list, struct tcp_pcb *pcb)
{
    struct tcp_pcb *prev = slot_pcb(pcb, DEMUX_PREV);
    if (prev != NULL) {
        prev->next = pcb->next;
    } else {
        *list = pcb->next;
    }
    if (pcb->next != NULL) {
        set_slot(pcb->next, DEMUX_PREV, prev);
    } else if (list == &tcp_tw_pcbs) {
        demux.time_wait_tail = prev;
    }
    pcb->next = NULL;
    set_slot(pcb, DEMUX_PREV, NULL);
}

void demux_register(struct tcp_pcb **list, struct tcp_pcb *pcb)
{
    if (list != &tcp_active_pcbs && list != &tcp_tw_pcbs) {
        pcb->next = *list; /* bound and listening ones: few, and lwIP's own business */
        *list = pcb;
        tcp_timer_needed();
        return;
    }
    bool active = list == &tcp_active_pcbs;
    link_front(list, pcb);
    pcb->ext_args[DEMUX_SELF].data = pcb;
    pcb->ext_args[DEMUX_SELF].callbacks = &destroy_callbacks;
    set_slot(pcb, DEMUX_LIST, (void *)(uintptr_t)(active ? ON_ACTIVE : ON_TIME_WAIT));
    if (active) {
        demux.num_active++;
    } else {
        demux.num_time_wait++;
    }
    hash_insert(pcb);
    if (active && pcb->state == SYN_RCVD) {
        half_open_add(pcb);
    }
    tcp_timer_needed();
}

void demux_unregister(struct tcp_pcb **list, struct tcp_pcb *pcb)
{
    if (list != &tcp_active_pcbs && list != &tcp_tw_pcbs) {
        for (struct tcp_pcb **p = list; *p != NULL; p = &(*p)->next) {
            if (*p == pcb) {
                *p = pcb->next;
                break;
            }
        }
        pcb->next = NULL;
        return;
    }
    demux_half_open_done(pcb);
    unlink(list, pcb);
    set_slot(pcb, DEMUX_LIST, (void *)(uintptr_t)ON_NONE);
    if (list == &tcp_active_pcbs) {
        demux.num_active--;
    } else {
        demux.num_time_wait--;
    }
    hash_remove(pcb);
}

void demux_relink(void)
{
    if (!demux.relink) {
        return;
    }
    demux.relink = false;
    struct tcp_pcb *prev = NULL;
    for (struct tcp_pcb *pcb = tcp_active_pcbs; pcb != NULL; prev = pcb, pcb = pcb->next) {
        set_slot(pcb, DEMUX_PREV, prev);
    }
    prev = NULL;
    for (struct tcp_pcb *pcb = tcp_tw_pcbs; pcb != NULL; prev = pcb, pcb = pcb->next) {
        set_slot(pcb, DEMUX_PREV, prev);
    }
    demux.time_wait_tail = prev;
}

void demux_to_front(struct tcp_pcb *pcb)
{
    struct tcp_pcb **list = which_list(pcb) == ON_ACTIVE ? &tcp_active_pcbs : &tcp_tw_pcbs;
    if (*list != pcb) {
        unlink(list, pcb);
        link_front(list, pcb);
    }
}

void demux_hide(struct demux_hidden *h, bool time_wait_too)
{
    h->active = tcp_active_pcbs;
    tcp_active_pcbs = NULL;
    h->time_wait = NULL;
    if (time_wait_too) {
        h->time_wait = tcp_tw_pcbs;
        tcp_tw_pcbs = NULL;
    }
}

/* Appends the hidden list to what has been registered meanwhile. */
static void rejoin(struct tcp_pcb **list, struct tcp_pcb *hidden)
{
    if (hidden == NULL) {
        return;
    }
    struct tcp_pcb *last = NULL, **end = list;
    while (*end != NULL) {
        last = *end;
        end = &last->next;
    }
    *end = hidden;
    set_slot(hidden, DEMUX_PREV, last);
}

void demux_unhide(const struct demux_hidden *h)
{
    rejoin(&tcp_active_pcbs, h->active);
    if (h->time_wait != NULL) {
        LWIP_ASSERT("nothing enters TIME_WAIT while its list is hidden", tcp_tw_pcbs == NULL);
        tcp_tw_pcbs = h->time_wait;
    }
}

struct tcp_pcb *demux_oldest_time_wait(void)
{
    return demux.time_wait_tail;
}

u32_t demux_active_count(void)
{
    return demux.num_active;
}

u32_t demux_time_wait_count(void)
{
    return demux.num_time_wait;
}
