/* The end of the machine. */
#ifndef WEIR_CORE_KERN_SHUTDOWN_H
#define WEIR_CORE_KERN_SHUTDOWN_H

#include "core/kern/proc.h"

/* Exit codes of the guest that are not an application's. */
#define EXIT_BAD_CONFIG 64    /* command line, missing or malformed application (EX_USAGE) */
#define EXIT_NO_RESOURCES 71  /* memory, devices (EX_OSERR) */
#define EXIT_UNORDERLY 75     /* processes did not end after the power button (EX_TEMPFAIL) */

/* Network down, one log line, power off. Thread context. Codes above 127 show as 127 outside. */
void weir_exit(int code) __noreturn;
/* Waits for the end of the decisive process or for the power button; ends the machine. */
void shutdown_wait(struct proc *const *list, u32 n, struct proc *decisive) __noreturn;
/* A process has ended. */
void shutdown_proc_ended(void);

#endif
