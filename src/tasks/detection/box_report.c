/* box_report: box_metrics' results as JSON. Numbers are rounded, since people look at them. cJSON
 * writes null for a number that is not finite. */
#include "tasks/detection/box_report.h"
#include "tasks/detection/box_lists.h"

#include <cjson/cJSON.h>
#include <math.h>

static cJSON *rounded(double v, double parts)
{
    return cJSON_CreateNumber(round(v * parts) / parts);
}

/* ---- all pictures ------------------------------------------------------------------------ */

static void add_errors(const struct pm_box_errors *e, cJSON *object)
{
    cJSON *errors = cJSON_AddObjectToObject(object, "errors");

    for (int k = 0; k < PM_BOX_KINDS; k++)
        cJSON_AddNumberToObject(errors, pm_box_kind_names[k], (double)e->count[k]);
}

static void add_counts(const struct pm_confusion *c, size_t classes, cJSON *per_class)
{
    cJSON *count = cJSON_AddArrayToObject(per_class, "count");
    cJSON *predicted = cJSON_AddArrayToObject(per_class, "predicted");
    cJSON *right = cJSON_AddArrayToObject(per_class, "right");

    for (size_t k = 0; k < classes; k++) {
        const struct pm_confusion_class r = pm_confusion_class(c, k);

        cJSON_AddItemToArray(count, cJSON_CreateNumber((double)r.truth));
        cJSON_AddItemToArray(predicted, cJSON_CreateNumber((double)r.predicted));
        cJSON_AddItemToArray(right, cJSON_CreateNumber((double)r.right));
    }
}

static void add_confusion(const struct pm_confusion *c, cJSON *object)
{
    cJSON *list = cJSON_AddArrayToObject(object, "confusion");

    for (size_t i = 0; i < c->classes * c->classes; i++) {
        if (c->count[i] == 0)
            continue;
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)(i / c->classes)));
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)(i % c->classes)));
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)c->count[i]));
    }
}

static cJSON *curve_of(const struct pm_coco_curve *c)
{
    cJSON *list = c->truths ? cJSON_CreateArray() : cJSON_CreateNull();

    for (int k = 0; c->truths && k < PM_COCO_RECALLS; k++)
        cJSON_AddItemToArray(list, rounded(c->precision[k], 1e3));
    return list;
}

static void add_curves(const struct pm_box_metrics *m, cJSON *per_class, cJSON *object)
{
    cJSON *best_f1 = cJSON_AddArrayToObject(per_class, "best_f1");
    cJSON *best_score = cJSON_AddArrayToObject(per_class, "best_score");
    cJSON *curves = cJSON_AddObjectToObject(object, "curves");
    struct pm_coco_curve c;

    pm_box_metrics_curve(m, -1, &c);
    cJSON_AddItemToObject(curves, "all", curve_of(&c));
    curves = cJSON_AddArrayToObject(curves, "per_class");
    for (int k = 0; k < pm_box_metrics_lists(m)->classes; k++) {
        pm_box_metrics_curve(m, k, &c);
        cJSON_AddItemToArray(curves, curve_of(&c));
        cJSON_AddItemToArray(best_f1, cJSON_CreateNumber(c.f1));
        cJSON_AddItemToArray(best_score, cJSON_CreateNumber(c.score));
    }
}

static void add_precision(const struct pm_box_metrics *m, cJSON *per_class)
{
    const int classes = pm_box_metrics_lists(m)->classes;
    struct pm_box_values *values = pm_malloc((size_t)classes * sizeof *values), mean;
    cJSON *ap = cJSON_AddArrayToObject(per_class, "ap");
    cJSON *ap_50 = cJSON_AddArrayToObject(per_class, "ap_50");

    pm_box_metrics_values(m, PM_BOX_COCO, &mean, values);
    for (int k = 0; k < classes; k++) {
        cJSON_AddItemToArray(ap, cJSON_CreateNumber(values[k].v[PM_BOX_MAP]));
        cJSON_AddItemToArray(ap_50, cJSON_CreateNumber(values[k].v[PM_BOX_MAP_50]));
    }
    pm_free(values);
}

void pm_box_report_detail(const struct pm_box_metrics *m, double threshold, struct cJSON *object)
{
    const size_t classes = (size_t)pm_box_metrics_lists(m)->classes;
    struct pm_box_errors total;
    struct pm_confusion confusion;
    cJSON *per_class;

    pm_confusion_create(&confusion, classes + 1);
    pm_box_metrics_errors(m, threshold, &total, NULL, &confusion);
    cJSON_AddStringToObject(object, "of", "boxes");
    cJSON_AddNumberToObject(object, "threshold", threshold);
    add_errors(&total, object);
    per_class = cJSON_AddObjectToObject(object, "per_class");
    add_counts(&confusion, classes, per_class);
    add_precision(m, per_class);
    add_curves(m, per_class, object);
    add_confusion(&confusion, object);
    pm_confusion_free(&confusion);
}

