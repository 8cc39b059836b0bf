/* rotated_overlap: see rotated_overlap.h. This file is compiled without fused multiply-add. */
#include "layers/rotated_overlap.h"

#include <math.h>
#include <string.h>

#include "base/vector.h"

#define PM_STRUCT(name) struct PM_OF(name)
#define PM_FUNCTION PM_INLINE
#define PM_EXACT

/* ---- doubles -------------------------------------------------------------------------------- */

#define PM_REAL double
#define PM_OF(name) name##_double
#define PM_SPLITTER 134217729.0
PM_INLINE double rotated_inverse_guess_double(double v)
{
    return 1 / v;
}
#include "lib/rotated_clip.h"

static struct rotated_double prepared(const double b[PM_ROTATED_BOX])
{
    return (struct rotated_double){ .y = b[0], .x = b[1], .h = b[2] > 0 ? b[2] / 2 : 0,
                                    .w = b[3] > 0 ? b[3] / 2 : 0, .c = cos(b[4]),
                                    .s = sin(b[4]) };
}

double pm_rotated_intersection(const double a[PM_ROTATED_BOX], const double b[PM_ROTATED_BOX],
                               double *joined)
{
    const struct rotated_double one = prepared(a), two = prepared(b);
    const struct shared_area_double y = rotated_overlap_double(one, two);

    if (joined)
        *joined = y.joined;
    return y.inner;
}

double pm_rotated_overlap(const double a[PM_ROTATED_BOX], const double b[PM_ROTATED_BOX])
{
    double joined, inner = pm_rotated_intersection(a, b, &joined);

    return inner > 0 ? inner / joined : 0;
}

#undef PM_REAL
#undef PM_OF
#undef PM_SPLITTER

/* ---- floats --------------------------------------------------------------------------------- */

#define PM_REAL float
#define PM_OF(name) name
#define PM_SPLITTER 4097.0f
#define floor floorf
PM_INLINE float rotated_inverse_guess(float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof bits);
    bits = 0x7ef311c7u - bits;
    memcpy(&v, &bits, sizeof v);
    return v;
}
#include "lib/rotated_clip.h"
#include "lib/rotated_prepare.h"

void pm_rotated_prepare(const float b[PM_ROTATED_BOX], struct pm_rotated_one *out)
{
    const struct rotated r = rotated_prepare(b[0], b[1], b[2], b[3], b[4]);

    *out = (struct pm_rotated_one){ { r.y, r.x, r.h, r.w, r.c, r.c_low, r.s, r.s_low } };
}

bool pm_rotated_is_inside(const float b[PM_ROTATED_BOX], float width, float border)
{
    return rotated_inside(rotated_prepare(b[0], b[1], b[2], b[3], b[4]), width, border);
}

PM_CLONES static void prepare_batch(float box[restrict][PM_ROTATED_BATCH],
                                    float v[restrict][PM_ROTATED_BATCH])
{
    PM_SIMD
    for (int i = 0; i < PM_ROTATED_BATCH; i++) {
        const struct rotated r =
            rotated_prepare(box[0][i], box[1][i], box[2][i], box[3][i], box[4][i]);

        v[0][i] = r.y, v[1][i] = r.x, v[2][i] = r.h, v[3][i] = r.w;
        v[4][i] = r.c, v[5][i] = r.c_low, v[6][i] = r.s, v[7][i] = r.s_low;
    }
}

void pm_rotated_prepare_all(const float *boxes, size_t count, struct pm_rotated_one *out)
{
    float box[PM_ROTATED_BOX][PM_ROTATED_BATCH] = { { 0 } };
    float v[PM_ROTATED_MEMBERS][PM_ROTATED_BATCH];

    for (size_t first = 0; first < count; first += PM_ROTATED_BATCH) {
        const size_t left = count - first, n = left < PM_ROTATED_BATCH ? left : PM_ROTATED_BATCH;

        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < PM_ROTATED_BOX; k++)
                box[k][i] = boxes[(first + i) * PM_ROTATED_BOX + (size_t)k];
        prepare_batch(box, v);
        for (size_t i = 0; i < n; i++)
            for (int k = 0; k < PM_ROTATED_MEMBERS; k++)
                out[first + i].v[k] = v[k][i];
    }
}

