/* export: converts nets to ONNX models, opset 17. The net is built for evaluation. The layers from
 * its input to its logits are converted in order; the row of each layer gives its operators
 * (layer.h: onnx). */
#ifndef PUMICE_EXPORT_H
#define PUMICE_EXPORT_H

#include <pumice/net.h>
#include <pumice/onnx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Conversion of pixels 0..255 to the net's input: x = (pixel - mean[c]) / std[c]; if `own`, with
 * the mean and deviation of each picture: x = (pixel - mean) / max(std, 1 / sqrt(values)). */
struct pm_export_pixels {
    bool own;
    float mean[4], std[4];
};

/* The model takes pictures of any height and width up to the net's input. The graph resizes them by
 * the rule, then it pads them at the bottom and the right. Every output that is a map of the
 * input's size occurs twice: RawNAME is the whole map (numbers as 32-bit floats); NAME is cropped
 * to the picture and resized back to its size (labels by nearest neighbour). Inside the graph boxes
 * are in 0..1 of the input, and suppression clips them to the picture. Outputs with places are
 * those of the picture (enum pm_places). If a picture is larger than the input after resizing, the
 * model fails when it runs. */
struct pm_export_frame {
    float pad[4]; /* per channel, in units of the net's input */
    enum {
        /* min is not 0: the smaller side to min, the larger side to at most max (0: no limit),
         * sides of the form k * factor + 1 (0: any), and to a square if `square`. Corners are
         * aligned. min 0: not resized. */
        PM_FRAME_RANGE,
        /* The smaller side to min, the larger side to at most max (0: no limit), rounded; min 0:
         * the largest size that fits into the input. Corners are not aligned. */
        PM_FRAME_RATIO,
        /* The larger side to min if it is above, or the smaller side to min if it is below, rounded
         * down. Corners are aligned. */
        PM_FRAME_SHRINK, PM_FRAME_ENLARGE,
    } rule;
    int min, max, factor;
    bool square;
    const char *mode; /* ONNX's: "linear" or "cubic"; NULL: "linear" */
};
/* Whether the graph resizes pictures. */
bool pm_export_frame_resizes(const struct pm_export_frame *f);

struct pm_export_options {
    bool any_batch;       /* the batch axis is dynamic and named "N" */
    bool any_size;        /* height and width are dynamic, too */
    bool fold_batch_norm; /* fold batch norm into the convolution or product before it */
    /* The model computes what training does: batch norm (unless frozen) uses the statistics of the
     * batch, dropout and drop path are active. Excludes fold_batch_norm. */
    bool training;
    enum pm_export_end end; /* PM_END_SOFTMAX does nothing if there are additional outputs */
    /* Nodes that become additional outputs. If there are any, each output, including the logits,
     * has the name of its node. */
    const struct pm_node *const *also;
    int also_count;
    /* The input is uint8 pixels [n, h, w, c], and the graph converts them to the net's input. NULL:
     * the input is the net's, float32 [n, c, h, w]. */
    const struct pm_export_pixels *pixels;
    const struct pm_export_frame *frame; /* NULL: pictures of the input's size */
    /* Per output, the logits first: with a frame, the places in it become those of the picture.
     * NULL: no output has places. */
    const enum pm_places *places;
    const char *input; /* name of the input; NULL: the name of the input node */
    /* Reads the values of a variable when they are written. */
    int (*read)(void *ctx, const struct pm_variable *v, float *data);
    void *ctx;
};

enum { PM_EXPORT_OPSET = 17 };
/* Constants that are not variables of the net (ones that replace a missing factor of a batch norm,
 * the mean of the pixels) are named "NODE:number" or "NODE:numbers", possibly followed by "_2" and
 * so on. An import recognises these names and does not train the values. */
#define PM_EXPORT_CONSTANT "number"
bool pm_export_is_constant(const char *name);
/* Makes the model of the part of the net that computes the logits. The values of the variables are
 * read one at a time when the model is written. net and options must outlive it. PM_ECONFIG names a
 * layer that ONNX cannot express. */
struct pm_export;
int pm_export_create(const struct pm_net *net, const struct pm_node *logits,
                     const struct pm_export_options *o, struct pm_export **out);
void pm_export_destroy(struct pm_export **g);
struct pm_onnx_model *pm_export_model(struct pm_export *g); /* metadata may be added to it */
/* Returns the name of the model's value that equals node n of the net, with the axes of the graph:
 * rank 4 is [n, c, h, w]. NULL if no output depends on n. An output with the node's name may be
 * another value, if it is reshaped or has places. */
const char *pm_export_value(const struct pm_export *g, const struct pm_node *n);
/* Values of the graph for an output with PM_PLACES_MASKS. A pixel's probability minus 0.5 is the
 * product of a row and a column: rows [n, D, H, w] are the masks at the picture's height, minus
 * 0.5, and columns [n, D, w, W] are the weights of their columns. Returns false if there is no such
 * output. */
bool pm_export_pasted(const struct pm_export *g, const char **rows, const char **columns);
/* Returns NULL if both have the same operators, else the name of the first operator that differs.
 * Shows whether the graph of a net depends on the size for which it was built. */
const char *pm_export_difference(const struct pm_export *a, const struct pm_export *b);

#ifdef __cplusplus
}
#endif

#endif
