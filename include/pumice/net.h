/* net: nodes in topological order, shapes and variables. A net is built for one batch size and one
 * input size; its variables do not depend on them. Nets come from named builders in C (src/nets/),
 * from a JSON layer list or, later, from ONNX. All three produce the same nodes. */
#ifndef PUMICE_NET_H
#define PUMICE_NET_H

#include <pumice/layer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whose definition of a net the builder follows. They differ in padding, strides and
 * normalisation. */
enum pm_conventions { PM_CONVENTIONS_OWN, PM_CONVENTIONS_TENSORFLOW, PM_CONVENTIONS_TORCH };

/* A variable whose name, values and role are known before its layer exists: an imported
 * variable. */
struct pm_given {
    const char *name;
    struct pm_init init;
    bool trainable;
    size_t count; /* number of its values; must equal the count of the layer's variable */
};
/* For evaluation at several scales: the net's input images are pictures of height x width,
 * scaled. */
struct pm_eval_scale {
    float scale; /* 0: not scaled */
    int height, width;
};
/* What a task asks of the last layers of a named net. Zeros: nothing. */
struct pm_net_ends {
    int coded_keypoints; /* a detector with anchors codes so many keypoints together with each box,
                          * so a box has 4 + 2 * coded_keypoints codes */
    bool rotated_boxes;  /* the anchors of a detector have angles, so a box has 5 codes */
    bool sequence;       /* the task adds the last layers: a net that reads words gives the head
                          * "sequence" [batch, 1, t, c], features of t steps, instead of logits */
};
struct pm_net {
    struct pm_arena *arena; /* owned */
    struct pm_node **nodes; /* in the order they were added = topological */
    int count, capacity;
    struct pm_variable **vars;
    int var_count, var_capacity;
    int batch;
    /* Set by the builders of named nets that know both. 0: the net is a layer list, whose author
     * chooses both. */
    enum pm_conventions conventions;
    float batch_norm_epsilon;
    int error;              /* first error of a builder call; later calls do nothing */
    /* Given variables for the nodes that are added while this is set, in the layer's order. Their
     * names and initial values replace the layer's. If the net already has a variable of that name,
     * the node uses it. Borrowed during the call. */
    const struct pm_given *given;
    int given_count;
    /* While this is set, nodes are named PASS/NAME. They use the variables of NAME if the net has
     * such a node. This builds the same net over other images, for example an image pyramid's or
     * mirrored images. pm_net_find searches the pass's own nodes first. Borrowed while it is set;
     * NULL: none. */
    const char *pass;
    /* While this is set, names of new nodes begin with PREFIX/, after a pass's name. pm_net_find
     * searches these nodes first. A detector builds the layers of a classifier this way. Borrowed
     * while it is set; NULL: none. */
    const char *prefix;
    /* While this is set, the batch norms of named nets and layer lists count only the valid rows of
     * their maps [n R, h, w, c]: the node is I32 [n], and the first valid_rows[i] rows of example i
     * are valid. A frozen batch norm ignores it. Set it where a net reads the crops of a two-stage
     * detector. Borrowed while it is set; NULL: all rows count. */
    struct pm_node *valid_rows;
    /* Set during a builder's call. A net whose options count pixels of the pictures multiplies them
     * by the scale. A net that builds a pyramid of several scales builds only this scale. */
    struct pm_eval_scale eval_scale;
    struct pm_net_ends ends; /* set during a builder's call */
    int holders; /* number of holders besides the first owner */
};

struct pm_net *pm_net_create(void);
/* Adds a holder of the net; each holder must call pm_net_destroy. The net is freed with its last
 * holder. Returns net. Not thread-safe. Holders must not add nodes. */
struct pm_net *pm_net_hold(struct pm_net *net);
void pm_net_destroy(struct pm_net **n);
/* Adds a node of layer "input" with this name and shape. dim[0] of the first input is the batch
 * size. If a later input has rows for each example, its dim[0] is a multiple of the batch size. */
struct pm_node *pm_net_input(struct pm_net *net, const char *name, struct pm_shape shape,
                             enum pm_type type);
/* Sets and returns the values that the host may put into an input node. The default is -1..1, and
 * 0..0 for integers. */
void pm_net_set_values(struct pm_node *input, struct pm_values values);
struct pm_values pm_net_values(const struct pm_node *input);
/* Adds a node. spec is "LAYER key=value key=value ..." with printf formatting; values hold no
 * spaces. An error sets net->error and still returns a node, so builders need no checks between
 * calls. pm_net_error returns the error at the end. */
struct pm_node *pm_net_add(struct pm_net *net, const char *name, struct pm_node *x,
                           const char *spec, ...) PM_PRINTF(4, 5);
struct pm_node *pm_net_add_many(struct pm_net *net, const char *name, struct pm_node *const *xs,
                                int count, const char *spec, ...) PM_PRINTF(5, 6);
/* Adds a node that uses the variables of `share`, a node of the same layer; NULL: it has its own.
 * Heads of a detector read several maps with the same weights this way. */
struct pm_node *pm_net_add_shared(struct pm_net *net, const char *name, struct pm_node *x,
                                  const struct pm_node *share, const char *spec, ...)
    PM_PRINTF(5, 6);
