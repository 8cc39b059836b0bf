/* segmentation_panoptic: a net with heads of instances is scored by segments. Its outputs are
 * grouped (instance_group.c) at the input's size without padding, and compared with the record's
 * maps (panoptic_metrics.c). Predictions are resized to their picture's size after grouping. */
#include "tasks/colormap.h"
#include "tasks/segmentation/panoptic_metrics.h"
#include "tasks/segmentation/segmentation.h"

#include <pumice/draw.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

enum { SEED4_IGNORED = 3048 };

struct pm_group_options pm_segmentation_grouping(const struct pm_task *s)
{
    const struct pm_instances *i = &s->pixels.instance;
    const struct pm_panoptic_options *c = i->panoptic;

    return (struct pm_group_options){
        .mode = i->mode, .threshold = c->threshold, .nms_kernel = c->nms_kernel, .top_k = c->top_k,
        .stuff_area = c->stuff_area, .label_divisor = c->label_divisor, .things = i->things,
    };
}

static struct pm_panoptic_metrics_options scoring(const struct pm_task *s)
{
    const struct pm_instances *i = &s->pixels.instance;
    const struct pm_panoptic_options *c = i->panoptic;

    return (struct pm_panoptic_metrics_options){
        .classes = s->facts.num_classes, .label_divisor = c->label_divisor, .things = i->things,
        .normalize_by_image_size = c->normalize_by_image_size,
        .coco = c->precision == PM_PRECISION_COCO, .least_area = c->least_area,
        .ignored_area = c->ignored_area >= 0              ? c->ignored_area
                        : i->mode == PM_INSTANCE_SEED4 ? SEED4_IGNORED : 0,
    };
}

struct pm_panoptic_metrics *pm_segmentation_panoptic_create(const struct pm_task *s)
{
    const struct pm_panoptic_metrics_options o = scoring(s);

    return pm_panoptic_metrics_create(&o);
}

void pm_segmentation_panoptic(const struct pm_task *s, struct pm_frame frame,
                              const void *const *outputs, int i, int height, int width,
                              struct pm_segment_map *out)
{
    const size_t at = (size_t)i * (size_t)frame.height * (size_t)frame.width;
    const struct pm_group_options o = pm_segmentation_grouping(s);
    const struct pm_group_input in = {
        height, width, frame.width, s->facts.num_classes, (const int32_t *)outputs[0] + at,
        (const float *)outputs[2] + at, (const float *)outputs[3] + 2 * at,
        (const float *)outputs[1] + (size_t)s->facts.num_classes * at,
    };

    pm_group_segments(&o, &in, out);
    for (int k = 0; k < out->count; k++)
        if (out->segments[k].thing &&
            s->pixels.instance.panoptic->score == PM_SCORE_CLASS_AND_CENTER)
            out->segments[k].score *= (double)out->segments[k].heat;
}

void pm_segmentation_panoptic_truth(const struct pm_task *s, const struct pm_batch *batch, int i,
                                    int *height, int *width, int32_t *out)
{
    const size_t rows = (size_t)batch->frame.height, columns = (size_t)batch->frame.width;
    const size_t first = (size_t)i * rows * columns;
    const int32_t *labels = (const int32_t *)batch->field[1] + first;
    const int32_t *instances = (const int32_t *)batch->field[2] + first;
    const struct pm_panoptic_metrics_options o = scoring(s);
    size_t h = 0, w = 0;

    while (h < rows && instances[h * columns] >= 0)
        h++;
    while (w < columns && instances[w] >= 0)
        w++;
    *height = (int)h, *width = (int)w;
    pm_panoptic_truth(&o, s->pixels.ignore_label, labels, instances, rows * columns, out);
    for (size_t y = 1; y < h; y++)
        memmove(out + y * w, out + y * columns, w * sizeof *out);
}

