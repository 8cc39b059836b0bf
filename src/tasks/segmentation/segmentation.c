/* segmentation: a class for each pixel.
 *
 * A sample is the picture of "image/encoded" and the label map of
 * "image/segmentation/class/encoded", both after the preprocessing. Pixels with the label
 * ignore_label are ignored in the loss and in the metrics. Padding gets that label, so it is
 * ignored, too.
 *
 * The net's logits [n, h, w, classes] are enlarged to the labels' size, bilinearly with aligned
 * corners. The loss is the cross entropy of each pixel. With an image pyramid it is taken of the
 * merged logits and of each scale's. Labels can instead be degrees of foreground
 * (segmentation_matting.c). loss.upsample_logits=false takes the loss at the logits' size. Labels
 * are integers that only the loader's threads process, so the loader shrinks the label maps, by
 * nearest elements.
 *
 * The outputs of evaluation, prediction and export are in segmentation_eval_modes.c. */
#include "tasks/record.h"
#include "tasks/segmentation/segmentation.h"

#include "data/edge_labels.h"

#include <pumice/trace.h>

#include <math.h>
#include <string.h>

/* ---- samples ----------------------------------------------------------------------------- */

struct pm_frame pm_segmentation_label_frame(const struct pm_task *s, bool train,
                                            struct pm_frame frame)
{
    if (!train || s->pixels.upsample_logits)
        return frame;
    for (size_t i = 0; i < s->pixels.label_sizes_count; i++) {
        const struct pm_label_size *l = &s->pixels.label_sizes[i];

        if (l->frame.height == frame.height && l->frame.width == frame.width)
            return l->map;
    }
    return (struct pm_frame){ s->pixels.label_height, s->pixels.label_width };
}

static void fields(const struct pm_task *s, bool train, struct pm_frame frame,
                   struct pm_field_list *out)
{
    const struct pm_frame map = pm_segmentation_label_frame(s, train, frame);
    struct pm_field labels = { "labels", PM_I32, PM_SHAPE2(map.height, map.width),
                               s->pixels.ignore_label, .values.high = s->facts.num_classes - 1 };

    if (s->pixels.matting)
        labels.type = PM_F32, labels.values.high = 1,
        labels.absent = pm_segmentation_matting_absent();
    pm_field_add(out, pm_record_images(&s->facts, frame));
    pm_field_add(out, labels);
    pm_segmentation_instance_fields(s, train, frame, out);
    if (s->pixels.edge_classes)
        pm_field_add(out, (struct pm_field){ "edge_labels", PM_I32, labels.shape, PM_EDGE_IGNORE,
                                             .values.high = s->pixels.edge_classes - 1 });
}

int pm_segmentation_label(const struct pm_example *e, const struct pm_task *s, const char *where,
                          struct pm_label *out)
{
    static const char key[] = "image/segmentation/class/encoded";
    const uint8_t *data;
    size_t size;
    const int found = pm_example_bytes(e, key, &data, &size);
    int err = PM_OK;

