/* box_results: the detections as a file in COCO's form for results, one detection per line.
 * Pictures come by record and detections in the order of their lists, the order in which equal
 * scores count. */
#include "data/coco_mask.h"
#include "tasks/detection/box_lists.h"
#include "tasks/detection/box_metrics.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE = 1 << 16 }; /* bytes that are written at once */

struct writer {
    struct pm_new_file f;
    struct pm_str text;
    enum pm_box_results what;
    const int *ids;
    const struct pm_box_geometry *geometry;
    int points; /* keypoints of an object */
    bool any;
};

/* The shortest of 6, 9, 15 and 17 digits that is the same number. JSON has no NaN and no infinity:
 * they become 0. */
static void add_number(struct pm_str *s, double v)
{
    static const int digits[] = { 6, 9, 15, 17 };
    char text[40];

    v = isfinite(v) ? v : 0;
    for (size_t i = 0; i < PM_COUNT(digits); i++) {
        snprintf(text, sizeof text, "%.*g", digits[i], v);
        if (strtod(text, NULL) == v)
            break;
    }
    pm_str_add(s, "%s", text);
}

/* Whether COCO's files could have it as a number: only digits, no leading zero, exact in a
 * double. */
static bool is_number(const char *name)
{
    const size_t n = strlen(name);

    return n > 0 && n <= 15 && strspn(name, "0123456789") == n && (name[0] != '0' || n == 1);
}

/* Bytes that are not valid text are escaped. */
static void add_text(struct pm_str *s, const char *name)
{
    struct pm_str printable = { 0 };
    cJSON *value;
    char *text;

    pm_str_printable(&printable, name, strlen(name));
    value = cJSON_CreateString(printable.text ? printable.text : "");
    text = cJSON_PrintUnformatted(value);
    pm_str_add(s, "%s", text);
    cJSON_free(text);
    cJSON_Delete(value);
    pm_str_free(&printable);
}

static void add_image_id(struct pm_str *s, const struct pm_kept_picture *p)
{
    if (!p->name)
        pm_str_add(s, "%llu", (unsigned long long)p->record);
    else if (is_number(p->name))
        pm_str_add(s, "%s", p->name);
    else
        add_text(s, p->name);
}

static void add_numbers(struct pm_str *s, const char *member, const double *v, int count)
{
    pm_str_add(s, ",\"%s\":[", member);
    for (int k = 0; k < count; k++) {
        pm_str_add(s, "%s", k ? "," : "");
        add_number(s, v[k]);
    }
    pm_str_add(s, "]");
}

static void add_box(struct pm_str *s, const struct pm_box_geometry *g,
                    const struct pm_box_detection *d)
{
    const double *v = d->box.v, bbox[] = { v[1], v[0], v[3] - v[1], v[2] - v[0] };
    const double *r = d->rotated, rotated[] = { r[1], r[0], r[3], r[2], r[4] };

    add_numbers(s, "bbox", bbox, PM_COUNT(bbox));
    if (g == &pm_box_rotated)
        add_numbers(s, "rotated_bbox", rotated, PM_COUNT(rotated));
}

static void add_mask(struct pm_str *s, const struct pm_runs *mask)
{
    struct pm_str text = { 0 };

    pm_runs_print(mask, &text);
    pm_str_add(s, ",\"segmentation\":{\"size\":[%d,%d],\"counts\":", mask->height, mask->width);
    add_text(s, text.text ? text.text : "");
    pm_str_add(s, "}");
    pm_str_free(&text);
}

static void add_points(struct pm_str *s, const double *at, int points)
{
    pm_str_add(s, ",\"keypoints\":[");
    for (int k = 0; k < points; k++) {
        pm_str_add(s, "%s", k ? "," : "");
        add_number(s, at[2 * k + 1]);
        pm_str_add(s, ",");
        add_number(s, at[2 * k]);
        pm_str_add(s, ",1");
    }
    pm_str_add(s, "]");
}

/* Whether the file lists a detection. */
static bool is_listed(const struct writer *w, const struct pm_box_detection *d)
{
    return w->what == PM_BOX_RESULTS_BOXES || (w->what == PM_BOX_RESULTS_MASKS && d->mask) ||
           (w->what == PM_BOX_RESULTS_POINTS && d->points);
}

static void add_detection(struct writer *w, const struct pm_kept_picture *p,
                          const struct pm_box_detection *d)
{
    pm_str_add(&w->text, "%s{\"image_id\":", w->any ? ",\n" : "");
    add_image_id(&w->text, p);
    if (p->file && (!p->name || strcmp(p->file, p->name) != 0)) {
        pm_str_add(&w->text, ",\"file_name\":");
        add_text(&w->text, p->file);
    }
    pm_str_add(&w->text, ",\"category_id\":%d", w->ids ? w->ids[d->label] : d->label + 1);
    if (w->what == PM_BOX_RESULTS_MASKS)
        add_mask(&w->text, d->mask);
    else if (w->what == PM_BOX_RESULTS_POINTS)
        add_points(&w->text, d->points, w->points);
    else
        add_box(&w->text, w->geometry, d);
    pm_str_add(&w->text, ",\"score\":");
    add_number(&w->text, d->score);
    pm_str_add(&w->text, "}");
    w->any = true;
}

static int write_out(struct writer *w, size_t least)
{
    int err = PM_OK;

    if (w->text.length < least)
        return PM_OK;
    PM_TRY(pm_new_file_add(&w->f, w->text.text, w->text.length));
    w->text.length = 0;
out:
    return err;
}

int pm_box_metrics_write(const struct pm_box_metrics *m, enum pm_box_results what, const int *ids,
                         const char *path)
{
    int err = PM_OK;
    const struct pm_box_lists *l = pm_box_metrics_lists(m);
    struct writer w = { .f = { .fd = -1, .lock = -1 }, .what = what, .ids = ids,
                        .geometry = l->geometry, .points = l->points };
    const struct pm_kept_picture **order = pm_box_lists_by_record(l);

    PM_TRY(pm_new_file_open(&w.f, path));
    pm_str_add(&w.text, "[");
    for (size_t i = 0; i < l->count; i++)
        for (int d = 0; d < order[i]->detections; d++) {
            const struct pm_box_detection *of = &l->detection[order[i]->detection + (size_t)d];

            if (!is_listed(&w, of))
                continue;
            add_detection(&w, order[i], of);
            PM_TRY(write_out(&w, PIECE));
        }
    pm_str_add(&w.text, "]\n");
    PM_TRY(write_out(&w, 0));
    PM_TRY(pm_new_file_commit(&w.f));
out:
    pm_new_file_abandon(&w.f);
    pm_str_free(&w.text);
    pm_free(order);
    return err;
}
