/* segmentation: shared by the files of this task. Label maps are struct pm_label. The config
 * selects the colours of label maps and predictions. */
#ifndef PM_SEGMENTATION_H
#define PM_SEGMENTATION_H

#include "data/instance_targets.h"

#include <pumice/task.h>

struct pm_example;

/* ---- options of the config's sections that segmentation adds (segmentation_options.c) ---- */

struct pm_segmentation_model {
    bool predict_upsampled;     /* logits are enlarged before the argmax */
    int instance_mode;          /* enum pm_instance_mode */
};
struct pm_segmentation_data {
    int ignore_label;           /* label of ignored pixels; -1 = none, -2 = the data's */
    struct pm_ints thing_classes; /* classes with instances; none = the data's */
    int center_sigma;           /* of instances' centres, in pixels; 0 = default of
                                 * model.instance_mode */
    int small_instance_area;    /* in pixels; see small_instance_weight */
    float small_instance_weight; /* of smaller instances, in the classes' loss */
    int edge_width;             /* width of the bands along edges, in the map's pixels */
};
struct pm_segmentation_input {
    const struct cJSON *buckets; /* as in the config */
};
enum pm_normalize { PM_NORMALIZE_NONZERO_WEIGHT, PM_NORMALIZE_KEPT_PIXELS, PM_NORMALIZE_TOP_K };
struct pm_segmentation_loss {
    bool upsample_logits;       /* the loss is taken at the picture's size */
    struct pm_floats label_weights; /* per class; none = 1 */
    int normalize;              /* enum pm_normalize */
    float top_k_percent;        /* share of pixels that count: those with the largest losses */
    int hard_mining_steps;      /* steps in which the share falls from 1 to top_k_percent */
    float center_weight, offset_weight; /* of instances: NAN = default of the mode */
    bool matting;               /* labels are degrees of foreground */
    float edge_weight;          /* of the edges' loss; the classes' loss then has 1 - edge_weight */
};
enum pm_summary_labels { PM_LABELS_GREY, PM_LABELS_CLASSES };
struct pm_segmentation_run {
    int summary_labels;         /* enum pm_summary_labels */
    bool train_metrics;         /* of training batches, at logged steps */
};
struct pm_segmentation_eval {
    struct pm_floats scales;    /* predictions are averaged over these; none = 1 */
    bool flip;                  /* also averaged over mirrored pictures */
    int colormap;               /* enum pm_colormap */
    bool save_raw;              /* predict also writes class numbers */
    const struct cJSON *panoptic; /* as in the config */
};
/* eval.panoptic: how instances are grouped and scored. */
enum pm_instance_score { PM_SCORE_CLASS, PM_SCORE_CLASS_AND_CENTER };
enum pm_precision { PM_PRECISION_CITYSCAPES, PM_PRECISION_COCO };
struct pm_panoptic_options {
    float threshold;            /* a centre's heat exceeds it; NAN = the mode's */
    int nms_kernel;             /* odd: window in which a centre is the largest */
    int top_k;                  /* of centres; with that many the coolest are left out */
    int stuff_area;             /* minimum pixels of a segment of stuff */
    int label_divisor;          /* in the numbers that predict writes */
    int score;                  /* enum pm_instance_score: of an instance */
    int precision;              /* enum pm_precision: rules of average precision */
    int least_area;             /* pixels; Cityscapes': smaller true instances are ignored */
    int ignored_area;           /* true instances of at most this area are void; -1 = the mode's */
    bool normalize_by_image_size; /* pc: areas are divided by their pictures' sizes */
};
struct pm_segmentation_export {
    struct pm_floats scales;    /* as in eval, inside the graph */
    bool flip;
    bool pad;                   /* smaller pictures are padded inside the graph */
    int output_stride;          /* of the exported net; 0 = model.output_stride */
    bool prob_double_softmax;   /* as in the original's averages */
};

/* ---- the object ---------------------------------------------------------------------------- */