/* Adds a node from a JSON object of options; its members name, layer, inputs and share are ignored.
 * share: node of the same layer whose variables are used, or NULL. where: place for messages. */
struct pm_node *pm_net_add_json(struct pm_net *net, const char *name, struct pm_node *const *xs,
                                int count, const char *layer, const struct cJSON *options,
                                const struct pm_node *share, const char *where);
struct pm_node *pm_net_find(const struct pm_net *net, const char *name);
/* Returns the name that a new node would have, with the prefix but without the pass's name: the
 * beginning of its variables' names. The result is in the net's arena or is `name` itself. */
const char *pm_net_scope(const struct pm_net *net, const char *name);

/* ---- quantisation-aware training ---------------------------------------------------------- */

struct pm_heads;
struct pm_quantization {
    int delay;        /* first training step (from 1) that rounds; 0: the first */
    int freeze_steps; /* folded batch norms are frozen in steps after this one; 0: never */
    bool symmetric;   /* ranges reach as far below 0 as above it */
    float largest;    /* greatest magnitude of the net's images; 0: unknown */
};
/* Rewrites the nodes from index `first` on, which are the net of these heads, for
 * quantisation-aware training: the 8-bit arithmetic of the deployed net is simulated, as
 * TensorFlow's contrib.quantize does. heads are then the rewritten net's heads. This works for any
 * net, because the pass depends on layers only.
 *   conv2d, depthwise_conv2d, fully_connected: become quantized_conv2d. A batch norm that is the
 *     only reader of their sums is folded in. Variables keep their names; ranges are
 *     CONV/weights_quant/min and max.
 *   fake_quant: is added after each of them and its activation (CONV/act_quant), which may be a
 *     layer of its own. Without an activation and before a sum it is CONV/conv_quant. It is also
 *     added after sums and products of quantised values and their activation (NODE/act_quant,
 *     NODE/add_quant, NODE/mul_quant). A batch norm's residual becomes such a sum.
 * In evaluation and in an exported net, a convolution that reads the images rounds them to
 * multiples of a step. The step is a power of two; `largest` is more than 1024 and at most
 * 2048 steps. So sums of up to 2^24 steps are exact in any order.
 * Nodes that share a convolution's weights, like a detector's heads of several levels, have a fold
 * and ranges each. Everything else computes with floats as before. Returns PM_ECONFIG if the net
 * cannot be quantised, for example because a batch norm counts valid rows. */
int pm_net_quantize(struct pm_net *net, int first, const struct pm_quantization *how,
                    struct pm_heads *heads);

/* ---- named nets ------------------------------------------------------------------------ */

struct pm_net_input_spec { int batch, height, width, channels, num_classes; };
/* The use of a head's values. */
enum pm_head_role {
    PM_HEAD_OUTPUT,    /* predictions and losses */
    PM_HEAD_AUXILIARY, /* a loss only: it helps the training of earlier layers */
    PM_HEAD_SCALE,     /* a loss only: the logits of one scale of an image pyramid, which the main
                        * head merges */
};
/* A head of a net: a node whose values the task reads. The net and its task agree on the names,
 * shapes and meaning of the heads. A classification net has "logits" [batch, classes] and perhaps
 * "aux_logits" of the same shape. Nets whose outputs are maps have "logits" [batch, h, w, classes]
 * of any h and w. */
struct pm_head {
    const char *name; /* borrowed */
    enum pm_head_role role;
    float weight;     /* of its loss, unless the config sets another */
    struct pm_node *node; /* node->out_shape is the head's shape */
};
/* What a builder adds to. Zeros are an empty list. The first output is the main head. */
struct pm_heads {
    struct pm_head *list; /* in the net's arena */
    int count;
};
/* Appends an output. Adds nothing if node is NULL. */
void pm_heads_add(struct pm_net *net, struct pm_heads *heads, const char *name,
                  struct pm_node *node);
/* Appends a head of another role. Adds nothing if node is NULL. */
void pm_heads_add_loss_only(struct pm_net *net, struct pm_heads *heads, const char *name,
                            struct pm_node *node, enum pm_head_role role, float weight);
/* Returns the main head, or NULL if there is no output. */
struct pm_node *pm_heads_main(const struct pm_heads *heads);
/* Returns the first head of this name, or NULL. */
struct pm_node *pm_heads_find(const struct pm_heads *heads, const char *name);
/* Returns the weight of the first head of this name; 0 if there is none. */
float pm_heads_weight(const struct pm_heads *heads, const char *name);
/* Returns the number of heads of this role. */
int pm_heads_count(const struct pm_heads *heads, enum pm_head_role role);
/* What the numbers of an output refer to in the net's input. A model that resizes and pads pictures
 * (struct pm_export_frame) gives them in the picture instead. */
