/* anchor_search: tries other scales and aspect ratios for a net's anchors on a sample of pictures,
 * by matching them. Quantiles of the boxes' sizes alone would mislead: the coarse maps of a net
 * have too few cells for small anchors. */
#ifndef PM_ANCHOR_SEARCH_H
#define PM_ANCHOR_SEARCH_H

#include "layers/anchors.h"
#include "tasks/detection/anchor_fit.h"

/* A few pictures' boxes. */
struct pm_anchor_sample {
    struct pm_sampled_picture { int count; float *boxes; } *picture; /* owned, as are the boxes */
    size_t count, capacity;
};
/* Adds a picture's boxes with a weight above 0; they are copied. */
void pm_anchor_sample_add(struct pm_anchor_sample *s, const struct pm_truths *truths);
void pm_anchor_sample_free(struct pm_anchor_sample *s);

/* The maps of a net: grids, strides and offsets in 0..1, as pm_anchors_levels has them. */
struct pm_anchor_maps {
    bool multiscale;   /* options of multiscale_anchors, else of ssd_anchors */
    int height, width; /* of the input, in pixels */
    struct pm_anchor_levels levels; /* sizes are not used */
};
/* Matches the sample with the present anchors and with up to 64 others of the maps' kind. Appends
 * to text the options with the largest share of matched boxes, if it exceeds the present one by a
 * hundredth. Some tenths of a second. */
void pm_anchor_search(const struct pm_matcher *m, const struct pm_anchor_index *present,
                      const struct pm_anchor_maps *maps, const struct pm_anchor_sample *sample,
                      const struct pm_fit_needs *needs, struct pm_str *text);

#endif
