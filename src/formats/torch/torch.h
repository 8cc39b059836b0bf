/* torch: what the parts of the reader of PyTorch's files share. A file is a zip archive
 * (zip.c) or the older sequence of pickles; its pickle is read by a machine that builds
 * values (values.c) and calls nothing (pickle.c), what PyTorch's own constructors would have made is
 * known by their names (rebuild.c), and the values' tensors get names as in a state dict
 * (state_dict.c). reader.c opens files and reads tensors, strides.c those whose elements
 * lie apart. */
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
/* Where an entry's bytes begin; it must be stored as it is and lie in the file. */
int pm_zip_place(const struct pm_zip *z, const struct pm_zip_entry *e, uint64_t *at);
/* Checks the entry's sum, unless its writer left it out (zero). */
int pm_zip_check(const struct pm_zip *z, const struct pm_zip_entry *e, uint64_t at);

/* ---- values ---------------------------------------------------------------------------- */

/* An element type: size is in bytes, 0 where elements are packed or unknown. */
struct pm_torch_type {
    const char *name, *storage; /* "float32", "FloatStorage"; storage NULL: has none of its own */
    enum pm_dtype type;
    uint8_t size;
};

/* The bytes behind tensors. One that a pickle names is looked for when the pickle has been read. */
struct pm_torch_storage {
    const char *key;
    const struct pm_torch_type *type;
    uint64_t count;              /* elements of the whole */
    uint64_t first, view;        /* the elements that this one is of them */
    uint64_t at;                 /* offset in the file, of the whole */
    struct pm_torch_storage *next; /* all of a pickle's, newest first */
};

/* A tensor. Strides and first are in elements, first counts from the storage's first. */
struct pm_torch_view {
    const struct pm_torch_type *type;
    struct pm_torch_storage *storage; /* NULL: it has no bytes that can be read */
    const char *wrong;                /* why it cannot be one, or NULL; said with its name */
    int rank;
    bool contiguous;
    uint64_t first;
    int64_t dim[PM_FILE_MAX_RANK], stride[PM_FILE_MAX_RANK];
};

/* Elements of a strided tensor, kept for the next call; zero but for the lock at first. */
struct pm_torch_kept {
    pthread_mutex_t lock;
    const struct pm_torch_view *view; /* NULL: none */
    uint8_t *bytes;                   /* owned */
    uint64_t at;                      /* the first one's place in the tensor, in bytes */
    size_t size, capacity;
};
/* Bytes of a tensor that is not contiguous. The range was checked. */
int pm_torch_read_strided(const struct pm_tensor_file *f, struct pm_torch_kept *kept,
                          const struct pm_torch_view *v, uint64_t begin, size_t size, void *dst);

enum pm_torch_kind {
    PM_TORCH_NONE, PM_TORCH_BOOL, PM_TORCH_INT, PM_TORCH_FLOAT,
    PM_TORCH_STRING, /* text NULL: longer than any that is kept */
    PM_TORCH_BYTES,  /* passed over, as are integers of more than 64 bits */
    PM_TORCH_TUPLE, PM_TORCH_LIST, PM_TORCH_SET, /* cells without key */
    PM_TORCH_DICT,   /* cells with key */
    PM_TORCH_GLOBAL, /* a name: text */
    PM_TORCH_OBJECT, /* of class `of`, with `state` where BUILD gave one; cells of both kinds */
    PM_TORCH_STORAGE, PM_TORCH_TENSOR,
};
struct pm_torch_value {
    enum pm_torch_kind kind;
    bool walked; /* it is being given names: it holds itself */
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
    uint64_t begin, at, end; /* bytes of the file; at: the next one to be read */
    uint64_t opcode;         /* where the one being done stands */
    struct pm_torch_storage *storages;
    const char *unknown;     /* a global that took a tensor and made we know not what, or NULL */
    size_t value_count, cell_count;
    /* the machine's own */
    uint8_t *window;
    uint64_t window_at;
    size_t window_size;
    struct pm_torch_value **stack, **memo;
    size_t depth, stack_capacity, memo_size, memo_capacity;
    uint32_t *marks;
    size_t mark_count, mark_capacity;
};
/* Reads one pickle from p->at on, to its STOP, and leaves p->at behind it. What was allocated for
 * the machine stays for the next one, until pm_torch_pickle_end. */
int pm_torch_pickle_run(struct pm_torch_pickle *p, struct pm_torch_value **out);
void pm_torch_pickle_end(struct pm_torch_pickle *p);
/* values.c. "FILE: its pickle, at offset N: ...", PM_EDATA. */
int pm_torch_pickle_bad(const struct pm_torch_pickle *p, const char *fmt, ...) PM_PRINTF(2, 3);
/* The machine's next step refuses when there are too many. */
struct pm_torch_value *pm_torch_value(struct pm_torch_pickle *p, enum pm_torch_kind kind);
void pm_torch_append(struct pm_torch_pickle *p, struct pm_torch_value *to,
                     struct pm_torch_value *key, struct pm_torch_value *value);
/* Item i of a tuple or list, or NULL. */
struct pm_torch_value *pm_torch_item(const struct pm_torch_value *v, uint32_t i);
/* A dict's value of a key, or NULL. */
struct pm_torch_value *pm_torch_get(const struct pm_torch_value *dict, const char *key);

/* rebuild.c. Whether a global may be named at all: PM_EDATA for those that are code to be run. */
int pm_torch_global(const struct pm_torch_pickle *p, const struct pm_torch_value *name);
/* What f(args) would make. */
int pm_torch_call(struct pm_torch_pickle *p, const struct pm_torch_value *f,
                  struct pm_torch_value *args, struct pm_torch_value **out);
/* What a persistent id stands for: a storage, or a class of which the source was kept. */
int pm_torch_persistent(struct pm_torch_pickle *p, const struct pm_torch_value *id,
                        struct pm_torch_value **out);

/* ---- names ----------------------------------------------------------------------------- */

/* A tensor with the name it has in the state dict. */
struct pm_torch_named {
    const char *name;
    const struct pm_torch_view *view;
};
struct pm_torch_names {
    struct pm_torch_named *list; /* owned: pm_free */
    size_t count, capacity;
};
/* The tensors in root, and its simple members as notes of f. Names lie in the arena. pickle_bytes
 * bounds the work: values that are shared many times over are not followed for ever. */
int pm_torch_name(struct pm_tensor_file *f, struct pm_arena *a, struct pm_torch_value *root,
                  uint64_t pickle_bytes, struct pm_torch_names *out);

#endif
