/* export_texts: adds the operators that read the texts from the logits of CTC (struct
 * pm_export_options, texts). */
#ifndef PM_ONNX_EXPORT_TEXTS_H
#define PM_ONNX_EXPORT_TEXTS_H

#include "onnx/export_graph.h"

/* Values of the graph: symbols [n, steps], filled up with -1, and lengths [n], both int32, and
 * scores [n], float32. */
struct pm_export_texts {
    const char *symbols, *lengths, *scores;
};
/* Reads the logits x, a value of the graph of shape s: [n, steps, classes], or
 * [n, 1, steps, classes], which is NCHW there. The blank is the last class. */
struct pm_export_texts pm_export_read_texts(struct pm_export *g, const char *x, struct pm_shape s);

#endif
