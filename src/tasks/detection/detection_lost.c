/* detection_lost: see detection_lost.h. Of the second stage's boxes, only those of classes that
 * have an object in the picture are compared. Only these are converted. */
#include "tasks/detection/detection_lost.h"
#include "tasks/detection/detection_rotated.h"

#include <string.h>

/* Boxes of both stages for one picture, in pixels of the file. A box has n numbers: 4, or 5 of
 * rotated ones. */
struct stage_boxes {
    double *proposals; /* [valid][n], owned */
    double *second;    /* [valid][boxes_each][n], owned; zeros for classes without an object */
};

/* Lists the indices of a proposal's boxes that are compared: the classes that have an object in the
 * picture, which are few, or 0 if the classes share a box. Returns their number. */
static int list_classes(const struct pm_detection_truths *truths, int each, int *classes)
{
    int count = 0;

    for (int k = 0; k < each; k++) {
        bool any = each == 1;

        for (int i = 0; i < truths->count && !any; i++)
            any = truths->truth[i].label == k;
        if (any)
            classes[count++] = k;
    }
    return count;
}

static int upright_to_pixels(const struct pm_task *t, const struct pm_detection_picture *p,
                             const float *boxes, int count, double *out)
{
    return pm_detection_to_pixels(t, p->frame, p->height, p->width, boxes, count,
                                  (struct pm_box *)out); /* four doubles each */
}

static int rotated_to_pixels(const struct pm_task *t, const struct pm_detection_picture *p,
                             const float *boxes, int count, double *out)
{
    struct pm_rectangle *r = pm_malloc(((size_t)count + 1) * sizeof *r);
    const int err = pm_detection_rotated_back(t, p->frame, p->height, p->width, boxes, count, r);

    for (int i = 0; i < count && err == PM_OK; i++) {
        const double numbers[5] = { r[i].cy, r[i].cx, r[i].h, r[i].w, r[i].angle };

        memset(out + 5 * (size_t)i, 0, sizeof numbers); /* it overlaps nothing */
        if (pm_rectangle_is_valid(&r[i]))
            memcpy(out + 5 * (size_t)i, numbers, sizeof numbers);
    }
    pm_free(r);
    return err;
}

/* Converts the proposals, [valid, n], and the second stage's boxes that are compared, of [valid,
 * boxes_each, n], together. */
static int convert(const struct pm_task *t, const struct pm_detection_picture *p,
                   const struct pm_detection_truths *truths, const float *proposals,
                   const float *second, int valid, struct stage_boxes *out)
{
    const size_t rows = (size_t)valid, each = (size_t)t->boxes_each;
    const size_t n = (size_t)pm_detection_box_numbers(t);
    int *classes = pm_malloc(each * sizeof *classes);
    const int count = list_classes(truths, t->boxes_each, classes);
    float *list = pm_malloc((n * rows * (1 + (size_t)count) + 1) * sizeof *list);
    double *pixels = pm_malloc((n * rows * (1 + (size_t)count) + 1) * sizeof *pixels);
    int err = PM_OK;

    memcpy(list, proposals, n * rows * sizeof *list);
    for (int c = 0; c < count; c++)
        for (size_t i = 0; i < rows; i++)
            memcpy(list + n * (rows * (1 + (size_t)c) + i),
                   second + n * (i * each + (size_t)classes[c]), n * sizeof *list);
    PM_TRY((t->rotated ? rotated_to_pixels : upright_to_pixels)(t, p, list, valid * (1 + count),
                                                                pixels));
    out->second = pm_calloc(n * rows * each + 1, sizeof *out->second);
    for (int c = 0; c < count; c++)
        for (size_t i = 0; i < rows; i++)
            memcpy(out->second + n * (i * each + (size_t)classes[c]),
                   pixels + n * (rows * (1 + (size_t)c) + i), n * sizeof *pixels);
    out->proposals = pixels, pixels = NULL;
out:
    pm_free(classes);
    pm_free(list);
    pm_free(pixels);
    return err;
}

int pm_detection_add_lost(const struct pm_task *t, const struct pm_detection_picture *p,
                          const struct pm_detection_truths *truths,
                          const struct pm_box_detection *detection, int count,
                          struct pm_lost_objects *out)
{
    const int rows = t->proposals.max_total_detections, each = t->boxes_each;
    const int valid = ((const int32_t *)p->outputs[PM_OUT_PROPOSAL_COUNT])[p->i];
    const size_t first = (size_t)p->i * (size_t)rows, n = (size_t)pm_detection_box_numbers(t);
    const float *proposals = (const float *)p->outputs[PM_OUT_PROPOSALS] + n * first;
    const float *second =
        (const float *)p->outputs[PM_OUT_SECOND_BOXES] + n * first * (size_t)each;
    const float *score = p->outputs[PM_OUT_SECOND_SCORES];
    struct stage_boxes boxes = { NULL };
    int err = PM_OK;

    PM_TRY(convert(t, p, truths, proposals, second, valid, &boxes));
    pm_lost_objects_add(out, &(struct pm_stages_picture){
        .geometry = pm_box_geometry_of(t->rotated), .truth = truths->truth,
        .proposal = boxes.proposals, .box = boxes.second,
        .score = score + first * (size_t)t->facts.num_classes, .detection = detection,
        .truths = truths->count, .proposals = valid, .detections = count, .boxes_each = each });
out:
    pm_free(boxes.proposals);
    pm_free(boxes.second);
    return err;
}
