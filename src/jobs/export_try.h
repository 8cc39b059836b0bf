/* export_try: reads an exported file as other programs do, and compares its outputs with the
 * net's. */
#ifndef PM_EXPORT_TRY_H
#define PM_EXPORT_TRY_H

#include "checkpoints/match.h"

#include <pumice/export.h>

/* Runs the net and the net of `file` on the CPU on pictures of random numbers, and compares their
 * outputs. If the import does not know the layers that lead there, as suppression and the
 * crops of a detector, it compares the inputs of these layers instead, each computed from the
 * net's own values: of a detector of one stage, all boxes and scores before suppression; of a
 * decoder with attention, the sequence that it reads. name:
 * stands for the file in messages, since `file` is a temporary one. graph: the net's, which is in
 * the file. o: its options. Further outputs are compared, too, except those of a detector.
 *
 * If the model takes pixels or resizes pictures, what follows the net's input is compared of
 * detectors, and nothing of other nets. Nothing is compared if outputs are random (o->training).
 * If the model pastes masks, the factors of their pixels are compared with the definition, for
 * boxes and masks of random numbers (export_try_masks.h).
 *
 * values: of the checkpoint; NULL: the net's initial values, from seed. *difference: the largest
 * difference of a compared value divided by its largest number; NAN if nothing was compared, for
 * example because the file holds an operator that the import does not support. PM_EFAIL if it
 * exceeds 1e-4, or with pasted masks of more than 125 cells a side the bound of pm_try_masks_bound,
 * or if the net's own output is not finite. */
int pm_export_try(const char *file, const char *name, struct pm_net *net, const char *logits,
                  const struct pm_export *graph, const struct pm_export_options *o,
                  const struct pm_match *values, uint64_t seed, double *difference);

#endif
