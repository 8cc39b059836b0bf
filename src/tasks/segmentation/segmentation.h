/* segmentation: what the files of this task share. Label maps are of pm_label; their colours and those
 * of predictions are the config's. */
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
    int ignore_label;           /* of pixels that do not count; -1 = none, -2 = the data's */
    struct pm_ints thing_classes; /* whose pixels are of instances; none = the data's */
    int center_sigma;           /* of instances' centres, pixels; 0 = model.instance_mode's */
    int small_instance_area;    /* pixels; of smaller ones the classes' loss has */
    float small_instance_weight; /* this weight */
    int edge_width;             /* of the bands along edges, in the map's pixels */
};
enum pm_normalize { PM_NORMALIZE_NONZERO_WEIGHT, PM_NORMALIZE_KEPT_PIXELS, PM_NORMALIZE_TOP_K };
struct pm_segmentation_loss {
    bool upsample_logits;       /* the loss is taken at the picture's size */
    struct pm_floats label_weights; /* of each class; none = 1 */
    int normalize;              /* enum pm_normalize */
    float top_k_percent;        /* share of the pixels, those with the largest losses, that count */
    int hard_mining_steps;      /* until it is that, falling from 1 */
    float center_weight, offset_weight; /* of instances: NAN = the mode's */
    bool matting;               /* labels are degrees of foreground */
    float edge_weight;          /* of edges; the classes' loss has 1 - edge_weight, where there are edges */
};
struct pm_segmentation_run {
    bool train_metrics;         /* of training's batches, at logged steps */
};
struct pm_segmentation_eval {
    struct pm_floats scales;    /* predictions are averaged over these; none = 1 */
    bool flip;                  /* and over mirrored pictures */
    int colormap;               /* enum pm_colormap */
    bool save_raw;              /* predict writes class numbers, too */
    const struct cJSON *panoptic; /* as written */
};
/* eval.panoptic: how instances are grouped and scored. */
enum pm_instance_score { PM_SCORE_CLASS, PM_SCORE_CLASS_AND_CENTER };
enum pm_precision { PM_PRECISION_CITYSCAPES, PM_PRECISION_COCO };
struct pm_panoptic_options {
    float threshold;            /* heat of a centre is above it; NAN = the mode's */
    int nms_kernel;             /* odd: window in which a centre is the largest */
    int top_k;                  /* centres; with so many the coolest are left out */
    int stuff_area;             /* pixels of a segment of stuff, at least */
    int label_divisor;          /* of the numbers that predict writes */
    int score;                  /* enum pm_instance_score: of an instance */
    int precision;              /* enum pm_precision: whose rules average precision goes by */
    int least_area;             /* Cityscapes': true instances with fewer pixels do not count for it */
    int ignored_area;           /* true instances of at most this are void; -1 = the mode's */
    bool normalize_by_image_size; /* pc: areas are shares of their pictures */
};
struct pm_segmentation_export {
    struct pm_floats scales;    /* as in eval, inside the graph */
    bool flip;
    bool pad;                   /* smaller pictures come in, too */
    int output_stride;          /* of the exported net; 0 = model.output_stride */
    bool prob_double_softmax;   /* as the original's averages have it */
};

/* ---- the object ---------------------------------------------------------------------------- */

/* The scales at which a picture is predicted; predictions are averaged. */
struct pm_segmentation_eval_modes {
    struct pm_floats scales; /* none: 1 */
    bool flip;               /* and mirrored at each of them */
    bool double_softmax;     /* of the averages a softmax again */
};
/* What a net with heads for instances is trained and scored by. */
struct pm_instances {
    bool on;                 /* the net has heads of centres and offsets; settled by the net */
    int mode;                /* enum pm_instance_mode */
    struct pm_ints things;   /* classes that instances are of; borrowed */
    int label_divisor;       /* of instance maps: class * this + the instance's number in it, from 1 */
    int center_sigma;        /* of the targets, pixels; 0: the mode's */
    int small_area;          /* pixels: of smaller ones the classes' loss has */
    float small_weight;      /* this weight */
    const struct pm_panoptic_options *panoptic; /* how they are grouped and scored */
};
/* What this task takes from the config and the data; lists are borrowed from there. */
struct pm_pixels {
    int ignore_label;                 /* pixels of it do not count; -1: none */
    int label_height, label_width;    /* of training's label maps; by the net */
    bool upsample_logits;             /* the loss is taken at the picture's size */
    const struct pm_segmentation_loss *loss; /* its weights, divisor and mining; NULL: the defaults */
    bool predict_upsampled;           /* logits are enlarged before the argmax */
    struct pm_segmentation_eval_modes eval_modes; /* of evaluation and prediction */
    struct pm_segmentation_eval_modes export_modes; /* of exported models */
    int colormap;                     /* enum pm_colormap */
    bool save_raw;                    /* predict writes class numbers, too */
    struct pm_instances instance;
    bool matting;                     /* labels are degrees of foreground, PM_F32; padding is -1 */
    int edge_classes;                 /* of the net's output of edges, 0: it has none; by the net */
    const char *train_classes;        /* node of the training net that says each pixel's class, I32 as the
                                       * labels are; NULL: there is none */
    int edge_width;                   /* of the band along an edge, in the record's pixels */
};
struct pm_task {
    struct pm_task_facts facts;
    float label_smoothing;
    struct pm_pixels pixels;
    struct pm_segmentation_loss loss;     /* what pixels points at */
    struct pm_panoptic_options panoptic;
    struct pm_segmentation_export export;
};