int pm_segmentation_panoptic_label(const struct pm_example *e, const struct pm_task *s,
                                   const struct pm_label *label, const char *where, int32_t *out)
{
    const size_t count = (size_t)label->height * (size_t)label->width;
    const struct pm_panoptic_metrics_options o = scoring(s);
    const int divisor = s->pixels.instance.label_divisor;
    struct pm_recorded_instances m = { 0 };
    int32_t *instances = NULL;
    int err = PM_OK;

    PM_TRY(pm_segmentation_instances(e, s, label, where, &m));
    instances = pm_malloc(count * sizeof *instances);
    for (size_t i = 0; i < count; i++) {
        const int v = m.map.values ? m.map.values[i] : 0;

        instances[i] = v / m.divisor * divisor + v % m.divisor;
        out[i] = label->values[i];
    }
    pm_panoptic_truth(&o, s->pixels.ignore_label, out, instances, count, out);
out:
    pm_free(instances);
    pm_recorded_instances_free(&m);
    return err;
}

/* ---- metrics ----------------------------------------------------------------------------- */

static void add_row(cJSON *o, const struct pm_panoptic_row *r)
{
    cJSON_AddNumberToObject(o, "pq", r->pq);
    cJSON_AddNumberToObject(o, "sq", r->sq);
    cJSON_AddNumberToObject(o, "rq", r->rq);
    cJSON_AddNumberToObject(o, "pc", r->pc);
}

/* Adds the precision of instances of a class, or (-1) of all classes. */
static void add_precision(cJSON *o, const struct pm_panoptic_metrics *m, int label)
{
    const struct pm_coco_metrics *coco = pm_panoptic_metrics_coco(m);

    if (coco) {
        const struct pm_coco_figures f = pm_coco_metrics_figures(coco, label);

        for (int k = 0; k < PM_COCO_FIGURES; k++)
            cJSON_AddNumberToObject(o, pm_coco_names[k], f.v[k]);
        return;
    }
    const struct pm_average_precision ap = pm_panoptic_metrics_ap(m, label);

    cJSON_AddNumberToObject(o, "ap", ap.ap);
    cJSON_AddNumberToObject(o, "ap50", ap.ap50);
}

static void add_group(cJSON *o, const char *name, const struct pm_panoptic_metrics *m,
                      enum pm_panoptic_of of)
{
    const struct pm_panoptic_row r = pm_panoptic_metrics_row(m, of);

    o = cJSON_AddObjectToObject(o, name);
    add_row(o, &r);
    cJSON_AddNumberToObject(o, "classes", r.classes);
}

static void add_classes(cJSON *object, const struct pm_panoptic_metrics *m, int classes)
{
    cJSON *list = cJSON_AddArrayToObject(object, "per_class_panoptic");

    for (int c = 0; c < classes; c++) {
        const struct pm_panoptic_row r = pm_panoptic_metrics_class(m, c);
        cJSON *o = cJSON_CreateObject();

        cJSON_AddItemToArray(list, o);
        add_row(o, &r);
        add_precision(o, m, c);
        cJSON_AddNumberToObject(o, "matched", (double)r.matched);
        cJSON_AddNumberToObject(o, "wrong", (double)r.wrong);
        cJSON_AddNumberToObject(o, "missed", (double)r.missed);
    }
}

void pm_segmentation_panoptic_report(const struct pm_panoptic_metrics *m, const struct pm_task *s,
                                     struct cJSON *object)
{
    const struct pm_panoptic_row all = pm_panoptic_metrics_row(m, PM_PANOPTIC_ALL);

    add_row(object, &all);
    add_precision(object, m, -1);
    add_group(object, "panoptic_all", m, PM_PANOPTIC_ALL);
    add_group(object, "panoptic_things", m, PM_PANOPTIC_THINGS);
    add_group(object, "panoptic_stuff", m, PM_PANOPTIC_STUFF);
    add_classes(object, m, s->facts.num_classes);
}

/* ---- pictures ---------------------------------------------------------------------------- */

