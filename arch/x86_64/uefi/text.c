/* Command lines from load options and files. */
#include "arch/x86_64/uefi/loader.h"

static bool is_text(uint32_t c)
{
    return (c >= ' ' && c < 0x7f) || c == '\t';
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* True if the first n characters of s end in ".efi". */
static bool ends_in_efi(const char *s, size_t n)
{
    return n > 4 && s[n - 4] == '.' && lower(s[n - 3]) == 'e' && lower(s[n - 2]) == 'f' && lower(s[n - 1]) == 'i';
}

static size_t word_length(const char *s)
{
    size_t n = 0;

    while (s[n] != '\0' && !is_blank(s[n]))
        n++;
    return n;
}

/* Removes n characters at position at of a string. */
static void cut(char *s, size_t at, size_t n)
{
    size_t i = at;

    do {
        s[i] = s[i + n];
    } while (s[i++] != '\0');
}

static size_t trim(char *s)
{
    size_t start = 0;
    size_t n = 0;

    while (is_blank(s[start]))
        start++;
    cut(s, 0, start);
    while (s[n] != '\0')
        n++;
    while (n > 0 && is_blank(s[n - 1]))
        s[--n] = '\0';
    return n;
}

static bool starts_with(const char *s, const char *prefix)
{
    while (*prefix != '\0')
        if (*s++ != *prefix++)
            return false;
    return true;
}

bool text_from_load_options(const uint16_t *options, uint64_t bytes, char *dst, size_t max)
{
    size_t n = 0;

    dst[0] = '\0';
    if (!options || bytes < sizeof(uint16_t))
        return false;
    for (uint64_t i = 0; i < bytes / sizeof(uint16_t) && options[i] != 0; i++) {
        if (!is_text(options[i]) || n + 1 >= max) {
            dst[0] = '\0';
            return false;
        }
        dst[n++] = (char)options[i];
    }
    dst[n] = '\0';
    trim(dst);
    if (ends_in_efi(dst, word_length(dst)))
        cut(dst, 0, word_length(dst));
    for (size_t i = 0; dst[i] != '\0';) {
        if ((i == 0 || is_blank(dst[i - 1])) && starts_with(dst + i, "initrd="))
            cut(dst, i, word_length(dst + i));
        else
            i++;
    }
    return trim(dst) > 0;
}

bool text_from_file(struct blob file, char *dst, size_t max)
{
    size_t n = 0;

    dst[0] = '\0';
    for (uint64_t i = 0; i < file.size && file.data[i] != 0; i++) {
        uint8_t c = file.data[i];

        if (c == '\n' || c == '\r')
            c = ' ';
        if (!is_text(c) || n + 1 >= max) {
            dst[0] = '\0';
            return false;
        }
        dst[n++] = (char)c;
    }
    dst[n] = '\0';
    trim(dst);
    return true;
}
