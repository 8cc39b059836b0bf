/* box_coder: the code of a box relative to an anchor, and the box of a code. A detector predicts
 * codes. Boxes and anchors are corners ymin, xmin, ymax, xmax in any unit; both have the same unit.
 * An anchor has the centre (ya, xa) and the sides ha, wa.
 *
 *     faster_rcnn  4 codes  (y - ya) / ha, (x - xa) / wa, ln(h / ha), ln(w / wa), each times its
 *                           scale: y, x, height, width (10, 10, 5, 5)
 *     mean_stddev  4 codes  (corner - anchor's corner) / stddev (0.01)
 *     corners      4 codes  (corner - anchor's corner) / anchor's side / stddev (0.2)
 *     square       3 codes  (y - ya) / la, (x - xa) / la, ln(l / la), la = sqrt(ha wa),
 *                           l = sqrt(h w), each times its scale: y, x, length (10, 10, 5); the
 *                           decoded box is a square
 *     rotated      5 codes  y' / ha, x' / wa, ln(h / ha), ln(w / wa), (angle - anchor's angle) /
 *                           (pi / 2), each times its scale: y, x, height, width, angle (10, 10, 5,
 *                           5, 5); (y', x') is the distance of the centres along the anchor's
 *                           sides. Boxes and anchors are cy, cx, h, w, angle; see
 *                           rotated_overlap.h
 *
 * The first three are those of TensorFlow's Object Detection API, corners is that of
 * keras-retinanet; both y corners are divided by ha, both x corners by wa. Codes of corners have
 * the order ymin, xmin, ymax, xmax. The coder rotated is that of RBox-CNN.
 *
 * As in TensorFlow's Object Detection API, encoding adds 1e-8 to the sides, and decoding does not.
 * Boxes with a side of 0 thus have finite codes. Decoding limits the logarithms of sides to
 * PM_BOX_MOST_LOG: without a limit, large codes give infinite sides and NaN in overlaps.
 *
 * The angle of a square has no meaning, because a square is the same after a quarter of a turn.
 * Encoding takes the turn that is nearest to the anchor's angle, at most pi / 4 from it. Decoded
 * angles are not limited.
 *
 * shaders/lib/box_coder.glsl is the twin. All functions are thread-safe. */
#ifndef PUMICE_BOX_CODER_H
#define PUMICE_BOX_CODER_H

#include <math.h>

#include <pumice/layer.h>

#include "box_coder.params.h"

struct pm_box_coder {
    int kind;        /* PM_CODER_... of box_coder.params.h */
    float scales[5]; /* see above; a stddev is in [0]. Unused ones are 1 */
};

/* Options of a layer that encodes or decodes boxes, for a struct with members coder and
 * coder_scales. */
#define PM_BOX_CODER_OPTIONS(tag)                                                                  \
    PM_ENUM(tag, coder, PM_CODER_FASTER_RCNN, "faster_rcnn|mean_stddev|square|corners|rotated",    \
            "how boxes are coded relative to anchors"),                                            \
        PM_FLOATS(tag, coder_scales, "[]", 1e-6, 1e6,                                              \
                  "factors of the codes: y, x, height, width (faster_rcnn), y, x, length "         \
                  "(square), y, x, height, width, angle (rotated) or the standard deviation "      \
                  "(mean_stddev, corners); []: the coder's own")

/* Makes a coder from these two options. scales.count is 0 (the coder's own scales) or the coder's
 * number of scales. where names the place in messages. Returns PM_ECONFIG for another count. */
int pm_box_coder_make(int kind, struct pm_floats scales, const char *where,
                      struct pm_box_coder *out);
/* Returns the number of codes of a box: 3, 4 or 5. */
int pm_box_coder_size(const struct pm_box_coder *coder);
/* Returns the numbers of a box and of an anchor: 5 for rotated boxes, else 4. */
static inline int pm_box_coder_numbers(const struct pm_box_coder *coder)
{
    return coder->kind == PM_CODER_ROTATED ? 5 : 4;
}

/* Centre and sides of a box of corners. */
struct pm_box_middle { float y, x, h, w; };
static inline struct pm_box_middle pm_box_middle_of(const float box[4])
{
    const float h = box[2] - box[0], w = box[3] - box[1];

    return (struct pm_box_middle){ box[0] + h / 2, box[1] + w / 2, h, w };
}

/* ---- rotated boxes --------------------------------------------------------------------------- */

/* Cosine and sine within 3e-7 for angles up to 10 turns. Those of Vulkan may be wrong by 2^-11. The
 * angle is reduced to -pi/4..pi/4, where Taylor's series are used. */
