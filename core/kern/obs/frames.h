/* Names of code addresses, with a memory: for texts with many stacks. Thread context. */
#ifndef WEIR_CORE_KERN_OBS_FRAMES_H
#define WEIR_CORE_KERN_OBS_FRAMES_H

#include "core/kern/obs/out.h"
#include "core/kern/symbol.h"

struct frames;

/* offsets: "name+0x12" instead of "name". NULL: no memory. */
struct frames *frames_create(bool offsets);
/* Function that holds pc. is_return: pc is a return address, and may lie behind the function's end. The text lives until the
 * next call. */
const char *frames_name(struct frames *f, const struct proc *p, u64 pc, bool is_return);
/* First instruction of that function; pc itself if its name is not known. */
u64 frames_start(struct frames *f, const struct proc *p, u64 pc, bool is_return);
void frames_free(struct frames *f);

#endif
