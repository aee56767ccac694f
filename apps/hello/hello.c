/* The smallest application: prints what it was started with, ends with the code it is told.
 *
 * usage: hello [CODE [WORD ...]]
 * CODE: 0..255, the exit code (default 0); anything else is an error (exit code 2). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define CODE_MAX   255
#define EXIT_USAGE 2

extern char **environ;

int main(int argc, char **argv)
{
    char *end;
    long code = 0;

    printf("hello\n");
    for (int i = 0; i < argc; i++) {
        printf("argv[%d]=%s\n", i, argv[i]);
    }
    for (char **e = environ; *e; e++) {
        printf("env %s\n", *e);
    }
    if (argc > 1) {
        errno = 0;
        code = strtol(argv[1], &end, 10);
        if (errno || end == argv[1] || *end || code < 0 || code > CODE_MAX) {
            fprintf(stderr, "hello: '%s' is not an exit code in 0..%d\n", argv[1], CODE_MAX);
            return EXIT_USAGE;
        }
    }
    return (int)code;
}
