/* sample_proposals: the boxes of each image that train the second stage of a two-stage detector, as
 * in TensorFlow's Object Detection API. There is no gradient. Inputs:
 *
 *     proposals      [n, P, 4]   ymin, xmin, ymax, xmax in the unit of the true boxes; or rotated
 *                                boxes [n, P, 5] (rotated_overlap.h), here and below
 *     count          I32 [n]     proposals of each image; those after them are padding
 *     truth_boxes    [n, M, 4]
 *     truth_weights  [n, M]      above 0: a box to learn; 0: one to leave out, or padding; below 0
 *                                in the first row: the example is absent and gets no boxes
 *
 * Outputs, R = batch:
 *
 *     0  boxes    [n, R, 4]      in the order of the proposals; 0 after the last
 *     1  matches  I32 [n, R]     row of the truth; -1: background; -2: padding
 *     2  count    I32 [n]        sampled boxes of each image
 *
 * A proposal matches the true box with which its intersection over union is largest, the first of
 * equal ones, if this is at least iou_threshold. Else it is background. If the matched box has the
 * weight 0, such as a crowd, the proposal is never drawn: it is neither an object nor background.
 * A padding row has no area, so it overlaps nothing. The layer draws at most floor(
 * positive_fraction R) of the matched proposals. It fills the rest of the R rows with background.
 * With append_truth the true boxes of a weight above 0 are proposals, too, after the others, as in
 * torchvision.
 *
 * With draw=false every proposal keeps its place: R = P, and count is that of the proposals, or 0
 * if the example is absent. A proposal whose matched box has the weight 0 then has the match -2. So
 * a loss can cover all boxes of an evaluation, or of a hard example miner.
 *
 * Two outputs of the plan, NAME/positives and NAME/negatives [n], have the number of each example's
 * boxes that match, and of those that are background.
 *
 * A draw is a random word of each proposal; those with the largest words are taken. Words depend on
 * (seed, step, layer's name, example of the whole batch, proposal), and overlaps are compared
 * exactly. So all devices and clones draw the same boxes. This file is compiled without fused
 * multiply-add. Boxes must be finite; one that is not overlaps nothing. The rule of far angles
 * (tasks/detection/matching.h) is not used here, as in RBox-CNN's second stage. */
#include <pumice/rng.h>

#include <float.h>
#include <math.h>
#include <string.h>

#include "layers/detection_rows.h"
#include "layers/dispatches.h"
#include "layers/infer.h"
#include "layers/rotated_overlap.h"
#include "onnx/export_nodes.h"
#include "sample_proposals.params.h"

struct sample_cfg {
    int batch;
    float positive_fraction, iou_threshold;
    bool append_truth, draw;
};

static const struct pm_opt opts[] = {
    PM_INT(sample_cfg, batch, 64, 1, 100000, "boxes of an image, at most"),
    PM_FLOAT(sample_cfg, positive_fraction, 0.25, 0, 1,
             "part of these boxes that may match true ones, at most"),
    PM_FLOAT(sample_cfg, iou_threshold, 0.5, 1e-3, 1,
             "a proposal matches if it overlaps a true box by at least this"),
    PM_BOOL(sample_cfg, append_truth, false, "add the true boxes to the proposals"),
    PM_BOOL(sample_cfg, draw, true, "false: keep every proposal in its place; batch has no effect"),
    { 0 },
};

/* ---- the C function -------------------------------------------------------------------------- */

struct image {
    const struct sample_proposals_params *p;
    const float *proposals, *truth, *weights; /* of the image */
    int count;
    size_t numbers;                      /* of a box: 4 or PM_ROTATED_BOX */
    const struct pm_rotated_one *turned; /* rotated: the true boxes, prepared; else NULL */
};

static struct image image_of(const struct pm_args *a, size_t i, size_t numbers)
{
    const struct sample_proposals_params *p = a->params;

    return (struct image){ p, (const float *)a->buf[0] + i * (size_t)p->p * numbers,
                           (const float *)a->buf[2] + i * (size_t)p->m * numbers,
                           (const float *)a->buf[3] + i * (size_t)p->m,
                           ((const int *)a->buf[1])[i], numbers, NULL };
}

