/* segmentation_options: what the config knows of this task: options, metrics, what its values say together;
 * and the task's object, made of them and of the data. */
#include "tasks/colormap.h"
#include "tasks/record.h"
#include "tasks/segmentation/coco_metrics.h"
#include "tasks/segmentation/segmentation.h"

#include "data/instance_targets.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

/* ---- options ----------------------------------------------------------------------------- */

static const struct pm_opt model[] = {
    PM_BOOL(pm_segmentation_model, predict_upsampled, true,
            "segmentation: logits are enlarged to the picture's size before the largest is taken; false = "
            "classes are"),
    PM_ENUM(pm_segmentation_model, instance_mode, PM_INSTANCE_REFERENCE, "reference|seed4",
            "segmentation: targets, losses and grouping of model.instance: Panoptic-DeepLab's, or those of "
            "the DeepLab fork before it"),
    { 0 },
};

static const struct pm_opt data[] = {
    PM_INT(pm_segmentation_data, ignore_label, -2, -2, 65535,
           "segmentation: pixels with this label do not count; -1 = all do, -2 = as the data says, else 255"),
    PM_INTS(pm_segmentation_data, thing_classes, NULL, 0, 65535,
            "segmentation: classes that instances are of; null = the data's"),
    PM_INT(pm_segmentation_data, center_sigma, 0, 0, 256,
           "segmentation: pixels of the Gaussian's deviation around an instance's centre; 0 = 8, of seed4 5"),
    PM_INT(pm_segmentation_data, small_instance_area, 4096, 0, 1000000000,
           "segmentation: on instances of fewer pixels the loss of the classes has small_instance_weight"),
    PM_FLOAT(pm_segmentation_data, small_instance_weight, 3, 0, 1e6,
             "segmentation: that weight; elsewhere it is 1; seed4 has none"),
    PM_INT(pm_segmentation_data, edge_width, 20, 1, 1024,
           "segmentation: side of the square that an edge's pixel becomes, in pixels of the record's own map, "
           "with model.edge_classes"),
    { 0 },
};

static const struct pm_opt loss[] = {
    PM_BOOL(pm_segmentation_loss, upsample_logits, true,
            "segmentation: the loss is taken at the picture's size; false = labels are brought down to the "
            "logits'"),
    PM_FLOATS(pm_segmentation_loss, label_weights, NULL, 0, 1e6,
              "segmentation: a weight for each class; null = 1 each"),
    PM_ENUM(pm_segmentation_loss, normalize, PM_NORMALIZE_KEPT_PIXELS, "nonzero_weight|kept_pixels|top_k",
            "segmentation: the sum is divided by the pixels whose weight is not 0, by all that are not "
            "ignored, or by as many as top_k_percent takes, zeros too"),
    PM_FLOAT(pm_segmentation_loss, top_k_percent, 1, 0, 1,
             "segmentation: share of the pixels that count, those with the largest losses; the sum is "
             "divided by those of them whose loss is not 0, or with normalize top_k by all of them"),
    PM_FLOAT(pm_segmentation_loss, center_weight, NAN, 0, 1e6,
             "segmentation: weight of the loss of instances' centres; null = 200, of seed4 1"),
    PM_FLOAT(pm_segmentation_loss, offset_weight, NAN, 0, 1e6,
             "segmentation: weight of the loss of the offsets to them; null = 0.01, of seed4 1"),
    PM_BOOL(pm_segmentation_loss, matting, false,
            "segmentation: maps hold degrees of foreground, 0 to 255 or of 16 bits to 65535, in place of classes, "
            "of which there are two"),
    PM_FLOAT(pm_segmentation_loss, edge_weight, 0.2, 0, 1,
             "segmentation: with model.edge_classes, weight of the edges' loss; that of the classes has what "
             "is left of 1"),
    PM_INT(pm_segmentation_loss, hard_mining_steps, 0, 0, 1000000,
           "segmentation: steps in which that share falls from 1 to top_k_percent"),
    { 0 },
};

static const struct pm_opt run[] = {
    PM_BOOL(pm_segmentation_run, train_metrics, true,
            "segmentation: miou and pixel_accuracy of the batches of logged steps, as training sees them; false "
            "saves the devices one look at the logits"),
    { 0 },
};

