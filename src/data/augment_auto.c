/* autoaugment_image: AutoAugment for detection (Zoph et al., Learning Data Augmentation Strategies
 * for Object Detection, 2019), with the policies of TensorFlow's Object Detection API.
 *
 * A policy is a list of sub-policies. Each picture draws one of them, all with equal probability. A
 * sub-policy has up to three operations in order, each with a probability and a level 0..10. An
 * operation is a row of the list below: it moves the picture with its objects (warp), or changes
 * pixels of the whole picture, of one box, or of each box with a third of the probability. The
 * content of a box may be shifted inside the box; box, mask and keypoints of the object then stay.
 *
 * Boxes follow a warp exactly, and are limited to the picture. A box that has left it becomes a
 * strip of min_side at the border, as in the original. Draws: which, more (three numbers that apply
 * the operations, three signs), rng. */
#include <cjson/cJSON.h>
#include <math.h>
#include <string.h>

#include "base/angles.h"
#include "data/augment_auto.h"

enum { MOST_LEVEL = 10, MOST_OPERATIONS = 3, MOST_SUB_POLICIES = 64 };
static const float min_side = 0.05f;

/* ---- operations ------------------------------------------------------------------------------ */

enum scope { PICTURE, ONE_BOX, EACH_BOX };
/* strength: level / 10 * scale + offset, as a whole number if `whole`, negative for half of the
 * pictures if `sign`. Either warp or change is set. */
struct operation {
    const char *name;
    double scale, offset;
    bool whole, sign;
    enum scope scope;
    void (*warp)(double strength, int height, int width, float out[6]);
    void (*change)(struct pm_area a, double strength, struct pm_rng *r);
};

/* Counter-clockwise by degrees, around the middle. */
static void rotate(double degrees, int height, int width, float out[6])
{
    const double angle = pm_radians(degrees), c = cos(angle), s = sin(angle);
    const double h = height - 1, w = width - 1;

    out[0] = (float)c, out[1] = (float)-s, out[2] = (float)((w - (c * w - s * h)) / 2);
    out[3] = (float)s, out[4] = (float)c, out[5] = (float)((h - (s * w + c * h)) / 2);
}

static void start_warp(float out[6])
{
    memcpy(out, (const float[6]){ 1, 0, 0, 0, 1, 0 }, 6 * sizeof *out);
}

static void translate_x(double pixels, int height, int width, float out[6])
{
    (void)height, (void)width;
    start_warp(out);
    out[2] = (float)pixels;
}

static void translate_y(double pixels, int height, int width, float out[6])
{
    (void)height, (void)width;
    start_warp(out);
    out[5] = (float)pixels;
}

static void shear_x(double by, int height, int width, float out[6])
{
    (void)height, (void)width;
    start_warp(out);
    out[1] = (float)by;
}

static void shear_y(double by, int height, int width, float out[6])
{
    (void)height, (void)width;
    start_warp(out);
    out[3] = (float)by;
}

static void flip(double strength, int height, int width, float out[6])
{
    (void)strength, (void)height;
    start_warp(out);
    out[0] = -1, out[2] = (float)(width - 1);
}

static void autocontrast(struct pm_area a, double strength, struct pm_rng *r)
{
    (void)strength, (void)r;
    pm_area_autocontrast(a);
}

static void equalize(struct pm_area a, double strength, struct pm_rng *r)
{
    (void)strength, (void)r;
    pm_area_equalize(a);
}

/* At least one bit stays, as in the original, whose shift is limited to seven. */
static void posterize(struct pm_area a, double strength, struct pm_rng *r)
{
    (void)r;
    pm_area_posterize(a, strength < 1 ? 1 : (int)strength);
}

static void solarize(struct pm_area a, double strength, struct pm_rng *r)
{
    (void)r;
    pm_area_solarize(a, (int)strength);
}

static void solarize_add(struct pm_area a, double strength, struct pm_rng *r)
{
    (void)r;
    pm_area_solarize_add(a, (int)strength);
}

static void color(struct pm_area a, double strength, struct pm_rng *r)
{
    (void)r;
    pm_area_color(a, (float)strength);
}

static void contrast(struct pm_area a, double strength, struct pm_rng *r)
{
    (void)r;
    pm_area_contrast(a, (float)strength);
}

