/* Path arithmetic. Pure. The working directory is always "/". */
#include "core/base/errno.h"
#include "core/base/string.h"
#include "core/kern/file.h"

int path_normalise(const char *path, char *out, size_t n)
{
    size_t len = 0;
    while (*path) {
        while (*path == '/') {
            path++;
        }
        size_t part = 0;
        while (path[part] && path[part] != '/') {
            part++;
        }
        if (part == 2 && path[0] == '.' && path[1] == '.') {
            while (len > 0 && out[--len] != '/') {
            }
        } else if (part > 0 && !(part == 1 && path[0] == '.')) {
            if (len + part + 2 > n) {
                return -ENAMETOOLONG;
            }
            out[len++] = '/';
            memcpy(out + len, path, part);
            len += part;
        }
        path += part;
    }
    if (len == 0) {
        out[len++] = '/';
    }
    out[len] = '\0';
    return 0;
}
