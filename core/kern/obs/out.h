/* Text that is sent while it is made: a buffer of fixed size in front of a reader that may be slow. Thread context. */
#ifndef WEIR_CORE_KERN_OBS_OUT_H
#define WEIR_CORE_KERN_OBS_OUT_H

#include "core/base/types.h"

#define OUT_BYTES 8192 /* two pages: a chunk of about six TCP segments */

struct out {
    /* Sends all n bytes; may block. False: the reader is gone or out of time. */
    bool (*send)(void *arg, const char *data, size_t n);
    void *arg;
    bool failed; /* nothing more is sent: whoever makes the text may stop */
    u64 sent;    /* bytes handed to send() */
    size_t len;
    char buf[OUT_BYTES];
};

void out_init(struct out *o, bool (*send)(void *arg, const char *data, size_t n), void *arg);
/* At most 512 bytes a call; what is longer is cut. */
void out_add(struct out *o, const char *fmt, ...) __printf(2, 3);
void out_append(struct out *o, const char *s, size_t n);
/* s (at most n bytes of it) as a JSON string with quotes. */
void out_json(struct out *o, const char *s, size_t n);
/* Sends what is left; false if any of it did not get through. */
bool out_flush(struct out *o);

#endif