static void brightness(struct pm_area a, double strength, struct pm_rng *r)
{
    (void)r;
    pm_area_brightness(a, (float)strength);
}

static void sharpness(struct pm_area a, double strength, struct pm_rng *r)
{
    (void)r;
    pm_area_sharpness(a, (float)strength);
}

/* Half the side of the square is strength pixels; its centre is any pixel. */
static void cutout(struct pm_area a, double strength, struct pm_rng *r)
{
    const int y = (int)pm_rng_int(r, 0, a.height - 1), x = (int)pm_rng_int(r, 0, a.width - 1);

    pm_area_cut(a, y, x, (int)strength, (int)strength);
}

static const struct operation operations[] = {
    { "AutoContrast", .change = autocontrast },
    { "Equalize", .change = equalize },
    { "Posterize", 4, .whole = true, .change = posterize },
    { "Solarize", 256, .whole = true, .change = solarize },
    { "SolarizeAdd", 110, .whole = true, .change = solarize_add },
    { "Color", 1.8, 0.1, .change = color },
    { "Contrast", 1.8, 0.1, .change = contrast },
    { "Brightness", 1.8, 0.1, .change = brightness },
    { "Sharpness", 1.8, 0.1, .change = sharpness },
    { "Cutout", 100, .whole = true, .change = cutout },
    { "BBox_Cutout", 0.75, .scope = ONE_BOX },
    { "Rotate_BBox", 30, .sign = true, .warp = rotate },
    { "TranslateX_BBox", 250, .sign = true, .warp = translate_x },
    { "TranslateY_BBox", 250, .sign = true, .warp = translate_y },
    { "ShearX_BBox", 0.3, .sign = true, .warp = shear_x },
    { "ShearY_BBox", 0.3, .sign = true, .warp = shear_y },
    { "Rotate_Only_BBoxes", 30, .sign = true, .scope = EACH_BOX, .warp = rotate },
    { "ShearX_Only_BBoxes", 0.3, .sign = true, .scope = EACH_BOX, .warp = shear_x },
    { "ShearY_Only_BBoxes", 0.3, .sign = true, .scope = EACH_BOX, .warp = shear_y },
    { "TranslateX_Only_BBoxes", 120, .sign = true, .scope = EACH_BOX, .warp = translate_x },
    { "TranslateY_Only_BBoxes", 120, .sign = true, .scope = EACH_BOX, .warp = translate_y },
    { "Flip_Only_BBoxes", .scope = EACH_BOX, .warp = flip },
    { "Solarize_Only_BBoxes", 256, .whole = true, .scope = EACH_BOX, .change = solarize },
    { "Equalize_Only_BBoxes", .scope = EACH_BOX, .change = equalize },
    { "Cutout_Only_BBoxes", 50, .whole = true, .scope = EACH_BOX, .change = cutout },
};

/* ---- policies -------------------------------------------------------------------------------- */

/* In the form of the option `policy`. */
#define V0                                                                                         \
    "[[\"TranslateX_BBox\",0.6,4],[\"Equalize\",0.8,10]],"                                         \
    "[[\"TranslateY_Only_BBoxes\",0.2,2],[\"Cutout\",0.8,8]],"                                     \
    "[[\"Sharpness\",0,8],[\"ShearX_BBox\",0.4,0]],"                                               \
    "[[\"ShearY_BBox\",1,2],[\"TranslateY_Only_BBoxes\",0.6,6]],"                                  \
    "[[\"Rotate_BBox\",0.6,10],[\"Color\",1,6]]"

