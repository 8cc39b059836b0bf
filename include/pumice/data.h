/* data: records in files to batches in host memory.
 *
 * A dataset is one split of a folder: TFRecord shards, indexed once (offset and length per record),
 * never loaded whole. A loader has worker threads that read records, call the task's `make` for
 * each example, and fill a ring of batches ahead of the step. What a batch holds depends only on
 * seed and step: record permute(seed, epoch)[i], with the draws of (seed, step, example). */
#ifndef PUMICE_DATA_H
#define PUMICE_DATA_H

#include <pumice/kernel.h>
#include <pumice/options.h>
#include <pumice/rng.h>

#include <signal.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* ---- tf.Example ----------------------------------------------------------------------- */

/* A parsed tf.Example: look-ups by key. Borrowed pointers live as long as the example. */
struct pm_example;
int pm_example_parse(const void *data, size_t size, const char *where, struct pm_example **out);
void pm_example_destroy(struct pm_example **e);
/* 1 present, 0 absent, PM_EDATA of another type. */
int pm_example_bytes(const struct pm_example *e, const char *key, const uint8_t **data,
                     size_t *size);
int pm_example_int(const struct pm_example *e, const char *key, int64_t *value);
int pm_example_ints(const struct pm_example *e, const char *key, const int64_t **v, size_t *count);
int pm_example_floats(const struct pm_example *e, const char *key, const float **v, size_t *count);
/* Value i of a list of bytes; 0 when there are fewer. pm_example_bytes gives value 0. */
int pm_example_bytes_at(const struct pm_example *e, const char *key, size_t i, const uint8_t **data,
                        size_t *size);
/* What is there, in the record's order: the name of entry i of pm_example_count, its kind ("bytes",
 * "floats", "integers", "nothing") and number of values. */
size_t pm_example_count(const struct pm_example *e);
const char *pm_example_key(const struct pm_example *e, size_t i, const char **kind, size_t *values);
/* Building one: add features, then serialise (freed with pm_free). Bytes added to the key added
 * last are a further value of its list. */
struct pm_example_builder;
struct pm_example_builder *pm_example_builder_create(void);
void pm_example_builder_destroy(struct pm_example_builder **b);
void pm_example_add_bytes(struct pm_example_builder *b, const char *key, const void *data,
                          size_t size);
void pm_example_add_ints(struct pm_example_builder *b, const char *key, const int64_t *v,
                         size_t count);
void pm_example_add_floats(struct pm_example_builder *b, const char *key, const float *v,
                           size_t count);
/* The first integer added with that key; false when there is none. */
bool pm_example_builder_int(const struct pm_example_builder *b, const char *key, int64_t *value);
void pm_example_serialise(struct pm_example_builder *b, uint8_t **data, size_t *size);

/* ---- datasets -------------------------------------------------------------------------- */

struct pm_dataset;
struct pm_dataset_info {
    const char *name;            /* folder's dataset.json "name", else the folder's name */
    size_t count;                /* records of the split */
    size_t files;                /* shards, */
    uint64_t bytes;              /* and their sizes together */
    int num_classes;             /* of labels.txt or dataset.json; 0 unknown */
    int height, width, channels; /* of dataset.json; 0 when images differ in size */
    const char *const *labels;   /* num_classes names, NULL where unknown */
    /* Of records with maps of labels: how many classes those count, and their names. Where
     * dataset.json says nothing of its own ("map_labels") they are num_classes and labels. */
    int map_classes;
    const char *const *map_labels;
    int ignore_label;            /* of dataset.json: of pixels that do not count; -1 unknown */
    struct pm_ints thing_classes; /* of dataset.json: the classes that instances are of; or none */
    const char *colormap;        /* of dataset.json: a name of eval.colormap, or NULL */
};
/* Shards of `split` in folder: NAME_SPLIT.tfrecord, NAME_SPLIT_00000-of-00005.tfrecord,
 * SPLIT-00000-of-00008, SPLIT.record-...; or split is itself a glob pattern. The index is cached in
 * the folder (or, read-only, in memory). Lists what is there when nothing matches. */
