/* classification: one label per picture.
 *
 * A sample is the picture of "image/encoded" after the preprocessing, and "image/class/label" less
 * labels_offset. The loss is softmax cross entropy with label smoothing on the logits. If the net
 * has an auxiliary head, a share of the same loss on that head is added. Accuracy uses the class
 * with the largest logit, the lowest class if several are equal. recall_at_5 counts an example if
 * fewer than five classes have a logit strictly greater than its label's; it is always 1 among five
 * classes or fewer, which do not have it. An example with a logit that is not finite is wrong in
 * both. */
#include "tasks/class_detail.h"
#include "tasks/classification/classification.h"
#include "tasks/record.h"
#include "tasks/score_pack.h"

#include <pumice/draw.h>
#include <pumice/trace.h>

#include <cjson/cJSON.h>
#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- options ----------------------------------------------------------------------------- */

static const struct pm_opt data_opts[] = {
    PM_INT(pm_classification_data, labels_offset, 0, 0, 1000,
           "subtracted from every label and from the number of classes"),
    { 0 },
};
static const struct pm_opt loss_opts[] = {
    PM_FLOAT(pm_classification_loss, aux_weight, NAN, 0, 10,
             "weight of the auxiliary head's loss; null = the net's"),
    { 0 },
};
static const struct pm_opt export_opts[] = {
    PM_ENUM(
        pm_classification_export, output, PM_EXPORT_LOGITS, "logits|probabilities",
        "what comes out; probabilities by a softmax. Of segmentation both do: SemanticPredictions, "
        "the "
        "classes, int32 [n, height, width], and SemanticProbabilities [n, classes, height, width]"),
    { 0 },
};
static const struct pm_task_section sections[] = {
    { "data", data_opts }, { "loss", loss_opts }, { "export", export_opts }, { 0 },
};
static const struct pm_metric_kind metrics[] = {
    { "accuracy", true, "eval/Accuracy", NULL },
    { "recall_at_5", true, "eval/Recall_5", "more than five classes" },
    { "loss", false, "losses/loss", NULL }, /* drawn in the chart of the training loss */
    { 0 },
};

static bool has_recall(const struct pm_task *s)
{
    return s->facts.num_classes > 5;
}

static void list_metrics(const struct pm_task *s, struct pm_metric_list *out)
{
    for (const struct pm_metric_kind *m = metrics; m->name; m++) {
        if (strcmp(m->name, "recall_at_5") == 0 && !has_recall(s))
            continue;
        PM_GROW(out->list, out->count, out->capacity);
        out->list[out->count++] = m;
    }
}

static int labels_offset(const struct pm_config *c, int *out)
{
    struct pm_classification_data data;
    const int err = pm_config_read(c, "data", data_opts, &data);

    *out = err < 0 ? 0 : data.labels_offset;
    return err;
}

/* ---- the object -------------------------------------------------------------------------- */

static void close_task(struct pm_task **t)
{
    pm_free(*t);
    *t = NULL;
}

int pm_classification_check(const struct pm_task *t)
{
    const struct pm_task_facts *s = &t->facts;
    const int wants = s->preprocessing->channels, err = pm_record_check(s, 2);

    if (err < 0)
        return err;
    if (wants && wants != s->channels)
        return pm_fail(PM_ECONFIG,
                       "input.preprocessing: \"%s\" needs %d channels, but the input has %d: set "
                       "input.channels, or another preprocessing",
                       s->preprocessing->name, wants, s->channels);
    return pm_record_check_augment(s, 0);
}

static int open_task(const struct pm_task_facts *facts, struct pm_task **out)
{
    struct pm_task *t = pm_calloc(1, sizeof *t);
    int err = PM_OK;

    t->facts = *facts;
    PM_TRY(pm_classification_check(t));
    PM_TRY(pm_config_read(facts->config, "loss", loss_opts, &t->loss));
    PM_TRY(pm_config_read(facts->config, "export", export_opts, &t->export));
    t->label_smoothing = facts->config->loss.label_smoothing;
    *out = t, t = NULL;
out:
    close_task(&t);
    return err;
}

static void describe(const struct pm_task *s, struct pm_str *out)
{
    pm_str_add(out, "%d %s", s->facts.num_classes,
               pm_plural(s->facts.num_classes, "class", "classes"));
}

static void exporting(const struct pm_task *s, struct pm_task_export *out)
{
    if (s->export.output == PM_EXPORT_PROBABILITIES)
        out->end = PM_END_SOFTMAX;
}