static const struct pm_opt eval[] = {
    PM_FLOATS(pm_segmentation_eval, scales, NULL, 0.05, 8,
              "segmentation: the picture is seen at these scales, each by itself in place of "
              "model.image_pyramid, and probabilities are averaged; null = as it is"),
    PM_BOOL(pm_segmentation_eval, flip, false, "segmentation: and mirrored at each of them"),
    PM_ENUM(pm_segmentation_eval, colormap, PM_COLORMAP_AUTO, "auto|pascal|cityscapes|ade20k|camvid|camvid_full",
            "segmentation: colours of drawn classes; auto = the data's, else pascal's; camvid has 11 "
            "classes, camvid_full 31"),
    PM_BOOL(pm_segmentation_eval, save_raw, false,
            "segmentation: predict also writes the classes' numbers as a grey picture; with the colours "
            "of cityscapes those of its evaluation"),
    PM_JSON(pm_segmentation_eval, panoptic,
            "segmentation with instances: how they are grouped and scored, an object with the keys "
            "below; null = as each says"),
    { 0 },
};

static const struct pm_opt export[] = {
    PM_FLOATS(pm_segmentation_export, scales, NULL, 0.05, 8,
              "segmentation: the graph sees the picture at these scales and averages; null = as it is"),
    PM_BOOL(pm_segmentation_export, flip, false, "segmentation: and mirrored at each of them"),
    PM_BOOL(pm_segmentation_export, pad, true,
            "segmentation: pictures of any height and width up to export.size, which the graph resizes "
            "and pads as the preprocessing does; outputs are cut to them, and there whole as "
            "RawSemanticPredictions, RawSemanticProbabilities. false: pictures of export.size only"),
    PM_INT(pm_segmentation_export, output_stride, 0, 0, 32,
           "segmentation: model.output_stride of the exported net, with model.aspp_rates in proportion; 0 "
           "= the trained one's"),
    PM_BOOL(pm_segmentation_export, prob_double_softmax, false,
            "segmentation: averaged probabilities go through a softmax again, as the original's do"),
    { 0 },
};

static const struct pm_opt panoptic[] = {
    PM_FLOAT(pm_panoptic_options, threshold, NAN, 0, 255,
             "heat above which a pixel may be a centre; null = 0.1, of seed4 127.5 of 255"),
    PM_INT(pm_panoptic_options, nms_kernel, 7, 1, 255,
           "rows and columns, an odd number, of which a centre's pixel is the hottest"),
    PM_INT(pm_panoptic_options, top_k, 200, 1, 10000,
           "when there are so many centres or more, those hotter than the last of them are left"),
    PM_INT(pm_panoptic_options, stuff_area, 2048, 0, 1000000000,
           "pixels that a class without instances needs to be a segment"),
    PM_INT(pm_panoptic_options, label_divisor, 1000, 2, 32768,
           "what predict writes of an instance: its class times this and its number"),
    PM_ENUM(pm_panoptic_options, score, PM_SCORE_CLASS, "class|class_and_center",
            "how sure an instance is: the mean probability of its class, or that times its centre's "
            "heat"),
    PM_ENUM(pm_panoptic_options, precision, PM_PRECISION_CITYSCAPES, "cityscapes|coco",
            "average precision of instances: Cityscapes' ap and ap50, or COCO's twelve figures of masks, ap, "
            "ap50, ap75, ap_small, ap_medium, ap_large, ar1, ar10, ar100, ar_small, ar_medium, ar_large"),
    PM_INT(pm_panoptic_options, least_area, 100, 0, 1000000000,
           "ap, ap50 of cityscapes: true instances of fewer pixels do not count"),
    PM_INT(pm_panoptic_options, ignored_area, -1, -1, 1000000000,
           "true instances of at most so many pixels are taken as ignored; -1 = none, of seed4 3048"),
    PM_BOOL(pm_panoptic_options, normalize_by_image_size, false,
            "pc: areas are shares of their pictures"),
    { 0 },
};

const struct pm_task_section pm_segmentation_sections[] = {
    { "model", model }, { "data", data }, { "loss", loss }, { "run", run }, { "eval", eval },
    { "eval.panoptic", panoptic }, { "export", export }, { 0 },
};

/* The key that asks for several evaluation modes, or for a scaled one; NULL for none. */
static const char *modes_key(const struct pm_segmentation_eval *e,
                             const struct pm_segmentation_export *x)
{
    const struct pm_floats in_eval = e->scales, in_export = x->scales;

    return e->flip                                                          ? "eval.flip"
           : in_eval.count > 1 || (in_eval.count && in_eval.v[0] != 1)       ? "eval.scales"
           : x->flip                                                        ? "export.flip"
           : in_export.count > 1 || (in_export.count && in_export.v[0] != 1) ? "export.scales" : NULL;
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
        return pm_fail(PM_ECONFIG, "%s: an object is needed, as { \"stuff_area\": 2048 }", where);
    PM_TRY(pm_opts_parse(panoptic, object, NULL, out, c->arena, where));
    if (out->nms_kernel % 2 == 0)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.nms_kernel: %d has no middle: it must be odd", where,
                       out->nms_kernel));
    if (out->top_k >= out->label_divisor)
        PM_TRY(pm_fail(PM_ECONFIG, "%s.top_k: %d instances of a class cannot be told apart by numbers "
                       "below label_divisor, %d: raise that or lower this", where, out->top_k,
                       out->label_divisor));
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
        PM_TRY(pm_fail(PM_ECONFIG, "%s: a quantised net (model.quantize_delay %d) sees a picture once, as "
                       "it is: leave this out", place_of(c, key), c->model.quantize_delay));
    PM_TRY(read_panoptic(c, e.panoptic, &grouping));
