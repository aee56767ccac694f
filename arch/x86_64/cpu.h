/* Privileged instructions, wrapped.  Private to arch/x86_64. */
#ifndef WEIR_ARCH_X86_64_CPU_H
#define WEIR_ARCH_X86_64_CPU_H

#include "core/base/types.h"

static inline u64 rdmsr(u32 msr)
{
    u32 lo, hi;
    __asm__ volatile("rdmsr" : "=a"(lo), "=d"(hi) : "c"(msr) : "memory");
    return ((u64)hi << 32) | lo;
}

static inline void wrmsr(u32 msr, u64 value)
{
    __asm__ volatile("wrmsr" ::"a"((u32)value), "d"((u32)(value >> 32)), "c"(msr) : "memory");
}

static inline u8 inb(u16 port)
{
    u8 v;
    __asm__ volatile("inb %1, %0" : "=a"(v) : "Nd"(port) : "memory");
    return v;
}

static inline u16 inw(u16 port)
{
    u16 v;
    __asm__ volatile("inw %1, %0" : "=a"(v) : "Nd"(port) : "memory");
    return v;
}

static inline u32 inl(u16 port)
{
    u32 v;
    __asm__ volatile("inl %1, %0" : "=a"(v) : "Nd"(port) : "memory");
    return v;
}

static inline void outb(u16 port, u8 v)
{
    __asm__ volatile("outb %0, %1" ::"a"(v), "Nd"(port) : "memory");
}

static inline void outw(u16 port, u16 v)
{
    __asm__ volatile("outw %0, %1" ::"a"(v), "Nd"(port) : "memory");
}

static inline void outl(u16 port, u32 v)
{
    __asm__ volatile("outl %0, %1" ::"a"(v), "Nd"(port) : "memory");
}

static inline void in_bytes(u16 port, void *buf, size_t n)
{
    __asm__ volatile("rep insb" : "+D"(buf), "+c"(n) : "d"(port) : "memory");
}

struct cpuid_regs {
    u32 eax, ebx, ecx, edx;
};

static inline struct cpuid_regs cpuid(u32 leaf, u32 subleaf)
{
    struct cpuid_regs r;
    __asm__ volatile("cpuid"
                     : "=a"(r.eax), "=b"(r.ebx), "=c"(r.ecx), "=d"(r.edx)
                     : "a"(leaf), "c"(subleaf));
    return r;
}

static inline u64 read_cr0(void)
{
    u64 v;
    __asm__ volatile("movq %%cr0, %0" : "=r"(v)::"memory");
    return v;
}

static inline void write_cr0(u64 v)
{
    __asm__ volatile("movq %0, %%cr0" ::"r"(v) : "memory");
}

static inline u64 read_cr2(void)
{
    u64 v;
    __asm__ volatile("movq %%cr2, %0" : "=r"(v)::"memory");
    return v;
}

static inline u64 read_cr3(void)
{
    u64 v;
    __asm__ volatile("movq %%cr3, %0" : "=r"(v)::"memory");
    return v;
}

static inline void write_cr3(u64 v)
{
    __asm__ volatile("movq %0, %%cr3" ::"r"(v) : "memory");
}

static inline u64 read_cr4(void)
{
    u64 v;
    __asm__ volatile("movq %%cr4, %0" : "=r"(v)::"memory");
    return v;
}

static inline void write_cr4(u64 v)
{
    __asm__ volatile("movq %0, %%cr4" ::"r"(v) : "memory");
}

static inline void invlpg(u64 va)
{
    __asm__ volatile("invlpg (%0)" ::"r"(va) : "memory");
}

/* Device registers: one access of exactly this width. */
static inline u32 mmio_read32(const volatile void *p)
{
    return *(const volatile u32 *)p;
}

static inline void mmio_write32(volatile void *p, u32 v)
{
    *(volatile u32 *)p = v;
}

static inline u64 mmio_read64(const volatile void *p)
{
    return *(const volatile u64 *)p;
}

#endif
