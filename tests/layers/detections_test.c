/* decode_boxes, class_scores, class_masks and to_float by their definitions: one box at a time, in
 * double precision. */
#include "check.h"
#include "rotated_ref.h"

/* ---- decode_boxes --------------------------------------------------------------------------- */

enum { MOST_LEVELS = 7 };

/* Finds level and row of an anchor. Maps of `size` numbers an anchor begin at input 0. */
static const double *numbers_of(const struct ref *r, int maps, int size, int image, size_t anchor)
{
    for (int k = 0; k < maps; k++) {
        const size_t rows = r->in[k].count / (size_t)r->in[k].shape.dim[0] / (size_t)size;

        if (anchor < rows)
            return r->in[k].v + ((size_t)image * rows + anchor) * (size_t)size;
        anchor -= rows;
    }
    return NULL;
}

static size_t all_anchors(const struct ref *r, int maps, int size)
{
    size_t count = 0;

    for (int k = 0; k < maps; k++)
        count += r->in[k].count / (size_t)r->in[k].shape.dim[0] / (size_t)size;
    return count;
}

static bool is_rotated(const struct ref *r)
{
    return ref_says(r, "coder", "rotated", "faster_rcnn");
}

/* Codes are along the anchor's sides. */
static void decode_rotated(const struct ref *r, const double *code, const double *a, double *box)
{
    double s[5] = { 10, 10, 5, 5, 5 }, c[5], range[2] = { -INFINITY, INFINITY };
    const double cosine = cos(a[4]), sine = sin(a[4]);

    ref_numbers(r, "box_encodings_clip_range", range, 2);
    ref_numbers(r, "coder_scales", s, 5);
    for (int i = 0; i < 5; i++)
        c[i] = fmin(fmax(code[i], range[0]), range[1]) / s[i];
    box[0] = a[0] + cosine * c[0] * a[2] + sine * c[1] * a[3];
    box[1] = a[1] - sine * c[0] * a[2] + cosine * c[1] * a[3];
    box[2] = exp(c[2]) * a[2];
    box[3] = exp(c[3]) * a[3];
    box[4] = a[4] + c[4] * acos(0);
}

static void decode_one(const struct ref *r, const double *code, const double *anchor, double *box)
{
    double s[4] = { 10, 10, 5, 5 }, c[4], range[2] = { -INFINITY, INFINITY };
    const double side[] = { anchor[2] - anchor[0], anchor[3] - anchor[1] };
    const bool square = ref_says(r, "coder", "square", "faster_rcnn");

    if (is_rotated(r)) {
        decode_rotated(r, code, anchor, box);
        return;
    }
    ref_numbers(r, "box_encodings_clip_range", range, 2);
    for (int i = 0; i < (square ? 3 : 4); i++)
        c[i] = fmin(fmax(code[i], range[0]), range[1]);
    if (ref_says(r, "coder", "mean_stddev", "faster_rcnn")) {
        s[0] = 0.01;
        ref_numbers(r, "coder_scales", s, 1);
        for (int i = 0; i < 4; i++)
            box[i] = anchor[i] + c[i] * s[0];
        return;
    }
    if (ref_says(r, "coder", "corners", "faster_rcnn")) {
        s[0] = 0.2;
        ref_numbers(r, "coder_scales", s, 1);
        for (int i = 0; i < 4; i++)
            box[i] = anchor[i] + c[i] * s[0] * side[i % 2];
        return;
    }
    ref_numbers(r, "coder_scales", s, 4);
    for (int i = 0; i < 2; i++) {
        const double unit = square ? sqrt(side[0] * side[1]) : side[i];
        const double middle = c[i] / s[i] * unit + (anchor[i] + anchor[2 + i]) / 2;
        const double length = exp(square ? c[2] / s[2] : c[2 + i] / s[2 + i]) * unit;

        box[i] = middle - length / 2;
        box[2 + i] = middle + length / 2;
    }
}

