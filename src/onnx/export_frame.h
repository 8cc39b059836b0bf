/* export_frame: what of an ONNX graph stands around the net's own input and maps, so that smaller
 * pictures come in and their maps out (struct pm_export_frame). */
#ifndef PM_ONNX_EXPORT_FRAME_H
#define PM_ONNX_EXPORT_FRAME_H

#include "onnx/export_graph.h"

/* The picture x, a value of the graph, as the net's input of shape s. */
const char *pm_export_frame_in(struct pm_export *g, const char *x, struct pm_shape s);
/* The part of a map of shape s that is the picture's, at the picture's size. */
const char *pm_export_frame_out(struct pm_export *g, const char *x, struct pm_shape s, bool nearest);
/* Rows and columns of the net's input as those of the picture; a map of two channels. */
const char *pm_export_frame_lengths(struct pm_export *g, const char *x);

#endif
