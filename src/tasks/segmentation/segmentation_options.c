/* segmentation_options: the task's part of the config: options, metrics and checks of combinations.
 * Also creates the task's object from them and from the data. */
#include "tasks/colormap.h"
#include "tasks/record.h"
#include "tasks/coco_metrics.h"
#include "tasks/segmentation/segmentation.h"

#include "data/instance_targets.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* ---- DeepLab's defaults ------------------------------------------------------------------ */

#define ADAM "optim.name", "adam"
#define POLYNOMIAL "schedule.policy", "polynomial"
#define STEPS "schedule.policy", "exponential"

/* Its train program with adam has a constant rate of its own. Its policy "step" is the exponential
 * one here. */
const struct pm_task_default pm_segmentation_defaults[] = {
    { "optim.name", "\"momentum\"" },
    { "optim.epsilon", "1e-8", ADAM },
    { "schedule.policy", "\"fixed\"", ADAM },
    { "schedule.base_lr", "0.001", ADAM },
    { "schedule.policy", "\"polynomial\"" },
    { "schedule.base_lr", "0.0001" },
    { "schedule.end_lr", "0" },
    { "schedule.power", "0.9" },
    { "schedule.num_epochs_per_decay", "0", POLYNOMIAL },
    { "schedule.decay_steps", "2000", STEPS },
    { "schedule.decay_factor", "0.1" },
    { "schedule.warmup_lr", "0.0001" },
    { "schedule.warmup_shape", "\"constant\"" },
    { "schedule.warmup_shift", "true" },
    { "init.ignore_missing", "true" },
    { "run.batch_size", "8" },
    { "run.save_every_secs", "1200" },
    { "eval.batch_size", "1" },
    { "eval.interval_secs", "300" },
    { 0 },
};

/* ---- options ----------------------------------------------------------------------------- */

static const struct pm_opt model[] = {
    PM_BOOL(pm_segmentation_model, predict_upsampled, true,
            "segmentation: resize the logits to the picture's size before the argmax; false = "
            "resize the classes"),
    PM_ENUM(pm_segmentation_model, instance_mode, PM_INSTANCE_REFERENCE, "reference|seed4",
            "segmentation: targets, losses and grouping for model.instance: reference = "
            "Panoptic-DeepLab, seed4 = the earlier DeepLab fork"),
    { 0 },
};

static const struct pm_opt data[] = {
    PM_INT(pm_segmentation_data, ignore_label, -2, -2, 65535,
           "segmentation: label of ignored pixels; -1 = none, -2 = that of the data, else 255"),
    PM_INTS(pm_segmentation_data, thing_classes, NULL, 0, 65535,
            "segmentation: classes that have instances; null = those of the data"),
    PM_INT(pm_segmentation_data, center_sigma, 0, 0, 256,
           "segmentation: standard deviation, in pixels, of the Gaussian around an instance's "
           "centre; 0 = 8 (seed4: 5)"),
    PM_INT(pm_segmentation_data, small_instance_area, 4096, 0, 1000000000,
           "segmentation: instances with fewer pixels have small_instance_weight in the loss of "
           "the classes"),
    PM_FLOAT(pm_segmentation_data, small_instance_weight, 3, 0, 1e6,
             "segmentation: weight of small instances; other pixels have weight 1; not for seed4"),
    PM_INT(pm_segmentation_data, edge_width, 20, 1, 1024,
           "segmentation: width of the edge targets, in pixels of the record's label map, with "
           "model.edge_classes"),
    { 0 },
};

/* pm_config.buckets has the sizes. */
static const struct pm_opt input[] = {
    PM_JSON(pm_segmentation_input, buckets,
            "segmentation: list of sizes of training pictures, each one side or [height, width]: a "
            "batch takes the smallest that holds its pictures, else the largest; null = only "
            "input.size"),
    { 0 },
};