static void box_magnitudes(struct ref *r, size_t row, const double *anchor)
{
    const double *y = &r->y.v[4 * row];

    if (is_rotated(r)) { /* a product of a code and a side, and a sine's error of 3 units */
        y = &r->y.v[5 * row];
        for (int i = 0; i < 5; i++)
            r->y.mag[5 * row + i] = fabs(y[i]) + fabs(anchor[i]) + (i < 2 ? fabs(anchor[2]) +
                                                                        fabs(anchor[3]) : 0);
        return;
    }
    for (int i = 0; i < 4; i++)
        r->y.mag[4 * row + i] = fabs(y[i % 2]) + fabs(y[2 + i % 2]) + fabs(anchor[i % 2]) +
                                fabs(anchor[2 + i % 2]);
}

/* Codes by class of each picture's boxes. */
static void decode_rows(struct ref *r, int size)
{
    const struct pm_shape boxes = r->in[1].shape;
    const int classes = r->in[0].shape.dim[1] / size;
    const size_t numbers = is_rotated(r) ? 5 : 4;

    ref_output(r, classes == 1 ? boxes : PM_SHAPE4(boxes.dim[0], boxes.dim[1], classes,
                                                   (int)numbers));
    for (size_t row = 0; row < r->y.count / numbers; row++) {
        const double *anchor = &r->in[1].v[row / (size_t)classes * numbers];

        decode_one(r, &r->in[0].v[row * (size_t)size], anchor, &r->y.v[numbers * row]);
        box_magnitudes(r, row, anchor);
    }
}

static void decode_boxes(struct ref *r)
{
    const size_t numbers = is_rotated(r) ? 5 : 4;
    const int maps = r->inputs - 1;
    const int size = ref_says(r, "coder", "square", "faster_rcnn") ? 3 : (int)numbers;
    const size_t anchors = all_anchors(r, maps, size);
    const int images = r->in[0].shape.dim[0];

    if (r->in[0].shape.rank == 2) {
        decode_rows(r, size);
        return;
    }
    ref_output(r, (struct pm_shape){ 3, { images, (int)anchors, (int)numbers } });
    for (size_t row = 0; row < (size_t)images * anchors; row++) {
        const double *anchor = &r->in[maps].v[numbers * (row % anchors)];

        decode_one(r, numbers_of(r, maps, size, (int)(row / anchors), row % anchors), anchor,
                   &r->y.v[numbers * row]);
        box_magnitudes(r, row, anchor);
    }
}

