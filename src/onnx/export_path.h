/* export_path: adds the operators that read the best path from the logits of CTC
 * (PM_END_BEST_PATH). */
#ifndef PM_ONNX_EXPORT_PATH_H
#define PM_ONNX_EXPORT_PATH_H

#include "onnx/export_graph.h"

/* Values of the graph: symbols [n, steps], filled up with -1, and lengths [n], both int32, and
 * scores [n], float32. */
struct pm_export_path {
    const char *symbols, *lengths, *scores;
};
/* Reads the logits x, a value of the graph of shape s: [n, steps, classes], or
 * [n, 1, steps, classes], which is NCHW there. The blank is the last class. */
struct pm_export_path pm_export_best_path(struct pm_export *g, const char *x, struct pm_shape s);

#endif