/* ---- samples ----------------------------------------------------------------------------- */

static void fields(const struct pm_task *s, bool train, struct pm_frame frame,
                   struct pm_field_list *out)
{
    (void)train;
    pm_field_add(out, pm_record_images(&s->facts, frame));
    pm_field_add(out,
                 (struct pm_field){ "labels", PM_I32, { 0 },
                                    .values.high = s->facts.num_classes - 1 });
}

static int read_label(const struct pm_example *e, const struct pm_task *s, const char *where,
                      int32_t *out)
{
    int64_t label;
    const int found = pm_example_int(e, "image/class/label", &label);

    if (found < 0)
        return found;
    if (found == 0)
        return pm_fail(PM_EDATA, "%s: the record has no image/class/label", where);
    if (label < s->facts.labels_offset || label - s->facts.labels_offset >= s->facts.num_classes)
        return pm_fail(PM_EDATA,
                       "%s: image/class/label: %lld is outside %d..%d (%d classes, "
                       "data.labels_offset %d)",
                       where, (long long)label, s->facts.labels_offset,
                       s->facts.labels_offset + s->facts.num_classes - 1, s->facts.num_classes,
                       s->facts.labels_offset);
    *out = (int32_t)(label - s->facts.labels_offset);
    return PM_OK;
}

static int record_classes(const struct pm_task *s, const struct pm_example *e, const char *where,
                          uint64_t *has, size_t count, bool *other)
{
    int64_t label;
    const int found = pm_example_int(e, "image/class/label", &label);

    (void)where;
    if (found == 1 && label >= s->facts.labels_offset && label < (int64_t)count)
        has[label] = 1;
    else if (found == 1)
        *other = true;
    return found < 0 ? found : PM_OK;
}

/* Reads the record's boxes as [count][4], freed with pm_free: ymin, xmin, ymax, xmax, clamped to
 * 0..1. NULL and 0 if there are none. */
static int read_boxes(const struct pm_example *e, const char *where, float **out, size_t *count)
{
    static const char *const keys[4] = { "image/object/bbox/ymin", "image/object/bbox/xmin",
                                         "image/object/bbox/ymax", "image/object/bbox/xmax" };
    const float *v[4] = { NULL };
    size_t n[4] = { 0 };

    *count = 0;
    for (int k = 0; k < 4; k++) {
        const int found = pm_example_floats(e, keys[k], &v[k], &n[k]);
        if (found < 0)
            return found;
        if (n[k] != n[0])
            return pm_fail(PM_EDATA, "%s: %zu values of %s and %zu of %s", where, n[0], keys[0],
                           n[k], keys[k]);
    }
    if (n[0] == 0)
        return PM_OK;
    *count = n[0];
    *out = pm_malloc(4 * n[0] * sizeof **out);
    for (size_t i = 0; i < 4 * n[0]; i++)
        (*out)[i] = fminf(fmaxf(v[i % 4][i / 4], 0), 1);
    return PM_OK;
}

/* Whether the augmentations use the record's boxes. */
static bool wants_boxes(const struct pm_task_facts *s, bool train, int part)
{
    const struct pm_augment *a = pm_task_augment(s, part);

    if (!train)
        return false;
    return a ? a->wants_boxes : s->preprocessing->wants_boxes;
}

static int frame_of(const struct pm_task *s, const struct pm_occasion *o, int height, int width,
                    struct pm_frame *out)
{
    const struct pm_task_facts *f = &s->facts;

    if (!o->train && f->own_sizes)
        return pm_preprocessing_own_size(f->preprocessing, f->preprocessing_cfg, height, width,
                                         o->where, out);
    *out = o->train ? (struct pm_frame){ f->height, f->width }
                    : (struct pm_frame){ f->eval_height, f->eval_width };
    return PM_OK;
}