static const struct check_case decode_cases[] = {
    { "decode_boxes", "2x3x4x8 2x2x2x12 36x4@0..1" },
    { "decode_boxes coder_scales=[2,3,4,5] box_encodings_clip_range=[-1,0.5]", "1x2x2x4 4x4@0..1" },
    { "decode_boxes coder=mean_stddev", "1x3x2x8 12x4@0..1" },
    { "decode_boxes coder=mean_stddev coder_scales=[0.5]", "3x1x1x4 1x4" },
    { "decode_boxes coder=square", "3x1x2x3 2x4@0..1" },
    { "decode_boxes coder=corners", "2x3x4x8 2x2x2x12 36x4@0..1" },
    { "decode_boxes coder=corners coder_scales=[0.5] box_encodings_clip_range=[-0.5,0.25]",
      "3x1x3x4 3x4@0..1" },
    { "decode_boxes", "1x4x4x4 1x3x3x4 1x2x2x4 1x2x1x4 1x1x2x4 1x1x1x8 1x1x1x4 36x4@0..1" },
    { "decode_boxes", "10x12 2x5x4@0..1" },
    { "decode_boxes", "6x4 3x2x4@0..1" },
    { "decode_boxes coder_scales=[2,3,4,5] box_encodings_clip_range=[-1,0.5]", "8x8 1x8x4@0..1" },
    { "decode_boxes coder=mean_stddev", "8x20 4x2x4@0..1" },
    { "decode_boxes coder=square", "6x6 3x2x4@0..1" },
    { "decode_boxes coder=corners coder_scales=[0.5]", "7x12 7x1x4@0..1" },
    { "decode_boxes coder=rotated", "2x3x4x10 2x2x2x15 36x5@0.1..2" },
    { "decode_boxes coder=rotated coder_scales=[2,3,4,5,1.5] box_encodings_clip_range=[-1,0.5]",
      "1x2x2x5 4x5@-9..9" },
    { "decode_boxes coder=rotated", "10x15 2x5x5@0.1..1" },
    { "decode_boxes coder=rotated", "6x5 3x2x5@-2..2" },
    { "decode_boxes coder=rotated", "2400x450 8x300x5@0..1", .large = true },
    { "decode_boxes coder=rotated", "8x20x20x420 33600x5@0..1", .large = true },
    { "decode_boxes", "2400x360 8x300x4@0..1", .large = true },
    { "decode_boxes", "8x80x80x24 8x40x40x24 8x20x20x24 8x10x10x24 8x5x5x24 51150x4@0..1",
      .large = true },
    { 0 },
};
/* Random anchors have their corners in any order. The square coder takes the root of their area. */
static void order_corners(const struct check_case *c, int inputs, int input, struct pm_shape shape,
                          float *v)
{
    for (size_t i = 0; i < pm_shape_count(shape) && input == inputs - 1; i++)
        if (strstr(c->options, "square") && i % 4 >= 2 && v[i] < v[i - 2]) {
            const float low = v[i];

            v[i] = v[i - 2], v[i - 2] = low;
        }
}

const struct pm_layer_test pm_test_decode_boxes = { decode_cases, decode_boxes,
                                                    .arrange = order_corners };

/* ---- class_scores --------------------------------------------------------------------------- */

/* Whether a corner of an anchor is outside of the image. */
static bool is_outside(const struct ref *r, const struct ref_array *anchors, size_t at)
{
    const double width = ref_number(r, "width", 1);
    const double *box = anchors->v + (size_t)anchors->shape.dim[1] * at;
    struct rotated_point corner[4];
    bool outside = false;

    if (anchors->shape.dim[1] == 4)
        return fmin(box[0], box[1]) < 0 || fmax(box[2], box[3]) > 1;
    rotated_corners(box, corner);
    for (int i = 0; i < 4; i++)
        outside |= fmin(corner[i].y, corner[i].x) < 0 || corner[i].y > 1 || corner[i].x > width;
    return outside;
}

static void class_scores(struct ref *r)
{
    const int classes = (int)ref_number(r, "classes", 1), images = r->in[0].shape.dim[0];
    const int skip = ref_says(r, "background", "true", "true"), columns = classes + skip;
    const bool prune = ref_says(r, "prune_outside", "true", "false");
    const int levels = r->inputs - prune;
    const size_t anchors = all_anchors(r, levels, columns);
    const double scale = ref_number(r, "logit_scale", 1);

    ref_output(r, (struct pm_shape){ 3, { images, (int)anchors, classes } });
    for (size_t row = 0; row < (size_t)images * anchors; row++) {
        const double *x =
            numbers_of(r, levels, columns, (int)(row / anchors), row % anchors);
        double sum = 0;

        if (prune && is_outside(r, &r->in[levels], row % anchors))
            continue; /* 0 */
        for (int k = 0; k < columns; k++)
            sum += exp(x[k] / scale);
        for (int k = 0; k < classes; k++) {
            const double z = x[k + skip] / scale;
            double *y = &r->y.v[row * (size_t)classes + (size_t)k];

            *y = ref_says(r, "converter", "softmax", "identity")   ? exp(z) / sum
                 : ref_says(r, "converter", "sigmoid", "identity") ? 1 / (1 + exp(-z))
                                                                   : z;
            r->y.mag[row * (size_t)classes + (size_t)k] = fabs(*y) * (1 + fabs(z));
        }
    }
}

