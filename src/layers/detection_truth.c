/* detection_truth: the shapes of the ground truth, which all losses of detectors check alike.
 * Declared in detection_rows.h. */
#include "layers/detection_rows.h"

#include "layers/infer.h"

static bool is_shape(const struct pm_node *n, struct pm_shape wanted)
{
    return pm_shape_equal(n->out_shape, wanted);
}

int pm_detection_check_truth(const struct pm_node *n, int first, int images, int numbers,
                             int columns, bool background)
{
    const struct pm_node *boxes = n->in[first], *classes = n->in[first + 1];
    const struct pm_node *weights = n->in[first + 2];
    const struct pm_shape b = boxes->out_shape;
    const int m = b.rank > 1 ? b.dim[1] : 0, targets = columns - background;
    char text[64];

    if (!is_shape(boxes, PM_SHAPE3(images, m, numbers)))
        return pm_fail(PM_ECONFIG, "%s: truth_boxes have shape %s instead of %dxMx%d. Give the "
                                   "%s of M true boxes for each of %d images", n->name,
                       pm_shape_text(b, text), images, numbers,
                       numbers == 5 ? "cy, cx, h, w, angle" : "corners", images);
    if (!is_shape(weights, PM_SHAPE2(images, m)))
        return pm_fail(PM_ECONFIG, "%s: truth_weights have shape %s instead of %dx%d. Give one "
                                   "weight for each true box", n->name,
                       pm_shape_text(weights->out_shape, text), images, m);
    if (classes->out_type == PM_I32 ? !is_shape(classes, PM_SHAPE2(images, m))
                                    : !is_shape(classes, PM_SHAPE3(images, m, targets)) &&
                                          !is_shape(classes, PM_SHAPE3(images, m, columns)))
        return pm_fail(PM_ECONFIG, "%s: truth_classes are %s of shape %s instead of int32 of shape "
                                   "%dx%d, or float32 of shape %dx%dx%d. Give each true box its "
                                   "class, or a target for each of %d classes", n->name,
                       pm_type_name(classes->out_type), pm_shape_text(classes->out_shape, text),
                       images, m, images, m, targets, targets);
    return PM_OK;
}

int pm_detection_check_normalizer(const struct pm_node *n, int input, int examples, bool per_image)
{
    char text[64];

    if (n->inputs > input && pm_shape_count(n->in[input]->out_shape) != (size_t)examples)
        return pm_fail(PM_ECONFIG, "%s: the normalizer has shape %s; there must be one number per "
                                   "example, %d", n->name,
                       pm_shape_text(n->in[input]->out_shape, text), examples);
    if (n->inputs == input && per_image)
        return pm_fail(PM_ECONFIG, "%s: normalize_per_image divides by the input normalizer, which "
                                   "is missing: add it as the last input, or remove the option",
                       n->name);
    return PM_OK;
}