    *out = (struct pm_label){ 0 };
    PM_TRY(found);
    if (found == 0 || size == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: the record has no %s", where, key));
    PM_TRY(pm_record_damage(pm_label_decode(data, size, 0, where, out)));
    if (s->pixels.matting) {
        pm_segmentation_degrees(out, pm_label_bits(data));
        goto out;
    }
    const size_t width = (size_t)out->width;
    const size_t i = pm_label_stray(out, s->facts.num_classes, s->pixels.ignore_label);
    if (i < (size_t)out->height * width)
        PM_TRY(pm_fail(PM_EDATA, "%s: %s: label %d at row %zu, column %zu is outside 0..%d and not "
                       "data.ignore_label, %d", where, key, out->values[i], i / width, i % width,
                       s->facts.num_classes - 1, s->pixels.ignore_label));
    err = PM_OK;
out:
    if (err < 0)
        pm_label_free(out);
    return err;
}

/* Makes the label map for training, at the input's size or shrunk to the logits' size; fill: label
 * of padding. */
static int make_map(const struct pm_sampler *sampler, const struct pm_label *label,
                    const struct pm_placed *placed, int32_t fill, int32_t *out)
{
    const struct pm_task *s = sampler->task;
    const int height = placed->target.height, width = placed->target.width;
    const struct pm_frame map =
        pm_segmentation_label_frame(s, sampler->train, (struct pm_frame){ height, width });
    const bool same = map.height == height && map.width == width;
    int32_t *whole = same ? out : pm_malloc((size_t)height * (size_t)width * sizeof *whole);
    const int err = pm_placed_map(placed, label, fill, whole);

    if (!same) {
        if (err == PM_OK)
            pm_segmentation_resize(&(struct pm_class_map){ height, width, width, whole },
                                   map.height, map.width, out);
        pm_free(whole);
    }
    return err;
}

static int make_degrees(const struct pm_sampler *sampler, const struct pm_label *label,
                        const struct pm_placed *placed, float *out)
{
    const struct pm_frame size = pm_segmentation_label_frame(
        sampler->task, sampler->train,
        (struct pm_frame){ placed->target.height, placed->target.width });
    const size_t count = (size_t)size.height * (size_t)size.width;
    int32_t *map = pm_malloc(count * sizeof *map);
    const int err = make_map(sampler, label, placed, -1, map);

    if (err == PM_OK)
        pm_segmentation_matting_field(map, count, out);
    pm_free(map);
    return err;
}

static int make_edges(const struct pm_sampler *sampler, const struct pm_label *label,
                      const struct pm_placed *placed, void *const *out)
{
    struct pm_label edges = { 0 };
    int err = PM_OK;

    if (!sampler->task->pixels.edge_classes)
        return PM_OK;
    pm_segmentation_edge_labels(sampler->task, label, &edges);
    PM_TRY(make_map(sampler, &edges, placed, PM_EDGE_IGNORE,
                    out[pm_segmentation_edge_field(sampler->task, sampler->train)]));
out:
    pm_label_free(&edges);
    return err;
}

static int make(void *ctx, const struct pm_loader_record *r, void *const *out)
{
    const struct pm_sampler *sampler = ctx;
    const char *where = r->where;
    const struct pm_task *s = sampler->task;
    struct pm_image8 im = { 0 };
    struct pm_label label = { 0 };
    struct pm_recorded_instances instances = { .divisor = 0 };
    struct pm_example *e = NULL;
    struct pm_sample sample = { .picture = &im, .label_map = &label };
    struct pm_placed placed;
    double begun = pm_trace_now();
    int err = PM_OK;

    PM_TRY(pm_record_damage(pm_example_parse(r->bytes, r->size, where, &e)));
    PM_TRY(pm_segmentation_label(e, s, where, &label));
    if (s->pixels.instance.on)
        PM_TRY(pm_segmentation_instances(e, s, &label, where, &instances));
    PM_TRY(pm_record_damage(pm_record_open_image(
        &s->facts, sampler->train, e,
        s->facts.channels == 1 ? PM_GREY_OR_COLOR : s->facts.channels, r, &im)));
    pm_trace_here("decode", begun);
    begun = pm_trace_now();
    if (s->facts.own_sizes && !sampler->train)
        PM_TRY(pm_record_check_size(s, pm_segmentation_frame, &im, r));
    PM_TRY(pm_record_place(&s->facts, sampler->train, &sample, r, &placed));
    PM_TRY(pm_record_input(e, &placed, &im, out[0]));
    if (s->pixels.matting)
        PM_TRY(make_degrees(sampler, &label, &placed, out[1]));
    else
        PM_TRY(make_map(sampler, &label, &placed, s->pixels.ignore_label, out[1]));
    if (s->pixels.instance.on)
        PM_TRY(
            pm_segmentation_make_instances(sampler, &instances, &placed, where, out[1], out + 2));
    PM_TRY(make_edges(sampler, &label, &placed, out));
    pm_trace_here("preprocess", begun);
out:
    pm_image_free(&im);
    pm_label_free(&label);
    pm_recorded_instances_free(&instances);
    pm_example_destroy(&e);
    return err;
}

/* ---- heads and losses -------------------------------------------------------------------- */

/* Checks a further head, which may be NULL. */
static int check_head(const struct pm_node *n, const char *what, int batch, int channels)
{
    char text[64];

    if (n && (n->out_shape.rank != 4 || n->out_shape.dim[0] != batch ||
              (channels && n->out_shape.dim[3] != channels)))
        return pm_fail(PM_ECONFIG,
                       "the net's layer %s gives %s, but %s need [%d, height, width, %s]", n->name,
                       pm_shape_text(n->out_shape, text), what, batch,
                       channels == 1   ? "1"
                       : channels == 2 ? "2"
                                       : "classes");
    return PM_OK;
}

static int check_heads(const struct pm_task *s, const struct pm_heads *heads, int batch)
{
    const struct pm_node *logits = pm_heads_main(heads);
    const struct pm_shape shape = logits->out_shape;
    const struct pm_node *center = pm_heads_find(heads, "center"),
                         *offset = pm_heads_find(heads, "offset");
    const struct pm_node *edge = pm_heads_find(heads, "edge");
    char text[64];
    int err = PM_OK;

    if (shape.rank != 4 || shape.dim[0] != batch || shape.dim[3] != s->facts.num_classes)
        return pm_fail(PM_ECONFIG,
                       "the net's last layer, %s, gives %s, but segmentation into %d classes needs "
                       "[%d, height, width, %d]",
                       logits->name, pm_shape_text(shape, text), s->facts.num_classes, batch,
                       s->facts.num_classes);
    if (!center != !offset)
        return pm_fail(PM_ECONFIG,
                       "the net has the head %s, but no head for %s: instances need both (in a "
                       "layer list, the layers instance_center and instance_offset)",
                       center ? center->name : offset->name, center ? "offsets" : "centres");
    PM_TRY(check_head(center, "centres of instances", batch, 1));
    PM_TRY(check_head(offset, "offsets to them", batch, 2));
    PM_TRY(check_head(edge, "edges", batch, 0));
    if (edge && edge->out_shape.dim[3] < 2)
        PM_TRY(pm_fail(
            PM_ECONFIG,
            "the net's layer %s is a head for edges and has 1 channel, but needs one for edges and "
            "one for the rest: give it 2 channels or more, or rename it if it is not such a head",
            edge->name));
out:
    return err;
}

/* Checks the other requirements of instances, besides their heads. */
static int check_instances(const struct pm_task *s)
{
    const struct pm_ints things = s->pixels.instance.things;

    if (!things.count)
        return pm_fail(PM_ECONFIG,
                       "data.thing_classes: not set, and the data does not list the classes that "
                       "have instances: set it, or set model.instance to false");
    for (int i = 0; i < things.count; i++)
        if (things.v[i] >= s->facts.num_classes)
            return pm_fail(PM_ECONFIG, "data.thing_classes: %d is not one of the %d classes",
                           things.v[i], s->facts.num_classes);
    if (!s->pixels.upsample_logits)
        return pm_fail(PM_ECONFIG, "loss.upsample_logits: false is not possible with instances, "
                                   "whose centres and offsets have labels only at the picture's "
                                   "size: remove the key, or set model.instance to false");
    return PM_OK;
}

/* Notes the size of the logits in another frame than the facts'. */
static void add_label_size(struct pm_pixels *p, struct pm_frame frame, struct pm_shape logits)
{
    PM_GROW(p->label_sizes, p->label_sizes_count, p->label_sizes_capacity);
    p->label_sizes[p->label_sizes_count++] =
        (struct pm_label_size){ frame, { logits.dim[1], logits.dim[2] } };
}

static int settle(struct pm_task *s, struct pm_frame frame, const struct pm_heads *heads,
                  const struct pm_net_maker *maker)
{
    const struct pm_node *edge = pm_heads_find(heads, "edge");
    int err = PM_OK;

    (void)maker;
    if (frame.height != s->facts.height || frame.width != s->facts.width) {
        add_label_size(&s->pixels, frame, pm_heads_main(heads)->out_shape);
        return PM_OK;
    }
    s->pixels.instance.on = pm_heads_find(heads, "center") && pm_heads_find(heads, "offset");
    s->pixels.edge_classes = edge ? edge->out_shape.dim[3] : 0;
    PM_TRY(pm_segmentation_matting_heads(s));
    if (s->pixels.instance.on)
        PM_TRY(check_instances(s));
    s->pixels.output_stride =
        s->facts.output_stride
            ? s->facts.output_stride
            : pm_segmentation_stride(s->facts.height, pm_heads_main(heads)->out_shape.dim[1]);
    if (s->pixels.upsample_logits)
        goto out;
    s->pixels.label_height = pm_heads_main(heads)->out_shape.dim[1];
    s->pixels.label_width = pm_heads_main(heads)->out_shape.dim[2];
out:
    return err;
}

/* Appends the options of the training loss layer. */
static void add_options(const struct pm_task *s, struct pm_str *text)
{
    static const char *const divisors[] = { "nonzero_weight", "kept_pixels", "top_k" };
    const struct pm_segmentation_loss *c = s->pixels.loss;

    pm_str_add(text, "weight=%.9g ignore_label=%d label_smoothing=%.9g",
               (double)pm_segmentation_class_weight(s), s->pixels.ignore_label,
               (double)s->label_smoothing);
    if (!c)
        return;
    pm_str_add(text, " normalize=%s top_k_percent=%.9g mining_steps=%d", divisors[c->normalize],
               (double)c->top_k_percent, c->hard_mining_steps);
    for (int i = 0; i < c->label_weights.count; i++)
        pm_str_add(text, "%s%.9g", i ? "," : " label_weights=[", (double)c->label_weights.v[i]);
    if (c->label_weights.count)
        pm_str_add(text, "]");
}

static void add_loss(struct pm_net *net, const char *name, struct pm_node *logits,
                     struct pm_node *labels, const struct pm_task *s)
{
    const struct pm_shape size = labels->out_shape;
    struct pm_str options = { 0 };
    struct pm_node *weights;
    char enlarged[64];

