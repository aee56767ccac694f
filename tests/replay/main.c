/* weir-replay FILE...: makes the policy calls that a guest recorded (/policy-record) again on this host, with the very objects that
 * are in the kernel, and compares the answers.  Exit code 0: all the same, 1: one differs, 2: not a good file. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sched/policies/policies.h"
#include "tests/replay/replay.h"

/* More than a recording can have: PLANS_MAX_KB of the kernel, with room to grow. */
#define FILE_MAX (1ull << 30)

/* NULL: one line has said why. */
static uint8_t *read_file(const char *path, size_t *n)
{
    FILE *in = fopen(path, "rb");
    if (!in) {
        fprintf(stderr, "weir-replay: %s: %s\n", path, strerror(errno));
        return NULL;
    }
    uint8_t *data = NULL;
    size_t size = 0, got = 1;
    for (*n = 0; got && *n < FILE_MAX; *n += got) {
        if (*n == size) {
            size = size ? size * 2 : 1u << 20;
            uint8_t *more = realloc(data, size);
            if (!more) {
                break;
            }
            data = more;
        }
        got = fread(data + *n, 1, size - *n, in);
    }
    if (got) {
        fprintf(stderr, "weir-replay: %s: too large\n", path);
    } else if (ferror(in)) {
        fprintf(stderr, "weir-replay: %s: %s\n", path, strerror(errno));
    }
    bool good = !got && !ferror(in);
    fclose(in);
    if (!good) {
        free(data);
        return NULL;
    }
    return data;
}

int main(int argc, char **argv)
{
    int code = REPLAY_SAME;
    if (argc < 2) {
        fprintf(stderr, "usage: weir-replay FILE...   (recorded by the guest's page /policy-record)\n");
        return REPLAY_BAD_FILE;
    }
    for (int i = 1; i < argc; i++) {
        size_t n;
        struct replay_counts counts;
        uint8_t *data = read_file(argv[i], &n);
        if (!data) {
            return REPLAY_BAD_FILE;
        }
        enum replay_end end = replay(data, n, argv[i], policy_registry, stderr, &counts);
        free(data);
        if (end == REPLAY_BAD_FILE) {
            return REPLAY_BAD_FILE;
        }
        printf("%s: place_new %" PRIu64 ", place_wake %" PRIu64 ", balance %" PRIu64 " (%" PRIu64 " moves), idle_pull %" PRIu64
               ", cut off %" PRIu64 ", lost %" PRIu64 ": %" PRIu64 " differ\n",
               argv[i], counts.calls[RECORD_PLACE_NEW], counts.calls[RECORD_PLACE_WAKE], counts.calls[RECORD_BALANCE],
               counts.moves, counts.calls[RECORD_IDLE_PULL], counts.calls[0], counts.lost, counts.differ);
        code = end == REPLAY_DIFFERS ? REPLAY_DIFFERS : code;
    }
    return code;
}
