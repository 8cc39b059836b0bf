/* anchors: what the anchor layers share; see anchors.h. Boxes are computed in double precision and
 * rounded once, so all platforms have the same anchors. */
#include "layers/anchors.h"

#include <assert.h>
#include <pumice/net.h>

#include "onnx/export_nodes.h"

bool pm_is_anchors(const struct pm_node *n)
{
    return n->layer->forward == pm_anchors_forward;
}

const struct pm_anchor_levels *pm_anchors_levels(const struct pm_node *n)
{
    assert(n->net->error || pm_is_anchors(n));
    return n->net->error ? NULL : n->cfg;
}

int pm_anchors_per_cell(const struct pm_node *n, int level)
{
    const struct pm_anchor_levels *a = pm_anchors_levels(n);

    assert(level >= 1 && (!a || level <= a->count));
    return a ? a->level[level - 1].count : 1;
}

int pm_anchors_numbers(const struct pm_node *n)
{
    return n->net->error ? 4 : n->out_shape.dim[1];
}

static float *write_cell(const struct pm_anchor_level *l, double y, double x, float *out)
{
    for (int i = 0; i < l->count && l->angle; i++, out += 5) {
        out[0] = (float)y, out[1] = (float)x;
        out[2] = (float)l->size[i][0], out[3] = (float)l->size[i][1];
        out[4] = l->angle[i];
    }
    for (int i = 0; i < l->count && !l->angle; i++, out += 4) {
        const double h = l->size[i][0] / 2, w = l->size[i][1] / 2;

        out[0] = (float)(y - h);
        out[1] = (float)(x - w);
        out[2] = (float)(y + h);
        out[3] = (float)(x + w);
    }
    return out;
}

void pm_anchors_write(const struct pm_node *n, float *out)
{
    const struct pm_anchor_levels *a = pm_anchors_levels(n);

    for (int k = 0; k < a->count; k++) {
        const struct pm_anchor_level *l = &a->level[k];

        for (int y = 0; y < l->grid[0]; y++)
            for (int x = 0; x < l->grid[1]; x++)
                out = write_cell(l, l->offset[0] + y * l->stride[0],
                                 l->offset[1] + x * l->stride[1], out);
    }
}

/* ---- the layers' functions ------------------------------------------------------------------ */

int pm_anchors_begin(struct pm_node *n)
{
    struct pm_anchor_levels *a = n->cfg;
    char text[64];

    a->count = n->inputs - 1;
    for (int i = 0; i < n->inputs; i++) {
        const struct pm_shape s = n->in[i]->out_shape;

        if (s.rank != 4)
            return pm_fail(PM_ECONFIG, "%s: %s is %s, but an anchor layer reads the images and "
                           "maps, which have 4 axes", n->name, n->in[i]->name,
                           pm_shape_text(s, text));
        for (int d = 0; d < 2 && i > 0; d++)
            a->level[i - 1].grid[d] = s.dim[1 + d];
    }
    return PM_OK;
}

void pm_anchors_sizes(struct pm_node *n, int k, int count)
{
    struct pm_anchor_level *l = &((struct pm_anchor_levels *)n->cfg)->level[k];

    l->count = count;
    l->size = pm_arena_alloc(n->net->arena, ((size_t)count + 1) * sizeof *l->size);
}

int pm_anchors_pixels(const struct pm_node *n, const char *what, struct pm_floats height,
                      struct pm_floats width, bool *given, double out[PM_MAX_LEVELS][2])
{
    const int maps = n->inputs - 1;

    *given = height.count > 0;
    if (height.count != width.count || (*given && height.count != maps))
        return pm_fail(PM_ECONFIG,
                       "%s: height_%s has %d numbers and width_%s has %d; give both one number for "
                       "each of the %d maps", n->name, what, height.count, what, width.count, maps);
    for (int k = 0; k < height.count; k++)
        out[k][0] = height.v[k], out[k][1] = width.v[k];
    return PM_OK;
}

void pm_anchors_normalize(struct pm_node *n)
{
    struct pm_anchor_levels *a = n->cfg;

    for (int d = 0; d < 2; d++) {
        const double side = n->in[0]->out_shape.dim[1 + d];

        for (int k = 0; k < a->count; k++) {
            struct pm_anchor_level *l = &a->level[k];

            l->stride[d] /= side;
            l->offset[d] /= side;
            for (int i = 0; i < l->count; i++)
                l->size[i][d] /= side;
        }
    }
}

/* Gives each anchor of a level all angles, and both axes the unit of y. */
static void turn_level(struct pm_node *n, struct pm_anchor_level *l, struct pm_floats angles,
                       double width)
{
    double (*const size)[2] = l->size;
    const int sizes = l->count;

    l->count = sizes * angles.count;
    l->size = pm_arena_alloc(n->net->arena, ((size_t)l->count + 1) * sizeof *l->size);
    l->angle = pm_arena_alloc(n->net->arena, ((size_t)l->count + 1) * sizeof *l->angle);
    for (int i = 0; i < l->count; i++) {
        l->size[i][0] = size[i / angles.count][0];
        l->size[i][1] = size[i / angles.count][1] * width;
        l->angle[i] = angles.v[i % angles.count];
    }
    l->stride[1] *= width;
    l->offset[1] *= width;
}

int pm_anchors_infer(struct pm_node *n, struct pm_floats angles, bool normalized)
{
    struct pm_anchor_levels *a = n->cfg;
    const int *side = &n->in[0]->out_shape.dim[1];
    int64_t count = 0;

    for (int k = 0; k < a->count; k++) {
        struct pm_anchor_level *l = &a->level[k];

        if (l->count < 1)
            return pm_fail(PM_ECONFIG, "%s: map %d has no anchors; give scales and aspect_ratios",
                           n->name, k + 1);
        if (angles.count)
            turn_level(n, l, angles, normalized ? (double)side[1] / side[0] : 1);
        count += (int64_t)l->grid[0] * l->grid[1] * l->count;
    }
    if (count > INT32_MAX / 5)
        return pm_fail(PM_ECONFIG, "%s: %lld anchors are more than 2^29; make the input smaller",
                       n->name, (long long)count);
    n->out_shape = PM_SHAPE2((int)count, angles.count ? 5 : 4);
    n->out_type = PM_F32;
    n->out_rows = 0;
    return PM_OK;
}

void pm_anchors_forward(struct pm_node *n, struct pm_calls *c)
{
    float *v = pm_malloc(pm_shape_count(n->out_shape) * sizeof *v);

    pm_anchors_write(n, v);
    n->y = pm_calls_constant(c, n->name, v, n->out_shape, PM_F32);
    pm_free(v);
}

const char *pm_anchors_onnx(const struct pm_node *n, struct pm_export *g)
{
    const int64_t dim[] = { n->out_shape.dim[0], n->out_shape.dim[1] };
    float *v = pm_malloc(pm_shape_count(n->out_shape) * sizeof *v);
    const char *name;

    pm_anchors_write(n, v);
    name = pm_export_tensor(g, "boxes", PM_DTYPE_F32, 2, dim, v);
    pm_free(v);
    return name;
}