static const struct check_case scores_cases[] = {
    { "class_scores classes=3", "2x3x4x8 2x2x2x12" },
    { "class_scores classes=3 converter=softmax", "2x3x4x8 2x2x2x12@-6..6" },
    { "class_scores classes=4 background=false converter=sigmoid logit_scale=2",
      "2x3x4x8 2x2x2x12@-6..6" },
    { "class_scores classes=2 background=false converter=softmax", "1x1x1x2" },
    { "class_scores converter=softmax", "3x2x2x2 3x1x2x4 3x1x1x2 3x1x1x2 3x1x1x2 3x1x1x2 3x1x1x2" },
    { "class_scores classes=90 converter=softmax logit_scale=0.5", "1x3x3x182" },
    { "class_scores classes=3 converter=softmax prune_outside=true",
      "2x3x4x8 2x2x2x12 36x4@-0.3..1.3", .no_onnx = true },
    { "class_scores background=false converter=sigmoid prune_outside=true", "1x5x5x3 75x4@-1..2",
      .no_onnx = true },
    { "class_scores classes=3 converter=softmax prune_outside=true width=1.5",
      "2x3x4x80 2x2x2x12 252x5@0..0.8", .no_onnx = true },
    { "class_scores background=false converter=sigmoid prune_outside=true width=0.7",
      "1x9x9x3 243x5@0..0.6", .no_onnx = true },
    { "class_scores classes=90 converter=sigmoid",
      "8x19x19x273 8x10x10x546 8x5x5x546 8x3x3x546 8x2x2x546 8x1x1x546", .large = true },
    { "class_scores classes=90 converter=softmax",
      "8x19x19x273 8x10x10x546 8x5x5x546 8x3x3x546 8x2x2x546 8x1x1x546", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_class_scores = { scores_cases, class_scores };

/* ---- class_masks ---------------------------------------------------------------------------- */

static void class_masks(struct ref *r)
{
    const struct pm_shape x = r->in[0].shape, d = r->in[1].shape;
    const int h = x.dim[1], w = x.dim[2], c = x.dim[3], per = d.dim[1];

    ref_output(r, PM_SHAPE4(d.dim[0], h, w, per));
    for (int row = 0; row < x.dim[0]; row++) {
        const int image = row / per, k = c == 1 ? 0 : (int)r->in[1].v[row];

        if (row % per >= r->in[2].v[image])
            continue; /* 0 */
        for (int i = 0; i < h * w; i++) {
            const double z = r->in[0].v[(row * h * w + i) * c + k], p = 1 / (1 + exp(-z));
            const int at = (image * h * w + i) * per + row % per;

            r->y.v[at] = p;
            r->y.mag[at] = p * (1 + fabs(z));
        }
    }
}

static const struct check_case masks_cases[] = {
    { "class_masks", "6x3x5x4@-6..6 i32:2x3@0..3 i32:2@0..3" },
    { "class_masks", "6x3x5x1@-6..6 i32:3x2@0..7 i32:3@0..2" },
    { "class_masks", "3x2x2x2 i32:3x1@0..1 i32:3@1..1" },
    { "class_masks", "4x2x2x2 i32:1x4@0..1 i32:1@0..0" },
    { "class_masks", "300x15x15x90@-6..6 i32:3x100@0..89 i32:3@50..100", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_class_masks = { masks_cases, class_masks };

/* ---- to_float ------------------------------------------------------------------------------- */

static void to_float(struct ref *r)
{
    ref_output(r, r->in[0].shape);
    for (size_t i = 0; i < r->y.count; i++) {
        r->y.v[i] = r->in[0].v[i] + ref_number(r, "add", 0);
        r->y.mag[i] = fabs(r->y.v[i]);
    }
}

static const struct check_case to_float_cases[] = {
    { "to_float", "i32:7@-5..100000" },
    { "to_float add=1", "i32:3x5x4@0..90" },
    { "to_float add=-0.5", "i32:1000x1000@0..90", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_to_float = { to_float_cases, to_float };
