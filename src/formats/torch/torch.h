/* torch: declarations that the parts of the PyTorch reader share. A file is a zip archive (zip.c)
 * or an older sequence of pickles. pickle.c interprets a pickle without running code and builds
 * values (values.c). rebuild.c knows by name what PyTorch's own constructors make. state_dict.c
 * names the tensors as a state dict does. reader.c opens files and reads tensors; strides.c reads
 * tensors that are not contiguous. */
#ifndef PUMICE_FORMATS_TORCH_H
#define PUMICE_FORMATS_TORCH_H

#include "formats/little.h"
#include "formats/tensor_format.h"

#include <pthread.h>

/* From memory, which is borrowed until close. name: for messages. */
int pm_torch_open_memory(const char *name, const void *data, size_t size,
                         struct pm_tensor_file **out);

/* ---- zip archives ---------------------------------------------------------------------- */

struct pm_zip_entry {
    const char *name;
    uint64_t size, packed, header; /* bytes, bytes in the archive, offset of the local header */
    uint32_t crc;
    uint16_t method, flags;
};
struct pm_zip {
    const struct pm_tensor_file *f; /* its source 0 is the archive */
    struct pm_zip_entry *entries;   /* in the arena, by name */
    size_t count;
};
/* Reads the directory. Every entry occurs once. */
int pm_zip_open(const struct pm_tensor_file *f, struct pm_arena *a, struct pm_zip *out);
const struct pm_zip_entry *pm_zip_find(const struct pm_zip *z, const char *name);
/* The position of an entry's first byte. The entry must be uncompressed and lie in the file. */
int pm_zip_place(const struct pm_zip *z, const struct pm_zip_entry *e, uint64_t *at);
/* Checks the entry's CRC, unless its writer left it out (zero). */
int pm_zip_check(const struct pm_zip *z, const struct pm_zip_entry *e, uint64_t at);

/* ---- values ---------------------------------------------------------------------------- */

/* An element type: size is in bytes, 0 where elements are packed or unknown. */
struct pm_torch_type {
    const char *name, *storage; /* "float32", "FloatStorage"; storage NULL: has none of its own */
    enum pm_dtype type;
    uint8_t size;
};

/* The bytes of tensors. The storages that a pickle names are located after reading the pickle. */
struct pm_torch_storage {
    const char *key;
    const struct pm_torch_type *type;
    uint64_t count;              /* elements of the whole storage */
    uint64_t first, view;        /* the range of elements that this view has */
    uint64_t at;                 /* offset of the whole storage in the file */
    struct pm_torch_storage *next; /* all of a pickle's, newest first */
};

/* A tensor. Strides and first are in elements; first is relative to the storage's start. */
struct pm_torch_view {
    const struct pm_torch_type *type;
    struct pm_torch_storage *storage; /* NULL: no readable bytes */
    const char *wrong;                /* why it is invalid, for a message, or NULL */
    int rank;
    bool contiguous;
    uint64_t first;
    int64_t dim[PM_FILE_MAX_RANK], stride[PM_FILE_MAX_RANK];
};

/* A cached block of a strided tensor. Initialise the lock, and all other fields with zeros. */
struct pm_torch_cache {
    pthread_mutex_t lock;
    const struct pm_torch_view *view; /* NULL: none */
    uint8_t *bytes;                   /* owned */
    uint64_t at;                      /* offset of the block in the tensor, in bytes */
    size_t size, capacity;
};
/* Reads bytes of a tensor that is not contiguous. The caller has checked the range. */
int pm_torch_read_strided(const struct pm_tensor_file *f, struct pm_torch_cache *cache,
                          const struct pm_torch_view *v, uint64_t begin, size_t size, void *dst);

