/* edge_labels: where the classes of a map meet, as classes of a map of its own: 0 is the band along the
 * edges, 1, 2, ... bands farther out, the last class what is left.
 *
 * An edge is what OpenCV's Canny finds in the map as it is, with thresholds 0 and 1: Sobel's 3x3
 * gradients of the class numbers (dx, dy; rows and columns beyond the border repeat it), their length
 * |dx| + |dy|, and of those the pixels that are not shorter than their two neighbours in the gradient's
 * direction (four directions; what lies outside has length 0). dx and dy are even or odd together, so
 * that no length is 1: each is 0 or above both thresholds, and nothing is left to hysteresis. Pixels of
 * the label that is ignored are no edge, but their number takes part in the gradients.
 *
 * Band k is what k + 1 dilations of the edges by a square of `width` pixels cover and k do not; the
 * square reaches width / 2 pixels up and to the left and one less the other way where width is even. */
#ifndef PM_EDGE_LABELS_H
#define PM_EDGE_LABELS_H

#include <pumice/data.h>

enum { PM_EDGE_IGNORE = UINT16_MAX }; /* where the map's label is ignored; no class can be it */

struct pm_edge_options {
    int classes;      /* at least 2 */
    int width;        /* of the dilations, in pixels; at least 1 */
    int ignore_label; /* of the map; -1: none */
};

/* out is of the map's size; freed with pm_label_free. */
void pm_edge_labels(const struct pm_edge_options *o, const struct pm_label *map,
                    struct pm_label *out);

#endif
