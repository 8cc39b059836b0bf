/* formats: other people's file formats, read and written. No length found in a file is used before
 * it was checked against the file's size. */
#ifndef PUMICE_FORMATS_H
#define PUMICE_FORMATS_H

#include <pumice/base.h>

/* ---- safetensors ----------------------------------------------------------------------- */

/* Element types by their names in the file. OTHER: a name we do not know; such a tensor is listed
 * and its bytes can be read, but it has no numbers. */
enum pm_st_type {
    PM_ST_F64, PM_ST_F32, PM_ST_F16, PM_ST_BF16, PM_ST_I64, PM_ST_I32, PM_ST_I16, PM_ST_I8,
    PM_ST_U64, PM_ST_U32, PM_ST_U16, PM_ST_U8, PM_ST_BOOL, PM_ST_OTHER,
};
const char *pm_st_type_name(enum pm_st_type t); /* "F32"; "other" */
size_t pm_st_type_size(enum pm_st_type t);      /* bytes; 0 for OTHER */

enum { PM_ST_MAX_RANK = 8 };
struct pm_safetensor {
    const char *name;      /* borrowed from the file object (reading) or the caller (writing) */
    enum pm_st_type type;
    int rank;              /* 0 = scalar, count 1 */
    int64_t dim[PM_ST_MAX_RANK];
    uint64_t count;        /* reading: product of dim. Ignored when writing */
    uint64_t offset, bytes;/* reading: place in the file. Ignored when writing */
    const void *data;      /* writing: the elements, borrowed. NULL when reading */
};
/* "3x3x1x8", "scalar"; buf of 96 bytes. */
char *pm_safetensor_shape(const struct pm_safetensor *t, char buf[96]);

struct pm_safetensors;
/* Reads and checks the header: every tensor's offsets lie in the file, fit shape and type, and
 * together cover the data without overlap or hole. PM_EDATA otherwise, naming file, tensor and
 * offset. The file stays open, so it may be renamed or unlinked meanwhile. */
int pm_safetensors_open(const char *path, struct pm_safetensors **out);
/* The same from memory, which is borrowed until close. name: for messages. */
int pm_safetensors_open_memory(const char *name, const void *data, size_t size,
                               struct pm_safetensors **out);
void pm_safetensors_close(struct pm_safetensors **s);
const char *pm_safetensors_path(const struct pm_safetensors *s);
uint64_t pm_safetensors_size(const struct pm_safetensors *s); /* bytes of the file */
/* Tensors sorted by name. */
size_t pm_safetensors_count(const struct pm_safetensors *s);
const struct pm_safetensor *pm_safetensors_get(const struct pm_safetensors *s, size_t i);
const struct pm_safetensor *pm_safetensors_find(const struct pm_safetensors *s, const char *name);
/* Value of a key of __metadata__, or NULL. */
const char *pm_safetensors_meta(const struct pm_safetensors *s, const char *key);
/* Pair i of __metadata__ in the file's order; false beyond the last. */
bool pm_safetensors_meta_at(const struct pm_safetensors *s, size_t i, const char **key,
                            const char **value);
/* Stored bytes begin..begin+size-1 of a tensor (little-endian). */
int pm_safetensors_bytes(const struct pm_safetensors *s, const struct pm_safetensor *t,
                         uint64_t begin, size_t size, void *dst);
/* Elements first..first+count-1 as numbers; integers above 2^24 (2^53) round. */
int pm_safetensors_floats(const struct pm_safetensors *s, const struct pm_safetensor *t,
                          uint64_t first, size_t count, float *dst);
int pm_safetensors_doubles(const struct pm_safetensors *s, const struct pm_safetensor *t,
                           uint64_t first, size_t count, double *dst);

/* Writes a file under a temporary name in the same folder, syncs it, renames it, syncs the folder.
 * Tensors are ordered by element size (large first, which aligns them), then name: equal contents
 * give equal bytes. meta: key, value, key, value, ..., NULL; may be NULL. sha256 (may be NULL) gets
 * the digest of the file. On failure nothing is left behind and a former file stays. */
