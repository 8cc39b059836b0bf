/* decode_keypoints: the keypoints of detections whose codes belong to anchors (keypoint_codes.h).
 * Inputs: codes [n,N,2 K]; anchors [N,4]; chosen I32 [n,D], the anchor of each detection, and count
 * I32 [n], their number: outputs 4 and 3 of suppress. Output: [n,D,K,2], y and x in the unit of the
 * anchors, in ONNX's order of axes [n,2,D,K]; 0 after the last detection. For evaluation: there is
 * no gradient. */
#include "layers/infer.h"
#include "layers/keypoint_codes.h"
#include "onnx/export_nodes.h"

enum { CODES, ANCHORS, CHOSEN, COUNT, INPUTS };
#define NAMES "codes, anchors, chosen, count"

struct decode_keypoints_cfg { struct pm_floats scales; };

static const struct pm_opt opts[] = { PM_KEYPOINT_SCALES(decode_keypoints_cfg), { 0 } };

/* Items: coordinates of all detections. */
static void fwd_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct decode_keypoints_params *p = a->params;
    const size_t codes = 2 * (size_t)p->points, per = (size_t)p->per;
    float *y = a->buf[4];

    for (size_t i = begin; i < end; i++) {
        const size_t row = i / codes, image = row / per;
        const int chosen = ((const int *)a->buf[2])[row], axis = (int)(i % 2);

        y[i] = 0;
        if ((int)(row % per) >= ((const int *)a->buf[3])[image] || chosen < 0 ||
            chosen >= p->anchors)
            continue;
        y[i] = pm_keypoint_decode(
            ((const float *)a->buf[0])[(image * (size_t)p->anchors + (size_t)chosen) * codes +
                                       i % codes],
            (const float *)a->buf[1] + 4 * chosen, axis, axis ? p->sx : p->sy);
    }
}

static double flops(const void *params, size_t count)
{
    (void)params;
    return 6.0 * (double)count;
}

static const struct pm_kernel fwd = {
    .name = "decode_keypoints", .bufs = "r:codes r:anchors r:chosen r:count w:y",
    .params_size = sizeof(struct decode_keypoints_params), .cpu = fwd_cpu, .grain = 256,
    .flops = flops,
};

static const enum pm_type types[] = {
    [CODES] = PM_F32, [ANCHORS] = PM_F32, [CHOSEN] = PM_I32, [COUNT] = PM_I32,
};

static int check_shapes(const struct pm_node *n)
{
    const struct pm_shape x = n->in[CODES]->out_shape, a = n->in[ANCHORS]->out_shape;
    const struct pm_shape d = n->in[CHOSEN]->out_shape, count = n->in[COUNT]->out_shape;
    char text[64];

    if (!pm_input_is_shape(n, ANCHORS, PM_SHAPE2(x.dim[1], 4)))
        return pm_fail(PM_ECONFIG, "%s: anchors have shape %s; for codes of n x N x 2 K they must "
                       "be %dx4", n->name, pm_shape_text(a, text), x.dim[1]);
    if (d.rank != 2 || d.dim[0] != x.dim[0])
        return pm_fail(PM_ECONFIG, "%s: chosen anchors have shape %s instead of %d x D. Give D "
                       "anchors for each image, output 4 of suppress", n->name,
                       pm_shape_text(d, text), x.dim[0]);
    if (!pm_input_is_shape(n, COUNT, PM_SHAPE1(x.dim[0])))
        return pm_fail(PM_ECONFIG, "%s: count has shape %s instead of %d. Give the number of "
                       "chosen anchors of each image, output 3 of suppress", n->name,
                       pm_shape_text(count, text), x.dim[0]);
    return PM_OK;
}

static int infer(struct pm_node *n)
{
    const struct pm_shape d = n->in[CHOSEN]->out_shape;
    int err = PM_OK;

    PM_TRY(pm_need_types(n, types, -1, NAMES));
    PM_TRY(pm_keypoint_codes_check(n, ((const struct decode_keypoints_cfg *)n->cfg)->scales));
    PM_TRY(check_shapes(n));
    n->out_shape = PM_SHAPE4(d.dim[0], d.dim[1], n->in[CODES]->out_shape.dim[2] / 2, 2);
    n->out_rows = n->in[CHOSEN]->out_rows;
    n->out_type = PM_F32;
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct pm_floats scales = ((const struct decode_keypoints_cfg *)n->cfg)->scales;
    const struct pm_shape x = n->xs[CODES].shape, d = n->xs[CHOSEN].shape;
    const struct decode_keypoints_params p = {
        .rows = d.dim[0] * d.dim[1], .per = d.dim[1], .anchors = x.dim[1],
        .points = x.dim[2] / 2, .sy = scales.v[0], .sx = scales.v[1],
    };

    pm_call(c, &fwd, pm_count(n->y), &p,
            PM_BUFS(n->xs[CODES], n->xs[ANCHORS], n->xs[CHOSEN], n->xs[COUNT], n->y));
}

/* ---- ONNX ------------------------------------------------------------------------------------ */

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    const struct pm_floats scales = ((const struct decode_keypoints_cfg *)n->cfg)->scales;
    const int64_t y[] = { -1, n->out_shape.dim[1], n->out_shape.dim[2], 2 }, two[] = { 2, 2 };
    const char *chosen = pm_export_cast(g, pm_export_x(g, n, CHOSEN), PM_EXPORT_INT64);
    const char *is = pm_export_below(g, pm_export_x(g, n, COUNT), 4, 1, n->out_shape.dim[1]);
    const char *codes, *anchors, *corner[2], *side;

    codes = pm_export_op2(g, "GatherND", pm_export_x(g, n, CODES),
                          pm_export_unsqueeze(g, chosen, 2));
    pm_export_int(g, "batch_dims", 1);
    codes = pm_export_view(g, codes, 4, y);
    anchors = pm_export_op2(g, "Gather", pm_export_x(g, n, ANCHORS), chosen); /* [n,D,4] */
    pm_export_int(g, "axis", 0);
    pm_export_op_outputs(g, "Split",
                         PM_VALUES(pm_export_unsqueeze(g, anchors, 2),
                                   pm_export_integers(g, 2, two)), 2, corner);
    pm_export_int(g, "axis", -1);
    side = pm_export_op2(g, "Sub", corner[1], corner[0]);
    codes = pm_export_op2(g, "Mul", pm_export_op2(g, "Div", codes,
                                                  pm_export_numbers(g, 2, scales.v)), side);
    codes = pm_export_op2(g, "Add", codes,
                          pm_export_op2(g, "Add", corner[0],
                                        pm_export_op2(g, "Div", side, pm_export_number(g, 2))));
    codes = pm_export_op(g, "Where", PM_VALUES(is, codes, pm_export_number(g, 0)));
    codes = pm_export_op(g, "Transpose", PM_VALUES(codes));
    pm_export_ints(g, "perm", PM_INT64S(0, 3, 1, 2));
    return codes;
}

const struct pm_layer pm_layer_decode_keypoints = {
    .name = "decode_keypoints",
    .help = "keypoints of detections, from codes of anchors: inputs " NAMES "; no gradient",
    .opts = opts, .cfg_size = sizeof(struct decode_keypoints_cfg), .min_inputs = INPUTS,
    .max_inputs = INPUTS, .infer = infer, .forward = forward, .onnx = onnx,
};