    snprintf(enlarged, sizeof enlarged, "%s_logits", name);
    logits = pm_segmentation_resized(net, pm_segmentation_own(net, enlarged), logits, size.dim[1],
                                     size.dim[2], "bilinear");
    if (s->pixels.matting) {
        pm_segmentation_matting_loss(net, name, logits, labels, s->pixels.loss);
        return;
    }
    add_options(s, &options);
    weights = pm_segmentation_pixel_weights(net, s);
    pm_net_add_many(net, name, (struct pm_node *[]){ logits, labels, weights }, weights ? 3 : 2,
                    "softmax_cross_entropy %s", options.text);
    pm_str_free(&options);
}

/* Weights of classes or pixels change the value, and the hardest pixels of a good net may be worse
 * than a guess. */
static double uniform_loss(const struct pm_task *s)
{
    const struct pm_segmentation_loss *c = s->pixels.loss;

    if (s->pixels.matting || s->pixels.instance.on ||
        (c && (c->label_weights.count > 0 || c->top_k_percent < 1)))
        return NAN;
    return (double)pm_segmentation_class_weight(s) * log(s->facts.num_classes);
}

static void add_losses(struct pm_net *net, const struct pm_heads *heads,
                       const struct pm_net_maker *maker, const struct pm_task *s)
{
    struct pm_node *labels;
    int scale = 0;
    char name[32];

    (void)maker;
    if (net->error)
        return;
    labels = pm_net_find(net, "labels");
    add_loss(net, "loss", pm_heads_main(heads), labels, s);
    if (s->pixels.train_classes)
        pm_net_add(net, s->pixels.train_classes, pm_net_find(net, "loss")->in[0], "argmax");
    for (int i = 0; i < heads->count; i++) {
        if (heads->list[i].role != PM_HEAD_SCALE)
            continue;
        snprintf(name, sizeof name, "loss_scale_%d", ++scale);
        add_loss(net, name, heads->list[i].node, labels, s);
    }
    if (s->pixels.instance.on)
        pm_segmentation_instance_losses(net, heads, s);
    if (s->pixels.edge_classes)
        pm_segmentation_edge_loss(net, pm_heads_find(heads, "edge"), s);
}

/* ---- the row ------------------------------------------------------------------------------ */

static int take_map_classes(const struct pm_config *c, struct pm_arena *a,
                            struct pm_dataset_info *data)
{
    (void)c;
    (void)a;
    data->num_classes = data->map_classes;
    data->labels = data->map_labels;
    return PM_OK;
}

/* Appends "5 classes, 2 of edges, instances". */
static void describe(const struct pm_task *s, struct pm_str *out)
{
    pm_str_add(out, "%d %s", s->facts.num_classes,
               pm_plural(s->facts.num_classes, "class", "classes"));
    if (s->pixels.edge_classes > 0)
        pm_str_add(out, ", %d of edges", s->pixels.edge_classes);
    if (s->pixels.instance.on)
        pm_str_add(out, ", instances");
}

static const struct pm_train_metric train_metrics[] = {
    { PM_TRAIN_MIOU, false, "miou", "train/miou" },
    { PM_TRAIN_ACCURACY, false, "pixel_accuracy", "train/acc" },
    { PM_TRAIN_MIOU, true, "batch_miou", "train/batch_miou" },
    { PM_TRAIN_ACCURACY, true, "batch_pixel_accuracy", "train/batch_acc" },
    /* Only with the tags of DeepLab: what TensorFlow's update operations return. */
    { PM_TRAIN_MEAN_COUNT, false, "update_miou", "train/update_miou" },
    { PM_TRAIN_ACCURACY, false, "update_acc", "train/update_acc" },
};

/* Returns the pixels of a label map in the frame that has the most. */
static size_t most_labels(const struct pm_pixels *p)
{
    size_t most = (size_t)p->label_height * (size_t)p->label_width;

    for (size_t i = 0; !p->upsample_logits && i < p->label_sizes_count; i++) {
        const struct pm_frame map = p->label_sizes[i].map;
        const size_t count = (size_t)map.height * (size_t)map.width;

        most = count > most ? count : most;
    }
    return most;
}

static void train_output(const struct pm_task *s, struct pm_train_output *out)
{
    *out = (struct pm_train_output){
        .node = s->pixels.train_classes, .field = 1,
        .count = most_labels(&s->pixels),
        .classes = s->facts.num_classes, .ignore = s->pixels.ignore_label,
        .metrics = train_metrics,
        .metric_count = (int)PM_COUNT(train_metrics) -
                        (s->facts.config->run.summary_tags == PM_TAGS_DEEPLAB ? 0 : 2),
    };
}

static void exporting(const struct pm_task *s, struct pm_task_export *out)
{
    *out = (struct pm_task_export){ s->export.pad && !s->facts.own_sizes, s->export.output_stride };
}

static int picture(const struct pm_task *s, const uint8_t *record, size_t size, const char *where,
                   struct pm_image8 *out)
{
    return pm_record_picture(&s->facts, record, size, where, out);
}

/* DeepLab's training doubles the gradients of biases. */
static const struct pm_config_multiplier biases[] = { { ".*biases", 2 } };

const struct pm_task_row pm_task_segmentation = {
    .config = { .name = "segmentation",
                .sections = pm_segmentation_sections,
                .metrics = pm_segmentation_metrics,
                .defaults = pm_segmentation_defaults,
                .multipliers = biases,
                .multiplier_count = PM_COUNT(biases),
                .check = pm_segmentation_check_config },
    .spatial = true,
    .unit = "pixels",
    .converters = "pairs, voc_segmentation, cityscapes_segmentation, ade20k, camvid, panoptic",
    .prediction = "the share of each class's pixels and, in brackets, the number of its "
                  "instances;\n"
                  "NAME_prediction.png, NAME_overlay.png and, if the net has such heads,\n"
                  "NAME_instances.png and NAME_edges.png\n",
    .classes = take_map_classes,
    .open = pm_segmentation_open,
    .close = pm_segmentation_close,
    .describe = describe,
    .train_output = train_output,
    .exporting = exporting,
    .fields = fields,
    .frame = pm_segmentation_frame,
    .make = make,
    .picture = picture,
    .find_heads = pm_segmentation_find_heads,
    .check_heads = check_heads,
    .settle = settle,
    .add_loss = add_losses,
    .uniform_loss = uniform_loss,
    .add_outputs = pm_segmentation_outputs,
    .metrics = pm_segmentation_list_metrics,
    .tag = pm_segmentation_tag,
    .score_create = pm_segmentation_score_create,
    .score_destroy = pm_segmentation_score_destroy,
    .score_add = pm_segmentation_score_add,
    .score_pack = pm_segmentation_score_pack,
    .score_merge = pm_segmentation_score_merge,
    .score_report = pm_segmentation_score_report,
    .score_detail = pm_segmentation_score_detail,
    .score_samples = pm_segmentation_score_samples,
    .score_sample = pm_segmentation_score_sample,
    .present = pm_segmentation_present,
    .paint = pm_segmentation_summary,
    .print = pm_segmentation_print,
    .inspect = &pm_segmentation_inspect,
    .record_classes = pm_segmentation_record_classes,
};