int pm_dataset_open(const char *folder, const char *split, struct pm_dataset **out);
/* Leaves every n-th record only: 0, n, 2n ... by the files' order become 0, 1, 2 ... and count is
 * theirs. Before the first loader or read. */
void pm_dataset_sample(struct pm_dataset *d, size_t n);
/* What a data folder's dataset.json and labels.txt say, whichever splits it has: count, files and
 * bytes are 0. The texts lie in a. PM_EDATA where a file is there but damaged. */
int pm_dataset_describe(struct pm_arena *a, const char *folder, struct pm_dataset_info *out);
/* The same as a JSON object, as the checkpoints of a training keep it (the caller frees it), and
 * back. where: names the file of the object in messages. PM_EDATA where a member is no such
 * value. */
struct cJSON *pm_dataset_info_dump(const struct pm_dataset_info *info);
int pm_dataset_info_parse(struct pm_arena *a, const struct cJSON *object, const char *where,
                          struct pm_dataset_info *out);
/* What can be opened in folder: the shards' names without number and ending ("mnist_train"), in the
 * arena. */
int pm_dataset_list(struct pm_arena *a, const char *folder, const char ***names, size_t *count);
void pm_dataset_close(struct pm_dataset **d);
const struct pm_dataset_info *pm_dataset_get_info(const struct pm_dataset *d);
/* Record i into *buf (grown with pm_realloc, *capacity updated). Thread-safe. CRCs are checked:
 * PM_ECORRUPT when the record's is wrong, PM_EDATA when the file is not what it was. */
int pm_dataset_read(struct pm_dataset *d, size_t i, uint8_t **buf, size_t *capacity, size_t *size);
/* "mnist_train.tfrecord record 17 (offset 4711)", for messages; 17 counts within the file. */
char *pm_dataset_where(const struct pm_dataset *d, size_t i, char *buf, size_t size);

/* ---- images ---------------------------------------------------------------------------- */

/* 8-bit image, row-major, interleaved. */
struct pm_image8 {
    int height, width, channels;
    uint8_t *pixels; /* owned; pm_free */
};
enum { PM_GREY_OR_COLOR = -1 };
/* Decodes a picture in memory: JPEG (baseline, progressive, arithmetic; 8 bits), PNG, GIF (first
 * picture), BMP, binary PGM and PPM, TGA, PSD (RGB without alpha) and Radiance HDR, recognised by
 * their first bytes. channels: 1 or 3 (alpha is dropped), 0 = as stored, 1 to 4, PM_GREY_OR_COLOR =
 * 1 where it is stored grey, else 3. Samples of 16 bits keep their upper 8, HDR's become 255 *
 * v^(1/2.2). The picture is upright: EXIF orientation (JPEG, PNG) is applied. Pixels of a JPEG
 * without orientation equal those of TensorFlow's tf.io.decode_jpeg, with channels 1 or 3. A
 * declared size above max_pixels (0 = 2^28) is refused before decoding. PM_EDATA for anything
 * damaged or unsupported: a wrong checksum, missing data, a palette index beyond the palette. where
 * is the file's name for messages. out is freed with pm_image_free; it has no pixels after an
 * error. Thread-safe. */
int pm_image_decode(const void *data, size_t size, int channels, size_t max_pixels,
                    const char *where, struct pm_image8 *out);
/* The EXIF orientation, 1 (upright, or not known) to 8. */
int pm_image_orientation(const void *data, size_t size);
/* "jpeg", "png", "gif", "bmp", "pnm", "tga", "psd" or "hdr" by the bytes, NULL for others. */
const char *pm_image_format(const void *data, size_t size);
/* Endings of the names of picture files; folders are searched for these. */
#define PM_IMAGE_ENDINGS ".jpg .jpeg .png .gif .bmp .pgm .ppm .pnm .tga .psd .hdr"
/* true if the name ends with one of them, in upper or lower case. */
bool pm_image_named(const char *path);
int pm_image_encode_png(const struct pm_image8 *im, uint8_t **out, size_t *size);
int pm_image_encode_jpeg(const struct pm_image8 *im, int quality, uint8_t **out, size_t *size);
void pm_image_free(struct pm_image8 *im);

