/* objects: the annotated objects of one picture (boxes, classes, masks, keypoints), and the label
 * map that gives classes their numbers.
 *
 * Records have the keys of TensorFlow's Object Detection API. Boxes are ymin, xmin, ymax, xmax in
 * 0..1; a record stores each coordinate as one list. Class numbers of records begin at 1, because
 * 0 is the background.
 *
 * A data set may have rotated boxes. Then each object has five more numbers, and its upright box is
 * the one around its rotated box, cut at the picture's border. So everything that needs upright
 * boxes (a detector of upright boxes, crops, checks) works with such data, too. */
#ifndef PUMICE_OBJECTS_H
#define PUMICE_OBJECTS_H

#include <pumice/data.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- label maps ------------------------------------------------------------------------ */

enum { PM_MOST_LABEL_ID = (1 << 20) - 1 };

struct pm_label_item {
    int id;                   /* 1..PM_MOST_LABEL_ID; 0: only the background */
    const char *name;         /* one line; records name the class like this */
    const char *display_name; /* one line, for people; or NULL */
    const char *const *points; /* [points_count] names of the keypoints by id from 0; or NULL.
                                * Entries may be NULL */
    int points_count;
};
/* Classes in a file's order. Ids are unique and may have gaps. */
struct pm_label_map {
    const struct pm_label_item *item; /* [count], in the arena of the reader */
    int count;
};
/* Reads a label map: protobuf's text form of TensorFlow's StringIntLabelMap, as in
 *     item { name: 'cat' id: 1 display_name: "a cat" }
 * or JSON: a list of objects with the members id, name, display_name (optional) and keypoints
 * (optional: a list of objects with id and label), or an object whose member "item" is that list.
 * The format follows from the first character: '[' and '{' begin JSON. The texts are in a. PM_EDATA
 * with the line for: a syntax error, a missing name or id, a negative, too large or repeated id, id
 * 0 of another class than "background", a repeated name, a name that is not one line, a file
 * without items. */
int pm_label_map_read(struct pm_arena *a, const char *path, struct pm_label_map *out);
/* The same from a text. where: the file's name for messages. */
int pm_label_map_parse(struct pm_arena *a, const char *text, const char *where,
                       struct pm_label_map *out);
/* Reads the label map of a data folder: "box_labels" in dataset.json, else label_map.pbtxt, else
 * labels.txt with its names and numbers. PM_EDATA if none exists or one is damaged. */
int pm_label_map_of_folder(struct pm_arena *a, const char *folder, struct pm_label_map *out);
/* Checks a map that a program made, as a read one: PM_EDATA for the mistakes above. where: its
 * source for messages. */
int pm_label_map_check(const struct pm_label_map *map, const char *where);
/* Writes protobuf's text form. */
void pm_label_map_print(const struct pm_label_map *map, struct pm_str *out);
/* Returns the JSON list of {id, name, display_name}, without keypoints. The caller frees it. */
struct cJSON *pm_label_map_json(const struct pm_label_map *map);
/* Copies the map and its texts into a. */
void pm_label_map_copy(struct pm_arena *a, const struct pm_label_map *from,
                       struct pm_label_map *out);
/* Returns the id of a class by its name or display name; -1 for an unknown one. If the text is the
 * name of one class and the display name of another, the higher id counts, as in TensorFlow. */
int pm_label_map_find(const struct pm_label_map *map, const char *text);
/* Returns the item with this id, or NULL. */
const struct pm_label_item *pm_label_map_item(const struct pm_label_map *map, int64_t id);
/* Returns the known name that is nearest to text, or NULL. */
const char *pm_label_map_nearest(const struct pm_label_map *map, const char *text);

/* ---- objects --------------------------------------------------------------------------- */

