/* export_graph: an ONNX graph during export. */
#ifndef PM_EXPORT_GRAPH_H
#define PM_EXPORT_GRAPH_H

#include <pumice/export.h>

#include "onnx/export_nodes.h"

/* A batch norm that is folded into the layer before it: scale z + shift, per output channel. */
struct pm_export_fold {
    const float *scale, *shift;
};
struct pm_export {
    struct pm_onnx_model *model; /* owned; its arena holds all members not marked otherwise */
    const struct pm_net *net;    /* borrowed, like the options' pointers */
    struct pm_export_options options;
    const struct pm_node *node;  /* operators are appended for this node */
    const char **value;          /* [nodes] name of y of each finished node; else NULL */
    int *readers;                /* [nodes] number of readers that the outputs need */
    const struct pm_node **reader;      /* [nodes] the last of these readers */
    const struct pm_export_fold **fold; /* [nodes] NULL: nothing is folded into the node */
    bool *is_variable;           /* [variables] true if the variable has its initializer */
    const char *picture_size, *framed_size; /* height and width, also after resizing */
    const char *framed_part;     /* pm_export_frame_part; NULL: not made yet */
    struct { const char *rows, *columns; } pasted; /* pm_export_pasted; NULL: none */
    float *cache;                /* owned: values of variable `cached`; -1: none */
    int cached;
    int error;                   /* the first error */
};

/* Context of an initializer's fill function. */
struct pm_export_source {
    struct pm_export *g;
    const struct pm_variable *v;
    bool perm;            /* [h][w][i][o] to [o][i][h][w] */
    const float *scale;   /* one per o, or NULL */
};

/* Loads a variable's values into the cache. */
int pm_export_values(struct pm_export *g, const struct pm_variable *v);
/* Returns a value name that no node has: "NODE:SUFFIX". */
const char *pm_export_name(struct pm_export *g, const char *suffix);

#endif
