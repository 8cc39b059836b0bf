/* lenet: central crop or zero padding to the size, then (x - 128) / 128. Training and evaluation
 * are the same. No draws. */
#include "data/augment.h"

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
{
    (void)cfg, (void)r, (void)s;
    *out = (struct pm_draws){ 0 };
}

static int list(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    static const float zero;

    (void)cfg, (void)r;
    PM_ADD(out, crop_or_pad, .fill = { 1, &zero });
    return PM_OK;
}

static void values(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    (void)cfg, (void)r;
    PM_ADD(out, linear, .factor = 1.0f / 128, .add = { -1, -1, -1 });
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
    .list = list,
    .values = values,
    .normal = normal,
};
