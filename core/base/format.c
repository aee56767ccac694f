/* printf-style formatting: the subset that core/base/string.h names. */
#include "core/base/string.h"

/* Where characters go.  len counts all of them, also those that no longer fit. */
struct sink {
    char *buf;
    size_t size;
    size_t len;
};

/* One conversion: %[-0][width][.precision][l|ll|z|h|hh]conv */
struct spec {
    bool left;
    bool zero;
    int width;
    int precision; /* -1: none given */
    int size;      /* -2 hh, -1 h, 0 int, 1 long (also ll, z) */
    char conv;
};

static void put(struct sink *s, char c)
{
    if (s->len + 1 < s->size) {
        s->buf[s->len] = c;
    }
    s->len++;
}

static void put_padding(struct sink *s, char c, int n)
{
    for (; n > 0; n--) {
        put(s, c);
    }
}

static void put_field(struct sink *s, const struct spec *sp, const char *text, size_t n)
{
    int pad = sp->width - (int)n;
    if (!sp->left) {
        put_padding(s, ' ', pad);
    }
    for (size_t i = 0; i < n; i++) {
        put(s, text[i]);
    }
    if (sp->left) {
        put_padding(s, ' ', pad);
    }
}

static void put_number(struct sink *s, const struct spec *sp, u64 value, const char *sign)
{
    const char *digits = sp->conv == 'X' ? "0123456789ABCDEF" : "0123456789abcdef";
    u64 base = sp->conv == 'x' || sp->conv == 'X' || sp->conv == 'p' ? 16 : 10;
    char text[24]; /* 2^64 has 20 digits */
    size_t n = 0;
    if (value == 0 && sp->precision != 0) {
        text[n++] = '0';
    }
    for (; value != 0; value /= base) {
        text[n++] = digits[value % base];
    }
    int zeros = MAX(sp->precision - (int)n, 0);
    size_t sign_len = strlen(sign);
    int pad = sp->width - (int)n - zeros - (int)sign_len;
    if (sp->zero && !sp->left && sp->precision < 0 && pad > 0) {
        zeros = pad;
        pad = 0;
    }
    if (!sp->left) {
        put_padding(s, ' ', pad);
    }
    for (size_t i = 0; i < sign_len; i++) {
        put(s, sign[i]);
    }
    put_padding(s, '0', zeros);
    while (n > 0) {
        put(s, text[--n]);
    }
    if (sp->left) {
        put_padding(s, ' ', pad);
    }
}

static int parse_count(const char **fmt)
{
    int v = 0;
    for (; **fmt >= '0' && **fmt <= '9'; (*fmt)++) {
        if (v < 4096) { /* wider fields make no sense in log lines; keeps the arithmetic in range */
            v = v * 10 + (**fmt - '0');
        }
    }
    return v;
}

/* Called with *fmt behind the '%'; leaves it behind the conversion character. Takes '*' widths from
 * args. */
static struct spec parse_spec(const char **fmt, va_list *args)
{
    struct spec sp = {.precision = -1};
    for (;; (*fmt)++) {
        if (**fmt == '-') {
            sp.left = true;
        } else if (**fmt == '0') {
            sp.zero = true;
        } else {
            break;
        }
    }
    if (**fmt == '*') {
        (*fmt)++;
        sp.width = va_arg(*args, int);
        if (sp.width < 0) {
            sp.left = true;
            sp.width = sp.width > -4096 ? -sp.width : 4096;
        }
    } else {
        sp.width = parse_count(fmt);
    }
    if (**fmt == '.') {
        (*fmt)++;
        if (**fmt == '*') {
            (*fmt)++;
            sp.precision = va_arg(*args, int);
        } else {
            sp.precision = parse_count(fmt);
        }
    }
    for (;; (*fmt)++) {
        if (**fmt == 'l' || **fmt == 'z') {
            sp.size = 1;
        } else if (**fmt == 'h') {
            sp.size--;
        } else {
            break;
        }
    }
    sp.conv = **fmt;
    if (sp.conv != '\0') {
        (*fmt)++;
    }
    return sp;
}

static i64 take_signed(const struct spec *sp, va_list *args)
{
    if (sp->size > 0) {
        return va_arg(*args, long);
    }
    int v = va_arg(*args, int);
    return sp->size == 0 ? v : sp->size == -1 ? (short)v : (signed char)v;
}

static u64 take_unsigned(const struct spec *sp, va_list *args)
{
    if (sp->size > 0) {
        return va_arg(*args, unsigned long);
    }
    unsigned v = va_arg(*args, unsigned);
    return sp->size == 0 ? v : sp->size == -1 ? (unsigned short)v : (unsigned char)v;
}

static void convert(struct sink *s, struct spec *sp, va_list *args)
{
    switch (sp->conv) {
    case 'd':
    case 'i': {
        i64 v = take_signed(sp, args);
        put_number(s, sp, v < 0 ? 0 - (u64)v : (u64)v, v < 0 ? "-" : "");
        break;
    }
    case 'u':
    case 'x':
    case 'X':
        put_number(s, sp, take_unsigned(sp, args), "");
        break;
    case 'p':
        put_number(s, sp, (u64)(uintptr_t)va_arg(*args, void *), "0x");
        break;
    case 'c': {
        char c = (char)va_arg(*args, int);
        put_field(s, sp, &c, 1);
        break;
    }
    case 's': {
        const char *text = va_arg(*args, const char *);
        if (text == NULL) {
            text = "(null)";
        }
        put_field(s, sp, text,
                  sp->precision >= 0 ? strnlen(text, (size_t)sp->precision) : strlen(text));
        break;
    }
    case '%':
        put(s, '%');
        break;
    default: /* the compiler's format check rejects it at build time; shown as it is */
        put(s, '%');
        if (sp->conv != '\0') {
            put(s, sp->conv);
        }
        break;
    }
}

int str_vformat(char *buf, size_t n, const char *fmt, va_list args)
{
    struct sink s = {.buf = buf, .size = n};
    va_list ap;
    va_copy(ap, args);
    while (*fmt != '\0') {
        char c = *fmt++;
        if (c != '%') {
            put(&s, c);
            continue;
        }
        struct spec sp = parse_spec(&fmt, &ap);
        convert(&s, &sp, &ap);
    }
    va_end(ap);
    if (n > 0) {
        buf[MIN(s.len, n - 1)] = '\0';
    }
    return (int)s.len;
}

int str_format(char *buf, size_t n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = str_vformat(buf, n, fmt, args);
    va_end(args);
    return len;
}
