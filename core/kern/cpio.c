/* Reader of newc cpio archives (magic 070701, or 070702 with checksums, which are not looked at). Pure. */
#include "core/base/string.h"
#include "core/kern/initrd.h"

#define HEADER_BYTES 110
#define FIELD_BYTES 8
#define MAGIC_BYTES 6
enum field { FIELD_MODE = 1, FIELD_FILE_SIZE = 6, FIELD_NAME_SIZE = 11 };

static bool read_field(const char *header, enum field field, u32 *out)
{
    const char *s = header + MAGIC_BYTES + (size_t)field * FIELD_BYTES;
    u32 value = 0;
    for (u32 i = 0; i < FIELD_BYTES; i++) {
        char c = s[i];
        u32 digit;
        if (c >= '0' && c <= '9') {
            digit = (u32)(c - '0');
        } else if (c >= 'a' && c <= 'f') {
            digit = (u32)(c - 'a') + 10;
        } else if (c >= 'A' && c <= 'F') {
            digit = (u32)(c - 'A') + 10;
        } else {
            return false;
        }
        value = value << 4 | digit;
    }
    *out = value;
    return true;
}

int cpio_next(const void *archive, u64 size, u64 *offset, struct cpio_entry *out, const char **why)
{
    const char *base = archive;
    u64 at = *offset;
    /* Archives are padded with zeros, and several may follow each other. */
    while (at < size && base[at] == '\0') {
        at++;
    }
    if (at >= size) {
        return 0;
    }
    if (size - at < HEADER_BYTES) {
        *why = "ends inside a header";
        return -1;
    }
    const char *header = base + at;
    if (memcmp(header, "070701", MAGIC_BYTES) != 0 && memcmp(header, "070702", MAGIC_BYTES) != 0) {
        *why = "an entry does not start with a newc magic number";
        return -1;
    }
    u32 mode, file_size, name_size;
    if (!read_field(header, FIELD_MODE, &mode) || !read_field(header, FIELD_FILE_SIZE, &file_size) ||
        !read_field(header, FIELD_NAME_SIZE, &name_size)) {
        *why = "a header field is no hexadecimal number";
        return -1;
    }
    u64 name_at = at + HEADER_BYTES;
    u64 data_at = ALIGN_UP(name_at + name_size, (u64)4);
    if (name_size == 0 || data_at > size || base[name_at + name_size - 1] != '\0') {
        *why = "a name is not inside the archive";
        return -1;
    }
    if (file_size > size - data_at) {
        *why = "a file is cut short";
        return -1;
    }
    *out = (struct cpio_entry){ base + name_at, base + data_at, file_size, mode };
    *offset = MIN(ALIGN_UP(data_at + file_size, (u64)4), size);
    if (strcmp(out->name, "TRAILER!!!") == 0) {
        /* What follows is either padding or another archive. */
        return cpio_next(archive, size, offset, out, why);
    }
    return 1;
}
