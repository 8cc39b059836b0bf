/* detection_ref: reads the inputs of detection_loss for its reference, one anchor at a time. */
#ifndef DETECTION_REF_H
#define DETECTION_REF_H

#include <assert.h>

#include "check.h"

enum { MOST_COLUMNS = 256 };

struct detection {
    int levels, batch, anchors, m, codes, columns, labels, background;
    int anchors_in, matches, boxes, classes, weights, normalizer; /* inputs; -1: absent */
};
struct anchor_loss { double loc, cls, loc_mag, cls_mag; };

static inline struct detection detection_of(const struct ref *r)
{
    const int levels = (r->inputs - 5) / 2, at = 2 * levels;
    struct detection d = {
        .levels = levels, .batch = r->in[0].shape.dim[0], .anchors = r->in[at].shape.dim[0],
        .m = r->in[at + 2].shape.dim[1], .anchors_in = at, .matches = at + 1, .boxes = at + 2,
        .classes = at + 3, .weights = at + 4, .normalizer = r->inputs > at + 5 ? at + 5 : -1,
        .codes = ref_says(r, "coder", "square", "")    ? 3
                 : ref_says(r, "coder", "rotated", "") ? 5
                                                        : 4,
        .background = ref_says(r, "background", "false", "true") ? 0 : 1,
    };

    d.columns = (int)(r->in[levels].count / (r->in[0].count / (size_t)d.codes));
    d.labels = (int)(r->in[d.classes].count / ((size_t)d.batch * (size_t)d.m));
    d.labels = r->in[d.classes].shape.rank == 3 ? d.labels : 0;
    assert(d.columns <= MOST_COLUMNS);
    return d;
}

/* Values of an anchor in the maps from `map` on, which have `size` values for each anchor. */
static inline const double *detection_values(const struct ref *r, const struct detection *d,
                                             int map, int size, int image, int anchor)
{
    for (int l = 0;; l++) {
        const int per = (int)(r->in[map + l].count / (size_t)size) / d->batch;

        if (anchor < per)
            return r->in[map + l].v + ((size_t)image * (size_t)per + (size_t)anchor) * (size_t)size;
        anchor -= per;
    }
}

static inline const double *detection_codes(const struct ref *r, const struct detection *d,
                                            int image, int anchor)
{
    return detection_values(r, d, 0, d->codes, image, anchor);
}

static inline const double *detection_scores(const struct ref *r, const struct detection *d,
                                             int image, int anchor)
{
    return detection_values(r, d, d->levels, d->columns, image, anchor);
}

static inline int detection_match(const struct ref *r, const struct detection *d, int image,
                                  int anchor)
{
    return (int)r->in[d->matches].v[image * d->anchors + anchor];
}

static inline double detection_weight(const struct ref *r, const struct detection *d, int image,
                                      int g)
{
    return g == -2   ? 0
           : g == -1 ? ref_number(r, "negative_class_weight", 1)
                     : r->in[d->weights].v[image * d->m + g];
}

/* In the classification loss. With normalize_per_image all anchors that count are equal. */
static inline double detection_class_weight(const struct ref *r, const struct detection *d,
                                            int image, int g)
{
    const double w = detection_weight(r, d, image, g);

    return g >= 0 && ref_says(r, "normalize_per_image", "true", "false") ? w > 0 : w;
}

static inline void detection_targets(const struct ref *r, const struct detection *d, int image,
                                     int g, double *z)
{
    const bool zeros = ref_says(r, "encode_background_as_zeros", "true", "false");
    const double *k = g < 0 ? NULL
                            : r->in[d->classes].v +
                                  (size_t)(image * d->m + g) * (size_t)(d->labels ? d->labels : 1);

    for (int i = 0; i < d->columns; i++)
        z[i] = g < 0       ? d->background && !zeros && i == 0
               : !d->labels ? i == (int)k[0] + d->background
               : i < d->columns - d->labels ? 0
                                            : k[i - (d->columns - d->labels)];
}

/* The angles of squares are those nearest to the anchor's, a quarter of a turn from each other. */
static inline void detection_encode_rotated(const struct ref *r, const struct detection *d,
                                            int image, int g, int anchor, double code[5],
                                            double size[5])
{
    const double *a = r->in[d->anchors_in].v + 5 * anchor;
    const double *b = r->in[d->boxes].v + 5 * (image * d->m + g), e = 1e-8, quarter = acos(0);
    const double dy = b[0] - a[0], dx = b[1] - a[1], c = cos(a[4]), sine = sin(a[4]);
    double s[5] = { 10, 10, 5, 5, 5 }, turn = b[4] - a[4];

    ref_numbers(r, "coder_scales", s, 5);
    if (fabs(b[2] - b[3]) < 1e-3 * fmax(b[2], b[3]))
        turn = remainder(turn, quarter);
    code[0] = s[0] * (c * dy - sine * dx) / (a[2] + e);
    code[1] = s[1] * (c * dx + sine * dy) / (a[3] + e);
    code[2] = s[2] * log((b[2] + e) / (a[2] + e));
    code[3] = s[3] * log((b[3] + e) / (a[3] + e));
    code[4] = s[4] * turn / quarter;
    for (int i = 0; i < 2; i++) /* a sine has an error of 3 units, a centre one of 2 */
        size[i] = s[i] * 4 * (fabs(dy) + fabs(dx) + 1) / a[2 + i];
    for (int i = 2; i < 4; i++)
        size[i] = fabs(code[i]) + 4 * s[i];
    size[4] = s[4] * (fabs(a[4]) + fabs(b[4]) + 1);
}

