/* boxes: a CSV file with a row per box, as labelling tools and TensorFlow's tutorials write it. The
 * first row names the columns, in any order. A file per split (train.csv), a column with the split,
 * or a part becomes validation. Pictures are in folders beside the file. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/csv_reader.h"
#include "data/convert/pair_records.h"

struct boxes_cfg {
    struct pm_detection_cfg common;
    const char *csv, *images;
    int units;
};
enum { UNITS_AUTO, UNITS_PIXELS, UNITS_SHARES };

static const struct pm_opt opts[] = {
    PM_STRING(boxes_cfg, csv, NULL,
              "the CSV file in SRC; null = train.csv, validation.csv (or val, valid) and test.csv, "
              "or *_labels.csv of these, else the only .csv"),
    PM_STRING(boxes_cfg, images, NULL,
              "folder of the pictures in SRC; null = the first of images, SPLIT, images/SPLIT, "
              "JPEGImages and SRC that holds the file"),
    PM_ENUM(boxes_cfg, units, UNITS_AUTO, "auto|pixels|shares",
            "boxes are in pixels, or in 0..1 of the picture; auto: shares if no number is above 1"),
    PM_OPTS_DETECTION,
    { 0 },
};

/* ---- columns --------------------------------------------------------------------------------- */

enum { FILENAME, CLASS, XMIN, YMIN, XMAX, YMAX, WIDTH, HEIGHT, SPLIT, BOX_WIDTH, BOX_HEIGHT,
       COLUMNS };
static const struct {
    const char *name;
    const char *const names[9];
    bool needed;
} columns[COLUMNS] = {
    [FILENAME] = { "filename", { "filename", "file", "image", "image_name", "image_path", "path",
                                 "image_id", "img", NULL }, true },
    [CLASS] = { "class", { "class", "label", "class_name", "label_name", "name", "category",
                           NULL }, true },
    [XMIN] = { "xmin", { "xmin", "x_min", "x1", "left", "bbox_x", "x", NULL }, true },
    [YMIN] = { "ymin", { "ymin", "y_min", "y1", "top", "bbox_y", "y", NULL }, true },
    [XMAX] = { "xmax", { "xmax", "x_max", "x2", "right", NULL }, false },
    [YMAX] = { "ymax", { "ymax", "y_max", "y2", "bottom", NULL }, false },
    [WIDTH] = { "width", { "width", "image_width", "img_width", NULL }, false },
    [HEIGHT] = { "height", { "height", "image_height", "img_height", NULL }, false },
    [SPLIT] = { "split", { "split", "set", "subset", NULL }, false },
    [BOX_WIDTH] = { "bbox_width", { "bbox_width", "box_width", "w", NULL }, false },
    [BOX_HEIGHT] = { "bbox_height", { "bbox_height", "box_height", "h", NULL }, false },
};

