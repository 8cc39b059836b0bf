/* predict: image files through the net, a few pictures at a time. A photo may be cut into tiles
 * (predict.tile): each tile is a picture for the net, and the task merges their predictions. Of the
 * photos only the one that is being cut is in memory. If each picture keeps its own size, files of
 * one frame go through the net together; the report lists all files in their order. */
#include <pumice/report.h>
#include <pumice/train.h>

#include "data/picture_tiles.h"
#include "experiment/net_sizes.h"
#include "jobs/predict_files.h"
#include "jobs/session.h"

#include <cjson/cJSON.h>
#include <string.h>

enum { MOST = 8 }; /* pictures at once */

/* ---- pictures of the net ---------------------------------------------------------------- */

/* A picture for the net: a tile of a file's photo, or the whole. */
struct unit { uint32_t file, tile; };

/* A photo with tiles that are not predicted yet. */
struct photo {
    struct photo *next;
    size_t file;
    struct pm_image8 size;    /* no pixels */
    struct pm_tile_grid grid;
    struct pm_tiled *tiled;   /* owned; NULL: predict.tile is not set */
    size_t left;              /* tiles */
};

struct predictor {
    struct pm_session s;
    struct pm_tiling tiling;  /* sides of 0: whole photos */
    struct unit *units;       /* [units_count], owned: those of a file follow each other */
    size_t units_count, units_capacity, done;
    struct pm_frame_groups groups; /* of the units, if each picture keeps its size; else one */
    struct pm_net_sizes *sizes;
    struct pm_net_of_size now; /* the net of the batch */
    size_t *stride;           /* per output: bytes of one picture; owned */
    const void **values;      /* per output: values of one picture; owned */
    const struct pm_predict_file *files; /* borrowed */
    struct cJSON **object;    /* per file: its part of the report; the list is owned */
    const char *out;
    size_t damaged;           /* files so far that could not be read */
    struct photo *photos;     /* owned list */
    struct photo *open;       /* of the list: the one that is being cut; NULL: none */
    struct pm_image8 pixels;  /* of the open photo */
    struct { struct photo *photo; size_t tile; } slot[MOST]; /* the batch */
    size_t filled;
};

static void name_unit(void *ctx, uint64_t unit, char *out, size_t size)
{
    const struct predictor *p = ctx;

    snprintf(out, size, "%s", p->files[p->units[unit].file].path);
}

/* Takes the net of a frame. */
static int take_net(struct predictor *p, struct pm_frame frame)
{
    int err = PM_OK;

    PM_TRY(pm_net_sizes_get(p->sizes, frame, &p->now));
    const size_t count = (size_t)p->now.outputs.count + 1;
    p->stride = pm_realloc(p->stride, count * sizeof *p->stride);
    p->values = pm_realloc(p->values, count * sizeof *p->values);
    for (int i = 0; i < p->now.outputs.count; i++) {
        const struct pm_node *n = pm_net_find(p->now.net, p->now.outputs.node[i]);

        p->stride[i] =
            pm_shape_count(n->out_shape) / (size_t)p->now.batch * pm_type_size(n->out_type);
    }
out:
    return err;
}

static int read_image(const char *path, int channels, struct pm_image8 *out)
{
    char *bytes = NULL;
    size_t size;
    int err = PM_OK;

    PM_TRY(pm_file_read(path, &bytes, &size));
    PM_TRY(pm_image_decode(bytes, size, channels, 0, path, out));
out:
    pm_free(bytes);
    return err;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
}

/* Length of a path without the ending of its name. */
static int stem_of(const char *path)
{
    const char *name = base_name(path), *dot = strrchr(name, '.');

    return dot && dot > name ? (int)(dot - path) : (int)strlen(path);
}

static bool is_taken(const struct predictor *p, size_t index)
{
    const char *own = p->files[index].below;
    const int length = stem_of(own);

    for (size_t i = 0; i < index; i++)
        if (stem_of(p->files[i].below) == length &&
            strncmp(own, p->files[i].below, (size_t)length) == 0)
            return true;
    return false;
}

