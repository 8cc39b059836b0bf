/* dota: DOTA's aerial photos with rotated boxes of four corners. A label file has two header lines,
 * imagesource:NAME and gsd:METRES, and a line for each object: x1 y1 x2 y2 x3 y3 x4 y4 class
 * difficult. Photos have thousands of pixels a side, so `size` cuts them into tiles that overlap.
 * A tile gets an object if it shows at least the share `inside` of its area, as DOTA's own tools
 * cut. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/pair_records.h"
#include "data/rotated_box.h"

struct dota_cfg {
    struct pm_detection_cfg common;
    int size, overlap;
    double inside, scale;
    bool empty;
};

static const struct pm_opt opts[] = {
    PM_INT(dota_cfg, size, 0, 0, 65536,
           "cut pictures into tiles of so many pixels a side; 0 = whole pictures"),
    PM_INT(dota_cfg, overlap, 256, 0, 65535, "pixels that neighbouring tiles share"),
    PM_DOUBLE(dota_cfg, inside, 0.7, 0, 1,
              "a tile gets an object if it shows at least this share of the object's area"),
    PM_BOOL(dota_cfg, empty, false, "keep tiles without objects"),
    PM_DOUBLE(dota_cfg, scale, 1, 1e-6, 1e6,
              "multiply the numbers of the labels, for pictures that were resized: their width "
              "divided by that of the labelled picture"),
    PM_OPT_UNANNOTATED(PM_UNANNOTATED_ERROR),
    PM_OPTS_DETECTION,
    { 0 },
};

/* An object of one picture, in pixels of it. */
struct object {
    double corner[PM_CORNERS][2];
    struct pm_rectangle box; /* around them */
    int class;
    bool difficult, kept;
    unsigned line;
};

struct job {
    const struct dota_cfg *cfg;
    struct pm_annotations s;
    struct pm_arena *arena; /* of s */
    struct object *object;  /* of one picture; add_all frees it */
    size_t count, capacity;
    const char *sensor; /* of the picture */
    double gsd;
    size_t tiles, empty, lost; /* lost: objects that no tile has */
    const char *first_lost;
};

/* ---- label files ----------------------------------------------------------------------------- */

enum { MOST_WORDS = 16 };
static const char form[] = "a line is x1 y1 x2 y2 x3 y3 x4 y4 class difficult";

/* A header line; false: it is none. */
static bool take_header(struct job *j, const char *line)
{
    static const char source[] = "imagesource:", gsd[] = "gsd:";
    double v = 0;

    if (!strncmp(line, source, strlen(source))) {
        const char *name = line + strlen(source) + strspn(line + strlen(source), " \t");

        j->sensor = name[0] && pm_is_line(name) ? pm_arena_strdup(j->arena, name) : NULL;
        return true;
    }
    if (strncmp(line, gsd, strlen(gsd)))
        return false;
    j->gsd = pm_number_in_text(line + strlen(gsd), &v) && v > 0 && v < 1e6 ? v : 0;
    return true; /* "gsd:null" and "gsd:None" occur */
}

static int take_corners(const struct job *j, char *const words[], const char *where,
                        unsigned line, struct object *o)
{
    static const double most = 1e7;

    for (int k = 0; k < 2 * PM_CORNERS; k++) {
        double v = 0;

        if (!pm_number_in_text(words[k], &v) || fabs(v) > most)
            return pm_fail(PM_EDATA, "%s:%u: number %d is \"%.40s\"; %s, in pixels", where, line,
                           k + 1, words[k], form);
        o->corner[k / 2][1 - k % 2] = v * j->cfg->scale;
    }
    pm_rectangle_of_corners(o->corner, &o->box);
    return PM_OK;
}

