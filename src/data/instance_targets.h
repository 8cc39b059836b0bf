/* instance_targets: targets of a net with instance heads. They are computed from a picture's class
 * map and instance map in the input's frame, after crop and flip. So a cropped thing has the centre
 * of its visible part.
 *
 * A segment is all pixels of one instance of a thing class. All pixels of a thing class without an
 * instance are also a segment: a crowd. Panoptic-DeepLab's rules (mode reference):
 *
 *   center          of each segment, including crowds: exp(-d^2 / (2 sigma^2)). d is the distance
 *                   from the pixel of the mean row and column, both truncated. The Gaussian is a
 *                   square of 6 sigma + 3 pixels, 0 outside; overlaps take the maximum
 *   center_weight   1; 0 in crowds and where the class is ignored
 *   offset          on segments (mean row - row, mean column - column), means not rounded;
 *                   0 elsewhere
 *   offset_weight   1 on instances; 0 elsewhere
 *   semantic_weight 1; small_weight on segments of less than small_area pixels; 0 in crowds, which
 *                   the semantic loss ignores, too
 *
 * The DeepLab fork's rules (mode seed4), as it would read these targets from pictures stored beside
 * its images:
 *
 *   center          round(255 * the same) / 2, of instances only
 *   offset          round of the magnitudes, without signs
 *   weights         1 everywhere
 *
 * Both modes store row offsets first; the fork's nets had column offsets first. UNVERIFIED for the
 * fork, because the programs that made its pictures are not known: sigma (the folder's name says
 * squares of 33 pixels, which sigma 5 gives), rounding, and crowds. The fork cropped and resized
 * the finished pictures together with the image. So its offsets kept their original length, and a
 * cropped thing kept the centre of the whole thing. Here both are those of the input. Records that
 * hold the pictures themselves are read as the fork did
 * (tasks/segmentation/segmentation_seed4.c). */
#ifndef PM_INSTANCE_TARGETS_H
#define PM_INSTANCE_TARGETS_H

#include <pumice/config.h>

/* Rules for the targets: Panoptic-DeepLab's, or those of the earlier DeepLab fork. */
enum pm_instance_mode { PM_INSTANCE_REFERENCE, PM_INSTANCE_SEED4 };
enum { PM_MAX_INSTANCE_SIGMA = 256 };
struct pm_instance_options {
    int mode;             /* enum pm_instance_mode */
    int sigma;            /* pixels, 1..PM_MAX_INSTANCE_SIGMA; 0: the mode's default, 8 or 5 */
    int small_area;       /* pixels */
    float small_weight;
    int num_classes;
    int ignore_label;     /* label of ignored pixels, a class or not; -1: none */
    int divisor;          /* divisor of the instance map */
    struct pm_ints things; /* classes below num_classes that have instances */
};
/* Returns the mode's options, except classes and things: small_area 4096, small_weight 3, divisor
 * 1000, ignore_label -1. */
struct pm_instance_options pm_instance_options_of(int mode);

/* Targets: [height][width]; offset and offset_weight [height][width][2], rows then columns. Every
 * element is written. */
struct pm_instance_target {
    float *center, *center_weight, *offset, *offset_weight, *semantic_weight;
};
/* Computes the targets. labels: classes; ignore_label and values that are no class are ignored.
 * instances: class * divisor + the instance's number, from 1 to divisor - 1. On pixels of a thing
 * class, any other value means no instance. On other pixels the value has no meaning. */
void pm_instance_targets(const struct pm_instance_options *o, const int32_t *labels,
                         const int32_t *instances, int height, int width,
                         const struct pm_instance_target *out);

#endif
