/* wire: reads protobuf messages field by field from a file or memory, without copying the whole
 * message. Skipped fields are not read. Every length is checked: a field that does not end inside
 * its message gives PM_EDATA with file name and offset. */
#ifndef PUMICE_FORMATS_WIRE_H
#define PUMICE_FORMATS_WIRE_H

#include <pumice/base.h>

enum { PM_WIRE_WINDOW = 16384 };
struct pm_wire_file {
    const char *path;    /* borrowed */
    int fd;              /* -1: memory */
    const uint8_t *data; /* memory, borrowed */
    uint64_t size;
    uint64_t window_at; /* the piece of the file at hand */
    size_t window_size;
    uint8_t window[PM_WIRE_WINDOW];
};
/* Opens a file, which must be a regular file. */
int pm_wire_open(struct pm_wire_file *f, const char *path);
void pm_wire_close(struct pm_wire_file *f);
/* Reads bytes offset..offset+size-1, which must lie in the file, without the window. */
int pm_wire_read(const struct pm_wire_file *f, uint64_t offset, size_t size, void *dst);

/* The unread rest of a message. */
struct pm_wire {
    struct pm_wire_file *file;
    uint64_t at, end;
};
enum pm_wire_type {
    PM_WIRE_VARINT = 0,
    PM_WIRE_FIXED64 = 1,
    PM_WIRE_BYTES = 2,
    PM_WIRE_FIXED32 = 5
};
struct pm_wire_field {
    uint32_t number;
    enum pm_wire_type type;
    uint64_t key;         /* offset of the field in the file, for messages */
    uint64_t value;       /* of a VARINT, FIXED64, FIXED32 */
    uint64_t begin, size; /* of the field's value in the file */
};
struct pm_wire pm_wire_all(struct pm_wire_file *f);
/* The content of a BYTES field as a message or packed list. Any other field is a packed list of
 * one. */
struct pm_wire pm_wire_inside(const struct pm_wire *w, const struct pm_wire_field *f);
/* Reads the next field into *f. Returns 1, 0 at the end, or an error. */
int pm_wire_next(struct pm_wire *w, struct pm_wire_field *f);
/* Reads the next value of a packed list. Returns 1, 0 at the end, or an error. */
int pm_wire_packed(struct pm_wire *w, enum pm_wire_type type, uint64_t *value);
/* PM_EDATA unless the field has this wire type. */
int pm_wire_is(const struct pm_wire *w, const struct pm_wire_field *f, enum pm_wire_type type);
/* The content of a BYTES field as a 0-terminated text. PM_EDATA if it contains a zero byte. */
int pm_wire_text(const struct pm_wire *w, const struct pm_wire_field *f, struct pm_arena *a,
                 const char **out);
/* Appends a varint, for writers. */
void pm_wire_add_varint(struct pm_str *s, uint64_t v);
/* "FILE: WHAT at offset N", PM_EDATA. */
int pm_wire_bad(const struct pm_wire *w, uint64_t offset, const char *what);

#endif
