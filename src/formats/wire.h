/* wire: protobuf messages read field by field, from a file or memory, without a copy of the whole:
 * what is skipped is not read. No length is believed: a field that does not end inside the message
 * around it is PM_EDATA, naming file and offset. */
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
/* Opens a file, which must be a regular one. */
int pm_wire_open(struct pm_wire_file *f, const char *path);
void pm_wire_close(struct pm_wire_file *f);
/* Bytes offset..offset+size-1, which must lie in the file: not through the window. */
int pm_wire_read(const struct pm_wire_file *f, uint64_t offset, size_t size, void *dst);

/* The rest of a message. */
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
/* The message or packed list that a BYTES field is; of another, a packed list of its one value. */
struct pm_wire pm_wire_inside(const struct pm_wire *w, const struct pm_wire_field *f);
/* The next field into *f: 1, or 0 at the end, or an error. */
int pm_wire_next(struct pm_wire *w, struct pm_wire_field *f);
/* The next value of a packed list: 1, or 0 at the end, or an error. */
int pm_wire_packed(struct pm_wire *w, enum pm_wire_type type, uint64_t *value);
/* PM_EDATA unless the field is of this type. */
int pm_wire_is(const struct pm_wire *w, const struct pm_wire_field *f, enum pm_wire_type type);
/* A BYTES field as a 0-ended text; with a zero byte inside, PM_EDATA. */
int pm_wire_text(const struct pm_wire *w, const struct pm_wire_field *f, struct pm_arena *a,
                 const char **out);
/* Appends a varint, for writers. */
void pm_wire_add_varint(struct pm_str *s, uint64_t v);
/* "FILE: WHAT at offset N", PM_EDATA. */
int pm_wire_bad(const struct pm_wire *w, uint64_t offset, const char *what);

#endif
