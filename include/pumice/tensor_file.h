/* tensor_file: lists, finds and reads named tensors in a file of any format. A format is a row
 * (src/formats/tensor_format.h) and one line in src/formats/tensor_formats.def. Every length in a
 * file is checked against the file's size before it is used. */
#ifndef PUMICE_TENSOR_FILE_H
#define PUMICE_TENSOR_FILE_H

#include <pumice/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Element types, with their names in safetensors. OTHER: an unsupported type (strings, complex
 * numbers). Such a tensor is listed and its bytes can be read, but not as numbers. */
enum pm_dtype {
    PM_DTYPE_F64, PM_DTYPE_F32, PM_DTYPE_F16, PM_DTYPE_BF16, PM_DTYPE_I64, PM_DTYPE_I32,
    PM_DTYPE_I16, PM_DTYPE_I8, PM_DTYPE_U64, PM_DTYPE_U32, PM_DTYPE_U16, PM_DTYPE_U8,
    PM_DTYPE_BOOL, PM_DTYPE_OTHER,
};
const char *pm_dtype_name(enum pm_dtype t); /* "F32"; "other" */
size_t pm_dtype_size(enum pm_dtype t);      /* bytes; 0 for OTHER */

enum { PM_FILE_MAX_RANK = 8 };
struct pm_file_tensor {
    const char *name;      /* borrowed from the file object (reading) or the caller (writing) */
    enum pm_dtype type;
    const char *other;  /* reading, type OTHER: the format's name of the type ("string"), or NULL */
    int rank;              /* 0 = scalar, count 1 */
    int64_t dim[PM_FILE_MAX_RANK];
    uint64_t count;        /* reading: product of dim. Ignored when writing */
    uint64_t bytes;    /* reading: size of all elements, in row-major order. Ignored when writing */
    /* Writing: the elements, borrowed. If data is NULL, fill writes all of them (the size follows
     * from type and shape) to dst when they are needed, so that a file can be larger than memory.
     * fill is called once per tensor, one at a time. */
    const void *data;
    int (*fill)(const struct pm_file_tensor *t, void *dst);
    const void *from;      /* context for fill, borrowed */
    /* Reading: position, private to the format's reader. */
    uint64_t offset;
    int source;
};
/* "F32"; for OTHER the format's own name of the type, if known. */
const char *pm_file_tensor_type(const struct pm_file_tensor *t);
/* "3x3x1x8", "scalar"; buf of 96 bytes. */
char *pm_file_tensor_shape(const struct pm_file_tensor *t, char buf[96]);

struct pm_tensor_file;
/* Opens a file of any supported format, which is recognised by its contents, not by its name:
 * safetensors, PyTorch (torch.save), a TensorFlow V2 checkpoint by its prefix, one of its files,
 * its folder or a SavedModel's folder, ... pm_tensor_formats lists all. PM_EDATA, with file and
 * offset, if the format is unknown or the file is damaged. Files stay open, so they may be renamed
 * or removed meanwhile. */
int pm_tensor_file_open(const char *path, struct pm_tensor_file **out);
/* Whether a format accepts the path. Opening it may still fail because the file is damaged. */
bool pm_tensor_file_is(const char *path);
void pm_tensor_file_close(struct pm_tensor_file **f);
const char *pm_tensor_file_path(const struct pm_tensor_file *f);
const char *pm_tensor_file_format(const struct pm_tensor_file *f);    /* "safetensors" */
uint64_t pm_tensor_file_size(const struct pm_tensor_file *f);         /* bytes of all its files */
/* Whether the file at path is one of those it reads from. */
bool pm_tensor_file_reads(const struct pm_tensor_file *f, const char *path);
/* Tensors sorted by name. */
size_t pm_tensor_file_count(const struct pm_tensor_file *f);
const struct pm_file_tensor *pm_tensor_file_get(const struct pm_tensor_file *f, size_t i);
const struct pm_file_tensor *pm_tensor_file_find(const struct pm_tensor_file *f, const char *name);
/* Value of a key of the file's metadata (safetensors' __metadata__), or NULL. */
const char *pm_tensor_file_meta(const struct pm_tensor_file *f, const char *key);
/* Pair i of the metadata, in the order of the file; false after the last. */
bool pm_tensor_file_meta_at(const struct pm_tensor_file *f, size_t i, const char **key,
                            const char **value);
/* Reads bytes begin..begin+size-1 of a tensor (little-endian, row-major). */
int pm_tensor_file_bytes(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                         uint64_t begin, size_t size, void *dst);
/* Read elements first..first+count-1 as numbers. Integers above 2^24 (2^53) are rounded. */
int pm_tensor_file_floats(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                          uint64_t first, size_t count, float *dst);
int pm_tensor_file_doubles(const struct pm_tensor_file *f, const struct pm_file_tensor *t,
                           uint64_t first, size_t count, double *dst);

/* ---- by format ------------------------------------------------------------------------- */

/* Opens a safetensors file. The offsets of every tensor must lie in the file and match shape and
 * type, and all tensors must cover the data without overlap or holes. */
int pm_safetensors_open(const char *path, struct pm_tensor_file **out);
/* The same from memory, which is borrowed until close. name: for messages. */
int pm_safetensors_open_memory(const char *name, const void *data, size_t size,
                               struct pm_tensor_file **out);
/* Writes a file under a temporary name in the same folder, syncs it, renames it, and syncs the
 * folder. Tensors are sorted by element size (largest first, which aligns them), then by name:
 * equal contents give equal bytes. meta: key, value, key, value, ..., NULL; may be NULL. sha256
 * (may be NULL) receives the digest of the file. On failure an existing file stays unchanged. */
int pm_safetensors_write(const char *path, const struct pm_file_tensor *tensors, size_t count,
                         const char *const *meta, char sha256[65]);

/* Writes a TensorFlow V2 checkpoint, PREFIX.data-00000-of-00001 and PREFIX.index, with the same
 * bytes as TensorFlow writes for the same tensors sorted by name. state: also writes the text file
 * `checkpoint` in the folder, which names this checkpoint as the newest and only one. All files are
 * complete under temporary names before the first is renamed, and an existing index is removed
 * before the data are replaced: if the process dies, there is the old checkpoint, the new one, or
 * none. PM_EDATA if a name is empty or occurs twice. */
int pm_tf_bundle_write(const char *prefix, const struct pm_file_tensor *tensors, size_t count,
                       bool state);

#ifdef __cplusplus
}
#endif

#endif
