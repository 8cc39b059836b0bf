/* net: nodes in topological order, shapes, variables. A net is built for one batch size and input
 * size; variables do not depend on them. Three doors make nets: named builders in C (src/nets/), a
 * JSON layer list, and (later) ONNX; all end as the same nodes. */
#ifndef PUMICE_NET_H
#define PUMICE_NET_H

#include <pumice/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whose definition of a net was followed: they pad, stride and normalise differently. */
enum pm_conventions { PM_CONVENTIONS_OWN, PM_CONVENTIONS_TENSORFLOW, PM_CONVENTIONS_TORCH };

/* A variable whose name, values and role are known before its layer is: an imported one. */
struct pm_given {
    const char *name;
    struct pm_init init;
    bool trainable;
    size_t count; /* of its values: what the layer's variable must have */
};
/* For evaluation at several scales: the net's images are pictures of height x width, scaled. */
struct pm_eval_scale {
    float scale; /* 0: not scaled */
    int height, width;
};
struct pm_net {
    struct pm_arena *arena; /* owned */
    struct pm_node **nodes; /* in the order they were added = topological */
    int count, capacity;
    struct pm_variable **vars;
    int var_count, var_capacity;
    int batch;
    /* Set by the builders of named nets that know both; 0: a layer list, whose author decides. */
    enum pm_conventions conventions;
    float batch_norm_epsilon;
    int error;              /* first error of a builder call; later calls do nothing */
    /* The variables of the nodes that are added while this is set, in the layer's order: these take
     * the place of the layer's names and initial values. A name that the net has means that
     * variable. Borrowed during the call. */
    const struct pm_given *given;
    int given_count;
    /* While this is set nodes are called PASS/NAME and use the variables of NAME where the net has
     * such a node: the same net over other images, as an image pyramid's or mirrored ones.
     * pm_net_find looks among the pass's own nodes first. Borrowed while it is set; NULL: none. */
    const char *pass;
    /* Set during a builder's call. A net whose options count pixels of the pictures multiplies them
     * by the scale; a net that builds a pyramid of several scales builds this one alone. */
    struct pm_eval_scale eval_scale;
    int holders; /* how many hold the net besides its first owner */
};

struct pm_net *pm_net_create(void);
/* The caller holds the net too, and calls pm_net_destroy for it. The net is freed with its last
 * holder. Returns net. Not thread-safe. Holders must not add nodes. */
struct pm_net *pm_net_hold(struct pm_net *net);
void pm_net_destroy(struct pm_net **n);
/* A node of layer "input" named name, with this shape. The first input's dim[0] is the batch; of a
 * later one dim[0] is a multiple of it where it has rows for each example. */
struct pm_node *pm_net_input(struct pm_net *net, const char *name, struct pm_shape shape,
                             enum pm_type type);
/* Values that the host may put into an input node: from low to high; where nobody sets them -1..1,
 * and 0 alone for whole numbers. Verification draws from them. */
void pm_net_set_range(struct pm_node *input, double low, double high);
void pm_net_get_range(const struct pm_node *input, double *low, double *high);
/* Adds a node. spec is "LAYER key=value key=value ..." with printf formatting; values hold no
 * spaces. On an error net->error is set and a node is still returned, so that builders need no
 * checks between calls; pm_net_error tells at the end. */
struct pm_node *pm_net_add(struct pm_net *net, const char *name, struct pm_node *x,
                           const char *spec, ...) PM_PRINTF(4, 5);
struct pm_node *pm_net_add_many(struct pm_net *net, const char *name, struct pm_node *const *xs,
                                int count, const char *spec, ...) PM_PRINTF(5, 6);
/* From a JSON object of options (its members name, layer, inputs and share are passed over). share:
 * node of the same layer whose variables are used, or NULL. where: place for messages. */
struct pm_node *pm_net_add_json(struct pm_net *net, const char *name, struct pm_node *const *xs,
                                int count, const char *layer, const struct cJSON *options,
                                const struct pm_node *share, const char *where);
struct pm_node *pm_net_find(const struct pm_net *net, const char *name);

/* ---- quantisation-aware training ---------------------------------------------------------- */