/* The scales at which a picture is predicted. Predictions are averaged. */
struct pm_segmentation_eval_modes {
    struct pm_floats scales; /* none: 1 */
    bool flip;               /* each scale is also mirrored */
    bool double_softmax;     /* apply a softmax again to the averages */
};
/* How a net with heads for instances is trained and scored. */
struct pm_instances {
    bool on;                 /* the net has heads of centres and offsets; set from the net */
    int mode;                /* enum pm_instance_mode */
    struct pm_ints things;   /* classes with instances; borrowed */
    int label_divisor;       /* of instance maps: class * label_divisor + the instance's number
                              * within the class, from 1 */
    int center_sigma;        /* of the targets, pixels; 0: the mode's */
    int small_area;          /* in pixels; see small_weight */
    float small_weight;      /* of smaller instances, in the classes' loss */
    const struct pm_panoptic_options *panoptic; /* grouping and scoring of instances */
};
/* Values of this task from the config and the data; lists are borrowed from there. */
struct pm_pixels {
    int ignore_label;                 /* label of ignored pixels; -1: none */
    int label_height, label_width;    /* of training's label maps in the facts' frame; set from the
                                       * net */
    struct pm_label_size {            /* the same in the other frames of training */
        struct pm_frame frame, map;
    } *label_sizes;                   /* owned */
    size_t label_sizes_count, label_sizes_capacity;
    bool upsample_logits;             /* the loss is taken at the picture's size */
    const struct pm_segmentation_loss *loss; /* its weights, divisor and mining; NULL: the
                                              * defaults */
    bool predict_upsampled;           /* logits are enlarged before the argmax */
    struct pm_segmentation_eval_modes eval_modes; /* of evaluation and prediction */
    struct pm_segmentation_eval_modes export_modes; /* of exported models */
    int colormap;                     /* enum pm_colormap */
    bool save_raw;                    /* predict also writes class numbers */
    int summary_labels;               /* enum pm_summary_labels */
    struct pm_instances instance;
    bool matting;                     /* labels are degrees of foreground, PM_F32; padding is -1 */
    int edge_classes;                 /* number of classes of the net's edge output, 0: none; set
                                       * from the net */
    const char *train_classes;        /* node of the training net with each pixel's predicted class,
                                       * I32 like the labels; NULL: none */
    int output_stride;                /* of the net; set from the net if the facts have none */
    int edge_width;                   /* of the band along an edge, in the record's pixels */
};
struct pm_task {
    struct pm_task_facts facts;
    float label_smoothing;
    struct pm_pixels pixels;
    struct pm_segmentation_loss loss;     /* pixels.loss points here */
    struct pm_panoptic_options panoptic;
    struct pm_segmentation_export export;
};

/* segmentation_options.c: the task's options in the config, and hooks of pm_task_row. */
extern const struct pm_task_section pm_segmentation_sections[];
extern const struct pm_metric_kind pm_segmentation_metrics[];
extern const struct pm_task_default pm_segmentation_defaults[];
int pm_segmentation_check_config(const struct pm_config *c);
int pm_segmentation_open(const struct pm_task_facts *facts, struct pm_task **out);
void pm_segmentation_close(struct pm_task **t);
void pm_segmentation_list_metrics(const struct pm_task *t, struct pm_metric_list *out);
void pm_segmentation_tag(const struct pm_config *c, const char *metric, int class,
                         struct pm_str *out);
/* Returns PM_ECONFIG if facts and options contradict each other. */
int pm_segmentation_check(const struct pm_task *t);

/* segmentation_list_heads.c. The hook find_heads. */
void pm_segmentation_find_heads(struct pm_net *net, struct pm_heads *heads);

/* ---- samples, heads, scores -------------------------------------------------------------- */

/* Fields of a batch beside "images" and "labels" if pixels.instance.on. In training, from
 * fields[2], all PM_F32, in this order:
 *   center, center_weight [h, w, 1], offset, offset_weight [h, w, 2] (y, x in pixels),
 *   semantic_weight [h, w].
 * In evaluation fields[2]:
 *   instances [h, w] PM_I32: the record's instance map, framed like the labels. Values are
 *   class * label_divisor + number from 1; number 0: a crowd; below label_divisor: no instance; -1:
 *   below and right of the picture. Without a map all values are 0. */