void pm_box_report_best(const struct pm_box_metrics *m, struct cJSON *object)
{
    struct pm_coco_curve c;
    cJSON *f1, *score;

    pm_box_metrics_curve(m, -1, &c);
    cJSON_AddNumberToObject(object, "best_f1", c.f1);
    cJSON_AddNumberToObject(object, "best_score", c.score);
    f1 = cJSON_AddArrayToObject(object, "per_class_best_f1");
    score = cJSON_AddArrayToObject(object, "per_class_best_score");
    for (int k = 0; k < pm_box_metrics_lists(m)->classes; k++) {
        pm_box_metrics_curve(m, k, &c);
        cJSON_AddItemToArray(f1, cJSON_CreateNumber(c.f1));
        cJSON_AddItemToArray(score, cJSON_CreateNumber(c.score));
    }
}

/* ---- one picture ------------------------------------------------------------------------- */

static bool is_error(enum pm_box_kind kind)
{
    return kind != PM_BOX_RIGHT && kind != PM_BOX_IGNORED;
}

/* The size of the picture in pixels, and whether its boxes are rotated. */
struct shown { int height, width; bool rotated; };

/* Appends numbers in pixels as shares, alternately of the height and of the width. */
static void add_shares(const double *v, int count, const struct shown *s, cJSON *list)
{
    for (int k = 0; k < count; k++)
        cJSON_AddItemToArray(list, rounded(v[k] / (k % 2 ? s->width : s->height), 1e4));
}

static cJSON *box_of(const struct pm_box *b, const double rotated[5], int label,
                     enum pm_box_kind kind, const struct shown *s)
{
    cJSON *object = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(object, "box");

    add_shares(b->v, 4, s, list);
    if (s->rotated) {
        list = cJSON_AddArrayToObject(object, "rotated");
        add_shares(rotated, 4, s, list);
        cJSON_AddItemToArray(list, rounded(rotated[4], 1e4));
    }
    cJSON_AddNumberToObject(object, "label", label);
    cJSON_AddStringToObject(object, "kind", pm_box_kind_names[kind]);
    return object;
}

static void add_truth(const struct pm_box_judged *j, const struct shown *s, cJSON *list)
{
    for (int errors = 1; errors >= 0; errors--)
        for (int t = 0; t < j->truths && cJSON_GetArraySize(list) < PM_BOX_REPORT_BOXES; t++)
            if (is_error(j->truth_kind[t]) == errors)
                cJSON_AddItemToArray(list, box_of(&j->truth[t].box, j->truth[t].rotated,
                                                  j->truth[t].label, j->truth_kind[t], s));
}

static void add_found(const struct pm_box_judged *j, const struct shown *s, cJSON *list)
{
    for (int errors = 1; errors >= 0; errors--)
        for (int d = 0; d < j->detections && cJSON_GetArraySize(list) < PM_BOX_REPORT_BOXES; d++) {
            const struct pm_box_detection *of = &j->detection[d];

            if (is_error(j->kind[d]) != errors)
                continue;
            cJSON *box = box_of(&of->box, of->rotated, of->label, j->kind[d], s);

            cJSON_AddItemToObject(box, "score", rounded(of->score, 1e4));
            cJSON_AddItemToArray(list, box);
        }
}

bool pm_box_report_sample(const struct pm_box_metrics *m, uint64_t record, double threshold,
                          int height, int width, struct cJSON *object)
{
    const struct shown s = { height, width,
                             pm_box_metrics_lists(m)->geometry == &pm_box_rotated };
    struct pm_box_judged j;
    int errors = 0;

    if (!pm_box_metrics_judge(m, record, threshold, &j))
        return false;
    for (int d = 0; d < j.detections; d++)
        errors += is_error(j.kind[d]);
    for (int t = 0; t < j.truths; t++)
        errors += j.truth_kind[t] == PM_BOX_MISSED;
    cJSON_AddBoolToObject(object, "right", errors == 0);
    cJSON_AddNumberToObject(object, "errors", errors);
    add_truth(&j, &s, cJSON_AddArrayToObject(object, "truth"));
    add_found(&j, &s, cJSON_AddArrayToObject(object, "found"));
    pm_box_judged_free(&j);
    return true;
}