static int find_columns(const struct pm_csv *c, int at[COLUMNS])
{
    for (int k = 0; k < COLUMNS; k++) {
        at[k] = pm_csv_find(c, columns[k].names);
        if (at[k] < 0 && columns[k].needed)
            return pm_fail(PM_EDATA, "%s:1: has no column %s; the first row names the columns, as "
                           "in filename,width,height,class,xmin,ymin,xmax,ymax", c->path,
                           columns[k].name);
    }
    if ((at[XMAX] < 0 || at[YMAX] < 0) && (at[BOX_WIDTH] < 0 || at[BOX_HEIGHT] < 0))
        return pm_fail(PM_EDATA, "%s:1: has neither columns xmax and ymax nor bbox_width and "
                       "bbox_height", c->path);
    return PM_OK;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct row {
    const char *file, *split, *where; /* split: NULL without the column */
    int class, width, height;         /* class -1: a picture without objects */
    unsigned line;
    double box[4];
    size_t place;
};

struct job {
    const struct boxes_cfg *cfg;
    const char *src;
    struct pm_annotations s;
    struct pm_arena *arena; /* of s */
    struct row *row;        /* owned */
    size_t count, capacity;
};

/* An empty class and an empty box: the picture has no objects. */
static bool is_empty(const struct pm_csv *c, const int at[COLUMNS])
{
    for (int k = CLASS; k <= YMIN; k++)
        if (pm_csv_at(c, at[k]) && pm_csv_at(c, at[k])[0])
            return false;
    return true;
}

static int read_size(const struct pm_csv *c, int column, const char *name, int *out)
{
    double v = 0;

    if (column < 0 || !pm_csv_at(c, column) || !pm_csv_at(c, column)[0])
        return PM_OK;
    const int err = pm_csv_number(c, column, name, &v);
    if (err < 0)
        return err;
    if (v < 0 || v > 1e6)
        return pm_fail(PM_EDATA, "%s:%u: %s is %g; 0..1000000 is allowed", c->path, c->line, name,
                       v);
    *out = (int)v;
    return PM_OK;
}

static int read_box(const struct pm_csv *c, const int at[COLUMNS], double box[4])
{
    static const int order[4] = { YMIN, XMIN, YMAX, XMAX };
    int err = PM_OK;

    for (int k = 0; k < 4; k++) {
        const int which = order[k];
        if (at[which] >= 0) {
            PM_TRY(pm_csv_number(c, at[which], columns[which].name, &box[k]));
            continue;
        }
        const int side = k == 2 ? BOX_HEIGHT : BOX_WIDTH;
        PM_TRY(pm_csv_number(c, at[side], columns[side].name, &box[k]));
        box[k] += box[k - 2];
    }
out:
    return err;
}

/* The name becomes a part of file names. */
static int take_split(const struct job *j, const struct pm_csv *c, const char *text,
                      const char **out)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

    if (!text[0] || strlen(text) > 64 || text[strspn(text, letters)])
        return pm_fail(PM_EDATA, "%s:%u: split is \"%.40s\"; write a name of 1 to 64 letters, "
                       "digits, _ and -, such as train", c->path, c->line, text);
    *out = pm_arena_strdup(j->arena, text);
    return PM_OK;
}

static int read_row(struct job *j, const struct pm_csv *c, const int at[COLUMNS],
                    const char *split)
{
    int err = PM_OK;
    const char *file = pm_csv_at(c, at[FILENAME]);
    struct row r = { .class = -1, .where = c->path, .line = c->line, .place = j->count,
                     .split = split };

    if (!file || !file[0])
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: has no %s", c->path, c->line, columns[FILENAME].name));
    r.file = j->count && !strcmp(j->row[j->count - 1].file, file)
        ? j->row[j->count - 1].file : pm_arena_strdup(j->arena, file);
    if (!split && pm_csv_at(c, at[SPLIT]))
        PM_TRY(take_split(j, c, pm_csv_at(c, at[SPLIT]), &r.split));
    PM_TRY(read_size(c, at[WIDTH], "width", &r.width));
    PM_TRY(read_size(c, at[HEIGHT], "height", &r.height));
    if (!is_empty(c, at)) {
        const char *name = pm_csv_at(c, at[CLASS]);
        PM_TRY(r.class = pm_annotations_class(&j->s, name ? name : "", c->path, c->line));
        PM_TRY(read_box(c, at, r.box));
    }
    PM_GROW(j->row, j->count, j->capacity);
    j->row[j->count++] = r;
    err = PM_OK;
out:
    return err;
}

static int read_csv(struct job *j, const char *path, const char *split)
{
    int err = PM_OK, at[COLUMNS];
    struct pm_csv *c = pm_malloc(sizeof *c);
    const size_t had = j->count;

    c->f = NULL;
    PM_TRY(pm_csv_open(path, c));
    PM_TRY(find_columns(c, at));
    while ((err = pm_csv_row(c)) == 1)
        PM_TRY(read_row(j, c, at, split));
    PM_TRY(err);
    if (j->count == had)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no rows below the names of the columns", path));
out:
    pm_csv_close(c);
    pm_free(c);
    return err;
}