static const struct pm_opt loss[] = {
    PM_BOOL(pm_segmentation_loss, upsample_logits, true,
            "segmentation: compute the loss at the picture's size; false = resize the labels to "
            "the logits"),
    PM_FLOATS(pm_segmentation_loss, label_weights, NULL, 0, 1e6,
              "segmentation: weight of each class; null = 1"),
    PM_ENUM(pm_segmentation_loss, normalize, PM_NORMALIZE_KEPT_PIXELS,
            "nonzero_weight|kept_pixels|top_k",
            "segmentation: divisor of the loss: number of pixels with a weight other than 0, of "
            "pixels that are not ignored, or of pixels that top_k_percent keeps (including zeros)"),
    PM_FLOAT(pm_segmentation_loss, top_k_percent, 1, 0, 1,
             "segmentation: part of the pixels to keep, those with the largest losses; the divisor "
             "is the number of kept pixels with a loss other than 0, or, with normalize top_k, of "
             "all kept pixels"),
    PM_FLOAT(pm_segmentation_loss, center_weight, NAN, 0, 1e6,
             "segmentation: weight of the loss of instance centres; null = 200 (seed4: 1)"),
    PM_FLOAT(pm_segmentation_loss, offset_weight, NAN, 0, 1e6,
             "segmentation: weight of the loss of offsets to the centres; null = 0.01 (seed4: 1)"),
    PM_BOOL(pm_segmentation_loss, matting, false,
            "segmentation: label maps are alpha values (0 to 255, or 0 to 65535 with 16 bits) "
            "instead of classes; the net has two classes"),
    PM_FLOAT(pm_segmentation_loss, edge_weight, 0.2, 0, 1,
             "segmentation: with model.edge_classes, weight of the edge loss; the class loss has 1 "
             "minus this weight"),
    PM_INT(pm_segmentation_loss, hard_mining_steps, 0, 0, 1000000,
           "segmentation: steps over which top_k_percent falls from 1 to its value"),
    { 0 },
};

static const struct pm_opt run[] = {
    PM_ENUM(pm_segmentation_run, summary_labels, PM_LABELS_GREY, "grey|classes",
            "segmentation: pixels of label maps and predictions in TensorBoard: grey = class times "
            "(255 / classes, rounded down); classes = the class number, dark for few classes"),
    PM_BOOL(pm_segmentation_run, train_metrics, true,
            "segmentation: compute miou and pixel_accuracy of training batches at logged steps; "
            "false saves one pass over the logits"),
    { 0 },
};

static const struct pm_opt eval[] = {
    PM_FLOATS(pm_segmentation_eval, scales, NULL, 0.05, 8,
              "segmentation: evaluate the picture at each of these scales, instead of "
              "model.image_pyramid, and average the probabilities; null = one scale, 1"),
    PM_BOOL(pm_segmentation_eval, flip, false,
            "segmentation: also evaluate the mirrored picture "
            "at each scale"),
    PM_ENUM(pm_segmentation_eval, colormap, PM_COLORMAP_AUTO,
            "auto|pascal|cityscapes|ade20k|camvid|camvid_full",
            "segmentation: colours for drawing classes; auto = those of the data, else pascal; "
            "camvid has 11 classes, camvid_full 31"),
    PM_BOOL(pm_segmentation_eval, save_raw, false,
            "segmentation: predict also writes the class numbers as a grey picture; with the "
            "colours of cityscapes, the ids of its evaluation"),
    PM_JSON(pm_segmentation_eval, panoptic,
            "segmentation with instances: options for grouping and scoring instances, an object "
            "with the keys below; null = their defaults"),
    { 0 },
};

static const struct pm_opt export[] = {
    PM_FLOATS(pm_segmentation_export, scales, NULL, 0.05, 8,
              "segmentation: the model evaluates the picture at these scales and averages; null = "
              "one scale, 1"),
    PM_BOOL(pm_segmentation_export, flip, false, "segmentation: and mirrored at each of them"),
    PM_BOOL(pm_segmentation_export, pad, true,
            "segmentation: accept pictures of any size up to export.size; the model resizes and "
            "pads them like the preprocessing and crops the outputs (RawSemanticPredictions and "
            "RawSemanticProbabilities are not cropped). false: only pictures of export.size"),
    PM_INT(pm_segmentation_export, output_stride, 0, 0, 32,
           "segmentation: model.output_stride of the exported net; model.aspp_rates change in "
           "proportion; 0 = as trained"),
    PM_BOOL(pm_segmentation_export, prob_double_softmax, false,
            "segmentation: apply a second softmax to averaged probabilities, like the original "
            "program"),
    { 0 },
};

