/* torch: the preprocessing of torchvision's reference scripts. Evaluation: the smaller side is
 * resized to resize_side keeping the aspect ratio, then central crop. Training: a box of random
 * area and aspect, resized to the input, flip. Then (x / 255 - mean) / std, per channel.
 * resize_side 0 is the input's side / 0.875: 256 for 224, 342 for 299.
 *
 * Resizing is Pillow's (resize.c). Draws: box, flip. */
#include <math.h>

#include "data/augment.h"

struct torch_cfg {
    int resize_side;
    float area_min, area_max, aspect_min, aspect_max;
    struct pm_floats mean, std;
};

static const struct pm_opt opts[] = {
    PM_INT(torch_cfg, resize_side, 0, 0, 16384,
           "length of the smaller side after resizing, in evaluation; 0 = input / 0.875"),
    PM_FLOAT(torch_cfg, area_min, 0.08, 1e-6, 1,
             "smallest area of the box, as a share of the picture's"),
    PM_FLOAT(torch_cfg, area_max, 1, 1e-6, 1,
             "largest area of the box, as a share of the picture's"),
    PM_FLOAT(torch_cfg, aspect_min, 0.75, 0.01, 100, "smallest width / height of the box"),
    PM_FLOAT(torch_cfg, aspect_max, 1.3333334, 0.01, 100, "largest width / height of the box"),
    PM_FLOATS(torch_cfg, mean, "[0.485, 0.456, 0.406]", -255, 255,
              "subtracted from each channel of 0..1; one number stands for all"),
    PM_FLOATS(torch_cfg, std, "[0.229, 0.224, 0.225]", 1e-6, 255,
              "each channel is then divided by it; one number stands for all"),
    { 0 },
};

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
{
    const struct torch_cfg *c = cfg;
    const struct pm_area_rule rule = { c->area_min, c->area_max, c->aspect_min, c->aspect_max };

    *out = (struct pm_draws){ .flip = pm_rng_uniform(r) < 0.5 };
    pm_sample_area(&rule, r, s, out->box);
}

/* ---- the list ---------------------------------------------------------------------------- */

static int list_eval(const struct torch_cfg *c, const struct pm_request *r,
                     struct pm_augment_rows *out)
{
    const struct pm_target *t = r->target;
    const int larger = t->height > t->width ? t->height : t->width;
    const int side = c->resize_side ? c->resize_side : (int)(larger / 0.875 + 0.5);
    const bool tall = r->image_height > r->image_width;
    const double longer = tall ? (double)side * r->image_height / r->image_width
                               : (double)side * r->image_width / r->image_height;
    const int rows = tall ? (int)longer : side, cols = tall ? side : (int)longer;

    if (rows < t->height || cols < t->width)
        return pm_fail(PM_EDATA,
                       "%s: an image of %d x %d resized to %d x %d is smaller than the input "
                       "of %d x %d: set resize_side to at least %d",
                       t->where, r->image_height, r->image_width, rows, cols, t->height, t->width,
                       larger);
    PM_ADD(out, resized, .height = rows, .width = cols, .method = PM_RESIZE_ANTIALIAS);
    PM_ADD(out, window, .y = (int)rint((rows - t->height) / 2.0),
            .x = (int)rint((cols - t->width) / 2.0), .height = t->height, .width = t->width);
    return PM_OK;
}

static int list(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    if (!r->train)
        return list_eval(cfg, r, out);
    pm_augment_add(out, &pm_augmentation_random_box_crop, NULL, 0);
    PM_ADD(out, resize, .method = PM_RESIZE_ANTIALIAS);
    PM_ADD(out, random_flip, .probability = 0.5);
    return PM_OK;
}

static int check_lists(const struct torch_cfg *c, int channels)
{
    const struct pm_floats *lists[] = { &c->mean, &c->std };

    for (int i = 0; i < 2; i++)
        if (lists[i]->count != 1 && lists[i]->count != channels)
            return pm_fail(PM_ECONFIG,
                           "input.%s: %d numbers for images of %d channels: give one, or "
                           "one for each",
                           i ? "std" : "mean", lists[i]->count, channels);
    return PM_OK;
}

static void values(const void *cfg, const struct pm_request *r, struct pm_augment_rows *out)
{
    const struct torch_cfg *c = cfg;
    struct deviations_cfg d;

    for (int k = 0; k < 3; k++) {
        d.mean[k] = c->mean.v[c->mean.count == r->target->channels ? k % c->mean.count : 0];
        d.std[k] = c->std.v[c->std.count == r->target->channels ? k % c->std.count : 0];
    }
    pm_augment_add(out, &pm_augmentation_deviations, &d, sizeof d);
}

static int normal(const void *cfg, int channels, struct pm_normal *out)
{
    const struct torch_cfg *c = cfg;
    int err = PM_OK;

    PM_TRY(check_lists(c, channels));
    *out = (struct pm_normal){
        .fit =
            "the smaller side resized to resize_side (0: the size / 0.875), then the middle of the "
            "size cut out",
        .interpolation = "bilinear, antialiased",
    };
    for (int k = 0; k < channels; k++) {
        out->mean[k] = 255 * c->mean.v[c->mean.count == 1 ? 0 : k];
        out->std[k] = 255 * c->std.v[c->std.count == 1 ? 0 : k];
    }
out:
    return err;
}

const struct pm_preprocessing pm_preprocessing_torch = {
    .name = "torch",
    .help = "torchvision's: random box or smaller side and crop, flip, mean and deviation",
    .channels = 3,
    .opts = opts,
    .cfg_size = sizeof(struct torch_cfg),
    .draw = draw,
    .list = list,
    .values = values,
    .normal = normal,
};