struct pm_keypoint {
    float y, x;     /* 0..1 spans the picture; 0, 0 if it is not labelled */
    int visibility; /* 0: not labelled, 1: labelled but hidden, 2: visible */
    float z, z_weight; /* depth and its weight, with PM_HAS_DEPTH */
};
struct pm_object {
    float box[4];        /* ymin, xmin, ymax, xmax; 0..1 spans the upright picture */
    /* With PM_HAS_ROTATED: cy, cx, h, w as shares of the upright picture's height (cy, h) and width
     * (cx, w), and the angle in radians, clockwise on the screen, within a quarter turn. The box is
     * a rectangle in pixels. w is usually the long side. The box may reach beyond the picture. */
    float rotated[5];
    const char *text;    /* class name; NULL without PM_HAS_TEXT, or if the record's is empty */
    int64_t label;       /* class number of the label map, >= 1; 0: unknown */
    float area;          /* pixels of the annotated shape, not of the box */
    float weight;        /* of its loss, >= 0; usually 1 */
    bool is_crowd;       /* the box is around many objects */
    bool difficult;      /* Pascal VOC: ignored by the usual evaluation */
    bool group_of;       /* Open Images: more than five objects that touch */
    bool truncated;      /* Pascal VOC, KITTI: part of the object is outside the picture */
    const char *view;    /* Pascal VOC's pose, e.g. "Frontal"; or NULL */
    /* A mask: a picture file of the mask, usually a grey PNG, or numbers [height][width]. Values
     * above 0 are the object. With PM_HAS_RLE mask is the compressed text of COCO's mask API for
     * the upright picture, without a zero at its end. The mask belongs to the owner of the record
     * or of the objects. */
    const uint8_t *mask;
    size_t mask_size;
    const float *mask_values;
    float mask_weight;             /* >= 0; usually 1 */
    struct pm_keypoint *keypoints; /* [points of the picture]; NULL without keypoints */
    const float *scores;           /* [score_count of the picture]: soft labels; or NULL */
    int64_t track;                 /* number of the object in a video, >= 0 */
};
/* The lists that a record has, apart from the boxes. */
enum {
    PM_HAS_TEXT = 1 << 0,
    PM_HAS_LABEL = 1 << 1,
    PM_HAS_AREA = 1 << 2,
    PM_HAS_CROWD = 1 << 3,
    PM_HAS_DIFFICULT = 1 << 4,
    PM_HAS_GROUP_OF = 1 << 5,
    PM_HAS_TRUNCATED = 1 << 6,
    PM_HAS_VIEW = 1 << 7,
    PM_HAS_WEIGHT = 1 << 8,
    PM_HAS_MASK = 1 << 9,
    PM_HAS_MASK_WEIGHT = 1 << 10,
    PM_HAS_KEYPOINTS = 1 << 11,
    PM_HAS_SCORES = 1 << 12,
    PM_HAS_TRACK = 1 << 13,
    PM_HAS_DEPTH = 1 << 14,
    PM_HAS_RLE = 1 << 15, /* with PM_HAS_MASK: the masks are run lengths */
    PM_HAS_ROTATED = 1 << 16,
};
struct pm_objects {
    struct pm_object *item; /* [count], owned: pm_objects_free */
    size_t count, capacity;
    unsigned has;           /* PM_HAS_...: lists that parse found, or that add writes */
    int height, width;      /* of the upright picture in pixels; 0: the record does not have them */
    int points;             /* keypoints per object */
    const char *const *point_names; /* [points], or NULL; parse: of the first object */
    int score_count;                /* classes in scores */
    /* Classes by their numbers that are known to be absent, or not annotated in full (LVIS, Open
     * Images). In the arena. */
    const int64_t *absent, *incomplete;
    size_t absent_count, incomplete_count;
    const char *sensor; /* that took a picture from the air, in the arena; NULL: unknown */
    float gsd;          /* ground sampling distance: metres per pixel; 0: unknown */
    struct pm_arena *arena; /* owned: texts and keypoints */
};
/* Initialises an empty list for a picture of that size. pm_objects_free frees it. */
void pm_objects_start(struct pm_objects *o, int height, int width);
void pm_objects_free(struct pm_objects *o);
/* Adds an object with weights of 1 and the rest 0, and returns it. The pointer is valid until the
 * next call. */
struct pm_object *pm_objects_add(struct pm_objects *o);
/* Returns a zeroed array of o->points keypoints in o's arena. */
struct pm_keypoint *pm_objects_points(struct pm_objects *o);