/* segmentation_options.c: what the config knows of this task, and pm_task_row's hooks. */
extern const struct pm_task_section pm_segmentation_sections[];
extern const struct pm_metric_kind pm_segmentation_metrics[];
int pm_segmentation_check_config(const struct pm_config *c);
int pm_segmentation_open(const struct pm_task_facts *facts, struct pm_task **out);
void pm_segmentation_close(struct pm_task **t);
void pm_segmentation_list_metrics(const struct pm_task *t, struct pm_metric_list *out);
void pm_segmentation_tag(const struct pm_config *c, const char *metric, int class, struct pm_str *out);
/* PM_ECONFIG: facts and options do not fit each other. */
int pm_segmentation_check(const struct pm_task *t);

/* segmentation_list_heads.c. The hook find_heads. */
void pm_segmentation_find_heads(struct pm_net *net, struct pm_heads *heads);

/* ---- samples, heads, scores -------------------------------------------------------------- */

/* Fields of a batch beside "images" and "labels" where pixels.instance.on: of training
 *   center, center_weight [h, w, 1], offset, offset_weight [h, w, 2] (y, x in pixels),
 *   semantic_weight [h, w], all PM_F32, in this order from fields[2];
 * of evaluation fields[2]:
 *   instances [h, w] PM_I32: the record's map of instances as the labels are framed, values class *
 *   label_divisor + number from 1, with 0 for its number a crowd, below label_divisor none, -1 below and
 *   right of the picture; absent 0. */

/* And the last one where pixels.edge_classes > 0, of both: edge_labels [h, w] PM_I32, classes of
 * data/edge_labels.h, made of the record's map and then framed as it is. */

/* The record's label map, every value of it a class or ignored; freed with pm_label_free. */
int pm_segmentation_label(const struct pm_example *e, const struct pm_task *s, const char *where,
                          struct pm_label *out);
/* segmentation_instances.c. Adds the fields above, where they are on. */
void pm_segmentation_instance_fields(const struct pm_task *s, bool train, struct pm_field_list *out);
/* What a record tells of instances beside the map of classes; freed with pm_recorded_instances_free. */
enum { PM_SEED4_PICTURES = 3 };
struct pm_recorded_instances {
    struct pm_label map; /* without values where only the fork's pictures are there */
    int divisor;         /* of its values: the class, and the instance's number */
    struct pm_image8 seed4[PM_SEED4_PICTURES]; /* of the fork's records, mode seed4: heat, offsets y, x */
};
void pm_recorded_instances_free(struct pm_recorded_instances *r);
int pm_segmentation_instances(const struct pm_example *e, const struct pm_task *s,
                              const struct pm_label *label, const char *where,
                              struct pm_recorded_instances *out);
/* These fields, of the labels as they are framed. */
int pm_segmentation_make_instances(const struct pm_sampler *sampler, const struct pm_recorded_instances *m,
                                   const struct pm_placed *placed, const char *where,
                                   const int32_t *labels, void *const *out);
/* segmentation_nodes.c. A name for a node behind the net: this, or, where the net itself has such a node,
 * as an imported model or a list may, with a number behind it. */
const char *pm_segmentation_own(struct pm_net *net, const char *name);
/* The same for what comes out; of EXPORT always this, by which readers of the file know it. */
const char *pm_segmentation_output(struct pm_net *net, const char *name, enum pm_use use);
/* x in height x width, corners aligned. */
struct pm_node *pm_segmentation_resized(struct pm_net *net, const char *name, struct pm_node *x,
                                        int height, int width, const char *method);
