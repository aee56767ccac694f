/* Modern virtio devices over PCI (virtio 1.2, section 4.1).  Start-up, thread context. */
#ifndef WEIR_NET_VIRTIO_PCI_H
#define WEIR_NET_VIRTIO_PCI_H

#include "arch/arch.h"
#include "net/virtio/ring.h"

#define VIRTIO_VENDOR 0x1af4
#define VIRTIO_DEVICE_NET 0x1041            /* modern id: 0x1040 + 1 */
#define VIRTIO_DEVICE_NET_TRANSITIONAL 0x1000
#define VIRTIO_NO_VECTOR 0xffff

enum { VIRTIO_F_EVENT_IDX = 29, VIRTIO_F_VERSION_1 = 32 };

struct virtio_pci {
    struct arch_pci_dev pci;
    volatile u8 *common, *device, *notify;
    u64 device_bytes;   /* of the device configuration */
    u64 notify_bytes;
    u32 notify_multiplier;
    volatile u8 *msix;  /* vector table */
    u32 num_vectors;    /* MSI-X vectors of the device; 0: none */
    u32 msix_cap;
};

/* Finds the capabilities, maps them, resets the device.  -EINVAL: not a modern device (logged). */
int virtio_pci_open(struct virtio_pci *v, const struct arch_pci_dev *dev);
/* Accepts the wanted features that the device offers; returns them, or 0 with a log line if it refuses. */
u64 virtio_pci_negotiate(struct virtio_pci *v, u64 wanted);
/* Size of queue `index` as the device offers it; 0: not available. */
u16 virtio_pci_queue_size(struct virtio_pci *v, u16 index);
/* Programs and enables a queue.  entry: MSI-X table entry or VIRTIO_NO_VECTOR.  *doorbell: where to write index.
 * -ENOSPC: the device has no resources for the vector, -EINVAL. */
int virtio_pci_queue_start(struct virtio_pci *v, u16 index, const struct vring *r, u16 entry, volatile u16 **doorbell);
/* Fills table entry `entry` and unmasks it. */
void virtio_pci_set_vector(struct virtio_pci *v, u32 entry, const struct arch_msi *msi);
void virtio_pci_enable_vectors(struct virtio_pci *v);
void virtio_pci_driver_ok(struct virtio_pci *v);
/* Stops the device: all its memory accesses end.  Also after a failure. */
void virtio_pci_reset(struct virtio_pci *v);
u8 virtio_pci_config8(const struct virtio_pci *v, u32 offset);
u16 virtio_pci_config16(const struct virtio_pci *v, u32 offset);

#endif
