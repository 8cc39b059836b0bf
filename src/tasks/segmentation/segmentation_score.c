/* segmentation_score: the confusion matrix of an evaluation, the metrics of segments, and sample
 * pictures (seen_pictures.h). */
#include "tasks/class_detail.h"
#include "tasks/colormap.h"
#include "tasks/confusion.h"
#include "tasks/segmentation/panoptic_metrics.h"
#include "tasks/record.h"
#include "tasks/score_pack.h"
#include "tasks/segmentation/seen_pictures.h"
#include "tasks/segmentation/segmentation.h"

#include "data/edge_labels.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

struct pm_score {
    const struct pm_task *task; /* borrowed */
    struct pm_confusion confusion;
    struct pm_confusion edges;    /* .count NULL: the net has no edges */
    struct pm_panoptic_metrics *panoptic; /* NULL: the net has no instances */
    int32_t *truth;               /* ids of one picture, grows to the largest frame */
    size_t truth_pixels;
    struct pm_score_sum loss;     /* of the batches, each times its counted pixels */
    struct pm_seen_pictures seen;
};

struct pm_score *pm_segmentation_score_create(const struct pm_task *s)
{
    struct pm_score *m = pm_calloc(1, sizeof *m);

    m->task = s;
    pm_seen_create(&m->seen);
    pm_confusion_create(&m->confusion, (size_t)s->facts.num_classes);
    if (s->pixels.edge_classes)
        pm_confusion_create(&m->edges, (size_t)s->pixels.edge_classes);
    if (s->pixels.instance.on)
        m->panoptic = pm_segmentation_panoptic_create(s);
    return m;
}

void pm_segmentation_score_destroy(struct pm_score **m)
{
    if (*m) {
        pm_confusion_free(&(*m)->confusion);
        pm_confusion_free(&(*m)->edges);
        pm_panoptic_metrics_destroy(&(*m)->panoptic);
        pm_free((*m)->truth);
        pm_score_sum_free(&(*m)->loss);
        pm_seen_free(&(*m)->seen);
    }
    pm_free(*m);
    *m = NULL;
}

/* ---- counting ---------------------------------------------------------------------------- */

/* Adds a picture and returns its number of counted pixels. said: NULL without instances. */
static uint64_t add_picture(struct pm_score *m, struct pm_frame frame, const int32_t *labels,
                            const int32_t *classes, const struct pm_segment_map *said,
                            uint64_t record)
{
    const struct pm_confusion_added added =
        pm_confusion_add(&m->confusion, labels, classes,
                         (size_t)frame.height * (size_t)frame.width, m->task->pixels.ignore_label);

    pm_seen_add(&m->seen, record, (double)added.right / (double)added.pixels, frame, classes, said);
    return added.pixels;
}

static void add_edges(struct pm_score *m, const struct pm_batch *batch, const void *const *outputs)
{
    const size_t pixels = (size_t)batch->frame.height * (size_t)batch->frame.width;

    if (m->edges.count)
        pm_confusion_add(&m->edges, batch->field[pm_segmentation_edge_field(m->task, false)],
                         outputs[pm_segmentation_edge_output(m->task)],
                         pixels * (size_t)batch->valid, PM_EDGE_IGNORE);
}

int pm_segmentation_score_add(struct pm_score *m, const struct pm_batch *batch,
                              const void *const *outputs, double loss)
{
    const size_t pixels = (size_t)batch->frame.height * (size_t)batch->frame.width;
    const size_t all = pixels * (size_t)batch->valid;
    const int32_t *labels = batch->field[1], *classes = outputs[0];
    int32_t *halves = m->task->pixels.matting ? pm_malloc((all + 1) * sizeof *halves) : NULL;
    uint64_t count = 0;

    if (halves) {
        pm_segmentation_matting_classes(batch->field[1], all, halves);
        labels = halves;
    }
    if (m->panoptic && pixels > m->truth_pixels) {
        m->truth = pm_realloc(m->truth, pixels * sizeof *m->truth);
        m->truth_pixels = pixels;
    }
    for (int i = 0; i < batch->valid; i++) {
        struct pm_segment_map said = { 0 };

        if (m->panoptic) {
            int height, width;

            pm_segmentation_panoptic_truth(m->task, batch, i, &height, &width, m->truth);
            pm_segmentation_panoptic(m->task, batch->frame, outputs, i, height, width, &said);
            pm_panoptic_metrics_add(m->panoptic, m->truth, &said);
        }
        count += add_picture(m, batch->frame, labels + (size_t)i * pixels,
                             classes + (size_t)i * pixels, m->panoptic ? &said : NULL,
                             batch->record[i]);
        pm_segment_map_free(&said);
    }
    add_edges(m, batch, outputs);
    pm_score_sum_add(&m->loss, count ? loss * (double)count : 0);
    pm_free(halves);
    return PM_OK;
}

