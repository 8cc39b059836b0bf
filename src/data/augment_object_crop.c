/* Crops that see objects, after TensorFlow's Object Detection API: random_crop_image,
 * ssd_random_crop, random_crop_to_aspect_ratio, ssd_random_crop_fixed_aspect_ratio, and followed by
 * padding random_crop_pad_image, ssd_random_crop_pad, ssd_random_crop_pad_fixed_aspect_ratio.
 *
 * A crop is a random box of TensorFlow's sample_distorted_bounding_box (augment_box.c) that covers
 * min_object_covered of an object; with probability random_coef the picture is kept whole. Objects
 * with a share of less than overlap_thresh inside are dropped, the others clipped. The rows ssd_*
 * choose one of several rules, all alike likely. Draws: which, box, window. */
#include <cjson/cJSON.h>
#include <math.h>

#include "data/augment.h"
#include "data/augment_pad.h"

/* ---- rules ------------------------------------------------------------------------------- */

struct crop_rule {
    float min_object_covered, min_aspect_ratio, max_aspect_ratio, min_area, max_area;
    float overlap_thresh, random_coef;
    bool clip_boxes;
    PM_PAD_MEMBERS; /* of the rows with padding */
};

#define OPTS_OBJECT(tag, covered)                                                                  \
    PM_FLOAT(tag, min_object_covered, covered, 0, 1,                                               \
             "smallest share of an object that the crop contains")
#define OPTS_ASPECT(tag, least, most)                                                              \
    PM_FLOAT(tag, min_aspect_ratio, least, 0.01, 100, "smallest width / height of the crop"),      \
        PM_FLOAT(tag, max_aspect_ratio, most, 0.01, 100, "largest width / height of the crop")
#define OPTS_REST(tag, overlap, coef)                                                              \
    PM_FLOAT(tag, min_area, 0.1, 1e-6, 1, "smallest area of the crop, as a share of the picture"), \
        PM_FLOAT(tag, max_area, 1, 1e-6, 1,                                                        \
                 "largest area of the crop, as a share of the picture"),                           \
        PM_FLOAT(tag, overlap_thresh, overlap, 0, 1,                                               \
                 "objects with a smaller share of their area in the crop are dropped"),            \
        PM_BOOL(tag, clip_boxes, true,                                                             \
                "limit boxes to the crop; keypoints outside of it are dropped"),                   \
        PM_FLOAT(tag, random_coef, coef, 0, 1, "probability that the picture is not cropped")

static const struct pm_opt rule_opts[] = {
    OPTS_OBJECT(crop_rule, 0),
    OPTS_ASPECT(crop_rule, 0.5, 2),
    OPTS_REST(crop_rule, 0, 0.15),
    { 0 },
};
static const struct pm_opt fixed_rule_opts[] = {
    OPTS_OBJECT(crop_rule, 0),
    OPTS_REST(crop_rule, 0, 0.15),
    { 0 },
};
static const struct pm_opt pad_rule_opts[] = {
    OPTS_OBJECT(crop_rule, 0),
    OPTS_ASPECT(crop_rule, 0.5, 2),
    OPTS_REST(crop_rule, 0, 0.15),
    PM_OPTS_PAD_RATIO(crop_rule),
    PM_OPTS_PAD_COLOR(crop_rule),
    { 0 },
};

static int check_rule(const struct crop_rule *r, const char *where)
{
    if (r->min_area > r->max_area)
        return pm_fail(PM_ECONFIG, "%s.min_area: %g is above %s.max_area, %g", where,
                       (double)r->min_area, where, (double)r->max_area);
    if (r->min_aspect_ratio > r->max_aspect_ratio)
        return pm_fail(PM_ECONFIG, "%s.min_aspect_ratio: %g is above %s.max_aspect_ratio, %g",
                       where, (double)r->min_aspect_ratio, where, (double)r->max_aspect_ratio);
    return PM_CHECK_PAD(r, where);
}

static void draw_rule(const struct crop_rule *c, struct pm_rng *r, const struct pm_scene *s,
                      struct pm_draws *out)
{
    const struct pm_box_rule box = { c->min_area, c->max_area, c->min_aspect_ratio,
                                     c->max_aspect_ratio, c->min_object_covered };

