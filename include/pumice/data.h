/* data: reads records from files and makes batches in host memory.
 *
 * A dataset is one split of a folder of TFRecord shards. The shards are indexed once (offset and
 * length per record) and never loaded whole. A loader has worker threads that read records, call
 * the task's `make` for each example, and fill a ring of batches ahead of the step. A batch's
 * content depends only on seed and step: it is record permute(seed, epoch)[i], with the draws of
 * (seed, step, example). */
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
/* Each returns 1 if the key is present, 0 if it is absent, PM_EDATA if its type differs. */
int pm_example_bytes(const struct pm_example *e, const char *key, const uint8_t **data,
                     size_t *size);
int pm_example_int(const struct pm_example *e, const char *key, int64_t *value);
int pm_example_ints(const struct pm_example *e, const char *key, const int64_t **v, size_t *count);
int pm_example_floats(const struct pm_example *e, const char *key, const float **v, size_t *count);
/* Returns value i of a list of bytes, or 0 if the list is shorter. pm_example_bytes returns value
 * 0. */
int pm_example_bytes_at(const struct pm_example *e, const char *key, size_t i, const uint8_t **data,
                        size_t *size);
/* Lists the features in the record's order: pm_example_count entries, each with its name, its kind
 * ("bytes", "floats", "integers", "nothing") and its number of values. */
size_t pm_example_count(const struct pm_example *e);
const char *pm_example_key(const struct pm_example *e, size_t i, const char **kind, size_t *values);
/* Builds an example: add features, then serialise (the caller frees data with pm_free). If a call
 * to pm_example_add_bytes repeats the last key, it appends a value to that key's list. */
struct pm_example_builder;
struct pm_example_builder *pm_example_builder_create(void);
void pm_example_builder_destroy(struct pm_example_builder **b);
void pm_example_add_bytes(struct pm_example_builder *b, const char *key, const void *data,
                          size_t size);
void pm_example_add_ints(struct pm_example_builder *b, const char *key, const int64_t *v,
                         size_t count);
void pm_example_add_floats(struct pm_example_builder *b, const char *key, const float *v,
                           size_t count);
/* Returns the first integer added with that key; false if there is none. */
bool pm_example_builder_int(const struct pm_example_builder *b, const char *key, int64_t *value);
void pm_example_serialise(struct pm_example_builder *b, uint8_t **data, size_t *size);

/* ---- datasets -------------------------------------------------------------------------- */

struct pm_dataset;
struct pm_label_map;
struct pm_dataset_info {
    const char *name;            /* folder's dataset.json "name", else the folder's name */
    size_t count;                /* records of the split */
    size_t files;                /* number of shards */
    uint64_t bytes;              /* total size of the shards */
    int num_classes;             /* from labels.txt or dataset.json; 0: unknown */
    int height, width, channels; /* from dataset.json; 0: images differ in size */
    const char *const *labels;   /* num_classes names; NULL: unknown */
    /* For records with label maps: the number of classes in the maps, and their names. Equal to
     * num_classes and labels unless dataset.json has "map_labels". */
    int map_classes;
    const char *const *map_labels;
    int ignore_label;            /* from dataset.json: label of ignored pixels; -1: unknown */
    struct pm_ints thing_classes; /* from dataset.json: classes that have instances; may be empty */
    struct pm_ints mirrored_points; /* from dataset.json: in a mirrored picture keypoint k becomes
                                     * mirrored_points[k]; empty: unknown */
    const char *colormap;        /* from dataset.json: a name for eval.colormap, or NULL */
    const char *digest;          /* from dataset.json: identifies the pictures of data.folder that
                                  * were converted; of joined data sets all, with commas; or NULL */
    /* The classes of boxes (objects.h). Opening a data folder leaves NULL, because only some tasks
     * need them: those read them with pm_label_map_of_folder. A checkpoint stores them. */
    const struct pm_label_map *box_labels;
};
/* Opens the shards of `split` in folder: NAME_SPLIT.tfrecord, NAME_SPLIT_00000-of-00005.tfrecord,
 * SPLIT-00000-of-00008, SPLIT.record-...; split may also be a glob pattern. The index is cached in
 * the folder, or kept in memory if the folder is read-only. If nothing matches, the error lists the
 * splits found. */
int pm_dataset_open(const char *folder, const char *split, struct pm_dataset **out);
/* Keeps only every n-th record: records 0, n, 2n ... in file order become 0, 1, 2 ..., and count is
 * their number. Call it before the first loader or read. */
