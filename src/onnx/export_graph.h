/* export_graph: an ONNX graph while it is written. */
#ifndef PM_EXPORT_GRAPH_H
#define PM_EXPORT_GRAPH_H

#include <pumice/export.h>

#include "onnx/export_nodes.h"

/* What batch norm behind a node makes of its sums: scale z + shift, per output channel. */
struct pm_export_fold {
    const float *scale, *shift;
};
struct pm_export {
    struct pm_onnx_model *model; /* owned; its arena holds all of this but what is said */
    const struct pm_net *net;    /* borrowed, as options' own */
    struct pm_export_options options;
    const struct pm_node *node;  /* whose operators are appended now */
    const char **value;          /* [nodes] y of each node done; NULL */
    int *readers;                /* [nodes] how often it is read on the way to the logits */
    const struct pm_node **reader;      /* [nodes] the last of them */
    const struct pm_export_fold **fold; /* [nodes] NULL: nothing is folded into it */
    bool *is_variable;           /* [variables] has its initializer */
    const char *picture_size, *framed_size; /* values of a frame: height and width that come in, and
                                             * after resizing */
    float *cache;                /* owned: values of variable `cached`, -1: none */
    int cached;
    int error;                   /* first one */
};

/* What an initializer's fill needs. */
struct pm_export_source {
    struct pm_export *g;
    const struct pm_variable *v;
    bool perm;            /* [h][w][i][o] to [o][i][h][w] */
    const float *scale;   /* per o, or NULL */
};

/* Loads a variable's values into the cache. */
int pm_export_values(struct pm_export *g, const struct pm_variable *v);
/* A value's name that no node has: "NODE:SUFFIX". */
const char *pm_export_name(struct pm_export *g, const char *suffix);

#endif
