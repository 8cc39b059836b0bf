/* infer: what infer() functions check of their inputs. */
#ifndef PUMICE_INFER_H
#define PUMICE_INFER_H

#include <pumice/layer.h>

/* PM_ECONFIG, naming the input, unless inputs first..last (as far as they exist) hold floats. */
int pm_need_floats(const struct pm_node *n, int first, int last);

#endif
