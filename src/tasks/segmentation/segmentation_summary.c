/* segmentation_summary: training pictures for TensorBoard, with the names of DeepLab and of its
 * fork for instances: label, semantic, label_instance_center, instance_center, label_offset,
 * instance_offset; for edges label_edge, edge.
 *
 * Classes are shades of grey, spread as widely as possible, or their numbers. Heat is divided by
 * the maximum and multiplied by 255; values below 0 are black, and if no value is above 0
 * everything is black. For offsets x is red and y green. In the reference mode they are signed:
 * 128 + 127 v / max|v|, blue 128. In seed4 offsets are lengths: 255 v / max v per channel, clamped
 * to 0..255, blue 0. This is the fork's intention; the fork itself wraps predictions below 0, and
 * shows every label of 1 or more as 255. Each maximum is taken over all examples shown. Edges are
 * white, bands beside them darker. Degrees of foreground are shades of grey. */
#include "tasks/segmentation/segmentation.h"

#include <math.h>

static uint8_t grey_of(const struct pm_task *s, int label)
{
    const bool numbers = s->pixels.summary_labels == PM_LABELS_CLASSES;
    const int apart = s->facts.num_classes < 255 && !numbers ? 255 / s->facts.num_classes : 1;

    return (uint8_t)(label >= 0 && label < s->facts.num_classes && label * apart < 255
                         ? label * apart
                         : 255);
}

static struct pm_image8 *new_picture(struct pm_drawings *drawings, const char *what, int height,
                                     int width, int channels)
{
    struct pm_image8 *im = pm_drawings_add(drawings, what);

    *im = (struct pm_image8){ height, width, channels,
                              pm_calloc((size_t)height * (size_t)width, (size_t)channels) };
    return im;
}

/* Returns the values of a head, NULL if they are not available. */
static const float *head_of(const struct pm_shown *shown, int i)
{
    return i < shown->heads ? shown->head[i] : NULL;
}

/* ---- classes ----------------------------------------------------------------------------- */

/* labels: floats if they are degrees. */
static void paint_label(const struct pm_task *s, struct pm_frame frame, const void *labels,
                        struct pm_drawings *drawings)
{
    const int height = frame.height, width = frame.width;
    struct pm_image8 *im = new_picture(drawings, "label", height, width, 1);

    for (int i = 0; i < height * width; i++) {
        const float degree = s->pixels.matting ? ((const float *)labels)[i] : 0;

        im->pixels[i] = s->pixels.matting ? (uint8_t)(degree > 0 ? 255 * degree + 0.5f : 0)
                                          : grey_of(s, ((const int32_t *)labels)[i]);
    }
}

/* Returns the index of the largest of k values. */
static int class_of(const float *z, int k)
{
    int best = 0;

    for (int c = 1; c < k; c++)
        best = z[c] > z[best] ? c : best;
    return best;
}

static void paint_classes(const struct pm_task *s, const float *logits, struct pm_shape shape,
                          struct pm_drawings *drawings)
{
    struct pm_image8 *im = new_picture(drawings, "semantic", shape.dim[0], shape.dim[1], 1);
    const int k = s->facts.num_classes;

    for (int i = 0; i < shape.dim[0] * shape.dim[1]; i++)
        im->pixels[i] = grey_of(s, class_of(logits + (size_t)i * (size_t)k, k));
}

/* ---- edges ------------------------------------------------------------------------------- */

/* Ignored pixels are black, like pixels that are not edges. */
static uint8_t grey_of_edge(const struct pm_task *s, int edge)
{
    const int last = s->pixels.edge_classes - 1;

    return (uint8_t)(edge < last ? 255 * (last - edge) / last : 0);
}

/* Draws the edges, which are the last of the fields and of the heads. */
static void paint_edges(const struct pm_task *s, const struct pm_shown *shown, int i,
                        struct pm_drawings *drawings)
{
    const struct pm_frame frame = pm_segmentation_label_frame(s, true, shown->frame);
    const int height = frame.height, width = frame.width;
    const int32_t *labels = shown->field[pm_segmentation_edge_field(s, true)];
    const int head = s->pixels.instance.on ? 3 : 1, k = s->pixels.edge_classes;
    struct pm_image8 *im = new_picture(drawings, "label_edge", height, width, 1);