/* OUT/FOLDERS/NAME.png: the folders below the named one, NAME without its ending, and what the
 * picture is called behind it. Of pictures of one name the later ones get their place in the list
 * before it. */
static int write_picture(const struct predictor *p, size_t index, bool taken,
                         const struct pm_drawing *picture)
{
    const char *below = p->files[index].below, *name = base_name(below);
    const int folders = (int)(name - below);
    struct pm_str path = { 0 };
    uint8_t *png = NULL;
    size_t size;
    int err = PM_OK;

    pm_str_add(&path, "%s/%.*s", p->out, folders, below);
    PM_TRY(pm_make_folders(path.text));
    if (taken)
        pm_str_add(&path, "%zu-", index);
    pm_str_add(&path, "%.*s%s.png", stem_of(below) - folders, name, picture->what);
    PM_TRY(pm_image_encode_png(&picture->image, &png, &size));
    PM_TRY(pm_file_write(path.text, png, size));
out:
    pm_str_free(&path);
    pm_free(png);
    return err;
}

/* ---- predictions ------------------------------------------------------------------------ */

/* Presents a photo: its tiles, or the values of the whole. */
static int present(const struct predictor *p, struct photo *of)
{
    const struct pm_task_row *row = p->s.e->task_row;
    const char *path = p->files[of->file].path;
    struct pm_image8 picture = of->size;
    struct pm_drawings drawings = { 0 }, *draw = p->out ? &drawings : NULL;
    int err = PM_OK;

    if (p->out)
        PM_TRY(read_image(path, 3, &picture));
    if (of->tiled)
        PM_TRY(row->tiled_present(of->tiled, path, &picture, p->object[of->file], draw));
    else
        PM_TRY(row->present(p->s.e->task, p->now.frame, p->values, &picture, p->object[of->file],
                            draw));
    const bool taken = p->out && is_taken(p, of->file);
    for (size_t k = 0; k < drawings.count; k++)
        PM_TRY(write_picture(p, of->file, taken, &drawings.list[k]));
out:
    pm_drawings_free(&drawings);
    pm_image_free(&picture);
    return err;
}

/* Frees a photo of the list. */
static void drop_photo(struct predictor *p, struct photo *of)
{
    struct photo **at = &p->photos;

    while (*at != of)
        at = &(*at)->next;
    *at = of->next;
    if (p->open == of) {
        pm_image_free(&p->pixels);
        p->open = NULL;
    }
    if (of->tiled)
        p->s.e->task_row->tiled_destroy(&of->tiled);
    pm_free(of);
}

/* i: place in the batch. Presents the photo after its last tile. */
static int show(struct predictor *p, size_t i)
{
    struct photo *of = p->slot[i].photo;
    int err = PM_OK;

    for (int k = 0; k < p->now.outputs.count; k++)
        p->values[k] = (const char *)pm_plan_output(p->now.plan, 0, p->now.outputs.node[k], 0) +
                       i * p->stride[k];
    if (of->tiled)
        PM_TRY(p->s.e->task_row->tiled_add(of->tiled, p->now.frame, p->values, p->slot[i].tile));
    if (--of->left > 0)
        goto out;
    PM_TRY(present(p, of));
    drop_photo(p, of);
out:
    return err;
}

static size_t floats_of(const struct predictor *p)
{
    return (size_t)p->now.frame.height * (size_t)p->now.frame.width *
           (size_t)p->s.e->facts.channels;
}

/* The input "windows" of the net; NULL: it has none. */
static float *windows_of(const struct predictor *p)
{
    return pm_net_find(p->now.net, "windows") ? pm_plan_input(p->now.plan, 0, "windows", 0) : NULL;
}

/* Predicts the pictures of the batch, and empties it. */
static int run_batch(struct predictor *p)
{
    const size_t floats = floats_of(p), rest = (size_t)p->now.batch - p->filled;
    float *in = pm_plan_input(p->now.plan, 0, "images", 0), *windows = windows_of(p);
    int err = PM_OK;

    if (p->filled == 0)
        return PM_OK;
    memset(in + p->filled * floats, 0, rest * floats * sizeof *in);
    if (windows)
        memset(windows + 4 * p->filled, 0, 4 * rest * sizeof *windows);
    PM_TRY(pm_plan_submit(p->now.plan, 0));
    PM_TRY(pm_plan_wait(p->now.plan, 0));
    for (size_t i = 0; i < p->filled; i++)
        PM_TRY(show(p, i));
    p->filled = 0;
out:
    return err;
}