PM_INLINE struct rotated opened(const float v[PM_ROTATED_MEMBERS])
{
    return (struct rotated){ v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7] };
}

float pm_rotated_area_of(const struct pm_rotated_one *box)
{
    return rotated_area(opened(box->v));
}

float pm_rotated_reach_of(const struct pm_rotated_one *box)
{
    return rotated_reach(opened(box->v));
}

bool pm_rotated_are_apart(const struct pm_rotated_one *a, const struct pm_rotated_one *b)
{
    return rotated_apart(opened(a->v), opened(b->v));
}

/* flag[i] becomes 1 where box i may overlap the box by more than the limit. Returns the number of
 * these. */
PM_INLINE int flag_batch(const struct rotated *one, float reach, float area, float limit,
                         struct pm_rotated_circles c, int *restrict flag)
{
    int count = 0;

    for (int i = 0; i < PM_ROTATED_BATCH; i++) {
        flag[i] = overlap_below(one->y - c.y[i], one->x - c.x[i], reach, c.reach[i], area,
                                c.area[i], limit)
                      ? 0
                      : 1;
        count += flag[i];
    }
    return count;
}

PM_CLONES int pm_rotated_near(const struct pm_rotated_one *a, struct pm_rotated_circles circles,
                              int count, float limit, int *near)
{
    const struct rotated one = opened(a->v);
    const float reach = rotated_reach(one), area = rotated_area(one);
    int found = 0, flag[PM_ROTATED_BATCH];

    for (int first = 0; first < count; first += PM_ROTATED_BATCH) {
        const struct pm_rotated_circles from = { circles.y + first, circles.x + first,
                                                 circles.reach + first, circles.area + first };

        if (flag_batch(&one, reach, area, limit, from, flag) == 0)
            continue;
        for (int i = 0; i < PM_ROTATED_BATCH && first + i < count; i++)
            if (flag[i])
                near[found++] = first + i;
    }
    return found;
}

/* frame, other: pairs of boxes by member. */
PM_CLONES static void overlap_batch(float frame[restrict][PM_ROTATED_BATCH],
                                    float other[restrict][PM_ROTATED_BATCH],
                                    float *restrict inner, float *restrict joined)
{
    PM_SIMD
    for (int i = 0; i < PM_ROTATED_BATCH; i++) {
        const struct rotated a = { frame[0][i], frame[1][i], frame[2][i], frame[3][i],
                                   frame[4][i], frame[5][i], frame[6][i], frame[7][i] };
        const struct rotated b = { other[0][i], other[1][i], other[2][i], other[3][i],
                                   other[4][i], other[5][i], other[6][i], other[7][i] };
        const struct shared_area y = framed_overlap(a, b);

        inner[i] = y.inner;
        joined[i] = y.joined;
    }
}

void pm_rotated_overlaps(const struct pm_rotated_one *a, const struct pm_rotated_one *const *b,
                         int count, float inner[PM_ROTATED_BATCH], float joined[PM_ROTATED_BATCH])
{
    float frame[PM_ROTATED_MEMBERS][PM_ROTATED_BATCH] = { { 0 } };
    float other[PM_ROTATED_MEMBERS][PM_ROTATED_BATCH] = { { 0 } };
    const struct rotated one = opened(a->v);

    for (int i = 0; i < count; i++) {
        const bool swaps = rotated_swaps(one, opened(b[i]->v));

        for (int k = 0; k < PM_ROTATED_MEMBERS; k++) {
            frame[k][i] = swaps ? b[i]->v[k] : a->v[k];
            other[k][i] = swaps ? a->v[k] : b[i]->v[k];
        }
    }
    overlap_batch(frame, other, inner, joined);
}
