/* tensor_format: for the readers of formats: a row per format, and what fills a file object. */
#ifndef PUMICE_FORMATS_TENSOR_FORMAT_H
#define PUMICE_FORMATS_TENSOR_FORMAT_H

#include <pumice/tensor_file.h>

/* The element of a type (not OTHER) at p, at any alignment. */
double pm_dtype_number(enum pm_dtype type, const uint8_t *p);

/* What a path is, for is(). */
struct pm_tensor_probe {
    const char *path;
    bool file, folder;  /* neither: nothing of that name (a TensorFlow prefix) */
    uint8_t head[64];   /* the file's first bytes */
    size_t head_size;
    uint64_t size;      /* of the file */
};
struct pm_tensor_format {
    const char *name, *help; /* "safetensors"; what can be opened, in a line */
    /* Whether it is of this format, or clearly meant to be. Rows are asked in their order. */
    bool (*is)(const struct pm_tensor_probe *p);
    int (*open)(const char *path, struct pm_tensor_file **out);
};
const struct pm_tensor_format *const *pm_tensor_formats(size_t *count);

/* A file on disk, or memory. */
struct pm_tensor_source {
    const char *path;    /* in the file object's arena */
    int fd;              /* -1: memory, or a file that the reader opens itself */
    const uint8_t *data; /* memory, borrowed; NULL: file */
    uint64_t size;
};
struct pm_tensor_file {
    struct pm_arena *arena; /* owned: names, sources and whatever the reader keeps */
    const struct pm_tensor_format *format;
    const char *path;
    struct pm_tensor_source *sources;
    int source_count, source_capacity;
    struct pm_file_tensor *list;
    size_t count, capacity;
    const char **meta; /* key, value, ... */
    size_t meta_count;
    /* Reads a tensor's bytes; NULL: they lie in sources[t->source] from t->offset on. The range was
     * checked. */
    int (*read)(const struct pm_tensor_file *f, const struct pm_file_tensor *t, uint64_t begin,
                size_t size, void *dst);
    void (*close)(struct pm_tensor_file *f); /* frees own; may be NULL */
    void *own;
};
struct pm_tensor_file *pm_tensor_file_make(const char *path, const struct pm_tensor_format *format);
/* The source's index in *index (may be NULL). Files must be regular. */
int pm_tensor_file_source(struct pm_tensor_file *f, const char *path, int *index);
int pm_tensor_file_memory(struct pm_tensor_file *f, const char *name, const void *data, size_t size,
                          int *index);
/* A file that the reader opens itself when it reads from it. */
void pm_tensor_file_name(struct pm_tensor_file *f, const char *path);
/* Bytes offset..offset+size-1 of a source; the range was checked against its size. */
int pm_tensor_file_read(const struct pm_tensor_file *f, int source, uint64_t offset, size_t size,
                        void *dst);
/* A new tensor at the list's end, zero but for its name (copied); good until the next one. */
struct pm_file_tensor *pm_tensor_file_add(struct pm_tensor_file *f, const char *name);
void pm_tensor_file_add_meta(struct pm_tensor_file *f, const char *key, const char *value);
/* t->count and t->bytes from type and shape; PM_EDATA when they overflow. */
int pm_tensor_file_measure(const struct pm_tensor_file *f, struct pm_file_tensor *t);
/* At the end: sorts by name and refuses a name that occurs twice. */
int pm_tensor_file_finish(struct pm_tensor_file *f);
/* For the writers: bytes of a tensor's elements by its type and shape. */
uint64_t pm_file_tensor_bytes(const struct pm_file_tensor *t);
/* Memory for one tensor's elements at a time; zero to begin with. */
struct pm_fill_buffer {
    void *data; /* owned: freed with pm_free by the one who has the buffer */
    size_t capacity;
};
/* *data: the elements of a tensor to be written, its own or filled into b, good until the next call. */
int pm_file_tensor_elements(const struct pm_file_tensor *t, struct pm_fill_buffer *b,
                            const void **data);
/* "FILE: tensor 'NAME': WHAT", PM_EDATA. */
int pm_tensor_file_bad(const struct pm_tensor_file *f, const char *name, const char *what);

#endif
