/* Shared by the socket calls. */
#ifndef WEIR_CORE_KERN_SOCKCALL_H
#define WEIR_CORE_KERN_SOCKCALL_H

#include "core/kern/file.h"

/* The socket behind fd; *f gets a reference. NULL: *error is -EBADF or -ENOTSOCK. */
struct socket *socket_get(struct kthread *k, u64 fd, struct file **f, i64 *error);
i64 sockaddr_load(struct net_addr *out, u64 addr, u64 len);
/* Writes an address and its length as recvfrom and accept do; addr 0: nothing is wanted. */
i64 sockaddr_store(const struct net_addr *a, u64 addr, u64 len_addr);
/* SO_RCVTIMEO and SO_SNDTIMEO live in the file: absolute deadline of a call that starts now. */
u64 socket_deadline(const struct file *f, bool sending);
/* NET_* flags of a call: from MSG_* and O_NONBLOCK. -EOPNOTSUPP for flags that would change the meaning. */
i64 socket_call_flags(const struct file *f, u64 msg_flags, u32 *out);
/* Result as Linux gives it: SIGPIPE, restart, time-out. */
i64 socket_finish(const struct file *f, i64 result, u64 msg_flags, bool sending);

#endif
