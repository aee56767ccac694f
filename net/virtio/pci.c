#include "net/virtio/pci.h"

#include "core/base/errno.h"
#include "core/base/log.h"

/* PCI configuration space and capabilities (PCI local bus specification 3.0). */
enum {
    PCI_COMMAND = 0x04, PCI_STATUS = 0x06, PCI_CAPABILITIES = 0x34,
    COMMAND_MEMORY = 2, COMMAND_MASTER = 4, COMMAND_INTX_OFF = 0x400, STATUS_CAPABILITIES = 0x10,
    CAP_VENDOR = 0x09, CAP_MSIX = 0x11,
    MSIX_CONTROL = 2, MSIX_TABLE = 4, MSIX_ENABLE = 0x8000, MSIX_MASK_ALL = 0x4000, MSIX_SIZE = 0x7ff,
    MSIX_ENTRY_BYTES = 16,
    MAX_CAPABILITIES = 48, NUM_BARS = 6,
};
/* struct virtio_pci_cap (virtio 1.2, 4.1.4). */
enum {
    CAP_TYPE = 3, CAP_BAR = 4, CAP_OFFSET = 8, CAP_LENGTH = 12, CAP_NOTIFY_MULTIPLIER = 16,
    TYPE_COMMON = 1, TYPE_NOTIFY = 2, TYPE_DEVICE = 4,
};
/* struct virtio_pci_common_cfg (4.1.4.3). */
enum {
    DEVICE_FEATURE_SELECT = 0, DEVICE_FEATURE = 4, DRIVER_FEATURE_SELECT = 8, DRIVER_FEATURE = 12, CONFIG_VECTOR = 16,
    DEVICE_STATUS = 20, QUEUE_SELECT = 22, QUEUE_SIZE = 24, QUEUE_VECTOR = 26, QUEUE_ENABLE = 28, QUEUE_NOTIFY_OFF = 30,
    QUEUE_DESC = 32, QUEUE_DRIVER = 40, QUEUE_DEVICE = 48, COMMON_BYTES = 56,
};
enum { STATUS_ACKNOWLEDGE = 1, STATUS_DRIVER = 2, STATUS_DRIVER_OK = 4, STATUS_FEATURES_OK = 8 };
/* Reads of the status that a reset may take; each is a device access of at least 100 ns. */
#define RESET_TRIES 100000

static u8 read8(const volatile u8 *base, u32 at)
{
    return base[at];
}

static u16 read16(const volatile u8 *base, u32 at)
{
    return *(const volatile u16 *)(const volatile void *)(base + at);
}

static u32 read32(const volatile u8 *base, u32 at)
{
    return *(const volatile u32 *)(const volatile void *)(base + at);
}

static void write8(volatile u8 *base, u32 at, u8 v)
{
    base[at] = v;
}

static void write16(volatile u8 *base, u32 at, u16 v)
{
    *(volatile u16 *)(volatile void *)(base + at) = v;
}

static void write32(volatile u8 *base, u32 at, u32 v)
{
    *(volatile u32 *)(volatile void *)(base + at) = v;
}

static void write64(volatile u8 *base, u32 at, u64 v)
{
    write32(base, at, (u32)v);
    write32(base, at + 4, (u32)(v >> 32));
}

/* Maps part of a memory BAR; NULL if it does not lie in it. */
static volatile u8 *map_bar(const struct arch_pci_dev *dev, u32 bar, u32 offset, u64 bytes)
{
    paddr_t base;
    u64 size = bar < NUM_BARS ? arch_pci_bar(dev, bar, &base) : 0;
    if (size == 0 || offset > size || bytes > size - offset || bytes == 0) {
        return NULL;
    }
    paddr_t start = base + offset, page = ALIGN_DOWN(start, PAGE_SIZE);
    u8 *p = arch_mmio_map(page, ALIGN_UP(start + bytes, PAGE_SIZE) - page);
    return p != NULL ? p + (start - page) : NULL;
}

