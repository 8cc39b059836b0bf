/* suppress by its definition: one box at a time, in double precision. tests/net/
 * suppress_values_test.c has scores and boxes that random inputs never hold: NaN, exact overlaps,
 * boxes without area. */
#include "check.h"
#include "rotated_ref.h"

#include <stdlib.h>

struct entry_of {
    double score, terms; /* terms: magnitude of the score's rounding errors */
    int class_, anchor;
};
/* The entries of one image. */
struct entries {
    struct entry_of *v;
    int count;
};

static double side_of(double a0, double a1, double b0, double b1)
{
    return fmax(0, fmin(fmax(a0, a1), fmax(b0, b1)) - fmax(fmin(a0, a1), fmin(b0, b1)));
}

static double iou_of(const double *a, const double *b)
{
    const double inner = side_of(a[0], a[2], b[0], b[2]) * side_of(a[1], a[3], b[1], b[3]);
    const double first = fabs((a[2] - a[0]) * (a[3] - a[1]));
    const double second = fabs((b[2] - b[0]) * (b[3] - b[1]));

    return inner > 0 ? inner / (first + second - inner) : 0;
}

/* Numbers of a box: 4, or 5 for rotated ones. */
static int box_size(const struct ref *r)
{
    return r->in[0].shape.dim[r->in[0].shape.rank - 1];
}

/* The class of a row with the largest score, the first of equal ones. */
static int best_class(const struct ref *r, int image, int i)
{
    const struct pm_shape s = r->in[1].shape;
    const double *score = r->in[1].v + (size_t)(image * s.dim[1] + i) * (size_t)s.dim[2];
    int best = 0;

    for (int k = 1; k < s.dim[2]; k++)
        best = score[k] > score[best] ? k : best;
    return best;
}

/* The box of a class, or that of all. Suppressed together, a row has the box of its best class. */
static const double *box_of(const struct ref *r, int image, int i, int class_)
{
    const struct pm_shape s = r->in[0].shape;
    const int each = s.rank == 4 ? s.dim[2] : 1;

    if (each > 1 && ref_says(r, "use_class_agnostic_nms", "true", "false"))
        class_ = best_class(r, image, i);
    return r->in[0].v + box_size(r) * ((image * s.dim[1] + i) * each + (each > 1 ? class_ : 0));
}

/* The input after the scores that has this rank, or NULL. */
static const double *further(const struct ref *r, int rank)
{
    for (int i = 2; i < r->inputs; i++)
        if (r->in[i].shape.rank == rank)
            return r->in[i].v;
    return NULL;
}

/* Appends what remains of one list of scores. */
static void greedy(const struct ref *r, int image, double *score, int n, int most, int class_,
                   struct entries *out)
{
    const float limit = (float)ref_number(r, "iou_threshold", 0.6f);
    const double sigma = ref_number(r, "soft_nms_sigma", 0);
    const double least = (float)ref_number(r, "score_threshold", 0);

    for (int count = 0; count < most; count++) {
        int at = -1;

        for (int i = 0; i < n; i++)
            if (score[i] > least && (at < 0 || score[i] > score[at]))
                at = i;
        if (at < 0)
            return;
        out->v[out->count++] = (struct entry_of){ score[at], 4 * fabs(score[at]) * (1 + count),
                                                  class_, at };
        score[at] = -INFINITY;
        for (int i = 0; i < n; i++) {
            const double iou = (box_size(r) == 5 ? rotated_iou : iou_of)(
                box_of(r, image, at, class_), box_of(r, image, i, class_));

            if ((float)iou > limit)
                score[i] = sigma > 0 ? score[i] * 0 : -INFINITY;
            else if (sigma > 0)
                score[i] *= exp(-iou * iou / (2 * sigma));
            if (isnan(score[i]))
                score[i] = -INFINITY;
        }
    }
}

/* Replaces each entry by those of the best classes of its box. */
static void name_classes(const struct ref *r, const double *scores, int classes,
                         struct entries *e)
{
    const int each = (int)ref_number(r, "max_classes_per_detection", 1), boxes = e->count;
    const double least = (float)ref_number(r, "score_threshold", 0);
    struct entry_of *old = e->v;

