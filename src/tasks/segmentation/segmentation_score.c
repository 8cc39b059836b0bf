/* segmentation_score: the confusion matrix of an evaluation, and sample pictures: those with the
 * most wrong pixels, then some selected by their records' hashes. Of a picture's prediction only
 * every n-th row and column is stored. */
#include "tasks/class_detail.h"
#include "tasks/colormap.h"
#include "tasks/confusion.h"
#include "tasks/segmentation/panoptic_metrics.h"
#include "tasks/record.h"
#include "tasks/segmentation/segmentation.h"

#include "data/edge_labels.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

enum { WORST = PM_MAX_SAMPLES * 2 / 3, SIDE = 256 };

struct seen {
    double key;
    uint64_t record;
    double accuracy;   /* NAN: every pixel is ignored */
    struct pm_frame frame; /* of the net; every step-th row and column is stored */
    int step;
    uint16_t *classes; /* owned */
    int32_t *ids;      /* of segments, owned; NULL without instances */
};
/* The first pictures by key, then by record. */
struct ranking {
    struct seen list[PM_MAX_SAMPLES];
    int count, most;
};
struct pm_score {
    const struct pm_task *task; /* borrowed */
    struct pm_confusion confusion;
    struct pm_confusion edges;    /* .count NULL: the net has no edges */
    struct pm_panoptic_metrics *panoptic; /* NULL: the net has no instances */
    int32_t *truth;               /* ids of one picture, grows to the largest frame */
    size_t truth_pixels;
    double loss;                  /* sum over counted pixels */
    struct ranking worst, chance;
};

struct pm_score *pm_segmentation_score_create(const struct pm_task *s)
{
    struct pm_score *m = pm_calloc(1, sizeof *m);

    m->task = s;
    m->worst.most = WORST;
    m->chance.most = PM_MAX_SAMPLES;
    pm_confusion_create(&m->confusion, (size_t)s->facts.num_classes);
    if (s->pixels.edge_classes)
        pm_confusion_create(&m->edges, (size_t)s->pixels.edge_classes);
    if (s->pixels.instance.on)
        m->panoptic = pm_segmentation_panoptic_create(s);
    return m;
}

static void free_ranking(struct ranking *r)
{
    for (int i = 0; i < r->count; i++) {
        pm_free(r->list[i].classes);
        pm_free(r->list[i].ids);
    }
}

void pm_segmentation_score_destroy(struct pm_score **m)
{
    if (*m) {
        pm_confusion_free(&(*m)->confusion);
        pm_confusion_free(&(*m)->edges);
        pm_panoptic_metrics_destroy(&(*m)->panoptic);
        pm_free((*m)->truth);
        free_ranking(&(*m)->worst);
        free_ranking(&(*m)->chance);
    }
    pm_free(*m);
    *m = NULL;
}

/* ---- counting ---------------------------------------------------------------------------- */

static int step_of(struct pm_frame f)
{
    return ((f.height > f.width ? f.height : f.width) + SIDE - 1) / SIDE;
}

static int rows_of(const struct seen *s)
{
    return (s->frame.height + s->step - 1) / s->step;
}

static int columns_of(const struct seen *s)
{
    return (s->frame.width + s->step - 1) / s->step;
}

static uint16_t *remembered(const struct seen *s, const int32_t *classes)
{
    const int rows = rows_of(s), columns = columns_of(s);
    uint16_t *out = pm_malloc((size_t)rows * (size_t)columns * sizeof *out);

    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++)
            out[(size_t)y * (size_t)columns + (size_t)x] =
                (uint16_t)classes[(size_t)(y * s->step) * (size_t)s->frame.width +
                                  (size_t)(x * s->step)];
    return out;
}

/* Copies the stored rows and columns of the ids. said: of the picture's part of the input. */
static int32_t *remembered_ids(const struct seen *s, const struct pm_segment_map *said)
{
    const int rows = rows_of(s), columns = columns_of(s);
    int32_t *out = pm_malloc((size_t)rows * (size_t)columns * sizeof *out);

    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            const int v = y * s->step, u = x * s->step;

            out[(size_t)y * (size_t)columns + (size_t)x] =
                v < said->height && u < said->width
                    ? said->map[(size_t)v * (size_t)said->width + (size_t)u] : PM_VOID;
        }
    return out;
}

