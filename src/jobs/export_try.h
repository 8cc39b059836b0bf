/* export_try: an exported file read again as other programs would, and run beside the net. */
#ifndef PM_EXPORT_TRY_H
#define PM_EXPORT_TRY_H

#include "checkpoints/match.h"

#include <pumice/export.h>

/* Runs the net and the net of `file` on the CPU on pictures of random numbers, and compares their outputs.
 * name: stands for the file in messages, since `file` is a temporary one. o: of the export, whose further
 * outputs are not compared. *difference: the largest difference of outputs over the largest of them; NAN
 * where the file holds an operator that the import of models does not know. PM_EFAIL where it is above
 * 1e-4, or the net's own output is not finite. */
int pm_export_try(const char *file, const char *name, struct pm_net *net, const char *logits,
                  const struct pm_export_options *o, const struct pm_match *values,
                  double *difference);

#endif