/* If pixels.edge_classes > 0, the last field of both: edge_labels [h, w] PM_I32, classes of
 * data/edge_labels.h. They are computed from the record's map, then framed like it. */

/* Returns the size of the label maps in a batch of this frame: in training the logits' size if the
 * loss is taken there, else the frame. */
struct pm_frame pm_segmentation_label_frame(const struct pm_task *s, bool train,
                                            struct pm_frame frame);
/* Reads the record's label map. Every value is a class or ignored. Freed with pm_label_free. */
int pm_segmentation_label(const struct pm_example *e, const struct pm_task *s, const char *where,
                          struct pm_label *out);
/* segmentation_instances.c. Adds the fields above, if they are on. */
void pm_segmentation_instance_fields(const struct pm_task *s, bool train, struct pm_frame frame,
                                     struct pm_field_list *out);
/* A record's data about instances, beside the label map; freed with pm_recorded_instances_free. */
enum { PM_SEED4_PICTURES = 3 };
struct pm_recorded_instances {
    struct pm_label map; /* without values if the record has only the fork's pictures */
    int divisor;         /* of its values: class * divisor + the instance's number */
    struct pm_image8 seed4[PM_SEED4_PICTURES]; /* of the fork's records, mode seed4: heat, offset y,
                                                * offset x */
};
void pm_recorded_instances_free(struct pm_recorded_instances *r);
int pm_segmentation_instances(const struct pm_example *e, const struct pm_task *s,
                              const struct pm_label *label, const char *where,
                              struct pm_recorded_instances *out);
/* Makes these fields, framed like the labels. */
int pm_segmentation_make_instances(const struct pm_sampler *sampler,
                                   const struct pm_recorded_instances *m,
                                   const struct pm_placed *placed, const char *where,
                                   const int32_t *labels, void *const *out);
/* segmentation_nodes.c. Returns a name for a node that the task adds to the net: `name`, or `name`
 * followed by a number if the net already has such a node, as an imported model or a layer list
 * may. */
const char *pm_segmentation_own(struct pm_net *net, const char *name);
/* The same for an output. For EXPORT it is always `name`, by which readers of the file find it. */
const char *pm_segmentation_output(struct pm_net *net, const char *name, enum pm_use use);
/* Resizes x to height x width, with aligned corners. */
struct pm_node *pm_segmentation_resized(struct pm_net *net, const char *name, struct pm_node *x,
                                        int height, int width, const char *method);
/* segmentation_eval_modes.c. The hook add_outputs of struct pm_task_row. */
int pm_segmentation_outputs(struct pm_net *net, struct pm_node *images,
                            const struct pm_net_maker *maker, const struct pm_task *s,
                            enum pm_use use, struct pm_outputs *out);
/* segmentation_instance_heads.c. The first adds the losses of the instance heads. The second
 * returns the weights of pixels in the loss of the classes, or NULL. */
void pm_segmentation_instance_losses(struct pm_net *net, const struct pm_heads *heads,
                                     const struct pm_task *s);
struct pm_node *pm_segmentation_pixel_weights(struct pm_net *net, const struct pm_task *s);
/* One evaluation mode: pictures of height x width, scaled (0: not scaled) to seen_height x
 * seen_width, mirrored or not. */
struct pm_segmentation_view {
    float scale;
    bool mirrored;
    int height, width, seen_height, seen_width;
};
/* Sums over the evaluation modes so far, zeroed before the first mode; the function adds one
 * mode. */
struct pm_instance_maps { struct pm_node *center, *offset; };
void pm_segmentation_add_instances(struct pm_net *net, const struct pm_heads *heads,
                                   const struct pm_segmentation_view *v, const struct pm_task *s,
                                   struct pm_instance_maps *sum);
/* Appends the outputs made from the sums of `modes` evaluation modes (0: one mode). They are the
 * probabilities of all classes (NULL: already an output), heat [n, h, w, 1] and offsets in the
 * pictures' pixels [n, h, w, 2]. Probabilities are needed, because an instance's class is that of
 * most of its pixels. In EVAL and PREDICT they are outputs 1, 2, 3. */
