/* export: nets to ONNX models. A net built for evaluation is walked from its input to its logits;
 * each layer's row says which operators it is (layer.h: onnx). Opset 17. */
#ifndef PUMICE_EXPORT_H
#define PUMICE_EXPORT_H

#include <pumice/net.h>
#include <pumice/onnx.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How pixels 0..255 become the net's input: x = (pixel - mean[c]) / std[c], or by each picture's own
 * mean and deviation, x = (pixel - mean) / max(std, 1 / sqrt(values)). */
struct pm_export_pixels {
    bool own;
    float mean[4], std[4];
};

/* Pictures of any height and width up to the net's input: in the graph they are resized where min is
 * not 0 (the smaller side to min, the larger to max at most, where that is not 0, sides k * factor + 1,
 * where that is not 0, and made a square), padded below and at the right, and every output that is a map
 * of the input's size is there twice: RawNAME whole, of numbers as 32-bit floats, and NAME cut to the
 * picture and brought back to its size, labels by nearest elements. A larger picture is an error when
 * the model runs. */
struct pm_export_frame {
    float pad[4]; /* per channel, as the net takes them */
    int min, max, factor;
    bool square;
};

struct pm_export_options {
    bool any_batch;       /* the batch axis has no size but a name, "N" */
    bool any_size;        /* so have height and width */
    bool fold_batch_norm; /* into the convolution or product before it */
    bool probabilities;   /* a softmax behind the logits */
    /* Further nodes whose values come out; where there are some, each output has its node's name, the
     * logits, too. */
    const struct pm_node *const *also;
    int also_count;
    /* The input is uint8 pixels [n, h, w, c] and the graph makes of them what the net takes; NULL: it
     * is what the net takes, float32 [n, c, h, w]. */
    const struct pm_export_pixels *pixels;
    const struct pm_export_frame *frame; /* NULL: pictures of the input's size */
    unsigned lengths; /* a bit for each output, the logits' first, whose two channels are rows and columns
                       * of the input: NAME has those of the picture */
    const char *input; /* its name; NULL: the input node's */
    /* Values of a variable of the net, when they are written. */
    int (*read)(void *ctx, const struct pm_variable *v, float *data);
    void *ctx;
};

enum { PM_EXPORT_OPSET = 17 };
/* Numbers that are none of the net's variables (the ones in the place of factors that a batch norm does
 * not have, the pixels' mean) are named "NODE:number", "NODE:numbers", either perhaps with "_2" and so on,
 * by which an import knows that they are not to be learned. */
#define PM_EXPORT_CONSTANT "number"
bool pm_export_is_constant(const char *name);
/* The model of the part of a net that leads to logits. It reads the variables' values while it is
 * written, one at a time. net and options must outlive it. PM_ECONFIG names a layer that ONNX cannot
 * express. */
struct pm_export;
int pm_export_create(const struct pm_net *net, const struct pm_node *logits,
                     const struct pm_export_options *o, struct pm_export **out);
void pm_export_destroy(struct pm_export **g);
struct pm_onnx_model *pm_export_model(struct pm_export *g); /* notes may be added to it */
/* NULL when both are operator for operator the same, else the name of the first that differs: tells
 * whether a net's graph depends on the size it was built for. */
const char *pm_export_difference(const struct pm_export *a, const struct pm_export *b);

#ifdef __cplusplus
}
#endif

#endif
