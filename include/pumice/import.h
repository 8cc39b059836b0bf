/* import: nets out of ONNX models. A model's nodes become layers, its weights variables that are named
 * after the initializers; images stay [n, h, w, c] from layer to layer, and what ONNX says of axes is
 * kept as a view of each value (src/onnx/view.h), so that values move only where a layer needs them in
 * another order. Which operators there are: src/onnx/ops.def. */
#ifndef PUMICE_IMPORT_H
#define PUMICE_IMPORT_H

#include <pumice/net.h>
#include <pumice/onnx.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pm_import; /* an open model; must outlive the first use of its nets' variables */
struct pm_import_facts {
    int height, width, channels; /* of the images; 0 = the model takes any */
    bool channels_last;          /* its images are [n, h, w, c] */
};
struct pm_import_options {
    const char *logits; /* the value that is the logits; NULL or "": the model's first output */
    bool whole;         /* a Softmax at the end stays, the output keeps its shape; else it is dropped
                           and the output is [n, classes] */
    bool any_shape;     /* logits of other shapes are taken: maps [n, classes, h, w], whose node then is
                           [n, h, w, classes], and those of other ranks above 2, whose node has the
                           elements in ONNX's order */
    int new_head;       /* classes of a fresh last layer that takes the last one's place; 0 = none */
};

int pm_import_open(const char *path, struct pm_import **out);
/* The model becomes the import's own, also on failure. */
int pm_import_open_model(struct pm_onnx_model *model, struct pm_import **out);
void pm_import_close(struct pm_import **i);
const struct pm_onnx_model *pm_import_model(const struct pm_import *i);
int pm_import_facts(struct pm_import *i, struct pm_import_facts *out);
/* How many values the logits have for pictures of this shape, or, of maps, for a pixel. */
int pm_import_classes(struct pm_import *i, struct pm_shape picture,
                      const struct pm_import_options *options, int *out);

/* Adds the model's layers to net behind images [n, h, w, c]. PM_ECONFIG names what is not supported,
 * the first node of each operator and reason, or what does not fit. */
int pm_import_net(struct pm_import *i, struct pm_net *net, struct pm_node *images,
                  const struct pm_import_options *options, struct pm_heads *heads);
/* The same for a model of any inputs: inputs[k] has the elements of the model's input k in ONNX's own
 * order, of whatever rank. *out has the elements of the output in that order. */
int pm_import_graph(struct pm_import *i, struct pm_net *net, struct pm_node *const *inputs,
                    const struct pm_import_options *options, struct pm_node **out);

/* The table of operators for the documentation; freed with pm_free. */
char *pm_import_markdown(void);

#ifdef __cplusplus
}
#endif

#endif
