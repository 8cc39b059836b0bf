/* Runs a named preprocessing with given random numbers on a picture or on a map. */
#ifndef PUMICE_TESTS_PLACING_H
#define PUMICE_TESTS_PLACING_H

#include <pumice/sample.h>

static inline int place_size(const struct pm_preprocessing *p, const void *cfg, int image_height,
                             int image_width, bool train, const struct pm_draws *d, int height,
                             int width, const char *where, struct pm_placed *out)
{
    const struct pm_image8 im = { image_height, image_width, 3, NULL };
    const struct pm_occasion o = {
        .height = height, .width = width, .channels = 3, .train = train, .where = where
    };

    return pm_place_with(p, cfg, train ? d : NULL, &im, &o, out);
}

static inline int place_picture(const struct pm_preprocessing *p, const void *cfg,
                                const struct pm_image8 *im, bool train, const struct pm_draws *d,
                                int height, int width, int channels, float *out, const char *where)
{
    const struct pm_occasion o = {
        .height = height, .width = width, .channels = channels, .train = train, .where = where
    };
    struct pm_placed placed;
    const int err = pm_place_with(p, cfg, train ? d : NULL, im, &o, &placed);

    if (err == PM_OK)
        pm_placed_picture(&placed, im, out);
    return err;
}

/* fill: the value of padding. */
static inline int place_map(const struct pm_preprocessing *p, const void *cfg,
                            const struct pm_label *map, const struct pm_image8 *im, bool train,
                            const struct pm_draws *d, int height, int width, int32_t fill,
                            int32_t *out, const char *where)
{
    struct pm_placed placed;
    const int err =
        place_size(p, cfg, im->height, im->width, train, d, height, width, where, &placed);

    return err < 0 ? err : pm_placed_map(&placed, map, fill, out);
}

#endif
