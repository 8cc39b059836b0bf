/* dataset_boxes, internal to app/: the objects of records, for dataset inspect. */
#ifndef PUMICE_APP_DATASET_BOXES_H
#define PUMICE_APP_DATASET_BOXES_H

#include <pumice/draw.h>
#include <pumice/objects.h>

/* Returns the number of an object's class: its text's in the map, or its label if it has no text or
 * the map no classes; 0: unknown. */
int app_object_class(const struct pm_object *o, const struct pm_label_map *map);
/* Returns the class's name for people: the map's display name or name, else the record's text, else
 * "class 7", in buf. */
const char *app_object_name(const struct pm_object *o, const struct pm_label_map *map, char *buf,
                            size_t size);
/* Draws the record's objects into its picture: masks, boxes with the names of the classes,
 * keypoints. Boxes of crowds and groups are dashed, hidden keypoints are rings. A small picture is
 * enlarged. The caller frees out with pm_image_free. PM_ECORRUPT if the picture or an object is
 * damaged. Returns 1, or 0 if the record has no picture or no list of boxes. */
int app_draw_objects(const struct pm_example *e, const struct pm_label_map *map, const char *where,
                     struct pm_image8 *out);
/* Saves the picture with its objects, or a word's with its key points (dataset_words.h), as the PNG
 * file `path` in this folder, which is made; nothing if the record has neither. folder NULL: does
 * nothing. */
int app_save_drawn(const struct pm_example *e, const struct pm_label_map *map, const char *where,
                   const char *folder, const char *path);

#endif
