/* Sections of a PE image (Microsoft PE format: offsets of the fields are from there). */
#include "arch/x86_64/uefi/loader.h"

#define DOS_PE_OFFSET 0x3c
#define PE_MAGIC 0x00004550u /* "PE\0\0" */
#define COFF_SECTION_COUNT 6 /* from the PE magic */
#define COFF_OPTIONAL_SIZE 20
#define COFF_SIZE 24 /* with the magic */
#define SECTION_SIZE 40
#define SECTION_VIRTUAL_SIZE 8
#define SECTION_VIRTUAL_ADDRESS 12
#define SECTION_NAME_MAX 8

static uint32_t read32(const uint8_t *p)
{
    uint32_t value;

    memcpy(&value, p, sizeof(value));
    return value;
}

static uint16_t read16(const uint8_t *p)
{
    uint16_t value;

    memcpy(&value, p, sizeof(value));
    return value;
}

static bool name_is(const uint8_t *field, const char *name)
{
    for (size_t i = 0; i < SECTION_NAME_MAX; i++) {
        if (field[i] != (uint8_t)name[i])
            return false;
        if (name[i] == '\0')
            return true;
    }
    return true;
}

struct blob pe_section(const uint8_t *image, uint64_t image_size, const char *name)
{
    const struct blob none = {NULL, 0};
    uint64_t at;
    uint32_t count;

    if (image_size < DOS_PE_OFFSET + 4)
        return none;
    at = read32(image + DOS_PE_OFFSET);
    if (at > image_size || image_size - at < COFF_SIZE || read32(image + at) != PE_MAGIC)
        return none;
    count = read16(image + at + COFF_SECTION_COUNT);
    at += COFF_SIZE + read16(image + at + COFF_OPTIONAL_SIZE);
    for (uint32_t i = 0; i < count; i++, at += SECTION_SIZE) {
        uint64_t address, size;

        if (at > image_size || image_size - at < SECTION_SIZE)
            return none;
        if (!name_is(image + at, name))
            continue;
        size = read32(image + at + SECTION_VIRTUAL_SIZE);
        address = read32(image + at + SECTION_VIRTUAL_ADDRESS);
        if (size == 0 || address > image_size || image_size - address < size)
            return none;
        return (struct blob){image + address, size};
    }
    return none;
}