/* The code of true box g, and the size of its rounding errors. */
static inline void detection_encode(const struct ref *r, const struct detection *d, int image,
                                    int g, int anchor, double code[5], double size[5])
{
    const double *a = r->in[d->anchors_in].v + 4 * anchor;
    const double *b = r->in[d->boxes].v + 4 * (image * d->m + g), e = 1e-8;
    double s[4] = { 10, 10, 5, 5 };

    if (d->codes == 5) {
        detection_encode_rotated(r, d, image, g, anchor, code, size);
        return;
    }
    if (ref_says(r, "coder", "mean_stddev", "")) {
        ref_numbers(r, "coder_scales", s, 4);
        for (int i = 0; i < 4; i++)
            code[i] = (b[i] - a[i]) / s[0], size[i] = 4 / s[0];
        return;
    }
    if (ref_says(r, "coder", "corners", "")) {
        s[0] = 0.2;
        ref_numbers(r, "coder_scales", s, 1);
        for (int i = 0; i < 4; i++) {
            const double side = a[2 + i % 2] - a[i % 2] + e;

            code[i] = (b[i] - a[i]) / side / s[0];
            size[i] = 2 * fabs(code[i]) / side + 4 / side / s[0];
        }
        return;
    }
    ref_numbers(r, "coder_scales", s, 4);
    double ha = a[2] - a[0], wa = a[3] - a[1], h = b[2] - b[0], w = b[3] - b[1];
    if (d->codes == 3)
        ha = wa = sqrt(ha * wa), h = w = sqrt(h * w);
    const double dy = (b[0] + b[2] - a[0] - a[2]) / 2, dx = (b[1] + b[3] - a[1] - a[3]) / 2;

    code[0] = s[0] * dy / (ha + e), size[0] = fabs(code[0]) + s[0] * 4 / ha;
    code[1] = s[1] * dx / (wa + e), size[1] = fabs(code[1]) + s[1] * 4 / wa;
    code[2] = s[2] * log((h + e) / (ha + e)), size[2] = fabs(code[2]) + s[2] * (1 / h + 1 / ha);
    if (d->codes == 4)
        code[3] = s[3] * log((w + e) / (wa + e)), size[3] = fabs(code[3]) + s[3] * (1 / w + 1 / wa);
}

/* The box that an anchor's codes stand for. */
static inline void detection_decode(const struct ref *r, const struct detection *d, int image,
                                    int anchor, double box[4])
{
    const double *a = r->in[d->anchors_in].v + 4 * anchor;
    const double *t = detection_codes(r, d, image, anchor);
    double s[4] = { 10, 10, 5, 5 }, ha = a[2] - a[0], wa = a[3] - a[1];

    if (ref_says(r, "coder", "mean_stddev", "")) {
        ref_numbers(r, "coder_scales", s, 4);
        for (int i = 0; i < 4; i++)
            box[i] = a[i] + t[i] * s[0];
        return;
    }
    if (ref_says(r, "coder", "corners", "")) {
        s[0] = 0.2;
        ref_numbers(r, "coder_scales", s, 1);
        for (int i = 0; i < 4; i++)
            box[i] = a[i] + t[i] * s[0] * (i % 2 ? wa : ha);
        return;
    }
    ref_numbers(r, "coder_scales", s, 4);
    if (d->codes == 3)
        ha = wa = sqrt(ha * wa);
    const double y = (a[0] + a[2]) / 2 + t[0] / s[0] * ha, x = (a[1] + a[3]) / 2 + t[1] / s[1] * wa;
    const double h = ha * exp(t[2] / s[2]), w = wa * exp(t[d->codes - 1] / s[d->codes - 1]);

    box[0] = y - h / 2, box[1] = x - w / 2, box[2] = y + h / 2, box[3] = x + w / 2;
}

static inline double detection_overlap(const double a[4], const double b[4])
{
    const double h = fmin(a[2], b[2]) - fmax(a[0], b[0]), w = fmin(a[3], b[3]) - fmax(a[1], b[1]);
    const double inner = h > 0 && w > 0 ? h * w : 0;

    return inner / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - inner);
}

/* Turns each four numbers of 0..1 into the corners of a box with sides from 0.15 to 0.4. */
static inline void detection_boxes(struct pm_shape shape, float *v)
{
    for (size_t i = 0; i < pm_shape_count(shape); i += 4) {
        v[i] *= 0.6f, v[i + 1] *= 0.6f;
        v[i + 2] = v[i] + 0.15f + 0.25f * v[i + 2];
        v[i + 3] = v[i + 1] + 0.15f + 0.25f * v[i + 3];
    }
}

/* The same for cy, cx, h, w, angle in -1.5..1.5; every third box is a square. */
static inline void detection_rotated(struct pm_shape shape, float *v)
{
    for (size_t i = 0; i < pm_shape_count(shape); i += 5) {
        v[i + 2] = 0.15f + 0.25f * v[i + 2];
        v[i + 3] = i % 3 ? 0.15f + 0.25f * v[i + 3] : v[i + 2];
        v[i + 4] = 3 * v[i + 4] - 1.5f;
    }
}

#endif
