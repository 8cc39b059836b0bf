/* coco_json, internal to data/convert: the annotations of COCO's instances and person_keypoints
 * files, read in one pass. */
#ifndef PUMICE_DATA_CONVERT_COCO_JSON_H
#define PUMICE_DATA_CONVERT_COCO_JSON_H

#include <pumice/base.h>

struct pm_coco_category {
    int64_t id; /* 0..PM_MOST_LABEL_ID */
    const char *name;
    const char *const *points; /* [points_count] names of keypoints */
    int points_count;
};
struct pm_coco_image {
    int64_t id;
    const char *name; /* file inside the folder of pictures */
    int height, width;
    size_t first, count; /* its objects */
};
enum pm_coco_shape { PM_COCO_NONE, PM_COCO_POLYGONS, PM_COCO_RUNS, PM_COCO_TEXT };
struct pm_coco_object {
    int64_t id, image; /* id: -1 if the file has none */
    int64_t category;  /* its id in the file */
    int kind;          /* index of the category; -1: the file does not list it */
    double area;       /* -1: not in the file */
    double box[4];     /* x, y, width, height in pixels */
    bool crowd;
    enum pm_coco_shape shape;
    int height, width; /* of runs and text */
    size_t value, value_count; /* polygons, runs: in values; text: in texts */
    size_t point;              /* in points: [point_count][3] x, y, visibility */
    int point_count;
    size_t place; /* in the file, which orders the objects of an image */
};
struct pm_coco {
    struct pm_coco_category *category; /* owned, as the next six */
    size_t categories, categories_room;
    struct pm_coco_image *image; /* in the file's order */
    size_t images, images_room;
    struct pm_coco_object *object; /* sorted by image id */
    size_t objects, objects_room;
    /* Polygons: for each one the number of its corners, then x, y in fifths of a pixel. Runs: the
     * runs as uint32_t. */
    int32_t *value;
    size_t values, values_room;
    double *point;
    size_t points, points_room;
    struct pm_str texts; /* each ends with a zero */
    size_t strays;       /* annotations of images that the file does not list; dropped */
    size_t thin;         /* polygons of fewer than three corners; dropped */
    int most_points;     /* largest point_count */
};
/* Reads a file. shapes: keep segmentations, else skip them. Names are in a. PM_EDATA with the line
 * for: broken JSON, missing members, numbers out of range, file names outside the folder, names
 * that are not one line, odd polygons, two images of one id. The caller frees out with
 * pm_coco_free, also after an error. */
int pm_coco_read(const char *path, bool shapes, struct pm_arena *a, struct pm_coco *out);
/* PM_EDATA if an annotation has a category that the file does not list. */
int pm_coco_check_kinds(const struct pm_coco *c, const char *path);
/* Moves the keypoints of the annotations in `from` to those in `to` with the same id, and their
 * names to the categories. *unknown: annotations of `from` that `to` lacks. PM_EDATA if an id
 * appears twice. */
int pm_coco_merge_points(struct pm_coco *to, const char *to_path, const struct pm_coco *from,
                         const char *from_path, size_t *unknown);
void pm_coco_free(struct pm_coco *c);

#endif