/* ---- packing ----------------------------------------------------------------------------- */

/* The options on which the contents of a pack depend. */
static struct pm_str describe_pack(const struct pm_score *m)
{
    const struct pm_pixels *p = &m->task->pixels;
    struct pm_str text = { 0 };

    pm_str_add(&text, "segmentation, %zu classes, ignore_label %d%s", m->confusion.classes,
               p->ignore_label, p->matting ? ", matting" : "");
    if (m->edges.count)
        pm_str_add(&text, ", %zu edge classes", m->edges.classes);
    if (m->panoptic)
        pm_panoptic_metrics_describe(m->panoptic, &text);
    return text;
}

/* Returns the number of counts of a confusion matrix; 0: there is none. */
static size_t cells(const struct pm_confusion *c)
{
    return c->classes * c->classes;
}

void pm_segmentation_score_pack(const struct pm_score *m, struct pm_str *out)
{
    const size_t begin = pm_score_pack_begin(out, describe_pack(m));

    pm_score_counts_pack(m->confusion.count, cells(&m->confusion), out);
    pm_score_counts_pack(m->edges.count, cells(&m->edges), out);
    pm_score_sum_pack(&m->loss, out);
    pm_seen_pack(&m->seen, out);
    if (m->panoptic)
        pm_panoptic_metrics_pack(m->panoptic, out);
    pm_score_pack_end(out, begin);
}

/* Returns the number of ids of segments; 0: the net has no instances. */
static int64_t ids_of(const struct pm_score *m)
{
    return m->panoptic ? (int64_t)m->task->facts.num_classes *
                             m->task->pixels.instance.panoptic->label_divisor
                       : 0;
}

int pm_segmentation_score_merge(struct pm_score *m, const void *bytes, size_t size)
{
    struct pm_unpack u;
    int err = PM_OK;

    PM_TRY(pm_score_unpack_begin(&u, bytes, size, describe_pack(m)));
    pm_score_counts_merge(m->confusion.count, cells(&m->confusion), &u);
    pm_score_counts_merge(m->edges.count, cells(&m->edges), &u);
    pm_score_sum_merge(&m->loss, &u);
    pm_seen_merge(&m->seen, m->task->facts.num_classes, ids_of(m), &u);
    if (m->panoptic)
        pm_panoptic_metrics_merge(m->panoptic, &u);
    PM_TRY(pm_score_unpack_end(&u));
out:
    return err;
}

/* ---- reporting --------------------------------------------------------------------------- */

/* Adds the metrics of edges, if there are any. */
static void report_edges(const struct pm_confusion *c, struct cJSON *object)
{
    cJSON *list;

    if (!c->count)
        return;
    cJSON_AddNumberToObject(object, "edge_miou", pm_confusion_metrics(c).miou);
    list = cJSON_AddArrayToObject(object, "per_class_edge_iou");
    for (size_t k = 0; k < c->classes; k++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(pm_confusion_class(c, k).iou));
}