static int take_object(struct job *j, char *text, const char *where, unsigned line)
{
    char *words[MOST_WORDS + 1], *save = NULL;
    struct object o = { .line = line };
    double number = 0;
    int count = 0, err = PM_OK;

    for (char *w = strtok_r(text, " \t,", &save); w; w = strtok_r(NULL, " \t,", &save))
        if (count <= MOST_WORDS)
            words[count++] = w;
    if (count == 0)
        return PM_OK;
    if ((count == 11 || count == 12) && pm_number_in_text(words[8], &number) &&
        pm_number_in_text(words[9], &number))
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: has five points, but a rotated box has four corners; %s: "
                       "remove a point", where, line, form));
    if (count < 9 || count > 10)
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: has %s%d words; %s", where, line,
                       count > MOST_WORDS ? "more than " : "",
                       count > MOST_WORDS ? MOST_WORDS : count, form));
    PM_TRY(take_corners(j, words, where, line, &o));
    if (count == 10 && (strspn(words[9], "012") != 1 || words[9][1]))
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: difficult is \"%.40s\"; write 0, 1 or 2", where, line,
                       words[9]));
    o.difficult = count == 10 && words[9][0] != '0';
    PM_TRY(o.class = pm_annotations_class(&j->s, words[8], where, line));
    PM_GROW(j->object, j->count, j->capacity);
    j->object[j->count++] = o;
    err = PM_OK;
out:
    return err;
}

static int read_labels(struct job *j, const char *where)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;
    struct pm_arena *page = pm_arena_create();

    PM_TRY(pm_lines_of(page, where, &lines, &count));
    for (size_t i = 0; i < count; i++)
        if (j->count || !take_header(j, lines[i]))
            PM_TRY(take_object(j, lines[i], where, (unsigned)i + 1));
out:
    pm_arena_destroy(&page);
    return err;
}

/* ---- pictures and tiles ---------------------------------------------------------------------- */

static void add_picture(struct job *j, struct pm_annotated of)
{
    of.sensor = j->sensor;
    of.gsd = (float)j->gsd;
    pm_annotations_picture(&j->s, of);
}

/* Adds an object to the last picture, relative to the pixel y, x. */
static void add_object(struct job *j, const struct object *o, int y, int x)
{
    double *corners = pm_arena_alloc(j->arena, 2 * PM_CORNERS * sizeof *corners);

    for (int k = 0; k < PM_CORNERS; k++) {
        corners[2 * k] = o->corner[k][0] - y;
        corners[2 * k + 1] = o->corner[k][1] - x;
    }
    pm_annotations_object(&j->s, (struct pm_annotated_object){
        .corners = corners, .class = o->class, .line = o->line,
        .marks = o->difficult ? PM_MARK_DIFFICULT : 0 });
}

static double share_in(const struct object *o, const int window[4])
{
    struct pm_rectangle r = o->box;

    r.cy -= window[0], r.cx -= window[1];
    return pm_rectangle_inside(&r, window[2], window[3]);
}

/* The size of the upright picture, from its header. */
static int measure(const char *path, int *height, int *width)
{
    char *data = NULL;
    size_t size = 0;
    int err = PM_OK;

    PM_TRY(pm_file_read(path, &data, &size));
    PM_TRY(pm_image_measure(data, size, 0, path, height, width));
out:
    pm_free(data);
    return err;
}

static void add_tile(struct job *j, struct pm_annotated of, const int window[4])
{
    const char *stem = pm_stem(j->arena, of.filename);
    size_t inside = 0;

    for (size_t i = 0; i < j->count; i++)
        inside += share_in(&j->object[i], window) >= j->cfg->inside;
    if (!inside && !j->cfg->empty) {
        j->empty++;
        return;
    }
    j->tiles++;
    memcpy(of.window, window, sizeof of.window);
    of.filename = pm_arena_printf(j->arena, "%s__%d__%d___%d.%s", stem, j->cfg->size, window[1],
                                  window[0],
                                  pm_ends_with(of.filename, ".jpg") ? "jpg" : "png");
    add_picture(j, of);
    for (size_t i = 0; i < j->count; i++)
        if (share_in(&j->object[i], window) >= j->cfg->inside) {
            add_object(j, &j->object[i], window[0], window[1]);
            j->object[i].kept = true;
        }
}

enum { LEAST_TILE = 16 };

/* First pixel of tile k; the last tile ends at the border. */
static int tile_at(const struct dota_cfg *c, int k, int side)
{
    const int at = k * (c->size - c->overlap);

    return at + c->size < side ? at : side > c->size ? side - c->size : 0;
}

static int tiles_of(const struct dota_cfg *c, int side)
{
    const int step = c->size - c->overlap;

    return side > c->size ? (side - c->size + step - 1) / step + 1 : 1;
}

