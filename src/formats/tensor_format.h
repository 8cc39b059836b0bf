/* tensor_format, for readers of formats: a row per format, functions that fill a file object. */
#ifndef PUMICE_FORMATS_TENSOR_FORMAT_H
#define PUMICE_FORMATS_TENSOR_FORMAT_H

#include <pumice/tensor_file.h>

/* The element of a type (not OTHER) at p, at any alignment. */
double pm_dtype_number(enum pm_dtype type, const uint8_t *p);

/* Facts about a path, the argument of is(). */
struct pm_tensor_probe {
    const char *path;
    bool file, folder;  /* both false: no file has that name (a TensorFlow prefix) */
    uint8_t head[64];   /* the file's first bytes */
    size_t head_size;
    uint64_t size;      /* of the file */
};
struct pm_tensor_format {
    const char *name, *help; /* "safetensors"; one line about what can be opened */
    /* Whether the path has this format, or is clearly meant to. The first row that returns true
     * opens it. */
    bool (*is)(const struct pm_tensor_probe *p);
    int (*open)(const char *path, struct pm_tensor_file **out);
};
const struct pm_tensor_format *const *pm_tensor_formats(size_t *count);

/* A file on disk, or memory. */
struct pm_tensor_source {
    const char *path;    /* in the file object's arena */
    int fd;              /* -1: memory, or a file that the reader opens on demand */
    const uint8_t *data; /* memory, borrowed; NULL: file */
    uint64_t size;
};
struct pm_tensor_file {
    struct pm_arena *arena; /* owned; holds names, sources and the reader's own data */
    const struct pm_tensor_format *format;
    const char *path;
    struct pm_tensor_source *sources;
    int source_count, source_capacity;
    struct pm_file_tensor *list;
    size_t count, capacity;
    const char **meta; /* key, value, ... */
    size_t meta_count;
    /* Reads a tensor's bytes; the caller has checked the range. NULL: the bytes are in
     * sources[t->source], starting at t->offset. */
    int (*read)(const struct pm_tensor_file *f, const struct pm_file_tensor *t, uint64_t begin,
                size_t size, void *dst);
    void (*close)(struct pm_tensor_file *f); /* frees own; may be NULL */
    void *own;
};
struct pm_tensor_file *pm_tensor_file_make(const char *path, const struct pm_tensor_format *format);
/* Adds a source; returns its index in *index (may be NULL). Files must be regular. */
int pm_tensor_file_source(struct pm_tensor_file *f, const char *path, int *index);
int pm_tensor_file_memory(struct pm_tensor_file *f, const char *name, const void *data, size_t size,
                          int *index);
/* Adds a file that the reader opens itself on demand. */
void pm_tensor_file_name(struct pm_tensor_file *f, const char *path);
/* Reads bytes offset..offset+size-1 of a source. The caller has checked the range against its
 * size. */
int pm_tensor_file_read(const struct pm_tensor_file *f, int source, uint64_t offset, size_t size,
                        void *dst);
/* Appends a tensor. Its name is copied, its other fields are zero. Valid until the next call. */
struct pm_file_tensor *pm_tensor_file_add(struct pm_tensor_file *f, const char *name);
void pm_tensor_file_add_meta(struct pm_tensor_file *f, const char *key, const char *value);
/* Sets t->count and t->bytes from type and shape. PM_EDATA if they overflow. */
int pm_tensor_file_measure(const struct pm_tensor_file *f, struct pm_file_tensor *t);
/* Call at the end. Sorts the tensors by name. PM_EDATA if a name occurs twice. */
int pm_tensor_file_finish(struct pm_tensor_file *f);
/* For writers: size of a tensor's elements in bytes, from its type and shape. */
uint64_t pm_file_tensor_bytes(const struct pm_file_tensor *t);
/* Memory for the elements of one tensor at a time. Initialise with zeros. */
struct pm_fill_buffer {
    void *data; /* the owner of the buffer frees it with pm_free */
    size_t capacity;
};
/* Returns the elements of a tensor to write in *data: its own memory, or b. Valid until the next
 * call. */
int pm_file_tensor_elements(const struct pm_file_tensor *t, struct pm_fill_buffer *b,
                            const void **data);
/* "FILE: tensor 'NAME': WHAT", PM_EDATA. */
int pm_tensor_file_bad(const struct pm_tensor_file *f, const char *name, const char *what);

#endif