void pm_segmentation_instance_outputs(struct pm_net *net, const struct pm_instance_maps *sum,
                                      int modes, struct pm_node *probabilities, enum pm_use use,
                                      struct pm_outputs *out);
/* segmentation_seed4.c: records of the fork. out is zeroed before; the caller frees it, also after
 * a failure. */
struct pm_instance_target;
bool pm_seed4_has(const struct pm_example *e);
int pm_seed4_read(const struct pm_example *e, const struct pm_task *s, const struct pm_label *label,
                  const char *where, struct pm_recorded_instances *out);
/* Makes training targets, if r->seed4 has pixels. */
void pm_seed4_targets(const struct pm_recorded_instances *r, const struct pm_placed *placed,
                      const struct pm_instance_target *out);
/* segmentation_panoptic.c. The task's options for grouping and scoring. */
struct pm_segment_map;
struct pm_panoptic_metrics;
struct pm_group_options pm_segmentation_grouping(const struct pm_task *s);
struct pm_panoptic_metrics *pm_segmentation_panoptic_create(const struct pm_task *s);
/* Computes the segments of the first height rows and width columns of example i of EVAL's or
 * PREDICT's outputs, which have this frame, with their scores; freed with pm_segment_map_free. */
void pm_segmentation_panoptic(const struct pm_task *s, struct pm_frame frame,
                              const void *const *outputs, int i, int height, int width,
                              struct pm_segment_map *out);
/* Computes the ground truth of example i of an evaluation batch. height and width: the rows and
 * columns of the input that its picture covers. out [*height][*width]: ids of segments
 * (panoptic_metrics.h), with room for the whole input. */
void pm_segmentation_panoptic_truth(const struct pm_task *s, const struct pm_batch *batch, int i,
                                    int *height, int *width, int32_t *out);
/* The same for a record, at its own size. */
int pm_segmentation_panoptic_label(const struct pm_example *e, const struct pm_task *s,
                                   const struct pm_label *label, const char *where, int32_t *out);
/* Adds the metrics to object, and members for things, for stuff, and for each class. */
void pm_segmentation_panoptic_report(const struct pm_panoptic_metrics *m, const struct pm_task *s,
                                     struct cJSON *object);
/* Draws each instance in its own colour, stuff in its class's colour at half brightness, void in
 * black. ids: class * divisor + number. im is freed with pm_image_free. */
void pm_segmentation_panoptic_paint(const struct pm_task *s, const int32_t *ids, int divisor,
                                    int height, int width, struct pm_image8 *im);
/* Adds a prediction at height x width: "segments" in object. If pictures is not NULL, also pictures
 * of the instances and of their numbers, from index *at on. */
void pm_segmentation_panoptic_present(const struct pm_task *s, const struct pm_segment_map *p,
                                      int height, int width, struct cJSON *object,
                                      struct pm_drawings *drawings);
/* Computes where evaluation places a picture of this size in a frame. */
int pm_segmentation_place(const struct pm_task *s, struct pm_frame frame, int height, int width,
                          const char *where, struct pm_framing *out);

/* The hook frame. In training a picture needs its size after the random scale (pm_record_need). In
 * evaluation a picture that keeps its own size needs k * output_stride + 1 pixels per side. */
int pm_segmentation_frame(const struct pm_task *s, const struct pm_occasion *o, int height,
                          int width, struct pm_frame *out);
/* Returns the ratio of the input to the net's map: a power of 2 if one fits. */
int pm_segmentation_stride(int input, int map);

/* A prediction: classes of the input's pixels. */
struct pm_class_map {
    int height, width; /* the first rows and columns, which are drawn and scored */
    int stride;        /* elements from one row to the next */
    const int32_t *classes;
};

/* segmentation_matting.c, for pixels.matting. In this order: checks the config; checks the net's
 * heads; converts a map's numbers of `bits` bits to degrees 0..65535; converts a framed map (-1:
 * padding) to the field; returns the field's value for an absent example; converts degrees to
 * classes, -1 if ignored; adds the loss. */