void pm_dataset_sample(struct pm_dataset *d, size_t n);
/* Joins datasets: the records of parts[1] follow those of parts[0], and so on. out owns the parts,
 * and parts becomes NULLs; after an error the caller still owns them. The info is that of the first
 * part with the sums of count, files and bytes, and 0 for a size that differs. Call
 * pm_dataset_sample for the parts before. PM_EDATA if parts have other classes than the first. */
int pm_dataset_join(struct pm_dataset **parts, size_t count, struct pm_dataset **out);
/* Returns the part that record i belongs to; 0 if the dataset is not joined. */
int pm_dataset_part(const struct pm_dataset *d, size_t i);
/* Returns the range of records of a part: all if the dataset is not joined. */
void pm_dataset_range(const struct pm_dataset *d, int part, size_t *first, size_t *count);
/* Reads a data folder's dataset.json and labels.txt, independent of its splits: count, files and
 * bytes are 0. The texts are allocated in a. PM_EDATA if a file exists but is damaged. */
int pm_dataset_describe(struct pm_arena *a, const char *folder, struct pm_dataset_info *out);
/* Converts the info to a JSON object, as stored in training checkpoints, and back. The caller frees
 * the object. where: names the object's file in messages. PM_EDATA if a member has a wrong
 * value. */
struct cJSON *pm_dataset_info_dump(const struct pm_dataset_info *info);
int pm_dataset_info_parse(struct pm_arena *a, const struct cJSON *object, const char *where,
                          struct pm_dataset_info *out);
/* Lists the names that pm_dataset_open accepts in folder: the shards' names without number and
 * ending ("mnist_train"), allocated in the arena. */
int pm_dataset_list(struct pm_arena *a, const char *folder, const char ***names, size_t *count);
/* Whether such a name ("mnist_train") belongs to a split ("train"). */
bool pm_dataset_name_is(const char *name, const char *split);
void pm_dataset_close(struct pm_dataset **d);
const struct pm_dataset_info *pm_dataset_get_info(const struct pm_dataset *d);
/* Returns a hash of the names of the shards and of the places of their records: equal for copies of
 * the same files, whatever their folder. */
uint64_t pm_dataset_hash(const struct pm_dataset *d);
/* Reads record i into *buf, which grows with pm_realloc; *capacity is updated. Thread-safe. CRCs
 * are checked: PM_ECORRUPT if the record's CRC is wrong, PM_EDATA if the file has changed since
 * indexing. */
int pm_dataset_read(struct pm_dataset *d, size_t i, uint8_t **buf, size_t *capacity, size_t *size);
/* Formats "mnist_train.tfrecord record 17 (offset 4711)" for messages; 17 counts within the
 * file. */
char *pm_dataset_where(const struct pm_dataset *d, size_t i, char *buf, size_t size);

/* ---- images ---------------------------------------------------------------------------- */

/* 8-bit image, row-major, interleaved. */
struct pm_image8 {
    int height, width, channels;
    uint8_t *pixels; /* owned; pm_free */
};
enum { PM_GREY_OR_COLOR = -1 };
/* Decodes a picture in memory. Formats: JPEG (baseline, progressive, arithmetic; 8 bits), PNG,
 * WebP, TIFF, HEIC, AVIF, GIF, BMP, binary PGM and PPM, TGA, PSD (RGB without alpha) and Radiance
 * HDR, recognised by their first bytes. Of several pictures in a file the first is read. WebP,
 * TIFF, and HEIC with AVIF need the libraries libwebp, libtiff and libheif, at build time and
 * installed.
 *
 * channels: 1 or 3 (alpha is dropped); 0: as stored, 1 to 4; PM_GREY_OR_COLOR: 1 if stored grey,
 * else 3. 16-bit samples keep their upper 8 bits (in TIFF, HEIC and AVIF they are rounded); HDR
 * samples become 255 * v^(1/2.2). The picture is upright: EXIF orientation is applied. With
 * channels 1 or 3, the pixels of a JPEG without orientation equal those of TensorFlow's
 * tf.io.decode_jpeg.
 *
 * A declared size above max_pixels (0: 2^28) is refused before decoding. PM_EDATA for damaged or
 * unsupported files: for example a wrong checksum, missing data, or a palette index beyond the
 * palette. PM_EFAIL if this build or this machine lacks the format's library; the message names the
 * package. where: the file's name for messages. The caller frees out with pm_image_free; after an
 * error it has no pixels. Thread-safe. */
