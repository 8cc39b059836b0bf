/* Rows that convert pixel values 0..255 to the input's values. Only preprocessings have them, at
 * the end of their lists. */
#include <math.h>

#include "data/augment.h"

void pm_standardise(float *x, size_t values)
{
    double sum = 0, squares = 0;

    for (size_t i = 0; i < values; i++) {
        sum += x[i];
        squares += (double)x[i] * x[i];
    }
    const double n = (double)values, mean = sum / n;
    const double deviation = sqrt(fmax(squares / n - mean * mean, 0));
    const float scale = (float)(1 / fmax(deviation, 1 / sqrt(n)));
    for (size_t i = 0; i < values; i++)
        x[i] = (x[i] - (float)mean) * scale;
}

int pm_normal_half(float half, const char *fit, const char *interpolation, struct pm_normal *out)
{
    *out = (struct pm_normal){ .fit = fit, .interpolation = interpolation };
    for (size_t c = 0; c < PM_COUNT(out->mean); c++)
        out->mean[c] = out->std[c] = half;
    return PM_OK;
}

static void standardise(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    (void)cfg, (void)d;
    pm_standardise(x->v, x->count * (size_t)x->channels);
}

const struct pm_augmentation pm_row_standardise = {
    .name = "standardise",
    .carries = PM_CARRIES_ALL,
    .values = standardise,
};

static void unit(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const size_t values = x->white == 1 ? 0 : x->count * (size_t)x->channels;
    float *v = x->v;

    (void)cfg, (void)d;
    for (size_t i = 0; i < values; i++)
        v[i] *= 1.0f / 255;
    x->white = 1;
}

const struct pm_augmentation pm_row_unit = { .name = "unit",
                                             .carries = PM_CARRIES_ALL,
                                             .values = unit };

/* For pictures of alternating channels: twelve values at a time hold four pixels of three
 * channels. */
static void linear(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const struct linear_cfg *c = cfg;
    const size_t values = x->count * (size_t)x->channels, whole = values / 12 * 12;
    const float factor = c->factor;
    float *v = x->v, add[12];

    (void)d;
    for (int i = 0; i < 12; i++)
        add[i] = c->add[i % x->channels];
    for (size_t i = 0; i < whole; i += 12)
        for (int k = 0; k < 12; k++)
            v[i + (size_t)k] = v[i + (size_t)k] * factor + add[k];
    for (size_t i = whole; i < values; i++)
        v[i] = v[i] * factor + add[i - whole];
}

const struct pm_augmentation pm_augmentation_linear = {
    .name = "linear",
    .carries = PM_CARRIES_ALL,
    .values = linear,
};

static void deviations(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)
{
    const struct deviations_cfg *c = cfg;
    const int channels = x->channels;

    (void)d;
    for (size_t i = 0; i < x->count; i++)
        for (int k = 0; k < channels; k++) {
            float *v = &x->v[i * (size_t)channels + (size_t)k];
            *v = (*v / 255 - c->mean[k]) / c->std[k];
        }
}

const struct pm_augmentation pm_augmentation_deviations = {
    .name = "deviations",
    .carries = PM_CARRIES_ALL,
    .values = deviations,
};

const struct pm_augmentation pm_row_grey = { .name = "grey", .carries = PM_CARRIES_ALL };

float pm_luma(const float rgb[3])
{
    return 0.2989f * rgb[0] + 0.5870f * rgb[1] + 0.1140f * rgb[2];
}