void pm_segmentation_score_report(const struct pm_score *m, struct cJSON *object)
{
    const struct pm_confusion_metrics r = pm_confusion_metrics(&m->confusion);
    cJSON *list;

    /* cJSON writes null for a number that is not finite. */
    cJSON_AddNumberToObject(object, "miou", r.miou);
    cJSON_AddNumberToObject(object, "pixel_accuracy", r.pixel_accuracy);
    cJSON_AddNumberToObject(object, "mean_accuracy", r.mean_accuracy);
    cJSON_AddNumberToObject(object, "fw_iou", r.fw_iou);
    cJSON_AddNumberToObject(object, "loss", m->loss.value / (double)r.pixels);
    list = cJSON_AddArrayToObject(object, "per_class_iou");
    for (size_t k = 0; k < m->confusion.classes; k++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber(pm_confusion_class(&m->confusion, k).iou));
    report_edges(&m->edges, object);
    if (m->panoptic)
        pm_segmentation_panoptic_report(m->panoptic, m->task, object);
}

static void add_counts(const struct pm_confusion *c, cJSON *object)
{
    cJSON *per_class = cJSON_AddObjectToObject(object, "per_class");
    cJSON *count = cJSON_AddArrayToObject(per_class, "count");
    cJSON *predicted = cJSON_AddArrayToObject(per_class, "predicted");
    cJSON *right = cJSON_AddArrayToObject(per_class, "right");
    cJSON *iou = cJSON_AddArrayToObject(per_class, "iou");

    for (size_t k = 0; k < c->classes; k++) {
        const struct pm_confusion_class r = pm_confusion_class(c, k);

        cJSON_AddItemToArray(count, cJSON_CreateNumber((double)r.truth));
        cJSON_AddItemToArray(predicted, cJSON_CreateNumber((double)r.predicted));
        cJSON_AddItemToArray(right, cJSON_CreateNumber((double)r.right));
        cJSON_AddItemToArray(iou, cJSON_CreateNumber(r.iou));
    }
}

/* Adds the classes' colours in the pictures, "#804080". */
static void add_colors(const struct pm_task *s, struct cJSON *object)
{
    cJSON *list = cJSON_AddArrayToObject(object, "colors");

    for (int i = 0; i < s->facts.num_classes; i++) {
        const struct pm_color c = pm_colormap_color((enum pm_colormap)s->pixels.colormap, i);
        char text[8];

        snprintf(text, sizeof text, "#%02x%02x%02x", c.r, c.g, c.b);
        cJSON_AddItemToArray(list, cJSON_CreateString(text));
    }
}

void pm_segmentation_score_detail(const struct pm_score *m, struct cJSON *object)
{
    const struct pm_confusion *c = &m->confusion;
    cJSON *confusion;

    cJSON_AddStringToObject(object, "of", "pixels");
    pm_class_detail_labels(&m->task->facts, object);
    add_colors(m->task, object);
    add_counts(c, object);
    confusion = cJSON_AddArrayToObject(object, "confusion");
    for (size_t i = 0; i < c->classes * c->classes; i++) {
        const size_t truth = i / c->classes, said = i % c->classes;

        if (c->count[i] == 0)
            continue;
        cJSON_AddItemToArray(confusion, cJSON_CreateNumber((double)truth));
        cJSON_AddItemToArray(confusion, cJSON_CreateNumber((double)said));
        cJSON_AddItemToArray(confusion, cJSON_CreateNumber((double)c->count[i]));
    }
}

/* ---- pictures ---------------------------------------------------------------------------- */

int pm_segmentation_score_samples(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES])
{
    const struct pm_seen *list[PM_MAX_SAMPLES];
    const int n = pm_seen_select(&m->seen, list);

    for (int i = 0; i < n; i++)
        records[i] = list[i]->record;
    return n;
}

/* Draws the record's own label map in colours, and its instances in theirs; NULL: no instances. */
static int paint_labels(const struct pm_task *s, const uint8_t *record, size_t size,
                        const char *where, struct pm_image8 *classes, struct pm_image8 *instances)
{
    struct pm_example *e = NULL;
    struct pm_label label = { 0 };
    int32_t *map = NULL;
    int err = PM_OK;

    PM_TRY(pm_example_parse(record, size, where, &e));
    PM_TRY(pm_segmentation_label(e, s, where, &label));
    const size_t count = (size_t)label.height * (size_t)label.width;
    map = pm_malloc(count * sizeof *map);
    for (size_t i = 0; i < count; i++)
        map[i] = s->pixels.matting ? label.values[i] > UINT16_MAX / 2 : label.values[i];
    pm_segmentation_paint(s, map, label.height, label.width, classes);
    if (!instances)
        goto out;
    PM_TRY(pm_segmentation_panoptic_label(e, s, &label, where, map));
    pm_segmentation_panoptic_paint(s, map, s->pixels.instance.panoptic->label_divisor, label.height,
                                   label.width, instances);
out:
    pm_free(map);
    pm_label_free(&label);
    pm_example_destroy(&e);
    return err;
}

