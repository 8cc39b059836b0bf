/* formats: reads and writes files of records and events. Every length in a file is checked against
 * the file's size before it is used. */
#ifndef PUMICE_FORMATS_H
#define PUMICE_FORMATS_H

#include <pumice/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- TFRecord -------------------------------------------------------------------------- */

uint32_t pm_crc32c(const void *data, size_t size);
/* Continues a CRC with more bytes. */
uint32_t pm_crc32c_more(uint32_t crc, const void *data, size_t size);
/* The masked form, which files store beside the data. */
uint32_t pm_crc32c_mask(uint32_t crc);
uint32_t pm_crc32c_masked(const void *data, size_t size);

struct pm_tfrecord_writer;
int pm_tfrecord_create(const char *path, struct pm_tfrecord_writer **out);
int pm_tfrecord_write(struct pm_tfrecord_writer *w, const void *data, size_t size);
/* Syncs the file and renames it to its final name. Without this call, destroy removes the file. */
int pm_tfrecord_finish(struct pm_tfrecord_writer *w);
void pm_tfrecord_destroy(struct pm_tfrecord_writer **w);

/* ---- TensorBoard's event files ----------------------------------------------------------- */

/* A file of events in a folder that TensorBoard reads (a run). Each event is one TFRecord, written
 * with one call: if the process dies, TensorBoard reads all earlier events. A partial write is
 * removed, so the file stays valid and later events can be written.
 *
 * Values of one step are collected, then pm_events_write writes them together. Tags are cleaned
 * like in TensorFlow: characters other than letters, digits and _ . - / become _, leading slashes
 * are removed, and a tag that the step already has gets _1, _2, ... */
struct pm_events;
/* Creates FOLDER/events.out.tfevents.SECONDS.HOST (followed by .1, .2, ... if it exists) with its
 * first record. Creates FOLDER if needed; its parent must exist. */
int pm_events_create(const char *folder, struct pm_events **out);
void pm_events_close(struct pm_events **e);
const char *pm_events_path(const struct pm_events *e);

/* Adds to the collected values. The arguments are copied. */
void pm_events_scalar(struct pm_events *e, const char *tag, double value);
/* PNG bytes of a picture of so many channels (1 grey, 3 RGB, 4 with alpha). */
void pm_events_image(struct pm_events *e, const char *tag, int height, int width, int channels,
                     const void *png, size_t size);
struct pm_histogram;
void pm_events_histogram(struct pm_events *e, const char *tag, const struct pm_histogram *h);
/* Writes the collected values as an event of `step`, if there are any. Afterwards the collection is
 * empty, also after a failure. */
int pm_events_write(struct pm_events *e, uint64_t step);

/* State of the process. START hides in TensorBoard all values of the folder's earlier files at its
 * step or later, because a resumed run writes them again. */
enum pm_events_status { PM_EVENTS_START = 1, PM_EVENTS_STOP, PM_EVENTS_CHECKPOINT };
/* checkpoint: its path, NULL with the others. */
int pm_events_session(struct pm_events *e, enum pm_events_status what, uint64_t step,
                      const char *checkpoint);

/* TensorBoard's HParams plugin compares runs by the values of keys. The folder above the runs has
 * an experiment with the keys and the metric, and each run has a session with its values. The
 * metric is a scalar of the run's own event files. */
struct pm_hparam {
    const char *name;
    const char *text;         /* the value; NULL: the number */
    double number;
};
struct pm_hparam_key {
    const char *name;
    const char *const *texts; /* [count]: the values; count 0: numbers within [low, high] */
    size_t count;
    double low, high;
};
/* They add to the collected values, which belong to step 0; everything is copied. metric: its tag.
 * began, ended: seconds since 1970. group: sessions of the same group are averaged. */
void pm_events_experiment(struct pm_events *e, const struct pm_hparam_key *keys, size_t count,
                          const char *metric, double began);
void pm_events_run(struct pm_events *e, const struct pm_hparam *list, size_t count,
                   const char *group, double began, double ended, bool failed);

/* TensorFlow's buckets: limits 1e-12 * 1.1^k below 1e20, then the largest double; the same limits
 * negated; and zero. A value belongs to the first bucket whose limit is greater. */
enum { PM_HISTOGRAM_BUCKETS = 1551 };
struct pm_histogram {
    double min, max, num, sum, sum_squares;
    uint64_t bucket[PM_HISTOGRAM_BUCKETS];
};
void pm_histogram_start(struct pm_histogram *h);
/* PM_EDATA if a value is not finite; the values before it are counted. */
int pm_histogram_add(struct pm_histogram *h, const float *v, size_t count);
double pm_histogram_limit(int bucket);

/* Converts values of any range to 8 bits like TensorFlow's image summaries: maps zero..largest
 * value to 0..255; if there are negative values, 0 becomes 128 and the largest magnitude 1 or 255.
 * A pixel with a value that is not finite becomes red (white with one channel) and is ignored for
 * the range. */
void pm_picture_bytes(const float *v, int height, int width, int channels, uint8_t *out);

#ifdef __cplusplus
}
#endif

#endif
