/* box_results: the detections as a file in COCO's form for results, one detection per line.
 * Pictures come by record and detections in the order of their lists, the order in which equal
 * scores count. */
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
    const int *ids;
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

static void add_detection(struct writer *w, const struct pm_kept_picture *p,
                          const struct pm_box_detection *d)
{
    const double *v = d->box.v;
    const double bbox[] = { v[1], v[0], v[3] - v[1], v[2] - v[0] };

    pm_str_add(&w->text, "%s{\"image_id\":", w->any ? ",\n" : "");
    add_image_id(&w->text, p);
    if (p->file && (!p->name || strcmp(p->file, p->name) != 0)) {
        pm_str_add(&w->text, ",\"file_name\":");
        add_text(&w->text, p->file);
    }
    pm_str_add(&w->text, ",\"category_id\":%d,\"bbox\":[",
               w->ids ? w->ids[d->label] : d->label + 1);
    for (int k = 0; k < 4; k++) {
        pm_str_add(&w->text, "%s", k ? "," : "");
        add_number(&w->text, bbox[k]);
    }
    pm_str_add(&w->text, "],\"score\":");
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

static int by_record(const void *a, const void *b)
{
    const struct pm_kept_picture *const *x = a, *const *y = b;

    return ((*x)->record > (*y)->record) - ((*x)->record < (*y)->record);
}

int pm_box_metrics_write(const struct pm_box_metrics *m, const int *ids, const char *path)
{
    int err = PM_OK;
    const struct pm_box_lists *l = pm_box_metrics_lists(m);
    struct writer w = { .f = { .fd = -1, .lock = -1 }, .ids = ids };
    const struct pm_kept_picture **order = pm_malloc((l->count + 1) * sizeof *order);

    for (size_t i = 0; i < l->count; i++)
        order[i] = &l->pictures[i];
    qsort(order, l->count, sizeof *order, by_record);
    PM_TRY(pm_new_file_open(&w.f, path));
    pm_str_add(&w.text, "[");
    for (size_t i = 0; i < l->count; i++)
        for (int d = 0; d < order[i]->detections; d++) {
            add_detection(&w, order[i], &l->detection[order[i]->detection + (size_t)d]);
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
