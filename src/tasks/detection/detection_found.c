/* detection_found: reads the detections of a picture from the outputs, and pastes their masks.
 *
 * A mask's corners are those of its box, and a picture's first and last pixels are at 0 and 1, as
 * in reframe_box_masks_to_image_masks of TensorFlow's Object Detection API. A pixel's probability
 * is the bilinear mean of the four values of the mask around it; a pixel outside the box is not in
 * the object. */
#include "data/coco_mask.h"
#include "tasks/detection/detection_points.h"
#include "tasks/detection/detection_rotated.h"

#include <pumice/thread.h>

#include <math.h>

/* ---- pasting ------------------------------------------------------------------------------- */

#define MASK_THRESHOLD 0.5

/* The pixels of an axis that lie in the box: place[k] is that of pixel first + k in the mask. */
struct axis {
    int first, count;
    double *place; /* [count], owned */
};

/* low, high: of the box in pixels of the picture, which has `size` of them. */
static struct axis axis_of(double low, double high, int size, int cells)
{
    struct axis a = { .place = pm_malloc((size_t)size * sizeof *a.place) };

    for (int i = 0; i < size; i++) {
        /* The last pixel is exactly at the picture's end. A lone one is in the middle. */
        const double at = size > 1 ? (double)i * size / (size - 1) : 0.5;
        const double part = (at - low) / (high - low);

        if (!(part >= 0 && part <= 1))
            continue;
        if (a.count == 0)
            a.first = i;
        a.place[a.count++] = part * (cells - 1);
    }
    return a;
}

/* A mask in the output: values of neighbouring pixels are `step` apart. */
struct mask { const float *v; int height, width, step; };

static double value(const struct mask *m, int y, int x)
{
    y = y < m->height ? y : m->height - 1;
    x = x < m->width ? x : m->width - 1;
    return (double)m->v[((size_t)y * (size_t)m->width + (size_t)x) * (size_t)m->step];
}

/* Between equal values it is that value, without rounding: a mask of 0.5 stays at the threshold. */
static double between(double a, double b, double part)
{
    return a + part * (b - a);
}

static bool is_inside(const struct mask *m, double y, double x)
{
    const int top = (int)y, left = (int)x;
    const double fy = y - top, fx = x - left;
    const double upper = between(value(m, top, left), value(m, top, left + 1), fx);
    const double lower = between(value(m, top + 1, left), value(m, top + 1, left + 1), fx);

    return between(upper, lower, fy) > MASK_THRESHOLD;
}

/* Appends pixels of one kind; inside: the last run's kind. */
static void add_run(struct pm_runs *r, bool *inside, bool is, uint32_t pixels)
{
    if (pixels == 0)
        return;
    if (is != *inside) {
        PM_GROW(r->run, r->count, r->capacity);
        r->run[r->count++] = 0;
        *inside = is;
    }
    r->run[r->count - 1] += pixels;
}

/* Pixels are numbered by columns. */
static void paste(const struct mask *m, const struct pm_box *box, int height, int width,
                  struct pm_runs *out)
{
    const struct axis y = axis_of(box->v[0], box->v[2], height, m->height);
    const struct axis x = axis_of(box->v[1], box->v[3], width, m->width);
    const uint64_t pixels = (uint64_t)height * (uint64_t)width;
    uint64_t done = 0;
    bool inside = false;

    *out = (struct pm_runs){ .height = height, .width = width };
    PM_GROW(out->run, out->count, out->capacity);
    out->run[out->count++] = 0;
    for (int k = 0; k < x.count && y.count > 0; k++) {
        const uint64_t from = (uint64_t)(x.first + k) * (uint64_t)height + (uint64_t)y.first;

        add_run(out, &inside, false, (uint32_t)(from - done));
        for (int i = 0; i < y.count; i++)
            add_run(out, &inside, is_inside(m, y.place[i], x.place[k]), 1);
        done = from + (uint64_t)y.count;
    }
    add_run(out, &inside, false, (uint32_t)(pixels - done));
    pm_free(y.place);
    pm_free(x.place);
}

struct pasting {
    const struct pm_detection_picture *p;
    const struct pm_detection_found *found;
    const int *row;              /* [count]: of the outputs */
    struct mask first;           /* of row 0 */
};

static void paste_some(void *ctx, size_t begin, size_t end)
{
    const struct pasting *of = ctx;

    for (size_t k = begin; k < end; k++) {
        struct mask m = of->first;

        m.v += of->row[k];
        paste(&m, &of->found->list[k].box, of->p->height, of->p->width, &of->found->masks[k]);
    }
}

