/* Rows that change objects and no pixel: random_jitter_boxes, drop_label_probabilistically,
 * remap_labels, convert_class_logits_to_softmax, after TensorFlow's Object Detection API, and
 * min_visible. Numbers per object come from rng, in the order of the objects. Draws: rng. */
#include <math.h>

#include "data/augment.h"

static void draw_later(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                       struct pm_draws *out)
{
    (void)cfg, (void)r, (void)s, (void)out;
}

/* ---- random_jitter_boxes ----------------------------------------------------------------- */

enum jitter { DEFAULT, EXPAND, SHRINK, EXPAND_SYMMETRIC, SHRINK_SYMMETRIC, EXPAND_SYMMETRIC_XY,
              SHRINK_SYMMETRIC_XY };

struct jitter_cfg {
    double ratio;
    int jitter_mode;
};

static const struct pm_opt jitter_opts[] = {
    PM_DOUBLE(jitter_cfg, ratio, 0.05, 0, 1, "largest change of a box's height and width"),
    PM_ENUM(jitter_cfg, jitter_mode, DEFAULT,
            "default|expand|shrink|expand_symmetric|shrink_symmetric|expand_symmetric_xy|"
            "shrink_symmetric_xy",
            "default: each side moves in or out by itself; symmetric: opposite sides move by the "
            "same; xy: all four"),
    { 0 },
};

static double change(const struct jitter_cfg *c, struct pm_rng *r)
{
    const double u = pm_rng_uniform(r);

    if (c->jitter_mode == DEFAULT)
        return (2 * u - 1) * c->ratio;
    return (c->jitter_mode - EXPAND) % 2 == 0 ? u * c->ratio : (u - 1) * c->ratio;
}

/* Limits the growth of a side so that both ends stay in 0..1. */
static double held(double growth, double low, double high)
{
    const double side = high - low, middle = (low + high) / 2;
    const double most = 2 * fmin(middle, 1 - middle) / side - 1;

    return growth > most ? fmax(most, 0) : growth;
}

static void jitter_box(const struct jitter_cfg *c, struct pm_rng *r, float box[4])
{
    double by[4]; /* of the sides, in the order of the box */

    for (int k = 0; k < 4; k++)
        by[k] = change(c, r);
    if (c->jitter_mode >= EXPAND_SYMMETRIC) {
        double growth[2];

        for (int k = 0; k < 2; k++)
            growth[k] = held(by[c->jitter_mode >= EXPAND_SYMMETRIC_XY ? 0 : k], (double)box[k],
                             fmax((double)box[k + 2], (double)box[k] + 1e-6));
        if (c->jitter_mode >= EXPAND_SYMMETRIC_XY)
            growth[0] = growth[1] = fmin(growth[0], growth[1]);
        for (int k = 0; k < 4; k++)
            by[k] = growth[k % 2];
    }
    for (int k = 0; k < 2; k++) {
        const double middle = ((double)box[k] + (double)box[k + 2]) / 2;
        const double half = fmax((double)box[k + 2] - (double)box[k], 1e-6) / 2;

        box[k] = (float)fmin(fmax(middle - half * (1 + by[k]), 0), 1);
        box[k + 2] = (float)fmin(fmax(middle + half * (1 + by[k + 2]), 0), 1);
    }
}

static void jitter(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    struct pm_rng r = d->rng;

    for (size_t i = 0; i < o->count; i++)
        jitter_box(cfg, &r, pm_scene_settle(o, i)->box);
}

const struct pm_augmentation pm_augmentation_random_jitter_boxes = {
    .name = "random_jitter_boxes",
    .help = "moves the sides of boxes by small random shares of their size",
    .opts = jitter_opts,
    .cfg_size = sizeof(struct jitter_cfg),
    .carries = PM_CARRIES_ALL & ~PM_CARRIES_ROTATED,
    .draw = draw_later,
    .objects = jitter,
};

/* ---- drop_label_probabilistically -------------------------------------------------------- */

struct drop_cfg {
    int label;
    double drop_probability;
};

static const struct pm_opt drop_opts[] = {
    PM_INT(drop_cfg, label, 0, 0, 1 << 20, "class number of the label map"),
    PM_DOUBLE(drop_cfg, drop_probability, 1, 0, 1, "probability that an object is dropped"),
    { 0 },
};

static int check_drop(const void *cfg, const char *where)
{
    if (((const struct drop_cfg *)cfg)->label > 0)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s.label: not set; give the class number, 1 or more, of the label "
                   "map", where);
}

