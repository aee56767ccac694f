/* The parts of the file tree: initrd (/), memory files (/tmp, /dev/shm), devices (/dev), views (/proc, /sys). */
#ifndef WEIR_CORE_KERN_VFS_H
#define WEIR_CORE_KERN_VFS_H

#include "core/kern/file.h"
#include "core/kern/text.h"

#if !defined(ENOTEMPTY)
#define ENOTEMPTY 39
#endif

/* Each part's open; paths are normalised. -ENOENT if it has no such file. */
i64 initrd_open(const char *path, u32 flags, struct file **out);
i64 tmp_open(const char *path, u32 flags, u32 mode, struct file **out);
i64 dev_open(const char *path, u32 flags, struct file **out);
i64 view_open(struct proc *p, const char *path, u32 flags, struct file **out);

i64 initrd_stat(const char *path, struct file_stat *st);
i64 tmp_stat(const char *path, struct file_stat *st);
i64 dev_stat(const char *path, struct file_stat *st);
i64 view_stat(const char *path, struct file_stat *st);

i64 tmp_unlink(const char *path, bool dir);
i64 tmp_rename(const char *from, const char *to);
i64 tmp_mkdir(const char *path, u32 mode);
/* Below a directory of memory files? */
bool tmp_path(const char *path);
void tmp_init(void);
/* Bytes and files in memory files, for views. */
void tmp_usage(u64 *bytes, u32 *files);

/* Calls emit for every entry right below dir (names without path); an entry may come twice. */
typedef void (*dir_emit)(const char *name, u64 inode, bool is_dir, void *arg);
void initrd_list(const char *dir, dir_emit emit, void *arg);
void tmp_list(const char *dir, dir_emit emit, void *arg);
void dev_list(const char *dir, dir_emit emit, void *arg);
void view_list(const char *dir, dir_emit emit, void *arg);
void dir_list(const char *dir, dir_emit emit, void *arg); /* all four */
/* The path of an open directory, NULL for other files. */
const char *file_dir_path(const struct file *f);
/* For lists of full paths: the name of path's part right below dir, cut into name (PATH_BYTES); false if it is not below.
 * *deeper: the path goes on behind it. */
bool path_child(const char *dir, const char *path, char *name, bool *deeper);

/* A file whose text was made when it was opened. */
struct view {
    const char *path;                            /* "/proc/self/..." stands for every process */
    void (*show)(struct text *t, struct proc *p); /* NULL: write-only */
    i64 (*store)(struct proc *p, const char *line); /* NULL: read-only; one call per write */
};
/* Tables of views, each ended by path NULL: view.c knows them. */
extern const struct view proc_views[];
extern const struct view sys_views[];
extern const struct view weir_views[];

#endif