/* Reads the objects of a record: image/object/bbox/{ymin,xmin,ymax,xmax}, class/{text,label,
 * multiclass_scores}, area, is_crowd, difficult, group_of, truncated, view, weight, mask or
 * mask/rle, mask/weight, track/label, keypoint/{x,y,visibility,text,z,z/weights}, rbbox/{cy,cx,h,w,
 * ang}, and image/{height,width,neg_category_ids,not_exhaustive_category_ids,sensor,gsd}. A record
 * without class/text and class/label may have image/object/bbox/label instead, as the Inception
 * trainer's. A record without boxes has no objects. Keypoints without visibility are visible.
 * A record may have rbbox alone; the upright boxes are then made from it. Angles up to a full turn
 * are wrapped into a quarter turn.
 *
 * masks: read masks, too; they are borrowed from e and not decoded. image/object/mask/rle is
 * Pumice's own key: a text of run lengths for each object, which needs less memory and time than a
 * PNG. A record has one of the two keys. where: the record's name.
 * PM_ECORRUPT, with record, object (from 1) and value, for: lists of unequal lengths or of another
 * type, numbers that are not finite, a box whose minimum is above its maximum, a coordinate outside
 * -10..10 (pixels instead of 0..1), negative numbers of classes, areas, weights and sides, an angle
 * beyond a full turn (degrees instead of radians), rotated boxes in a record without a size, flags
 * other than 0 and 1, a name that is not one line. The caller frees out with pm_objects_free, also
 * after an error. */
int pm_objects_parse(const struct pm_example *e, bool masks, const char *where,
                     struct pm_objects *out);
/* Adds the boxes and the lists in o->has to a record. Objects without a text, view or mask get an
 * empty one. Sizes are not added: the picture's writer does that. */
void pm_objects_write(const struct pm_objects *o, struct pm_example_builder *b);
/* Whether an object has a mask; the mask may be damaged. */
bool pm_object_has_mask(const struct pm_object *o);
/* Decodes the mask of object i: out[o->height * o->width] becomes 1 in the object, 0 outside.
 * PM_ECORRUPT if the mask is damaged, has another size than the picture, or is missing. Run lengths
 * do not state a size: they must add up to the picture's pixels. */
int pm_objects_mask(const struct pm_objects *o, size_t i, const char *where, uint8_t *out);
/* Sets label of every object from its text, or checks its label if it has no text. Drops objects
 * without a text and with label 0: they have no class, and TensorFlow drops them, too. PM_ECORRUPT
 * for a class that the map lacks; the message has the record, the object (from 1) and the nearest
 * name. After an error the list is valid, but some labels are not set. */
int pm_objects_resolve(struct pm_objects *o, const struct pm_label_map *map, const char *where);

/* ---- the filter of boxes --------------------------------------------------------------- */

struct pm_object_filter {
    bool error;      /* a degenerate box is an error instead of dropped */
    double min_side; /* pixels: drop a box with a smaller side after clipping; 0: keep all */
};
/* Counts of one or several pictures. */
struct pm_object_counts {
    size_t pictures, empty; /* empty: pictures without a kept object */
    size_t boxes, crowds;   /* kept; boxes includes crowds */
    size_t degenerate;      /* dropped: a side of zero or less, or not finite */
    size_t outside;         /* dropped: no part of it is in the picture */
    size_t small;           /* dropped: below min_side */
    size_t clipped;         /* kept, but cut at the picture's border */
};
/* Drops and clips boxes in place; the order of the others stays. Sides are compared in pixels, for
 * which o->height and o->width must be above 0. counts: the picture is added to them. A reversed
 * box is degenerate. With PM_HAS_ROTATED the rotated boxes decide: one without any part in the
 * picture is outside; min_side is of its own sides; it is not clipped, but the upright box, which
 * is made anew from it, is. PM_EDATA with error for a degenerate box: record, object (from 1),
 * box. */
int pm_objects_filter(struct pm_objects *o, const struct pm_object_filter *f, const char *where,
                      struct pm_object_counts *counts);
/* Adds b's counts to a's. */
void pm_object_counts_add(struct pm_object_counts *a, const struct pm_object_counts *b);
/* Formats "80 pictures (2 without boxes), 739 boxes (8 crowds), 1 dropped without area". */
void pm_object_counts_print(const struct pm_object_counts *c, struct pm_str *out);

/* ---- making data folders --------------------------------------------------------------- */

/* Sets the classes of boxes: finish writes them as "box_labels" to dataset.json and as
 * label_map.pbtxt. The map is copied. */
void pm_making_box_labels(struct pm_making *m, const struct pm_label_map *map);

#ifdef __cplusplus
}
#endif

#endif