static const float *candidate_box(const struct image *x, int i)
{
    return i < x->p->p ? x->proposals + x->numbers * (size_t)i
                       : x->truth + x->numbers * (size_t)(i - x->p->p);
}

static bool is_candidate(const struct image *x, int i)
{
    if (pm_example_is_absent(x->weights, x->p->m, 0))
        return false;
    return i < x->p->p ? i < x->count : x->weights[i - x->p->p] > 0;
}

static float length(float a0, float a1, float b0, float b1)
{
    const float from = a0 > b0 ? a0 : b0, to = a1 < b1 ? a1 : b1;

    return to - from > 0 ? to - from : 0;
}

/* Returns the intersection of two boxes and stores their union. 0 if one of them is not a number or
 * not finite. */
static float overlap(const float a[4], const float b[4], float *joined)
{
    const float inner = length(a[0], a[2], b[0], b[2]) * length(a[1], a[3], b[1], b[3]);
    const float areas = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]);

    *joined = areas - inner;
    return inner >= FLT_MIN && *joined <= FLT_MAX ? inner : 0;
}

/* The true box that overlaps most so far. Fractions are compared by their products, which are exact
 * in double. */
struct best { float inner, joined; uint32_t box; };

static void try_box(float inner, float joined, int g, struct best *best)
{
    if (inner > 0 && (double)inner * best->joined > (double)best->inner * joined)
        *best = (struct best){ inner, joined, (uint32_t)g };
}

static void try_upright(const struct image *x, const float *box, struct best *best)
{
    for (int g = 0; g < x->p->m; g++) {
        float joined;
        const float inner = overlap(box, x->truth + 4 * (size_t)g, &joined);

        try_box(inner, joined, g, best);
    }
}

static void try_rotated(const struct image *x, const float *box, struct best *best)
{
    const struct pm_rotated_one *list[PM_ROTATED_BATCH];
    float inner[PM_ROTATED_BATCH], joined[PM_ROTATED_BATCH];
    struct pm_rotated_one one;
    int at[PM_ROTATED_BATCH], g = 0;

    pm_rotated_prepare(box, &one);
    while (g < x->p->m) {
        int n = 0;

        for (; g < x->p->m && n < PM_ROTATED_BATCH; g++)
            if (!pm_rotated_are_apart(&one, x->turned + g))
                list[n] = x->turned + g, at[n++] = g;
        if (n > 0)
            pm_rotated_overlaps(&one, list, n, inner, joined);
        for (int k = 0; k < n; k++)
            if (inner[k] >= FLT_MIN && joined[k] <= FLT_MAX)
                try_box(inner[k], joined[k], at[k], best);
    }
}

/* Boxes of weight 0 match, too: what they cover must not be learnt as background. */
static uint32_t kind_of(const struct image *x, const float *box)
{
    struct best best = { 0, 1, 0 };

    if (x->turned)
        try_rotated(x, box, &best);
    else
        try_upright(x, box, &best);
    if (!(best.inner / best.joined > x->p->below))
        return SAMPLE_BACKGROUND;
    return x->weights[best.box] > 0 ? SAMPLE_MATCHED + best.box : SAMPLE_ABSENT;
}

/* Moves the `most` largest of n different numbers to the front, in no order: 0 < most < n. Only the
 * set counts, so this is Hoare's selection and not a sort. */
static void largest_first(uint64_t *v, int n, int most)
{
    int low = 0, high = n - 1;

    while (low < high) {
        const uint64_t pivot = v[low + (high - low) / 2];
        int i = low, j = high;

        while (i <= j) {
            while (v[i] > pivot)
                i++;
            while (v[j] < pivot)
                j--;
            if (i <= j) {
                const uint64_t swapped = v[i];

                v[i++] = v[j];
                v[j--] = swapped;
            }
        }
        if (most <= j + 1)
            high = j;
        else if (most > i)
            low = i;
        else
            return; /* the cut lies between the two parts */
    }
}

/* The scratch of an image. Each image has its own, because threads compute images in parallel. */
struct work {
    uint64_t *list;                 /* room for all candidates */
    uint32_t *kind, *word, *chosen; /* of each candidate; chosen: 0 or 1 */
    struct pm_rotated_one *turned;  /* of each true box, if boxes are rotated */
};

