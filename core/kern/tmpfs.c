/* Memory files: /tmp and /dev/shm. Pages of a file are allocated when written and charged to MEM_FILE; holes read as zero.
 * One mutex for the tree and all contents: this is for small scratch files, not for throughput. */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/vfs.h"
#include "core/mm/mm.h"

#define FIRST_INODE 100000u

struct tmp_file {
    struct tmp_file *next;
    char path[PATH_BYTES]; /* "": unlinked, but open */
    u64 inode;
    u32 mode;
    u32 refs; /* open files, and 1 while it has a path */
    u64 size;
    paddr_t *pages; /* num_pages; 0: a hole */
    u64 num_pages;
};

static struct mutex tmp_mutex;
static struct tmp_file *files; /* with a path */
static u32 num_files;
static u64 next_inode = FIRST_INODE;

static const char *const roots[] = { "/tmp", "/dev/shm" };

bool tmp_path(const char *path)
{
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        size_t n = strlen(roots[i]);
        if (strncmp(path, roots[i], n) == 0 && (path[n] == '/' || path[n] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool is_root(const char *path)
{
    return strcmp(path, roots[0]) == 0 || strcmp(path, roots[1]) == 0;
}

static struct tmp_file *find(const char *path)
{
    for (struct tmp_file *t = files; t; t = t->next) {
        if (strcmp(t->path, path) == 0) {
            return t;
        }
    }
    return NULL;
}

static bool has_children(const char *dir)
{
    char name[PATH_BYTES];
    bool deeper;
    for (struct tmp_file *t = files; t; t = t->next) {
        if (path_child(dir, t->path, name, &deeper)) {
            return true;
        }
    }
    return false;
}

/* 0 if the directory that holds path exists. */
static i64 check_parent(const char *path)
{
    char parent[PATH_BYTES];
    size_t len = strlen(path);
    while (len > 0 && path[len - 1] != '/') {
        len--;
    }
    memcpy(parent, path, len);
    parent[len > 1 ? len - 1 : len] = '\0';
    if (is_root(parent)) {
        return 0;
    }
    struct tmp_file *t = find(parent);
    return !t ? -ENOENT : (t->mode & S_IFDIR) ? 0 : -ENOTDIR;
}

static void free_pages_from(struct tmp_file *t, u64 first)
{
    for (u64 i = first; i < t->num_pages; i++) {
        if (t->pages[i]) {
            page_free(t->pages[i], 0, MEM_FILE);
            t->pages[i] = 0;
        }
    }
}

static void tmp_put(struct tmp_file *t)
{
    if (--t->refs == 0) {
        free_pages_from(t, 0);
        kfree(t->pages);
        kfree(t);
    }
}

static void forget_path(struct tmp_file *t)
{
    struct tmp_file **link = &files;
    while (*link != t) {
        link = &(*link)->next;
    }
    *link = t->next;
    t->path[0] = '\0';
    num_files--;
    tmp_put(t);
}

static i64 create(const char *path, u32 mode, struct tmp_file **out)
{
    i64 error = check_parent(path);
    if (error) {
        return error;
    }
    if (num_files == TMP_MAX_FILES) {
        return -ENOSPC;
    }
    struct tmp_file *t = kzalloc(sizeof(*t));
    if (!t) {
        return -ENOMEM;
    }
    str_copy(t->path, path, sizeof(t->path));
    t->inode = next_inode++;
    t->mode = mode;
    t->refs = 1;
    t->next = files;
    files = t;
    num_files++;
    *out = t;
    return 0;
}

/* ---- contents ---- */

static i64 reserve_pages(struct tmp_file *t, u64 pages)
{
    if (pages <= t->num_pages) {
        return 0;
    }
    u64 want = MAX(pages, t->num_pages * 2);
    paddr_t *fresh = kzalloc(want * sizeof(*fresh));
    if (!fresh) {
        return -ENOSPC;
    }
    if (t->num_pages > 0) {
        memcpy(fresh, t->pages, t->num_pages * sizeof(*fresh));
    }
    kfree(t->pages);
    t->pages = fresh;
    t->num_pages = want;
    return 0;
}

static i64 tmp_read(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct tmp_file *t = f->priv;
    struct io io = io_begin(buf);
    size_t left = io_total(buf);
    i64 done = 0;
    (void)flags;
    mutex_lock(&tmp_mutex);
    while (left > 0 && *pos < t->size) {
        u64 page = *pos / PAGE_SIZE, at = *pos % PAGE_SIZE;
        size_t part = MIN(MIN(left, PAGE_SIZE - at), t->size - *pos);
        paddr_t pa = page < t->num_pages ? t->pages[page] : 0;
        i64 n = pa ? io_put(&io, (const char *)phys_to_virt(pa) + at, part) : io_put_zero(&io, part);
        if (n <= 0) {
            done = done > 0 ? done : n;
            break;
        }
        *pos += (u64)n;
        done += n;
        left -= (size_t)n;
    }
    mutex_unlock(&tmp_mutex);
    return done;
}

static i64 write_page(struct tmp_file *t, struct io *io, u64 pos, size_t left)
{
    u64 page = pos / PAGE_SIZE, at = pos % PAGE_SIZE;
    i64 error = pos >= TMP_MAX_BYTES ? -EFBIG : reserve_pages(t, page + 1);
    if (error) {
        return error;
    }
    if (!t->pages[page]) {
        t->pages[page] = page_alloc_zeroed(0, MEM_FILE);
        if (!t->pages[page]) {
            return -ENOSPC;
        }
    }
    return io_take(io, (char *)phys_to_virt(t->pages[page]) + at, MIN(left, PAGE_SIZE - at));
}

static i64 tmp_write(struct file *f, const struct net_buf *buf, u64 *pos, u32 flags)
{
    struct tmp_file *t = f->priv;
    struct io io = io_begin(buf);
    size_t left = io_total(buf);
    i64 done = 0;
    (void)flags;
    mutex_lock(&tmp_mutex);
    if (f->flags & O_APPEND) {
        *pos = t->size;
    }
    while (left > 0) {
        i64 n = write_page(t, &io, *pos, left);
        if (n <= 0) {
            done = done > 0 ? done : n;
            break;
        }
        *pos += (u64)n;
        done += n;
        left -= (size_t)n;
        t->size = MAX(t->size, *pos);
    }
    mutex_unlock(&tmp_mutex);
    return done;
}

static i64 resize(struct tmp_file *t, u64 size)
{
    if (size > TMP_MAX_BYTES) {
        return -EFBIG;
    }
    if (size < t->size) {
        u64 last = size / PAGE_SIZE, at = size % PAGE_SIZE;
        free_pages_from(t, ALIGN_UP(size, PAGE_SIZE) / PAGE_SIZE);
        if (at && last < t->num_pages && t->pages[last]) {
            memset((char *)phys_to_virt(t->pages[last]) + at, 0, PAGE_SIZE - at);
        }
    }
    t->size = size;
    return 0;
}

static i64 tmp_truncate(struct file *f, u64 size)
{
    mutex_lock(&tmp_mutex);
    i64 result = resize(f->priv, size);
    mutex_unlock(&tmp_mutex);
    return result;
}

static void fill_stat(const struct tmp_file *t, struct file_stat *st)
{
    *st = (struct file_stat){ .inode = t->inode, .size = t->size, .mode = t->mode };
}

static void tmp_file_stat(struct file *f, struct file_stat *st)
{
    mutex_lock(&tmp_mutex);
    fill_stat(f->priv, st);
    mutex_unlock(&tmp_mutex);
}

static void tmp_release(struct file *f)
{
    mutex_lock(&tmp_mutex);
    tmp_put(f->priv);
    mutex_unlock(&tmp_mutex);
}

static const struct file_ops tmp_ops = {
    .name = "tmp",
    .seekable = true,
    .read = tmp_read,
    .write = tmp_write,
    .stat = tmp_file_stat,
    .truncate = tmp_truncate,
    .release = tmp_release,
};

/* ---- the tree ---- */

static i64 open_locked(const char *path, u32 flags, u32 mode, struct file **out)
{
    struct tmp_file *t = find(path);
    if (t && (flags & O_CREAT) && (flags & O_EXCL)) {
        return -EEXIST;
    }
    if (!t) {
        i64 error = flags & O_CREAT ? create(path, S_IFREG | (mode & 0777), &t) : -ENOENT;
        if (error) {
            return error;
        }
    } else if ((flags & O_TRUNC) && (flags & O_ACCMODE) != O_RDONLY) {
        resize(t, 0);
    }
    *out = file_create(&tmp_ops, t, flags);
    if (!*out) {
        return -ENOMEM;
    }
    t->refs++;
    return 0;
}

i64 tmp_open(const char *path, u32 flags, u32 mode, struct file **out)
{
    mutex_lock(&tmp_mutex);
    i64 result = open_locked(path, flags, mode, out);
    mutex_unlock(&tmp_mutex);
    return result;
}

i64 tmp_stat(const char *path, struct file_stat *st)
{
    i64 result = -ENOENT;
    mutex_lock(&tmp_mutex);
    struct tmp_file *t = find(path);
    if (t) {
        fill_stat(t, st);
        result = 0;
    } else if (is_root(path)) {
        *st = (struct file_stat){ .inode = 2, .mode = S_IFDIR | 01777 };
        result = 0;
    }
    mutex_unlock(&tmp_mutex);
    return result;
}

static i64 unlink_locked(const char *path, bool dir)
{
    struct tmp_file *t = find(path);
    if (is_root(path)) {
        return -EBUSY;
    }
    if (!t) {
        return -ENOENT;
    }
    bool is_dir = t->mode & S_IFDIR;
    if (is_dir != dir) {
        return dir ? -ENOTDIR : -EISDIR;
    }
    if (is_dir && has_children(path)) {
        return -ENOTEMPTY;
    }
    forget_path(t);
    return 0;
}

i64 tmp_unlink(const char *path, bool dir)
{
    mutex_lock(&tmp_mutex);
    i64 result = unlink_locked(path, dir);
    mutex_unlock(&tmp_mutex);
    return result;
}

static i64 rename_locked(const char *from, const char *to)
{
    struct tmp_file *t = find(from), *old = find(to);
    i64 error = !t ? -ENOENT : check_parent(to);
    if (error) {
        return error;
    }
    if (t->mode & S_IFDIR) {
        return has_children(from) || old ? -EBUSY : (str_copy(t->path, to, sizeof(t->path)), 0);
    }
    if (old && (old->mode & S_IFDIR)) {
        return -EISDIR;
    }
    if (old && old != t) {
        forget_path(old);
    }
    str_copy(t->path, to, sizeof(t->path));
    return 0;
}

i64 tmp_rename(const char *from, const char *to)
{
    mutex_lock(&tmp_mutex);
    i64 result = rename_locked(from, to);
    mutex_unlock(&tmp_mutex);
    return result;
}

i64 tmp_mkdir(const char *path, u32 mode)
{
    struct tmp_file *t;
    mutex_lock(&tmp_mutex);
    i64 result = find(path) || is_root(path) ? -EEXIST : create(path, S_IFDIR | (mode & 0777), &t);
    mutex_unlock(&tmp_mutex);
    return result;
}

void tmp_list(const char *dir, dir_emit emit, void *arg)
{
    char name[PATH_BYTES];
    bool deeper;
    /* "/dev" itself is listed by the devices. */
    for (size_t i = 0; i < ARRAY_SIZE(roots); i++) {
        if (path_child(dir, roots[i], name, &deeper) && !deeper) {
            emit(name, 2, true, arg);
        }
    }
    mutex_lock(&tmp_mutex);
    for (struct tmp_file *t = files; t; t = t->next) {
        if (path_child(dir, t->path, name, &deeper)) {
            emit(name, t->inode, deeper || (t->mode & S_IFDIR), arg);
        }
    }
    mutex_unlock(&tmp_mutex);
}

void tmp_usage(u64 *bytes, u32 *count)
{
    *bytes = 0;
    mutex_lock(&tmp_mutex);
    for (struct tmp_file *t = files; t; t = t->next) {
        for (u64 i = 0; i < t->num_pages; i++) {
            *bytes += t->pages[i] ? PAGE_SIZE : 0;
        }
    }
    *count = num_files;
    mutex_unlock(&tmp_mutex);
}

void tmp_init(void)
{
    mutex_init(&tmp_mutex);
}
