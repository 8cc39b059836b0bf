/* formats: files of records and events, read and written. No length found in a file is used before
 * it was checked against the file's size. */
#ifndef PUMICE_FORMATS_H
#define PUMICE_FORMATS_H

#include <pumice/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- TFRecord -------------------------------------------------------------------------- */

uint32_t pm_crc32c(const void *data, size_t size);
/* Of bytes that follow others, whose crc is given. */
uint32_t pm_crc32c_more(uint32_t crc, const void *data, size_t size);
/* As it is stored beside data. */
uint32_t pm_crc32c_mask(uint32_t crc);
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
 * its first record; FOLDER is made when it is not there, in a folder that is. */
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

#ifdef __cplusplus
}
#endif

#endif
