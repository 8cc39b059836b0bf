/* augment: lists of rows, their draws, and their effect on a sample. sample.h has the contract.
 *
 * Rows that move pixels only add moves to the geometry. Pending moves are applied to the picture
 * when a row of values comes, and at the end. So a preprocessing without colour rows computes only
 * the pixels of the input. */
#include <assert.h>
#include <cjson/cJSON.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#include "data/augment.h"
#include "data/picture.h"
#include "data/render.h"

/* ---- input.augment ----------------------------------------------------------------------- */

static int open_entry(const cJSON *object, const char *where, struct pm_arena *a,
                      struct pm_augment_entry *out)
{
    static const struct pm_opt none[] = { { 0 } };
    static const char *const also[] = { "name", NULL };
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(object, "name");
    void *cfg;
    int err = PM_OK;

    if (!cJSON_IsString(name))
        return pm_fail(PM_ECONFIG, "%s: an object { \"name\": ..., option: value } is needed",
                       where);
    if (!(out->row = pm_augmentation_find(name->valuestring)))
        return pm_fail(PM_ECONFIG, "%s.name: '%s' is no augmentation of this version", where,
                       name->valuestring);
    out->cfg = cfg = pm_arena_alloc(a, out->row->cfg_size + 1);
    PM_TRY(pm_opts_parse(out->row->opts ? out->row->opts : none, object, also, cfg, a, where));
    if (out->row->prepare)
        PM_TRY(out->row->prepare(cfg, a, where));
    if (out->row->check)
        PM_TRY(out->row->check(cfg, where));
out:
    return err;
}

int pm_augment_open(const struct cJSON *list, const char *where, struct pm_arena *a,
                    const struct pm_augment **out)
{
    struct pm_augment *made;
    const cJSON *v;
    int err = PM_OK;

    *out = NULL;
    if (!list)
        return PM_OK;
    if (!cJSON_IsArray(list))
        return pm_fail(PM_ECONFIG, "%s: a list [ { \"name\": ... }, ... ] is needed", where);
    if (cJSON_GetArraySize(list) > PM_MAX_AUGMENT)
        return pm_fail(PM_ECONFIG, "%s: %d augmentations; at most %d are possible", where,
                       cJSON_GetArraySize(list), PM_MAX_AUGMENT);
    made = pm_arena_alloc(a, sizeof *made);
    *made = (struct pm_augment){ 0 };
    cJSON_ArrayForEach(v, list)
    {
        struct pm_augment_entry *e = &made->entry[made->count];

        PM_TRY(open_entry(v, pm_arena_printf(a, "%s.%d", where, made->count), a, e));
        made->wants_boxes |= e->row->wants_boxes;
        if (e->row->others && made->count)
            PM_TRY(pm_fail(PM_ECONFIG, "%s.%d: %s joins the pictures of several records, so it "
                           "must be first in the list", where, made->count,
                           e->row->name));
        if (e->row->others)
            made->mosaic = e;
        made->count++;
    }
    *out = made;
out:
    return err;
}

int pm_augment_check(const struct pm_augment *a, unsigned carries, bool resized, const char *where)
{
    static const char *const members[] = { "maps of labels", "boxes", "masks", "keypoints",
                                           "rotated boxes" };
    int last = -1;

    for (int i = 0; a && i < a->count; i++) {
        const struct pm_augmentation *row = a->entry[i].row;
        const unsigned missing = carries & ~row->carries;

        if (row->others && !(carries & PM_CARRIES_BOXES))
            return pm_fail(PM_ECONFIG, "%s.%d: %s is possible only in tasks with boxes: remove it "
                           "from the list", where, i, row->name);
        for (size_t k = 0; missing && k < PM_COUNT(members); k++)
            if (missing & 1u << k)
                return pm_fail(PM_ECONFIG,
                               "%s.%d: %s does not transform %s, which this task needs: remove it "
                               "from the list",
                               where, i, row->name, members[k]);
        last = row->sizing == PM_SIZE_KEPT ? last : i;
    }
    if (resized || last < 0 || a->entry[last].row->sizing == PM_SIZE_INPUT)
        return PM_OK;
    return pm_fail(PM_ECONFIG,
                   "%s.%d: after %s the picture does not have the input's size: add random_crop, "
                   "crop_or_pad or resize after it",
                   where, last, a->entry[last].row->name);
}

/* ---- lists ------------------------------------------------------------------------------- */

