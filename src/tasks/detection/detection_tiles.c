/* detection_tiles: the options of predict.tile, and the detections of a photo's tiles. */
#include "tasks/detection/detection_tiles.h"

#include "data/coco_mask.h"
#include "tasks/detection/detection_rotated.h"
#include "tasks/detection/tile_merge.h"

#include <cjson/cJSON.h>
#include <string.h>

/* ---- options ------------------------------------------------------------------------------- */

struct predict_cfg { struct pm_ints tile, overlap; };

const struct pm_opt pm_detection_predict_opts[] = {
    PM_INTS(predict_cfg, tile, "0", 0, 16384,
            "detection: predict cuts photos into tiles of this size, one side or [height, width] "
            "in pixels of the photo, and merges their detections; 0 = whole photos"),
    PM_INTS(predict_cfg, overlap, NULL, 0, 16383,
            "detection: overlap of neighbouring tiles at least, one number or [height, width] in "
            "pixels of the photo; make it as large as the largest object, and smaller than the "
            "tile; null = a quarter of the tile"),
    { 0 },
};

static int at(struct pm_ints v, int axis)
{
    return v.v[v.count > 1 ? axis : 0];
}

static int check_count(const struct pm_config *c, const char *key, struct pm_ints v)
{
    if (v.count <= 2)
        return PM_OK;
    return pm_fail(PM_ECONFIG, "%s: %d numbers, but one number of pixels or [height, width] is "
                   "needed: remove the others", pm_detection_place(c, key), v.count);
}

static int set_overlap(const struct pm_config *c, struct pm_ints v, struct pm_tiling *out)
{
    for (int k = 0; k < 2; k++) {
        out->overlap[k] = v.count ? at(v, k) : out->side[k] / 4;
        if (out->overlap[k] >= out->side[k])
            return pm_fail(PM_ECONFIG, "%s: %d is outside 0..%d, because predict.tile has a side "
                           "of %d pixels: lower it, or raise predict.tile",
                           pm_detection_place(c, "predict.overlap"), out->overlap[k],
                           out->side[k] - 1, out->side[k]);
    }
    return PM_OK;
}

int pm_detection_read_tiling(const struct pm_config *c, struct pm_tiling *out)
{
    struct predict_cfg p;
    int err = PM_OK;

    *out = (struct pm_tiling){ .side = { 0 } };
    PM_TRY(pm_config_read(c, "predict", pm_detection_predict_opts, &p));
    PM_TRY(check_count(c, "predict.tile", p.tile));
    PM_TRY(check_count(c, "predict.overlap", p.overlap));
    for (int k = 0; k < 2 && p.tile.count; k++)
        out->side[k] = at(p.tile, k);
    if ((out->side[0] == 0) != (out->side[1] == 0))
        PM_TRY(pm_fail(PM_ECONFIG, "%s: [%d, %d], but both sides must be 1..16384, or both 0 for "
                       "whole photos: set both", pm_detection_place(c, "predict.tile"),
                       out->side[0], out->side[1]));
    if (out->side[0])
        PM_TRY(set_overlap(c, p.overlap, out));
    else if (p.overlap.count)
        PM_TRY(pm_fail(PM_ECONFIG, "%s: %d has no effect without predict.tile: set that to "
                       "1..16384 pixels, or remove this key",
                       pm_detection_place(c, "predict.overlap"), p.overlap.v[0]));
out:
    return err;
}

int pm_detection_tiling(const struct pm_task *t, struct pm_tiling *out)
{
    return pm_detection_read_tiling(t->facts.config, out);
}

/* ---- the detections of a photo ------------------------------------------------------------- */

struct pm_tiled {
    const struct pm_task *t; /* borrowed */
    struct pm_tile_grid grid;
    struct pm_box_detection *list; /* [count], owned; in pixels of the photo; mask, points: unset */
    size_t count, capacity;
    size_t *tile;                  /* [count], owned */
    struct pm_runs *masks;         /* [count], owned: in the size of the photo; NULL: none */
    double *points;                /* [count][points][2], owned; NULL: none */
    bool *has_points;              /* [count], owned */
    float *point_scores;           /* [count][points], owned; NULL: none */
};

struct pm_tiled *pm_detection_tiled_create(const struct pm_task *t, const struct pm_tile_grid *grid)
{
    struct pm_tiled *p = pm_calloc(1, sizeof *p);

    p->t = t;
    p->grid = *grid;
    return p;
}

void pm_detection_tiled_destroy(struct pm_tiled **p)
{
    if (!*p)
        return;
    for (size_t k = 0; (*p)->masks && k < (*p)->count; k++)
        pm_runs_free(&(*p)->masks[k]);
    pm_free((*p)->masks);
    pm_free((*p)->list);
    pm_free((*p)->tile);
    pm_free((*p)->points);
    pm_free((*p)->has_points);
    pm_free((*p)->point_scores);
    pm_free(*p);
    *p = NULL;
}

/* Makes room for `more` detections. */
static void reserve(struct pm_tiled *p, size_t more)
{
    const size_t each = (size_t)p->t->points;
    size_t room = p->capacity ? p->capacity : 64;

    if (p->count + more <= p->capacity)
        return;
    while (room < p->count + more)
        room *= 2;
    p->capacity = room;
    p->list = pm_realloc(p->list, room * sizeof *p->list);
    p->tile = pm_realloc(p->tile, room * sizeof *p->tile);
    if (p->t->mask_height > 0)
        p->masks = pm_realloc(p->masks, room * sizeof *p->masks);
    if (each > 0) {
        p->points = pm_realloc(p->points, room * 2 * each * sizeof *p->points);
        p->has_points = pm_realloc(p->has_points, room * sizeof *p->has_points);
    }
    if (p->t->point_scores)
        p->point_scores = pm_realloc(p->point_scores, room * each * sizeof *p->point_scores);
}