/* Random words are made four at a time. The sum is even, so the next image's list is aligned. */
static size_t work_words(const struct sample_proposals_params *p, size_t numbers)
{
    const size_t n = (size_t)p->candidates;

    return 4 * n + (n + 3) / 4 * 4 +
           (numbers == PM_ROTATED_BOX ? PM_ROTATED_MEMBERS * (size_t)p->m : 0);
}

static struct work work_of(const struct pm_args *a, size_t image, size_t numbers)
{
    const struct sample_proposals_params *p = a->params;
    const size_t n = (size_t)p->candidates;
    uint32_t *at = (uint32_t *)a->buf[5] + image * work_words(p, numbers);

    return (struct work){ .list = (uint64_t *)(void *)at, .kind = at + 2 * n,
                          .chosen = at + 3 * n, .word = at + 4 * n,
                          .turned = (struct pm_rotated_one *)(at + 4 * n + (n + 3) / 4 * 4) };
}

/* Sets w->chosen for at most `most` candidates of a kind. Returns their number. */
static int choose(const struct image *x, const struct work *w, bool matched, int most)
{
    int count = 0;

    for (int i = 0; i < x->p->candidates; i++)
        if (matched ? w->kind[i] >= SAMPLE_MATCHED : w->kind[i] == SAMPLE_BACKGROUND)
            w->list[count++] = (uint64_t)w->word[i] << 32 | (uint32_t)~i;
    if (0 < most && most < count)
        largest_first(w->list, count, most);
    count = count < most ? count : most;
    for (int k = 0; k < count; k++)
        w->chosen[~(uint32_t)w->list[k]] = 1;
    return count;
}

static void write_rows(const struct pm_args *a, size_t image, const struct image *x,
                       const struct work *w)
{
    const size_t rows = (size_t)x->p->rows;
    const size_t numbers = x->numbers;
    float *boxes = (float *)a->buf[6] + image * rows * numbers;
    int *matches = (int *)a->buf[7] + image * rows, row = 0, positives = 0, negatives = 0;

    for (int i = 0; i < x->p->candidates; i++)
        if (w->chosen[i]) {
            memcpy(boxes + numbers * (size_t)row, candidate_box(x, i), numbers * sizeof *boxes);
            matches[row++] = (int)w->kind[i] - SAMPLE_MATCHED;
            positives += w->kind[i] >= SAMPLE_MATCHED;
            negatives += w->kind[i] == SAMPLE_BACKGROUND;
        }
    ((float *)a->buf[9])[image] = (float)positives;
    ((float *)a->buf[10])[image] = (float)negatives;
    ((int *)a->buf[8])[image] = row;
    for (; row < x->p->rows; row++) {
        memset(boxes + numbers * (size_t)row, 0, numbers * sizeof *boxes);
        matches[row] = -2;
    }
}

static void sample_images(const struct pm_args *a, size_t begin, size_t end, size_t numbers)
{
    const struct sample_proposals_params *p = a->params;
    const struct pm_step *step = a->buf[4];
    const uint32_t key[2] = { step->seed_low ^ p->stream_low, step->seed_high };
    const size_t n = (size_t)p->candidates;

    for (size_t image = begin; image < end; image++) {
        struct image x = image_of(a, image, numbers);
        const struct work w = work_of(a, image, numbers);

        if (numbers == PM_ROTATED_BOX) {
            pm_rotated_prepare_all(x.truth, (size_t)p->m, w.turned);
            x.turned = w.turned;
        }

        for (uint32_t i = 0; i < n && p->positives >= 0; i += 4)
            pm_philox((uint32_t[4]){ i / 4, (uint32_t)p->first_example + (uint32_t)image,
                                     step->step, p->stream_high }, key, w.word + i);
        for (int i = 0; i < p->candidates; i++)
            w.kind[i] = is_candidate(&x, i) ? kind_of(&x, candidate_box(&x, i)) : SAMPLE_ABSENT;
        for (int i = 0; i < p->candidates; i++)
            w.chosen[i] = p->positives < 0 && is_candidate(&x, i);
        if (p->positives >= 0) {
            const int matched = choose(&x, &w, true, p->positives);

            choose(&x, &w, false, p->rows - matched);
        }
        write_rows(a, image, &x, &w);
    }
}