out:
    return err;
}

/* ---- metrics ----------------------------------------------------------------------------- */

#define HIGHER(name) { name, true, NULL },
const struct pm_metric_kind pm_segmentation_metrics[] = {
    { "miou", true, NULL }, { "pixel_accuracy", true, NULL }, { "mean_accuracy", true, NULL },
    { "fw_iou", true, NULL }, { "loss", false, "losses/loss" }, /* drawn over training's */
    { "pq", true, NULL }, { "sq", true, NULL }, { "rq", true, NULL }, { "pc", true, NULL },
    PM_COCO_NAMES(HIGHER)
    { "edge_miou", true, NULL }, { 0 },
};
/* Places in this list. */
enum { PIXELS = 0, PANOPTIC = 5, PRECISION = 9, EDGES = PRECISION + PM_COCO_FIGURES };

static void add_metrics(struct pm_metric_list *out, int first, int count)
{
    for (int i = first; i < first + count; i++) {
        PM_GROW(out->list, out->count, out->capacity);
        out->list[out->count++] = &pm_segmentation_metrics[i];
    }
}

/* With instances PQ is the first, as the one that all heads are for. Cityscapes has the first two of the
 * figures of precision. */
void pm_segmentation_list_metrics(const struct pm_task *t, struct pm_metric_list *out)
{
    const struct pm_instances *i = &t->pixels.instance;

    if (i->on) {
        add_metrics(out, PANOPTIC, PRECISION - PANOPTIC);
        add_metrics(out, PRECISION, i->panoptic->precision == PM_PRECISION_COCO ? PM_COCO_FIGURES : 2);
    }
    add_metrics(out, PIXELS, PANOPTIC);
    if (t->pixels.edge_classes > 0)
        add_metrics(out, EDGES, 1);
}

/* As DeepLab names it, by the scales of evaluation: "eval/miou_0.5_1.0_flipped_overall", and
 * "..._class_3" of a class. */
void pm_segmentation_tag(const struct pm_config *c, const char *metric, int class, struct pm_str *out)
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
    int err = pm_record_check(&s->facts);

    if (err < 0)
        return err;
    if ((err = pm_record_check_augment(&s->facts, PM_CARRIES_MAPS)) < 0)
        return err;
    if (!s->facts.preprocessing->maps)
        return pm_fail(PM_ECONFIG, "input.preprocessing: \"%s\" is for pictures without label maps: "
                       "task segmentation takes deeplab or deeplab_means", s->facts.preprocessing->name);
    if (s->facts.labels_offset)
        return pm_fail(PM_ECONFIG, "data.labels_offset: %d, but segmentation takes labels as they are: "
                       "leave it out", s->facts.labels_offset);
    if (s->facts.num_classes > entries)
        return pm_fail(PM_ECONFIG, "eval.colormap: has colours for %d classes, there are %d: %s",
                       entries, s->facts.num_classes, s->facts.num_classes <= most
                           ? "choose pascal, which has 512"
                           : "no palette has more than 512, the data needs fewer classes");
    if (s->pixels.loss && s->pixels.loss->label_weights.count &&
        s->pixels.loss->label_weights.count != s->facts.num_classes)
        return pm_fail(PM_ECONFIG, "loss.label_weights: %d numbers, but there are %d classes: each needs "
                       "one", s->pixels.loss->label_weights.count, s->facts.num_classes);
    if (s->pixels.save_raw && s->facts.num_classes > 256)
        return pm_fail(PM_ECONFIG, "eval.save_raw: pictures of 8 bits cannot hold %d classes",
                       s->facts.num_classes);
    return pm_segmentation_matting_check(s);
}

/* What the config leaves to the data: its colours, and which label does not count. */
static void resolve_pixels(struct pm_task *t, const struct pm_segmentation_model *m,
                           const struct pm_segmentation_data *d, const struct pm_segmentation_eval *e,
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
        .edge_width = d->edge_width,
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
    pm_free(*t);
    *t = NULL;
}
