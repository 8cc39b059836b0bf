/* instance_targets: what a net with heads for instances is to give for a picture, made of its map of
 * classes and its map of instances as they stand in the input (after crop and flip, so that a thing
 * that is cut has the centre of its visible part).
 *
 * A segment is all pixels of one instance of a thing class, and all pixels of a thing class that are of
 * no instance: a crowd. Panoptic-DeepLab's rules (mode reference):
 *
 *   center          of each segment, crowds too: exp(-d^2 / (2 sigma^2)), d from the pixel of the mean
 *                   row and column, both cut to whole numbers; a square of 6 sigma + 3 pixels around it,
 *                   0 outside; the largest where several overlap
 *   center_weight   1; 0 in crowds and where the class is ignored
 *   offset          on segments (mean row - row, mean column - column), means not rounded; 0 elsewhere
 *   offset_weight   1 on instances; 0 elsewhere
 *   semantic_weight 1; small_weight on segments of less than small_area pixels; 0 in crowds, which the
 *                   classes' loss ignores, too
 *
 * The DeepLab fork's (mode seed4), as it would read them from the pictures that it had beside its
 * images:
 *
 *   center          round(255 * the same) / 2, of instances only
 *   offset          round of the magnitudes, without signs
 *   weights         1 everywhere
 *
 * Rows' offsets come first in both; the fork's nets had columns' first. UNVERIFIED of the fork, whose
 * programs that made those pictures are not known: sigma (the folder's name says squares of 33 pixels, as
 * 5 gives), rounding, and crowds. It moved and resized the finished pictures with the image, so that
 * offsets kept the length they had in the original and a cut thing the centre of its whole; here they are
 * those of the input. Records with the pictures themselves are taken as it did
 * (tasks/segmentation/segmentation_seed4.c). */
#ifndef PM_INSTANCE_TARGETS_H
#define PM_INSTANCE_TARGETS_H

#include <pumice/config.h>

/* Whose targets: Panoptic-DeepLab's, or those of the fork before it. */
enum pm_instance_mode { PM_INSTANCE_REFERENCE, PM_INSTANCE_SEED4 };
enum { PM_MAX_INSTANCE_SIGMA = 256 };
struct pm_instance_options {
    int mode;             /* enum pm_instance_mode */
    int sigma;            /* pixels, 1..PM_MAX_INSTANCE_SIGMA; 0: the mode's, 8 or 5 */
    int small_area;       /* pixels */
    float small_weight;
    int num_classes;
    int ignore_label;     /* of pixels that do not count, a class or none; -1: there are none */
    int divisor;          /* of the instance map */
    struct pm_ints things; /* classes below num_classes that instances are of */
};
/* Of the mode, with all but classes and things: small_area 4096, small_weight 3, divisor 1000,
 * ignore_label -1. */
struct pm_instance_options pm_instance_options_of(int mode);

/* All [height][width], offset and offset_weight [height][width][2]: rows, then columns. Every element is
 * written. */
struct pm_instance_target {
    float *center, *center_weight, *offset, *offset_weight, *semantic_weight;
};
/* labels: classes; ignore_label and whatever is no class is ignored. instances: class * divisor + the instance's number,
 * from 1 to divisor - 1; on pixels of a thing class any other value says that it is of no instance, on
 * others it means nothing. */
void pm_instance_targets(const struct pm_instance_options *o, const int32_t *labels,
                         const int32_t *instances, int height, int width,
                         const struct pm_instance_target *out);

#endif