static const char *const policies[] = {
    "[" V0 "]",
    "[" V0 ","
    "[[\"Color\",0,0],[\"ShearX_Only_BBoxes\",0.8,4]],"
    "[[\"ShearY_Only_BBoxes\",0.8,2],[\"Flip_Only_BBoxes\",0,10]],"
    "[[\"Equalize\",0.6,10],[\"TranslateX_BBox\",0.2,2]],"
    "[[\"Color\",1,10],[\"TranslateY_Only_BBoxes\",0.4,6]],"
    "[[\"Rotate_BBox\",0.8,10],[\"Contrast\",0,10]],"
    "[[\"Cutout\",0.2,2],[\"Brightness\",0.8,10]],"
    "[[\"Color\",1,6],[\"Equalize\",1,2]],"
    "[[\"Cutout_Only_BBoxes\",0.4,6],[\"TranslateY_Only_BBoxes\",0.8,2]],"
    "[[\"Color\",0.2,8],[\"Rotate_BBox\",0.8,10]],"
    "[[\"Sharpness\",0.4,4],[\"TranslateY_Only_BBoxes\",0,4]],"
    "[[\"Sharpness\",1,4],[\"SolarizeAdd\",0.4,4]],"
    "[[\"Rotate_BBox\",1,8],[\"Sharpness\",0.2,8]],"
    "[[\"ShearY_BBox\",0.6,10],[\"Equalize_Only_BBoxes\",0.6,8]],"
    "[[\"ShearX_BBox\",0.2,6],[\"TranslateY_Only_BBoxes\",0.2,10]],"
    "[[\"SolarizeAdd\",0.6,8],[\"Brightness\",0.8,10]]]",
    "[[[\"Color\",0,6],[\"Cutout\",0.6,8],[\"Sharpness\",0.4,8]],"
    "[[\"Rotate_BBox\",0.4,8],[\"Sharpness\",0.4,2],[\"Rotate_BBox\",0.8,10]],"
    "[[\"TranslateY_BBox\",1,8],[\"AutoContrast\",0.8,2]],"
    "[[\"AutoContrast\",0.4,6],[\"ShearX_BBox\",0.8,8],[\"Brightness\",0,10]],"
    "[[\"SolarizeAdd\",0.2,6],[\"Contrast\",0,10],[\"AutoContrast\",0.6,0]],"
    "[[\"Cutout\",0.2,0],[\"Solarize\",0.8,8],[\"Color\",1,4]],"
    "[[\"TranslateY_BBox\",0,4],[\"Equalize\",0.6,8],[\"Solarize\",0,10]],"
    "[[\"TranslateY_BBox\",0.2,2],[\"ShearY_BBox\",0.8,8],[\"Rotate_BBox\",0.8,8]],"
    "[[\"Cutout\",0.8,8],[\"Brightness\",0.8,8],[\"Cutout\",0.2,2]],"
    "[[\"Color\",0.8,4],[\"TranslateY_BBox\",1,6],[\"Rotate_BBox\",0.6,6]],"
    "[[\"Rotate_BBox\",0.6,10],[\"BBox_Cutout\",1,4],[\"Cutout\",0.2,8]],"
    "[[\"Rotate_BBox\",0,0],[\"Equalize\",0.6,6],[\"ShearY_BBox\",0.6,8]],"
    "[[\"Brightness\",0.8,8],[\"AutoContrast\",0.4,2],[\"Brightness\",0.2,2]],"
    "[[\"TranslateY_BBox\",0.4,8],[\"Solarize\",0.4,6],[\"SolarizeAdd\",0.2,10]],"
    "[[\"Contrast\",1,10],[\"SolarizeAdd\",0.2,8],[\"Equalize\",0.2,4]]]",
    "[[[\"Posterize\",0.8,2],[\"TranslateX_BBox\",1,8]],"
    "[[\"BBox_Cutout\",0.2,10],[\"Sharpness\",1,8]],"
    "[[\"Rotate_BBox\",0.6,8],[\"Rotate_BBox\",0.8,10]],"
    "[[\"Equalize\",0.8,10],[\"AutoContrast\",0.2,10]],"
    "[[\"SolarizeAdd\",0.2,2],[\"TranslateY_BBox\",0.2,8]],"
    "[[\"Sharpness\",0,2],[\"Color\",0.4,8]],"
    "[[\"Equalize\",1,8],[\"TranslateY_BBox\",1,8]],"
    "[[\"Posterize\",0.6,2],[\"Rotate_BBox\",0,10]],"
    "[[\"AutoContrast\",0.6,0],[\"Rotate_BBox\",1,6]],"
    "[[\"Equalize\",0,4],[\"Cutout\",0.8,10]],"
    "[[\"Brightness\",1,2],[\"TranslateY_BBox\",1,6]],"
    "[[\"Contrast\",0,2],[\"ShearY_BBox\",0.8,0]],"
    "[[\"AutoContrast\",0.8,10],[\"Contrast\",0.2,10]],"
    "[[\"Rotate_BBox\",1,10],[\"Cutout\",1,10]],"
    "[[\"SolarizeAdd\",0.8,6],[\"Equalize\",0.8,8]]]",
    "[[[\"TranslateX_BBox\",1,4],[\"Equalize\",1,10]]]",
};