/* ---- cutting ---------------------------------------------------------------------------- */

/* Finds the frame of a picture of this size. */
static int frame_of(const struct predictor *p, const char *file, int height, int width,
                    struct pm_frame *out)
{
    const struct pm_occasion o = { .where = file };

    return p->s.e->task_row->frame(p->s.e->task, &o, height, width, out);
}

/* Returns PM_EDATA if the photo's header promised another frame or number of tiles. */
static int check_header(const struct predictor *p, const char *file,
                        const struct pm_tile_grid *grid, size_t tiles)
{
    struct pm_frame needs = p->now.frame;
    int err = PM_OK;

    if (p->s.e->facts.own_sizes)
        PM_TRY(frame_of(p, file, grid->side[0], grid->side[1], &needs));
    if (needs.height != p->now.frame.height || needs.width != p->now.frame.width ||
        pm_tile_count(grid) != tiles)
        PM_TRY(pm_fail(PM_EDATA, "%s: the picture's header and its pixels differ in size. Export "
                       "it again, or remove it", file));
out:
    return err;
}

/* tiles: units of the file. */
static int open_photo(struct predictor *p, size_t file, size_t tiles)
{
    const int channels = p->s.e->facts.channels;
    const char *path = p->files[file].path;
    struct pm_image8 *x = &p->pixels;
    struct pm_tile_grid grid;
    struct photo *of;
    int err = PM_OK;

    PM_TRY(read_image(path, channels == 1 ? PM_GREY_OR_COLOR : channels, x));
    PM_TRY(pm_tile_grid_of(&p->tiling, x->height, x->width, path, &grid));
    PM_TRY(check_header(p, path, &grid, tiles));
    of = pm_malloc(sizeof *of);
    *of = (struct photo){ p->photos, file, { x->height, x->width, x->channels, NULL }, grid, NULL,
                          pm_tile_count(&grid) };
    if (p->tiling.side[0] > 0)
        of->tiled = p->s.e->task_row->tiled_create(p->s.e->task, &grid);
    p->photos = p->open = of;
out:
    if (err < 0)
        pm_image_free(x);
    return err;
}

/* Copies a tile of the photo. */
static void cut(const struct pm_image8 *photo, struct pm_tile tile, struct pm_image8 *out)
{
    const size_t pixel = (size_t)photo->channels, row = (size_t)tile.width * pixel;
    const size_t photo_row = (size_t)photo->width * pixel;
    const uint8_t *from = photo->pixels + (size_t)tile.y * photo_row + (size_t)tile.x * pixel;

    *out = (struct pm_image8){ tile.height, tile.width, photo->channels,
                               pm_malloc((size_t)tile.height * row) };
    for (int y = 0; y < tile.height; y++)
        memcpy(out->pixels + (size_t)y * row, from + (size_t)y * photo_row, row);
}

/* Writes a tile of the open photo as the net wants it, at the end of the batch. */
static int prepare(const struct predictor *p, size_t tile)
{
    const struct pm_task_facts *s = &p->s.e->facts;
    const struct pm_occasion o = { .height = p->now.frame.height, .width = p->now.frame.width,
                                   .channels = s->channels, .own_size = s->own_sizes,
                                   .where = p->files[p->open->file].path };
    float *in = pm_plan_input(p->now.plan, 0, "images", 0), *windows = windows_of(p);
    const bool whole = pm_tile_count(&p->open->grid) == 1;
    struct pm_image8 part = { 0 };
    struct pm_placed placed;
    int err = PM_OK;

    if (!whole)
        cut(&p->pixels, pm_tile_at(&p->open->grid, tile), &part);
    const struct pm_image8 *picture = whole ? &p->pixels : &part;
    PM_TRY(pm_place_with(s->preprocessing, s->preprocessing_cfg, NULL, picture, &o, &placed));
    pm_placed_picture(&placed, picture, in + p->filled * floats_of(p));
    if (windows)
        pm_placed_window(&placed, windows + 4 * p->filled);
out:
    pm_image_free(&part);
    return err;
}