static void rank(struct ranking *r, struct seen s, const int32_t *classes,
                 const struct pm_segment_map *said)
{
    int at = r->count;

    while (at > 0 && (s.key < r->list[at - 1].key ||
                      (s.key == r->list[at - 1].key && s.record < r->list[at - 1].record)))
        at--;
    if (at == r->most)
        return;
    if (r->count == r->most) {
        pm_free(r->list[--r->count].classes);
        pm_free(r->list[r->count].ids);
    }
    memmove(r->list + at + 1, r->list + at, (size_t)(r->count - at) * sizeof *r->list);
    r->count++;
    s.classes = remembered(&s, classes);
    s.ids = said ? remembered_ids(&s, said) : NULL;
    r->list[at] = s;
}

/* Adds a picture and returns its number of counted pixels. said: NULL without instances. */
static uint64_t add_picture(struct pm_score *m, struct pm_frame frame, const int32_t *labels,
                            const int32_t *classes, const struct pm_segment_map *said,
                            uint64_t record)
{
    const struct pm_confusion_added added =
        pm_confusion_add(&m->confusion, labels, classes,
                         (size_t)frame.height * (size_t)frame.width, m->task->pixels.ignore_label);
    struct seen s = { .record = record, .accuracy = (double)added.right / (double)added.pixels,
                      .frame = frame, .step = step_of(frame) };

    s.key = added.pixels ? s.accuracy : 2;
    rank(&m->worst, s, classes, said);
    s.key = (double)pm_hash_bytes(&record, sizeof record, 0);
    rank(&m->chance, s, classes, said);
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
    m->loss += count ? loss * (double)count : 0;
    pm_free(halves);
    return PM_OK;
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
    cJSON_AddNumberToObject(object, "loss", m->loss / (double)r.pixels);
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

static int samples_of(const struct pm_score *m, const struct seen *out[PM_MAX_SAMPLES])
{
    int n = 0;

    for (int i = 0; i < m->worst.count; i++)
        out[n++] = &m->worst.list[i];
    for (int i = 0; i < m->chance.count && n < PM_MAX_SAMPLES; i++) {
        bool listed = false;

        for (int k = 0; k < m->worst.count; k++)
            listed |= m->worst.list[k].record == m->chance.list[i].record;
        if (!listed)
            out[n++] = &m->chance.list[i];
    }
    return n;
}

int pm_segmentation_score_samples(const struct pm_score *m, uint64_t records[PM_MAX_SAMPLES])
{
    const struct seen *list[PM_MAX_SAMPLES];
    const int n = samples_of(m, list);

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
static int paint_prediction(const struct pm_score *m, const struct seen *seen, bool instances,
                            const struct pm_image8 *image, const char *where, struct pm_image8 *out)
{
    const int rows = rows_of(seen), columns = columns_of(seen);
    const size_t count = (size_t)rows * (size_t)columns;
    int32_t *map = pm_malloc(count * sizeof *map);
    int32_t *whole = pm_malloc((size_t)image->height * (size_t)image->width * sizeof *whole);
    struct pm_framing place = { 0 };
    int err = PM_OK;

    PM_TRY(pm_segmentation_place(m->task, seen->frame, image->height, image->width, where,
                                 &place));
    for (size_t i = 0; i < count; i++)
        map[i] = instances ? seen->ids[i] : seen->classes[i];
    pm_segmentation_resize(&(struct pm_class_map){ (place.height + seen->step - 1) / seen->step,
                                                   (place.width + seen->step - 1) / seen->step,
                                                   columns, map },
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

static int paint_sample(const struct pm_score *m, const struct seen *seen, const uint8_t *record,
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
    const struct seen *list[PM_MAX_SAMPLES];
    int err = PM_OK;

    if (i >= samples_of(m, list))
        return pm_fail(PM_EFAIL, "%s: is not one of the evaluation's pictures", where);
    cJSON_AddNumberToObject(object, "pixel_accuracy", list[i]->accuracy);
    cJSON_AddBoolToObject(object, "right", list[i]->accuracy == 1);
    PM_TRY(paint_sample(m, list[i], record, size, where, drawings));
out:
    return err;
}
