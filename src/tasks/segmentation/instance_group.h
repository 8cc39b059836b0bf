/* instance_group: what a net says of a picture, classes, heat of centres and offsets to them, to
 * segments: an instance each of the things, one segment for each class of stuff. */
#ifndef PM_INSTANCE_GROUP_H
#define PM_INSTANCE_GROUP_H

#include "data/instance_targets.h"

struct pm_group_options {
    int mode;             /* enum pm_instance_mode */
    float threshold;      /* of heat; NAN: 0.1, of seed4 127.5 of 255 */
    int nms_kernel;       /* rows and columns, odd, in which a centre is the largest */
    int top_k;            /* see pm_group_centers; below label_divisor */
    int stuff_area;       /* pixels of a segment of stuff, at least */
    int label_divisor;
    struct pm_ints things; /* classes of which instances are */
};

/* Maps of one picture, their rows `stride` elements apart (of probabilities and offsets so many pixels). */
struct pm_group_input {
    int height, width, stride, num_classes;
    const int32_t *classes;
    const float *heat;
    const float *offset;        /* y, x */
    const float *probabilities; /* of every class; NULL: scores are 0 */
};

struct pm_group_center { int y, x; float heat; };

struct pm_segment {
    int32_t id;      /* class * label_divisor + number among those of the class, from 1; stuff: 0 */
    int label;
    bool thing;
    int area;        /* pixels */
    double score;    /* mean probability of its class */
    float heat;      /* at the centre; things only, as what follows */
    int center_y, center_x;
};

/* PM_VOID: pixels of no segment. */
enum { PM_VOID = -1 };
struct pm_segment_map {
    int height, width, count;
    int32_t *map;                /* [height][width] ids of segments, or PM_VOID; owned */
    struct pm_segment *segments; /* things by the order of their centres, then stuff by class; owned */
};

/* Candidates are the pixels whose heat is above the threshold and which no pixel in a window of
 * nms_kernel around them exceeds, so that equal neighbours all are; when there are top_k or more, those
 * above the top_k-th's heat only. By rows, in each by columns. Of seed4: the largest heat, scaled to
 * 255, in each 72 x 72 block among pixels of things, at least the threshold; the top_k hottest, by heat.
 * *out is freed with pm_free; returns their number. */
int pm_group_centers(const struct pm_group_options *o, const struct pm_group_input *in,
                     struct pm_group_center **out);
/* Number from 1 of the nearest centre to each pixel's place plus its offset, the first of equally near
 * ones, or 0: out [height][width]. Pixels of no thing have 0. Of seed4: offsets are lengths towards
 * whichever side a centre is on, and 0 is at a squared distance of 3000. */
void pm_group_assign(const struct pm_group_options *o, const struct pm_group_input *in,
                     const struct pm_group_center *centers, int count, int32_t *out);
/* An instance has the class that most of its pixels have, the lowest of several; the pixels of stuff are
 * a segment when there are stuff_area of them; what is left is void. */
void pm_group_segments(const struct pm_group_options *o, const struct pm_group_input *in,
                       struct pm_segment_map *out);
void pm_segment_map_free(struct pm_segment_map *p);

#endif
