/* instance_group: groups a net's outputs (classes, heat of centres, offsets to the centres) into
 * segments: one per instance of things, one per class of stuff. */
#ifndef PM_INSTANCE_GROUP_H
#define PM_INSTANCE_GROUP_H

#include "data/instance_targets.h"

struct pm_group_options {
    int mode;             /* enum pm_instance_mode */
    float threshold;      /* minimum heat of a centre; NAN: 0.1, in seed4 127.5 of 255 */
    int nms_kernel;       /* rows and columns of the window in which a centre is the largest; odd */
    int top_k;            /* see pm_group_centers; below label_divisor */
    int stuff_area;       /* minimum pixels of a segment of stuff */
    int label_divisor;
    struct pm_ints things; /* classes with instances */
};

/* Maps of one picture, their rows `stride` elements apart (for probabilities and offsets, `stride`
 * pixels). */
struct pm_group_input {
    int height, width, stride, num_classes;
    const int32_t *classes;
    const float *heat;
    const float *offset;        /* y, x */
    const float *probabilities; /* of every class; NULL: scores are 0 */
};

struct pm_group_center { int y, x; float heat; };

struct pm_segment {
    int32_t id;      /* class * label_divisor + number within the class, from 1; stuff: 0 */
    int label;
    bool thing;
    int area;        /* pixels */
    double score;    /* mean probability of its class */
    float heat;      /* at the centre; things only, as are the next members */
    int center_y, center_x;
};

/* Value of pixels without a segment. */
enum { PM_VOID = -1 };
struct pm_segment_map {
    int height, width, count;
    int32_t *map;                /* [height][width] ids of segments, or PM_VOID; owned */
    struct pm_segment *segments; /* things in the order of their centres, then stuff by class;
                                  * owned */
};

/* Finds centres and returns their number; *out is freed with pm_free. Candidates are pixels with
 * heat above the threshold that no pixel in the surrounding window of nms_kernel exceeds; equal
 * neighbours are all candidates. If there are top_k or more, only those hotter than the top_k-th
 * remain. They are ordered by rows, then by columns. In seed4: the largest heat, scaled to 255, in
 * each 72 x 72 block among pixels of things, if it is at least the threshold; of these the top_k
 * hottest, ordered by heat. */
int pm_group_centers(const struct pm_group_options *o, const struct pm_group_input *in,
                     struct pm_group_center **out);
/* Assigns each pixel to the centre nearest to its place plus its offset: out [height][width], the
 * centre's number from 1, or 0. Among equally near centres the first is taken. Pixels that are not
 * of things get 0. In seed4 offsets are distances to the centre without sign, and pixels with a
 * squared distance of 3000 or more get 0. */
void pm_group_assign(const struct pm_group_options *o, const struct pm_group_input *in,
                     const struct pm_group_center *centers, int count, int32_t *out);
/* Makes the segments. An instance has the class of most of its pixels, the lowest if several are
 * equal. The pixels of a class of stuff are a segment if there are at least stuff_area. All other
 * pixels are void. */
void pm_group_segments(const struct pm_group_options *o, const struct pm_group_input *in,
                       struct pm_segment_map *out);
void pm_segment_map_free(struct pm_segment_map *p);

#endif
