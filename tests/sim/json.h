/* Reads a JSON text into a tree that remembers lines.  Repeated keys are kept, in order: rt-app files use them. */
#ifndef WEIR_TESTS_SIM_JSON_H
#define WEIR_TESTS_SIM_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_type type;
    uint32_t line;
    char *key;           /* in an object, else NULL */
    char *string;
    double number;       /* also of a bool */
    struct json *first, *next;
};

/* NULL on error, with "PATH:LINE: what is wrong" in error.  Comments as in C are skipped, as rt-app's reader does. */
struct json *json_read(const char *path, char *error, size_t error_size);
void json_free(struct json *j);
const struct json *json_get(const struct json *object, const char *key);

#endif
