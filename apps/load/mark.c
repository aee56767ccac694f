/* Phase marks; see phase.h. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apps/load/phase.h"

#define ACK_SUFFIX ".ack"

/* A kernel has counted when the write returns. The reader of a FIFO tells so by opening another
 * one, FILE.ack, so that the next phase is not counted with this one. */
static void wait_for_reader(const char *file)
{
    char path[256];
    int fd;

    snprintf(path, sizeof(path), "%s" ACK_SUFFIX, file);
    fd = open(path, O_RDONLY | O_CLOEXEC);      /* waits for the writer */
    if (fd >= 0) {
        close(fd);
    }
}

void mark_phase(const char *file, const char *name, const char *what)
{
    struct stat status;
    char line[160];
    int fd = open(file, O_WRONLY | O_CLOEXEC);
    int bytes;
    bool fifo;

    if (fd < 0) {
        return;             /* nobody wants to know */
    }
    bytes = snprintf(line, sizeof(line), "%s %s\n", name, what);
    if (write(fd, line, (size_t)bytes) != bytes) {
        fprintf(stderr, "load: %s: short write\n", file);
    }
    fifo = fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
    close(fd);
    if (fifo) {
        wait_for_reader(file);
    }
}
