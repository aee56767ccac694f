/* Starting a process. */
#include "core/base/errno.h"
#include "core/base/log.h"
#include "core/base/string.h"
#include "core/kern/file.h"
#include "core/kern/grant.h"
#include "core/kern/start.h"
#include "core/mm/mm.h"

struct first_step {
    u64 pc, sp;
};

static void first_thread(void *arg)
{
    struct first_step step;
    memcpy(&step, ((struct kthread *)arg)->start_regs, sizeof(step));
    arch_enter_app(step.pc, step.sp);
}

static struct proc *proc_slot(void)
{
    for (u32 i = 0; i < MAX_PROCS; i++) {
        if (procs[i].state == PROC_UNUSED) {
            procs[i].state = PROC_STARTING;
            return &procs[i];
        }
    }
    return NULL;
}

static int remember_cmdline(struct proc *p, const struct proc_spec *spec)
{
    size_t len = 0;
    for (int i = 0; i < spec->argc; i++) {
        len += strlen(spec->argv[i]) + 1;
    }
    p->cmdline = kmalloc(len);
    if (!p->cmdline) {
        return -ENOMEM;
    }
    p->cmdline_len = 0;
    for (int i = 0; i < spec->argc; i++) {
        size_t n = strlen(spec->argv[i]) + 1;
        memcpy(p->cmdline + p->cmdline_len, spec->argv[i], n);
        p->cmdline_len += n;
    }
    return 0;
}

static int open_std_files(struct proc *p)
{
    static const u32 modes[3] = { O_RDONLY, O_WRONLY, O_WRONLY };
    for (u32 fd = 0; fd < ARRAY_SIZE(modes); fd++) {
        struct file *f = console_file(modes[fd]);
        if (!f) {
            return -ENOMEM;
        }
        int result = fd_install(p, f, 0, false);
        if (result < 0) {
            file_put(f);
            return result;
        }
    }
    return 0;
}

static int load(struct proc *p, const struct initrd_file *file, const struct proc_spec *spec, u64 *sp)
{
    struct elf_image image;
    const char *why = elf_check(file->data, file->size, APP_MIN, APP_MAX, &image);
    if (why) {
        log_error("weir: %s: %s", file->path, why);
        return -ENOEXEC;
    }
    int error = elf_load(p, file, &image);
    if (!error) {
        error = stack_build(p, spec, sp);
    }
    if (!error) {
        error = remember_cmdline(p, spec);
    }
    return error ? error : open_std_files(p);
}

static int start_first_thread(struct proc *p, u64 sp)
{
    struct first_step step = { p->entry, sp };
    _Static_assert(sizeof(step) <= 64, "fits any register set");
    struct kthread *k = kthread_create(p);
    if (!k) {
        return -ENOMEM;
    }
    memcpy(k->start_regs, &step, sizeof(step));
    struct thread_attr attr = {
        .name = p->name, .app = k, .domain = p->domain,
                                .quota = grant_quota(p->domain), .has_fpu = true };
    struct thread *t;
    int error = thread_create(&attr, first_thread, k, &t);
    if (error < 0) {
        log_error("weir: %s: cannot create a thread: error %d", p->path, error);
        kthread_discard(k);
        kfree(k);
        return error;
    }
    k->thread = t;
    p->pid = thread_head(t)->id;
    p->start_ns = arch_clock_ns();
    STORE_RELEASE(p->state, PROC_RUNNING);
    thread_start(t);
    thread_put(t);
    return 0;
}

static const char *base_name(const char *path)
{
    const char *base = path;
    for (const char *s = path; *s; s++) {
        base = *s == '/' ? s + 1 : base;
    }
    return base;
}

int proc_start(const struct proc_spec *spec, struct proc **out)
{
    char path[PATH_BYTES];
    u64 sp;
    if (path_normalise(spec->argv[0], path, sizeof(path)) < 0) {
        log_error("weir: the program's path is too long");
        return -ENAMETOOLONG;
    }
    const struct initrd_file *file = initrd_find(path);
    if (!file || !file->data || (file->mode & 0170000u) != S_IFREG) {
        log_error("weir: %s: no such file in the initrd", path);
        return -ENOENT;
    }
    struct proc *p = proc_slot();
    if (!p) {
        log_error("weir: %s: more than %d processes", path, MAX_PROCS);
        return -EAGAIN;
    }
    str_copy(p->path, path, sizeof(p->path));
    str_copy(p->name, base_name(path), sizeof(p->name));
    p->domain = spec->domain;
    p->net = net_of_domain(spec->domain);
    p->elf = file->data;
    p->elf_size = file->size;
    int error = load(p, file, spec, &sp);
    if (!error) {
        error = start_first_thread(p, sp);
    }
    if (error) {
        fd_close_all(p);
        mm_unmap_owner(p);
        STORE_RELEASE(p->state, PROC_ENDED);
        return error;
    }
    log_info("%s: process %u, domain %u", p->path, p->pid, p->domain);
    *out = p;
    return 0;
}