int pm_image_decode(const void *data, size_t size, int channels, size_t max_pixels,
                    const char *where, struct pm_image8 *out);
/* The same; a JPEG comes at 1 / shrink of its size, rounded up (shrink: 1, 2, 4 or 8). Its pixels
 * are averages of shrink x shrink pixels, computed from the file's coefficients, which saves most
 * of the time. Other formats, and a build without libjpeg-turbo, give the whole picture. */
int pm_image_decode_small(const void *data, size_t size, int channels, size_t max_pixels,
                          int shrink, const char *where, struct pm_image8 *out);
/* Reads the size in pixels, upright, from the file's header: the size that pm_image_decode would
 * give. PM_EDATA as above, as far as the header shows. Thread-safe. */
int pm_image_measure(const void *data, size_t size, size_t max_pixels, const char *where,
                     int *height, int *width);
/* Returns the EXIF orientation, 1 (upright or unknown) to 8. */
int pm_image_orientation(const void *data, size_t size);
/* Returns "jpeg", "png", "webp", "tiff", "avif", "heic", "gif", "bmp", "pnm", "tga", "psd" or
 * "hdr", detected from the first bytes; NULL for other formats. */
const char *pm_image_format(const void *data, size_t size);
/* Name endings of picture files. Folder searches use this list. */
#define PM_IMAGE_ENDINGS                                                                           \
    ".jpg .jpeg .png .webp .tif .tiff .heic .heif .avif .gif .bmp .pgm .ppm .pnm .tga .psd .hdr"
/* true if the name ends with one of them, in upper or lower case. */
bool pm_image_named(const char *path);
int pm_image_encode_png(const struct pm_image8 *im, uint8_t **out, size_t *size);
int pm_image_encode_jpeg(const struct pm_image8 *im, int quality, uint8_t **out, size_t *size);
void pm_image_free(struct pm_image8 *im);

/* A map of integers that belongs to an image: the class or instance of each pixel, row-major. */
struct pm_label {
    int height, width;
    uint16_t *values; /* owned; freed with pm_label_free */
};
/* Decodes a label map from a PNG. Labels are the stored numbers: grey of 1 to 16 bits, or palette
 * indices. Three equal channels count as grey. PM_EDATA for colours, damaged files and other
 * formats. max_pixels as in pm_image_decode. */
int pm_label_decode(const void *data, size_t size, size_t max_pixels, const char *where,
                    struct pm_label *out);
void pm_label_free(struct pm_label *l);
/* Returns the bits per sample of such a PNG: 1, 2, 4, 8 or 16. data: a PNG that pm_label_decode
 * accepted. */
int pm_label_bits(const void *data);
/* Returns the index of the first value that is neither a class (0..classes - 1) nor `ignore` (-1:
 * no ignore label). Returns the number of values if there is none. */
size_t pm_label_stray(const struct pm_label *l, int classes, int ignore);
/* Encodes the map as a grey 8-bit PNG; PM_EDATA if a value is above 255. */
int pm_label_encode(const struct pm_label *l, const char *where, uint8_t **out, size_t *size);
/* Encodes the map as a grey 16-bit PNG. */
int pm_label_encode_deep(const struct pm_label *l, const char *where, uint8_t **out, size_t *size);

/* Cityscapes' own id of each evaluated class. Label maps number these classes from 0. */
enum { PM_CITYSCAPES_CLASSES = 19 };
extern const uint8_t pm_cityscapes_ids[PM_CITYSCAPES_CLASSES];
/* Returns PASCAL VOC's colour of a class, as in the palette of its maps: bits 3k, 3k + 1 and 3k + 2
 * of the class are bit 7 - k of red, green and blue. */
void pm_pascal_color(uint32_t label, uint8_t rgb[3]);
/* CamVid's classes and colours: the 11 classes usually evaluated, and the full list of 32, which
 * includes Void. */
struct pm_known_class {
    const char *name;
    uint8_t rgb[3];
};
enum { PM_CAMVID_CLASSES = 11, PM_CAMVID_ALL = 32, PM_CAMVID_VOID = 30 };
extern const struct pm_known_class pm_camvid_classes[PM_CAMVID_CLASSES];
extern const struct pm_known_class pm_camvid_all[PM_CAMVID_ALL];
/* Returns the index in pm_camvid_all of class `label`, 0..PM_CAMVID_ALL - 2, which are numbered
 * without Void. */