static int make(void *ctx, const struct pm_loader_record *r, void *const *out)
{
    const struct pm_sampler *sampler = ctx;
    const struct pm_task *s = sampler->task;
    struct pm_image8 im = { 0 };
    struct pm_example *e = NULL;
    struct pm_sample sample = { .picture = &im };
    struct pm_placed placed;
    float *boxes = NULL;
    double begun = pm_trace_now();
    int err = PM_OK;

    PM_TRY(pm_record_damage(pm_example_parse(r->bytes, r->size, r->where, &e)));
    PM_TRY(read_label(e, s, r->where, out[1]));
    PM_TRY(pm_record_damage(pm_record_open_image(
        &s->facts, sampler->train, e,
        s->facts.channels == 1 ? PM_GREY_OR_COLOR : s->facts.channels, r, &im)));
    pm_trace_here("decode", begun);
    begun = pm_trace_now();
    if (s->facts.own_sizes && !sampler->train)
        PM_TRY(pm_record_check_size(s, frame_of, &im, r));
    if (wants_boxes(&s->facts, sampler->train, r->part))
        PM_TRY(pm_record_damage(read_boxes(e, r->where, &boxes, &sample.objects)));
    sample.boxes = boxes;
    PM_TRY(pm_record_place(&s->facts, sampler->train, &sample, r, &placed));
    PM_TRY(pm_record_input(e, &placed, &im, out[0]));
    pm_trace_here("preprocess", begun);
out:
    pm_free(boxes);
    pm_image_free(&im);
    pm_example_destroy(&e);
    return err;
}

/* ---- heads and loss ---------------------------------------------------------------------- */

static int check_heads(const struct pm_task *s, const struct pm_heads *heads, int batch)
{
    const struct pm_node *logits = pm_heads_main(heads);
    const size_t count = pm_shape_count(logits->out_shape);

    if (count != (size_t)batch * (size_t)s->facts.num_classes)
        return pm_fail(
            PM_ECONFIG,
            "the net's last layer, %s, gives %zu values per picture, but there are %d classes",
            logits->name, count / (size_t)batch, s->facts.num_classes);
    return PM_OK;
}

static void add_loss(struct pm_net *net, const char *name, struct pm_node *logits,
                     struct pm_node *labels, double smoothing, double weight)
{
    pm_net_add_many(net, name, (struct pm_node *[]){ logits, labels }, 2,
                    "softmax_cross_entropy label_smoothing=%.9g weight=%.9g", smoothing, weight);
}

static void add_losses(struct pm_net *net, const struct pm_heads *heads,
                       const struct pm_net_maker *maker, const struct pm_task *s)
{
    struct pm_node *logits = pm_heads_main(heads), *aux = pm_heads_find(heads, "aux_logits");
    const float aux_weight = isnan(s->loss.aux_weight) ? pm_heads_weight(heads, "aux_logits")
                                                       : s->loss.aux_weight;
    char text[64];

    (void)maker;
    if (net->error)
        return;
    if (s->loss.aux_weight > 0 && !aux) {
        net->error = pm_fail(PM_ECONFIG,
                             "%s: loss.aux_weight: %g, but the net has no auxiliary head; "
                             "remove it",
                             pm_config_source(s->facts.config, "loss.aux_weight"),
                             (double)s->loss.aux_weight);
        return;
    }
    const struct pm_shape shape = logits->out_shape;
    if (shape.rank != 2 || shape.dim[1] != s->facts.num_classes) {
        net->error = pm_fail(PM_ECONFIG,
                             "%s: the net's logits are %s, but the data has %d classes: the last "
                             "layer must give %d values per picture",
                             logits->name, pm_shape_text(shape, text), s->facts.num_classes,
                             s->facts.num_classes);
        return;
    }
    struct pm_node *labels = pm_net_find(net, "labels");
    add_loss(net, "loss", logits, labels, s->label_smoothing, 1);
    if (aux && aux_weight > 0)
        add_loss(net, "aux_loss", aux, labels, s->label_smoothing, aux_weight);
}

/* The targets of an example add up to 1, also with label smoothing. */
static double uniform_loss(const struct pm_task *s)
{
    return log(s->facts.num_classes);
}

/* ---- metrics ----------------------------------------------------------------------------- */

struct pm_score {
    const struct pm_task *task; /* borrowed */
    int classes;
    double label_smoothing;
    uint64_t count, right, recalled;
    struct pm_score_sum loss; /* of the examples */
    struct pm_class_detail *detail;
};

static struct pm_score *score_create(const struct pm_task *s)
{
    struct pm_score *m = pm_calloc(1, sizeof *m);

    m->task = s;
    m->classes = s->facts.num_classes;
    m->label_smoothing = s->label_smoothing;
    m->detail = pm_class_detail_create(&s->facts);
    return m;
}

static void score_destroy(struct pm_score **m)
{
    if (*m) {
        pm_class_detail_destroy(&(*m)->detail);
        pm_score_sum_free(&(*m)->loss);
    }
    pm_free(*m);
    *m = NULL;
}