    out->box[0] = out->box[1] = out->box[2] = out->box[3] = 0;
    if (c->random_coef > 0 && !(pm_rng_uniform(r) > (double)c->random_coef))
        return;
    pm_sample_box(&box, r, s, out->box);
}

static void retain(const struct crop_rule *c, const struct pm_draws *d, struct pm_scene_objects *o)
{
    if (d->box[2] > 0)
        pm_scene_retain(o, c->overlap_thresh, c->clip_boxes);
}

/* ---- random_crop_image ------------------------------------------------------------------- */

static const struct pm_opt crop_opts[] = {
    OPTS_OBJECT(crop_rule, 1),
    OPTS_ASPECT(crop_rule, 0.75, 1.33),
    OPTS_REST(crop_rule, 0.3, 0),
    { 0 },
};

static int check_crop(const void *cfg, const char *where)
{
    return check_rule(cfg, where);
}

static void draw_crop(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                      struct pm_draws *out)
{
    draw_rule(cfg, r, s, out);
}

static void retain_crop(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    retain(cfg, d, o);
}

const struct pm_augmentation pm_augmentation_random_crop_image = {
    .name = "random_crop_image",
    .help = "takes a random box that contains a share of an object; drops objects outside of it",
    .opts = crop_opts,
    .cfg_size = sizeof(struct crop_rule),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .wants_boxes = true,
    .check = check_crop,
    .draw = draw_crop,
    .place = pm_place_box,
    .objects = retain_crop,
};

/* ---- random_crop_pad_image --------------------------------------------------------------- */

static const struct pm_opt crop_pad_opts[] = {
    OPTS_OBJECT(crop_rule, 1),
    OPTS_ASPECT(crop_rule, 0.75, 1.33),
    OPTS_REST(crop_rule, 0.3, 0),
    PM_OPTS_PAD_RATIO(crop_rule),
    PM_OPTS_PAD_COLOR(crop_rule),
    { 0 },
};

/* Draws a padded size of the crop, by ratios of the whole picture. */
static void draw_padding(const struct crop_rule *c, struct pm_rng *r, const struct pm_scene *s,
                         struct pm_draws *out)
{
    const int whole[2] = { s->height, s->width };
    const int crop[2] = { out->box[2] ? out->box[2] : s->height,
                          out->box[2] ? out->box[3] : s->width };
    int least[2], most[2];

    for (int k = 0; k < 2; k++) {
        least[k] = (int)((float)whole[k] * c->min_padded_size_ratio.v[k]);
        most[k] = (int)((float)whole[k] * c->max_padded_size_ratio.v[k]);
    }
    pm_draw_padding(r, crop, least, most, out->window);
}

static void draw_crop_pad(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                          struct pm_draws *out)
{
    const struct crop_rule *c = cfg;

    draw_rule(c, r, s, out);
    draw_padding(c, r, s, out);
}

static int place_crop_padding(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                              struct pm_geometry *g)
{
    const struct crop_rule *c = cfg;

    (void)t;
    pm_place_padding(&c->pad_color, d->window, g);
    return PM_OK;
}

static const struct pm_augmentation crop_padding = {
    .name = "crop_padding",
    .carries = PM_CARRIES_ALL,
    .place = place_crop_padding,
};

const struct pm_augmentation pm_augmentation_random_crop_pad_image = {
    .name = "random_crop_pad_image",
    .help = "like random_crop_image; then pads to a random multiple of the whole picture's size",
    .opts = crop_pad_opts,
    .cfg_size = sizeof(struct crop_rule),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .wants_boxes = true,
    .check = check_crop,
    .draw = draw_crop_pad,
    .place = pm_place_box,
    .objects = retain_crop,
    .then = &crop_padding,
};

/* ---- lists of rules ---------------------------------------------------------------------- */

enum { MOST_RULES = 32 };

/* Options and rules of the rows ssd_*. A row has the members that its options name. */
struct ssd_cfg {
    const cJSON *operations;
    float aspect_ratio;
    PM_PAD_MEMBERS; /* of ssd_random_crop_pad_fixed_aspect_ratio */
    const struct crop_rule *rule; /* [rules], from operations or the table */
    int rules;
};

