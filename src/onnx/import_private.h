/* import_private: what the files that make layers of an ONNX graph share. */
#ifndef PM_IMPORT_PRIVATE_H
#define PM_IMPORT_PRIVATE_H

#include "onnx/view.h"

#include <pumice/import.h>

/* ---- values ------------------------------------------------------------------------------ */

enum value_kind {
    VALUE_ABSENT,  /* an optional input that is not given */
    VALUE_BROKEN,  /* of a node that was refused */
    VALUE_NODE,    /* computed by the net */
    VALUE_TENSOR,  /* elements in the file */
    VALUE_FILL,    /* one number everywhere */
    VALUE_NUMBERS, /* small constants, computed while importing; row-major */
};
/* A node's output under another order of its atoms. */
struct laid {
    struct pm_node *node;
    int at[VIEW_ATOMS];
    struct laid *next;
};
struct value {
    /* What it is in the model: import_need and import_value fill these. */
    const char *name;
    struct value *next;  /* of the same hash */
    const struct pm_onnx_node *maker; /* NULL: an input, or an initializer */
    const struct pm_onnx_node *reader; /* the first; of nodes that are needed, as readers */
    int readers;         /* inputs of nodes */
    /* What it came to. */
    enum value_kind kind;
    struct view view;
    bool integer;        /* constants: of an integer type */
    bool learned;        /* constants: what an initializer holds, at most laid out anew */
    struct pm_node *node;
    struct laid *laid;   /* nodes: orders made so far */
    const struct pm_onnx_tensor *tensor;
    double fill;
    const double *numbers;
};

struct source; /* a variable's values */
enum { VALUE_BUCKETS = 1024 };
struct import {
    struct pm_import *owner;
    const struct pm_onnx_model *model;
    struct pm_net *net;
    struct pm_arena *arena;        /* the net's */
    struct pm_arena *lasting;      /* the import's: sources of variables */
    const struct pm_import_options *options;
    int64_t batch, model_batch;    /* the net's; the model's own where it is fixed, else -1 */
    struct value *values[VALUE_BUCKETS];
    const struct pm_onnx_node *n;  /* the node that is being built */
    size_t index;
    const char *logits;            /* the value that the net gives */
    const bool *needed;            /* by node: the logits depend on it */
    const char **absorbed;         /* by node: the value that has its output already, or NULL */
    const struct pm_onnx_node *left_out; /* a Softmax that passes its input, or NULL */
    const struct pm_onnx_node *head; /* the node that becomes a fresh one, or NULL */
    bool nodes_learn;      /* the model keeps its weights in Constant nodes */
    struct source *sources;
    const char *split;     /* an initializer that became several variables, or NULL; of how many */
    int splits;
    struct refusal { const char *op, *who, *what; int more; } refused[20]; /* more: others alike */
    int refusals;                  /* of unlike ones, not all of which need be listed */
    bool refused_now;
};

struct value *import_value(struct import *m, const char *name); /* made when it is new */
/* Input i of the current node: kind ABSENT when it is not given. */
struct value *import_in(struct import *m, int i);
/* Sets output i. */
struct value *import_out(struct import *m, int i);
void import_out_node(struct import *m, int i, struct pm_node *node, const struct view *v);
/* Output i is x under another view. */
void import_out_view(struct import *m, int i, const struct value *x, const struct view *v);
/* [n, h, w, c] or [n, w, c] nodes to [n, c, h, w] or [n, c, w]. */
void import_out_images(struct import *m, int i, struct pm_node *node);
void import_out_numbers(struct import *m, int i, int rank, const int64_t *dim, const double *numbers,
                        bool integer);

/* Names what of the current node is not supported; the walk continues without its outputs. */
int import_refuse(struct import *m, const char *fmt, ...) PM_PRINTF(2, 3);
/* A name in the net for the current node; more: of a further layer of it, or NULL. */
const char *import_name(struct import *m, const char *more);
/* text without what a variable's or layer's name may not have: other than letters, digits, _./- and the
 * characters in more. */