/* segmentation_eval_modes.c. The hook add_outputs of struct pm_task_row. */
int pm_segmentation_outputs(struct pm_net *net, struct pm_node *images, const struct pm_net_maker *maker,
                            const struct pm_task *s, enum pm_use use, struct pm_outputs *out);
/* segmentation_instance_heads.c. What training adds for heads of instances, and the weights of pixels in the loss
 * of the classes, or NULL. */
void pm_segmentation_instance_losses(struct pm_net *net, const struct pm_heads *heads,
                                     const struct pm_task *s);
struct pm_node *pm_segmentation_pixel_weights(struct pm_net *net, const struct pm_task *s);
/* One evaluation mode: pictures of height x width, scaled (0: not) to seen_height x seen_width, and
 * mirrored or not. */
struct pm_segmentation_view {
    float scale;
    bool mirrored;
    int height, width, seen_height, seen_width;
};
/* Sums over the evaluation modes so far, zeroed before the first; and adds one mode. */
struct pm_instance_maps { struct pm_node *center, *offset; };
void pm_segmentation_add_instances(struct pm_net *net, const struct pm_heads *heads,
                                   const struct pm_segmentation_view *v, const struct pm_task *s,
                                   struct pm_instance_maps *sum);
/* Appends the outputs made of `modes` evaluation modes (0: one): the probabilities of all classes,
 * since an instance's class is that of most of its pixels (NULL: they are there already), heat
 * [n, h, w, 1], offsets in the pictures' pixels [n, h, w, 2]. EVAL's and PREDICT's are outputs 1,
 * 2, 3. */
void pm_segmentation_instance_outputs(struct pm_net *net, const struct pm_instance_maps *sum,
                                      int modes, struct pm_node *probabilities, enum pm_use use,
                                      struct pm_outputs *out);
/* segmentation_seed4.c: records of the fork. out is zeroed, and freed by the caller also after a failure. */
struct pm_instance_target;
bool pm_seed4_has(const struct pm_example *e);
int pm_seed4_read(const struct pm_example *e, const struct pm_task *s, const struct pm_label *label,
                  const char *where, struct pm_recorded_instances *out);
/* Of training, where r->seed4 has pixels. */
void pm_seed4_targets(const struct pm_task *s, const struct pm_recorded_instances *r,
                      const struct pm_placed *placed, const struct pm_instance_target *out);
/* segmentation_panoptic.c. How the setup groups and scores. */
struct pm_segment_map;
struct pm_panoptic_metrics;
struct pm_group_options pm_segmentation_grouping(const struct pm_task *s);
struct pm_panoptic_metrics *pm_segmentation_panoptic_create(const struct pm_task *s);
/* Segments of the first height rows and width columns of example i of EVAL's or PREDICT's outputs, with
 * their scores; freed with pm_segment_map_free. */
void pm_segmentation_panoptic(const struct pm_task *s, const void *const *outputs, int i, int height,
                              int width, struct pm_segment_map *out);
/* Example i of a batch of evaluation: of the input the rows and columns that its picture has, and what is
 * true of these: out [*height][*width] ids of segments (panoptic_metrics.h), with room for the input's. */
void pm_segmentation_panoptic_truth(const struct pm_task *s, const struct pm_batch *batch, int i,
                                    int *height, int *width, int32_t *out);
/* The same of a record, at its own size. */
int pm_segmentation_panoptic_label(const struct pm_example *e, const struct pm_task *s,
                                   const struct pm_label *label, const char *where, int32_t *out);
/* The metrics, and members beside them: of things, of stuff, of each class. */
void pm_segmentation_panoptic_report(const struct pm_panoptic_metrics *m, const struct pm_task *s,
                                     struct cJSON *object);
/* A colour for each instance, those of classes at half their brightness for stuff, black for void. ids:
 * class * divisor + number. im is freed with pm_image_free. */
void pm_segmentation_panoptic_paint(const struct pm_task *s, const int32_t *ids, int divisor,
                                    int height, int width, struct pm_image8 *im);
/* A prediction at height x width: "segments" of object, and, where pictures is not NULL, from *at on those
 * of the instances and of their numbers. */
void pm_segmentation_panoptic_present(const struct pm_task *s, const struct pm_segment_map *p, int height,
                                      int width, struct cJSON *object, struct pm_picture *pictures,
                                      int *at);