static void add_points(struct pm_tiled *p, const struct pm_detection_found *f, int i,
                       const struct pm_tile *tile)
{
    const size_t each = (size_t)p->t->points;
    double *points = p->points + 2 * each * p->count;

    p->has_points[p->count] = f->list[i].points != NULL;
    for (size_t k = 0; k < 2 * each; k++)
        points[k] = f->points[2 * each * (size_t)i + k] + (k % 2 ? tile->x : tile->y);
    if (p->point_scores)
        memcpy(p->point_scores + each * p->count, f->point_scores[i], each * sizeof(float));
}

/* The upright box around a rotated one was cut at the tile's border. Cuts it at the photo's border
 * instead. It stays as it is if the part inside is thinner than a rounding of a coordinate. */
static void enclose(const struct pm_tiled *p, struct pm_box_detection *d)
{
    const struct pm_rectangle r = pm_rectangle_of_pixels(d->rotated);

    pm_detection_set_rotated(&r, p->grid.size[0], p->grid.size[1], &d->box, d->rotated);
}

int pm_detection_tiled_add(struct pm_tiled *p, struct pm_frame frame, const void *const *outputs,
                           size_t index)
{
    const struct pm_tile tile = pm_tile_at(&p->grid, index);
    const struct pm_detection_picture of = { frame, tile.height, tile.width, outputs,
                                             PM_USE_PREDICT, 0 };
    struct pm_detection_found f = { 0 };
    int err = PM_OK;

    PM_TRY(pm_detection_read(p->t, &of, &f));
    reserve(p, (size_t)f.count);
    for (int i = 0; i < f.count; i++, p->count++) {
        struct pm_box_detection *d = &p->list[p->count];

        *d = f.list[i];
        d->mask = NULL, d->points = NULL;
        for (int k = 0; k < 4; k++)
            d->box.v[k] += k % 2 ? tile.x : tile.y;
        d->rotated[0] += tile.y;
        d->rotated[1] += tile.x;
        if (p->t->rotated)
            enclose(p, d);
        p->tile[p->count] = index;
        if (p->masks)
            pm_runs_move(&f.masks[i], tile.y, tile.x, p->grid.size[0], p->grid.size[1],
                         &p->masks[p->count]);
        if (p->points)
            add_points(p, &f, i, &tile);
    }
out:
    pm_detection_found_free(&f);
    return err;
}

/* ---- merging ------------------------------------------------------------------------------- */

/* Tiles come in the order in which they were cut, so their indices ascend. */
static size_t merge(struct pm_tiled *p, size_t *kept, size_t *over)
{
    const struct pm_task *t = p->t;
    double *least = pm_malloc((size_t)t->facts.num_classes * sizeof *least);
    const struct pm_tile_merging m = {
        .grid = &p->grid, .geometry = pm_box_geometry_of(t->rotated),
        .iou_threshold = (double)t->post.iou_threshold,
        .class_agnostic = t->post.use_class_agnostic_nms, .classes = t->facts.num_classes,
        .max_per_class = t->post.use_class_agnostic_nms ? t->post.max_total_detections
                                                        : t->post.max_detections_per_class,
        .max_total = t->post.max_total_detections, .least = least,
    };

    for (int k = 0; k < t->facts.num_classes; k++)
        least[k] = pm_detection_threshold(t, k);
    const size_t count = pm_tile_merge(&m, p->list, p->tile, p->count, kept, over);
    pm_free(least);
    return count;
}

/* Sets found to these detections. Their masks and points are those of p. */
static void choose(const struct pm_tiled *p, const size_t *kept, size_t count,
                   struct pm_detection_found *found)
{
    const size_t each = (size_t)p->t->points;

    *found = (struct pm_detection_found){ .count = (int)count };
    found->list = pm_malloc((count + 1) * sizeof *found->list);
    if (p->point_scores)
        found->point_scores = pm_malloc((count + 1) * sizeof *found->point_scores);
    for (size_t i = 0; i < count; i++) {
        const size_t k = kept[i];

        found->list[i] = p->list[k];
        if (p->masks)
            found->list[i].mask = &p->masks[k];
        if (p->points && p->has_points[k])
            found->list[i].points = p->points + 2 * each * k;
        if (p->point_scores)
            found->point_scores[i] = p->point_scores + each * k;
    }
}

int pm_detection_tiled_present(struct pm_tiled *p, const char *where,
                               const struct pm_image8 *picture, struct cJSON *object,
                               struct pm_drawings *drawings)
{
    const int *side = p->grid.side;
    size_t *kept = pm_malloc((p->count + 1) * sizeof *kept), over;
    const size_t count = merge(p, kept, &over);
    struct pm_detection_found found;
    int err;

    if (over > 0)
        PM_WARN("predict", "%s: %zu more boxes above eval.score_threshold, but "
                "model.post_processing allows %d per class and %d in all for the whole photo: "
                "raise max_detections_per_class and max_total_detections", where, over,
                p->t->post.max_detections_per_class, p->t->post.max_total_detections);
    choose(p, kept, count, &found);
    cJSON_AddNumberToObject(object, "tiles", (double)pm_tile_count(&p->grid));
    err = pm_detection_show(p->t, &found, picture, side[0] > side[1] ? side[0] : side[1], object,
                            drawings);
    pm_free(found.list);
    pm_free(found.point_scores);
    pm_free(kept);
    return err;
}
