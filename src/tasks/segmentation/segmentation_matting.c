/* segmentation_matting: loss.matting. The record's map holds degrees of foreground instead of
 * classes, from 0 to the largest number of its bits (255, 65535). There are two classes, background
 * and foreground. The loss is the cross entropy of (1 - degree, degree). Degrees are framed like
 * classes, by nearest elements; only padding is ignored. Metrics count degrees of at least a half
 * as foreground. */
#include "tasks/segmentation/segmentation.h"

#include <string.h>

enum { MOST = UINT16_MAX }; /* degree 1 in the maps of this file */

static const float ignored = -1; /* the degree of padding */

int pm_segmentation_matting_check(const struct pm_task *s)
{
    const struct pm_segmentation_loss *c = s->pixels.loss;

    if (!s->pixels.matting)
        return PM_OK;
    if (s->facts.num_classes != 2)
        return pm_fail(PM_ECONFIG,
                       "loss.matting: needs two classes, background and foreground, but there are "
                       "%d: set model.num_classes to 2",
                       s->facts.num_classes);
    if (s->pixels.ignore_label >= 0)
        return pm_fail(PM_ECONFIG,
                       "data.ignore_label: %d, but with loss.matting every number in a label map "
                       "is an alpha value: remove the key, or set it to -1",
                       s->pixels.ignore_label);
    if (c && c->label_weights.count)
        return pm_fail(PM_ECONFIG,
                       "loss.label_weights: with loss.matting labels are alpha values, for which "
                       "class weights do not exist: remove one of the two keys");
    if (s->label_smoothing > 0)
        return pm_fail(PM_ECONFIG,
                       "loss.label_smoothing: %g, but with loss.matting labels are alpha values, "
                       "which are not smoothed: remove one of the two keys",
                       (double)s->label_smoothing);
    return PM_OK;
}

int pm_segmentation_matting_heads(const struct pm_task *s)
{
    const bool instances = s->pixels.instance.on;

    if (s->pixels.matting && (instances || s->pixels.edge_classes))
        return pm_fail(PM_ECONFIG,
                       "loss.matting: alpha values have no labels for %s: set model.%s, or remove "
                       "loss.matting",
                       instances ? "instances" : "edges",
                       instances ? "instance to false" : "edge_classes to 0");
    return PM_OK;
}

/* The largest number of every PNG depth divides that of 16 bits, so nothing is rounded. */
void pm_segmentation_degrees(struct pm_label *l, int bits)
{
    const int factor = MOST / ((1 << bits) - 1);
    const size_t count = (size_t)l->height * (size_t)l->width;

    for (size_t i = 0; i < count; i++)
        l->values[i] = (uint16_t)(l->values[i] * factor);
}

void pm_segmentation_matting_field(const int32_t *map, size_t count, float *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = map[i] < 0 ? ignored : (float)map[i] / MOST;
}

int32_t pm_segmentation_matting_absent(void)
{
    int32_t bits;

    memcpy(&bits, &ignored, sizeof bits);
    return bits;
}

void pm_segmentation_matting_classes(const float *degrees, size_t count, int32_t *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = degrees[i] < 0 ? -1 : degrees[i] >= 0.5f;
}

void pm_segmentation_matting_loss(struct pm_net *net, const char *name, struct pm_node *logits,
                                  struct pm_node *labels, const struct pm_segmentation_loss *c)
{
    pm_net_add_many(net, name, (struct pm_node *[]){ logits, labels }, 2,
                    "matting_cross_entropy ignore_label=%.9g top_k_percent=%.9g mining_steps=%d",
                    (double)ignored, c ? (double)c->top_k_percent : 1.0,
                    c ? c->hard_mining_steps : 0);
}
