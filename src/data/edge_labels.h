/* edge_labels: makes a map of bands around class borders from a label map. Class 0 is the band
 * along the edges; 1, 2, ... are bands farther out; the last class is the rest.
 *
 * Edges are those of OpenCV's Canny on the label map, with thresholds 0 and 1. It computes Sobel's
 * 3x3 gradients (dx, dy) of the class numbers; border rows and columns are repeated outside. The
 * gradient's length is |dx| + |dy|. An edge pixel is not shorter than its two neighbours in the
 * gradient's direction (four directions; outside the map the length is 0). dx and dy have the same
 * parity, so no length is 1. Each length is 0 or above both thresholds, so hysteresis has no
 * effect. Ignored pixels are no edges, but their label takes part in the gradients.
 *
 * Band k is the area that k + 1 dilations of the edges cover and k do not. The dilation is by a
 * square of `width` pixels. The square reaches width / 2 pixels up and left; if width is even, one
 * pixel less down and right. */
#ifndef PM_EDGE_LABELS_H
#define PM_EDGE_LABELS_H

#include <pumice/data.h>

enum { PM_EDGE_IGNORE = UINT16_MAX }; /* ignored pixels; larger than any class */

struct pm_edge_options {
    int classes;      /* at least 2 */
    int width;        /* of the dilation square in pixels; at least 1 */
    int ignore_label; /* ignore label of the map; -1: none */
};

/* Computes the bands. out has the map's size; the caller frees it with pm_label_free. */
void pm_edge_labels(const struct pm_edge_options *o, const struct pm_label *map,
                    struct pm_label *out);

#endif
