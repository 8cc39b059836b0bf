/* lenet: centred crop or zero padding to the size, then (x - 128) / 128. Train and eval are the
 * same, no draw is read. */
#include "data/preprocess.h"

static void draw(const void *cfg, struct pm_rng *r, const struct pm_sight *s, struct pm_draws *out)
{
    (void)cfg, (void)r, (void)s;
    *out = (struct pm_draws){ 0 };
}

static int apply(const void *cfg, const struct pm_image8 *in, bool train, const struct pm_draws *d,
                 int height, int width, int channels, float *out, const char *where)
{
    const size_t count = (size_t)height * (size_t)width, values = count * (size_t)channels;
    float *work = pm_work(in, channels, count, out);

    (void)cfg, (void)train, (void)d, (void)where;
    pm_crop_or_pad(pm_view8_of(in), height, width, work);
    pm_grey_settle(work, count, out);
    for (size_t i = 0; i < values; i++)
        out[i] = (out[i] - 128) / 128;
    return PM_OK;
}

static int normal(const void *cfg, int channels, struct pm_normal *out)
{
    (void)cfg, (void)channels;
    return pm_normal_half(128, "the middle, cut or padded with zeros to the size", "none", out);
}

const struct pm_preprocessing pm_preprocessing_lenet = {
    .name = "lenet",
    .help = "crop or pad to the size, values to -1..1",
    .draw = draw,
    .apply = apply,
    .normal = normal,
};