int pm_camvid_full_class(int label);
/* Returns the colormap (a name for eval.colormap) of a known set of class names, or NULL. names has
 * count entries; entries may be NULL. */
const char *pm_known_colormap(const char *const *names, int count);

/* ---- loader ---------------------------------------------------------------------------- */

/* One array of a batch: [batch] examples of this shape. */
struct pm_field {
    const char *name; /* net's input: "images", "labels", "weights" */
    enum pm_type type;
    struct pm_shape shape; /* of one example; rank 0 = scalar */
    int absent;            /* fill of missing examples, as bits of each element; I32: the value */
    struct pm_values values; /* of real examples, without fill; low = high: unknown */
};
struct pm_field_list {
    struct pm_field *list; /* owned; pm_free */
    int count, capacity;
};
void pm_field_add(struct pm_field_list *l, struct pm_field f);
/* The size of a net's input, in pixels. */
struct pm_frame {
    int height, width;
};
/* A record that the loader makes an example from. All pointers are borrowed. */
struct pm_loader_record {
    const uint8_t *bytes;
    size_t size;
    const char *where;     /* its name, for messages */
    uint64_t seed, step;   /* of the run; of the batch */
    uint32_t example;      /* its index in the whole batch, so draws do not depend on the slice */
    int part;              /* of a joined dataset: pm_dataset_part */
    int choice;            /* of frame_of: pm_occasion.choice */
    struct pm_frame frame; /* of the batch; not set when frame_of is called */
    /* Where make may store data of any size that stays in host memory: the batch hands it over as
     * host[i], and the loader frees it with free_host. make stores it only if it succeeds. NULL:
     * nobody wants it. */
    void **host;
    uint64_t records; /* in its part of the dataset */
    const struct pm_loader_source *source; /* for pm_loader_other; NULL: only this record */
};
/* The records of a dataset, grouped by the frame that each needs. Groups are in the order of their
 * first records; the records of a group are in file order. */
struct pm_frame_groups {
    struct pm_frame_group {
        struct pm_frame frame;
        uint64_t first, count; /* a range of `order` */
    } *list;
    size_t count;
    uint64_t *order; /* [records] indices in the dataset */
};
/* Reads every record once, on several threads, without decoding its picture. frame_of returns the
 * frame that a record needs. It is called `choices` times for each record, with `choice` 1, 2, ...,
 * or once with 0 if choices is 0. Draws are those of seed 0, step 0 and the record's index as the
 * example. out: [records * choices], or [records]; height 0: the record has no frame. */
void pm_frames_read(struct pm_dataset *d,
                    int (*frame_of)(void *ctx, const struct pm_loader_record *r,
                                    struct pm_frame *out),
                    void *ctx, int choices, struct pm_frame *out);
/* Groups the records by the frames of pm_frames_read, without choices. Records without a frame join
 * the first group; making them reports the error. If no record has a frame, all are one group of
 * `otherwise`. *out is freed with pm_frame_groups_free. */
void pm_frame_groups_create(struct pm_dataset *d,
                            int (*frame_of)(void *ctx, const struct pm_loader_record *r,
                                            struct pm_frame *out),
                            void *ctx, struct pm_frame otherwise, struct pm_frame_groups *out);
/* The same for frames that are known; height 0: none. frames: [count]. */
void pm_frame_groups_of(const struct pm_frame *frames, size_t count, struct pm_frame otherwise,
                        struct pm_frame_groups *out);