/* A map of whole numbers that goes with an image: classes or instances of its pixels, row-major. */
struct pm_label {
    int height, width;
    uint16_t *values; /* owned: pm_label_free */
};
/* Of a PNG, whose stored numbers they are: grey of 1 to 16 bits, or the index of a palette (three
 * equal channels are grey). PM_EDATA for colours, anything damaged and other formats; sizes as for
 * images. */
int pm_label_decode(const void *data, size_t size, size_t max_pixels, const char *where,
                    struct pm_label *out);
void pm_label_free(struct pm_label *l);
/* Bits of a number in such a PNG: 1, 2, 4, 8 or 16. data: one that pm_label_decode took. */
int pm_label_bits(const void *data);
/* Where the first value is that is no class, 0..classes - 1, nor ignore (-1: none is); the values'
 * number where there is none. */
size_t pm_label_stray(const struct pm_label *l, int classes, int ignore);
/* As a grey PNG of 8 bits; PM_EDATA for a value above 255. */
int pm_label_encode(const struct pm_label *l, const char *where, uint8_t **out, size_t *size);
/* As a grey PNG of 16 bits. */
int pm_label_encode_deep(const struct pm_label *l, const char *where, uint8_t **out, size_t *size);

/* Cityscapes' own number of each of the classes it evaluates, which maps count from 0. */
enum { PM_CITYSCAPES_CLASSES = 19 };
extern const uint8_t pm_cityscapes_ids[PM_CITYSCAPES_CLASSES];
/* PASCAL VOC's colour of a class, as in its maps' palette: bits 3k, 3k + 1 and 3k + 2 of the class
 * are bit 7 - k of red, green and blue. */
void pm_pascal_color(uint32_t label, uint8_t rgb[3]);
/* CamVid's classes and colours: the eleven that are evaluated mostly, and all of its own, Void
 * among them. */
struct pm_known_class {
    const char *name;
    uint8_t rgb[3];
};
enum { PM_CAMVID_CLASSES = 11, PM_CAMVID_ALL = 32, PM_CAMVID_VOID = 30 };
extern const struct pm_known_class pm_camvid_classes[PM_CAMVID_CLASSES];
extern const struct pm_known_class pm_camvid_all[PM_CAMVID_ALL];
/* The entry of pm_camvid_all of a class that is counted, 0..PM_CAMVID_ALL - 2. */
int pm_camvid_full_class(int label);
/* The colormap (of eval.colormap) of classes that are known by their names, or NULL; count names or
 * NULL. */
const char *pm_known_colormap(const char *const *names, int count);

/* ---- loader ---------------------------------------------------------------------------- */

/* One array of a batch: [batch] examples of this shape. */
struct pm_field {
    const char *name; /* net's input: "images", "labels", "weights" */
    enum pm_type type;
    struct pm_shape shape; /* of one example; rank 0 = scalar */
    int absent;            /* the bits of its elements where a batch has no example; I32: the value */
    double low, high;      /* range of its values, absent ones aside; both 0: unknown */
};
struct pm_field_list {
    struct pm_field *list; /* owned; pm_free */
    int count, capacity;
};
void pm_field_add(struct pm_field_list *l, struct pm_field f);
/* A range of a batch's examples. count 0: the whole batch. */
struct pm_batch_slice {
    int first, count;
};
/* The examples of the loader's slice. */
struct pm_batch {
    void **field;           /* one array for each field of the loader */
    int valid;              /* examples that are real; the rest (eval's last batch) are fields' absent */
    int skipped;            /* damaged records that were passed over for this batch */
    const uint64_t *record; /* [slice] index in the dataset */
    uint64_t step;
    int slot;
};
struct pm_loader_options {
    int batch;                   /* examples of a step, over all processes */
    struct pm_batch_slice slice; /* made here; the others are made by other processes' loaders */
    bool train; /* shuffled, endless; else in file order, one pass */
    bool in_order; /* training too in the files' order, epoch after epoch */
    uint64_t seed;
    uint64_t first_step;
    int threads; /* 0 = cores */
    int ring;    /* batches; 0 = 4 */
    /* Records that are damaged (PM_ECORRUPT, of reading or of make) are passed over: in training
     * the next one of the epoch's order stands in, in evaluation the batch gets smaller. */
    bool skip_corrupt;
    const struct pm_field *fields;
    int fields_count;
    /* Makes one example: out[k] points at field k's place for it. example: its index in the whole
     * batch, so that draws do not depend on the slice. A generator for its draws can be
     * made by pm_rng_make(seed, pm_hash("augmentation"), step, example). PM_ECORRUPT: the record is
     * damaged. */
    int (*make)(void *ctx, const uint8_t *record, size_t size, uint64_t seed, uint64_t step,
                uint32_t example, const char *where, void *const *out);
    void *ctx;
};
struct pm_loader;
int pm_loader_create(struct pm_dataset *d, const struct pm_loader_options *o,
                     struct pm_loader **out);