static const struct pm_opt panoptic[] = {
    PM_FLOAT(pm_panoptic_options, threshold, NAN, 0, 255,
             "minimum heat of a centre; null = 0.1 (seed4: 127.5 of 255)"),
    PM_INT(pm_panoptic_options, nms_kernel, 7, 1, 255,
           "side of the window (an odd number of pixels) in which a centre must be the maximum"),
    PM_INT(pm_panoptic_options, top_k, 200, 1, 10000,
           "with so many centres or more, keep only those with more heat than the last of them"),
    PM_INT(pm_panoptic_options, stuff_area, 2048, 0, 1000000000,
           "minimum size of a segment of a class without instances, in pixels"),
    PM_INT(pm_panoptic_options, label_divisor, 1000, 2, 32768,
           "predict writes an instance as class * label_divisor + number"),
    PM_ENUM(pm_panoptic_options, score, PM_SCORE_CLASS, "class|class_and_center",
            "score of an instance: mean probability of its class, or that times the heat of its "
            "centre"),
    PM_ENUM(pm_panoptic_options, precision, PM_PRECISION_CITYSCAPES, "cityscapes|coco",
            "average precision of instances: Cityscapes' ap and ap50, or COCO's twelve mask "
            "metrics ap, ap50, ap75, ap_small, ap_medium, ap_large, ar1, ar10, ar100, ar_small, "
            "ar_medium, ar_large"),
    PM_INT(pm_panoptic_options, least_area, 100, 0, 1000000000,
           "Cityscapes' ap and ap50: ignore true instances with fewer pixels"),
    PM_INT(pm_panoptic_options, ignored_area, -1, -1, 1000000000,
           "ignore true instances with at most so many pixels; -1 = none (seed4: 3048)"),
    PM_BOOL(pm_panoptic_options, normalize_by_image_size, false,
            "pc: divide areas by the size of the picture"),
    { 0 },
};

const struct pm_task_section pm_segmentation_sections[] = {
    { "model", model }, { "data", data },   { "input", input },
    { "loss", loss },   { "run", run },     { "eval", eval },
    { "eval.panoptic", panoptic }, { "export", export }, { 0 },
};

/* Returns the key that requests several evaluation modes or a scaled one; NULL if none does. */
static const char *modes_key(const struct pm_segmentation_eval *e,
                             const struct pm_segmentation_export *x)
{
    const struct pm_floats in_eval = e->scales, in_export = x->scales;

    return e->flip                                                           ? "eval.flip"
           : in_eval.count > 1 || (in_eval.count && in_eval.v[0] != 1)       ? "eval.scales"
           : x->flip                                                         ? "export.flip"
           : in_export.count > 1 || (in_export.count && in_export.v[0] != 1) ? "export.scales"
                                                                             : NULL;
}

static const char *place_of(const struct pm_config *c, const char *key)
{
    return pm_arena_printf(c->arena, "%s: %s", pm_config_origin(c, key), key);
}

static int read_panoptic(const struct pm_config *c, const struct cJSON *object,
                         struct pm_panoptic_options *out)
{
    const char *where = place_of(c, "eval.panoptic");
    int err = PM_OK;

    if (object && !cJSON_IsObject(object))
        return pm_fail(PM_ECONFIG, "%s: an object is needed, such as { \"stuff_area\": 2048 }",
                       where);
    PM_TRY(pm_opts_parse(panoptic, object, NULL, out, c->arena, where));
    if (out->nms_kernel % 2 == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.nms_kernel: %d is even; the side of the window must be odd",
                       where, out->nms_kernel));
    if (out->top_k >= out->label_divisor)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s.top_k: %d instances of a class need as many different numbers below "
                       "label_divisor, %d: raise label_divisor or lower top_k",
                       where, out->top_k, out->label_divisor));
out:
    return err;
}

