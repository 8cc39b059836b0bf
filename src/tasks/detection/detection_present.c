/* detection_present: a picture's detections as JSON and as boxes on it; and the boxes of training
 * pictures for TensorBoard. */
#include "data/coco_mask.h"
#include "tasks/class_detail.h"
#include "tasks/detection/detection_points.h"
#include "tasks/detection/detection_rotated.h"
#include "tasks/detection/detection_tiles.h"

#include <cjson/cJSON.h>
#include <pumice/draw.h>
#include <pumice/formats.h>
#include <math.h>
#include <string.h>

/* ---- predictions ------------------------------------------------------------------------- */

/* Adds the mask in COCO's form. */
static void add_mask(const struct pm_runs *mask, struct cJSON *row)
{
    const int size[] = { mask->height, mask->width };
    cJSON *object = cJSON_AddObjectToObject(row, "mask");
    struct pm_str text = { 0 };

    pm_runs_print(mask, &text);
    cJSON_AddItemToObject(object, "size", cJSON_CreateIntArray(size, 2));
    cJSON_AddStringToObject(object, "counts", text.text ? text.text : "");
    pm_str_free(&text);
}

/* Adds cy, cx, h, w in hundredths of a pixel, and the angle in 1e-5. */
static void add_rotated(const double rotated[5], struct cJSON *row)
{
    cJSON *list = cJSON_AddArrayToObject(row, "rotated");

    for (int k = 0; k < 5; k++) {
        const double steps = k < 4 ? 100 : 1e5;

        cJSON_AddItemToArray(list, cJSON_CreateNumber(round(steps * rotated[k]) / steps));
    }
}

static void add_json(const struct pm_task *t, const struct pm_detection_found *f,
                     struct cJSON *object)
{
    cJSON *list = cJSON_AddArrayToObject(object, "boxes");

    for (int i = 0; i < f->count; i++) {
        const struct pm_box_detection *d = &f->list[i];
        cJSON *row = cJSON_CreateObject(), *box;

        cJSON_AddNumberToObject(row, "label", d->label + 1);
        if (t->facts.labels && t->facts.labels[d->label])
            cJSON_AddStringToObject(row, "name", t->facts.labels[d->label]);
        cJSON_AddNumberToObject(row, "score", d->score);
        box = cJSON_AddArrayToObject(row, "box");
        for (int k = 0; k < 4; k++) /* in hundredths of a pixel */
            cJSON_AddItemToArray(box, cJSON_CreateNumber(round(100 * d->box.v[k]) / 100));
        if (t->rotated)
            add_rotated(d->rotated, row);
        if (d->mask)
            add_mask(d->mask, row);
        if (d->points)
            pm_detection_points_json(t, d, f->point_scores ? f->point_scores[i] : NULL, row);
        cJSON_AddItemToArray(list, row);
    }
}

static void draw_mask(const struct pm_runs *mask, int side, struct pm_color color,
                      struct pm_image8 *out)
{
    uint8_t *pixels = pm_malloc((size_t)mask->height * (size_t)mask->width);

    pm_runs_decode(mask, pixels);
    pm_draw_mask_at(out, side, pixels, mask->height, mask->width, color);
    pm_free(pixels);
}

/* Draws the boxes, masks and keypoints with a score above the threshold. side: as for
 * pm_draw_boxes_at, in pixels of the picture. */