static void paste_all(const struct pm_task *t, const struct pm_detection_picture *p,
                      const int *row, struct pm_detection_found *f)
{
    const int most = t->post.max_total_detections;
    const size_t values = (size_t)t->mask_height * (size_t)t->mask_width * (size_t)most;
    struct pasting of = {
        p, f, row,
        { (const float *)p->outputs[pm_detection_shapes_output(t, p->use)] + (size_t)p->i * values,
          t->mask_height, t->mask_width, most },
    };

    f->masks = pm_calloc((size_t)f->count + 1, sizeof *f->masks);
    pm_parallel((size_t)f->count, 1, paste_some, &of);
    for (int k = 0; k < f->count; k++)
        f->list[k].mask = &f->masks[k];
}

/* ---- reading ------------------------------------------------------------------------------- */

int pm_detection_shapes_output(const struct pm_task *t, enum pm_use use)
{
    return use == PM_USE_EVAL && t->stages == 2 ? PM_OUT_SECOND_SCORES + 1 : PM_OUT_COUNT + 1;
}

/* Sets the boxes of the rows of picture p in its pixels, list [count], which begins as zeros.
 * inside: whether a row has an area in the picture. */
static int read_boxes(const struct pm_task *t, const struct pm_detection_picture *p,
                      const float *boxes, int count, struct pm_box_detection *list, bool *inside)
{
    struct pm_box *pixels = pm_malloc(((size_t)count + 1) * sizeof *pixels);
    int err = PM_OK;

    PM_TRY(pm_detection_to_pixels(t, p->frame, p->height, p->width, boxes, count, pixels));
    for (int k = 0; k < count; k++) {
        list[k].box = pixels[k];
        inside[k] = pixels[k].v[2] > pixels[k].v[0] && pixels[k].v[3] > pixels[k].v[1];
    }
out:
    pm_free(pixels);
    return err;
}

static int read_rotated(const struct pm_task *t, const struct pm_detection_picture *p,
                        const float *boxes, int count, struct pm_box_detection *list, bool *inside)
{
    struct pm_rectangle *r = pm_malloc(((size_t)count + 1) * sizeof *r);
    int err = PM_OK;

    PM_TRY(pm_detection_rotated_back(t, p->frame, p->height, p->width, boxes, count, r));
    for (int k = 0; k < count; k++)
        inside[k] = pm_detection_set_rotated(&r[k], p->height, p->width, &list[k].box,
                                             list[k].rotated);
out:
    pm_free(r);
    return err;
}

int pm_detection_read(const struct pm_task *t, const struct pm_detection_picture *p,
                      struct pm_detection_found *out)
{
    const size_t first = (size_t)p->i * (size_t)t->post.max_total_detections;
    const float *boxes =
        (const float *)p->outputs[PM_OUT_BOXES] + (size_t)pm_detection_box_numbers(t) * first;
    const float *scores = (const float *)p->outputs[PM_OUT_SCORES] + first;
    const int32_t *classes = (const int32_t *)p->outputs[PM_OUT_CLASSES] + first;
    const int all = ((const int32_t *)p->outputs[PM_OUT_COUNT])[p->i];
    bool *inside = pm_malloc(((size_t)all + 1) * sizeof *inside);
    int *row = pm_malloc(((size_t)all + 1) * sizeof *row), err = PM_OK;

    *out = (struct pm_detection_found){ .list = pm_calloc((size_t)all + 1, sizeof *out->list) };
    PM_TRY((t->rotated ? read_rotated : read_boxes)(t, p, boxes, all, out->list, inside));
    for (int k = 0; k < all; k++) {
        if (!inside[k])
            continue;
        row[out->count] = k;
        out->list[out->count] = out->list[k];
        out->list[out->count].score = (double)scores[k];
        out->list[out->count++].label = classes[k];
    }
    if (t->mask_height > 0)
        paste_all(t, p, row, out);
    if (t->points > 0)
        PM_TRY(pm_detection_find_points(t, p, row, out));
out:
    pm_free(inside);
    pm_free(row);
    return err;
}

void pm_detection_found_free(struct pm_detection_found *f)
{
    for (int k = 0; f->masks && k < f->count; k++)
        pm_runs_free(&f->masks[k]);
    pm_free(f->masks);
    pm_free(f->points);
    pm_free(f->point_scores);
    pm_free(f->list);
    *f = (struct pm_detection_found){ 0 };
}