/* A file that is no picture, or damaged, is reported and skipped. */
static int skip_damaged(struct predictor *p, size_t file, int err)
{
    if (err != PM_EDATA)
        return err;
    PM_WARN("predict", "%s", pm_error_text());
    cJSON_AddStringToObject(p->object[file], "error", pm_error_text());
    p->damaged++;
    if (p->open)
        drop_photo(p, p->open);
    return PM_OK;
}

/* Adds a unit to the batch, and predicts the batch when it is full. tiles: units of its file. The
 * units of a file that is skipped do nothing: no photo is open. */
static int add_unit(struct predictor *p, const struct unit *u, size_t tiles)
{
    int err = PM_OK;

    if (u->tile == 0 && (err = open_photo(p, u->file, tiles)) < 0)
        return skip_damaged(p, u->file, err);
    if (!p->open)
        return PM_OK;
    err = prepare(p, u->tile);
    if (err < 0 && u->tile == 0) /* the further tiles have the same size */
        return skip_damaged(p, u->file, err);
    PM_TRY(err);
    p->slot[p->filled].photo = p->open;
    p->slot[p->filled++].tile = u->tile;
    if (u->tile + 1 == tiles) {
        pm_image_free(&p->pixels);
        p->open = NULL;
    }
    if (p->filled == (size_t)p->now.batch)
        PM_TRY(run_batch(p));
out:
    return err;
}

/* ---- all files -------------------------------------------------------------------------- */

/* Finds the tiles of a file, and their frame if pictures keep their sizes, from its header. */
static int measure(const struct predictor *p, const char *file, struct pm_tile_grid *grid,
                   struct pm_frame *out)
{
    char *bytes = NULL;
    size_t size;
    int height, width, err = PM_OK;

    PM_TRY(pm_file_read(file, &bytes, &size));
    PM_TRY(pm_image_measure(bytes, size, 0, file, &height, &width));
    PM_TRY(pm_tile_grid_of(&p->tiling, height, width, file, grid));
    if (p->s.e->facts.own_sizes)
        PM_TRY(frame_of(p, file, grid->side[0], grid->side[1], out));
out:
    pm_free(bytes);
    return err;
}

/* Lists the units, and groups them by frame. A file without one joins another's; predicting it
 * reports the error. If pictures are brought to one size, all units are one group. */
static int list_units(struct predictor *p, size_t files)
{
    const bool measured = p->s.e->facts.own_sizes || p->tiling.side[0] > 0;
    struct pm_frame *frames = NULL;
    size_t capacity = 0;
    int err = PM_OK;

    for (size_t i = 0; i < files; i++) {
        struct pm_tile_grid grid = { .count = { 1, 1 } };
        struct pm_frame frame = { 0 };

        if (measured && (err = measure(p, p->files[i].path, &grid, &frame)) < 0) {
            if (err != PM_EDATA && p->tiling.side[0] > 0)
                goto out;
            grid = (struct pm_tile_grid){ .count = { 1, 1 } };
            frame = (struct pm_frame){ 0 };
        }
        for (size_t k = 0; k < pm_tile_count(&grid); k++) {
            PM_GROW(p->units, p->units_count, p->units_capacity);
            PM_GROW(frames, p->units_count, capacity);
            frames[p->units_count] = frame;
            p->units[p->units_count++] = (struct unit){ (uint32_t)i, (uint32_t)k };
        }
    }
    err = PM_OK;
    pm_frame_groups_of(frames, p->units_count, pm_experiment_frame(p->s.e, false), &p->groups);
out:
    pm_free(frames);
    return err;
}