static void draw(const struct pm_task *t, const struct pm_detection_found *f,
                 const struct pm_image8 *picture, int side, struct pm_image8 *out)
{
    struct pm_marked_box *boxes = pm_calloc((size_t)f->count + 1, sizeof *boxes);
    char (*text)[256] = pm_calloc((size_t)f->count + 1, sizeof *text);
    const struct pm_box_detection **shown = pm_calloc((size_t)f->count + 1, sizeof *shown);
    size_t n = 0;

    for (int i = 0; i < f->count; i++) {
        const struct pm_box_detection *d = &f->list[i];
        char number[16];

        if (!(d->score > pm_detection_threshold(t, d->label)))
            continue;
        const struct pm_rectangle r = pm_rectangle_of_pixels(d->rotated);

        for (int k = 0; k < 4; k++)
            boxes[n].box[k] = (float)(d->box.v[k] / (k % 2 ? picture->width : picture->height));
        if (t->rotated)
            pm_detection_mark_rotated(&r, picture->height, picture->width, &boxes[n]);
        snprintf(text[n], sizeof text[n], "%s %.0f%%", pm_detection_name(t, d->label, number),
                 100 * d->score);
        boxes[n].text = text[n];
        /* With masks or keypoints each object has a colour, so neighbours of one class differ. */
        boxes[n].color = pm_draw_color(d->mask || d->points ? n : (size_t)d->label);
        shown[n++] = d;
    }
    pm_draw_canvas(picture, 600, out);
    side *= out->width / picture->width;
    for (size_t k = n; k-- > 0;) /* the best last, on top */
        if (shown[k]->mask)
            draw_mask(shown[k]->mask, side, boxes[k].color, out);
    pm_draw_boxes_at(out, side, boxes, n);
    for (size_t k = n; k-- > 0;)
        if (shown[k]->points)
            pm_detection_draw_points(t, shown[k], picture->height, picture->width, side,
                                     boxes[k].color, out);
    pm_free(boxes);
    pm_free(text);
    pm_free(shown);
}

int pm_detection_show(const struct pm_task *t, const struct pm_detection_found *found,
                      const struct pm_image8 *picture, int side, struct cJSON *object,
                      struct pm_drawings *drawings)
{
    const int size[] = { picture->height, picture->width };
    int err = PM_OK;

    cJSON_AddItemToObject(object, "size", cJSON_CreateIntArray(size, 2));
    PM_TRY(pm_detection_add_threshold(t, object));
    add_json(t, found, object);
    if (drawings)
        draw(t, found, picture, side, pm_drawings_add(drawings, ""));
out:
    return err;
}

int pm_detection_present(const struct pm_task *t, struct pm_frame frame,
                         const void *const *outputs, const struct pm_image8 *picture,
                         struct cJSON *object, struct pm_drawings *drawings)
{
    const struct pm_detection_picture of = { frame, picture->height, picture->width, outputs,
                                             PM_USE_PREDICT, 0 };
    struct pm_detection_found f = { 0 };
    int err = PM_OK;

    PM_TRY(pm_detection_read(t, &of, &f));
    PM_TRY(pm_detection_show(t, &f, picture, 0, object, drawings));
out:
    pm_detection_found_free(&f);
    return err;
}

/* ---- in text ----------------------------------------------------------------------------- */

static double number(const cJSON *object, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(object, name));
}

/* The threshold of a class, which is counted from 1. */
static double threshold_of(const cJSON *object, double label)
{
    const cJSON *v = cJSON_GetObjectItem(object, "score_threshold");

    return cJSON_GetNumberValue(cJSON_IsArray(v) ? cJSON_GetArrayItem(v, (int)label - 1) : v);
}

/* Counts the boxes of this class above the threshold. */
static int count_of(const cJSON *list, double label, double threshold)
{
    const cJSON *row;
    int count = 0;

    cJSON_ArrayForEach(row, list)
        count += number(row, "label") == label && number(row, "score") > threshold;
    return count;
}

/* Appends " 2 cat, 1 dog". */
void pm_detection_print(const struct cJSON *object, struct pm_str *out)
{
    const cJSON *list = cJSON_GetObjectItem(object, "boxes"), *row, *before;
    int shown = 0;

    cJSON_ArrayForEach(row, list)
    {
        const double label = number(row, "label"), threshold = threshold_of(object, label);
        const char *name = cJSON_GetStringValue(cJSON_GetObjectItem(row, "name"));
        bool listed = !(number(row, "score") > threshold);

        for (before = list->child; before != row && !listed; before = before->next)
            listed = number(before, "label") == label;
        if (listed)
            continue;
        pm_str_add(out, "%s%d ", shown++ ? ", " : " ", count_of(list, label, threshold));
        if (name)
            pm_str_printable(out, name, strlen(name));
        else
            pm_str_add(out, "%.0f", label);
    }
    if (shown == 0)
        pm_str_add(out, " nothing");
}

