/* open_images: boxes of Open Images V4 to V7: a CSV file of boxes per split, one with the names of
 * the classes, and the pictures by their ids. Only pictures that exist are converted, so a part of
 * the data set is enough. With expand_hierarchy a box is repeated for each ancestor of its class in
 * the hierarchy, without its root, as TensorFlow's oid_hierarchical_labels_expansion does. */
#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/csv_reader.h"
#include "data/convert/pair_records.h"

struct open_images_cfg {
    struct pm_detection_cfg common;
    bool expand_hierarchy;
};

static const struct pm_opt opts[] = {
    PM_BOOL(open_images_cfg, expand_hierarchy, false,
            "repeat each box for the ancestors of its class, by *hierarchy.json"),
    PM_OPT_UNANNOTATED(PM_UNANNOTATED_EMPTY),
    PM_OPTS_DETECTION,
    { 0 },
};

enum { MOST_LABELS = 64 };

/* A label such as /m/01g317 and its name. */
struct label {
    const char *id, *name;
};
struct edge {
    const char *child, *parent; /* labels */
};
struct row {
    size_t picture, place;
    double box[4];
    int class;
    unsigned marks;
};
struct stem {
    const char *stem, *path;
};

struct job {
    const struct open_images_cfg *cfg;
    const char *annotations; /* folder of the CSV files */
    struct pm_annotations s;
    struct pm_arena *arena; /* of s */
    struct pm_csv *csv;     /* owned */
    struct label *label;    /* owned, by id */
    size_t labels, labels_capacity;
    struct edge *edge;      /* owned */
    size_t edges, edges_capacity;
    struct row *row;        /* owned: of a split */
    size_t rows, rows_capacity, elsewhere; /* elsewhere: rows of pictures that do not exist */
};

/* The first name in the folder of annotations with this ending, or NULL. */
static const char *file_with(struct job *j, const char *ending)
{
    char **names = NULL;
    size_t count = 0;

    if (pm_list_folder(j->arena, j->annotations, &names, &count) < 0)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (names[i][0] != '.' && pm_ends_with(names[i], ending))
            return pm_arena_printf(j->arena, "%s/%s", j->annotations, names[i]);
    return NULL;
}

/* ---- classes --------------------------------------------------------------------------------- */

static int compare_labels(const void *x, const void *y)
{
    return strcmp(((const struct label *)x)->id, ((const struct label *)y)->id);
}

/* Rows LabelName,DisplayName, with or without a row of these names. */
static int read_names(struct job *j)
{
    static const char *const names[] = { "LabelName", NULL };
    int err = PM_OK;
    struct pm_csv *c = j->csv;
    const char *path = file_with(j, "class-descriptions-boxable.csv");

    path = path ? path : file_with(j, "class-descriptions.csv");
    if (!path)
        return PM_OK;
    PM_TRY(pm_csv_open(path, c));
    if (pm_csv_find(c, names) >= 0)
        err = pm_csv_row(c);
    else
        err = 1;
    for (; err == 1; err = pm_csv_row(c)) {
        if (c->count < 2 || !c->field[0][0])
            PM_TRY(pm_fail(PM_EDATA, "%s:%u: expected LabelName,DisplayName, as in /m/01g317,"
                           "Person", path, c->line));
        PM_GROW(j->label, j->labels, j->labels_capacity);
        j->label[j->labels++] = (struct label){ pm_arena_strdup(j->arena, c->field[0]),
                                                pm_arena_strdup(j->arena, c->field[1]) };
    }
    PM_TRY(err);
    if (j->labels)
        qsort(j->label, j->labels, sizeof *j->label, compare_labels);
out:
    pm_csv_close(c);
    return err;
}

/* The class of a label: by its name, or, with a label map that has it, by the label itself. */
static int class_of(struct job *j, const char *id, const char *where, unsigned line)
{
    const struct label key = { .id = id };
    const struct label *l = j->labels
        ? bsearch(&key, j->label, j->labels, sizeof key, compare_labels) : NULL;

    if (j->s.fixed && (!l || pm_label_map_find(&j->s.map, id) >= 0))
        return pm_annotations_class(&j->s, id, where, line);
    return pm_annotations_class(&j->s, l && l->name[0] ? l->name : id, where, line);
}

/* ---- hierarchy ------------------------------------------------------------------------------- */

static const char *label_name(const cJSON *o)
{
    const cJSON *name = cJSON_GetObjectItemCaseSensitive(o, "LabelName");
    return cJSON_IsString(name) ? name->valuestring : NULL;
}

/* Adds the edges below a node. The root is nobody's ancestor. */
static int add_edges(struct job *j, const cJSON *node, bool root, const char *path)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(node, "Subcategory"), *o = NULL;
    int err = PM_OK;

    if (!label_name(node))
        return pm_fail(PM_EDATA, "%s: a class has no LabelName; it is not a hierarchy of Open "
                       "Images", path);
    cJSON_ArrayForEach(o, list) {
        PM_TRY(add_edges(j, o, false, path));
        if (root)
            continue;
        PM_GROW(j->edge, j->edges, j->edges_capacity);
        j->edge[j->edges++] = (struct edge){ pm_arena_strdup(j->arena, label_name(o)),
                                             pm_arena_strdup(j->arena, label_name(node)) };
    }
