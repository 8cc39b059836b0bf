/* sample_proposals: overlaps in double precision, random words from the stream of each example
 * (random_ref.h), and the choice by counting who has a larger word. */
#include <stdlib.h>

#include "random_ref.h"
#include "rotated_ref.h"

enum { ABSENT = -2, BACKGROUND = -1 };

struct scene {
    const struct ref *r;
    int p, m, candidates; /* of an image */
    int numbers;          /* of a box: 4, or 5 for rotated ones */
};

static const double *candidate(const struct scene *s, int image, int i)
{
    return i < s->p ? s->r->in[0].v + s->numbers * (image * s->p + i)
                    : s->r->in[2].v + s->numbers * (image * s->m + i - s->p);
}

static double overlap_of(const double *a, const double *b)
{
    const double h = fmin(a[2], b[2]) - fmax(a[0], b[0]), w = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    const double inner = h > 0 && w > 0 ? h * w : 0;

    return inner / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner);
}

static bool exists(const struct scene *s, int image, int i)
{
    const double *weights = s->r->in[3].v + image * s->m;

    return weights[0] >= 0 && (i < s->p ? i < s->r->in[1].v[image] : weights[i - s->p] > 0);
}

/* A proposal that overlaps a true box of weight 0 most is absent: nothing learns from it. */
static int match_of(const struct scene *s, int image, int i)
{
    const float threshold = (float)ref_number(s->r, "iou_threshold", 0.5);
    double best = 0;
    int match = BACKGROUND;

    if (!exists(s, image, i))
        return ABSENT;
    for (int g = 0; g < s->m; g++) {
        const double *box = candidate(s, image, i), *truth = candidate(s, image, s->p + g);
        const double iou = s->numbers == 5 ? rotated_iou(box, truth) : overlap_of(box, truth);

        if (iou > best)
            best = iou, match = g;
    }
    if ((float)best < threshold)
        return BACKGROUND;
    return s->r->in[3].v[image * s->m + match] > 0 ? match : ABSENT;
}

/* Whether candidate i is among the `most` of its kind with the largest words. */
static bool is_drawn(const struct scene *s, int image, const int *match, int i, int most)
{
    const uint32_t example = (uint32_t)(CHECK_FIRST_EXAMPLE + image);
    int better = 0;

    for (int j = 0; j < s->candidates; j++) {
        const uint32_t a = ref_word(example, (uint32_t)i), b = ref_word(example, (uint32_t)j);

        if (match[j] == ABSENT || (match[j] >= 0) != (match[i] >= 0))
            continue;
        better += b > a || (b == a && j < i);
    }
    return better < most;
}

static void sample_image(struct ref *r, const struct scene *s, int image, int rows)
{
    const bool draw = ref_says(r, "draw", "true", "true");
    const int images = r->in[0].shape.dim[0];
    const int most = (int)floor(ref_number(r, "positive_fraction", 0.25) * rows);
    int *match = malloc((size_t)s->candidates * sizeof *match), matched = 0, row = 0;
    double *boxes = r->y.v + s->numbers * image * rows;
    double *matches = r->y.v + (s->numbers * images + image) * rows;

    for (int i = 0; i < s->candidates; i++) {
        match[i] = match_of(s, image, i);
        matched += match[i] >= 0;
    }
    matched = matched < most ? matched : most;
    for (int i = 0; i < rows; i++)
        matches[i] = ABSENT;
    for (int i = 0; i < s->candidates; i++) {
        const int of_kind = match[i] >= 0 ? most : rows - matched;

        if (!exists(s, image, i) ||
            (draw && (match[i] == ABSENT || !is_drawn(s, image, match, i, of_kind))))
            continue;
        for (int k = 0; k < s->numbers; k++)
            boxes[s->numbers * row + k] = candidate(s, image, i)[k];
        matches[row++] = match[i];
    }
    r->y.v[(s->numbers + 1) * images * rows + image] = row;
    free(match);
}

static void sample_proposals(struct ref *r)
{
    const int images = r->in[0].shape.dim[0];
    const int rows = ref_says(r, "draw", "true", "true") ? (int)ref_number(r, "batch", 64)
                                                         : r->in[0].shape.dim[1];
    struct scene s = { r, r->in[0].shape.dim[1], r->in[2].shape.dim[1], 0,
                       r->in[0].shape.dim[2] };

    s.candidates = s.p + (ref_says(r, "append_truth", "true", "false") ? s.m : 0);
    ref_outputs(r, 3, (struct pm_shape[]){ PM_SHAPE3(images, rows, s.numbers),
                                           PM_SHAPE2(images, rows), PM_SHAPE1(images) });
    for (int image = 0; image < images; image++)
        sample_image(r, &s, image, rows);
}

/* Makes boxes with sides from 1 to 3 (rotated: 0.5 to 2.5) that often overlap. Every third true box
 * has the weight 0, and every second of these is padding: it has no area. */
static void arrange(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                    float *v)
{
    const size_t n = (size_t)shape.dim[2]; /* not of the weights, which have two axes */

    (void)c, (void)inputs;
    for (size_t i = 0; i < pm_shape_count(shape); i++) {
        if (input == 3 && v[i] > 0 && i % 3 == 2)
            v[i] = 0;
        if (input != 3 && n == 4 && i % n >= 2)
            v[i] += v[i - 2] + 1;
        if (input != 3 && n == 5 && i % n >= 2)
            v[i] += 0.5f;
    }
    for (size_t i = 0; input == 2 && i + n <= pm_shape_count(shape); i += n)
        if (i / n % 6 == 5)
            memset(v + i, 0, n * sizeof *v);
}