enum pm_places {
    PM_PLACES_NONE,
    PM_PLACES_LENGTHS, /* its two channels are distances in rows and columns */
    PM_PLACES_BOXES,   /* the last axis is a box: ymin, xmin, ymax, xmax in 0..1 of the input. It
                        * may be a rotated box, but not in a model that pads */
    PM_PLACES_POINTS,  /* the last axis is a point: y, x in 0..1 of the input */
    /* Masks [n, h, w, D] in the boxes [n, D, 4] of the first output, which has PM_PLACES_BOXES. A
     * model pastes them: uint8 [n, D, H, W] with 1 where a pixel's probability is above 0.5. */
    PM_PLACES_MASKS,
};
/* What an exported model computes from its first output. */
enum pm_export_end {
    PM_END_NONE,
    PM_END_SOFTMAX,   /* the output becomes its softmax over the classes */
    /* The output is logits [n, steps, classes] or [n, 1, steps, classes], and the last class is the
     * blank of CTC. Three more outputs: symbols [n, steps] and lengths [n] (int32), and score [n]
     * (float32). symbols: the class with the largest logit of each step, without repetitions and
     * blanks, then -1. score: the product of the probabilities of the classes that each step has
     * chosen. */
    PM_END_BEST_PATH,
};
/* Regions of the images that the second stage of a detector reads. */
struct pm_regions {
    /* [batch, R, 4] F32: ymin, xmin, ymax, xmax in 0..1 of the images. Or rotated boxes
     * [batch, R, 5]: cy, cx, h, w, angle, whose unit is the images' height. */
    struct pm_node *boxes;
    struct pm_node *count; /* [batch] I32: valid boxes of each image; later ones are padding */
    int keypoints;         /* number of keypoints of each object; 0: objects have none */
};
struct pm_net_row {
    const char *name, *help;
    const char *task; /* name of the task that reads its heads; NULL: any task does */
    const struct pm_opt *opts; /* options beside the model section's own; may be NULL */
    size_t cfg_size;
    int default_size, default_channels;
    const char *preprocessing; /* default of input.preprocessing */
    /* Preprocessing that the net's name selects as input.preprocessing if it is not the default:
     * TF-Slim's choice for the net. NULL: preprocessing. */
    const char *slim_preprocessing;
    /* Objects of the config that this net's recipe has if the config does not set them; the last
     * entry has no key. NULL: none. */
    const struct pm_object_default *objects;
    /* The same for model.boxes=rotated. NULL: objects. */
    const struct pm_object_default *rotated_objects;
    float weight_decay;        /* default of the net's own scope */
    /* Builds the net over images and adds its heads to the empty list. */
    void (*build)(struct pm_net *net, struct pm_node *images, int num_classes, const void *cfg,
                  struct pm_heads *heads);
    /* Continues a net that build() has made: builds the second stage over regions of its images
     * and adds that stage's heads to the empty list; their rows are those of the regions, R for
     * each image. NULL: the net has one stage. */
    void (*second)(struct pm_net *net, const struct pm_regions *regions, int num_classes,
                   const void *cfg, struct pm_heads *heads);
    const struct pm_net_row *torch; /* the same net with default conventions=torch and the other
                                     * defaults of these conventions; NULL: TensorFlow's only */
};
const struct pm_net_row *pm_net_row_find(const char *name);
const struct pm_net_row *const *pm_net_rows(size_t *count);
/* Returns the row, or its torch row if these options (a JSON object or NULL) set
 * conventions=torch. */
const struct pm_net_row *pm_net_row_variant(const struct pm_net_row *row,
                                            const struct cJSON *options);
/* Returns the preprocessing that a net's name selects as input.preprocessing; NULL: no net has that
 * name. */
const char *pm_net_preprocessing(const char *net);
/* Returns why a well-known net is not in the rows: "is ..."; NULL if the name is unknown. */
const char *pm_net_refusal(const char *name);

/* ---- JSON layer lists ------------------------------------------------------------------ */

/* Builds from [{"name":, "layer":, "inputs": [...], "share":, option...}, ...]. A layer without
 * "inputs" reads the layer before it. Inputs name earlier layers, "images", "@previous" or, inside
 * a repeat, "@input" (the input of this round). For a layer with several outputs NAME is the first
 * and "NAME:k" is output k = 0, 1, .... {"repeat": n, "layers": [...]} repeats the layers and
 * replaces %d in names by 1..n; "as" names another placeholder. *heads becomes one head, "logits":
 * the node of that name, else the last node. The task finds further heads among the net's nodes.
 * where: the list's place for messages, "x.json: model.layers". */
int pm_net_from_json(struct pm_net *net, struct pm_node *images, const struct cJSON *list,
                     const char *where, struct pm_heads *heads);
/* Builds a part of a net from such a list. Its first layer reads x, which the list calls `input`
 * instead of "images". No layer may have this name. *out becomes the last layer's node. If
 * net->prefix is set, layers may have names that occur outside of this scope, too. */
int pm_net_part_from_json(struct pm_net *net, struct pm_node *x, const char *input,
                          const struct cJSON *list, const char *where, struct pm_node **out);
/* Returns a layer list that builds the same net again: every node except the inputs. Call it before
 * the task adds its losses. Freed with cJSON_Delete. */
struct cJSON *pm_net_to_json(const struct pm_net *net);

#ifdef __cplusplus
}
#endif

#endif