int pm_segmentation_check_config(const struct pm_config *c)
{
    struct pm_panoptic_options grouping;
    struct pm_segmentation_eval e;
    struct pm_segmentation_export x;
    int err = PM_OK;

    PM_TRY(pm_config_read(c, "eval", eval, &e));
    PM_TRY(pm_config_read(c, "export", export, &x));
    const char *key = modes_key(&e, &x);
    if (key && c->model.quantize_delay >= 0)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "%s: a quantised net (model.quantize_delay %d) evaluates a picture once, at "
                       "one scale: remove the key",
                       place_of(c, key), c->model.quantize_delay));
    PM_TRY(read_panoptic(c, e.panoptic, &grouping));
out:
    return err;
}

/* ---- metrics ----------------------------------------------------------------------------- */

#define HIGHER(name) { name, true, NULL },
const struct pm_metric_kind pm_segmentation_metrics[] = {
    { "miou", true, NULL }, { "pixel_accuracy", true, NULL }, { "mean_accuracy", true, NULL },
    { "fw_iou", true, NULL }, { "loss", false, "losses/loss" }, /* in training's chart */
    { "pq", true, NULL }, { "sq", true, NULL }, { "rq", true, NULL }, { "pc", true, NULL },
    PM_COCO_NAMES(HIGHER)
    { "edge_miou", true, NULL }, { 0 },
};
/* Indices in this list. */
enum { PIXELS = 0, PANOPTIC = 5, PRECISION = 9, EDGES = PRECISION + PM_COCO_FIGURES };

static void add_metrics(struct pm_metric_list *out, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        PM_GROW(out->list, out->count, out->capacity);
        out->list[out->count++] = &pm_segmentation_metrics[i];
    }
}

/* With instances PQ is the first metric, because all heads contribute to it. Cityscapes has only
 * the first two figures of precision. */
void pm_segmentation_list_metrics(const struct pm_task *t, struct pm_metric_list *out)
{
    const struct pm_instances *i = &t->pixels.instance;

    if (i->on) {
        add_metrics(out, PANOPTIC, PRECISION - PANOPTIC);
        add_metrics(out, PRECISION,
                    i->panoptic->precision == PM_PRECISION_COCO ? PM_COCO_FIGURES : 2);
    }
    add_metrics(out, PIXELS, PANOPTIC);
    if (t->pixels.edge_classes > 0)
        add_metrics(out, EDGES, 1);
}

/* Sets DeepLab's names, by the scales of evaluation: "eval/miou_0.5_1.0_flipped_overall", and
 * "..._class_3" for a class. */
void pm_segmentation_tag(const struct pm_config *c, const char *metric, int class,
                         struct pm_str *out)
{
    struct pm_segmentation_eval e;
    const bool all = strcmp(metric, "miou") == 0, one = strcmp(metric, "per_class_iou") == 0;

    if ((class < 0 ? !all : !one) || pm_config_read(c, "eval", eval, &e) < 0)
        return;
    pm_str_add(out, "eval/miou%s", e.scales.count ? "" : "_1.0");
    for (int i = 0; i < e.scales.count; i++) {
        const double s = (double)e.scales.v[i];

        pm_str_add(out, s == floor(s) ? "_%.1f" : "_%.6g", s);
    }
    pm_str_add(out, "%s", e.flip ? "_flipped" : "");
    if (all)
        pm_str_add(out, "_overall");
    else
        pm_str_add(out, "_class_%d", class);
}

/* ---- the object -------------------------------------------------------------------------- */

