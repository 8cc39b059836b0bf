/* tf_checkpoint: what the readers of TensorFlow's two kinds of checkpoint share: where the files of
 * one are, its dtypes and shapes, and variables that are kept in slices. */
#ifndef PUMICE_FORMATS_TF_CHECKPOINT_H
#define PUMICE_FORMATS_TF_CHECKPOINT_H

#include "formats/tensorflow/table.h"
#include "tf_checkpoint.pb-c.h"

#include <pthread.h>

/* ---- where it is (place.c) ------------------------------------------------------------ */

enum pm_tf_kind { PM_TF_NONE, PM_TF_V2, PM_TF_V1 };
struct pm_tf_place {
    enum pm_tf_kind kind;
    const char *prefix; /* V2: PREFIX.index and PREFIX.data-00000-of-00001 */
    const char **files; /* V1 */
    size_t file_count;
};
/* What a path leads to: a prefix, one of the files, a folder with a file `checkpoint`, a SavedModel's
 * folder, a folder with one .index. PM_EDATA: it is TensorFlow's, but leads to no one checkpoint.
 * Texts are in the arena. */
int pm_tf_locate(struct pm_arena *a, const char *path, struct pm_tf_place *out);
/* Its kind; V2 where pm_tf_locate fails, as opening it so then says what is wrong. */
enum pm_tf_kind pm_tf_kind(const char *path);

/* ---- dtypes and shapes (slices.c) ----------------------------------------------------- */

/* OTHER for those without numbers that we know. */
enum pm_dtype pm_tf_dtype(int32_t code);
/* The name of such a one, or NULL. */
const char *pm_tf_dtype_other(int32_t code);
int32_t pm_tf_dtype_code(enum pm_dtype type);
/* Fills rank and dim. NULL: a scalar. */
int pm_tf_shape(const struct pm_tensor_file *f, struct pm_file_tensor *t, const Pm__Tf__Shape *s);

/* ---- slices ------------------------------------------------------------------------------ */

/* A part of a tensor: length[i] from start[i] in each dimension. */
struct pm_tf_slice {
    int64_t start[PM_FILE_MAX_RANK], length[PM_FILE_MAX_RANK];
    bool open[PM_FILE_MAX_RANK]; /* the file names no length: all of the dimension */
    uint64_t count;              /* of elements */
};
/* A tensor's slices: inside it, apart from each other, and together all of it. */
struct pm_tf_slices {
    struct pm_tf_slice *list; /* owned */
    size_t count, capacity;
};
int pm_tf_slices_add(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                     const Pm__Tf__Slice *s, struct pm_tf_slices *out);
/* After the last: whether they are the whole tensor. */
int pm_tf_slices_check(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                       const struct pm_tf_slices *s);
void pm_tf_slices_free(struct pm_tf_slices *s);
/* The key under which a table has it; it replaces what out holds. */
void pm_tf_slice_key(const char *name, int rank, const struct pm_tf_slice *s, struct pm_str *out);
/* Copies a slice's elements to their places in the whole tensor. */
void pm_tf_slice_put(const struct pm_file_tensor *t, const struct pm_tf_slice *s, const void *elements,
                     void *whole);

/* The last tensor that had to be put together, so that reading it in pieces does so once. */
struct pm_tf_whole {
    pthread_mutex_t lock;
    uint8_t *data; /* owned */
    uint64_t id;   /* its offset + 1; 0: none */
};
typedef int pm_tf_make(const struct pm_tensor_file *f, const struct pm_file_tensor *t, void *whole);
/* Bytes begin..begin+size-1 of what `make` makes, which is called by one thread at a time. */
int pm_tf_whole_read(struct pm_tf_whole *w, pm_tf_make *make, const struct pm_tensor_file *f,
                     const struct pm_file_tensor *t, uint64_t begin, size_t size, void *dst);

#endif