static void found_virtio_cap(struct virtio_pci *v, u32 cap)
{
    u32 type = arch_pci_read(&v->pci, cap + CAP_TYPE, 1), bar = arch_pci_read(&v->pci, cap + CAP_BAR, 1);
    u32 offset = arch_pci_read(&v->pci, cap + CAP_OFFSET, 4), length = arch_pci_read(&v->pci, cap + CAP_LENGTH, 4);
    if (type == TYPE_COMMON && v->common == NULL && length >= COMMON_BYTES) {
        v->common = map_bar(&v->pci, bar, offset, length);
    } else if (type == TYPE_NOTIFY && v->notify == NULL) {
        v->notify = map_bar(&v->pci, bar, offset, length);
        v->notify_bytes = length;
        v->notify_multiplier = arch_pci_read(&v->pci, cap + CAP_NOTIFY_MULTIPLIER, 4);
    } else if (type == TYPE_DEVICE && v->device == NULL) {
        v->device = map_bar(&v->pci, bar, offset, length);
        v->device_bytes = length;
    }
}

static void found_msix(struct virtio_pci *v, u32 cap)
{
    u32 table = arch_pci_read(&v->pci, cap + MSIX_TABLE, 4);
    u32 entries = (arch_pci_read(&v->pci, cap + MSIX_CONTROL, 2) & MSIX_SIZE) + 1;
    v->msix = map_bar(&v->pci, table & 7, table & ~7u, (u64)entries * MSIX_ENTRY_BYTES);
    v->num_vectors = v->msix != NULL ? entries : 0;
    v->msix_cap = cap;
}

static void walk_capabilities(struct virtio_pci *v)
{
    if ((arch_pci_read(&v->pci, PCI_STATUS, 2) & STATUS_CAPABILITIES) == 0) {
        return;
    }
    u32 cap = arch_pci_read(&v->pci, PCI_CAPABILITIES, 1) & 0xfc;
    for (u32 n = 0; cap != 0 && n < MAX_CAPABILITIES; n++) { /* bounded: a list may loop */
        u32 id = arch_pci_read(&v->pci, cap, 1);
        if (id == CAP_VENDOR) {
            found_virtio_cap(v, cap);
        } else if (id == CAP_MSIX) {
            found_msix(v, cap);
        }
        cap = arch_pci_read(&v->pci, cap + 1, 1) & 0xfc;
    }
}

int virtio_pci_open(struct virtio_pci *v, const struct arch_pci_dev *dev)
{
    *v = (struct virtio_pci){ .pci = *dev };
    u32 command = arch_pci_read(dev, PCI_COMMAND, 2);
    arch_pci_write(dev, PCI_COMMAND, 2, command | COMMAND_MEMORY | COMMAND_MASTER | COMMAND_INTX_OFF);
    walk_capabilities(v);
    if (v->common == NULL || v->notify == NULL || v->device == NULL) {
        log_error("net: the virtio device at %02x:%02x.%x is not a modern one (disable-legacy=on helps in QEMU)", dev->bus,
                  dev->slot, dev->func);
        return -EINVAL;
    }
    virtio_pci_reset(v);
    write8(v->common, DEVICE_STATUS, STATUS_ACKNOWLEDGE);
    write8(v->common, DEVICE_STATUS, STATUS_ACKNOWLEDGE | STATUS_DRIVER);
    return 0;
}

void virtio_pci_reset(struct virtio_pci *v)
{
    write8(v->common, DEVICE_STATUS, 0);
    for (u32 i = 0; i < RESET_TRIES && read8(v->common, DEVICE_STATUS) != 0; i++) {
        arch_cpu_relax();
    }
}