const char *import_legal_name(struct pm_arena *a, const char *text, const char *more);
/* The only node that reads a value, when no other does and it is not what the net gives; else NULL. */
const struct pm_onnx_node *import_only_reader(struct import *m, const char *name);
bool import_read_by_any(struct import *m, const char *name);

/* ---- the walk ---------------------------------------------------------------------------- */

/* Which nodes are behind this value, which the net will give. Before all else. */
void import_need(struct import *m, const char *name);
/* The initializers become values. */
int import_tensors(struct import *m);
/* Builds every node that is needed; fails with one line that names what is not supported: the first node
 * of each operator and reason. */
int import_walk(struct import *m);
/* The same line, where something was refused after the walk. */
int import_check_refusals(const struct import *m);

/* ---- layouts ----------------------------------------------------------------------------- */

/* The value with its axes in this order in memory and of this shape: "0 2 3 1" are four axes, "0 231"
 * two, of which the second is three of the value's. Constants become parameters. NULL after an error,
 * which the net keeps. */
struct pm_node *import_lay(struct import *m, struct value *v, const char *groups);
/* In ONNX's own order, all axes but the last ones together where there are more than a node has. */
struct pm_node *import_lay_plain(struct import *m, struct value *v);
/* The image order of a value of rank 1 to 6: "0 2 3 1". */
const char *import_channels_last(int rank);

/* ---- constants --------------------------------------------------------------------------- */

static inline bool value_constant(const struct value *v)
{
    return v->kind >= VALUE_TENSOR;
}
/* The elements in ONNX's order when v is a constant of at most limit of them; NULL otherwise. */
const double *import_numbers(struct import *m, struct value *v, size_t limit);
/* A constant list of integers within +-2^40, of an input or, in older opsets, of an attribute; count -1
 * when it is neither, 0 when it is absent. */
int import_ints(struct import *m, int input, const char *attr, int64_t out[16]);
/* What Slice takes of its first input, by axis; count 0 is possible. False when it is no constant. */
struct import_range { int64_t begin, count, step; };
bool import_ranges(struct import *m, struct import_range range[PM_FILE_MAX_RANK]);
/* The common shape of the first count inputs after broadcasting; false when there is none. */
bool import_broadcast(struct import *m, int count, int *rank, int64_t dim[PM_FILE_MAX_RANK]);
/* An integer attribute, within +-2^40, so that sums and products of two do not overflow. */
int64_t import_attr_int(const struct import *m, const char *name, int64_t otherwise);
/* Whether a value may have this shape: no dimension below 0, no more than 2^40 elements, those of
 * size 0 taken as 1. */
bool import_sane(int rank, const int64_t *dim);
/* Evaluates the current node when all of its inputs are constants; *done tells. */
int import_fold(struct import *m, bool *done);

/* ---- variables --------------------------------------------------------------------------- */

/* v's elements in the order of these axes, as the values of a variable named after it. What was not
 * learned is not trained, and its name ends with ":" PM_EXPORT_CONSTANT, by which it is known after an
 * export. Layers of one initializer share the variable, but not where it is a fill of 0 or 1:
 * exporters write equal tensors once. */
struct pm_given import_given(struct import *m, struct value *v, const char *order, bool trainable);
/* The same under another view of its elements. factor multiplies them. */
struct pm_given import_given_view(struct import *m, const struct value *v, const struct view *as,
                                  const char *order, double factor, bool trainable);

/* ---- operators --------------------------------------------------------------------------- */

struct operator {
    struct pm_import_operator {
        const char *name, *backward, *exported, *note; /* "yes", "zero"; "": constants only */
    } about;
    int (*build)(struct import *m);
};
const struct operator *import_operator(const struct pm_onnx_node *n); /* NULL: unknown */

#endif
