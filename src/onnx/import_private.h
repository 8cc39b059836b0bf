/* import_private: shared by the files that convert an ONNX graph to layers. */
#ifndef PM_IMPORT_PRIVATE_H
#define PM_IMPORT_PRIVATE_H

#include "onnx/view.h"

#include <pumice/import.h>

/* ---- values ------------------------------------------------------------------------------ */

enum value_kind {
    VALUE_ABSENT,  /* an optional input that is missing */
    VALUE_BROKEN,  /* output of a refused node */
    VALUE_NODE,    /* computed by the net */
    VALUE_TENSOR,  /* stored in the file */
    VALUE_FILL,    /* one number, repeated */
    VALUE_NUMBERS, /* small constants, computed while importing; row-major */
};
/* A node's output, transposed to another order of its atoms. */
struct laid {
    struct pm_node *node;
    int at[VIEW_ATOMS];
    struct laid *next;
};
struct value {
    /* The name's role in the model; import_need and import_value fill it. */
    const char *name;
    struct value *next;  /* next value of the same hash */
    const struct pm_onnx_node *maker; /* node that outputs it; NULL: an input or an initializer */
    const struct pm_onnx_node *reader; /* first reader; only needed nodes count */
    int readers;         /* number of node inputs that read it */
    bool is_cut;         /* a node of the caller stands for it (pm_import_options.cuts) */
    /* The result of its conversion. */
    enum value_kind kind;
    struct view view;
    bool integer;        /* constants: integer type */
    bool learned;        /* constants: elements of an initializer, at most rearranged */
    struct pm_node *node;
    struct laid *laid;   /* nodes: transposed copies made so far */
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
    struct pm_arena *arena;        /* the net's arena */
    struct pm_arena *lasting;      /* the import's arena: sources of variables */
    const struct pm_import_options *options;
    int64_t batch, model_batch;    /* the net's batch; the model's own if fixed, else -1 */
    struct value *values[VALUE_BUCKETS];
    const struct pm_onnx_node *n;  /* current node */
    size_t index;
    const char *logits;            /* name of the value that the net outputs */
    const bool *needed;            /* [nodes] the logits depend on the node */
    const char **absorbed;         /* [nodes] value that already has the output, or NULL */
    const struct pm_onnx_node *left_out; /* a Softmax that returns its input unchanged, or NULL */
    const struct pm_onnx_node *head; /* the node that a new layer replaces, or NULL */
    bool nodes_learn;      /* the model stores its weights in Constant nodes */
    struct source *sources;
    const char *split;     /* an initializer split into several variables, or NULL; their number */
    int splits;
    struct refusal { const char *op, *who, *what; int more; } refused[20]; /* more: equal ones */
    int refusals;                  /* number of different refusals, including unlisted ones */
    bool refused_now;
};

struct value *import_value(struct import *m, const char *name); /* creates the value if it is new */
/* Returns input i of the current node; kind VALUE_ABSENT if it is missing. */
struct value *import_in(struct import *m, int i);
/* Resets and returns the value of output i. */
struct value *import_out(struct import *m, int i);
void import_out_node(struct import *m, int i, struct pm_node *node, const struct view *v);
/* Sets output i to x with another view. */
void import_out_view(struct import *m, int i, const struct value *x, const struct view *v);
/* Sets output i to a node [n, h, w, c] or [n, w, c], viewed as [n, c, h, w] or [n, c, w]. */
void import_out_images(struct import *m, int i, struct pm_node *node);
void import_out_numbers(struct import *m, int i, int rank, const int64_t *dim,
                        const double *numbers, bool integer);

/* Records an unsupported feature of the current node. The walk continues without the node's
 * outputs. */
int import_refuse(struct import *m, const char *fmt, ...) PM_PRINTF(2, 3);
/* Returns a net-wide name for the current node's layer. more: suffix for a further layer, or
 * NULL. */
const char *import_name(struct import *m, const char *more);
/* Replaces characters of text that names of variables and layers may not have: all except letters,
 * digits, _./- and those in more. */
const char *import_legal_name(struct pm_arena *a, const char *text, const char *more);
/* Returns the only node that reads a value; NULL if there are others or if the value is the net's
 * output. */
const struct pm_onnx_node *import_only_reader(struct import *m, const char *name);
bool import_read_by_any(struct import *m, const char *name);

/* ---- the walk ---------------------------------------------------------------------------- */

/* Marks the nodes that compute this value, the net's output. Must be called first. */
void import_need(struct import *m, const char *name);
/* Makes values of the initializers. */
int import_tensors(struct import *m);
/* Builds every needed node. If some are not supported, fails with one line that names the first
 * node of each operator and reason. */
int import_walk(struct import *m);
/* Fails with the same line if something was refused after the walk. */
int import_check_refusals(const struct import *m);

/* ---- layouts ----------------------------------------------------------------------------- */

/* Returns the value as a node with its axes in this memory order and shape. "0 2 3 1": four axes;
 * "0 231": two axes; the second joins three of the value's. Constants become parameters.
 * NULL after an error, which the net stores. */
struct pm_node *import_lay(struct import *m, struct value *v, const char *groups);
/* Returns the value in ONNX's own order. If it has more axes than a node can have, the first axes
 * are joined. */
struct pm_node *import_lay_plain(struct import *m, struct value *v);
/* Returns the channels-last order of a value of rank 1 to 6: "0 2 3 1". */
const char *import_channels_last(int rank);

/* ---- constants --------------------------------------------------------------------------- */

static inline bool value_constant(const struct value *v)
{
    return v->kind >= VALUE_TENSOR;
}
/* Returns the elements in ONNX's order if v is a constant with at most limit of them; otherwise
 * NULL. */
const double *import_numbers(struct import *m, struct value *v, size_t limit);
/* Reads a constant list of integers, clamped to +-2^40, from an input or, in older opsets, an
 * attribute. Returns the count; -1 if it is not constant, 0 if it is absent. */
int import_ints(struct import *m, int input, const char *attr, int64_t out[16]);
/* The range that Slice takes of each axis of its first input; count may be 0. Returns false if the
 * range is not constant. */
struct import_range { int64_t begin, count, step; };
bool import_ranges(struct import *m, struct import_range range[PM_FILE_MAX_RANK]);
/* Computes the common shape of the first count inputs after broadcasting; false if there is
 * none. */
bool import_broadcast(struct import *m, int count, int *rank, int64_t dim[PM_FILE_MAX_RANK]);
/* Reads an integer attribute, clamped to +-2^40, so that sums and products of two do not
 * overflow. */
int64_t import_attr_int(const struct import *m, const char *name, int64_t otherwise);
/* Whether a value may have this shape: no negative dimension and at most 2^40 elements. Dimensions
 * of size 0 count as 1. */
bool import_sane(int rank, const int64_t *dim);
/* Computes the current node if all inputs are constants. *done: whether it did. */
int import_fold(struct import *m, bool *done);

/* ---- variables --------------------------------------------------------------------------- */

/* Makes a variable from v's elements in the order of these axes, named after v. Constants that were
 * not learned are not trained. Their name ends with ":" PM_EXPORT_CONSTANT, which identifies them
 * after an export. Layers that use one initializer share its variable. Exception: an initializer
 * filled with 0 or 1 is not shared, because exporters write equal tensors once. */
struct pm_given import_given(struct import *m, struct value *v, const char *order, bool trainable);
/* Like import_given, with another view of the elements, multiplied by factor. */
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