static inline void pm_box_direction(float angle, float *c, float *s)
{
    const float k = floorf(angle * (1 / PM_QUARTER_TURN) + 0.5f), quarter = k - 4 * floorf(k / 4);
    const float r = angle - k * PM_QUARTER_HIGH - k * PM_QUARTER_MIDDLE - k * PM_QUARTER_LOW;
    const float z = r * r;
    const float sine = r + r * z * (-1.0f / 6 + z * (1.0f / 120 + z * (-1.0f / 5040 +
                                                                     z * (1.0f / 362880))));
    const float cosine = 1 + z * (-0.5f + z * (1.0f / 24 + z * (-1.0f / 720 + z * (1.0f / 40320 -
                                                                              z / 3628800))));
    const bool odd = quarter == 1 || quarter == 3;

    *c = (quarter == 1 || quarter == 2 ? -1.0f : 1.0f) * (odd ? sine : cosine);
    *s = (quarter >= 2 ? -1.0f : 1.0f) * (odd ? cosine : sine);
}

/* The angle of a box less that of an anchor; of a square, by the nearest quarter. */
static inline float pm_box_turn(const float box[5], const float anchor[5])
{
    const float turn = box[4] - anchor[4];
    const bool square = fabsf(box[2] - box[3]) <= PM_BOX_SQUARE * fmaxf(box[2], box[3]);

    return square ? turn - PM_QUARTER_TURN * floorf(turn * (1 / PM_QUARTER_TURN) + 0.5f) : turn;
}

/* A rectangle is the same after half a turn. Returns the angle of the box, or that angle moved by
 * half turns so that it is within a quarter of a turn of the anchor's. */
static inline float pm_box_near_angle(float angle, float anchor)
{
    const float turn = angle - anchor, half = 2 * PM_QUARTER_TURN;

    return fabsf(turn) <= PM_QUARTER_TURN ? angle
                                          : angle - half * floorf(turn * (1 / half) + 0.5f);
}

static inline void pm_box_encode_rotated(const struct pm_box_coder *coder, const float box[5],
                                         const float anchor[5], float code[5])
{
    const float *s = coder->scales, dy = box[0] - anchor[0], dx = box[1] - anchor[1];
    const float h = anchor[2] + PM_BOX_EPSILON, w = anchor[3] + PM_BOX_EPSILON;
    float c, sine;

    pm_box_direction(anchor[4], &c, &sine);
    code[0] = (c * dy - sine * dx) / h * s[0];
    code[1] = (c * dx + sine * dy) / w * s[1];
    code[2] = logf((box[2] + PM_BOX_EPSILON) / h) * s[2];
    code[3] = logf((box[3] + PM_BOX_EPSILON) / w) * s[3];
    code[4] = pm_box_turn(box, anchor) / PM_QUARTER_TURN * s[4];
}

/* Returns the factor of a side for the logarithm v. NaN stays NaN. */
static inline float pm_box_grow(float v)
{
    return expf(v > PM_BOX_MOST_LOG ? PM_BOX_MOST_LOG : v);
}

static inline void pm_box_decode_rotated(const struct pm_box_coder *coder, const float code[5],
                                         const float anchor[5], float box[5])
{
    const float *s = coder->scales;
    const float y = code[0] / s[0] * anchor[2], x = code[1] / s[1] * anchor[3];
    float c, sine;

    pm_box_direction(anchor[4], &c, &sine);
    box[0] = anchor[0] + (c * y + sine * x);
    box[1] = anchor[1] + (c * x - sine * y);
    box[2] = pm_box_grow(code[2] / s[2]) * anchor[2];
    box[3] = pm_box_grow(code[3] / s[3]) * anchor[3];
    box[4] = anchor[4] + code[4] / s[4] * PM_QUARTER_TURN;
}

/* ---- boxes of corners ------------------------------------------------------------------------ */

/* Writes the pm_box_coder_size() codes of a box. */
static inline void pm_box_encode(const struct pm_box_coder *coder, const float box[4],
                                 const float anchor[4], float code[])
{
    const float *s = coder->scales;
    struct pm_box_middle a = pm_box_middle_of(anchor), b = pm_box_middle_of(box);

    if (coder->kind == PM_CODER_MEAN_STDDEV) {
        for (int i = 0; i < 4; i++)
            code[i] = (box[i] - anchor[i]) / s[0];
    } else if (coder->kind == PM_CODER_CORNERS) {
        const float sides[2] = { a.h + PM_BOX_EPSILON, a.w + PM_BOX_EPSILON };

        for (int i = 0; i < 4; i++)
            code[i] = (box[i] - anchor[i]) / sides[i % 2] / s[0];
    } else if (coder->kind == PM_CODER_SQUARE) {
        const float side = sqrtf(a.h * a.w) + PM_BOX_EPSILON;

        code[0] = (b.y - a.y) / side * s[0];
        code[1] = (b.x - a.x) / side * s[1];
        code[2] = logf((sqrtf(b.h * b.w) + PM_BOX_EPSILON) / side) * s[2];
    } else {
        a.h += PM_BOX_EPSILON, a.w += PM_BOX_EPSILON;
        code[0] = (b.y - a.y) / a.h * s[0];
        code[1] = (b.x - a.x) / a.w * s[1];
        code[2] = logf((b.h + PM_BOX_EPSILON) / a.h) * s[2];
        code[3] = logf((b.w + PM_BOX_EPSILON) / a.w) * s[3];
    }
}

