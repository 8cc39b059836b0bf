/* yolo: data sets of YOLO. data.yaml of ultralytics names the classes and the pictures of each
 * split: a folder, a list file, a picture, or a list of these. A file *.data of darknet does it in
 * lines KEY = VALUE with list files. Without both, classes.txt names the classes and the folders
 * are the splits. The label file of a picture has its path with the last "images" replaced by
 * "labels", and the ending .txt.
 *
 * Paths of such files are often those of another machine or of another working directory. So a path
 * is looked up below SRC with leading parts left out until it exists. Nothing outside of SRC is
 * read. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/pair_records.h"
#include "data/convert/yaml_entries.h"
#include "data/convert/yolo_labels.h"

struct yolo_cfg {
    struct pm_detection_cfg common;
    const char *data;
    int masks; /* enum pm_mask_form */
    int boxes;
};
enum { UPRIGHT, ROTATED };

static const struct pm_opt opts[] = {
    PM_STRING(yolo_cfg, data, NULL,
              "file in SRC with classes and splits: *.yaml or *.data; null = data.yaml, obj.data, "
              "or the only such file; else classes.txt and folders"),
    PM_OPT_MASKS(yolo_cfg, "polygons"),
    PM_ENUM(yolo_cfg, boxes, UPRIGHT, "upright|rotated",
            "rotated: polygons of four corners are rotated boxes (YOLO's oriented boxes)"),
    PM_OPT_UNANNOTATED(PM_UNANNOTATED_EMPTY),
    PM_OPTS_DETECTION,
    { 0 },
};

enum { MOST_FOLDERS = 16 }; /* folders inside of each other */

struct job {
    const struct yolo_cfg *cfg;
    const char *src;   /* without a slash at its end */
    const char *base;  /* SRC, or the folder in it that data.yaml names */
    const char *names; /* file of the class names, for messages */
    struct pm_annotations s;
    struct pm_arena *arena; /* of s */
    struct pm_yolo_shape shape;
};

/* ---- pictures -------------------------------------------------------------------------------- */

/* The folder of the label files of the pictures in a folder, SRC or below it. */
static const char *labels_of(const struct job *j, const char *folder)
{
    static const char part[] = "/images";
    const char *images = NULL;

    for (const char *at = folder + strlen(j->src); (at = strstr(at, part)); at++)
        if (strchr("/", at[strlen(part)])) /* also at the end */
            images = at;
    if (!images)
        return folder;
    return pm_arena_printf(j->arena, "%.*s/labels%s", (int)(images - folder), folder,
                           images + strlen(part));
}

/* The label file of a picture below SRC. */
static const char *label_of(const struct job *j, const char *picture)
{
    const char *name = strrchr(picture, '/'), *dot = strrchr(picture, '.');
    const char *folder = pm_arena_printf(j->arena, "%.*s", (int)(name - picture), picture);

    return pm_arena_printf(j->arena, "%s%.*s.txt", labels_of(j, folder), (int)(dot - name), name);
}

static int add_picture(struct job *j, const char *picture)
{
    const char *labels = label_of(j, picture);
    const bool found = pm_file_exists(labels);
    const int keep = found ? 1 : pm_annotations_missing(
        &j->s, j->cfg->common.unannotated, picture,
        pm_arena_printf(j->arena, "%s does not exist", labels));

    if (keep == 1)
        pm_annotations_picture(&j->s, (struct pm_annotated){
            .path = picture, .filename = strrchr(picture, '/') + 1, .where = labels });
    return found ? pm_yolo_labels(&j->s, labels, j->shape, j->names) : keep < 0 ? keep : PM_OK;
}