static int open_nets(struct predictor *p, size_t files, int batch)
{
    const struct pm_task_row *row = p->s.e->task_row;
    int err = PM_OK;

    if (row->tiling)
        PM_TRY(row->tiling(p->s.e->task, &p->tiling));
    PM_TRY(list_units(p, files));
    PM_TRY(pm_net_sizes_create(&(struct pm_net_sizes_options){
        .e = p->s.e, .device = p->s.device, .variables = p->s.variables, .use = PM_USE_PREDICT,
        .batch = batch, .slots = 1, .groups = p->s.e->facts.own_sizes ? &p->groups : NULL,
        .name = name_unit, .ctx = p }, &p->sizes));
out:
    return err;
}

static void add_objects(struct predictor *p, size_t count, struct cJSON *report)
{
    struct cJSON *images = cJSON_AddArrayToObject(report, "images");

    p->object = pm_calloc(count, sizeof(struct cJSON *));
    for (size_t i = 0; i < count; i++) {
        p->object[i] = cJSON_CreateObject();
        cJSON_AddItemToArray(images, p->object[i]);
        cJSON_AddStringToObject(p->object[i], "file", p->files[i].path);
    }
}

/* Returns the number of units of a unit's file: it follows the last one's number. */
static size_t tiles_of(const struct predictor *p, size_t unit)
{
    while (unit + 1 < p->units_count && p->units[unit + 1].file == p->units[unit].file)
        unit++;
    return (size_t)p->units[unit].tile + 1;
}

static int predict_group(struct predictor *p, const struct pm_frame_group *g,
                         struct pm_progress *bar)
{
    size_t tiles = 0;
    int err = PM_OK;

    PM_TRY(take_net(p, g->frame));
    for (uint64_t at = 0; at < g->count; at++) {
        const size_t unit = (size_t)p->groups.order[g->first + at];

        if (p->units[unit].tile == 0)
            tiles = tiles_of(p, unit);
        PM_TRY(add_unit(p, &p->units[unit], tiles));
        p->done++;
        if (bar && p->filled == 0)
            pm_progress_count(bar, p->done, p->done, -1);
    }
    PM_TRY(run_batch(p));
    if (bar)
        pm_progress_count(bar, p->done, p->done, -1);
out:
    return err;
}

static void end(struct predictor *p)
{
    while (p->photos)
        drop_photo(p, p->photos);
    pm_net_sizes_destroy(&p->sizes);
    pm_frame_groups_free(&p->groups);
    pm_free(p->units);
    pm_free(p->object);
    pm_free(p->stride);
    pm_free(p->values);
    pm_session_close(&p->s);
}

int pm_predict(const struct pm_config *c, const char *const *paths, size_t count, const char *out,
               struct cJSON *report)
{
    struct predictor p = { .out = out };
    struct pm_predict_files f = { 0 };
    struct pm_progress *bar = NULL;
    const int batch = c->eval.batch_size < MOST ? c->eval.batch_size : MOST;
    int err = PM_OK;

    PM_TRY(pm_predict_files_open(paths, count, out, &f));
    pm_predict_files_report(&f, report);
    if (f.count == 0)
        PM_TRY(pm_fail(PM_EDATA,
                       "no image files (" PM_IMAGE_ENDINGS ") in the given files and folders"));
    PM_TRY(pm_predict_files_check_out(&f));
    p.files = f.list;
    PM_TRY(pm_session_open(c, false, (struct pm_net_want){ PM_USE_PREDICT, batch, 0, 0 }, &p.s));
    PM_TRY(open_nets(&p, f.count, batch));
    if (out)
        PM_TRY(pm_make_folders(out));
    pm_session_add_step(&p.s, report);
    add_objects(&p, f.count, report);
    if (p.units_count > (size_t)batch)
        bar = pm_progress_start(&(struct pm_progress_options){
            .what = "predict", .unit = p.tiling.side[0] > 0 ? "tile" : "picture",
            .speed = p.tiling.side[0] > 0 ? "tiles" : NULL, .last = p.units_count });
    for (size_t k = 0; k < p.groups.count; k++)
        PM_TRY(predict_group(&p, &p.groups.list[k], bar));
    cJSON_AddNumberToObject(report, "damaged", (double)p.damaged);
out:
    pm_progress_end(&bar);
    end(&p);
    pm_predict_files_close(&f);
    return err;
}