struct pm_heads;
/* Rewrites the nodes from index `first` on, those of a net whose heads these are, for training that
 * knows of the 8-bit arithmetic that the net will run in, as TensorFlow's contrib.quantize does;
 * heads are then of the rewritten net. Any net can be: the pass knows layers, not nets.
 *   conv2d, depthwise_conv2d, fully_connected: become quantized_conv2d, with the batch norm that alone reads
 *     their sums folded in; variables keep their names, ranges are CONV/weights_quant/min and max;
 *   fake_quant: behind each of them and its activation (CONV/act_quant), which may be a layer of its own;
 *     without one in front of a sum CONV/conv_quant; and behind sums and products of what is quantised and
 *     their activation (NODE/act_quant, NODE/add_quant, NODE/mul_quant). A batch norm's residual becomes
 *     such a sum.
 * All else computes with floats as before. delay: as the layers' option. */
int pm_net_quantize(struct pm_net *net, int first, int delay, struct pm_heads *heads);

/* ---- named nets ------------------------------------------------------------------------ */

struct pm_net_input_spec { int batch, height, width, channels, num_classes; };
/* What a builder returns: logits [batch, classes], and an auxiliary head or NULL; or, of nets whose
 * outputs are maps, logits [batch, h, w, classes], of any h and w, and those of an image pyramid's
 * scales, of which logits is the merge and which have the loss beside it. Further heads are a list;
 * the net and its task agree on their names, shapes and meaning. */
enum { PM_MAX_SCALES = 8 };
struct pm_head {
    const char *name; /* "center" */
    struct pm_node *node;
};
struct pm_heads {
    struct pm_node *logits, *aux_logits;
    float aux_weight;
    struct pm_node *scale_logits[PM_MAX_SCALES];
    int scales; /* of them; 0: no pyramid */
    struct pm_head *further; /* in the net's arena */
    int further_count;
};
/* Adds a further head behind the others; name is borrowed. A node that is NULL adds nothing. */
void pm_heads_add(struct pm_net *net, struct pm_heads *heads, const char *name, struct pm_node *node);
/* The further head of this name, or NULL. */
struct pm_node *pm_heads_find(const struct pm_heads *heads, const char *name);
struct pm_net_row {
    const char *name, *help;
    const char *task; /* NULL: "classification" */
    const struct pm_opt *opts; /* options beside the model section's own; may be NULL */
    size_t cfg_size;
    int default_size, default_channels;
    const char *preprocessing; /* default of input.preprocessing */
    /* What the net's name means as input.preprocessing, where that is not the default: TF-Slim's
     * choice for it. NULL: preprocessing. */
    const char *slim_preprocessing;
    float weight_decay;        /* default of the net's own scope */
    void (*build)(struct pm_net *net, struct pm_node *images, int num_classes, const void *cfg,
                  struct pm_heads *heads);
    const struct pm_net_row *torch; /* the same with conventions=torch for a default, and the other
                                     * defaults that go with it; NULL: only TensorFlow's */
};
const struct pm_net_row *pm_net_row_find(const char *name);
const struct pm_net_row *const *pm_net_rows(size_t *count);
/* The row, or its torch one where these options (a JSON object or NULL) say conventions=torch. */
const struct pm_net_row *pm_net_row_variant(const struct pm_net_row *row,
                                            const struct cJSON *options);
/* What a net's name means as input.preprocessing; NULL: no net has that name. */
const char *pm_net_preprocessing(const char *net);
/* Why a net that people know is none of the rows: "is ..."; NULL when nobody knows it. */
const char *pm_net_refusal(const char *name);

/* ---- JSON layer lists ------------------------------------------------------------------ */

/* Builds from [{"name":, "layer":, "inputs": [...], "share":, option...}, ...]. A layer without
 * "inputs" takes the one before it; inputs name earlier layers, "images", "@previous" or, inside a
 * repeat, "@input" (what entered this round). Of a layer with several outputs NAME is the first and
 * "NAME:k" is output k = 0, 1, .... {"repeat": n, "layers": [...]} repeats with %d in names
 * replaced by 1..n, or another placeholder named by "as". The last node is the logits, or the one
 * named "logits"; further heads are the task's to find among the net's nodes.
 * where: the list's place for messages, "x.json: model.layers". */
int pm_net_from_json(struct pm_net *net, struct pm_node *images, const struct cJSON *list,
                     const char *where, struct pm_heads *heads);
/* The list that, fed back, gives the same net: every node but the inputs, so it is asked before the
 * task adds its losses. Freed with cJSON_Delete. */
struct cJSON *pm_net_to_json(const struct pm_net *net);

#ifdef __cplusplus
}
#endif

#endif