void pm_augment_add(struct pm_augment_rows *s, const struct pm_augmentation *row, const void *cfg,
                    size_t size)
{
    struct pm_augment_row *to = &s->at[s->count++];
    char *room = (char *)s->room + s->used;

    assert(s->count <= PM_MAX_ROWS && s->used + size <= sizeof s->room);
    *to = (struct pm_augment_row){ row, room, s->shared, 0 };
    if (size)
        memcpy(room, cfg, size);
    s->used += (size + 7) / 8 * 8;
}

/* Sets the target and its padding. If a colour picture turns grey, the padding is a colour that
 * turns into the preprocessing's grey: luma's weights sum to 0.9999. */
static int begin(const struct pm_preprocessing *p, const void *cfg, const struct pm_image8 *im,
                 const struct pm_occasion *o, struct pm_placed *out)
{
    const bool turns = im->channels != o->channels;
    struct pm_normal n;
    const int err = p->normal(cfg, o->channels, &n);

    if (err < 0)
        return err;
    out->target = (struct pm_target){ o->height, o->width, o->channels, { 0 }, o->where };
    for (int c = 0; c < 3 && !n.own; c++)
        out->target.fill[c] =
            turns ? (n.padded ? n.pad : n.mean)[0] / 0.9999f : (n.padded ? n.pad : n.mean)[c];
    out->rows.count = 0;
    out->rows.used = 0;
    out->rows.shared = NULL;
    out->sample = NULL;
    pm_geometry_begin(&out->geometry, im->height, im->width);
    return PM_OK;
}

static struct pm_request request_of(const struct pm_placed *p, const struct pm_occasion *o,
                                    const struct pm_draws *d)
{
    return (struct pm_request){ .image_height = p->geometry.height,
                                .image_width = p->geometry.width,
                                .train = o->train,
                                .draws = d,
                                .target = &p->target,
                                .own_size = o->own_size && !o->train };
}

/* Returns a random number of the seed, step and example; 0 in evaluation. With a choice it is the
 * number that selects it. */
static uint32_t number_of(const struct pm_occasion *o)
{
    struct pm_rng r = pm_rng_make(o->seed, pm_hash("values"), o->step, o->example);

    if (o->train && o->choice)
        return (uint32_t)o->choice - 1;
    return o->train ? pm_rng_u32(&r) : 0;
}

static int place_step(struct pm_placed *p, int i)
{
    struct pm_augment_row *s = &p->rows.at[i];
    const int err =
        s->row->place ? s->row->place(s->cfg, s->draws, &p->target, &p->geometry) : PM_OK;

    s->moves = p->geometry.count;
    return err;
}

static int finish(const struct pm_preprocessing *p, const void *cfg, const struct pm_occasion *o,
                  struct pm_placed *out)
{
    struct pm_request r = request_of(out, o, NULL);
    const int from = out->rows.count;
    int err = PM_OK;

    r.number = number_of(o);
    pm_augment_add(&out->rows, &pm_row_grey, NULL, 0);
    p->values(cfg, &r, &out->rows);
    for (int i = from; i < out->rows.count && err == PM_OK; i++)
        err = place_step(out, i);
    return err;
}

/* The size of the picture must be that of the input. */
static int check_own(const struct pm_placed *p)
{
    const struct pm_target *t = &p->target;

    if (p->geometry.height == t->height && p->geometry.width == t->width)
        return PM_OK;
    return pm_fail(PM_EDATA, "%s: an image of %d x %d, but the input is %d x %d and eval.resize is "
                   "false: scale the image, or set eval.resize=true", t->where, p->geometry.height,
                   p->geometry.width, t->height, t->width);
}

int pm_place_with(const struct pm_preprocessing *p, const void *cfg, const struct pm_draws *d,
                  const struct pm_image8 *picture, const struct pm_occasion *o,
                  struct pm_placed *out)
{
    int err = PM_OK;

    PM_TRY(begin(p, cfg, picture, o, out));
    const struct pm_request r = request_of(out, o, d);
    out->rows.shared = d;
    if (r.own_size && !p->maps && !p->resizes)
        PM_TRY(check_own(out));
    else
        PM_TRY(p->list(cfg, &r, &out->rows));
    for (int i = 0; i < out->rows.count; i++)
        PM_TRY(place_step(out, i));
    PM_TRY(finish(p, cfg, o, out));
out:
    return err;
}

/* ---- a list of one's own ------------------------------------------------------------------ */

static int check_fit(const struct pm_placed *p)
{
    const struct pm_target *t = &p->target;
    const int height = pm_geometry_height(&p->geometry), width = pm_geometry_width(&p->geometry);

    if (height == t->height && width == t->width)
        return PM_OK;
    return pm_fail(PM_EDATA,
                   "%s: an image of %d x %d becomes %d x %d by input.augment, but the input is "
                   "%d x %d: add random_crop, crop_or_pad or resize to the list",
                   t->where, p->geometry.height, p->geometry.width, height, width, t->height,
                   t->width);
}