/* All pictures of a folder and of those in it. */
static int add_folder(struct job *j, const char *folder, int level)
{
    int err = PM_OK;
    char **names = NULL;
    size_t count = 0;

    if (level == MOST_FOLDERS)
        return pm_fail(PM_EDATA, "%s: is deeper than %d folders", folder, MOST_FOLDERS);
    const char *labels = labels_of(j, folder);
    if (pm_is_folder(labels))
        PM_TRY(pm_warn_unused_labels(j->arena, labels, ".txt", "classes.txt", folder));
    PM_TRY(pm_list_folder(j->arena, folder, &names, &count));
    for (size_t i = 0; i < count; i++) {
        const char *path = pm_arena_printf(j->arena, "%s/%s", folder, names[i]);

        if (names[i][0] == '.')
            continue;
        if (pm_is_folder(path))
            PM_TRY(add_folder(j, path, level + 1));
        else if (pm_image_named(names[i]))
            PM_TRY(add_picture(j, path));
    }
out:
    return err;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static const char *below(const struct job *j, const char *folder, const char *part)
{
    const char *path = pm_arena_printf(j->arena, "%s/%s", folder, part);

    return pm_path_inside(part) && (pm_file_exists(path) || pm_is_folder(path)) ? path : NULL;
}

enum { MOST_PATH = 4096 }; /* each part is tried, so the time grows with the square */

/* The path below SRC, with as few leading parts left out as possible; NULL: there is none. */
static const char *find(const struct job *j, const char *path)
{
    if (strlen(path) > MOST_PATH)
        return NULL;
    char *clean = pm_arena_strdup(j->arena, path);
    const char *part = clean, *found;

    for (char *c = clean; *c; c++)
        *c = *c == '\\' ? '/' : *c;
    for (size_t n = strlen(clean); n > 1 && clean[n - 1] == '/';)
        clean[--n] = '\0';
    while (part) {
        while (*part == '/')
            part++;
        if (!strcmp(part, "."))
            return j->base;
        if (!strncmp(part, "./", 2)) {
            part += 2;
            continue;
        }
        if ((found = below(j, j->base, part)) || (found = below(j, j->src, part)))
            return found;
        part = strchr(part, '/');
    }
    return NULL;
}

struct list {
    struct job *j;
    const char *path;
};

/* pm_lines_add's add */
static int add_line(void *ctx, const char *line, size_t number)
{
    const struct list *l = ctx;
    const char *picture = pm_image_named(line) ? find(l->j, line) : NULL;

    if (!picture)
        return pm_fail(PM_EDATA, "%s:%zu: \"%.200s\" is not a picture below %s", l->path, number,
                       line, l->j->src);
    return add_picture(l->j, picture);
}

static int add_list(struct job *j, const char *list)
{
    return pm_lines_add(j->arena, list, add_line, &(struct list){ j, list });
}

/* A folder, a list file or a picture. */
static int add_entry(struct job *j, const char *where, unsigned line, const char *value)
{
    const char *path = find(j, value);

    if (path && pm_is_folder(path))
        return add_folder(j, path, 0);
    if (path && pm_image_named(path))
        return add_picture(j, path);
    if (path && pm_ends_with(path, ".txt"))
        return add_list(j, path);
    return pm_fail(PM_EDATA, "%s:%u: \"%.200s\" is %s below %s", where, line, value,
                   path ? "neither a folder, a list *.txt nor a picture" : "not a path", j->src);
}

/* ---- data.yaml ------------------------------------------------------------------------------- */

static int read_names(struct job *j, const struct pm_yaml *y)
{
    size_t count = 0;
    const char **names = pm_arena_alloc(j->arena, (y->count + 1) * sizeof *names);

    memset(names, 0, (y->count + 1) * sizeof *names);
    for (size_t i = 0; i < y->count; i++) {
        const struct pm_yaml_entry *e = &y->entry[i];
        char *end = NULL;

        if (strcmp(e->key, "names"))
            continue;
        const long k = strtol(e->sub, &end, 10);
        if (end == e->sub || *end || k < 0 || (size_t)k >= y->count || names[k])
            return pm_fail(PM_EDATA, "%s:%u: names: \"%.40s\" is %s; the classes are a list, or "
                           "have the numbers 0, 1 and so on", y->path, e->line, e->sub,
                           k >= 0 && (size_t)k < y->count && names[k] ? "used twice"
                                                                           : "not a number");
        names[k] = e->value;
        count++;
    }
    if (count == 0)
        return pm_fail(PM_EDATA, "%s: has no names of classes (names: [cat, dog])", y->path);
    for (size_t k = 0; k < count; k++)
        if (!names[k])
            return pm_fail(PM_EDATA, "%s: names: has %zu classes, but class %zu has no name",
                           y->path, count, k);
    const char *nc = pm_yaml_value(y, "nc");
    double number = 0;
    if (nc && (!pm_number_in_text(nc, &number) || number != (double)count))
        return pm_fail(PM_EDATA, "%s: nc is \"%.40s\", but names has %zu classes", y->path, nc,
                       count);
    return pm_annotations_classes(&j->s, names, count, y->path);
}

/* kpt_shape: [points, 2 or 3] */
static int read_shape(struct job *j, const struct pm_yaml *y)
{
    int got[2] = { 0, 0 };

    for (size_t i = 0; i < y->count; i++) {
        const struct pm_yaml_entry *e = &y->entry[i];
        double v = 0;

        if (strcmp(e->key, "kpt_shape"))
            continue;
        const int k = !strcmp(e->sub, "0") ? 0 : !strcmp(e->sub, "1") ? 1 : -1;
        if (k < 0 || !pm_number_in_text(e->value, &v) || v < (k ? 2 : 1) || v > (k ? 3 : 1000) ||
            v != (int)v)
            return pm_fail(PM_EDATA, "%s:%u: kpt_shape: \"%.40s\"; write [points, 2 or 3] with "
                           "1..1000 points", y->path, e->line, e->value);
        got[k] = (int)v;
    }
    if (!got[0] != !got[1])
        return pm_fail(PM_EDATA, "%s: kpt_shape: has one number; write [points, 2 or 3]", y->path);
    j->shape = (struct pm_yolo_shape){ got[0], got[1] };
    j->s.points = got[0];
    j->s.has |= got[0] ? PM_HAS_KEYPOINTS : 0u;
    return PM_OK;
}

/* flip_idx: for each point the one that it becomes in a mirrored picture */
static int read_flip(struct job *j, const struct pm_yaml *y)
{
    const int points = j->s.points;
    int *flip = pm_arena_alloc(j->arena, ((size_t)points + 1) * sizeof *flip), count = 0;
    unsigned line = 0;

    for (size_t i = 0; i < y->count; i++) {
        const struct pm_yaml_entry *e = &y->entry[i];
        double v = 0;

        if (strcmp(e->key, "flip_idx"))
            continue;
        line = e->line;
        if (count == points || !pm_number_in_text(e->value, &v) || v < 0 || v >= points ||
            v != (int)v)
            return pm_fail(PM_EDATA, "%s:%u: flip_idx: \"%.40s\" is entry %d; write the numbers "
                           "of the %d points of kpt_shape, from 0", y->path, line, e->value,
                           count + 1, points);
        flip[count++] = (int)v;
    }
    const char *wrong = count ? pm_mirrored_points_wrong(flip, count) : NULL;
    if (wrong || (count && count != points))
        return pm_fail(PM_EDATA, "%s:%u: flip_idx: has %d numbers for %d points%s%s", y->path, line,
                       count, points, wrong ? "; it " : "", wrong ? wrong : "");
    j->s.mirrored = count ? flip : NULL;
    return PM_OK;
}

static int add_yaml_split(struct job *j, const struct pm_yaml *y, const char *key,
                          const char *split, bool *any)
{
    int err = PM_OK;
    bool found = false;

    for (size_t i = 0; i < y->count; i++) {
        const struct pm_yaml_entry *e = &y->entry[i];

        if (strcmp(e->key, key) || !e->value[0])
            continue;
        if (!found)
            pm_annotations_split(&j->s, split);
        found = *any = true;
        PM_TRY(add_entry(j, y->path, e->line, e->value));
    }
out:
    return err;
}

static int read_yaml(struct job *j, const char *path)
{
    int err = PM_OK;
    static const char *const keys[PM_SPLITS] = { "train", "val", "test" };
    struct pm_yaml y = { 0 };
    bool any = false;

    PM_TRY(pm_yaml_read(j->arena, path, &y));
    j->names = path;
    const char *base = pm_yaml_value(&y, "path");
    const char *found = base && base[0] ? find(j, base) : NULL;
    if (found && pm_is_folder(found))
        j->base = found;
    PM_TRY(read_names(j, &y));
    PM_TRY(read_shape(j, &y));
    PM_TRY(read_flip(j, &y));
    for (int k = 0; k < PM_SPLITS; k++)
        PM_TRY(add_yaml_split(j, &y, keys[k], pm_split_names[k], &any));
    if (!any)
        PM_TRY(pm_fail(PM_EDATA, "%s: names no pictures; add train, val or test", path));
out:
    pm_yaml_free(&y);
    return err;
}

/* ---- darknet --------------------------------------------------------------------------------- */

static int read_name_file(struct job *j, const char *path)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;

    PM_TRY(pm_lines_of(j->arena, path, &lines, &count));
    while (count && !lines[count - 1][0])
        count--;
    if (count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: is empty; write the name of each class in a line", path));
    j->names = path;
    PM_TRY(pm_annotations_classes(&j->s, (const char *const *)lines, count, path));
out:
    return err;
}

/* "key = value": cuts the line behind the key and returns the value; NULL: it is another line. */
static char *cut_pair(char *line)
{
    char *value = strchr(line, '=');

    if (!value)
        return NULL;
    for (char *end = value; end >= line && strchr("= \t", *end); end--)
        *end = '\0';
    for (value++; *value == ' ' || *value == '\t';)
        value++;
    return value;
}

static int read_darknet(struct job *j, const char *path)
{
    int err = PM_OK;
    static const char *const keys[] = { "names", "train", "valid", "test" };
    const char *values[PM_COUNT(keys)] = { NULL };
    unsigned at[PM_COUNT(keys)] = { 0 };
    char **lines = NULL;
    size_t count = 0;

    PM_TRY(pm_lines_of(j->arena, path, &lines, &count));
    for (size_t i = 0; i < count; i++) {
        const char *value = lines[i][0] == '#' ? NULL : cut_pair(lines[i]);

        for (size_t k = 0; value && k < PM_COUNT(keys); k++)
            if (!strcmp(lines[i] + strspn(lines[i], " \t"), keys[k]))
                values[k] = value, at[k] = (unsigned)i + 1;
    }
    const char *names = values[0] ? find(j, values[0]) : NULL;
    if (!names)
        PM_TRY(pm_fail(PM_EDATA, "%s: names = %s: no such file below %s", path,
                       values[0] ? values[0] : "FILE is missing", j->src));
    PM_TRY(read_name_file(j, names));
    for (size_t k = 1; k < PM_COUNT(keys); k++) {
        if (!values[k] || !values[k][0])
            continue;
        pm_annotations_split(&j->s, pm_split_names[k - 1]);
        PM_TRY(add_entry(j, path, at[k], values[k]));
    }
    if (!j->s.splits)
        PM_TRY(pm_fail(PM_EDATA, "%s: names no pictures; add train = FILE", path));
out:
    return err;
}

/* ---- folders --------------------------------------------------------------------------------- */

/* classes.txt with SRC/images/SPLIT, SRC/SPLIT, SRC/images, or SRC itself. */
static int read_folders(struct job *j)
{
    int err = PM_OK;
    bool any = false;
    const char *images = pm_arena_printf(j->arena, "%s/images", j->src);
    const char *root = pm_is_folder(images) ? images : j->src;

    PM_TRY(read_name_file(j, pm_arena_printf(j->arena, "%s/classes.txt", j->src)));
    for (int k = 0; k < PM_SPLITS; k++) {
        const char *folder = pm_split_folder(j->arena, root, k);

        if (!folder)
            continue;
        any = true;
        pm_annotations_split(&j->s, pm_split_names[k]);
        PM_TRY(add_folder(j, folder, 0));
    }
    if (!any) {
        pm_annotations_split(&j->s, NULL);
        PM_TRY(add_folder(j, root, 0));
    }
out:
    return err;
}

/* The file of classes and splits; NULL: there is none, or there are several. */
static const char *data_file(const struct job *j)
{
    static const char *const usual[] = { "data.yaml", "obj.data" };
    static const char *const endings[] = { ".yaml", ".yml", ".data" };
    const char *found = NULL;
    char **names = NULL;
    size_t count = 0;

    if (j->cfg->data)
        return pm_arena_printf(j->arena, "%s/%s", j->src, j->cfg->data);
    for (size_t i = 0; i < PM_COUNT(usual); i++) {
        const char *path = pm_arena_printf(j->arena, "%s/%s", j->src, usual[i]);
        if (pm_file_exists(path))
            return path;
    }
    if (pm_list_folder(j->arena, j->src, &names, &count) < 0)
        return NULL;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < PM_COUNT(endings); k++)
            if (pm_ends_with(names[i], endings[k])) {
                if (found)
                    return NULL;
                found = pm_arena_printf(j->arena, "%s/%s", j->src, names[i]);
            }
    return found;
}

