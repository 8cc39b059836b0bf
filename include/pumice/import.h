/* import: converts ONNX models to nets. Nodes become layers; weights become variables with the
 * names of the initializers. Images stay [n, h, w, c] from layer to layer. ONNX's order of axes is
 * kept as a view of each value (src/onnx/view.h), so that data are transposed only if a layer needs
 * another order. src/onnx/ops.def lists the supported operators. */
#ifndef PUMICE_IMPORT_H
#define PUMICE_IMPORT_H

#include <pumice/net.h>
#include <pumice/onnx.h>

#ifdef __cplusplus
extern "C" {
#endif

struct pm_import; /* an open model; must outlive the initialisation of its nets' variables */
struct pm_import_facts {
    int height, width, channels; /* of the images; 0 = any */
    bool channels_last;          /* the model's images are [n, h, w, c] */
};
struct pm_import_options {
    const char *logits; /* name of the value with the logits; NULL or "": the first output */
    bool whole;         /* keep a final Softmax and the shape of the output; otherwise the Softmax
                           is removed and the output is [n, classes] */
    bool any_shape;     /* also accept logits of other shapes: maps [n, classes, h, w], whose node
                           is [n, h, w, classes], and other ranks above 2, whose node has the
                           elements in ONNX's order */
    int new_head;       /* replace the last layer by a new one with so many classes; 0 = keep it */
    /* Values of the model at which the graph is cut. Nodes of the net stand for them, and what
     * leads to them is not converted. Nodes of rank 4 are [n, h, w, c] and stand for values
     * [n, c, h, w]; others keep their axes. A name that the model lacks is PM_ECONFIG. */
    const struct pm_import_cut {
        const char *name; /* of an input, or of a node's output */
        struct pm_node *node;
    } *cuts;
    int cut_count;
};

int pm_import_open(const char *path, struct pm_import **out);
/* Takes ownership of the model. */
int pm_import_open_model(struct pm_onnx_model *model, struct pm_import **out);
void pm_import_close(struct pm_import **i);
const struct pm_onnx_model *pm_import_model(const struct pm_import *i);
int pm_import_facts(struct pm_import *i, struct pm_import_facts *out);
/* Number of logits for pictures of this shape; for maps, per pixel. */
int pm_import_classes(struct pm_import *i, struct pm_shape picture,
                      const struct pm_import_options *options, int *out);

/* Adds the model's layers to net, with images [n, h, w, c] as input. PM_ECONFIG names the
 * unsupported operators (the first node for each operator and reason), or the values that do not
 * fit. */
int pm_import_net(struct pm_import *i, struct pm_net *net, struct pm_node *images,
                  const struct pm_import_options *options, struct pm_heads *heads);
/* The same for a model with any inputs: inputs[k] has the elements of the model's input k in ONNX's
 * order, with any rank. *out has the elements of the output in that order. */
int pm_import_graph(struct pm_import *i, struct pm_net *net, struct pm_node *const *inputs,
                    const struct pm_import_options *options, struct pm_node **out);

/* The table of operators for the documentation; freed with pm_free. */
char *pm_import_markdown(void);

#ifdef __cplusplus
}
#endif

#endif