struct pm_rng pm_augment_rng(uint64_t seed, int place, uint32_t step, uint32_t example)
{
    const uint64_t stream = pm_hash("augmentation"), apart = UINT64_C(0x9E3779B97F4A7C15);

    return pm_rng_make(seed, stream + ((uint64_t)place + 1) * apart, step, example);
}

/* Makes a row's draws. The scene is the picture after the previous rows, with its boxes clipped to
 * it. */
static void draw_row(const struct pm_augmentation *row, const void *cfg, struct pm_rng *r,
                     struct pm_scene_objects *objects, uint32_t example,
                     const struct pm_geometry *g, struct pm_draws *out)
{
    struct pm_scene s = { pm_geometry_height(g), pm_geometry_width(g), example, NULL, 0 };

    if (row->wants_boxes && objects->count) {
        float *boxes = pm_scene_boxes(objects);

        for (size_t i = 0; i < 4 * objects->count; i++)
            boxes[i] = boxes[i] < 0 ? 0 : boxes[i] > 1 ? 1 : boxes[i];
        s.boxes = boxes;
        s.boxes_count = objects->count;
    }
    row->draw(cfg, r, &s, out);
    out->rng = *r;
}

/* Rows of a user's list make whole pictures, so a picture that a row enlarges has the decoders'
 * limit. */
static int check_area(const struct pm_geometry *g, const char *where)
{
    const int height = pm_geometry_height(g), width = pm_geometry_width(g);

    if ((size_t)height * (size_t)width <= PM_PICTURE_PIXELS)
        return PM_OK;
    return pm_fail(PM_EDATA,
                   "%s: input.augment would resize the picture to %d x %d pixels, allowed are "
                   "%zu pixels; crop before resizing, or remove the picture",
                   where, height, width, PM_PICTURE_PIXELS);
}

/* draws: given draws, or NULL to make them here. */
static int place_rows(const struct pm_input *in, const struct pm_draws *draws,
                      const struct pm_sample *sample, const struct pm_occasion *o,
                      struct pm_placed *out)
{
    const struct pm_augment *a = in->augment;
    struct pm_scene_objects objects = { 0 };
    int err = PM_OK;

    PM_TRY(begin(in->preprocessing, in->cfg, sample->picture, o, out));
    if (a->wants_boxes && sample->objects && !draws)
        pm_scene_open(&objects, sample, &out->geometry);
    for (int i = 0; i < a->count; i++) {
        const struct pm_augment_entry *e = &a->entry[i];
        struct pm_draws *d = &out->rows.draws[i];

        if (e->row->accept)
            PM_TRY(e->row->accept(e->cfg, sample, o->where));
        *d = draws ? draws[i] : (struct pm_draws){ 0 };
        if (!draws && e->row->draw) {
            struct pm_rng r = pm_augment_rng(o->seed, i, o->step, o->example);

            draw_row(e->row, e->cfg, &r, &objects, o->example, &out->geometry, d);
        }
        for (const struct pm_augmentation *row = e->row; row; row = row->then) {
            struct pm_augment_row *at = &out->rows.at[out->rows.count++];

            *at = (struct pm_augment_row){ row, e->cfg, d, 0 };
            out->sample = row->sees_objects ? sample : out->sample;
            PM_TRY(place_step(out, out->rows.count - 1));
            if (objects.count)
                pm_scene_step(&objects, at);
            PM_TRY(check_area(&out->geometry, o->where));
        }
    }
    if (!in->preprocessing->resizes)
        PM_TRY(check_fit(out));
    PM_TRY(finish(in->preprocessing, in->cfg, o, out));
out:
    pm_scene_close(&objects);
    return err;
}

int pm_place_list(const struct pm_input *in, const struct pm_draws *draws,
                  const struct pm_sample *sample, const struct pm_occasion *o,
                  struct pm_placed *out)
{
    return place_rows(in, draws, sample, o, out);
}

int pm_place(const struct pm_input *in, const struct pm_sample *sample, const struct pm_occasion *o,
             struct pm_placed *out)
{
    const struct pm_image8 *im = sample->picture;
    struct pm_scene scene = { im->height, im->width, o->example, NULL, 0 };
    struct pm_rng r;