static void sample_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    sample_images(a, begin, end, 4);
}

static void rotated_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    sample_images(a, begin, end, PM_ROTATED_BOX);
}

/* ---- the rows -------------------------------------------------------------------------------- */

static size_t scratch_of(const struct sample_proposals_params *p, int buf, size_t numbers)
{
    return buf == 5 ? (size_t)p->images * work_words(p, numbers) * sizeof(uint32_t) : 0;
}

static size_t sample_scratch(const void *params, int buf)
{
    return scratch_of(params, buf, 4);
}

static size_t rotated_scratch(const void *params, int buf)
{
    return scratch_of(params, buf, PM_ROTATED_BOX);
}

/* The parts of the shader, in their order. Rotated true boxes are prepared once for all
 * candidates. */
static bool pick(const char *shader, const struct sample_proposals_params *p, size_t count,
                 int level, size_t numbers, struct pm_picks *out)
{
    static const uint32_t parts[] = { 3, 0, 1, 2 };
    const size_t all = count * (size_t)p->candidates, truths = count * (size_t)p->m;
    const size_t items[] = { all, all, count * (size_t)p->rows, truths };
    const int first = numbers == PM_ROTATED_BOX ? 0 : 1;

    if (level > 0)
        return false;
    pm_pick_elements(shader, 64, all, out);
    out->count = (int)PM_COUNT(parts) - first;
    for (int k = 0; k < out->count; k++) {
        const uint32_t part = parts[first + k], groups = pm_ceil_div(items[part], 64);

        out->d[k] = out->d[0];
        out->d[k].spec[3] = part;
        out->d[k].specs = 4;
        out->d[k].groups[0] = groups < PM_GRID_MAX ? groups : PM_GRID_MAX;
    }
    out->scratch[5] = (3 * all + (first == 0 ? PM_ROTATED_MEMBERS * truths : 0)) * sizeof(uint32_t);
    return true;
}

static bool sample_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    (void)caps;
    return pick("sample_proposals", params, count, level, 4, out);
}

static bool rotated_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                         struct pm_picks *out)
{
    (void)caps;
    return pick("sample_proposals_rotated", params, count, level, PM_ROTATED_BOX, out);
}

static double sample_flops(const void *params, size_t count)
{
    const struct sample_proposals_params *p = params;

    return (double)count * p->candidates * (20.0 * p->m + p->candidates + p->rows);
}

#define BUFS                                                                                       \
    "r:proposals r:count r:truth_boxes r:truth_weights r:step t:work w:boxes w:matches w:y_count " \
    "w:positives w:negatives"

static const struct pm_kernel sample = {
    .name = "sample_proposals", .bufs = BUFS,
    .params_size = sizeof(struct sample_proposals_params), .cpu = sample_cpu, .grain = 1,
    .cpu_scratch = sample_scratch, .pick = sample_pick, .flops = sample_flops,
};
static const struct pm_kernel rotated = {
    .name = "sample_proposals_rotated", .bufs = BUFS,
    .params_size = sizeof(struct sample_proposals_params), .cpu = rotated_cpu, .grain = 1,
    .cpu_scratch = rotated_scratch, .pick = rotated_pick, .flops = sample_flops,
};

/* ---- the layer ------------------------------------------------------------------------------- */

enum { PROPOSALS, COUNT, BOXES, WEIGHTS };

