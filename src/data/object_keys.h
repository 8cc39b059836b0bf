/* object_keys, internal to data/: the keys of objects in records, for reading and writing. */
#ifndef PUMICE_DATA_OBJECT_KEYS_H
#define PUMICE_DATA_OBJECT_KEYS_H

#include <pumice/objects.h>

static const char *const box_keys[4] = { "image/object/bbox/ymin", "image/object/bbox/xmin",
                                         "image/object/bbox/ymax", "image/object/bbox/xmax" };
static const char *const rotated_keys[5] = { "image/object/rbbox/cy", "image/object/rbbox/cx",
                                             "image/object/rbbox/h", "image/object/rbbox/w",
                                             "image/object/rbbox/ang" };
static const char sensor_key[] = "image/sensor";
static const char gsd_key[] = "image/gsd";
static const char label_key[] = "image/object/class/label";
static const char inception_label_key[] = "image/object/bbox/label"; /* of the Inception trainer */
static const char scores_key[] = "image/object/class/multiclass_scores";
static const char mask_key[] = "image/object/mask";
static const char rle_key[] = "image/object/mask/rle"; /* Pumice's own */
static const char point_y_key[] = "image/object/keypoint/y";
static const char point_x_key[] = "image/object/keypoint/x";
static const char visibility_key[] = "image/object/keypoint/visibility";
static const char point_text_key[] = "image/object/keypoint/text";
static const char point_count_key[] = "image/object/keypoint/num";
static const char depth_key[] = "image/object/keypoint/z";
static const char depth_weight_key[] = "image/object/keypoint/z/weights";
static const char track_key[] = "image/object/track/label";

/* A property with one value per object: its key and its place in struct pm_object. */
struct property {
    unsigned bit;
    const char *key;
    size_t at;
};
static const struct property texts[] = {
    { PM_HAS_TEXT, "image/object/class/text", offsetof(struct pm_object, text) },
    { PM_HAS_VIEW, "image/object/view", offsetof(struct pm_object, view) },
};
static const struct property numbers[] = {
    { PM_HAS_AREA, "image/object/area", offsetof(struct pm_object, area) },
    { PM_HAS_WEIGHT, "image/object/weight", offsetof(struct pm_object, weight) },
    { PM_HAS_MASK_WEIGHT, "image/object/mask/weight", offsetof(struct pm_object, mask_weight) },
};
static const struct property flags[] = {
    { PM_HAS_CROWD, "image/object/is_crowd", offsetof(struct pm_object, is_crowd) },
    { PM_HAS_DIFFICULT, "image/object/difficult", offsetof(struct pm_object, difficult) },
    { PM_HAS_GROUP_OF, "image/object/group_of", offsetof(struct pm_object, group_of) },
    { PM_HAS_TRUNCATED, "image/object/truncated", offsetof(struct pm_object, truncated) },
};

static inline void *field(struct pm_object *o, const struct property *p)
{
    return (char *)o + p->at;
}

#endif
