/* camvid: the lists train.txt, val.txt and test.txt name a picture and its map per line. Paths are
 * below SRC; of a longer path the part that exists below SRC is used. Grey maps hold the classes of
 * classes.txt (lines like "0 Sky"; without this file the usual 11). A last class Unlabelled or Void
 * is ignored and not counted. RGB maps use CamVid's own 32 colours, or those of label_colors.txt;
 * Void is ignored. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/convert/pair_records.h"
#include "data/inside.h"

enum { IGNORE = 255, FULL = PM_CAMVID_ALL };
struct camvid_cfg {
    int num_shards, bad;
};

static const struct pm_opt opts[] = {
    PM_INT(camvid_cfg, num_shards, 4, 1, 99999, "files of each split"),
    PM_OPT_BAD_PAIRS(camvid_cfg),
    { 0 },
};

/* ---- lists ---------------------------------------------------------------------------------- */

/* The existing file below SRC with which the listed path ends, or the path itself, for the
 * message. */
static const char *below(struct pm_arena *a, const char *src, const char *listed)
{
    for (const char *p = listed; p; p = strchr(p, '/')) {
        p += strspn(p, "/");
        const char *path = pm_arena_printf(a, "%s/%s", src, p);
        if (*p && pm_file_exists(path))
            return path;
    }
    return pm_arena_printf(a, "%s/%s", src, listed + strspn(listed, "/"));
}

static int read_list(struct pm_arena *a, const char *src, const char *split,
                     struct pm_segmentation *s)
{
    int err = PM_OK;
    char **lines = NULL, *save = NULL;
    size_t count = 0;
    const char *list = pm_arena_printf(a, "%s/%s.txt", src, split);

    if (!pm_file_exists(list))
        return PM_OK;
    PM_TRY(pm_file_lines(a, list, &lines, &count));
    for (size_t i = 0; i < count; i++) {
        const char *image = strtok_r(lines[i], " \t;", &save),
                   *label = strtok_r(NULL, " \t;", &save);
        if (!image || !label || strtok_r(NULL, " \t;", &save))
            PM_TRY(pm_fail(PM_EDATA, "%s:%zu: the line must be \"PICTURE MAP\", two paths", list,
                           i + 1));
        if (!pm_is_inside(image + strspn(image, "/")) || !pm_is_inside(label + strspn(label, "/")))
            PM_TRY(pm_fail(PM_EDATA,
                           "%s:%zu: a path leads out of %s; all paths must stay in that folder",
                           list, i + 1, src));
        pm_segmentation_add(s, below(a, src, image), below(a, src, label), pm_stem(a, image));
    }
out:
    return err;
}

/* ---- classes -------------------------------------------------------------------------------- */

static bool is_void(const char *name)
{
    static const char *const names[] = { "void", "unlabelled", "unlabeled" };
    for (size_t i = 0; i < PM_COUNT(names); i++)
        if (!strcasecmp(name, names[i]))
            return true;
    return false;
}

/* One line per class, in order: "3 Road". */
static int read_classes(struct pm_arena *a, const char *path, const char ***names, int *count)
{
    int err = PM_OK;

    PM_TRY(pm_name_file(a, path, names, count));
    for (int i = 0; i < *count; i++) {
        char *end = NULL;
        if (strtol((*names)[i], &end, 10) != i || end == (*names)[i] || *end != ' ' || !end[1])
            PM_TRY(pm_fail(PM_EDATA,
                           "%s:%d: \"%.40s\" must be \"%d NAME\", a class number and its name",
                           path, i + 1, (*names)[i], i));
        (*names)[i] = end + 1;
    }
out:
    return err;
}

static int numbered(struct pm_arena *a, const char *src, struct pm_segmentation *s,
                    const char *const **names)
{
    const char *path = pm_usual_file(a, NULL, src, "classes.txt"), **own = NULL;
    int err = PM_OK, count = PM_CAMVID_CLASSES + 1;

    own = pm_arena_alloc(a, (size_t)count * sizeof *own);
    for (int i = 0; i + 1 < count; i++)
        own[i] = pm_camvid_classes[i].name;
    own[count - 1] = "Unlabelled";
    *names = own;
    if (path) {
        PM_TRY(read_classes(a, path, &own, &count));
        *names = own;
    }
    s->ignore = IGNORE;
    if (is_void((*names)[count - 1]))
        s->ignore = --count;
    s->num_classes = count;
out:
    return err;
}

static int coloured(struct pm_arena *a, const char *src, struct pm_segmentation *s,
                    const char *const **names)
{
    const char *path = pm_usual_file(a, NULL, src, "label_colors.txt"), **own = NULL;
    struct pm_colour *colours = pm_arena_alloc(a, FULL * sizeof *colours);
    int err = PM_OK, count = 0;

    s->ignore = IGNORE;
    s->colours_count = FULL;
    if (path) {
        PM_TRY(pm_colour_file(a, path, "Void", IGNORE, &colours, &s->colours_count, &own, &count));
    } else {
        own = pm_arena_alloc(a, FULL * sizeof *own);
        for (int i = 0; i < FULL; i++) {
            const bool none = is_void(pm_camvid_all[i].name);
            memcpy(colours[i].rgb, pm_camvid_all[i].rgb, 3);
            colours[i].label = (uint16_t)(none ? IGNORE : count);
            if (!none)
                own[count++] = pm_camvid_all[i].name;
        }
    }
    s->colours = colours;
    s->num_classes = count;
    *names = own;
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    static const char *const splits[] = { "train", "val", "test" };
    const struct camvid_cfg *cfg = config;
    struct pm_arena *a = pm_arena_create();
    struct pm_segmentation *s = pm_segmentation_create();
    const char *const *names = NULL;
    size_t first[PM_COUNT(splits) + 1] = { 0 };
    bool colours = false;
    int err = PM_OK;

    s->bad = cfg->bad;
    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        PM_TRY(read_list(a, src, splits[k], s));
        first[k + 1] = s->count;
    }
    if (s->count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: no train.txt, val.txt or test.txt with lines \"PICTURE MAP\"",
                       src));
    PM_TRY(pm_segmentation_coloured(s, &colours));
    PM_TRY((colours ? coloured : numbered)(a, src, s, &names));
    PM_TRY(pm_making_labels(m, names, s->num_classes));
    pm_making_segmentation(m, s->ignore, pm_known_colormap(names, s->num_classes));
    for (size_t k = 0; k < PM_COUNT(splits); k++)
        PM_TRY(pm_segmentation_part(m, splits[k], s, first[k], first[k + 1] - first[k],
                                    cfg->num_shards));
out:
    pm_segmentation_destroy(&s);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_camvid = {
    .name = "camvid",
    .help = "CamVid: lists of pictures and maps",
    .layout =
        "SRC/{train,val,test}.txt with lines \"PICTURE MAP\", SRC/classes.txt with lines \"0 "
        "Sky\". "
        "Grey maps hold\n"
        "the classes' numbers; a last class Unlabelled or Void is ignored. RGB maps: CamVid's 32 "
        "colours, or\n"
        "\"R G B NAME\" a line in SRC/label_colors.txt. Splits as the lists: "
        "train-00000-of-00004.tfrecord.",
    .opts = opts,
    .cfg_size = sizeof(struct camvid_cfg),
    .convert = convert,
};