#define OPERATIONS                                                                               \
    PM_JSON(ssd_cfg, operations,                                                                 \
            "list of rules; each picture is cropped by one of them, chosen at random. A rule "   \
            "has the options of random_crop_image, with the defaults min_aspect_ratio 0.5, "     \
            "max_aspect_ratio 2, random_coef 0.15, min_object_covered 0 and overlap_thresh 0. "  \
            "null = the rules of the SSD paper")

static const float covered[] = { 0, 0.1f, 0.3f, 0.5f, 0.7f, 0.9f, 1 };

/* The table of the paper, from rule `first` on. */
static void usual_rules(struct ssd_cfg *c, const struct pm_opt *opts, int first,
                        struct pm_arena *a)
{
    struct crop_rule *rules = pm_arena_alloc(a, PM_COUNT(covered) * sizeof *rules);

    c->rules = (int)PM_COUNT(covered) - first;
    for (int i = 0; i < c->rules; i++) {
        rules[i] = (struct crop_rule){ .min_aspect_ratio = 0.5f, .max_aspect_ratio = 2 };
        pm_opts_defaults(opts, &rules[i], a);
        rules[i].min_object_covered = rules[i].overlap_thresh = covered[first + i];
    }
    c->rule = rules;
}

static int read_rules(struct ssd_cfg *c, const struct pm_opt *opts, int first, struct pm_arena *a,
                      const char *where)
{
    const int count = cJSON_GetArraySize(c->operations);
    struct crop_rule *rules;
    const cJSON *v;
    int err = PM_OK;

    if (!c->operations || cJSON_IsNull(c->operations)) {
        usual_rules(c, opts, first, a);
        return PM_OK;
    }
    if (!cJSON_IsArray(c->operations) || count < 1 || count > MOST_RULES)
        return pm_fail(PM_ECONFIG, "%s.operations: a list of 1 to %d objects is needed, e.g. "
                       "[ { \"min_object_covered\": 0.5 } ]", where, MOST_RULES);
    c->rule = rules = pm_arena_alloc(a, (size_t)count * sizeof *rules);
    cJSON_ArrayForEach(v, c->operations)
    {
        const char *at = pm_arena_printf(a, "%s.operations.%d", where, c->rules);

        if (!cJSON_IsObject(v))
            return pm_fail(PM_ECONFIG, "%s: an object { option: value } is needed", at);
        rules[c->rules] = (struct crop_rule){ .min_aspect_ratio = 0.5f, .max_aspect_ratio = 2 };
        PM_TRY(pm_opts_parse(opts, v, NULL, &rules[c->rules], a, at));
        PM_TRY(check_rule(&rules[c->rules++], at));
    }
out:
    return err;
}

static const struct crop_rule *chosen(const void *cfg, const struct pm_draws *d)
{
    return &((const struct ssd_cfg *)cfg)->rule[d->which];
}

static void draw_ssd(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                     struct pm_draws *out)
{
    out->which = (int)pm_rng_int(r, 0, ((const struct ssd_cfg *)cfg)->rules - 1);
    draw_rule(chosen(cfg, out), r, s, out);
}

static void retain_ssd(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    retain(chosen(cfg, d), d, o);
}

/* ---- ssd_random_crop --------------------------------------------------------------------- */

static const struct pm_opt ssd_opts[] = { OPERATIONS, { 0 } };

static int prepare_ssd(void *cfg, struct pm_arena *a, const char *where)
{
    return read_rules(cfg, rule_opts, 0, a, where);
}