void pm_frame_groups_free(struct pm_frame_groups *g);
/* A range of a batch's examples. count 0: the whole batch. */
struct pm_batch_slice {
    int first, count;
};
/* The examples of the loader's slice. */
struct pm_batch {
    void **field;           /* one array per field of the loader */
    const struct pm_field *fields; /* their names and the shapes that they have in this frame */
    struct pm_frame frame;  /* of every example */
    int examples;           /* length of the arrays: the slice, or all records of a smaller group */
    int valid;              /* number of real examples; the rest (eval's last batch) hold fill */
    int skipped;            /* corrupt records skipped for this batch */
    const uint64_t *record; /* [slice] index in the dataset */
    void **host;            /* [slice] what make stored for each example, or NULL; owned by the
                             * loader, valid until the batch is released */
    double sum;             /* a sum over the slice's examples, set by whole_batch; else 0 */
    uint64_t step;
    int slot;
};
struct pm_order; /* src/data/order.h: the order of training records */
struct pm_loader_options {
    int batch;                   /* examples per step, over all processes */
    struct pm_batch_slice slice; /* this loader's part; other processes make the rest */
    bool train; /* shuffled and endless; else one pass in file order */
    bool in_order; /* train in file order, epoch after epoch */
    struct pm_order *order; /* borrowed: training's order of the records, for this batch and seed;
                             * in_order is then unused. NULL: all records once an epoch */
    uint64_t seed;
    uint64_t first_step; /* of training; 0 for evaluation */
    /* Draws the number of training's next batch, in place of first_step, first_step + 1, ....
     * False: no batch is left. Called once for each batch when the loader begins to make it, from
     * one of its threads at a time; it may wait. NULL: numbers are consecutive. */
    bool (*draw)(void *ctx, uint64_t *step);
    void *draw_ctx;
    /* Several processes can share evaluation's pass. It is cut into `count` parts of consecutive
     * batches, which are about equally long; this loader makes part `index`. count 0: the pass is
     * not shared. most: largest number of batches of the whole pass, also without a share; 0: all
     * batches. */
    struct pm_loader_share {
        int index, count;
        uint64_t most;
    } share;
    int threads; /* 0: number of cores */
    int ring;    /* batches; 0: 4 */
    /* Skip corrupt records (PM_ECORRUPT, from reading or from make). In training, the next record
     * of the epoch's order replaces a skipped one. In evaluation, the batch gets smaller. */
    bool skip_corrupt;
    /* The frame of every batch, and the fields in this frame. */
    struct pm_frame frame;
    const struct pm_field *fields;
    int fields_count;
    /* Batches of several frames, instead: training sets frames, evaluation groups; both set
     * fields_of.
     *
     * frames: each training batch has the frame with the fewest pixels that holds every example of
     * the whole batch; of equal ones the first. frame_of returns the frame that an example needs,
     * which depends only on the record, seed, step and example; it is called from several threads.
     * So a batch's frame depends only on its number, not on the slice.
     * hold: if no frame holds a batch, pm_loader_next returns PM_EDATA, and the message names the
     * records and their frames. A replacement for a corrupt record is skipped if the batch's frame
     * does not hold it. Without hold such a batch has the largest frame.
     * groups: each evaluation batch has records of one group, in the groups' order.
     * fields_of adds the fields in a frame to the empty list: the same ones in every frame. */
    const struct pm_frame *frames;
    int frames_count; /* 0: one frame */
    bool hold;
    const struct pm_frame_groups *groups;
    int (*frame_of)(void *ctx, const struct pm_loader_record *r, struct pm_frame *out);
    void (*fields_of)(void *ctx, struct pm_frame frame, struct pm_field_list *out);
    /* Makes one example: out[k] points to the example's place in field k. A generator for the draws
     * is pm_rng_make(seed, pm_hash("augmentation"), step, example). Returns PM_ECORRUPT if the
     * record is corrupt. */
    int (*make)(void *ctx, const struct pm_loader_record *r, void *const *out);
    /* Called once per batch, from the thread that made its last example, before pm_loader_next
     * returns it. It may write fields of all the slice's examples, including missing ones: values
     * that depend on the whole batch. Corrupt records have been removed. It must depend on the
     * batch only. A slice without an example of its own in evaluation's last batch gets no call.
     * NULL: nothing to do. */
    void (*whole_batch)(void *ctx, struct pm_batch *b);
    void (*free_host)(void *host); /* frees what make stores in host; NULL: it stores nothing */
    void *ctx;
};
/* For make, if an example needs several records: passes record `index`, 0..r->records - 1, of r's
 * part of the dataset to use. `other` has r's seed, step, example, frame and part, and no host. Its
 * bytes are valid during the call. If the record is corrupt, when it is read or by use's result
 * PM_ECORRUPT, and corrupt records are skipped, it is counted and the next one of the part replaces
 * it. Else returns PM_ECORRUPT; PM_EDATA if 256 records in sequence are corrupt; use's other
 * errors. */
int pm_loader_other(const struct pm_loader_record *r, uint64_t index,
                    int (*use)(void *ctx, const struct pm_loader_record *other), void *ctx);
struct pm_loader;
int pm_loader_create(struct pm_dataset *d, const struct pm_loader_options *o,
                     struct pm_loader **out);