/* Returns the sum of y' (log sum exp(z) - z), y' being the smoothed target. */
static double cross_entropy(const float *z, int k, int label, double smoothing)
{
    double largest = z[0], sum = 0, mean = 0;

    assert(k > 0);
    for (int i = 1; i < k; i++)
        largest = fmax(largest, z[i]);
    for (int i = 0; i < k; i++) {
        sum += exp(z[i] - largest);
        mean += (z[i] - largest) / k;
    }
    return log(sum) - (1 - smoothing) * (z[label] - largest) - smoothing * mean;
}

/* Returns the softmax probability of class c. */
static double probability(const float *z, int k, int c)
{
    double largest = z[0], sum = 0;

    for (int i = 1; i < k; i++)
        largest = fmax(largest, z[i]);
    for (int i = 0; i < k; i++)
        sum += exp(z[i] - largest);
    return exp(z[c] - largest) / sum;
}

static void add_example(struct pm_score *m, const float *z, int label, uint64_t record)
{
    int greater = 0, best = 0;
    bool finite = true;

    for (int i = 0; i < m->classes; i++) {
        finite &= isfinite(z[i]) != 0;
        greater += z[i] > z[label];
        best = z[i] > z[best] ? i : best;
    }
    pm_class_detail_add(m->detail, &(struct pm_class_example){
        .record = record, .label = label, .predicted = best, .right = finite && best == label,
        .probability = finite ? probability(z, m->classes, best) : NAN,
        .label_probability = finite ? probability(z, m->classes, label) : NAN });
    m->count++;
    m->right += finite && best == label;
    m->recalled += finite && greater < 5;
    pm_score_sum_add(&m->loss,
                     finite ? cross_entropy(z, m->classes, label, m->label_smoothing) : NAN);
}

static int score_add(struct pm_score *m, const struct pm_batch *batch, const void *const *outputs,
                     double loss)
{
    const int32_t *labels = batch->field[1];
    const float *logits = outputs[0];

    (void)loss; /* not used: the loss is computed from the logits */

    for (int i = 0; i < batch->valid; i++)
        add_example(m, logits + (size_t)i * m->classes, labels[i],
                    batch->record ? batch->record[i] : m->count);
    return PM_OK;
}

/* The options on which the contents of a pack depend. */
static struct pm_str describe_pack(const struct pm_score *m)
{
    struct pm_str text = { 0 };

    pm_str_add(&text, "classification, %d classes, label_smoothing %.9g", m->classes,
               m->label_smoothing);
    return text;
}

static void score_pack(const struct pm_score *m, struct pm_str *out)
{
    const size_t begin = pm_score_pack_begin(out, describe_pack(m));

    pm_pack_int(out, m->count);
    pm_pack_int(out, m->right);
    pm_pack_int(out, m->recalled);
    pm_score_sum_pack(&m->loss, out);
    pm_class_detail_pack(m->detail, out);
    pm_score_pack_end(out, begin);
}

static int score_merge(struct pm_score *m, const void *bytes, size_t size)
{
    struct pm_unpack u;
    int err = PM_OK;

    PM_TRY(pm_score_unpack_begin(&u, bytes, size, describe_pack(m)));
    m->count += pm_unpack_int(&u);
    m->right += pm_unpack_int(&u);
    m->recalled += pm_unpack_int(&u);
    pm_score_sum_merge(&m->loss, &u);
    pm_class_detail_merge(m->detail, &u);
    PM_TRY(pm_score_unpack_end(&u));
out:
    return err;
}

static void score_report(const struct pm_score *m, struct cJSON *object)
{
    const double n = (double)m->count;

    /* cJSON writes null for a number that is not finite: without examples, or if the net
     * diverged. */
    cJSON_AddNumberToObject(object, "accuracy", (double)m->right / n);
    if (has_recall(m->task))
        cJSON_AddNumberToObject(object, "recall_at_5", (double)m->recalled / n);
    cJSON_AddNumberToObject(object, "loss", m->loss.value / n);
}

static void score_detail(const struct pm_score *m, struct cJSON *object)
{
    pm_class_detail_report(m->detail, object);
}

static int score_samples(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES])
{
    struct pm_class_example list[PM_MAX_SAMPLES];
    const int n = pm_class_detail_samples(m->detail, list);

    for (int i = 0; i < n; i++)
        records[i] = list[i].record;
    return n;
}