struct sub_policy {
    struct step {
        const struct operation *operation; /* NULL: none */
        double probability;
        int level;
    } step[MOST_OPERATIONS];
};
struct auto_cfg {
    int policy_name;
    const cJSON *policy;
    const struct sub_policy *sub; /* [subs] */
    int subs;
};

static const struct pm_opt auto_opts[] = {
    PM_ENUM(auto_cfg, policy_name, 0, "v0|v1|v2|v3|test",
            "published policy; v0 is that of the paper, test shifts and equalizes every picture"),
    PM_JSON(auto_cfg, policy,
            "your own policy instead: a list of sub-policies. Each picture draws one sub-policy, "
            "a list of up to three operations [name, probability, level 0..10]; "
            "null = policy_name"),
    { 0 },
};

static const struct operation *find_operation(const cJSON *name)
{
    for (size_t k = 0; cJSON_IsString(name) && k < PM_COUNT(operations); k++)
        if (!strcmp(operations[k].name, name->valuestring))
            return &operations[k];
    return NULL;
}

static int refuse_step(const char *where, int sub, int k)
{
    struct pm_str names = { 0 };

    for (size_t i = 0; i < PM_COUNT(operations); i++)
        pm_str_add(&names, "%s%s", i ? ", " : "", operations[i].name);
    const int err = pm_fail(PM_ECONFIG, "%s.policy.%d.%d: [name, probability 0..1, level 0..%d] is "
                            "needed, such as [\"Rotate_BBox\", 0.6, 10]; names are %s", where, sub,
                            k, MOST_LEVEL, names.text);

    pm_str_free(&names);
    return err;
}

static int read_step(const cJSON *v, const char *where, int sub, int k, struct step *out)
{
    const cJSON *chance = cJSON_GetArrayItem(v, 1), *level = cJSON_GetArrayItem(v, 2);

    out->operation = find_operation(cJSON_GetArrayItem(v, 0));
    if (cJSON_GetArraySize(v) != 3 || !out->operation || !cJSON_IsNumber(chance) ||
        !(chance->valuedouble >= 0 && chance->valuedouble <= 1) || !cJSON_IsNumber(level) ||
        level->valuedouble != level->valueint || level->valueint < 0 ||
        level->valueint > MOST_LEVEL)
        return refuse_step(where, sub, k);
    out->probability = chance->valuedouble;
    out->level = level->valueint;
    return PM_OK;
}

static int read_policy(const cJSON *list, const char *where, struct pm_arena *a,
                       struct auto_cfg *c)
{
    const int count = cJSON_GetArraySize(list);
    struct sub_policy *subs;
    const cJSON *sub, *v;
    int err = PM_OK;

    if (!cJSON_IsArray(list) || count < 1 || count > MOST_SUB_POLICIES)
        return pm_fail(PM_ECONFIG, "%s.policy: a list of 1 to %d sub-policies is needed, such as "
                       "[[[\"Rotate_BBox\", 0.6, 10], [\"Color\", 1, 6]]]", where,
                       MOST_SUB_POLICIES);
    c->sub = subs = pm_arena_alloc(a, (size_t)count * sizeof *subs);
    memset(subs, 0, (size_t)count * sizeof *subs);
    cJSON_ArrayForEach(sub, list)
    {
        const int steps = cJSON_GetArraySize(sub);
        int k = 0;

        if (!cJSON_IsArray(sub) || steps < 1 || steps > MOST_OPERATIONS)
            return pm_fail(PM_ECONFIG, "%s.policy.%d: a list of 1 to %d operations is needed",
                           where, c->subs, MOST_OPERATIONS);
        cJSON_ArrayForEach(v, sub)
        {
            PM_TRY(read_step(v, where, c->subs, k, &subs[c->subs].step[k]));
            k++;
        }
        c->subs++;
    }
out:
    return err;
}

