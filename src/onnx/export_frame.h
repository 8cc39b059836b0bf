/* export_frame: adds the operators around the net's input and maps that accept smaller pictures and
 * return maps of their size (struct pm_export_frame). */
#ifndef PM_ONNX_EXPORT_FRAME_H
#define PM_ONNX_EXPORT_FRAME_H

#include "onnx/export_graph.h"

/* Resizes and pads the picture x, a value of the graph, to the net's input of shape s. */
const char *pm_export_frame_in(struct pm_export *g, const char *x, struct pm_shape s);
/* Crops a map of shape s to the picture and resizes it to the picture's size. */
const char *pm_export_frame_out(struct pm_export *g, const char *x, struct pm_shape s,
                                bool nearest);
/* Returns the part of the net's input that the picture fills: a value [4], its height, width,
 * height and width in 0..1 of the input. NULL without a frame: the picture is the input. For rows
 * of layers, too. */
const char *pm_export_frame_part(struct pm_export *g);
/* Converts boxes, a value whose last axis is a box in 0..1 of the net's input, to 0..1 of the
 * picture; points: the last axis is a point y, x. Without a frame they stay the same. */
const char *pm_export_frame_places(struct pm_export *g, const char *x, bool points);
/* Converts a map of two channels from rows and columns of the net's input to those of the
 * picture. */
const char *pm_export_frame_lengths(struct pm_export *g, const char *x);

#endif