    labels += (size_t)i * (size_t)height * (size_t)width;
    for (int p = 0; p < height * width; p++)
        im->pixels[p] = grey_of_edge(s, labels[p]);
    if (!head_of(shown, head))
        return;
    const struct pm_shape shape = shown->shape[head];
    const float *z = head_of(shown, head) + (size_t)i * pm_shape_count(shape);
    im = new_picture(drawings, "edge", shape.dim[0], shape.dim[1], 1);
    for (int p = 0; p < shape.dim[0] * shape.dim[1]; p++)
        im->pixels[p] = grey_of_edge(s, class_of(z + (size_t)p * (size_t)k, k));
}

/* ---- instances --------------------------------------------------------------------------- */

/* Returns the largest of every `step`-th value from the first on, or of their absolute values; at
 * least 0. */
static float largest(const float *v, size_t count, size_t step, bool size)
{
    float most = 0;

    for (size_t i = 0; i < count; i += step) {
        const float x = size ? fabsf(v[i]) : v[i];
        most = x > most ? x : most;
    }
    return most;
}

static uint8_t byte_of(float v)
{
    return (uint8_t)(v > 255 ? 255 : v > 0 ? v : 0); /* NaN: 0 */
}

/* v: values of all examples. */
static void paint_heat(const float *v, int examples, int i, struct pm_shape shape, const char *what,
                       struct pm_drawings *drawings)
{
    struct pm_image8 *im = new_picture(drawings, what, shape.dim[0], shape.dim[1], 1);
    const size_t count = pm_shape_count(shape);
    const float most = largest(v, count * (size_t)examples, 1, false);

    for (size_t k = 0; k < count && most > 0; k++)
        im->pixels[k] = byte_of(v[(size_t)i * count + k] / most * 255);
}

static void paint_offset(const struct pm_task *s, const float *v, int examples, int i,
                         struct pm_shape shape, const char *what, struct pm_drawings *drawings)
{
    struct pm_image8 *im = new_picture(drawings, what, shape.dim[0], shape.dim[1], 3);
    const bool has_sign = s->pixels.instance.mode != PM_INSTANCE_SEED4;
    const size_t count = pm_shape_count(shape), all = count * (size_t)examples;
    const float size = largest(v, all, 1, true);
    const float most[2] = { largest(v, all, 2, false), largest(v + 1, all - 1, 2, false) };

    for (size_t k = 0; k < count; k++) {
        const float x = v[(size_t)i * count + k], top = most[k % 2];
        uint8_t *pixel = im->pixels + k / 2 * 3;

        pixel[1 - k % 2] = has_sign ? byte_of(128 + (size > 0 ? x / size * 127 : 0))
                           : top > 0 ? byte_of(x / top * 255) : 0;
        pixel[2] = has_sign ? 128 : 0;
    }
}

static void paint_instances(const struct pm_task *s, const struct pm_shown *shown, int i,
                            struct pm_drawings *drawings)
{
    const struct pm_shape center = PM_SHAPE3(shown->frame.height, shown->frame.width, 1);
    const struct pm_shape offset = PM_SHAPE3(shown->frame.height, shown->frame.width, 2);

    paint_heat(shown->field[2], shown->count, i, center, "label_instance_center", drawings);
    paint_offset(s, shown->field[4], shown->count, i, offset, "label_offset", drawings);
    if (head_of(shown, 1))
        paint_heat(head_of(shown, 1), shown->count, i, shown->shape[1],
                   "instance_center", drawings);
    if (head_of(shown, 2))
        paint_offset(s, head_of(shown, 2), shown->count, i, shown->shape[2], "instance_offset",
                     drawings);
}

void pm_segmentation_summary(const struct pm_task *s, const struct pm_shown *shown, int i,
                             struct pm_drawings *drawings)
{
    const struct pm_frame frame = pm_segmentation_label_frame(s, true, shown->frame);
    const size_t pixels = (size_t)frame.height * (size_t)frame.width;

    paint_label(s, frame, (const int32_t *)shown->field[1] + (size_t)i * pixels,
                drawings); /* or floats */
    if (head_of(shown, 0))
        paint_classes(s, head_of(shown, 0) + (size_t)i * pm_shape_count(shown->shape[0]),
                      shown->shape[0], drawings);
    if (s->pixels.instance.on)
        paint_instances(s, shown, i, drawings);
    if (s->pixels.edge_classes)
        paint_edges(s, shown, i, drawings);
}