int pm_segmentation_check(const struct pm_task *s)
{
    const int entries = pm_colormap_entries((enum pm_colormap)s->pixels.colormap);
    const int most = pm_colormap_entries(PM_COLORMAP_PASCAL);
    int err = pm_record_check(&s->facts, 2);

    if (err < 0)
        return err;
    if ((err = pm_record_check_augment(&s->facts, PM_CARRIES_MAPS)) < 0)
        return err;
    if (!s->facts.preprocessing->maps)
        return pm_fail(PM_ECONFIG,
                       "input.preprocessing: \"%s\" is for pictures without label maps: for task "
                       "segmentation set deeplab or deeplab_means",
                       s->facts.preprocessing->name);
    if (s->facts.labels_offset)
        return pm_fail(
            PM_ECONFIG,
            "data.labels_offset: %d, but task segmentation has no offset: remove the key",
            s->facts.labels_offset);
    if (s->facts.num_classes > entries)
        return pm_fail(PM_ECONFIG,
                       "eval.colormap: it has colours for %d classes, but there are %d: %s",
                       entries, s->facts.num_classes,
                       s->facts.num_classes <= most
                           ? "choose pascal, which has 512"
                           : "no palette has more than 512; use data with fewer classes");
    if (s->pixels.loss && s->pixels.loss->label_weights.count &&
        s->pixels.loss->label_weights.count != s->facts.num_classes)
        return pm_fail(
            PM_ECONFIG,
            "loss.label_weights: %d numbers, but there are %d classes: give one number per class",
            s->pixels.loss->label_weights.count, s->facts.num_classes);
    if (s->pixels.save_raw && s->facts.num_classes > 256)
        return pm_fail(
            PM_ECONFIG,
            "eval.save_raw: pictures of 8 bits have at most 256 classes, but there are %d",
            s->facts.num_classes);
    return pm_segmentation_matting_check(s);
}

/* Sets the colours and the ignored label, which come from the data if the config leaves them
 * open. */
static void resolve_pixels(struct pm_task *t, const struct pm_segmentation_model *m,
                           const struct pm_segmentation_data *d,
                           const struct pm_segmentation_eval *e,
                           const struct pm_segmentation_run *r)
{
    const struct pm_dataset_info *info = t->facts.data;
    const char *named = info->colormap ? info->colormap
                                       : pm_known_colormap(info->map_labels, info->map_classes);

    t->pixels = (struct pm_pixels){
        .ignore_label = d->ignore_label > -2      ? d->ignore_label
                        : t->loss.matting         ? -1
                        : info->ignore_label >= 0 ? info->ignore_label
                                                  : 255,
        .matting = t->loss.matting, .label_height = t->facts.height, .label_width = t->facts.width,
        .upsample_logits = t->loss.upsample_logits, .loss = &t->loss,
        .predict_upsampled = m->predict_upsampled, .eval_modes = { e->scales, e->flip, false },
        .export_modes = { t->export.scales, t->export.flip, t->export.prob_double_softmax },
        .colormap = e->colormap ? e->colormap : (int)pm_colormap_find(named),
        .save_raw = e->save_raw,
        .instance = { .mode = m->instance_mode, .label_divisor = 1000, .panoptic = &t->panoptic,
                      .center_sigma = d->center_sigma, .small_area = d->small_instance_area,
                      .small_weight = d->small_instance_weight,
                      .things = d->thing_classes.count ? d->thing_classes : info->thing_classes },
        .edge_width = d->edge_width, .summary_labels = r->summary_labels,
        .train_classes = r->train_metrics && !t->loss.matting ? "train_classes" : NULL,
    };
}

int pm_segmentation_open(const struct pm_task_facts *facts, struct pm_task **out)
{
    const struct pm_config *c = facts->config;
    struct pm_task *t = pm_calloc(1, sizeof *t);
    struct pm_segmentation_model m;
    struct pm_segmentation_data d;
    struct pm_segmentation_eval e;
    struct pm_segmentation_run r;
    int err = PM_OK;

    t->facts = *facts;
    t->label_smoothing = c->loss.label_smoothing;
    PM_TRY(pm_config_read(c, "model", model, &m));
    PM_TRY(pm_config_read(c, "data", data, &d));
    PM_TRY(pm_config_read(c, "loss", loss, &t->loss));
    PM_TRY(pm_config_read(c, "run", run, &r));
    PM_TRY(pm_config_read(c, "eval", eval, &e));
    PM_TRY(pm_config_read(c, "export", export, &t->export));
    PM_TRY(read_panoptic(c, e.panoptic, &t->panoptic));
    resolve_pixels(t, &m, &d, &e, &r);
    PM_TRY(pm_segmentation_check(t));
    *out = t, t = NULL;
out:
    pm_segmentation_close(&t);
    return err;
}

void pm_segmentation_close(struct pm_task **t)
{
    if (*t)
        pm_free((*t)->pixels.label_sizes);
    pm_free(*t);
    *t = NULL;
}
