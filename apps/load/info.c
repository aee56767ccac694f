/* Asks a RESP server for a section of INFO after a phase and prints it as one JSON line. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "apps/load/phase.h"

#define INFO_MAX 16383              /* bytes of a reply; sections of interest have under 2 KB */

/* Reads "$BYTES\r\n" and that many bytes into `text`, which it ends with '\0'. */
static bool read_bulk(int fd, char *text)
{
    size_t have = 0, body = 0, bytes = 0;
    char *end;

    for (;;) {
        ssize_t n = read(fd, text + have, INFO_MAX - have);

        if (n <= 0) {
            return false;
        }
        have += (size_t)n;
        text[have] = '\0';
        end = memchr(text, '\n', have);
        if (!body && end) {
            if (*text != '$') {
                return false;
            }
            bytes = strtoul(text + 1, NULL, 10);
            body = (size_t)(end - text) + 1;
        }
        if (body && have >= body + bytes) {
            memmove(text, text + body, bytes);
            text[bytes] = '\0';
            return true;
        }
    }
}

static bool is_number(const char *s)
{
    const char *from = s;

    for (; isdigit((unsigned char)*s) || *s == '.'; s++) {
    }
    return s > from && !*s && isdigit((unsigned char)*from);
}

/* Lines "name:value" as members of a JSON object; the rest is left out. */
static void print_members(char *text)
{
    for (char *line = strtok(text, "\r\n"); line; line = strtok(NULL, "\r\n")) {
        char *value = strchr(line, ':');

        if (!value || strpbrk(line, "\"\\")) {
            continue;
        }
        *value++ = '\0';
        printf(is_number(value) ? ", \"%s\": %s" : ", \"%s\": \"%s\"", line, value);
    }
}

bool info_report(const struct sockaddr_in *server, const char *section, const char *phase)
{
    static char text[INFO_MAX + 1];
    struct conn c;
    bool good = false;
    int n;

    if (!conn_init(&c, 1, 1)) {
        return false;
    }
    if (conn_open(&c, server, true) == 0) {
        n = snprintf(text, sizeof(text), "*2\r\n$4\r\nINFO\r\n$%zu\r\n%s\r\n", strlen(section), section);
        good = write(c.fd, text, (size_t)n) == n && read_bulk(c.fd, text);
    }
    conn_free(&c);
    if (!good) {
        fprintf(stderr, "load: no INFO %s from the server\n", section);
        return false;
    }
    printf("{\"info\": \"%s\", \"section\": \"%s\"", phase, section);
    print_members(text);
    printf("}\n");
    fflush(stdout);
    return true;
}