u64 virtio_pci_negotiate(struct virtio_pci *v, u64 wanted)
{
    write32(v->common, DEVICE_FEATURE_SELECT, 0);
    u64 offered = read32(v->common, DEVICE_FEATURE);
    write32(v->common, DEVICE_FEATURE_SELECT, 1);
    offered |= (u64)read32(v->common, DEVICE_FEATURE) << 32;
    u64 accepted = offered & wanted;
    if ((accepted & BIT(VIRTIO_F_VERSION_1)) == 0) {
        log_error("net: the virtio device does not offer VERSION_1 (features 0x%llx)", (unsigned long long)offered);
        return 0;
    }
    write32(v->common, DRIVER_FEATURE_SELECT, 0);
    write32(v->common, DRIVER_FEATURE, (u32)accepted);
    write32(v->common, DRIVER_FEATURE_SELECT, 1);
    write32(v->common, DRIVER_FEATURE, (u32)(accepted >> 32));
    u8 status = read8(v->common, DEVICE_STATUS) | STATUS_FEATURES_OK;
    write8(v->common, DEVICE_STATUS, status);
    if ((read8(v->common, DEVICE_STATUS) & STATUS_FEATURES_OK) == 0) {
        log_error("net: the virtio device refuses the features 0x%llx", (unsigned long long)accepted);
        return 0;
    }
    write16(v->common, CONFIG_VECTOR, VIRTIO_NO_VECTOR);
    return accepted;
}

u16 virtio_pci_queue_size(struct virtio_pci *v, u16 index)
{
    write16(v->common, QUEUE_SELECT, index);
    return read16(v->common, QUEUE_SIZE);
}

int virtio_pci_queue_start(struct virtio_pci *v, u16 index, const struct vring *r, u16 entry, volatile u16 **doorbell)
{
    write16(v->common, QUEUE_SELECT, index);
    write16(v->common, QUEUE_SIZE, r->size);
    write16(v->common, QUEUE_VECTOR, entry);
    if (read16(v->common, QUEUE_VECTOR) != entry) {
        return -ENOSPC;
    }
    u64 at = (u64)read16(v->common, QUEUE_NOTIFY_OFF) * v->notify_multiplier;
    if (at + sizeof(u16) > v->notify_bytes) {
        return -EINVAL;
    }
    *doorbell = (volatile u16 *)(volatile void *)(v->notify + at);
    write64(v->common, QUEUE_DESC, virt_to_phys(r->desc));
    write64(v->common, QUEUE_DRIVER, virt_to_phys(r->avail));
    write64(v->common, QUEUE_DEVICE, virt_to_phys(r->used));
    write16(v->common, QUEUE_ENABLE, 1);
    return 0;
}

void virtio_pci_set_vector(struct virtio_pci *v, u32 entry, const struct arch_msi *msi)
{
    volatile u8 *e = v->msix + entry * MSIX_ENTRY_BYTES;
    write32(e, 0, (u32)msi->address);
    write32(e, 4, (u32)(msi->address >> 32));
    write32(e, 8, msi->data);
    write32(e, 12, 0); /* not masked */
}

void virtio_pci_enable_vectors(struct virtio_pci *v)
{
    u32 control = arch_pci_read(&v->pci, v->msix_cap + MSIX_CONTROL, 2);
    arch_pci_write(&v->pci, v->msix_cap + MSIX_CONTROL, 2, (control | MSIX_ENABLE) & ~(u32)MSIX_MASK_ALL);
}

void virtio_pci_driver_ok(struct virtio_pci *v)
{
    write8(v->common, DEVICE_STATUS, read8(v->common, DEVICE_STATUS) | STATUS_DRIVER_OK);
}

u8 virtio_pci_config8(const struct virtio_pci *v, u32 offset)
{
    return offset + 1 <= v->device_bytes ? read8(v->device, offset) : 0;
}

u16 virtio_pci_config16(const struct virtio_pci *v, u32 offset)
{
    return offset + 2 <= v->device_bytes ? read16(v->device, offset) : 0;
}
