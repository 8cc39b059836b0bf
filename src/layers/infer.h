/* infer: checks of inputs, used by infer() functions. */
#ifndef PUMICE_INFER_H
#define PUMICE_INFER_H

#include <pumice/layer.h>

/* Fails with PM_ECONFIG and the input's name unless inputs first..last hold floats. Inputs that do
 * not exist are skipped. */
int pm_need_floats(const struct pm_node *n, int first, int last);
/* Fails with PM_ECONFIG and the input's name unless each input holds its type of types[n->inputs].
 * Input `either` may hold float32 or int32; -1: none may. names: those of all inputs, for the
 * message. */
int pm_need_types(const struct pm_node *n, const enum pm_type *types, int either,
                  const char *names);
/* Whether the shape is that of sequences: [n, t, c], or [n, 1, t, c] as a map of one row. */
bool pm_is_sequence(struct pm_shape s);
/* Whether the input has this shape. */
bool pm_input_is_shape(const struct pm_node *n, int input, struct pm_shape wanted);
/* Checks inputs 0 and 1: maps [n * R, h, w, numbers] of R boxes [n, R, 4] of each image. Messages
 * call the maps logits, their numbers `numbers`, and what each box needs `need`. Returns PM_ECONFIG
 * with one line. */
int pm_need_box_maps(const struct pm_node *n, const char *numbers, const char *need);
/* Checks the input truth_keypoints, number `input`: [images, M, keypoints, 2]. Returns PM_ECONFIG
 * with one line. */
int pm_need_keypoints(const struct pm_node *n, int input, int images, int keypoints);
/* Returns the number of the first input from `first` on that has this type; -1: there is none. For
 * optional inputs that differ in type. */
int pm_optional_input(const struct pm_node *n, int first, enum pm_type type);
/* The name of a type in messages: "float32", "int32", "uint32" or "uint8". Static. */
const char *pm_type_name(enum pm_type t);

#endif