/* ---- files ----------------------------------------------------------------------------------- */

static const char *const split_files[PM_SPLITS][7] = {
    { "train.csv", "train_labels.csv", "train/_annotations.csv", "train/annotations.csv", NULL },
    { "validation.csv", "val.csv", "valid.csv", "val_labels.csv", "valid/_annotations.csv",
      "val/annotations.csv", NULL },
    { "test.csv", "test_labels.csv", "test/_annotations.csv", "test/annotations.csv", NULL },
};

static const char *only_csv(struct job *j)
{
    char **names = NULL;
    size_t count = 0;
    const char *found = NULL;

    if (pm_list_folder(j->arena, j->src, &names, &count) < 0)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (pm_ends_with(names[i], ".csv")) {
            if (found)
                return NULL;
            found = pm_arena_printf(j->arena, "%s/%s", j->src, names[i]);
        }
    return found;
}

static int read_all(struct job *j)
{
    int err = PM_OK;
    bool found = false;

    if (j->cfg->csv)
        return read_csv(j, pm_arena_printf(j->arena, "%s/%s", j->src, j->cfg->csv), NULL);
    for (int k = 0; k < PM_SPLITS; k++)
        for (const char *const *name = split_files[k]; *name; name++) {
            const char *path = pm_arena_printf(j->arena, "%s/%s", j->src, *name);
            if (!pm_file_exists(path))
                continue;
            PM_TRY(read_csv(j, path, pm_split_names[k]));
            found = true;
            break;
        }
    const char *only = found ? NULL : only_csv(j);
    if (only)
        PM_TRY(read_csv(j, only, NULL));
    else if (!found)
        PM_TRY(pm_fail(PM_EDATA, "%s: has neither train.csv nor exactly one file *.csv: set "
                       "csv=FILE", j->src));
out:
    return err;
}

/* The picture in a folder, by its name with or without its ending; NULL: there is none. */
static const char *in_folder(const struct job *j, const char *folder, const char *name)
{
    const char *path = pm_arena_printf(j->arena, "%s/%s", folder, name);

    if (pm_image_named(name))
        return pm_file_exists(path) ? path : NULL;
    return pm_picture_of_stem(j->arena, folder, name);
}

/* The picture that a row names, wherever it is. */
static const char *picture_of(const struct job *j, const struct row *r)
{
    struct pm_arena *a = j->arena;
    const char *split = r->split ? r->split : "train";
    const char *slash = strrchr(r->file, '/'), *end = strrchr(r->where, '/');
    const char *names[] = { r->file, slash ? slash + 1 : NULL };
    const char *given[] = { pm_arena_printf(a, "%s/%s", j->src,
                                            j->cfg->images ? j->cfg->images : "") };
    const char *usual[] = {
        pm_arena_printf(a, "%s/images", j->src),
        pm_arena_printf(a, "%s/%s", j->src, split),
        pm_arena_printf(a, "%s/images/%s", j->src, split),
        pm_arena_printf(a, "%s/JPEGImages", j->src),
        j->src,
        pm_arena_printf(a, "%.*s", (int)(end - r->where), r->where), /* beside the file */
    };
    const char **folders = j->cfg->images ? given : usual, *found = NULL;
    const size_t count = j->cfg->images ? PM_COUNT(given) : PM_COUNT(usual);

    for (size_t n = 0; n < PM_COUNT(names) && names[n]; n++)
        for (size_t k = 0; k < count && !found; k++)
            found = in_folder(j, folders[k], names[n]);
    return found;
}

/* ---- pictures -------------------------------------------------------------------------------- */

static int split_place(const char *split)
{
    for (int k = 0; split && k < PM_SPLITS; k++)
        if (!strcmp(split, pm_split_names[k]))
            return k;
    return split ? PM_SPLITS : -1;
}

