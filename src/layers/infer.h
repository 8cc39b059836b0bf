/* infer: checks of inputs, used by infer() functions. */
#ifndef PUMICE_INFER_H
#define PUMICE_INFER_H

#include <pumice/layer.h>

/* Fails with PM_ECONFIG and the input's name unless inputs first..last hold floats. Inputs that do
 * not exist are skipped. */
int pm_need_floats(const struct pm_node *n, int first, int last);
/* The name of a type in messages: "float32", "int32", "uint32" or "uint8". Static. */
const char *pm_type_name(enum pm_type t);

#endif