    e->v = calloc((size_t)(boxes * each + 1), sizeof *e->v);
    e->count = 0;
    for (int b = 0; b < boxes; b++) {
        const double *row = scores + (size_t)old[b].anchor * (size_t)classes;
        bool *used = calloc((size_t)classes, sizeof *used);

        for (int j = 0; j < each && j < classes; j++) {
            int at = -1;

            for (int k = 0; k < classes; k++)
                if (!used[k] && (at < 0 || row[k] > row[at]))
                    at = k;
            used[at] = true;
            if (j > 0 && !(row[at] > least))
                break;
            e->v[e->count++] = (struct entry_of){ j ? row[at] : old[b].score, old[b].terms, at,
                                                  old[b].anchor };
        }
        free(used);
    }
    free(old);
}

/* Writes the detections of one image into y, which has the outputs one after another. */
static void put_image(struct ref *r, int image, struct entries *e, int most)
{
    const int images = r->in[0].shape.dim[0];
    const double whole[] = { 0, 0, 1, 1 }, *windows = further(r, 2);
    const double *w = windows ? windows + 4 * image : whole;
    const bool moves = windows && ref_says(r, "change_coordinate_frame", "true", "true");
    const size_t rows = (size_t)images * (size_t)most, scores = rows * (size_t)box_size(r);
    const bool rotated = box_size(r) == 5;
    int count = 0;

    for (bool more = true; more && count < most;) {
        int at = -1;
        double clipped[4];

        for (int i = 0; i < e->count; i++)
            if (e->v[i].score > -INFINITY && (at < 0 || e->v[i].score > e->v[at].score))
                at = i;
        more = at >= 0;
        if (!more)
            break;
        const double *box = box_of(r, image, e->v[at].anchor, e->v[at].class_);

        for (int i = 0; i < 4; i++)
            clipped[i] = fmax(fmin(box[i], w[2 + i % 2]), w[i % 2]);
        if (rotated ? box[2] > 0 && box[3] > 0
                    : clipped[2] > clipped[0] && clipped[3] > clipped[1]) {
            const size_t row = (size_t)image * (size_t)most + (size_t)count++;

            for (int i = 0; i < 5 && rotated; i++)
                r->y.v[5 * row + i] = box[i];
            for (int i = 0; i < 4 && !rotated; i++) {
                const double side = moves ? w[2 + i % 2] - w[i % 2] : 1;

                r->y.v[4 * row + i] = moves ? (clipped[i] - w[i % 2]) / side : clipped[i];
                r->y.mag[4 * row + i] = (fabs(clipped[i]) + fabs(w[i % 2])) / side;
            }
            r->y.v[scores + row] = e->v[at].score;
            r->y.mag[scores + row] = e->v[at].terms;
            r->y.v[scores + rows + row] = e->v[at].class_;
            r->y.v[scores + 2 * rows + (size_t)images + row] = e->v[at].anchor;
        }
        e->v[at].score = -INFINITY;
    }
    r->y.v[scores + 2 * rows + (size_t)image] = count;
}

static void suppress(struct ref *r)
{
    const int images = r->in[1].shape.dim[0], n = r->in[1].shape.dim[1];
    const int classes = r->in[1].shape.dim[2];
    const int total = (int)ref_number(r, "max_total_detections", 100);
    const bool agnostic = ref_says(r, "use_class_agnostic_nms", "true", "false");
    const int most = agnostic ? total : (int)ref_number(r, "max_detections_per_class", 100);
    const struct pm_shape list = PM_SHAPE2(images, total), numbers = PM_SHAPE1(images);
    const struct pm_shape out[] = { { 3, { images, total, box_size(r) } }, list, list, numbers,
                                    list };
    double *score = calloc((size_t)n, sizeof *score);

    ref_outputs(r, 5, out);
    for (int image = 0; image < images; image++) {
        const double *scores = r->in[1].v + (size_t)image * (size_t)n * (size_t)classes;
        const double *counts = further(r, 1);
        struct entries e = { calloc((size_t)(classes * n + 1), sizeof *e.v), 0 };

        for (int k = 0; k < (agnostic ? 1 : classes); k++) {
            for (int i = 0; i < n; i++) {
                score[i] = scores[i * classes + k];
                for (int j = 0; agnostic && j < classes; j++)
                    score[i] = fmax(score[i], scores[i * classes + j]);
                if (counts && i >= counts[image])
                    score[i] = -INFINITY;
            }
            greedy(r, image, score, n, most, k, &e);
        }
        if (agnostic)
            name_classes(r, scores, classes, &e);
        put_image(r, image, &e, total);
        free(e.v);
    }
    free(score);
}