/* Refuses labels of a larger picture, before the tiles drop them. */
static int check_inside(const struct job *j, const struct pm_annotated *of, const int whole[4])
{
    size_t outside = 0;

    for (size_t i = 0; i < j->count; i++)
        outside += !(share_in(&j->object[i], whole) > 0);
    if (2 * outside <= j->count)
        return PM_OK;
    return pm_fail(PM_EDATA, "%s: %zu of %zu boxes are outside of %s, which has %d x %d pixels, so "
                   "the labels are of another picture: %s", of->where, outside, j->count, of->path,
                   whole[3], whole[2], j->s.too_large);
}

static int cut(struct job *j, struct pm_annotated of)
{
    const struct dota_cfg *c = j->cfg;
    int whole[4] = { 0 }, err = measure(of.path, &whole[2], &whole[3]);

    if (err < 0 && pm_picture_failed(err, c->common.bad) == 0) {
        PM_WARN("data", "%s; skipped", pm_error_text());
        return PM_OK;
    }
    PM_TRY(err);
    PM_TRY(check_inside(j, &of, whole));
    const int down = tiles_of(c, whole[2]), across = tiles_of(c, whole[3]);

    for (int y = 0; y < down; y++)
        for (int x = 0; x < across; x++) {
            const int window[4] = { tile_at(c, y, whole[2]), tile_at(c, x, whole[3]),
                                    whole[2] < c->size ? whole[2] : c->size,
                                    whole[3] < c->size ? whole[3] : c->size };

            add_tile(j, of, window);
        }
    for (size_t i = 0; i < j->count; i++)
        if (!j->object[i].kept && share_in(&j->object[i], whole) > 0 && j->lost++ == 0)
            j->first_lost = pm_arena_printf(j->arena, "%s:%u", of.where, j->object[i].line);
out:
    return err;
}

static int add_source(struct job *j, const struct pm_source *picture, const char *labels)
{
    int err = PM_OK;
    const char *where = pm_arena_printf(j->arena, "%s/%s.txt", labels,
                                        pm_stem(j->arena, picture->name));
    const struct pm_annotated of = { .path = picture->path, .filename = picture->name,
                                     .where = where };

    j->count = 0;
    j->sensor = NULL;
    j->gsd = 0;
    j->s.photos += j->cfg->size > 0;
    if (pm_file_exists(where)) {
        PM_TRY(read_labels(j, where));
    } else {
        PM_TRY(pm_annotations_missing(&j->s, j->cfg->common.unannotated, picture->path,
                                      pm_arena_printf(j->arena, "%s does not exist", where)));
        if (err == 0)
            return PM_OK;
    }
    if (j->cfg->size)
        return cut(j, of);
    add_picture(j, of);
    for (size_t i = 0; i < j->count; i++)
        add_object(j, &j->object[i], 0, 0);
    err = PM_OK;
out:
    return err;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* Adds pictures first..first + count - 1 of a list; shuffled: in the order of the seed. */
static int add_list(struct job *j, const struct pm_sources *list, const char *labels, size_t first,
                    size_t count, bool shuffled)
{
    int err = PM_OK;

    for (size_t i = first; i < first + count && err == PM_OK; i++)
        err = add_source(j, &list->item[shuffled ? pm_permute((uint64_t)j->cfg->common.seed, 0,
                                                              list->count, i) : i], labels);
    return err;
}

/* Tiles of one picture overlap, so the share for validation is chosen by pictures. */
static int add_shares(struct job *j, const struct pm_sources *list, const char *labels)
{
    const size_t held_out = (size_t)((double)list->count * j->cfg->common.validation + 0.5);
    int err = PM_OK;

    if (held_out >= list->count)
        PM_TRY(pm_fail(PM_ECONFIG, "validation=%g leaves none of the %zu pictures for training: "
                       "set a smaller validation", j->cfg->common.validation, list->count));
    pm_annotations_split(&j->s, "train");
    PM_TRY(add_list(j, list, labels, held_out, list->count - held_out, true));
    if (held_out) {
        pm_annotations_split(&j->s, "validation");
        PM_TRY(add_list(j, list, labels, 0, held_out, true));
    }
out:
    return err;
}

/* split NULL: the folder has no splits. */
static int add_folder(struct job *j, const char *root, const char *split)
{
    static const char *const picture_names[] = { "images", "JPEGImages", NULL };
    static const char *const label_names[] = { "labelTxt", "labelTxt-v1.0", "labelTxt-v1.5",
                                               "annfiles", "labels", NULL };
    int err = PM_OK;
    struct pm_sources list = { 0 };
    const char *pictures = pm_first_folder(j->arena, root, picture_names);
    const char *labels = pm_first_folder(j->arena, root, label_names);

    pictures = pictures ? pictures : root;
    labels = labels ? labels : root;
    PM_TRY(pm_sources_folder(j->arena, pictures, 0, &list));
    if (list.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no pictures (" PM_IMAGE_ENDINGS "); expected SRC/images "
                       "and SRC/labelTxt, or these in SRC/train and SRC/val", pictures));
    PM_TRY(pm_warn_unused_labels(j->arena, labels, ".txt", NULL, pictures));
    if (!split && j->cfg->size) {
        PM_TRY(add_shares(j, &list, labels));
    } else {
        pm_annotations_split(&j->s, split);
        PM_TRY(add_list(j, &list, labels, 0, list.count, false));
    }
out:
    pm_sources_free(&list);
    return err;
}

