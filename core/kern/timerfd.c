/* timerfd(2): expirations of a timer, counted behind a file. The timer fires in interrupt context; the expirations since
 * are worked out from the clock, so a periodic timer costs one interrupt a period only while somebody may wait. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/kern/file.h"
#include "core/kern/time.h"
#include "core/mm/mm.h"

#define TFD_TIMER_ABSTIME 1u

struct timerfd {
    struct timer timer;
    struct file *file;
    struct spinlock lock; /* below; taken in interrupts */
    u32 clock;
    u64 expires_ns; /* next expiration, 0: disarmed */
    u64 interval_ns;
    u64 expirations; /* not yet read */
};

static struct lock_class timerfd_class = { .name = "timerfd", .rank = RANK_FILE, .irq = true };

/* Counts what has passed; lock held. */
static void advance(struct timerfd *t, u64 now)
{
    if (t->expires_ns == 0 || now < t->expires_ns) {
        return;
    }
    if (t->interval_ns == 0) {
        t->expirations++;
        t->expires_ns = 0;
        return;
    }
    u64 passed = (now - t->expires_ns) / t->interval_ns + 1;
    t->expirations += passed;
    t->expires_ns += passed * t->interval_ns;
}

static void fires(struct timer *timer)
{
    struct timerfd *t = container_of(timer, struct timerfd, timer);
    struct wake_batch batch;
    irqflags_t flags = spin_lock_irq(&t->lock);
    advance(t, arch_clock_ns());
    bool ready = t->expirations > 0;
    if (t->expires_ns != 0) {
        timer_arm(&t->timer, t->expires_ns);
    }
    spin_unlock_irq(&t->lock, flags);
    if (ready) {
        wake_batch_begin(&batch);
        file_notify(t->file, POLLIN | POLLRDNORM, &batch);
        wake_batch_flush(&batch);
    }
}

static u32 timerfd_poll(struct file *f)
{
    return READ_ONCE(((struct timerfd *)f->priv)->expirations) > 0 ? POLLIN | POLLRDNORM : 0;
}

static i64 timerfd_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct timerfd *t = f->priv;
    struct io io = io_begin(buf);
    (void)pos;
    (void)flags;
    if (io_total(buf) < sizeof(u64)) {
        return -EINVAL;
    }
    for (;;) {
        irqflags_t irq = spin_lock_irq(&t->lock);
        u64 count = t->expirations;
        WRITE_ONCE(t->expirations, 0);
        spin_unlock_irq(&t->lock, irq);
        if (count > 0) {
            return io_put(&io, &count, sizeof(count));
        }
        int error = file_nonblock(f) ? -EAGAIN : file_wait(f, POLLIN, NO_DEADLINE, WAIT_POLL);
        if (error < 0) {
            return error;
        }
    }
}

static void read_setting(struct timerfd *t, u64 out[2])
{
    u64 now = arch_clock_ns();
    out[0] = t->expires_ns == 0 ? 0 : t->expires_ns > now ? t->expires_ns - now : 1;
    out[1] = t->interval_ns;
}

static void timerfd_release(struct file *f)
{
    struct timerfd *t = f->priv;
    irqflags_t flags = spin_lock_irq(&t->lock);
    t->expires_ns = 0; /* a callback that runs right now does not arm again */
    spin_unlock_irq(&t->lock, flags);
    timer_cancel_sync(&t->timer);
    kfree(t);
}

static const struct file_ops timerfd_ops = {
    .name = "timerfd",
    .read = timerfd_read,
    .poll = timerfd_poll,
    .release = timerfd_release,
};

struct file *timerfd_create(u32 clock, u32 flags)
{
    struct timerfd *t = kzalloc(sizeof(*t));
    if (!t) {
        return NULL;
    }
    spin_init(&t->lock, &timerfd_class);
    timer_init(&t->timer, fires);
    t->clock = clock;
    t->file = file_create(&timerfd_ops, t, O_RDONLY | (flags & O_NONBLOCK));
    if (!t->file) {
        kfree(t);
        return NULL;
    }
    return t->file;
}

i64 timerfd_set(struct file *f, u64 flags, u64 value_ns, u64 interval_ns, u64 old[2])
{
    struct timerfd *t = f->priv;
    if (f->ops != &timerfd_ops || (flags & ~3ull)) {
        return -EINVAL;
    }
    timer_cancel_sync(&t->timer);
    irqflags_t irq = spin_lock_irq(&t->lock);
    read_setting(t, old);
    t->expirations = 0;
    t->interval_ns = interval_ns;
    t->expires_ns = 0;
    if (value_ns != 0) {
        if (!(flags & TFD_TIMER_ABSTIME)) {
            t->expires_ns = time_after(value_ns);
        } else {
            u64 at = t->clock == CLOCK_REALTIME ? time_from_wall(value_ns) : value_ns;
            t->expires_ns = MAX(at, 1ull);
        }
        timer_arm(&t->timer, t->expires_ns);
    }
    spin_unlock_irq(&t->lock, irq);
    return 0;
}

i64 timerfd_get(struct file *f, u64 value[2])
{
    struct timerfd *t = f->priv;
    if (f->ops != &timerfd_ops) {
        return -EINVAL;
    }
    irqflags_t irq = spin_lock_irq(&t->lock);
    read_setting(t, value);
    spin_unlock_irq(&t->lock, irq);
    return 0;
}