/* Stops the threads, even if they are working. */
void pm_loader_destroy(struct pm_loader **l);
/* Returns the next batch in order of steps, or in the order of draws; *out is NULL at the end of a
 * pass, or after the last draw. Waits until the
 * batch is ready. Return the batch with pm_loader_release before the ring is used up. A worker's
 * error is returned here, with the batch that it belongs to. */
int pm_loader_next(struct pm_loader *l, struct pm_batch **out);
void pm_loader_release(struct pm_loader *l, struct pm_batch *b);
/* Returns the seconds that pm_loader_next has waited so far. */
double pm_loader_waited(const struct pm_loader *l);
/* pm_loader_fill returns how full the ring was when pm_loader_next was called, 0..1, averaged since
 * the previous pm_loader_fill. Without a pm_loader_next since then, it returns the previous result.
 * pm_loader_ring returns the ring's size in batches. */
double pm_loader_fill(struct pm_loader *l);
int pm_loader_ring(const struct pm_loader *l);
/* Returns the batches of the loader's part of a pass. Without a share: ceil(count / batch), summed
 * over the groups. */
uint64_t pm_loader_batches(const struct pm_loader *l);

/* ---- making data folders --------------------------------------------------------------- */

/* A data folder under construction: TFRecord shards, labels.txt and dataset.json. It has a
 * temporary name beside the final one. An unfinished folder is removed; if the process was killed,
 * the next one that makes the same folder removes it. */
struct pm_making;
/* Begins a data folder. dst must not exist or must be an empty folder. With replace, dst may also
 * be a data folder (with a dataset.json), which is replaced when the new one is finished. name is
 * used in shard names and dataset.json; NULL: the last part of dst. PM_ECONFIG if name is not a
 * single line. */
int pm_making_create(const char *dst, const char *name, bool replace, struct pm_making **out);
/* Sets the classes in label order; the names are copied. PM_EDATA if a name is not a single line
 * (pm_is_line). */
int pm_making_labels(struct pm_making *m, const char *const *labels, int count);
/* Sets the size of every image. Do not call it if sizes differ. */
void pm_making_size(struct pm_making *m, int height, int width, int channels);

/* For label maps: sets the label of ignored pixels, and the colormap of the classes
 * (pm_dataset_info) or NULL. */
void pm_making_segmentation(struct pm_making *m, int ignore_label, const char *colormap);
/* Sets the class names of label maps if their classes differ from image/class/label. Errors as
 * above. */
int pm_making_map_labels(struct pm_making *m, const char *const *labels, int count);
/* For label maps with instance maps: sets the classes that have instances. */
void pm_making_things(struct pm_making *m, const int *classes, int count);
/* For keypoints: sets what each of `count` points becomes in a mirrored picture, a permutation that
 * is its own inverse. */
void pm_making_mirrored_points(struct pm_making *m, const int *mirrored, int count);
/* Returns NULL if the list is a permutation of 0..count - 1 that is its own inverse; else what is
 * wrong, to follow the list's name in a message. */
const char *pm_mirrored_points_wrong(const int *mirrored, int count);
/* Sets the pixels per class of the split written last: count numbers, one per class of the maps. */
void pm_making_pixels(struct pm_making *m, const uint64_t *pixels, int count);

