/* From an ELF file to a running process. */
#ifndef WEIR_CORE_KERN_START_H
#define WEIR_CORE_KERN_START_H

#include "core/kern/elf.h"
#include "core/kern/initrd.h"
#include "core/kern/proc.h"

/* Maps an image's segments for p and fills its entry, phdr, image bounds and break. Errors are logged. */
int elf_load(struct proc *p, const struct initrd_file *file, const struct elf_image *image);
/* Maps and fills the first thread's stack (Linux's start-up layout); *sp is what the program starts with. */
int stack_build(struct proc *p, const struct proc_spec *spec, u64 *sp);
/* Map the gate page (abi.h) and the vDSO; 0 or negative errno. Before the first process. */
int gate_init(void);
int vdso_init(void);
/* Where interrupt handlers send a thread that must end. */
u64 gate_address(void);
/* Address of the vDSO's ELF header, 0: none (the clock can only be read by the kernel). */
u64 vdso_address(void);

#endif
