/* random_rotate: turns the picture by a small random angle, or by quarters, clockwise. The canvas
 * grows so that the whole picture stays on it; with grow=false it keeps its size, and corners are
 * cut off. With degrees a and radians t of it, pixel x, y of a canvas with the centre xc, yc is
 * pixel xc + (x - xc) cos t + (y - yc) sin t, yc - (x - xc) sin t + (y - yc) cos t before the turn,
 * bilinear. Rotated boxes turn with the picture exactly. An upright box becomes the one around its
 * turned corners, which is larger than the object. Draws: flip, which (quarters), more[0] (where in
 * the range the angle is). */
#include <math.h>

#include "base/angles.h"
#include "data/augment.h"

struct rotate_cfg {
    double probability, min_degrees, max_degrees;
    bool quarters, grow;
    struct pm_floats fill;
};

static const struct pm_opt opts[] = {
    PM_DOUBLE(rotate_cfg, probability, 0.5, 0, 1, "share of the pictures that are turned"),
    PM_DOUBLE(rotate_cfg, min_degrees, -10, -180, 180,
              "smallest angle; positive angles turn clockwise"),
    PM_DOUBLE(rotate_cfg, max_degrees, 10, -180, 180, "largest angle"),
    PM_BOOL(rotate_cfg, quarters, false,
            "turn by one, two or three quarters instead, all equally likely"),
    PM_BOOL(rotate_cfg, grow, true,
            "enlarge the canvas so that no part of the picture is lost; false = keep its size"),
    PM_FLOATS(rotate_cfg, fill, NULL, 0, 255,
              "pixel around the turned picture: one number or three; null = as the preprocessing "
              "pads"),
    { 0 },
};

static int check(const void *cfg, const char *where)
{
    const struct rotate_cfg *c = cfg;

    if (c->min_degrees > c->max_degrees)
        return pm_fail(PM_ECONFIG, "%s.min_degrees: %g is above %s.max_degrees, %g", where,
                       c->min_degrees, where, c->max_degrees);
    return pm_check_fill(&c->fill, where);
}

static void draw(const void *cfg, struct pm_rng *r, const struct pm_scene *s, struct pm_draws *out)
{
    (void)s;
    out->flip = pm_rng_uniform(r) < ((const struct rotate_cfg *)cfg)->probability;
    out->which = (int)pm_rng_int(r, 1, 3);
    out->more[0] = pm_rng_uniform(r);
}

/* Pixels by which a side grows on both ends, for a turned extent. */
static int growth(double extent, int side)
{
    const double more = (extent - side) / 2;

    return more > 1e-9 * side ? (int)ceil(more - 1e-9 * side) : 0;
}

static void turn(struct pm_geometry *g, double radians, bool grow, const float fill[3])
{
    const double c = cos(radians), s = sin(radians);
    int height = pm_geometry_height(g), width = pm_geometry_width(g);

    if (grow) {
        const int y = growth(fabs(height * c) + fabs(width * s), height);
        const int x = growth(fabs(width * c) + fabs(height * s), width);

        pm_geometry_window(g, -y, -x, height + 2 * y, width + 2 * x, fill);
        height += 2 * y, width += 2 * x;
    }
    const double yc = (height - 1) / 2.0, xc = (width - 1) / 2.0;
    const float warp[6] = { (float)c,  (float)s, (float)(xc - c * xc - s * yc),
                            (float)-s, (float)c, (float)(yc + s * xc - c * yc) };

    pm_geometry_warp_smooth(g, warp, fill);
}

static int place(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                 struct pm_geometry *g)
{
    const struct rotate_cfg *c = cfg;
    const double degrees = c->min_degrees + (c->max_degrees - c->min_degrees) * d->more[0];
    float fill[3];

    pm_fill_pixel(&c->fill, t, fill);
    if (!d->flip)
        return PM_OK;
    for (int k = d->which; c->quarters && k < 4; k++) /* a move turns counter-clockwise */
        pm_geometry_turn(g);
    if (!c->quarters && degrees != 0)
        turn(g, pm_radians(degrees), c->grow, fill);
    return PM_OK;
}

const struct pm_augmentation pm_augmentation_random_rotate = {
    .name = "random_rotate",
    .help = "turns by a small random angle or by quarters, clockwise",
    .opts = opts,
    .cfg_size = sizeof(struct rotate_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .check = check,
    .draw = draw,
    .place = place,
};