void pm_segmentation_panoptic_paint(const struct pm_task *s, const int32_t *ids, int divisor,
                                    int height, int width, struct pm_image8 *im)
{
    const enum pm_colormap map = (enum pm_colormap)s->pixels.colormap;
    const size_t count = (size_t)height * (size_t)width;
    int *seen = pm_calloc((size_t)s->facts.num_classes * (size_t)divisor, sizeof *seen), next = 0;

    *im = (struct pm_image8){ height, width, 3, pm_calloc(count, 3) };
    for (size_t i = 0; i < count; i++) {
        uint8_t *p = im->pixels + 3 * i;
        struct pm_color c;

        if (ids[i] < 0)
            continue;
        if (ids[i] % divisor && !seen[ids[i]])
            seen[ids[i]] = ++next;
        c = seen[ids[i]] ? pm_draw_color((size_t)seen[ids[i]] - 1)
                         : pm_colormap_color(map, ids[i] / divisor);
        const int part = seen[ids[i]] ? 1 : 2;
        p[0] = (uint8_t)(c.r / part), p[1] = (uint8_t)(c.g / part), p[2] = (uint8_t)(c.b / part);
    }
    pm_free(seen);
}

/* Draws numbers as red + 256 green + 65536 blue; void: ignore_label * divisor, or the largest
 * number. */
static void paint_numbers(const struct pm_task *s, const int32_t *ids, int divisor, int height,
                          int width, struct pm_image8 *im)
{
    const size_t count = (size_t)height * (size_t)width;
    const int64_t none = (int64_t)s->pixels.ignore_label * divisor;
    const uint32_t nothing = none >= 0 && none < 0xffffff ? (uint32_t)none : 0xffffff;

    *im = (struct pm_image8){ height, width, 3, pm_malloc(3 * count) };
    for (size_t i = 0; i < count; i++) {
        const uint32_t v = ids[i] < 0 ? nothing : (uint32_t)ids[i];

        im->pixels[3 * i] = (uint8_t)v;
        im->pixels[3 * i + 1] = (uint8_t)(v >> 8);
        im->pixels[3 * i + 2] = (uint8_t)(v >> 16);
    }
}

/* Counts the pixels of a segment in the picture. */
static int area_of(const int32_t *ids, size_t count, int32_t id)
{
    int area = 0;

    for (size_t i = 0; i < count; i++)
        area += ids[i] == id;
    return area;
}

static cJSON *segment_json(const struct pm_task *s, const struct pm_segment *g, int area,
                           double rows, double columns)
{
    const int divisor = s->pixels.instance.panoptic->label_divisor;
    cJSON *o = cJSON_CreateObject();

    cJSON_AddNumberToObject(o, "id", g->id);
    cJSON_AddNumberToObject(o, "label", g->label);
    if (s->facts.labels && s->facts.labels[g->label])
        cJSON_AddStringToObject(o, "name", s->facts.labels[g->label]);
    cJSON_AddBoolToObject(o, "thing", g->thing);
    cJSON_AddNumberToObject(o, "score", g->score);
    cJSON_AddNumberToObject(o, "area", area);
    if (!g->thing)
        return o;
    const double center[] = { g->center_y * rows, g->center_x * columns };
    cJSON_AddNumberToObject(o, "instance", g->id % divisor);
    cJSON_AddItemToObject(o, "center", cJSON_CreateDoubleArray(center, 2));
    cJSON_AddNumberToObject(o, "heat", (double)g->heat);
    return o;
}

static double per(int out, int in)
{
    return in > 1 ? (double)(out - 1) / (in - 1) : 0;
}

void pm_segmentation_panoptic_present(const struct pm_task *s, const struct pm_segment_map *p,
                                      int height, int width, struct cJSON *object,
                                      struct pm_drawings *drawings)
{
    const size_t count = (size_t)height * (size_t)width;
    const int divisor = s->pixels.instance.panoptic->label_divisor;
    int32_t *ids = pm_malloc(count * sizeof *ids);
    cJSON *list = cJSON_AddArrayToObject(object, "segments");

    pm_segmentation_resize(&(struct pm_class_map){ p->height, p->width, p->width, p->map }, height,
                           width, ids);
    for (int k = 0; k < p->count; k++)
        cJSON_AddItemToArray(list, segment_json(s, &p->segments[k],
                                                area_of(ids, count, p->segments[k].id),
                                                per(height, p->height), per(width, p->width)));
    if (drawings)
        pm_segmentation_panoptic_paint(s, ids, divisor, height, width,
                                       pm_drawings_add(drawings, "_instances"));
    if (drawings && s->pixels.save_raw)
        paint_numbers(s, ids, divisor, height, width, pm_drawings_add(drawings, "_panoptic"));
    pm_free(ids);
}