    if (!o->train)
        return pm_place_with(in->preprocessing, in->cfg, NULL, im, o, out);
    if (in->augment)
        return place_rows(in, NULL, sample, o, out);
    if (in->preprocessing->wants_boxes)
        scene.boxes = sample->boxes, scene.boxes_count = sample->objects;
    r = pm_rng_make(o->seed, pm_hash("augmentation"), o->step, o->example);
    in->preprocessing->draw(in->cfg, &r, &scene, &out->rows.draws[0]);
    return pm_place_with(in->preprocessing, in->cfg, &out->rows.draws[0], im, o, out);
}

/* Returns the size of the picture after the first rows. */
static struct pm_frame size_after(const struct pm_placed *p, int rows)
{
    const int moves = rows > 0 ? p->rows.at[rows - 1].moves : 0;

    if (moves == 0)
        return (struct pm_frame){ p->geometry.height, p->geometry.width };
    return (struct pm_frame){ p->geometry.move[moves - 1].height,
                              p->geometry.move[moves - 1].width };
}

struct pm_frame pm_placed_need(const struct pm_placed *p)
{
    int rows = 0;

    while (rows < p->rows.count && p->rows.at[rows].row->sizing != PM_SIZE_INPUT)
        rows++;
    return size_after(p, rows);
}

/* ---- members ------------------------------------------------------------------------------ */

/* Converts the canvas to one grey channel in out. */
static void turn_grey(struct pm_canvas *c, float *out)
{
    const size_t count = (size_t)c->height * (size_t)c->width;
    const float *from = c->values;

    for (size_t i = 0; i < count; i++)
        out[i] = pm_luma(from + 3 * i);
    pm_canvas_free(c);
    c->values = out;
    c->channels = 1;
}

static bool has_work(const struct pm_augment_row *s, const struct pm_canvas *c, int channels)
{
    return s->row->values || (s->row == &pm_row_grey && c->channels != channels);
}

void pm_placed_window(const struct pm_placed *p, float out[4])
{
    out[0] = out[1] = 0;
    out[2] = out[3] = 1;
    pm_geometry_boxes(&p->geometry, out, 1);
    for (int k = 0; k < 4; k++)
        out[k] = fminf(fmaxf(out[k], 0), 1);
}

void pm_placed_filled(const struct pm_placed *p, float out[4])
{
    const int last = p->rows.count - 1;
    const struct pm_frame before = size_after(p, last);

    if (p->rows.at[last].row->sizing != PM_SIZE_INPUT) {
        pm_placed_window(p, out);
        return;
    }
    out[0] = out[1] = 0;
    out[2] = fminf((float)before.height / (float)p->target.height, 1);
    out[3] = fminf((float)before.width / (float)p->target.width, 1);
}

/* Returns the index of the first resize, or the number of moves if there is none. */
static int first_resize(const struct pm_geometry *g)
{
    int k = 0;

    while (k < g->count && g->move[k].kind != PM_MOVE_RESIZE)
        k++;
    return k;
}

int pm_placed_shrink(const struct pm_placed *p)
{
    const struct pm_geometry *g = &p->geometry;
    const int first = first_resize(g);
    const struct pm_move *m = &g->move[first];
    int shrink = 8;

    if (first == g->count)
        return 1;
    for (int k = 0; k < first; k++)
        if (g->move[k].kind == PM_MOVE_WARP || g->move[k].repeat)
            return 1;
    for (int i = 0; i < p->rows.count; i++)
        if (p->rows.at[i].row->values && p->rows.at[i].moves <= first)
            return 1; /* the row changes pixels of the whole picture */
    const int height = first ? m[-1].height : g->height, width = first ? m[-1].width : g->width;
    while (shrink > 1 && (height / shrink < m->height || width / shrink < m->width))
        shrink /= 2;
    return shrink;
}