/* Draws a stored prediction, its classes or its segments' ids. It is cut to the picture's part of
 * the input and resized to the picture's size. */
static int paint_prediction(const struct pm_score *m, const struct pm_seen *seen, bool instances,
                            const struct pm_image8 *image, const char *where, struct pm_image8 *out)
{
    const size_t count = (size_t)seen->rows * (size_t)seen->columns;
    int32_t *map = pm_malloc(count * sizeof *map);
    int32_t *whole = pm_malloc((size_t)image->height * (size_t)image->width * sizeof *whole);
    struct pm_framing place = { 0 };
    int err = PM_OK;

    PM_TRY(pm_segmentation_place(m->task, seen->frame, image->height, image->width, where,
                                 &place));
    if (place.height > seen->frame.height || place.width > seen->frame.width)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: has %d x %d pixels, which do not fit into the %d x %d in which it was "
                       "evaluated: evaluate again",
                       where, image->height, image->width, seen->frame.height, seen->frame.width));
    for (size_t i = 0; i < count; i++)
        map[i] = instances ? seen->ids[i] : seen->classes[i];
    pm_segmentation_resize(&(struct pm_class_map){ (place.height + seen->step - 1) / seen->step,
                                                   (place.width + seen->step - 1) / seen->step,
                                                   seen->columns, map },
                           image->height, image->width, whole);
    if (instances)
        pm_segmentation_panoptic_paint(m->task, whole,
                                       m->task->pixels.instance.panoptic->label_divisor,
                                       image->height, image->width, out);
    else
        pm_segmentation_paint(m->task, whole, image->height, image->width, out);
out:
    pm_free(map);
    pm_free(whole);
    return err;
}

static int paint_sample(const struct pm_score *m, const struct pm_seen *seen, const uint8_t *record,
                        size_t size, const char *where, struct pm_drawings *drawings)
{
    enum { IMAGE, LABEL, PREDICTION, TRUE_INSTANCES, INSTANCES, CLASSES_ONLY = TRUE_INSTANCES };
    static const char *const names[] = { "image", "label", "prediction", "true instances",
                                         "instances" };
    const bool instances = m->panoptic != NULL;
    struct pm_drawing *list;
    int err = PM_OK;

    for (size_t i = 0; i < (instances ? PM_COUNT(names) : CLASSES_ONLY); i++)
        pm_drawings_add(drawings, names[i]);
    list = drawings->list;
    PM_TRY(pm_record_picture(&m->task->facts, record, size, where, &list[IMAGE].image));
    PM_TRY(paint_labels(m->task, record, size, where, &list[LABEL].image,
                        instances ? &list[TRUE_INSTANCES].image : NULL));
    PM_TRY(paint_prediction(m, seen, false, &list[IMAGE].image, where, &list[PREDICTION].image));
    if (instances)
        PM_TRY(paint_prediction(m, seen, true, &list[IMAGE].image, where, &list[INSTANCES].image));
out:
    return err;
}

int pm_segmentation_score_sample(const struct pm_score *m, int i, const uint8_t *record,
                                 size_t size, const char *where, struct cJSON *object,
                                 struct pm_drawings *drawings)
{
    const struct pm_seen *list[PM_MAX_SAMPLES];
    int err = PM_OK;

    if (i >= pm_seen_select(&m->seen, list))
        return pm_fail(PM_EFAIL, "%s: is not one of the evaluation's pictures", where);
    cJSON_AddNumberToObject(object, "pixel_accuracy", list[i]->accuracy);
    cJSON_AddBoolToObject(object, "right", list[i]->accuracy == 1);
    PM_TRY(paint_sample(m, list[i], record, size, where, drawings));
out:
    return err;
}
