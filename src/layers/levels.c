/* levels: see levels.h. */
#include "layers/levels.h"

#include "layers/infer.h"
#include "onnx/export_nodes.h"

int pm_levels_read(const struct pm_node *n, int input, int levels, int size,
                   int first[PM_MAX_LEVELS + 1])
{
    int err = PM_OK;
    char text[64];

    PM_TRY(pm_need_floats(n, input, input + levels - 1));
    first[0] = 0;
    for (int k = 0; k < PM_MAX_LEVELS; k++) {
        const struct pm_node *x = n->in[k < levels ? input + k : input];
        const struct pm_shape s = x->out_shape;

        first[k + 1] = first[k];
        if (k >= levels)
            continue;
        if (s.rank != 4 || s.dim[3] % size || s.dim[0] != n->in[input]->out_shape.dim[0])
            PM_TRY(pm_fail(PM_ECONFIG,
                           "%s: %s is %s; %s needs maps of %d images whose channels are a multiple "
                           "of %d", n->name, x->name, pm_shape_text(s, text), n->layer->name,
                           n->in[input]->out_shape.dim[0], size));
        const int64_t count = (int64_t)s.dim[1] * s.dim[2] * (s.dim[3] / size) + first[k];
        if (count > INT32_MAX / 4)
            PM_TRY(pm_fail(PM_ECONFIG, "%s: more than 2^29 anchors; make the input smaller",
                           n->name));
        first[k + 1] = (int)count;
    }
out:
    return err;
}

const char *pm_levels_onnx(const struct pm_node *n, struct pm_export *g, int input, int levels,
                           int size)
{
    const char *x[PM_MAX_LEVELS + 1] = { NULL };

    for (int k = 0; k < levels; k++) {
        const struct pm_shape s = n->in[input + k]->out_shape;
        const int rows = s.dim[1] * s.dim[2] * (s.dim[3] / size);

        x[k] = pm_export_reshape(g, pm_export_x(g, n, input + k), s,
                                 PM_SHAPE3(s.dim[0], rows, size));
    }
    if (levels == 1)
        return x[0];
    x[0] = pm_export_op(g, "Concat", x);
    pm_export_int(g, "axis", 1);
    return x[0];
}