/* Stops the threads, also in the middle of work. */
void pm_loader_destroy(struct pm_loader **l);
/* The next batch in order of steps; *out is NULL at the end of a pass. Waits when it is not ready.
 * Give it back with pm_loader_release before the ring is used up. A worker's error is returned
 * here, by the batch it belongs to. */
int pm_loader_next(struct pm_loader *l, struct pm_batch **out);
void pm_loader_release(struct pm_loader *l, struct pm_batch *b);
/* Seconds pm_loader_next has waited so far. */
double pm_loader_waited(const struct pm_loader *l);
/* How full the ring was when pm_loader_next was called, 0..1, on average since the last call of
 * this; where there was none since, what that call said. And the ring's size. */
double pm_loader_fill(struct pm_loader *l);
int pm_loader_ring(const struct pm_loader *l);
/* Batches of one pass: ceil(count / batch). */
uint64_t pm_loader_batches(const struct pm_loader *l);

/* ---- making data folders --------------------------------------------------------------- */

/* A data folder being made under a temporary name beside its own: TFRecord shards, labels.txt and
 * dataset.json. Nothing is left behind unless it is finished; what a killed process left is removed
 * by the next one. */
struct pm_making;
/* dst must not exist yet, or be an empty folder; with replace, a data folder (one that holds a
 * dataset.json) may stand there and goes when the new one is finished. name goes into the shards'
 * names and dataset.json; NULL takes dst's last part. PM_ECONFIG when this is not one line. */
int pm_making_create(const char *dst, const char *name, bool replace, struct pm_making **out);
/* Classes, in label order; the names are copied. PM_EDATA for a name that is not one line
 * (pm_is_line). */
int pm_making_labels(struct pm_making *m, const char *const *labels, int count);
/* Size of every image; not called when they differ. */
void pm_making_size(struct pm_making *m, int height, int width, int channels);

/* Of maps of labels: the value of pixels that do not count, and the colours the classes are shown
 * in (of pm_dataset_info), or NULL. */
void pm_making_segmentation(struct pm_making *m, int ignore_label, const char *colormap);
/* Where the maps count other classes than image/class/label does, their names; errors as above. */
int pm_making_map_labels(struct pm_making *m, const char *const *labels, int count);
/* Of maps with maps of instances beside them: the classes that these are of. */
void pm_making_things(struct pm_making *m, const int *classes, int count);
/* Pixels of each class in the split written last: count of them, one a class of the maps. */
void pm_making_pixels(struct pm_making *m, const uint64_t *pixels, int count);

/* How a split's records lie in files. n: files, or records a file. */
enum pm_cut {
    PM_CUT_NONE, /* one file NAME_SPLIT.tfrecord, whatever n and names */
    PM_CUT_SIZE, /* files of n records, the last one with what is left */
    PM_CUT_CEIL, /* n files of ceil(count / n), so that the last ones may be short or empty */
    PM_CUT_EVEN, /* n files whose sizes differ by one at most */
    PM_CUT_DEAL, /* n files, record i in file i mod n */
};
enum pm_shard_names {
    PM_NAMES_SLIM,   /* NAME_SPLIT_00000-of-00005.tfrecord */
    PM_NAMES_PLAIN,  /* SPLIT-00000-of-01024 */
    PM_NAMES_RECORD, /* SPLIT.record-00000-of-00100 */
    PM_NAMES_DEEPLAB, /* SPLIT-00000-of-00004.tfrecord */
};
struct pm_sharding {
    enum pm_cut cut;
    size_t n;
    enum pm_shard_names names;
};
/* Writes one split; sharding NULL = one file. fill makes example i (called from several threads): 1
 * done, 0 passed over (pm_error_text says why, and is logged), or an error. The records' order is
 * i's; the bytes do not depend on the number of threads. A split of which nothing is left is
 * PM_EDATA. */