static void drop(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    const struct drop_cfg *c = cfg;
    struct pm_rng r = d->rng;

    for (size_t i = 0; i < o->count; i++) {
        const bool dropped = pm_rng_uniform(&r) < c->drop_probability;

        o->list[i].dropped = dropped && o->list[i].label == c->label;
    }
}

const struct pm_augmentation pm_augmentation_drop_label_probabilistically = {
    .name = "drop_label_probabilistically",
    .help = "drops objects of one class at random; their pixels stay",
    .opts = drop_opts,
    .cfg_size = sizeof(struct drop_cfg),
    .carries = PM_CARRIES_ALL,
    .check = check_drop,
    .draw = draw_later,
    .objects = drop,
};

/* ---- remap_labels ------------------------------------------------------------------------ */

struct remap_cfg {
    struct pm_ints original_labels;
    int new_label;
};

static const struct pm_opt remap_opts[] = {
    PM_INTS(remap_cfg, original_labels, NULL, 1, 1 << 20, "class numbers that are replaced"),
    PM_INT(remap_cfg, new_label, 0, 0, 1 << 20, "class number that replaces them"),
    { 0 },
};

static int check_remap(const void *cfg, const char *where)
{
    const struct remap_cfg *c = cfg;

    if (c->new_label > 0 && c->original_labels.count > 0)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s: original_labels and new_label are needed: class numbers, 1 or "
                   "more, of the label map", where);
}

static void remap(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    const struct remap_cfg *c = cfg;

    (void)d;
    for (size_t i = 0; i < o->count; i++)
        for (int k = 0; k < c->original_labels.count; k++)
            if (o->list[i].label == c->original_labels.v[k]) {
                o->list[i].label = c->new_label;
                break;
            }
}

const struct pm_augmentation pm_augmentation_remap_labels = {
    .name = "remap_labels",
    .help = "gives objects of some classes the number of another one",
    .opts = remap_opts,
    .cfg_size = sizeof(struct remap_cfg),
    .carries = PM_CARRIES_ALL,
    .check = check_remap,
    .objects = remap,
};

/* ---- convert_class_logits_to_softmax ----------------------------------------------------- */

struct softmax_cfg {
    double temperature;
};

static const struct pm_opt softmax_opts[] = {
    PM_DOUBLE(softmax_cfg, temperature, 1, 1e-6, 1e6,
              "scores are divided by this first; a large one makes them more equal"),
    { 0 },
};

static void softmax(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    const double temperature = ((const struct softmax_cfg *)cfg)->temperature;
    const int n = o->sample->score_count;

    (void)d;
    for (size_t i = 0; i < o->count; i++) {
        float *x = o->list[i].scores;
        double most = -INFINITY, sum = 0;

        for (int k = 0; x && k < n; k++)
            most = fmax(most, (double)x[k]);
        for (int k = 0; x && k < n; k++)
            sum += exp(((double)x[k] - most) / temperature);
        for (int k = 0; x && k < n; k++)
            x[k] = (float)(exp(((double)x[k] - most) / temperature) / sum);
    }
}

const struct pm_augmentation pm_augmentation_convert_class_logits_to_softmax = {
    .name = "convert_class_logits_to_softmax",
    .help = "turns the logits of soft labels into probabilities",
    .opts = softmax_opts,
    .cfg_size = sizeof(struct softmax_cfg),
    .carries = PM_CARRIES_ALL,
    .objects = softmax,
};

/* ---- min_visible ------------------------------------------------------------------------- */

struct visible_cfg {
    double area;
};

static const struct pm_opt visible_opts[] = {
    PM_DOUBLE(visible_cfg, area, 0.3, 0, 1,
              "smallest visible share of an object's area; objects with less are dropped"),
    { 0 },
};

/* The share counts all rows before: each multiplies what it left. */
static void visible(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    const double area = ((const struct visible_cfg *)cfg)->area;

    (void)d;
    pm_scene_retain(o, 0, true);
    for (size_t i = 0; i < o->count; i++)
        o->list[i].dropped |= !((double)o->list[i].visible >= area);
}

const struct pm_augmentation pm_augmentation_min_visible = {
    .name = "min_visible",
    .help = "limits boxes to the picture, and drops an object if the entries before it have cut "
            "off too much of its area",
    .opts = visible_opts,
    .cfg_size = sizeof(struct visible_cfg),
    .carries = PM_CARRIES_ALL,
    .objects = visible,
};