/* pm_annotations_convert's add */
static int add_all(void *ctx, const char *src)
{
    struct job *j = ctx;
    size_t length = strlen(src);

    while (length > 1 && src[length - 1] == '/')
        length--;
    j->arena = j->s.arena;
    j->base = j->src = pm_arena_printf(j->arena, "%.*s", (int)length, src);
    j->s.unit = true;
    j->s.masks = j->cfg->masks;
    j->s.rotated = j->cfg->boxes == ROTATED;
    const char *data = data_file(j);

    if (data && pm_ends_with(data, ".data"))
        return read_darknet(j, data);
    if (data)
        return read_yaml(j, data);
    if (pm_file_exists(pm_arena_printf(j->arena, "%s/classes.txt", j->src)))
        return read_folders(j);
    return pm_fail(PM_EDATA, "%s: has neither data.yaml, obj.data nor classes.txt, nor exactly one "
                   "file *.yaml or *.data; set data=FILE", j->src);
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    struct job j = { .cfg = config };

    if (j.cfg->common.label_map)
        return pm_fail(PM_ECONFIG, "dataset convert yolo: label_map: classes of YOLO have the "
                       "numbers and names of data.yaml, obj.names or classes.txt; edit that file");
    return pm_annotations_convert(&j.s, config, src, add_all, &j, m);
}

const struct pm_converter pm_converter_yolo = {
    .name = "yolo",
    .help = "YOLO's label files, with data.yaml (ultralytics) or *.data (darknet)",
    .layout =
        "SRC/data.yaml with names and train, val, test: folders, lists *.txt or pictures; or "
        "SRC/obj.data with names,\n"
        "train, valid, test: lists; or SRC/classes.txt, whose pictures are in SRC/images/SPLIT, "
        "SRC/SPLIT or SRC.\n"
        "Pictures in .../images/... have their label files in .../labels/..., other pictures "
        "beside them. Lines are boxes,\n"
        "polygons (their box; masks=true adds masks; boxes=rotated: rotated boxes of four corners) "
        "or, with kpt_shape,\n"
        "boxes with keypoints. A picture without a label file has no objects. Class 0 of YOLO "
        "becomes the number 1 of the\n"
        "records. Paths are looked up below SRC.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct yolo_cfg),
    .convert = convert,
};