static int infer(struct pm_node *n)
{
    const struct sample_cfg *cfg = n->cfg;
    const struct pm_shape x = n->in[PROPOSALS]->out_shape, t = n->in[BOXES]->out_shape;
    const struct pm_shape count = n->in[COUNT]->out_shape, weights = n->in[WEIGHTS]->out_shape;
    int err = PM_OK;
    char text[2][64];

    PM_TRY(pm_need_floats(n, PROPOSALS, PROPOSALS));
    PM_TRY(pm_need_floats(n, BOXES, WEIGHTS));
    if (x.rank != 3 || (x.dim[2] != 4 && x.dim[2] != PM_ROTATED_BOX) || t.rank != 3 ||
        t.dim[2] != x.dim[2] || t.dim[0] != x.dim[0])
        PM_TRY(pm_fail(PM_ECONFIG, "%s: sample_proposals needs proposals of n x P x 4 and true "
                                   "boxes of n x M x 4, or of 5 numbers for rotated boxes, not %s "
                                   "and %s. Make the first input the proposals and the third the "
                                   "true boxes", n->name,
                       pm_shape_text(x, text[0]), pm_shape_text(t, text[1])));
    if (n->in[COUNT]->out_type != PM_I32 || count.rank != 1 || count.dim[0] != x.dim[0])
        PM_TRY(pm_fail(PM_ECONFIG, "%s: the count of proposals, %s, is %s of shape %s instead of "
                                   "int32 of shape %d. Make the second input the number of "
                                   "proposals of each image", n->name, n->in[COUNT]->name,
                       pm_type_name(n->in[COUNT]->out_type), pm_shape_text(count, text[0]),
                       x.dim[0]));
    if (weights.rank != 2 || weights.dim[0] != x.dim[0] || weights.dim[1] != t.dim[1])
        PM_TRY(pm_fail(PM_ECONFIG, "%s: truth_weights have shape %s instead of %dx%d. Give one "
                                   "weight for each true box", n->name,
                       pm_shape_text(weights, text[0]), x.dim[0], t.dim[1]));
    if ((int64_t)x.dim[0] * ((int64_t)x.dim[1] + t.dim[1]) > INT32_MAX / 4)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: more than 2^29 proposals and true boxes in a batch: use "
                                   "smaller batches", n->name));
    if (!cfg->draw && cfg->append_truth)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: append_truth=true needs draw=true: set append_truth=false, "
                                   "or draw=true", n->name));
    n->out_shape = PM_SHAPE3(x.dim[0], cfg->draw ? cfg->batch : x.dim[1], x.dim[2]);
    n->out_type = PM_F32;
    PM_TRY(pm_node_output(n, PM_SHAPE2(x.dim[0], n->out_shape.dim[1]), PM_I32));
    PM_TRY(pm_node_output(n, PM_SHAPE1(x.dim[0]), PM_I32));
out:
    return err;
}

static void forward(struct pm_node *n, struct pm_calls *c)
{
    const struct sample_cfg *cfg = n->cfg;
    const struct pm_shape x = n->xs[PROPOSALS].shape, t = n->xs[BOXES].shape;
    struct sample_proposals_params p = {
        .images = x.dim[0], .p = x.dim[1], .m = t.dim[1],
        .candidates = x.dim[1] + (cfg->append_truth ? t.dim[1] : 0),
        .rows = n->y.shape.dim[1],
        .positives = cfg->draw ? (int)((double)cfg->positive_fraction * cfg->batch) : -1,
        .first_example = pm_first_row(c, n), .below = nextafterf(cfg->iou_threshold, 0),
    };
    uint32_t stream[2];

    pm_stream(n, stream);
    p.stream_low = stream[0];
    p.stream_high = stream[1];
    pm_call(c, x.dim[2] == PM_ROTATED_BOX ? &rotated : &sample, (size_t)p.images, &p,
            PM_BUFS(n->xs[PROPOSALS], n->xs[COUNT], n->xs[BOXES], n->xs[WEIGHTS], pm_step_tensor(c),
                    PM_NO_TENSOR, n->y, n->ys[1], n->ys[2],
                    pm_example_output(n, c, "positives", p.images),
                    pm_example_output(n, c, "negatives", p.images)));
}

static const char *onnx(const struct pm_node *n, struct pm_export *g)
{
    pm_export_refuse(g, "it draws boxes for training. Export the net without its second stage's "
                        "loss");
    return pm_export_x(g, n, PROPOSALS);
}

const struct pm_layer pm_layer_sample_proposals = {
    .name = "sample_proposals",
    .help = "draws the boxes that train a second stage: inputs proposals, count, truth_boxes, "
            "truth_weights; outputs boxes, matches, count; no gradient",
    .opts = opts, .cfg_size = sizeof(struct sample_cfg), .min_inputs = 4, .max_inputs = 4,
    .infer = infer, .forward = forward, .onnx = onnx,
};