const struct pm_augmentation pm_augmentation_ssd_random_crop = {
    .name = "ssd_random_crop",
    .help = "like random_crop_image, with one of several rules; the crop of the SSD paper",
    .opts = ssd_opts,
    .cfg_size = sizeof(struct ssd_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .wants_boxes = true,
    .prepare = prepare_ssd,
    .draw = draw_ssd,
    .place = pm_place_box,
    .objects = retain_ssd,
};

/* ---- ssd_random_crop_pad ----------------------------------------------------------------- */

/* The paper's table without its first rule. */
static int prepare_ssd_pad(void *cfg, struct pm_arena *a, const char *where)
{
    return read_rules(cfg, pad_rule_opts, 1, a, where);
}

static void draw_ssd_pad(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                         struct pm_draws *out)
{
    draw_ssd(cfg, r, s, out);
    draw_padding(chosen(cfg, out), r, s, out);
}

static int place_ssd_padding(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                             struct pm_geometry *g)
{
    return place_crop_padding(chosen(cfg, d), d, t, g);
}

static const struct pm_augmentation ssd_padding = {
    .name = "ssd_padding",
    .carries = PM_CARRIES_ALL,
    .place = place_ssd_padding,
};

const struct pm_augmentation pm_augmentation_ssd_random_crop_pad = {
    .name = "ssd_random_crop_pad",
    .help = "like random_crop_pad_image, with one of several rules",
    .opts = ssd_opts,
    .cfg_size = sizeof(struct ssd_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .wants_boxes = true,
    .prepare = prepare_ssd_pad,
    .draw = draw_ssd_pad,
    .place = pm_place_box,
    .objects = retain_ssd,
    .then = &ssd_padding,
};

/* ---- random_crop_to_aspect_ratio --------------------------------------------------------- */

struct aspect_cfg {
    float aspect_ratio, overlap_thresh;
    bool clip_boxes;
};

#define ASPECT_RATIO(tag) \
    PM_FLOAT(tag, aspect_ratio, 1, 0.01, 100, "width / height of the resulting picture")

static const struct pm_opt aspect_opts[] = {
    ASPECT_RATIO(aspect_cfg),
    PM_FLOAT(aspect_cfg, overlap_thresh, 0.3, 0, 1,
             "objects with a smaller share of their area in the crop are dropped"),
    PM_BOOL(aspect_cfg, clip_boxes, true,
            "limit boxes to the crop; keypoints outside of it are dropped"),
    { 0 },
};

/* The largest window of that aspect in a picture; halves round to even. */
static void draw_aspect_window(float aspect, struct pm_rng *r, int height, int width, int out[4])
{
    const float own = (float)width / (float)height;

    out[2] = own >= aspect ? height : (int)fmaxf(rintf((float)width / aspect), 1);
    out[3] = own <= aspect ? width : (int)fmaxf(rintf((float)height * aspect), 1);
    out[0] = (int)pm_rng_int(r, 0, height - out[2]);
    out[1] = (int)pm_rng_int(r, 0, width - out[3]);
}

static void draw_aspect(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                        struct pm_draws *out)
{
    draw_aspect_window(((const struct aspect_cfg *)cfg)->aspect_ratio, r, s->height, s->width,
                       out->window);
}

static int place_aspect(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                        struct pm_geometry *g)
{
    (void)cfg, (void)t;
    pm_geometry_window(g, d->window[0], d->window[1], d->window[2], d->window[3], NULL);
    return PM_OK;
}

static void retain_aspect(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    const struct aspect_cfg *c = cfg;

    (void)d;
    pm_scene_retain(o, c->overlap_thresh, c->clip_boxes);
}

const struct pm_augmentation pm_augmentation_random_crop_to_aspect_ratio = {
    .name = "random_crop_to_aspect_ratio",
    .help = "takes the largest window of the given aspect, at a random place",
    .opts = aspect_opts,
    .cfg_size = sizeof(struct aspect_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .draw = draw_aspect,
    .place = place_aspect,
    .objects = retain_aspect,
};

/* ---- the forms of fixed aspect ----------------------------------------------------------- */

static const struct pm_opt fixed_opts[] = { OPERATIONS, ASPECT_RATIO(ssd_cfg), { 0 } };
static const struct pm_opt pad_fixed_opts[] = {
    OPERATIONS,
    ASPECT_RATIO(ssd_cfg),
    PM_OPTS_PAD_RATIO(ssd_cfg),
    { 0 },
};

/* All crops have the row's aspect. */
static int prepare_fixed(void *cfg, struct pm_arena *a, const char *where)
{
    struct ssd_cfg *c = cfg;
    int err = PM_OK;

    PM_TRY(read_rules(c, fixed_rule_opts, 0, a, where));
    for (int i = 0; i < c->rules; i++) {
        struct crop_rule *rule = (struct crop_rule *)&c->rule[i];

        rule->min_aspect_ratio = rule->max_aspect_ratio = c->aspect_ratio;
    }
out:
    return err;
}

static void draw_fixed(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                       struct pm_draws *out)
{
    draw_ssd(cfg, r, s, out);
    draw_aspect_window(((const struct ssd_cfg *)cfg)->aspect_ratio, r,
                       out->box[2] ? out->box[2] : s->height,
                       out->box[2] ? out->box[3] : s->width, out->window);
}

/* The original's second crop always has these numbers. */
static void retain_fixed(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o)
{
    (void)cfg, (void)d;
    pm_scene_retain(o, 0.3f, true);
}

static const struct pm_augmentation fixed_window = {
    .name = "fixed_window",
    .carries = PM_CARRIES_ALL,
    .place = place_aspect,
    .objects = retain_fixed,
};

const struct pm_augmentation pm_augmentation_ssd_random_crop_fixed_aspect_ratio = {
    .name = "ssd_random_crop_fixed_aspect_ratio",
    .help = "like ssd_random_crop, with crops of one aspect only",
    .opts = fixed_opts,
    .cfg_size = sizeof(struct ssd_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .wants_boxes = true,
    .prepare = prepare_fixed,
    .draw = draw_fixed,
    .place = pm_place_box,
    .objects = retain_ssd,
    .then = &fixed_window,
};

static int check_pad_fixed(const void *cfg, const char *where)
{
    const struct ssd_cfg *c = cfg;

    return PM_CHECK_PAD(c, where);
}

/* The least padding that gives the aspect, times a random scale within the ratios; all in float32
 * like the original. */
static void draw_aspect_padding(const struct ssd_cfg *c, struct pm_rng *r, int height, int width,
                                int out[4])
{
    const float sides[2] = { (float)height, (float)width }, own = sides[1] / sides[0];
    const float goal[2] = { own <= c->aspect_ratio ? sides[0] : sides[1] / c->aspect_ratio,
                            own >= c->aspect_ratio ? sides[1] : sides[0] * c->aspect_ratio };
    float least[2], most[2];

    for (int k = 0; k < 2; k++) {
        least[k] = fmaxf(c->min_padded_size_ratio.v[k] * sides[k], goal[k]) / goal[k];
        most[k] = fmaxf(c->max_padded_size_ratio.v[k] * sides[k], goal[k]) / goal[k];
    }
    const float high = fminf(most[0], most[1]);
    const float low = fminf(high, fmaxf(least[0], least[1]));
    const float scale = low + (float)pm_rng_uniform(r) * (high - low);

    out[0] = out[1] = 0;
    out[2] = (int)fmaxf(rintf(scale * goal[0]), sides[0]);
    out[3] = (int)fmaxf(rintf(scale * goal[1]), sides[1]);
}

static void draw_pad_fixed(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                           struct pm_draws *out)
{
    const struct ssd_cfg *c = cfg;

    draw_ssd(cfg, r, s, out);
    draw_aspect_padding(c, r, out->box[2] ? out->box[2] : s->height,
                           out->box[2] ? out->box[3] : s->width, out->window);
}

static int place_black(const void *cfg, const struct pm_draws *d, const struct pm_target *t,
                       struct pm_geometry *g)
{
    const float black[3] = { 0 };

    (void)cfg, (void)t;
    pm_geometry_window(g, 0, 0, d->window[2], d->window[3], black);
    return PM_OK;
}

static const struct pm_augmentation black_padding = {
    .name = "black_padding",
    .carries = PM_CARRIES_ALL,
    .place = place_black,
};

const struct pm_augmentation pm_augmentation_ssd_random_crop_pad_fixed_aspect_ratio = {
    .name = "ssd_random_crop_pad_fixed_aspect_ratio",
    .help = "like ssd_random_crop; then pads with black below and at the right to one aspect",
    .opts = pad_fixed_opts,
    .cfg_size = sizeof(struct ssd_cfg),
    .sizing = PM_SIZE_OTHER,
    .carries = PM_CARRIES_ALL,
    .wants_boxes = true,
    .prepare = prepare_ssd,
    .check = check_pad_fixed,
    .draw = draw_pad_fixed,
    .place = pm_place_box,
    .objects = retain_ssd,
    .then = &black_padding,
};
