/* kitti: KITTI's object detection: a text file per picture, a line per object: type, truncated,
 * occluded, alpha, left, top, right, bottom in pixels, and more that is not read. Types become
 * lower case, as in TensorFlow's converter. Where "dontcare" is among the classes, every box that
 * overlaps a dontcare box is left out, dontcare boxes too, as that converter does. */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/pair_records.h"

struct kitti_cfg {
    struct pm_detection_cfg common;
    struct pm_strings classes;
    int validation_set_size;
};

static const struct pm_opt opts[] = {
    PM_STRINGS(kitti_cfg, classes, NULL,
               "types to keep, in lower case; null = all but dontcare. [car, pedestrian, dontcare] "
               "is the choice of TensorFlow's converter: boxes that overlap a dontcare box are "
               "left out"),
    PM_INT(kitti_cfg, validation_set_size, -1, -1, 1 << 30,
           "this many of the first pictures by name become validation, as in TensorFlow's "
           "converter (500); -1: a share does"),
    PM_OPT_UNANNOTATED(PM_UNANNOTATED_ERROR),
    PM_OPTS_DETECTION,
    { 0 },
};

enum { DONTCARE = -1 };
struct object {
    int class; /* or DONTCARE */
    double box[4];
    bool truncated;
};

struct job {
    const struct kitti_cfg *cfg;
    struct pm_annotations s;
    struct pm_arena *arena; /* of s */
    struct object *object;  /* of one picture; add_all frees it */
    size_t count, capacity;
};

static bool wanted(const struct job *j, const char *type)
{
    const struct pm_strings *classes = &j->cfg->classes;

    for (int i = 0; i < classes->count; i++)
        if (!strcmp(classes->v[i], type))
            return true;
    return !classes->count && strcmp(type, "dontcare");
}

static int parse_line(struct job *j, char *line, const char *where, unsigned number)
{
    static const char *const names[] = { "truncated", "occluded", "alpha", "left", "top", "right",
                                         "bottom" };
    int err = PM_OK;
    char *save = NULL, *type = strtok_r(line, " \t", &save);
    double v[7];

    if (!type)
        return PM_OK;
    for (char *c = type; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    for (int k = 0; k < 7; k++) {
        const char *text = strtok_r(NULL, " \t", &save);
        if (!text || !pm_number_in_text(text, &v[k]))
            PM_TRY(pm_fail(PM_EDATA, "%s:%u: %s is \"%.40s\"; a line is type, truncated, occluded, "
                           "alpha, left, top, right, bottom", where, number, names[k],
                           text ? text : ""));
    }
    if (!wanted(j, type))
        return PM_OK;
    struct object o = { DONTCARE, { v[4], v[3], v[6], v[5] }, v[0] > 0 };
    if (strcmp(type, "dontcare"))
        PM_TRY(o.class = pm_annotations_class(&j->s, type, where, number));
    PM_GROW(j->object, j->count, j->capacity);
    j->object[j->count++] = o;
    err = PM_OK;
out:
    return err;
}

static bool overlap(const double a[4], const double b[4])
{
    return fmin(a[2], b[2]) > fmax(a[0], b[0]) && fmin(a[3], b[3]) > fmax(a[1], b[1]);
}

static bool not_cared_for(const struct job *j, const struct object *o)
{
    for (size_t i = 0; i < j->count; i++)
        if (j->object[i].class == DONTCARE && overlap(o->box, j->object[i].box))
            return true;
    return o->class == DONTCARE;
}

static int add_picture(struct job *j, const struct pm_source *picture, const char *labels)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;
    struct pm_arena *page = pm_arena_create();
    const char *where = pm_arena_printf(j->arena, "%s/%s.txt", labels,
                                        pm_stem(j->arena, picture->name));
    const struct pm_annotated of = { .path = picture->path, .filename = picture->name,
                                     .where = where };

    j->count = 0;
    if (!pm_file_exists(where)) {
        PM_TRY(pm_annotations_missing(&j->s, j->cfg->common.unannotated, picture->path,
                                      pm_arena_printf(j->arena, "%s does not exist", where)));
        if (err == 1)
            pm_annotations_picture(&j->s, of);
        err = PM_OK;
        goto out;
    }
    PM_TRY(pm_lines_of(page, where, &lines, &count));
    for (size_t i = 0; i < count; i++)
        PM_TRY(parse_line(j, lines[i], where, (unsigned)i + 1));
    pm_annotations_picture(&j->s, of);
    for (size_t i = 0; i < j->count; i++) {
        const struct object *o = &j->object[i];
        if (!not_cared_for(j, o))
            pm_annotations_object(&j->s, (struct pm_annotated_object){
                .box = { o->box[0], o->box[1], o->box[2], o->box[3] }, .class = o->class,
                .marks = o->truncated ? PM_MARK_TRUNCATED : 0 });
    }
out:
    pm_arena_destroy(&page);
    return err;
}

/* pm_annotations_convert's add */
static int add_all(void *ctx, const char *src)
{
    int err = PM_OK;
    struct job *j = ctx;
    struct pm_sources list = { 0 };
    static const char *const inside[] = { "training", NULL };
    static const char *const label_names[] = { "label_2", "labels", NULL };
    static const char *const picture_names[] = { "image_2", "images", NULL };

    j->arena = j->s.arena;
    j->s.has = PM_HAS_TRUNCATED;
    const char *root = pm_first_folder(j->arena, src, inside);
    root = root ? root : src;
    const char *labels = pm_first_folder(j->arena, root, label_names);
    const char *pictures = pm_first_folder(j->arena, root, picture_names);
    if (!labels || !pictures)
        PM_TRY(pm_fail(PM_EDATA, "%s: no folder %s in it: expected SRC/training/image_2 and "
                       "SRC/training/label_2", root, labels ? "image_2" : "label_2"));
    PM_TRY(pm_sources_folder(j->arena, pictures, 0, &list));
    if (list.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no pictures (" PM_IMAGE_ENDINGS ")", pictures));
    const size_t first = j->cfg->validation_set_size < 0 ? 0 : (size_t)j->cfg->validation_set_size;
    if (j->cfg->validation_set_size < 0)
        pm_annotations_split(&j->s, NULL);
    for (size_t i = 0; i < list.count; i++) {
        if (first && i == 0)
            pm_annotations_split(&j->s, "validation");
        if (j->cfg->validation_set_size >= 0 && i == first)
            pm_annotations_split(&j->s, "train");
        PM_TRY(add_picture(j, &list.item[i], labels));
    }
out:
    pm_sources_free(&list);
    pm_free(j->object);
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    struct job j = { .cfg = config };

    return pm_annotations_convert(&j.s, config, src, add_all, &j, m);
}

const struct pm_converter pm_converter_kitti = {
    .name = "kitti",
    .help = "KITTI's object detection with boxes",
    .layout =
        "SRC/training/image_2/*.png, SRC/training/label_2/*.txt (or SRC/image_2, SRC/label_2). A "
        "part becomes\n"
        "validation. A line is an object: type, truncated, occluded, alpha, left, top, right, "
        "bottom, and more that is\n"
        "not read. Types become lower case; truncated above 0 counts as truncated. Boxes without "
        "an area are dropped\n"
        "and counted, boxes beyond the picture are clipped.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct kitti_cfg),
    .convert = convert,
};