int pm_segmentation_matting_check(const struct pm_task *s);
int pm_segmentation_matting_heads(const struct pm_task *s);
void pm_segmentation_degrees(struct pm_label *l, int bits);
void pm_segmentation_matting_field(const int32_t *map, size_t count, float *out);
int32_t pm_segmentation_matting_absent(void);
void pm_segmentation_matting_classes(const float *degrees, size_t count, int32_t *out);
void pm_segmentation_matting_loss(struct pm_net *net, const char *name, struct pm_node *logits,
                                  struct pm_node *labels, const struct pm_segmentation_loss *c);

/* segmentation_edges.c. In this order: returns the index of the edge field, which has the shape and
 * type of the labels; makes the map of its classes, freed with pm_label_free; adds the training
 * loss. */
int pm_segmentation_edge_field(const struct pm_task *s, bool train);
void pm_segmentation_edge_labels(const struct pm_task *s, const struct pm_label *labels,
                                 struct pm_label *out);
void pm_segmentation_edge_loss(struct pm_net *net, struct pm_node *edge, const struct pm_task *s);
/* Adds the probabilities of one evaluation mode, at height x width, to *sum, which is NULL before
 * the first. */
void pm_segmentation_add_edges(struct pm_net *net, struct pm_node *edge, bool mirrored, int height,
                               int width, struct pm_node **sum);
/* Appends the outputs made from the sum of `modes` evaluation modes (0: one mode): classes of
 * edges, and for EXPORT their probabilities. */
void pm_segmentation_edge_outputs(struct pm_net *net, struct pm_node *sum, int modes,
                                  enum pm_use use, struct pm_outputs *out);
/* Returns the index of the edge classes among EVAL's and PREDICT's outputs. */
int pm_segmentation_edge_output(const struct pm_task *s);
/* Draws a prediction's edges at height x width: edges white, bands beside them darker with
 * distance. */
void pm_segmentation_edge_paint(const struct pm_task *s, const struct pm_class_map *m, int height,
                                int width, struct pm_image8 *im);
/* Returns the factor of the classes' loss beside the edges' loss. */
float pm_segmentation_class_weight(const struct pm_task *s);

/* Resizes to height x width by nearest elements, with aligned corners. out: height * width. */
void pm_segmentation_resize(const struct pm_class_map *m, int height, int width, int32_t *out);
/* Draws classes in their colours. im is freed with pm_image_free. */
void pm_segmentation_paint(const struct pm_task *s, const int32_t *classes, int height, int width,
                           struct pm_image8 *im);

/* The hooks of struct pm_task_row, in segmentation_score.c, segmentation_summary.c and
 * segmentation_present.c. */
struct pm_score *pm_segmentation_score_create(const struct pm_task *s);
void pm_segmentation_score_destroy(struct pm_score **m);
int pm_segmentation_score_add(struct pm_score *m, const struct pm_batch *batch,
                              const void *const *outputs, double loss);
void pm_segmentation_score_pack(const struct pm_score *m, struct pm_str *out);
int pm_segmentation_score_merge(struct pm_score *m, const void *bytes, size_t size);
void pm_segmentation_score_report(const struct pm_score *m, struct cJSON *object);
void pm_segmentation_score_detail(const struct pm_score *m, struct cJSON *object);
int pm_segmentation_score_samples(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES]);
int pm_segmentation_score_sample(const struct pm_score *m, int i, const uint8_t *record,
                                 size_t size, const char *where, struct cJSON *object,
                                 struct pm_drawings *drawings);
void pm_segmentation_summary(const struct pm_task *s, const struct pm_shown *shown, int i,
                             struct pm_drawings *drawings);
int pm_segmentation_present(const struct pm_task *s, struct pm_frame frame,
                            const void *const *outputs, const struct pm_image8 *picture,
                            struct cJSON *object, struct pm_drawings *drawings);

/* Appends the shares of the classes' pixels and, in brackets, the numbers of instances. */
void pm_segmentation_print(const struct cJSON *object, struct pm_str *out);

/* segmentation_inspect.c */
extern const struct pm_task_inspect pm_segmentation_inspect;
/* The hook record_classes of pm_task_row. */
int pm_segmentation_record_classes(const struct pm_task *t, const struct pm_example *e,
                                   const char *where, uint64_t *has, size_t count, bool *other);

#endif
