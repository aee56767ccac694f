/* Views: files whose text is made when they are opened. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/vfs.h"
#include "core/mm/mm.h"

#define LINE_MAX 256
#define FIRST_INODE 1000u
#define SELF "/proc/self/"

struct view_file {
    const struct view *view;
    struct proc *proc;
    struct text text;
};

static const struct view *const tables[] = { proc_views, sys_views, weir_views };

/* "/proc/12/stat" is "/proc/self/stat" of process 12. */
static bool resolve_pid(const char *path, char *out, struct proc **p)
{
    if (!str_starts_with(path, "/proc/") || str_starts_with(path, SELF)) {
        return str_copy(out, path, PATH_BYTES);
    }
    const char *digits = path + strlen("/proc/");
    size_t n = 0;
    u64 pid;
    while (digits[n] >= '0' && digits[n] <= '9') {
        n++;
    }
    if (n == 0 || digits[n] != '/' || str_parse_u64(digits, n, &pid) < 0) {
        return str_copy(out, path, PATH_BYTES);
    }
    *p = proc_find((u32)pid);
    str_format(out, PATH_BYTES, SELF "%s", digits + n + 1);
    return *p != NULL;
}

static const struct view *find_view(const char *path, struct proc **p, u64 *inode)
{
    char full[PATH_BYTES];
    u64 number = FIRST_INODE;
    if (!resolve_pid(path, full, p)) {
        return NULL;
    }
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        for (const struct view *v = tables[i]; v->path; v++, number++) {
            if (strcmp(v->path, full) == 0) {
                *inode = number;
                return v;
            }
        }
    }
    return NULL;
}

static i64 view_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct view_file *v = f->priv;
    (void)flags;
    return io_read_memory(buf, v->text.data, v->text.len, pos);
}

static i64 view_write(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct view_file *v = f->priv;
    struct io io = io_begin(buf);
    char line[LINE_MAX];
    (void)pos;
    (void)flags;
    if (io_total(buf) >= sizeof(line)) {
        return -EINVAL;
    }
    i64 n = io_take(&io, line, sizeof(line) - 1);
    if (n < 0) {
        return n;
    }
    line[n] = '\0';
    for (i64 end = n; end > 0 && line[end - 1] == '\n'; end--) {
        line[end - 1] = '\0';
    }
    i64 error = v->view->store(v->proc, line);
    return error < 0 ? error : n;
}

static void view_file_stat(struct file *f, struct file_stat *st)
{
    struct view_file *v = f->priv;
    *st = (struct file_stat){ .inode = FIRST_INODE, .mode = S_IFREG | (v->view->store ? 0644 : 0444) };
}

static void view_release(struct file *f)
{
    struct view_file *v = f->priv;
    text_free(&v->text);
    kfree(v);
}

static const struct file_ops view_ops = {
    .name = "view",
    .seekable = true,
    .read = view_read,
    .write = view_write,
    .stat = view_file_stat,
    .release = view_release,
};

i64 view_open(struct proc *p, const char *path, u32 flags, struct file **out)
{
    u64 inode;
    const struct view *view = find_view(path, &p, &inode);
    if (!view) {
        return flags & O_CREAT ? -EROFS : -ENOENT;
    }
    bool writes = (flags & O_ACCMODE) != O_RDONLY;
    bool reads = (flags & O_ACCMODE) != O_WRONLY;
    if ((writes && !view->store) || (reads && !view->show)) {
        return -EACCES;
    }
    struct view_file *v = kzalloc(sizeof(*v));
    if (!v) {
        return -ENOMEM;
    }
    v->view = view;
    v->proc = p;
    text_init(&v->text);
    if (reads) {
        view->show(&v->text, p);
    }
    *out = file_create(&view_ops, v, flags);
    if (!*out || v->text.failed) {
        if (*out) {
            file_put(*out);
        } else {
            text_free(&v->text);
            kfree(v);
        }
        return -ENOMEM;
    }
    return 0;
}

i64 view_stat(const char *path, struct file_stat *st)
{
    struct proc *p = NULL;
    u64 inode;
    const struct view *view = find_view(path, &p, &inode);
    if (!view) {
        return -ENOENT;
    }
    *st = (struct file_stat){ .inode = inode, .mode = S_IFREG | (view->store ? 0644 : 0444) };
    return 0;
}

void view_list(const char *dir, dir_emit emit, void *arg)
{
    char name[PATH_BYTES], full[PATH_BYTES];
    struct proc *p = NULL;
    bool deeper;
    if (!resolve_pid(dir, full, &p)) {
        return;
    }
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        u64 number = FIRST_INODE;
        for (const struct view *v = tables[i]; v->path; v++, number++) {
            if (path_child(full, v->path, name, &deeper)) {
                emit(name, number, deeper, arg);
            }
        }
    }
}