enum pm_torch_kind {
    PM_TORCH_NONE, PM_TORCH_BOOL, PM_TORCH_INT, PM_TORCH_FLOAT,
    PM_TORCH_STRING, /* text NULL: too long to keep */
    PM_TORCH_BYTES,  /* content skipped; also integers of more than 64 bits */
    PM_TORCH_TUPLE, PM_TORCH_LIST, PM_TORCH_SET, /* cells without key */
    PM_TORCH_DICT,   /* cells with key */
    PM_TORCH_GLOBAL, /* a name: text */
    PM_TORCH_OBJECT, /* of class `of`; `state` if BUILD gave one; cells of both kinds */
    PM_TORCH_STORAGE, PM_TORCH_TENSOR,
};
struct pm_torch_value {
    enum pm_torch_kind kind;
    bool walked; /* being visited; a second visit means that it contains itself */
    uint32_t length; /* of text; number of cells */
    union {
        bool yes;
        int64_t integer;
        double number;
        const char *text; /* ends with NUL, may hold others */
        struct { struct pm_torch_cell *cells, *last; };
        struct pm_torch_storage *storage;
        struct pm_torch_view *view;
    };
    const struct pm_torch_value *of;
    struct pm_torch_value *state;
};
struct pm_torch_cell {
    struct pm_torch_value *key, *value;
    struct pm_torch_cell *next;
};

/* ---- the pickle machine ---------------------------------------------------------------- */

struct pm_torch_pickle {
    const struct pm_tensor_file *f;
    struct pm_arena *arena;  /* values */
    struct pm_arena *views;  /* storages and views, which outlive them */
    uint64_t begin, at, end; /* offsets in the file; at: the next byte to read */
    uint64_t opcode;         /* offset of the current one */
    struct pm_torch_storage *storages;
    const char *unknown;     /* an unknown function that was called with a tensor, or NULL */
    size_t value_count, cell_count;
    /* private to the machine */
    uint8_t *window;
    uint64_t window_at;
    size_t window_size;
    struct pm_torch_value **stack, **memo;
    size_t depth, stack_capacity, memo_size, memo_capacity;
    uint32_t *marks;
    size_t mark_count, mark_capacity;
};
/* Reads one pickle from p->at to its STOP and moves p->at behind it. The machine's memory is reused
 * by the next pickle and freed by pm_torch_pickle_end. */
int pm_torch_pickle_run(struct pm_torch_pickle *p, struct pm_torch_value **out);
void pm_torch_pickle_end(struct pm_torch_pickle *p);
/* values.c. "FILE: its pickle, at offset N: ...", PM_EDATA. */
int pm_torch_pickle_bad(const struct pm_torch_pickle *p, const char *fmt, ...) PM_PRINTF(2, 3);
/* Makes a value. The machine's next step fails if there are too many. */
struct pm_torch_value *pm_torch_value(struct pm_torch_pickle *p, enum pm_torch_kind kind);
void pm_torch_append(struct pm_torch_pickle *p, struct pm_torch_value *to,
                     struct pm_torch_value *key, struct pm_torch_value *value);
/* Item i of a tuple or list, or NULL. */
struct pm_torch_value *pm_torch_item(const struct pm_torch_value *v, uint32_t i);
/* A dict's value of a key, or NULL. */
struct pm_torch_value *pm_torch_get(const struct pm_torch_value *dict, const char *key);

/* rebuild.c. Checks the name of a global: PM_EDATA for names that would run code. */
int pm_torch_global(const struct pm_torch_pickle *p, const struct pm_torch_value *name);
/* The value that f(args) would return. */
int pm_torch_call(struct pm_torch_pickle *p, const struct pm_torch_value *f,
                  struct pm_torch_value *args, struct pm_torch_value **out);
/* The value of a persistent id: a storage, or a class that was saved with its source. */
int pm_torch_persistent(struct pm_torch_pickle *p, const struct pm_torch_value *id,
                        struct pm_torch_value **out);

/* ---- names ----------------------------------------------------------------------------- */

/* A tensor and its name in the state dict. */
struct pm_torch_named {
    const char *name;
    const struct pm_torch_view *view;
};
struct pm_torch_names {
    struct pm_torch_named *list; /* owned: pm_free */
    size_t count, capacity;
};
/* Lists the tensors in root, and adds its simple members to the notes of f. Names are in the
 * arena. pickle_bytes limits the work, because values that refer to each other often would take
 * for ever. */
int pm_torch_name(struct pm_tensor_file *f, struct pm_arena *a, struct pm_torch_value *root,
                  uint64_t pickle_bytes, struct pm_torch_names *out);

#endif
