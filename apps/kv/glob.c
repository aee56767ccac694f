/* Pattern matching with one backtrack point (the last '*'): time is bounded by the product of the
 * lengths, whatever the pattern. */
#include "apps/kv/command.h"

/* Matches one character class at p[0] == '[' against ch; *used becomes its length. */
static bool class_match(const char *p, size_t n, unsigned char ch, size_t *used)
{
    size_t i = 1;
    bool invert = i < n && p[i] == '^';
    bool hit = false;

    i += invert;
    while (i < n && p[i] != ']') {
        unsigned char lo = (unsigned char)p[i], hi;

        if (lo == '\\' && i + 1 < n) {
            lo = (unsigned char)p[++i];
            hit |= lo == ch;
            i++;
        } else if (i + 2 < n && p[i + 1] == '-') {
            hi = (unsigned char)p[i + 2];
            if (lo > hi) {
                unsigned char t = lo;

                lo = hi;
                hi = t;
            }
            hit |= ch >= lo && ch <= hi;
            i += 3;
        } else {
            hit |= lo == ch;
            i++;
        }
    }
    *used = i < n ? i + 1 : n;
    return hit != invert;
}

/* Length of the pattern element at p if it matches ch, else 0. */
static size_t one_match(const char *p, size_t n, unsigned char ch)
{
    size_t used = 1;

    switch (*p) {
    case '?':
        return 1;
    case '[':
        return class_match(p, n, ch, &used) ? used : 0;
    case '\\':
        if (n > 1) {
            return (unsigned char)p[1] == ch ? 2 : 0;
        }
        break;
    default:
        break;
    }
    return (unsigned char)*p == ch;
}

bool glob_match(const char *pat, size_t plen, const char *s, size_t slen)
{
    size_t p = 0, i = 0;
    size_t star_p = 0, star_i = 0;
    bool star = false;

    while (i < slen) {
        size_t used;

        if (p < plen && pat[p] == '*') {
            star = true;
            star_p = ++p;
            star_i = i;
            continue;
        }
        used = p < plen ? one_match(pat + p, plen - p, (unsigned char)s[i]) : 0;
        if (used) {
            p += used;
            i++;
        } else if (star) {
            p = star_p;
            i = ++star_i;
        } else {
            return false;
        }
    }
    while (p < plen && pat[p] == '*') {
        p++;
    }
    return p == plen;
}