out:
    return err;
}

static int read_hierarchy(struct job *j)
{
    int err = PM_OK;
    char *text = NULL;
    cJSON *o = NULL;
    const char *path = file_with(j, "hierarchy.json");

    if (!j->cfg->expand_hierarchy)
        return PM_OK;
    if (!path)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no *hierarchy.json, which expand_hierarchy=true needs",
                       j->annotations));
    PM_TRY(pm_text_read(path, PM_MOST_TEXT, &text));
    PM_TRY(pm_json_parse(path, text, &o));
    PM_TRY(add_edges(j, o, true, path));
out:
    cJSON_Delete(o);
    pm_free(text);
    return err;
}

/* Appends the ancestors of a label to list, each label once. */
static void add_ancestors(const struct job *j, const char *id, const char **list, size_t *count)
{
    for (size_t i = 0; i < j->edges; i++) {
        bool known = strcmp(j->edge[i].child, id) != 0 || *count == MOST_LABELS;

        for (size_t k = 0; k < *count && !known; k++)
            known = !strcmp(list[k], j->edge[i].parent);
        if (known)
            continue;
        list[(*count)++] = j->edge[i].parent;
        add_ancestors(j, j->edge[i].parent, list, count);
    }
}

/* ---- boxes ----------------------------------------------------------------------------------- */

enum { IMAGE, LABEL, YMIN, XMIN, YMAX, XMAX, TRUNCATED, GROUP_OF, COLUMNS };
static const char *const columns[COLUMNS][2] = {
    { "ImageID" }, { "LabelName" }, { "YMin" }, { "XMin" }, { "YMax" }, { "XMax" },
    { "IsTruncated" }, { "IsGroupOf" },
};

static int compare_stems(const void *x, const void *y)
{
    return strcmp(((const struct stem *)x)->stem, ((const struct stem *)y)->stem);
}

static int add_class_row(struct job *j, struct row r, const char *id)
{
    r.class = class_of(j, id, j->csv->path, j->csv->line);
    if (r.class < 0)
        return r.class;
    r.place = j->rows;
    PM_GROW(j->row, j->rows, j->rows_capacity);
    j->row[j->rows++] = r;
    return PM_OK;
}

static bool is_one(const struct pm_csv *c, int column)
{
    const char *text = pm_csv_at(c, column);
    return text && !strcmp(text, "1");
}

static int read_row(struct job *j, const int at[COLUMNS], const struct stem *stems, size_t count)
{
    int err = PM_OK;
    const struct pm_csv *c = j->csv;
    const char *id = pm_csv_at(c, at[LABEL]), *labels[MOST_LABELS];
    const struct stem key = { .stem = pm_csv_at(c, at[IMAGE]) };
    size_t count_labels = 1;
    struct row r = { .marks = (is_one(c, at[TRUNCATED]) ? PM_MARK_TRUNCATED : 0u) |
                              (is_one(c, at[GROUP_OF]) ? PM_MARK_GROUP_OF : 0u) };

    if (!key.stem || !id || !id[0])
        PM_TRY(pm_fail(PM_EDATA, "%s:%u: has no ImageID or no LabelName", c->path, c->line));
    const struct stem *found = bsearch(&key, stems, count, sizeof key, compare_stems);
    if (!found) {
        j->elsewhere++;
        return PM_OK;
    }
    r.picture = (size_t)(found - stems);
    for (int k = 0; k < 4; k++) {
        PM_TRY(pm_csv_number(c, at[YMIN + k], columns[YMIN + k][0], &r.box[k]));
        if (fabs(r.box[k]) > 2)
            PM_TRY(pm_fail(PM_EDATA, "%s:%u: %s is %g; write a share of the picture, 0 to 1",
                           c->path, c->line, columns[YMIN + k][0], r.box[k]));
    }
    labels[0] = id; /* first, so that a cycle in the hierarchy does not add it again */
    add_ancestors(j, id, labels, &count_labels);
    for (size_t i = 0; i < count_labels; i++)
        PM_TRY(add_class_row(j, r, labels[i]));
out:
    return err;
}

static int read_boxes(struct job *j, const char *path, const struct stem *stems, size_t count)
{
    int err = PM_OK, at[COLUMNS];

    PM_TRY(pm_csv_open(path, j->csv));
    for (int k = 0; k < COLUMNS; k++) {
        at[k] = pm_csv_find(j->csv, columns[k]);
        if (k < TRUNCATED && at[k] < 0)
            PM_TRY(pm_fail(PM_EDATA, "%s:1: has no column %s; the columns are ImageID,Source,"
                           "LabelName,Confidence,XMin,XMax,YMin,YMax,...", path, columns[k][0]));
    }
    while ((err = pm_csv_row(j->csv)) == 1)
        PM_TRY(read_row(j, at, stems, count));
out:
    pm_csv_close(j->csv);
    return err;
}

