/* summary_values: histograms and pictures for TensorBoard.
 *
 * Bucket limits grow by a factor of 1.1, so a sixteenth of an octave holds at most one limit. A
 * table indexed by the exponent and the first four mantissa bits leaves one or two comparisons per
 * value. */
#include <pumice/formats.h>

#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

/* ---- histograms ------------------------------------------------------------------------- */

enum {
    POSITIVE = 775,        /* limits above zero */
    ZERO = POSITIVE,       /* index of the limit 0 */
    CELL_SHIFT = 23 - 4,   /* of a float's bits */
    CELLS = 1 << (31 - CELL_SHIFT),
};

static double limits[PM_HISTOGRAM_BUCKETS]; /* ascending */
static uint16_t first_in_cell[CELLS];       /* the first positive one above its start */
static pthread_once_t limits_once = PTHREAD_ONCE_INIT;

static void fill_limits(void)
{
    double limit = 1e-12;
    int n = 0;

    for (; limit < 1e20; limit *= 1.1, n++)
        limits[ZERO + 1 + n] = limit;
    limits[ZERO + 1 + n] = DBL_MAX;
    for (int i = 0; i < POSITIVE; i++)
        limits[ZERO - 1 - i] = -limits[ZERO + 1 + i];
    for (uint32_t cell = 0, k = 0; cell < CELLS; cell++) {
        uint32_t bits = cell << CELL_SHIFT;
        float start;

        memcpy(&start, &bits, sizeof start);
        while (k < POSITIVE - 1 && isfinite(start) && limits[ZERO + 1 + k] <= (double)start)
            k++;
        first_in_cell[cell] = (uint16_t)k;
    }
}

double pm_histogram_limit(int bucket)
{
    pthread_once(&limits_once, fill_limits);
    return limits[bucket];
}

void pm_histogram_start(struct pm_histogram *h)
{
    *h = (struct pm_histogram){ .min = DBL_MAX, .max = -DBL_MAX };
}

/* The first bucket whose limit is greater than the value. */
static int bucket_of(float v)
{
    const double *above = limits + ZERO + 1;
    double a = fabs((double)v);
    uint32_t bits;
    int k;

    memcpy(&bits, &v, sizeof bits);
    k = first_in_cell[(bits & 0x7fffffffu) >> CELL_SHIFT];
    while (above[k] <= a)
        k++;
    if (v >= 0) /* -0 too */
        return ZERO + 1 + k;
    while (k > 0 && above[k - 1] >= a) /* the mirror: the largest limit below the magnitude */
        k--;
    return ZERO - k;
}

int pm_histogram_add(struct pm_histogram *h, const float *v, size_t count)
{
    pthread_once(&limits_once, fill_limits);
    for (size_t i = 0; i < count; i++) {
        double x = v[i];

        if (!isfinite(v[i]))
            return pm_fail(PM_EDATA, "value %zu of %zu of a histogram is %g; only finite ones can "
                           "be counted", i, count, x);
        h->bucket[bucket_of(v[i])]++;
        h->min = x < h->min ? x : h->min;
        h->max = x > h->max ? x : h->max;
        h->sum += x;
        h->sum_squares += x * x;
        h->num++;
    }
    return PM_OK;
}

/* ---- pictures --------------------------------------------------------------------------- */

static bool is_finite_pixel(const float *v, int channels)
{
    for (int c = 0; c < channels; c++)
        if (!isfinite(v[c]))
            return false;
    return true;
}

void pm_picture_bytes(const float *v, int height, int width, int channels, uint8_t *out)
{
    static const uint8_t bad[4] = { 255, 0, 0, 255 };
    const size_t pixels = (size_t)height * (size_t)width, depth = (size_t)channels;
    float min = INFINITY, max = -INFINITY, scale, offset = 0;

    for (size_t i = 0; i < pixels; i++)
        if (is_finite_pixel(v + i * depth, channels))
            for (size_t c = 0; c < depth; c++) {
                min = fminf(min, v[i * depth + c]);
                max = fmaxf(max, v[i * depth + c]);
            }
    if (min < 0) {
        max = fmaxf(fabsf(min), fabsf(max));
        scale = max < 1e-6f ? 0 : 127 / max;
        offset = 128;
    } else {
        scale = max < 1e-6f ? 0 : 255 / max;
    }
    for (size_t i = 0; i < pixels; i++) {
        const bool finite = is_finite_pixel(v + i * depth, channels);
        for (size_t c = 0; c < depth; c++)
            out[i * depth + c] = finite ? (uint8_t)(v[i * depth + c] * scale + offset) : bad[c & 3];
    }
}
