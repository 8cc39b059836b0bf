/* convert, internal to data/: declarations that converters share. Lists are sorted by the bytes of
 * the names, so that a data set is the same on every file system. */
#ifndef PUMICE_DATA_CONVERT_H
#define PUMICE_DATA_CONVERT_H

#include <pumice/data.h>

/* ---- lists of files ---- */

struct pm_source {
    const char *path, *name; /* name: its last part; in the arena */
    int label;
};
struct pm_left_out {
    const char *path, *why; /* in the arena */
};
struct pm_sources {
    struct pm_source *item; /* owned: pm_sources_free */
    size_t count, capacity;
    bool deep;              /* set by the caller: pictures in subfolders, too; a picture's name is
                             * then its path below the folder */
    struct pm_left_out *left; /* owned: what the folders hold beside pictures */
    size_t left_count, left_capacity;
};
void pm_sources_add(struct pm_sources *s, const char *path, const char *name, int label);
void pm_sources_free(struct pm_sources *s);
/* Lists the folders in root, except those whose names begin with a dot. PM_EDATA if there are
 * none. */
int pm_class_folders(struct pm_arena *a, const char *root, const char ***names, int *count);
/* Adds the pictures of one folder (PM_IMAGE_ENDINGS), and lists what else is there, except files
 * whose names begin with a dot. */
int pm_sources_folder(struct pm_arena *a, const char *folder, int label, struct pm_sources *out);
/* Lists a file that is left out. path and why are borrowed. */
void pm_sources_leave(struct pm_sources *s, const char *path, const char *why);
/* Names the files that were left out, in warnings. */
void pm_sources_warn(const struct pm_sources *s);
/* Adds the pictures of root/CLASS for each of the classes, with labels from `first`. Warns about a
 * class without pictures, and names the files that are left out. PM_EDATA for a folder that is not
 * a class, or if there are no pictures at all. */
int pm_sources_classes(struct pm_arena *a, const char *root, const char *const *classes, int count,
                       int first, struct pm_sources *out);
/* The file that an option names, else the usual file under src if it exists, else NULL. */
const char *pm_usual_file(struct pm_arena *a, const char *given, const char *src,
                          const char *usual);
/* The first of these folders (a NULL-terminated list) that exists under src, in the arena, or
 * NULL. */
const char *pm_first_folder(struct pm_arena *a, const char *src, const char *const *names);
/* The folder of the class folders that `dataset convert folder` reads classes from: SRC/train or
 * SRC. */
const char *pm_folder_root(struct pm_arena *a, const char *src);
/* Non-empty lines of a text file, in the arena. */
int pm_file_lines(struct pm_arena *a, const char *path, char ***lines, size_t *count);
/* Class names, numbered from 1; 0 is "background". They are the lines of a file, which must be
 * names of folders, or, if path is NULL, the folders in root. */
int pm_class_list(struct pm_arena *a, const char *path, const char *root, const char ***names,
                  int *count);

/* order[count] = the result of Python 3's random.seed(seed), random.shuffle(list(range(count))). */
void pm_python_shuffle(uint64_t seed, size_t count, uint32_t *order);

/* ---- pictures ---- */

enum pm_bad { PM_BAD_SKIP, PM_BAD_ERROR };
#define PM_OPT_BAD(tag)                                                                            \
    PM_ENUM(tag, bad, PM_BAD_SKIP, "skip|error",                                                   \
            "pictures that cannot be decoded: skip (one warning each), or fail")

/* A picture file as stored in a record. Other readers of records (TensorFlow) ignore EXIF
 * orientation, and read only JPEG, PNG, GIF and BMP. Therefore a file that EXIF rotates is stored
 * upright and without EXIF: a JPEG as a JPEG of quality 100, others as PNG. Files of other formats
 * are stored as PNG. */
struct pm_picture {
    char *data; /* the file's bytes, or the re-encoded picture; owned */
    size_t size;
    struct pm_image8 image; /* upright; 1 to 4 channels as stored */
    int orientation;        /* the file's, by EXIF: 1 to 8 */
    const char *format;     /* pm_image_format's: "jpeg", "png", "gif" or "bmp" */
    bool four;              /* a JPEG of four colours (CMYK) */
};
/* Reads the file and decodes it. PM_EDATA for a file that cannot be decoded. pm_picture_free frees
 * out, also after an error. */
int pm_picture_read(const char *path, struct pm_picture *out);
/* The same with the bytes of a file, which it takes over, also after an error. path: the file's
 * name, for messages. */
int pm_picture_take(const char *path, char *bytes, size_t size, struct pm_picture *out);
/* Gives the picture other pixels, which it takes over, and encodes them: in a picture of the format
 * "jpeg" as JPEG of quality 95, else as PNG. After an error the pixels are still the caller's. */
int pm_picture_pixels(struct pm_picture *p, struct pm_image8 *pixels);
/* Shrinks a picture whose longer side has more than `side` pixels to that side, by Pillow's filter
 * with antialiasing, and encodes it anew: a photograph as JPEG of quality 95, others as PNG. */
int pm_picture_shrink(struct pm_picture *p, int side);
/* Makes a picture of rows y..y + height - 1 and columns x..x + width - 1 of another one, inside of
 * it, in the formats of pm_picture_shrink. */
int pm_picture_crop(const struct pm_picture *from, int y, int x, int height, int width,
                    struct pm_picture *out);
/* Converts a picture that is not a JPEG of one or three channels to one: decodes it to RGB and
 * encodes it with quality 100. */
int pm_picture_to_jpeg(struct pm_picture *p);
void pm_picture_free(struct pm_picture *p);
/* The return value of fill() for a failed picture: 0 for PM_EDATA if bad pictures are skipped, else
 * err. */
int pm_picture_failed(int err, int bad);
/* image/encoded, image/format, image/class/label, image/height, image/width. */
void pm_picture_add(struct pm_example_builder *b, const struct pm_picture *p, const char *format,
                    int64_t label);
void pm_add_text(struct pm_example_builder *b, const char *key, const char *text);

/* ---- records as the Inception trainer's builders write them ---- */

/* ymin, xmin, ymax, xmax, each 0..1. */
struct pm_boxes {
    const float *v; /* [count][4] */
    size_t count;
};
/* One split of ImageNet or of the generic builder: sources in a given order. */
struct pm_built {
    const struct pm_sources *sources;
    const uint32_t *order;        /* NULL: as listed */
    const char *const *texts;     /* of each label, or NULL */
    const char *const *synsets;   /* of each label, or NULL: no synset, no boxes are written */
    struct pm_boxes (*boxes)(void *ctx, const char *name); /* NULL without */
    void *ctx;
    int bad;
};
int pm_built_fill(void *ctx, size_t i, struct pm_example_builder *b);
/* Writes a split of s->sources, shuffled as Python does, into that many files SPLIT-00000-of-00002;
 * s->order is set for it. */
int pm_built_split(struct pm_making *m, const char *split, struct pm_built *s, uint64_t seed,
                   size_t shards);

#endif