/* ---- splits ---------------------------------------------------------------------------------- */

static int compare_rows(const void *x, const void *y)
{
    const struct row *a = x, *b = y;

    if (a->picture != b->picture)
        return a->picture < b->picture ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

/* lacks: what a picture without boxes lacks, for messages. */
static int add_pictures(struct job *j, const struct stem *stems, size_t count, const char *csv,
                        const char *lacks)
{
    int err = PM_OK;
    size_t k = 0;

    if (j->rows)
        qsort(j->row, j->rows, sizeof *j->row, compare_rows);
    for (size_t i = 0; i < count; i++) {
        const bool found = k < j->rows && j->row[k].picture == i;

        err = found ? 1 : pm_annotations_missing(&j->s, j->cfg->common.unannotated,
                                                 stems[i].path, lacks);
        PM_TRY(err);
        if (err == 1)
            pm_annotations_picture(&j->s, (struct pm_annotated){
                .path = stems[i].path, .filename = strrchr(stems[i].path, '/') + 1,
                .where = csv });
        for (; k < j->rows && j->row[k].picture == i; k++) {
            const struct row *r = &j->row[k];
            pm_annotations_object(&j->s, (struct pm_annotated_object){
                .box = { r->box[0], r->box[1], r->box[2], r->box[3] }, .class = r->class,
                .marks = r->marks });
        }
    }
    err = PM_OK;
out:
    return err;
}

static int add_split(struct job *j, const char *folder, const char *split)
{
    int err = PM_OK;
    struct pm_sources list = { 0 };
    struct stem *stems = NULL;
    const char *ending = pm_arena_printf(j->arena, "%s-annotations-bbox.csv", split);
    const char *csv = file_with(j, ending);

    PM_TRY(pm_sources_folder(j->arena, folder, 0, &list));
    stems = pm_malloc((list.count + 1) * sizeof *stems);
    for (size_t i = 0; i < list.count; i++)
        stems[i] = (struct stem){ pm_stem(j->arena, list.item[i].name), list.item[i].path };
    if (list.count)
        qsort(stems, list.count, sizeof *stems, compare_stems);
    j->rows = j->elsewhere = 0;
    if (csv)
        PM_TRY(read_boxes(j, csv, stems, list.count));
    if (j->elsewhere)
        PM_INFO("data", "%s: %zu %s of pictures that are not in %s", csv, j->elsewhere,
                pm_plural((double)j->elsewhere, "box is", "boxes are"), folder);
    pm_annotations_split(&j->s, split);
    const char *lacks = csv
        ? pm_arena_printf(j->arena, "%s has no row of it", csv)
        : pm_arena_printf(j->arena, "%s/*%s does not exist", j->annotations, ending);
    PM_TRY(add_pictures(j, stems, list.count, csv ? csv : ending, lacks));
out:
    pm_free(stems);
    pm_sources_free(&list);
    return err;
}

/* pm_annotations_convert's add */
static int add_all(void *ctx, const char *src)
{
    int err = PM_OK;
    struct job *j = ctx;
    bool any = false;
    static const char *const annotations[] = { "annotations", NULL };
    static const char *const images[] = { "images", NULL };

    j->arena = j->s.arena;
    j->s.unit = true;
    j->s.has = PM_HAS_GROUP_OF | PM_HAS_TRUNCATED;
    const char *own = pm_first_folder(j->arena, src, annotations);
    const char *root = pm_first_folder(j->arena, src, images);
    j->annotations = own ? own : src;
    PM_TRY(read_names(j));
    PM_TRY(read_hierarchy(j));
    for (int k = 0; k < PM_SPLITS; k++) {
        const char *folder = pm_split_folder(j->arena, root ? root : src, k);

        if (!folder)
            continue;
        any = true;
        PM_TRY(add_split(j, folder, pm_split_names[k]));
    }
    if (!any)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no folder train, validation or test with pictures",
                       root ? root : src));
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    struct job j = { .cfg = config, .csv = pm_calloc(1, sizeof *j.csv) };
    const int err = pm_annotations_convert(&j.s, config, src, add_all, &j, m);

    pm_free(j.csv);
    pm_free(j.label);
    pm_free(j.edge);
    pm_free(j.row);
    return err;
}

const struct pm_converter pm_converter_open_images = {
    .name = "open_images",
    .help = "Open Images with boxes (CSV files of V4 to V7)",
    .layout =
        "SRC/images/SPLIT/ID.jpg (or SRC/SPLIT), SRC/annotations/*SPLIT-annotations-bbox.csv (or "
        "SRC), optionally\n"
        "class-descriptions-boxable.csv or *class-descriptions.csv; splits are train, validation, "
        "test. Only pictures\n"
        "that exist are converted. Classes have the names of the descriptions, else labels such as "
        "/m/01g317; a label\n"
        "map may use either. IsGroupOf and IsTruncated are kept.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct open_images_cfg),
    .convert = convert,
};