static void log_tiles(const struct job *j)
{
    if (!j->cfg->size)
        return;
    PM_INFO("data", "%zu %s of %d pixels; %zu without objects %s left out", j->tiles,
            pm_plural((double)j->tiles, "tile", "tiles"), j->cfg->size, j->empty,
            pm_plural((double)j->empty, "is", "are"));
    if (j->lost)
        PM_WARN("data", "%zu object%s in no tile with a share of %g of the area, the first at "
                "%s: set a larger size or overlap, or a smaller inside", j->lost,
                j->lost == 1 ? " is" : "s are", j->cfg->inside, j->first_lost);
}

/* pm_annotations_convert's add */
static int add_all(void *ctx, const char *src)
{
    int err = PM_OK;
    struct job *j = ctx;
    bool found = false;

    j->arena = j->s.arena;
    j->s.rotated = true;
    j->s.has = PM_HAS_DIFFICULT;
    j->s.too_large = "if the picture was resized, set scale to its width divided by the width of "
                     "the labelled picture, as in scale=0.166 for 170 of 1024 pixels";
    for (int k = 0; k < PM_SPLITS; k++) {
        const char *root = pm_split_folder(j->arena, src, k);

        if (!root)
            continue;
        found = true;
        PM_TRY(add_folder(j, root, pm_split_names[k]));
    }
    if (!found)
        PM_TRY(add_folder(j, src, NULL));
    log_tiles(j);
out:
    pm_free(j->object);
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    struct job j = { .cfg = config };

    if (j.cfg->size && j.cfg->size < LEAST_TILE)
        return pm_fail(PM_ECONFIG, "dataset convert dota: size: %d is below %d; 0 = whole pictures",
                       j.cfg->size, LEAST_TILE);
    if (j.cfg->size && j.cfg->overlap >= j.cfg->size)
        return pm_fail(PM_ECONFIG, "dataset convert dota: overlap: %d is not below size, %d",
                       j.cfg->overlap, j.cfg->size);
    return pm_annotations_convert(&j.s, config, src, add_all, &j, m);
}

const struct pm_converter pm_converter_dota = {
    .name = "dota",
    .help = "DOTA's aerial photos with rotated boxes, whole or cut into tiles",
    .layout =
        "SRC/images/ID.png and SRC/labelTxt/ID.txt, or these in SRC/train, SRC/val and SRC/test; a "
        "part becomes\n"
        "validation if there are no splits. A line of a label file is an object: x1 y1 x2 y2 x3 y3 "
        "x4 y4 class difficult,\n"
        "below the lines imagesource:NAME and gsd:METRES, if it has them. With size=768 the photos "
        "are cut into tiles that\n"
        "share `overlap` pixels with their neighbours. Records are named ID__768__X___Y.png after "
        "the tile's first pixel.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct dota_cfg),
    .convert = convert,
};
