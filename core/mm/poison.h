/* Host tests under AddressSanitizer: free pages and objects are marked, so that any use of them is
 * reported. */
#ifndef WEIR_CORE_MM_POISON_H
#define WEIR_CORE_MM_POISON_H

#include "core/base/types.h"

#if defined(WEIR_HOST_TEST) && defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define poison_region(p, n)   ASAN_POISON_MEMORY_REGION(p, n)
#define unpoison_region(p, n) ASAN_UNPOISON_MEMORY_REGION(p, n)
#else
#define poison_region(p, n)   ((void)(p), (void)(n))
#define unpoison_region(p, n) ((void)(p), (void)(n))
#endif

#endif