/* Writes the corners of a code. */
static inline void pm_box_decode(const struct pm_box_coder *coder, const float code[],
                                 const float anchor[4], float box[4])
{
    const float *s = coder->scales;
    const struct pm_box_middle a = pm_box_middle_of(anchor);
    float y, x, h, w;

    if (coder->kind == PM_CODER_MEAN_STDDEV) {
        for (int i = 0; i < 4; i++)
            box[i] = code[i] * s[0] + anchor[i];
        return;
    }
    if (coder->kind == PM_CODER_CORNERS) {
        for (int i = 0; i < 4; i++)
            box[i] = code[i] * s[0] * (i % 2 ? a.w : a.h) + anchor[i];
        return;
    }
    if (coder->kind == PM_CODER_SQUARE) {
        const float side = sqrtf(a.h * a.w);

        y = code[0] / s[0] * side + a.y;
        x = code[1] / s[1] * side + a.x;
        h = w = pm_box_grow(code[2] / s[2]) * side;
    } else {
        y = code[0] / s[0] * a.h + a.y;
        x = code[1] / s[1] * a.w + a.x;
        h = pm_box_grow(code[2] / s[2]) * a.h;
        w = pm_box_grow(code[3] / s[3]) * a.w;
    }
    box[0] = y - h / 2, box[1] = x - w / 2;
    box[2] = y + h / 2, box[3] = x + w / 2;
}

/* Writes the gradient of a code: that of its decoded box, dbox, through pm_box_decode. */
static inline void pm_box_decode_back(const struct pm_box_coder *coder, const float code[],
                                      const float anchor[4], const float box[4],
                                      const float dbox[4], float dcode[])
{
    const float *s = coder->scales, h = box[2] - box[0], w = box[3] - box[1];
    const float dh = (dbox[2] - dbox[0]) / 2, dw = (dbox[3] - dbox[1]) / 2;
    const struct pm_box_middle a = pm_box_middle_of(anchor);
    const float side = sqrtf(a.h * a.w);

    if (coder->kind == PM_CODER_MEAN_STDDEV) {
        for (int i = 0; i < 4; i++)
            dcode[i] = dbox[i] * s[0];
    } else if (coder->kind == PM_CODER_CORNERS) {
        for (int i = 0; i < 4; i++)
            dcode[i] = dbox[i] * s[0] * (i % 2 ? a.w : a.h);
    } else if (coder->kind == PM_CODER_SQUARE) {
        dcode[0] = (dbox[0] + dbox[2]) * side / s[0];
        dcode[1] = (dbox[1] + dbox[3]) * side / s[1];
        dcode[2] = code[2] / s[2] > PM_BOX_MOST_LOG ? 0 : (dh * h + dw * w) / s[2];
    } else {
        dcode[0] = (dbox[0] + dbox[2]) * a.h / s[0];
        dcode[1] = (dbox[1] + dbox[3]) * a.w / s[1];
        dcode[2] = code[2] / s[2] > PM_BOX_MOST_LOG ? 0 : dh * h / s[2];
        dcode[3] = code[3] / s[3] > PM_BOX_MOST_LOG ? 0 : dw * w / s[3];
    }
}

/* ---- both kinds of boxes --------------------------------------------------------------------- */

/* box and anchor: pm_box_coder_numbers() numbers. */
static inline void pm_box_encode_any(const struct pm_box_coder *coder, const float *box,
                                     const float *anchor, float *code)
{
    if (coder->kind == PM_CODER_ROTATED)
        pm_box_encode_rotated(coder, box, anchor, code);
    else
        pm_box_encode(coder, box, anchor, code);
}

static inline void pm_box_decode_any(const struct pm_box_coder *coder, const float *code,
                                     const float *anchor, float *box)
{
    if (coder->kind == PM_CODER_ROTATED)
        pm_box_decode_rotated(coder, code, anchor, box);
    else
        pm_box_decode(coder, code, anchor, box);
}

#endif