int pm_safetensors_write(const char *path, const struct pm_safetensor *tensors, size_t count,
                         const char *const *meta, char sha256[65]);

/* ---- TFRecord -------------------------------------------------------------------------- */

uint32_t pm_crc32c(const void *data, size_t size);
uint32_t pm_crc32c_masked(const void *data, size_t size);

struct pm_tfrecord_writer;
int pm_tfrecord_create(const char *path, struct pm_tfrecord_writer **out);
int pm_tfrecord_write(struct pm_tfrecord_writer *w, const void *data, size_t size);
/* Syncs and renames to its name; without this call destroy leaves nothing behind. */
int pm_tfrecord_finish(struct pm_tfrecord_writer *w);
void pm_tfrecord_destroy(struct pm_tfrecord_writer **w);

/* ---- TensorBoard's event files ----------------------------------------------------------- */

/* A file of events in a folder that TensorBoard reads (a run). Each event is one TFRecord and
 * reaches the file in one write: whenever the process dies, TensorBoard reads all events before. A
 * write that fails is taken back, so the file stays good and later events may be tried.
 *
 * Values of one step are collected, then written together by pm_events_write. Tags are cleaned as
 * TensorFlow does: what is neither letter, digit nor _ . - / becomes _, leading slashes go, and a
 * tag that the step already has gets _1, _2, ... */
struct pm_events;
/* Makes FOLDER/events.out.tfevents.SECONDS.HOST (with .1, .2, ... behind it where that exists) with
 * its first record; FOLDER is made when it is not there. */
int pm_events_create(const char *folder, struct pm_events **out);
void pm_events_close(struct pm_events **e);
const char *pm_events_path(const struct pm_events *e);

/* Into the collected values. Nothing passed in is kept. */
void pm_events_scalar(struct pm_events *e, const char *tag, double value);
/* PNG bytes of a picture of so many channels (1 grey, 3 RGB, 4 with alpha). */
void pm_events_image(struct pm_events *e, const char *tag, int height, int width, int channels,
                     const void *png, size_t size);
struct pm_histogram;
void pm_events_histogram(struct pm_events *e, const char *tag, const struct pm_histogram *h);
/* Writes what was collected as step's event; nothing collected, nothing written. Also after a
 * failure the collection is empty again. */
int pm_events_write(struct pm_events *e, uint64_t step);

/* What became of the process. START hides, in TensorBoard, every value of this folder's earlier
 * files at its step or beyond: what a run that is resumed will write again. */
enum pm_events_status { PM_EVENTS_START = 1, PM_EVENTS_STOP, PM_EVENTS_CHECKPOINT };
/* checkpoint: its path, NULL with the others. */
int pm_events_session(struct pm_events *e, enum pm_events_status what, uint64_t step,
                      const char *checkpoint);

/* TensorFlow's buckets: limits 1e-12 * 1.1^k below 1e20, then the largest double; the same below
 * zero; zero between them. A value counts in the first bucket whose limit is greater. */
enum { PM_HISTOGRAM_BUCKETS = 1551 };
struct pm_histogram {
    double min, max, num, sum, sum_squares;
    uint64_t bucket[PM_HISTOGRAM_BUCKETS];
};
void pm_histogram_start(struct pm_histogram *h);
/* PM_EDATA when a value is not finite; those before it are counted then. */
int pm_histogram_add(struct pm_histogram *h, const float *v, size_t count);
double pm_histogram_limit(int bucket);

/* Values of any range to 8 bits, as TensorFlow's image summaries do: from zero to the largest value
 * onto 0..255; with negative values 0 becomes 128 and the largest magnitude 1 or 255. A pixel with
 * a value that is not finite becomes red (white in one channel), and does not count. */
void pm_picture_bytes(const float *v, int height, int width, int channels, uint8_t *out);

#endif
