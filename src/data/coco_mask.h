/* coco_mask, internal to data/, tasks/ and app/: COCO's masks as runs of pixels, the same pixels as
 * pycocotools.
 *
 * Pixels are numbered by columns, top to bottom, then left to right. The runs are the lengths of
 * alternating stretches: the first is outside the object (it may be 0), the second inside, and so
 * on. Sizes are limited: a picture has at most PM_COCO_PIXELS pixels. */
#ifndef PUMICE_DATA_COCO_MASK_H
#define PUMICE_DATA_COCO_MASK_H

#include <pumice/base.h>

#define PM_COCO_PIXELS ((uint64_t)1 << 28)
/* Polygons are rasterised in fifths of a pixel. */
enum { PM_COCO_SCALE = 5, PM_COCO_MOST_COORDINATE = 1 << 24 };

struct pm_runs {
    int height, width;
    uint32_t *run; /* [count], owned: pm_runs_free */
    size_t count, capacity;
};
void pm_runs_free(struct pm_runs *r);

/* Converts a polygon's coordinate to fifths of a pixel as pycocotools rounds it. false if it is not
 * finite or outside -2^24..2^24 fifths. */
bool pm_coco_scaled(double v, int32_t *out);
/* Fills *out with the pixels inside a closed polygon. xy: `points` pairs x, y in fifths of a pixel
 * (pm_coco_scaled). Parts outside the picture are cut off. where: names the polygon in messages.
 * PM_EDATA if the picture is empty or too large, or the outline is longer than 2^26 fifths. */
int pm_runs_polygon(const int32_t *xy, size_t points, int height, int width, const char *where,
                    struct pm_runs *out);
/* Copies runs from a file. PM_EDATA if they do not add up to height x width. */
int pm_runs_counts(const uint32_t *run, size_t count, int height, int width, const char *where,
                   struct pm_runs *out);
/* Decodes COCO's compressed text: six bits per character. PM_EDATA for another character, a number
 * that ends too early or is out of range, or runs that do not add up to height x width. */
int pm_runs_text(const char *text, int height, int width, const char *where, struct pm_runs *out);
/* Appends the compressed text. */
void pm_runs_print(const struct pm_runs *r, struct pm_str *out);
/* Adds b's pixels to a's. Both have the same size. */
void pm_runs_unite(struct pm_runs *a, const struct pm_runs *b);
/* Fills *out with the mask in a larger picture of height x width pixels, whose pixel y, x is the
 * first one of r. The caller frees *out. */
void pm_runs_move(const struct pm_runs *r, int y, int x, int height, int width,
                  struct pm_runs *out);
/* Encodes pixels [height][width], row by row; values above 0 are inside. */
void pm_runs_encode(const uint8_t *pixels, int height, int width, struct pm_runs *out);
/* Returns a copy whose runs are in the arena. */
struct pm_runs pm_runs_copy(struct pm_arena *a, const struct pm_runs *from);
/* Sets pixels [height][width], row by row, to 1 inside the object and 0 outside. */
void pm_runs_decode(const struct pm_runs *r, uint8_t *pixels);
/* Number of pixels inside. */
uint64_t pm_runs_area(const struct pm_runs *r);
/* The overlap of a detection's mask d with the mask of a true object of the same size, as
 * pycocotools computes it: intersection over union; for a crowd, intersection over the area of d.
 * 0 if no pixel is in both masks. */
double pm_runs_overlap(const struct pm_runs *d, const struct pm_runs *truth, bool crowd);
/* The bounding box x, y, width, height in pixels, as pycocotools computes it; zeros for an empty
 * mask. */
void pm_runs_box(const struct pm_runs *r, uint32_t box[4]);

struct pm_objects;
/* Fills *out with the mask of object i, of o->height x o->width pixels. where: the record's name.
 * Masks of another form than run lengths are decoded first. PM_ECORRUPT as pm_objects_mask. The
 * caller frees *out, also after an error. (objects_mask.c) */
int pm_objects_runs(const struct pm_objects *o, size_t i, const char *where, struct pm_runs *out);

#endif