int pm_making_split(struct pm_making *m, const char *split, size_t count,
                    const struct pm_sharding *sharding,
                    int (*fill)(void *ctx, size_t i, struct pm_example_builder *b), void *ctx);
/* For fill: a picture as a PNG record: image/encoded, image/format, image/class/label,
 * image/height, image/width. Returns 1, or an error. */
int pm_making_picture(struct pm_example_builder *b, const struct pm_image8 *im, int64_t label);
/* For fill: a map of instances, class * divisor + number, as image/segmentation/instance/encoded,
 * .../format and, where it is not 1000, .../divisor. */
int pm_making_instances(struct pm_example_builder *b, const struct pm_label *map, int divisor,
                        const char *where);
/* Writes labels.txt and dataset.json, renames the folder, and logs the counts. */
int pm_making_finish(struct pm_making *m);
void pm_making_destroy(struct pm_making **m);
/* Ends what is being made with PM_EFAIL at the next records, as after a failure. For signal
 * handlers. */
void pm_making_interrupt(void);

/* dataset convert: one row per source format, src/data/convert/, listed in converters.def. */
struct pm_converter {
    const char *name, *help;  /* one line, no full stop */
    const char *layout;       /* for --help: what SRC holds and what comes of it, lines */
    const struct pm_opt *opts; /* NULL and 0 when it has none */
    size_t cfg_size;
    bool own_name; /* the data is named as DST, not as the format */
    int (*convert)(const void *cfg, const char *src, struct pm_making *m);
};
const struct pm_converter *const *pm_converters(size_t *count);
/* PM_ECONFIG, with the names there are, for a name that is none of theirs. */
int pm_converter_known(const char *name);
/* Options of every format: force (a data folder at dst is made anew), num_threads. */
extern const struct pm_opt pm_convert_opts[];
/* options: "validation=0.2 seed=1", or NULL. An unknown format or option is PM_ECONFIG. A finished
 * data folder of that name at dst is left as it is and told, without force=true. */
int pm_dataset_convert(const char *format, const char *src, const char *dst, const char *options);
/* Before much work goes into src: 0 when pm_dataset_convert could begin, 1 when a finished data
 * folder is there and nothing would be done, or the error it would give for format, dst or
 * options. */
int pm_dataset_convert_ready(const char *format, const char *dst, const char *options);
/* dataset download: the archives that the original programs fetched, then the converter. */
#define PM_DOWNLOAD_MOST (UINT64_C(40) * 1000000000) /* bytes; the largest known archive has 19 * 10^9 */
struct pm_download_options {
    const char *from;     /* address of a folder that holds the archives by their names; NULL = theirs */
    const char *sums;     /* file of lines "SHA-256  NAME", instead of the known checksums, or NULL */
    const char *raw;      /* folder of the archives; NULL = DST.download */
    uint64_t most;        /* bytes of an archive whose size is not known (sums); 0 = PM_DOWNLOAD_MOST */
    bool keep_archives;   /* they stay when the data set is made */
    const char *options;  /* of the converter, or NULL */
    const volatile sig_atomic_t *stop; /* set by a signal handler; or NULL */
};
/* mnist, cifar10, flowers, visualwakewords; another name is PM_ECONFIG and lists them. What was
 * fetched is not fetched again when the call is repeated. */
int pm_dataset_download(const char *name, const char *dst, const struct pm_download_options *o);
/* The built-in drawn shapes: counts of train / validation / test pictures of size x size. */
int pm_shapes_make(const char *dst, int size, size_t train, size_t validation, size_t test,
                   uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