/* ---- training pictures ------------------------------------------------------------------- */

/* Copies picture i of the batch, large enough for readable captions. */
static void canvas_of(const struct pm_task *t, const struct pm_shown *shown, int i,
                      struct pm_image8 *out)
{
    const int height = shown->frame.height, width = shown->frame.width;
    const size_t floats = (size_t)height * (size_t)width * (size_t)t->facts.channels;
    struct pm_image8 picture = { height, width, t->facts.channels, pm_malloc(floats) };

    pm_picture_bytes((const float *)shown->field[0] + floats * (size_t)i, height, width,
                     t->facts.channels, picture.pixels);
    pm_draw_canvas(&picture, 600, out);
    pm_image_free(&picture);
}

/* Draws dots where anchors are matched, in the colour of the class. */
static void paint_matches(const struct pm_task *t, const struct pm_detection_anchors *anchors,
                          const int32_t *matches, const int32_t *classes, struct pm_image8 *im)
{
    const struct pm_frame f = anchors->frame;

    for (int k = 0; k < anchors->count; k++) {
        float box[5], y, x;

        if (matches[k] < 0)
            continue;
        pm_anchor_index_box(anchors->index, k, box);
        y = t->rotated ? box[0] : (box[0] + box[2]) / 2;
        x = t->rotated ? box[1] * (float)f.height / (float)f.width : (box[1] + box[3]) / 2;
        pm_draw_point(im, (double)y, (double)x, pm_draw_color((size_t)classes[matches[k]]), true);
    }
}

/* Sets the outline of a row of truth_boxes. Returns false for a row without a box. */
static bool outline(const struct pm_task *t, struct pm_frame f, const float *row,
                    struct pm_marked_box *out)
{
    struct pm_rectangle r;
    float box[5];

    if (!t->rotated) {
        memcpy(out->box, row, sizeof out->box);
        return row[2] > row[0];
    }
    memcpy(box, row, sizeof box);
    pm_rotated_to_shares(box, 1, f.height, f.width);
    pm_rectangle_of_box(box, f.height, f.width, &r);
    pm_detection_mark_rotated(&r, f.height, f.width, out);
    return r.w > 0;
}

/* Draws the truth as the loss sees it on the training picture: the boxes, and dots where anchors
 * are matched. */
void pm_detection_paint(const struct pm_task *t, const struct pm_shown *shown, int i,
                        struct pm_drawings *drawings)
{
    const struct pm_detection_anchors *anchors = pm_detection_anchors_of(t, shown->frame);
    const size_t most = (size_t)t->data.max_boxes, row = (size_t)i;
    const size_t each = (size_t)pm_detection_box_numbers(t);
    const float *boxes = (const float *)shown->field[PM_FIELD_BOXES] + each * most * row;
    const float *weights = (const float *)shown->field[PM_FIELD_WEIGHTS] + most * row;
    const int32_t *matches = shown->field[PM_FIELD_MATCHES];
    struct pm_image8 *im = pm_drawings_add(drawings, "truth");
    struct pm_marked_box *list = pm_calloc(most + 1, sizeof *list);
    char (*numbers)[16] = pm_calloc(most + 1, sizeof *numbers);
    int32_t *classes = pm_malloc(most * sizeof *classes);
    size_t n = 0;

    canvas_of(t, shown, i, im);
    for (size_t k = 0; k < most; k++) {
        classes[k] = pm_detection_class_of(t, shown->field[PM_FIELD_CLASSES], most * row + k);
        if (!outline(t, shown->frame, boxes + each * k, &list[n]))
            continue;
        list[n].text = pm_detection_name(t, classes[k], numbers[k]);
        list[n].dashed = weights[k] == 0;
        list[n++].color = pm_draw_color((size_t)classes[k]);
    }
    pm_draw_boxes(im, list, n);
    if (anchors)
        paint_matches(t, anchors, matches + row * (size_t)anchors->count, classes, im);
    pm_free(classes);
    pm_free(numbers);
    pm_free(list);
}