static int prepare_auto(void *cfg, struct pm_arena *a, const char *where)
{
    struct auto_cfg *c = cfg;
    cJSON *own;
    int err;

    if (c->policy && !cJSON_IsNull(c->policy))
        return read_policy(c->policy, where, a, c);
    own = cJSON_Parse(policies[c->policy_name]);
    err = read_policy(own, where, a, c);
    cJSON_Delete(own);
    return err;
}

/* ---- an example ------------------------------------------------------------------------------ */

static void draw_auto(const void *cfg, struct pm_rng *r, const struct pm_scene *s,
                      struct pm_draws *out)
{
    (void)s;
    out->which = (int)pm_rng_int(r, 0, ((const struct auto_cfg *)cfg)->subs - 1);
    for (int k = 0; k < 2 * MOST_OPERATIONS; k++)
        out->more[k] = pm_rng_uniform(r);
}

/* Returns the operation at place k of the chosen sub-policy if it is applied, else NULL. Those on
 * each box decide for each of them. */
static const struct operation *applied(const void *cfg, const struct pm_draws *d, int k)
{
    const struct step *step = &((const struct auto_cfg *)cfg)->sub[d->which].step[k];
    const bool now = step->operation && (step->operation->scope == EACH_BOX ||
                                         d->more[k] < step->probability);

    return now ? step->operation : NULL;
}

static double strength_of(const void *cfg, const struct pm_draws *d, int k)
{
    const struct step *step = &((const struct auto_cfg *)cfg)->sub[d->which].step[k];
    const struct operation *o = step->operation;
    const double v = step->level / (double)MOST_LEVEL * o->scale + o->offset;

    if (o->whole)
        return trunc(v);
    return o->sign && d->more[MOST_OPERATIONS + k] < 0.5 ? -v : v;
}

static int place_operation(const void *cfg, const struct pm_draws *d, int k, struct pm_geometry *g)
{
    static const float fill[3] = { PM_AUTO_FILL, PM_AUTO_FILL, PM_AUTO_FILL };
    const struct operation *o = applied(cfg, d, k);
    float warp[6];

    if (!o || !o->warp || o->scope != PICTURE)
        return PM_OK;
    o->warp(strength_of(cfg, d, k), pm_geometry_height(g), pm_geometry_width(g), warp);
    pm_geometry_warp(g, warp, fill);
    return PM_OK;
}

/* The pixels of a box, both ends included. height 0: it has none. */
static struct pm_area area_of_box(struct pm_area whole, const float *box)
{
    int first[2], last[2];
    const int side[2] = { whole.height, whole.width };

    for (int k = 0; k < 2; k++) {
        first[k] = (int)((float)side[k] * fminf(fmaxf(box[k], 0), 1));
        last[k] = (int)((float)side[k] * fminf(fmaxf(box[k + 2], 0), 1));
        last[k] = last[k] < side[k] ? last[k] : side[k] - 1;
    }
    if (first[0] > last[0] || first[1] > last[1])
        return (struct pm_area){ 0 };
    whole.v += (size_t)first[0] * whole.stride + (size_t)(first[1] * whole.channels);
    whole.height = last[0] - first[0] + 1, whole.width = last[1] - first[1] + 1;
    return whole;
}

/* Cuts out a rectangle around a pixel of one box, with the given share of the box's sides. It may
 * reach beyond the box. */
static void cut_one_box(struct pm_area whole, double share, struct pm_rng *r,
                        struct pm_scene_objects *objects)
{
    const float *boxes = pm_scene_boxes(objects);

    if (!boxes)
        return;
    const struct pm_area a =
        area_of_box(whole, boxes + 4 * pm_rng_int(r, 0, (int64_t)objects->count - 1));
    if (a.height == 0)
        return;
    const ptrdiff_t at = a.v - whole.v, stride = (ptrdiff_t)whole.stride;
    const int y = (int)(at / stride) + (int)pm_rng_int(r, 0, a.height - 1);
    const int x = (int)(at % stride) / a.channels + (int)pm_rng_int(r, 0, a.width - 1);

    pm_area_cut(whole, y, x, (int)(share * a.height / 2), (int)(share * a.width / 2));
}

