/* tf_checkpoint: declarations that the readers of both TensorFlow checkpoint formats share: finding
 * the files, dtypes and shapes, and variables that are stored in slices. */
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
/* Finds the checkpoint that a path names. The path is a prefix, one of the files, a folder with a
 * file `checkpoint`, the folder of a SavedModel, or a folder with one .index file. PM_EDATA: the
 * path belongs to TensorFlow, but does not identify one checkpoint. The texts are in the arena. */
int pm_tf_locate(struct pm_arena *a, const char *path, struct pm_tf_place *out);
/* The kind of checkpoint at a path. V2 if pm_tf_locate fails: opening it as V2 reports the
 * error. */
enum pm_tf_kind pm_tf_kind(const char *path);

/* ---- dtypes and shapes (slices.c) ----------------------------------------------------- */

/* OTHER for dtypes that are not numeric or not supported. */
enum pm_dtype pm_tf_dtype(int32_t code);
/* The name of an unsupported dtype, or NULL. */
const char *pm_tf_dtype_other(int32_t code);
int32_t pm_tf_dtype_code(enum pm_dtype type);
/* Sets rank and dim. NULL: a scalar. */
int pm_tf_shape(const struct pm_tensor_file *f, struct pm_file_tensor *t, const Pm__Tf__Shape *s);

/* ---- slices ------------------------------------------------------------------------------ */

/* A part of a tensor: length[i] elements from start[i] on in each dimension i. */
struct pm_tf_slice {
    int64_t start[PM_FILE_MAX_RANK], length[PM_FILE_MAX_RANK];
    bool open[PM_FILE_MAX_RANK]; /* the file gives no length: the whole dimension */
    uint64_t count;              /* of elements */
};
/* The slices of a tensor. They lie inside the tensor, do not overlap, and together cover it. */
struct pm_tf_slices {
    struct pm_tf_slice *list; /* owned */
    size_t count, capacity;
};
int pm_tf_slices_add(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                     const Pm__Tf__Slice *s, struct pm_tf_slices *out);
/* Call after the last slice. PM_EDATA unless the slices cover the whole tensor. */
int pm_tf_slices_check(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                       const struct pm_tf_slices *s);
void pm_tf_slices_free(struct pm_tf_slices *s);
/* Writes the table key of a slice to out, replacing its content. */
void pm_tf_slice_key(const char *name, int rank, const struct pm_tf_slice *s, struct pm_str *out);
/* Copies a slice's elements to their places in the whole tensor. */
void pm_tf_slice_put(const struct pm_file_tensor *t, const struct pm_tf_slice *s,
                     const void *elements, void *whole);

/* Cache of the last assembled tensor, so that reading it in pieces assembles it once. */
struct pm_tf_whole {
    pthread_mutex_t lock;
    uint8_t *data; /* owned */
    uint64_t id;   /* its offset + 1; 0: none */
};
typedef int pm_tf_make(const struct pm_tensor_file *f, const struct pm_file_tensor *t, void *whole);
/* Reads bytes begin..begin+size-1 of the tensor that `make` assembles. One thread at a time calls
 * make. */
int pm_tf_whole_read(struct pm_tf_whole *w, pm_tf_make *make, const struct pm_tensor_file *f,
                     const struct pm_file_tensor *t, uint64_t begin, size_t size, void *dst);

#endif