/* How a split's records are divided into files. n: number of files, or records per file. */
enum pm_cut {
    PM_CUT_NONE, /* one file NAME_SPLIT.tfrecord; n and names are unused */
    PM_CUT_SIZE, /* files of n records; the last file holds the rest */
    PM_CUT_CEIL, /* n files of ceil(count / n) records; the last ones may be short or empty */
    PM_CUT_EVEN, /* n files whose sizes differ by at most one */
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
/* Writes one split; sharding NULL: one file. fill makes example i and is called from several
 * threads. fill returns 1 if the example is made, 0 if it is skipped (pm_error_text holds the
 * reason, which is logged), or an error. Records are in the order of i; the bytes do not depend on
 * the number of threads. PM_EDATA if the split has no records. */
int pm_making_split(struct pm_making *m, const char *split, size_t count,
                    const struct pm_sharding *sharding,
                    int (*fill)(void *ctx, size_t i, struct pm_example_builder *b), void *ctx);
/* For fill: adds a picture as a PNG with its label: image/encoded, image/format, image/class/label,
 * image/height, image/width. Returns 1, or an error. */
int pm_making_picture(struct pm_example_builder *b, const struct pm_image8 *im, int64_t label);
/* For fill: adds an instance map, class * divisor + number, as image/segmentation/instance/encoded
 * and .../format. Also adds .../divisor if the divisor is not 1000. */
int pm_making_instances(struct pm_example_builder *b, const struct pm_label *map, int divisor,
                        const char *where);
/* Writes labels.txt and dataset.json, renames the folder to its final name, and logs the counts. */
int pm_making_finish(struct pm_making *m);
void pm_making_destroy(struct pm_making **m);
/* Makes the current pm_making_split fail with PM_EFAIL at its next records. For signal handlers. */
void pm_making_interrupt(void);

/* dataset convert: one row per source format, src/data/convert/, listed in converters.def. */
struct pm_converter {
    const char *name, *help;  /* one line, no full stop */
    const char *layout;       /* lines for --help: files in SRC, records made from them */
    const struct pm_opt *opts; /* NULL and 0: no options */
    size_t cfg_size;
    bool own_name; /* the data set is named after DST, not after the format */
    int (*convert)(const void *cfg, const char *src, struct pm_making *m);
};
const struct pm_converter *const *pm_converters(size_t *count);
/* PM_ECONFIG if no converter has this name; the message lists the names. */
int pm_converter_known(const char *name);
/* Options of every format: force (replace a data folder at dst), num_threads. */
extern const struct pm_opt pm_convert_opts[];
/* Converts src to a data folder at dst. options: "validation=0.2 seed=1", or NULL. PM_ECONFIG for
 * an unknown format or option. Without force=true, a finished data folder of that name at dst is
 * kept, and a log line says so. */
int pm_dataset_convert(const char *format, const char *src, const char *dst, const char *options);
/* Checks a conversion before costly work on src. Returns 0 if pm_dataset_convert could begin, 1 if
 * a finished data folder exists and nothing would be done. Otherwise returns the error for format,
 * dst or options. */
int pm_dataset_convert_ready(const char *format, const char *dst, const char *options);
/* dataset download: fetches the archives that the original programs used, then runs the
 * converter. */
#define PM_DOWNLOAD_MOST (UINT64_C(40) * 1000000000) /* bytes; the largest known archive has 19 *
                                                      * 10^9 */
struct pm_download_options {
    const char *from;     /* URL of a folder with the archives by name; NULL: original URLs */
    const char *sums;     /* file of lines "SHA-256  NAME", replaces known checksums; or NULL */
    const char *raw;      /* folder for the archives; NULL: DST.download */
    uint64_t most;        /* byte limit if the size is unknown (sums); 0: PM_DOWNLOAD_MOST */
    bool keep_archives;   /* keep the archives when the data set is finished */
    const char *options;  /* options of the converter, or NULL */
    const volatile sig_atomic_t *stop; /* set by a signal handler; or NULL */
};
/* name: mnist, cifar10, flowers, visualwakewords. PM_ECONFIG for other names; the message lists the
 * names. A repeated call does not fetch finished archives again. */
int pm_dataset_download(const char *name, const char *dst, const struct pm_download_options *o);
/* dataset make: one row per kind of drawn data, src/data/make/, listed in makers.def. */
struct pm_maker {
    const char *name, *help; /* one line, no full stop */
    const struct pm_opt *opts;
    size_t cfg_size;
    int (*make)(const void *cfg, const char *dst); /* errors as pm_making_create */
};
const struct pm_maker *const *pm_makers(size_t *count);
/* PM_ECONFIG if no kind has this name; the message lists the names. */
int pm_maker_find(const char *name, const struct pm_maker **out);
/* Draws a data folder at dst, which must not exist. options: "train=100 seed=1". PM_ECONFIG for an
 * unknown kind or option. */
int pm_dataset_make(const char *kind, const char *dst, const char *options);
/* Makes the built-in data set of drawn shapes, with train / validation / test pictures of size x
 * size. */
int pm_shapes_make(const char *dst, int size, size_t train, size_t validation, size_t test,
                   uint64_t seed);
/* The same for the built-in data with rotated boxes: bars of one class, turned by any angle. */
enum { PM_BARS_SIZE = 96 }; /* the usual size */
int pm_bars_make(const char *dst, int size, size_t train, size_t validation, size_t test,
                 uint64_t seed);

#ifdef __cplusplus
}
#endif

#endif