#define S "sample_proposals"
static const struct check_case cases[] = {
    { S " batch=16", "2x40x4@0..2 i32:2@0..40 2x6x4@0..2 2x6@0.1..1", .no_onnx = true },
    { S " batch=16 positive_fraction=0.5 iou_threshold=0.25",
      "3x40x4@0..2 i32:3@20..40 3x6x4@0..2 3x6@0.1..1", .no_onnx = true },
    { S " batch=24 positive_fraction=1 append_truth=true",
      "2x40x4@0..2 i32:2@30..40 2x6x4@0..2 2x6@0.1..1", .no_onnx = true },
    { S " batch=24 positive_fraction=0 append_truth=true",
      "2x40x4@0..2 i32:2@30..40 2x6x4@0..2 2x6@0.1..1", .no_onnx = true },
    /* Only the true boxes are candidates. */
    { S " batch=8 append_truth=true", "2x5x4@0..2 i32:2@0..0 2x9x4@0..2 2x9@1..1",
      .no_onnx = true },
    { S, "3x300x4@0..2 i32:3@0..0 3x2x4@0..2 3x2@1..1", .no_onnx = true },
    { S, "3x300x4@0..2 i32:3@1..1 3x2x4@0..2 3x2@1..1", .no_onnx = true },
    { S, "3x300x4@0..2 i32:3@63..63 3x2x4@0..2 3x2@1..1", .no_onnx = true },
    { S, "3x300x4@0..2 i32:3@64..64 3x2x4@0..2 3x2@1..1", .no_onnx = true },
    { S, "3x300x4@0..2 i32:3@300..300 3x2x4@0..2 3x2@1..1", .no_onnx = true },
    { S " draw=false", "2x40x4@0..2 i32:2@0..40 2x6x4@0..2 2x6@0.1..1", .no_onnx = true },
    { S " draw=false batch=3 iou_threshold=0.25", "3x70x4@0..2 i32:3@70..70 3x6x4@0..2 3x6@0.1..1",
      .no_onnx = true },
    /* Absent examples. */
    { S " draw=false", "2x20x4@0..2 i32:2@20..20 2x4x4@0..2 2x4@-1..-0.5", .no_onnx = true },
    { S " batch=9 append_truth=true", "3x20x4@0..2 i32:3@20..20 3x4x4@0..2 3x4@-1..1",
      .no_onnx = true },
    { S " batch=1 positive_fraction=1", "2x9x4@0..2 i32:2@9..9 2x1x4@0..2 2x1@1..1",
      .no_onnx = true },
    /* All true boxes have the weight 0; every proposal matches; none does. */
    { S, "2x80x4@0..2 i32:2@80..80 2x3x4@0..2 2x3@0..0", .no_onnx = true },
    { S " iou_threshold=0.001 batch=20", "2x80x4@0..1 i32:2@80..80 2x3x4@0..1 2x3@1..1",
      .no_onnx = true },
    { S " iou_threshold=1", "2x80x4@0..1 i32:2@80..80 2x3x4@0..1 2x3@1..1", .no_onnx = true },
    /* Equal boxes, equal overlaps, overlaps equal to the threshold. */
    { S " batch=40 positive_fraction=0.75", "~3x90x4@0..3 i32:3@80..90 ~3x12x4@0..3 3x12@1..1",
      .no_onnx = true },
    { S " batch=40 positive_fraction=0.75 iou_threshold=0.3333333333",
      "~3x90x4@0..3 i32:3@80..90 ~3x12x4@0..3 3x12@1..1", .no_onnx = true },
    { S " batch=40 positive_fraction=0.5 iou_threshold=1 append_truth=true",
      "~3x90x4@0..2 i32:3@80..90 ~3x12x4@0..2 3x12@1..1", .no_onnx = true },
    /* Rotated boxes. */
    { S " batch=16", "2x40x5@0..2 i32:2@0..40 2x6x5@0..2 2x6@0.1..1", .no_onnx = true },
    { S " batch=24 positive_fraction=0.75 iou_threshold=0.25 append_truth=true",
      "3x40x5@0..2 i32:3@20..40 3x7x5@0..2 3x7@0.1..1", .no_onnx = true },
    { S " draw=false iou_threshold=0.25", "3x70x5@0..2 i32:3@0..70 3x6x5@0..2 3x6@-0.1..1",
      .no_onnx = true },
    { S " batch=40 positive_fraction=0.5 iou_threshold=1 append_truth=true",
      "3x90x5@0..2 i32:3@80..90 3x12x5@0..2 3x12@1..1", .no_onnx = true },
    { S " batch=256", "2x500x5@0..2 i32:2@400..500 2x100x5@0..2 2x100@0.5..1", .large = true,
      .no_onnx = true },
    { S, "8x300x4@0..2 i32:8@250..300 8x100x4@0..2 8x100@0.5..1", .large = true,
      .no_onnx = true },
    { S " batch=512 append_truth=true", "2x2000x4@0..2 i32:2@1500..2000 2x100x4@0..2 2x100@0.5..1",
      .large = true, .no_onnx = true },
    { 0 },
};
const struct pm_layer_test pm_test_sample_proposals = { cases, sample_proposals,
                                                        .arrange = arrange };