static int score_sample(const struct pm_score *m, int i, const uint8_t *record, size_t size,
                        const char *where, struct cJSON *object, struct pm_drawings *drawings)
{
    struct pm_class_example list[PM_MAX_SAMPLES];

    if (i >= pm_class_detail_samples(m->detail, list))
        return pm_fail(PM_EFAIL, "%s: is not one of the evaluation's pictures", where);
    cJSON_AddNumberToObject(object, "label", list[i].label);
    cJSON_AddNumberToObject(object, "predicted", list[i].predicted);
    cJSON_AddBoolToObject(object, "right", list[i].right);
    cJSON_AddNumberToObject(object, "probability", list[i].probability);
    cJSON_AddNumberToObject(object, "label_probability", list[i].label_probability);
    return pm_record_picture(&m->task->facts, record, size, where,
                             pm_drawings_add(drawings, "image"));
}

/* ---- predictions ------------------------------------------------------------------------- */

enum { TOP = 5 };

/* Adds label in the data's numbering, its name if known, and its probability. */
static void add_class(const struct pm_task *s, const float *z, int c, cJSON *object)
{
    cJSON_AddNumberToObject(object, "label", c + s->facts.labels_offset);
    if (s->facts.labels && s->facts.labels[c])
        cJSON_AddStringToObject(object, "name", s->facts.labels[c]);
    cJSON_AddNumberToObject(object, "probability", probability(z, s->facts.num_classes, c));
}

/* Draws the picture with a bar per class below. */
static void draw_classes(const struct pm_task *s, const float *z, const int *best, int count,
                         const struct pm_image8 *picture, struct pm_image8 *out)
{
    struct pm_bar bars[TOP];
    char numbers[TOP][16];

    for (int i = 0; i < count; i++) {
        snprintf(numbers[i], sizeof numbers[i], "%d", best[i] + s->facts.labels_offset);
        bars[i] = (struct pm_bar){
            .label =
                s->facts.labels && s->facts.labels[best[i]] ? s->facts.labels[best[i]] : numbers[i],
            .share = probability(z, s->facts.num_classes, best[i]),
            .color = pm_draw_color(i == 0 ? 2 : 1), /* green, then blue */
        };
    }
    pm_draw_picture(picture, NULL, bars, count, out);
}

static int present(const struct pm_task *s, struct pm_frame frame, const void *const *outputs,
                   const struct pm_image8 *picture, struct cJSON *object,
                   struct pm_drawings *drawings)
{
    const float *logits = outputs[0];
    int best[TOP], count = 0;

    (void)frame;
    while (count < TOP && count < s->facts.num_classes) {
        int next = -1;
        for (int c = 0; c < s->facts.num_classes; c++) {
            bool taken = false;
            for (int i = 0; i < count; i++)
                taken |= best[i] == c;
            if (!taken && (next < 0 || logits[c] > logits[next]))
                next = c;
        }
        best[count++] = next;
    }
    add_class(s, logits, best[0], object);
    cJSON *top = cJSON_AddArrayToObject(object, "top");
    for (int i = 0; i < count; i++) {
        cJSON *row = cJSON_CreateObject();
        add_class(s, logits, best[i], row);
        cJSON_AddItemToArray(top, row);
    }
    if (drawings)
        draw_classes(s, logits, best, count, picture, pm_drawings_add(drawings, ""));
    return PM_OK;
}

/* Appends the first three classes. */
static void print(const struct cJSON *object, struct pm_str *out)
{
    const cJSON *row;
    int shown = 0;

    cJSON_ArrayForEach(row, cJSON_GetObjectItem(object, "top"))
        if (shown++ < 3)
            pm_class_detail_print(row, "probability", out);
}

static int picture(const struct pm_task *s, const uint8_t *record, size_t size, const char *where,
                   struct pm_image8 *out)
{
    return pm_record_picture(&s->facts, record, size, where, out);
}

const struct pm_task_row pm_task_classification = {
    .config = { .name = "classification", .sections = sections, .metrics = metrics },
    .prediction = "the most likely classes; --json: the first five with their probabilities;\n"
                  "NAME.png with the classes as bars\n",
    .labels_offset = labels_offset, .open = open_task, .close = close_task, .describe = describe,
    .exporting = exporting, .fields = fields, .frame = frame_of, .make = make,
    .picture = picture, .check_heads = check_heads, .add_loss = add_losses,
    .uniform_loss = uniform_loss, .metrics = list_metrics,
    .score_create = score_create, .score_destroy = score_destroy, .score_add = score_add,
    .score_pack = score_pack, .score_merge = score_merge,
    .score_report = score_report, .score_detail = score_detail, .score_samples = score_samples,
    .score_sample = score_sample, .present = present, .print = print,
    .record_classes = record_classes,
};