void pm_placed_picture(const struct pm_placed *p, const struct pm_image8 *picture, float *out)
{
    const struct pm_target *t = &p->target;
    const bool whole =
        picture->height == p->geometry.height && picture->width == p->geometry.width;
    const struct pm_geometry *g = &p->geometry;
    struct pm_geometry shrunk;
    struct pm_canvas c = pm_canvas_of(pm_view8_of(picture));
    struct pm_scene_objects objects = { 0 };
    float white = 255;
    int done = 0;

    if (!whole) {
        pm_geometry_shrink(g, picture->height, picture->width, pm_placed_shrink(p), &shrunk);
        g = &shrunk;
    }
    if (p->sample)
        pm_scene_open(&objects, p->sample, &p->geometry);
    for (int i = 0; i < p->rows.count; i++) {
        const struct pm_augment_row *s = &p->rows.at[i];
        const struct pm_move *m = s->moves ? &g->move[s->moves - 1] : NULL;
        const bool fits = (m ? m->height : g->height) == t->height &&
                          (m ? m->width : g->width) == t->width &&
                          c.channels == t->channels;

        if (p->sample && i)
            pm_scene_step(&objects, s - 1);
        if (!has_work(s, &c, t->channels))
            continue;
        pm_canvas_move(&c, g, done, s->moves, fits ? out : NULL);
        done = s->moves;
        if (s->row == &pm_row_grey) {
            turn_grey(&c, out);
            continue;
        }
        struct pm_pixel_values x = { c.values, (size_t)c.height * (size_t)c.width, c.channels,
                                     white, c.height, c.width,
                                     s->row->sees_objects ? &objects : NULL };
        s->row->values(s->cfg, s->draws, &x);
        white = x.white;
    }
    pm_scene_close(&objects);
    if (done < g->count)
        pm_canvas_move(&c, g, done, g->count, out);
    if (c.values != out)
        memcpy(out, c.values,
               (size_t)t->height * (size_t)t->width * (size_t)t->channels * sizeof *out);
    pm_canvas_free(&c);
}

int pm_placed_map(const struct pm_placed *p, const struct pm_label *map, int32_t fill, int32_t *out)
{
    const struct pm_geometry *g = &p->geometry;

    if (map->height != g->height || map->width != g->width)
        return pm_fail(
            PM_EDATA,
            "%s: the image is %d x %d and its label is %d x %d: both must have the same size",
            p->target.where, g->height, g->width, map->height, map->width);
    pm_geometry_map(g, map, fill, out);
    return PM_OK;
}

void pm_placed_numbers(const struct pm_placed *p, const struct pm_image8 *numbers, float *out)
{
    struct pm_canvas c = pm_canvas_of(pm_view8_of(numbers));
    struct pm_geometry g = p->geometry;

    for (int k = 0; k < g.count; k++) {
        memset(g.move[k].pad, 0, sizeof g.move[k].pad);
        g.move[k].pad_mean = false;
    }
    pm_canvas_move(&c, &g, 0, g.count, out);
    if (c.values != out)
        memcpy(out, c.values,
               (size_t)c.height * (size_t)c.width * (size_t)c.channels * sizeof *out);
    pm_canvas_free(&c);
}

/* If evaluation's last move is a window, it pads the picture to the input. */
int pm_preprocessing_frame(const struct pm_preprocessing *p, const void *cfg, int image_height,
                           int image_width, int height, int width, bool own_size,
                           const char *where, struct pm_framing *out)
{
    const struct pm_image8 im = { image_height, image_width, 3, NULL };
    const struct pm_occasion o = {
        .height = height, .width = width, .channels = 3, .own_size = own_size, .where = where
    };
    struct pm_placed placed;
    const int err = pm_place_with(p, cfg, NULL, &im, &o, &placed);
    const struct pm_geometry *g = &placed.geometry;

    if (err < 0)
        return err;
    *out = (struct pm_framing){ g->height, g->width };
    for (int k = 0; k < g->count && g->move[k].kind == PM_MOVE_RESIZE; k++)
        *out = (struct pm_framing){ g->move[k].height, g->move[k].width };
    return PM_OK;
}

/* Pads a frame to multiples of a number; 0 keeps it. */
static void pad_frame(struct pm_framing *f, int multiple)
{
    int *const side[2] = { &f->height, &f->width };

    for (int k = 0; multiple > 1 && k < 2; k++)
        *side[k] = (int)(((int64_t)*side[k] + multiple - 1) / multiple * multiple);
}

int pm_preprocessing_own_size(const struct pm_preprocessing *p, const void *cfg, int image_height,
                              int image_width, const char *where, struct pm_frame *out)
{
    struct pm_framing f = { image_height, image_width };
    struct pm_normal n;
    int err = PM_OK;

    PM_TRY(p->normal(cfg, 3, &n));
    if (p->maps || p->resizes)
        PM_TRY(pm_preprocessing_frame(p, cfg, image_height, image_width, INT_MAX, INT_MAX, true,
                                      where, &f));
    pad_frame(&f, n.multiple);
    if ((size_t)f.height * (size_t)f.width > PM_PICTURE_PIXELS)
        PM_TRY(pm_fail(PM_EDATA,
                       "%s: an image of %d x %d, %d x %d when resized: at most %zu pixels are "
                       "possible; set input.max_resize, or eval.resize=true", where,
                       image_height, image_width, f.height, f.width, PM_PICTURE_PIXELS));
    *out = (struct pm_frame){ f.height, f.width };
out:
    return err;
}