static const struct check_case suppress_cases[] = {
    { "suppress score_threshold=-1 iou_threshold=0.3 max_detections_per_class=5 "
      "max_total_detections=12", "2x60x4@0..1 2x60x3" },
    { "suppress score_threshold=-5", "3x20x4@0..1 3x20x2" },
    { "suppress score_threshold=1.9", "2x20x4@0..1 2x20x2" },
    { "suppress score_threshold=9", "2x20x4@0..1 2x20x2" },
    { "suppress score_threshold=-5 iou_threshold=0", "1x50x4@0..1 1x50x1" },
    { "suppress score_threshold=-5 iou_threshold=1 max_detections_per_class=100", "1x50x4@0..1 "
      "1x50x3" },
    /* More candidates than a selection; equal scores; overlaps equal to the threshold. */
    { "suppress iou_threshold=0.1 max_detections_per_class=600 max_total_detections=1000",
      "1x700x4@0..1 1x700x2@0..1" },
    { "suppress iou_threshold=0.9 max_detections_per_class=600 max_total_detections=900",
      "1x700x4@0..1 1x700x2@0..1" },
    { "suppress score_threshold=-9 iou_threshold=0.5 max_total_detections=200", "~2x80x4@-1..4 "
      "~2x80x2" },
    { "suppress score_threshold=-9 iou_threshold=0.3333333333 max_total_detections=200",
      "~2x80x4@-1..4 ~2x80x2" },
    { "suppress score_threshold=0 iou_threshold=0.7 max_detections_per_class=600 "
      "max_total_detections=600", "~1x1500x4@-3..10 ~1x1500x2@0..2" },
    { "suppress score_threshold=0 iou_threshold=0.6 max_detections_per_class=600 "
      "max_total_detections=600", "1x1500x4@0..1 ~1x1500x1@0..1" },
    /* Windows; half of them are empty. */
    { "suppress score_threshold=-2 max_total_detections=100", "6x30x4@0..1 6x30x2 6x4@0..1" },
    { "suppress score_threshold=-2 max_total_detections=100 change_coordinate_frame=false",
      "6x30x4@0..1 6x30x2 6x4@0..1" },
    { "suppress score_threshold=-1 use_class_agnostic_nms=true iou_threshold=0.3", "2x60x4@0..1 "
      "2x60x3" },
    { "suppress score_threshold=-1 use_class_agnostic_nms=true iou_threshold=0.3 "
      "max_classes_per_detection=2 max_total_detections=30 max_detections_per_class=30",
      "2x60x4@0..1 2x60x3", .no_onnx = true },
    { "suppress score_threshold=-9 use_class_agnostic_nms=true max_classes_per_detection=5",
      "~2x30x4@-1..3 ~2x30x3", .no_onnx = true },
    { "suppress soft_nms_sigma=0.5 score_threshold=0.05", "2x60x4@0..1 2x60x3@0..1",
      .no_onnx = true },
    { "suppress soft_nms_sigma=0.1 iou_threshold=0.4 score_threshold=0.05 "
      "max_detections_per_class=8", "1x300x4@0..1 1x300x2@0..1", .no_onnx = true },
    /* Boxes of each class; a count; both. */
    { "suppress score_threshold=-1 iou_threshold=0.3 max_detections_per_class=5 "
      "max_total_detections=12", "2x60x3x4@0..1 2x60x3" },
    { "suppress score_threshold=-9 iou_threshold=0.5", "~2x80x2x4@-1..4 ~2x80x2" },
    { "suppress score_threshold=-9 iou_threshold=0.5", "3x40x1x4@0..1 3x40x1 i32:3@0..0" },
    { "suppress score_threshold=-9 iou_threshold=0.5", "4x40x4@0..1 4x40x3 i32:4@-3..50" },
    { "suppress score_threshold=-9 iou_threshold=0.5", "4x40x3x4@0..1 4x40x3 4x4@0..1 "
      "i32:4@1..40" },
    { "suppress score_threshold=-2 change_coordinate_frame=false",
      "6x30x2x4@0..1 6x30x2 6x4@0..1" },
    { "suppress score_threshold=-1 use_class_agnostic_nms=true iou_threshold=0.3",
      "2x60x4@0..1 2x60x3 i32:2@1..50" },
    { "suppress score_threshold=-1 use_class_agnostic_nms=true iou_threshold=0.3",
      "2x60x3x4@0..1 2x60x3" },
    { "suppress score_threshold=-9 use_class_agnostic_nms=true iou_threshold=0.5 "
      "max_total_detections=20 max_detections_per_class=20",
      "~3x40x4x4@-1..4 ~3x40x4 3x4@0..1 i32:3@1..40" },
    { "suppress soft_nms_sigma=0.5 score_threshold=0.05", "2x60x3x4@0..1 2x60x3@0..1 i32:2@1..59",
      .no_onnx = true },
    { "suppress iou_threshold=0.1 max_detections_per_class=600 max_total_detections=1000",
      "2x700x2x4@0..1 2x700x2@0..1 i32:2@500..700" },
    /* Rotated boxes; more than a selection; of each class; soft. */
    { "suppress score_threshold=-1 iou_threshold=0.3 max_detections_per_class=5 "
      "max_total_detections=12", "2x60x5@0..1 2x60x3", .no_onnx = true },
    { "suppress score_threshold=-5 iou_threshold=0", "1x50x5@0..1 1x50x1", .no_onnx = true },
    { "suppress score_threshold=-5 iou_threshold=1 max_detections_per_class=100",
      "1x50x5@-1..4 1x50x3", .no_onnx = true },
    { "suppress iou_threshold=0.15 max_detections_per_class=600 max_total_detections=1000",
      "1x700x5@0..1 ~1x700x2@0..1", .no_onnx = true },
    { "suppress iou_threshold=0.7 max_detections_per_class=600 max_total_detections=900",
      "1x700x5@-0.5..1 1x700x2@0..1", .no_onnx = true },
    { "suppress score_threshold=-9 iou_threshold=0.3456 max_total_detections=200",
      "~2x80x5@-1..6 ~2x80x2", .no_onnx = true },
    { "suppress score_threshold=-1 use_class_agnostic_nms=true iou_threshold=0.3", "2x60x5@0..1 "
      "2x60x3 i32:2@1..50", .no_onnx = true },
    { "suppress score_threshold=-1 use_class_agnostic_nms=true iou_threshold=0.3 "
      "max_classes_per_detection=2 max_total_detections=30 max_detections_per_class=30",
      "2x60x5@0..1 2x60x3", .no_onnx = true },
    { "suppress score_threshold=-9 iou_threshold=0.5", "4x40x3x5@0..1 4x40x3 i32:4@-3..50",
      .no_onnx = true },
    { "suppress score_threshold=-1 use_class_agnostic_nms=true iou_threshold=0.3",
      "2x60x3x5@0..1 2x60x3 i32:2@1..50", .no_onnx = true },
    { "suppress soft_nms_sigma=0.5 score_threshold=0.05", "2x60x5@0..1 2x60x3@0..1",
      .no_onnx = true },
    { "suppress soft_nms_sigma=0.1 iou_threshold=0.4 score_threshold=0.05 "
      "max_detections_per_class=8", "1x300x2x5@0..1 1x300x2@0..1", .no_onnx = true },
    { "suppress score_threshold=0.05 iou_threshold=0.3 max_detections_per_class=2000 "
      "max_total_detections=2000", "1x2000x5@0..1 1x2000x1@0..1", .large = true, .no_onnx = true },
    { "suppress score_threshold=1e-8", "4x1917x5@0..1 4x1917x3@0..1", .large = true,
      .no_onnx = true },
    { "suppress max_total_detections=300", "8x300x90x4@0..1 8x300x90@0..1 i32:8@250..300",
      .large = true },
    { "suppress score_threshold=1e-8", "8x1917x4@0..1 8x1917x3@0..1", .large = true },
    { "suppress score_threshold=1e-8", "8x1917x4@0..1 8x1917x90@0..1", .large = true },
    { "suppress score_threshold=0.05 iou_threshold=0.5", "2x51150x4@0..1 2x51150x4@0..1",
      .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_suppress = { suppress_cases, suppress };