/* Where evaluation puts a picture of this size into the input. */
int pm_segmentation_place(const struct pm_task *s, int height, int width, const char *where,
                          struct pm_framing *out);

/* A prediction: classes of the input's rows and columns. */
struct pm_class_map {
    int height, width; /* the first rows and columns, which are shown and scored */
    int stride;        /* elements from row to row */
    const int32_t *classes;
};

/* segmentation_matting.c, of pixels.matting. Whether the config allows it, and then the net's
 * heads; a map's numbers of so many bits as degrees of 0..65535; a framed map, -1 its padding, as the
 * field; that of an example that is absent; classes of degrees, -1 where they are ignored; the loss. */
int pm_segmentation_matting_check(const struct pm_task *s);
int pm_segmentation_matting_heads(const struct pm_task *s);
void pm_segmentation_degrees(struct pm_label *l, int bits);
void pm_segmentation_matting_field(const int32_t *map, size_t count, float *out);
int32_t pm_segmentation_matting_absent(void);
void pm_segmentation_matting_classes(const float *degrees, size_t count, int32_t *out);
void pm_segmentation_matting_loss(struct pm_net *net, const char *name, struct pm_node *logits,
                                  struct pm_node *labels, const struct pm_segmentation_loss *c);

/* segmentation_edges.c. The edge field's place among the fields, its shape and type being those of the
 * labels; the map of its classes, freed with pm_label_free; what training adds for it. */
int pm_segmentation_edge_field(const struct pm_task *s, bool train);
void pm_segmentation_edge_labels(const struct pm_task *s, const struct pm_label *labels,
                                 struct pm_label *out);
void pm_segmentation_edge_loss(struct pm_net *net, struct pm_node *edge, const struct pm_task *s);
/* Adds the probabilities of one evaluation mode, at height x width, to *sum, which is NULL before
 * the first. */
void pm_segmentation_add_edges(struct pm_net *net, struct pm_node *edge, bool mirrored, int height,
                               int width, struct pm_node **sum);
/* Appends the outputs made of `modes` evaluation modes (0: one): classes of edges, and for EXPORT
 * their probabilities. */
void pm_segmentation_edge_outputs(struct pm_net *net, struct pm_node *sum, int modes,
                                  enum pm_use use, struct pm_outputs *out);
/* Where among EVAL's and PREDICT's outputs the classes of edges are. */
int pm_segmentation_edge_output(const struct pm_task *s);
/* A prediction's edges, white, and bands beside them, the darker the farther, at height x width. */
void pm_segmentation_edge_paint(const struct pm_task *s, const struct pm_class_map *m, int height,
                                int width, struct pm_image8 *im);
/* Factor of the loss of the classes beside it. */
float pm_segmentation_class_weight(const struct pm_task *s);

/* Brought to height x width, each element the nearest one's, corners aligned. out: height * width. */
void pm_segmentation_resize(const struct pm_class_map *m, int height, int width, int32_t *out);
/* Classes in their colours. im is freed with pm_image_free. */
void pm_segmentation_paint(const struct pm_task *s, const int32_t *classes, int height, int width,
                           struct pm_image8 *im);

/* The hooks of struct pm_task_row; their file is segmentation_score.c, segmentation_present.c. */
struct pm_score *pm_segmentation_score_create(const struct pm_task *s);
void pm_segmentation_score_destroy(struct pm_score **m);
int pm_segmentation_score_add(struct pm_score *m, const struct pm_batch *batch,
                              const void *const *outputs, double loss);
void pm_segmentation_score_report(const struct pm_score *m, struct cJSON *object);
void pm_segmentation_score_detail(const struct pm_score *m, struct cJSON *object);
int pm_segmentation_score_samples(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES]);
int pm_segmentation_score_sample(const struct pm_score *m, int i, const uint8_t *record, size_t size,
                                 const char *where, struct cJSON *object,
                                 struct pm_picture pictures[PM_MAX_PICTURES]);
void pm_segmentation_summary(const struct pm_task *s, const struct pm_shown *shown, int i,
                             struct pm_picture pictures[PM_MAX_PICTURES]);
int pm_segmentation_present(const struct pm_task *s, const void *const *outputs,
                            const struct pm_image8 *picture, struct cJSON *object,
                            struct pm_picture pictures[PM_MAX_PICTURES]);

/* The shares of the classes' pixels and, in brackets, the numbers of instances. */
void pm_segmentation_print(const struct cJSON *object, struct pm_str *out);

/* segmentation_inspect.c */
extern const struct pm_task_inspect pm_segmentation_inspect;

#endif