/* Applies an operation inside boxes, in random order, because boxes may overlap. */
static void change_boxes(struct pm_area whole, const struct operation *o, double probability,
                         double strength, struct pm_rng *r, struct pm_scene_objects *objects)
{
    float *boxes = pm_scene_boxes(objects), warp[6];

    for (size_t n = objects->count; n > 0; n--) {
        float *const box = boxes + 4 * pm_rng_int(r, 0, (int64_t)n - 1);
        const struct pm_area a = area_of_box(whole, box);

        memcpy(box, boxes + 4 * (n - 1), 4 * sizeof *box); /* each box once */
        if (!(pm_rng_uniform(r) < probability / 3) || a.height == 0)
            continue;
        if (o->change) {
            o->change(a, strength, r);
            continue;
        }
        o->warp(strength, a.height, a.width, warp);
        pm_area_warp(a, warp);
    }
}

/* The generator of the operation at place k. */
static struct pm_rng rng_of(const struct pm_draws *d, int k)
{
    struct pm_rng r = d->rng;
    uint32_t seed = 0;

    for (int i = 0; i <= k; i++)
        seed = pm_rng_u32(&r);
    return pm_rng_make(seed, pm_hash("autoaugment_image"), 0, (uint32_t)k);
}

static void change_values(const void *cfg, const struct pm_draws *d, int k,
                          struct pm_pixel_values *x)
{
    const struct operation *o = applied(cfg, d, k);
    struct pm_area a = { x->v, x->height, x->width, x->channels,
                         (size_t)x->width * (size_t)x->channels, x->objects->arena };
    struct pm_rng r = rng_of(d, k);

    if (k == 0)
        pm_area_truncate(a);
    if (!o || (o->warp && o->scope == PICTURE))
        return;
    const double strength = strength_of(cfg, d, k);
    if (o->scope == PICTURE)
        o->change(a, strength, &r);
    else if (o->scope == ONE_BOX)
        cut_one_box(a, strength, &r, x->objects);
    else
        change_boxes(a, o, ((const struct auto_cfg *)cfg)->sub[d->which].step[k].probability,
                     strength, &r, x->objects);
}

static void limit_objects(const void *cfg, const struct pm_draws *d, int k,
                          struct pm_scene_objects *objects)
{
    const struct operation *o = applied(cfg, d, k);

    if (!o || !o->warp || o->scope != PICTURE)
        return;
    pm_scene_clip(objects);
    for (size_t i = 0; i < objects->count; i++)
        for (int side = 0; side < 2; side++) {
            float *b = objects->list[i].box + side;

            if (b[2] > b[0])
                continue;
            b[0] = fminf(b[0], 1 - min_side);
            b[2] = fmaxf(b[2], min_side);
        }
}

/* A row for each place in a sub-policy. */
#define ROW_FUNCTIONS(k)                                                                           \
    static int place_##k(const void *cfg, const struct pm_draws *d, const struct pm_target *t,     \
                         struct pm_geometry *g)                                                    \
    {                                                                                              \
        (void)t;                                                                                   \
        return place_operation(cfg, d, k, g);                                                      \
    }                                                                                              \
    static void values_##k(const void *cfg, const struct pm_draws *d, struct pm_pixel_values *x)   \
    {                                                                                              \
        change_values(cfg, d, k, x);                                                               \
    }                                                                                              \
    static void objects_##k(const void *cfg, const struct pm_draws *d, struct pm_scene_objects *o) \
    {                                                                                              \
        limit_objects(cfg, d, k, o);                                                               \
    }
#define ROW_MEMBERS(k)                                                                             \
    .carries = PM_CARRIES_ALL, .sees_objects = true, .place = place_##k, .values = values_##k,     \
    .objects = objects_##k

ROW_FUNCTIONS(0)
ROW_FUNCTIONS(1)
ROW_FUNCTIONS(2)

static const struct pm_augmentation third = { .name = "third", ROW_MEMBERS(2) };
static const struct pm_augmentation second = { .name = "second", ROW_MEMBERS(1), .then = &third };

const struct pm_augmentation pm_augmentation_autoaugment_image = {
    .name = "autoaugment_image",
    .help = "applies learned operations on colours, places and boxes (AutoAugment for detection)",
    .opts = auto_opts,
    .cfg_size = sizeof(struct auto_cfg),
    .prepare = prepare_auto,
    .draw = draw_auto,
    ROW_MEMBERS(0),
    .then = &second,
};