/* By split, then by file; the rows of a file stay in order. */
static int compare_rows(const void *x, const void *y)
{
    const struct row *a = x, *b = y;
    int c = split_place(a->split) - split_place(b->split);

    if (c == 0 && a->split && b->split)
        c = strcmp(a->split, b->split);
    if (c == 0)
        c = strcmp(a->file, b->file);
    return c ? c : a->place < b->place ? -1 : a->place > b->place;
}

static bool in_shares(const struct job *j)
{
    if (j->cfg->units != UNITS_AUTO)
        return j->cfg->units == UNITS_SHARES;
    for (size_t i = 0; i < j->count; i++)
        for (int k = 0; k < 4; k++)
            if (j->row[i].box[k] > 1)
                return false;
    return true;
}

static int check_shares(const struct row *r)
{
    for (int k = 0; k < 4; k++)
        if (fabs(r->box[k]) > 2)
            return pm_fail(PM_EDATA, "%s:%u: the box has the number %g; shares of the picture are "
                           "0 to 1. Set units=pixels if the numbers are pixels", r->where, r->line,
                           r->box[k]);
    return PM_OK;
}

static int add_picture(struct job *j, const struct row *r)
{
    const bool inside = pm_path_inside(r->file);
    const char *path = inside ? picture_of(j, r) : NULL;

    if (!inside)
        return pm_fail(PM_EDATA, "%s:%u: the picture \"%.200s\" is outside %s; write a path in "
                       "that folder, without ..", r->where, r->line, r->file, j->src);
    if (!path)
        return pm_fail(PM_EDATA, "%s:%u: the picture \"%.200s\" is not in %s%s%s; set "
                       "images=FOLDER to its folder in SRC", r->where, r->line, r->file, j->src,
                       j->cfg->images ? "/" : "", j->cfg->images ? j->cfg->images : "");
    pm_annotations_picture(&j->s, (struct pm_annotated){
        .path = path, .filename = r->file, .where = r->where, .width = r->width,
        .height = r->height });
    return PM_OK;
}

static int add_rows(struct job *j)
{
    int err = PM_OK;

    qsort(j->row, j->count, sizeof *j->row, compare_rows);
    j->s.unit = in_shares(j);
    for (size_t i = 0; i < j->count; i++) {
        const struct row *r = &j->row[i], *before = i ? r - 1 : NULL;
        const bool new_split = !before || split_place(before->split) != split_place(r->split) ||
                               (r->split && strcmp(r->split, before->split));

        if (new_split)
            pm_annotations_split(&j->s, r->split);
        if (new_split || strcmp(before->file, r->file))
            PM_TRY(add_picture(j, r));
        if (j->s.unit)
            PM_TRY(check_shares(r));
        if (r->class >= 0)
            pm_annotations_object(&j->s, (struct pm_annotated_object){
                .box = { r->box[0], r->box[1], r->box[2], r->box[3] }, .class = r->class });
    }
out:
    return err;
}

/* pm_annotations_convert's add */
static int add_all(void *ctx, const char *src)
{
    int err = PM_OK;
    struct job *j = ctx;

    j->arena = j->s.arena;
    j->src = src;
    PM_TRY(read_all(j));
    PM_TRY(add_rows(j));
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    struct job j = { .cfg = config };
    const int err = pm_annotations_convert(&j.s, config, src, add_all, &j, m);

    pm_free(j.row);
    return err;
}

const struct pm_converter pm_converter_boxes = {
    .name = "boxes",
    .help = "a CSV file with a row per box: file, class, box",
    .layout =
        "SRC/train.csv, optionally validation.csv and test.csv, or one CSV file, with or without a "
        "column split;\n"
        "without splits a part becomes validation. The first row names the columns, in any order: "
        "filename, class,\n"
        "xmin, ymin, xmax, ymax (or x, y, bbox_width, bbox_height), optionally width, height, "
        "split. A row without\n"
        "class and box is a picture without objects. Pictures are in SRC, SRC/images, SRC/SPLIT "
        "or SRC/images/SPLIT.\n"
        "Boxes without an area are dropped and counted, boxes beyond the picture are clipped.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct boxes_cfg),
    .convert = convert,
};
