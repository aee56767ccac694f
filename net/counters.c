/* Every counter of the network, in Prometheus names. */
#include "core/base/string.h"
#include "net/net_impl.h"

typedef void (*emit_fn)(const char *name, const char *labels, u64 value, void *arg);

struct field {
    const char *name;
    size_t offset;
};

#define INSTANCE(n, member) { n, offsetof(struct instance_counters, member) }
static const struct field instance_fields[] = {
    INSTANCE("net_passes_total", passes),
    INSTANCE("net_passes_full_total", passes_full),
    INSTANCE("net_rx_packets_total", rx_packets),
    INSTANCE("net_rx_bytes_total", rx_bytes),
    INSTANCE("net_rx_dropped_memory_total", rx_dropped_memory),
    INSTANCE("net_rx_dropped_limit_total", rx_dropped_limit),
    INSTANCE("net_tx_packets_total", tx_packets),
    INSTANCE("net_tx_bytes_total", tx_bytes),
    INSTANCE("net_tx_dropped_total", tx_dropped),
    INSTANCE("net_interrupts_total", interrupts),
    INSTANCE("net_steered_out_total", steered_out),
    INSTANCE("net_steered_in_total", steered_in),
    INSTANCE("net_broadcast_copies_total", broadcast_copies),
    INSTANCE("net_fragments_dropped_total", fragments_dropped),
    INSTANCE("net_wakes_total", wakes),
    INSTANCE("net_remote_calls_total", remote_calls),
    INSTANCE("net_timer_runs_total", timer_runs),
    INSTANCE("net_loopback_deferred_total", loopback_deferred),
    INSTANCE("net_packet_failures_total", packet_failures),
    INSTANCE("net_lock_contended_total", contended),
};

#define STACK(n, member) { n, offsetof(struct stack_counters, member) }
static const struct field stack_fields[] = {
    STACK("net_tcp_active", tcp_active),
    STACK("net_tcp_time_wait", tcp_time_wait),
    STACK("net_tcp_half_open", tcp_half_open),
    STACK("net_syn_dropped_backlog_total", syn_dropped_backlog),
    STACK("net_syn_dropped_limit_total", syn_dropped_limit),
    STACK("net_half_open_evicted_total", half_open_evicted),
    STACK("net_time_wait_evicted_total", time_wait_evicted),
    STACK("net_time_wait_reused_total", time_wait_reused),
    STACK("net_stack_heap_bytes", heap_bytes),
    STACK("net_stack_heap_failures_total", heap_failures),
    STACK("net_tcp_segments_in_total", tcp_segments_in),
    STACK("net_tcp_segments_out_total", tcp_segments_out),
    STACK("net_tcp_retransmits_total", tcp_retransmits),
    STACK("net_tcp_checksum_errors_total", tcp_checksum_errors),
    STACK("net_tcp_drops_total", tcp_drops),
    STACK("net_tcp_resets_sent_total", tcp_resets_sent),
    STACK("net_ip_drops_total", ip_drops),
    STACK("net_ip_errors_total", ip_errors),
    STACK("net_fragments_in_total", fragments_in),
    STACK("net_arp_in_total", arp_in),
    STACK("net_arp_spoofs_total", arp_spoofs),
    STACK("net_udp_in_total", udp_in),
    STACK("net_udp_out_total", udp_out),
    STACK("net_udp_drops_total", udp_drops),
    STACK("net_icmp_in_total", icmp_in),
};

static void emit_fields(const struct field *fields, size_t count, const void *base, const char *labels, emit_fn emit, void *arg)
{
    for (size_t i = 0; i < count; i++) {
        u64 value;
        memcpy(&value, (const u8 *)base + fields[i].offset, sizeof(value));
        emit(fields[i].name, labels, value, arg);
    }
}

static void emit_instance(struct instance *in, emit_fn emit, void *arg)
{
    struct instance_counters counters;
    struct stack_counters stack;
    char labels[48];
    struct wake_batch batch;
    irqflags_t flags = instance_enter(in, &batch);
    counters = in->counters;
    in->ops->counters(&stack);
    u64 held = in->held;
    instance_leave(in, &batch, flags);
    str_format(labels, sizeof(labels), "net=\"%u\",queue=\"%u\"", in->net->domain, in->index);
    emit_fields(instance_fields, ARRAY_SIZE(instance_fields), &counters, labels, emit, arg);
    emit_fields(stack_fields, ARRAY_SIZE(stack_fields), &stack, labels, emit, arg);
    emit("net_packets_held", labels, held, arg);
    emit("net_input_queue_overruns_total", labels, READ_ONCE(in->input.dropped), arg);
}

void net_for_each_counter(void (*emit)(const char *name, const char *labels, u64 value, void *arg), void *arg)
{
    sockets_for_each_counter(emit, arg);
    for (u32 d = 0; d < MAX_DOMAINS; d++) {
        struct net *net = net_domains[d];
        for (u32 i = 0; net != NULL && i < net->num_instances; i++) {
            emit_instance(&net->instances[i], emit, arg);
        }
        if (net != NULL && net->dev != NULL && net->dev->ops->counters != NULL) {
            net->dev->ops->counters(net->dev, emit, arg);
        }
    }
}
