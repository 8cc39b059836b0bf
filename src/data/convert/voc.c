/* voc: PASCAL VOC's boxes, one XML file per picture (voc_xml.h). Lists in ImageSets/Main are the
 * splits; without them the folders train, val and test; without those a share becomes validation.
 * Boxes are divided by the picture's size; nothing is subtracted from the pixel numbers, as in
 * TensorFlow's converter. */
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/pair_records.h"
#include "data/convert/voc_xml.h"

struct voc_cfg {
    struct pm_detection_cfg common;
    struct pm_strings splits;
    bool ignore_difficult;
};

static const struct pm_opt opts[] = {
    PM_STRINGS(voc_cfg, splits, NULL,
               "lists of ImageSets/Main to convert; [] = all but the lists of single classes, "
               "and without trainval if train and val exist"),
    PM_BOOL(voc_cfg, ignore_difficult, false, "leave out objects that are marked as difficult"),
    PM_OPT_UNANNOTATED(PM_UNANNOTATED_ERROR),
    PM_OPTS_DETECTION,
    { 0 },
};

struct job {
    const struct voc_cfg *cfg;
    struct pm_annotations s;
    struct pm_arena *arena; /* of s */
};

/* ---- one picture ----------------------------------------------------------------------------- */

static int add_objects(struct job *j, const struct pm_voc_file *f, const char *where)
{
    int err = PM_OK;

    for (size_t i = 0; i < f->count; i++) {
        const struct pm_voc_object *o = &f->object[i];
        int class = 0;

        if (o->difficult && j->cfg->ignore_difficult)
            continue;
        PM_TRY(class = pm_annotations_class(&j->s, o->name, where, o->line));
        pm_annotations_object(&j->s, (struct pm_annotated_object){
            .box = { o->box[0], o->box[1], o->box[2], o->box[3] }, .class = class,
            .marks = (o->difficult ? PM_MARK_DIFFICULT : 0u) |
                     (o->truncated ? PM_MARK_TRUNCATED : 0u),
            .view = o->pose });
    }
    err = PM_OK;
out:
    return err;
}

/* xml may be missing. test: a missing one means no objects, because the objects of VOC's test
 * pictures are not public. */
static int add_picture(struct job *j, const char *picture, const char *xml, bool test)
{
    int err = PM_OK;
    struct pm_voc_file f = { 0 };
    const struct pm_annotated of = { .path = picture, .filename = strrchr(picture, '/') + 1,
                                     .where = xml };

    if (!pm_file_exists(xml)) {
        const int given = j->cfg->common.unannotated;
        err = pm_annotations_missing(
            &j->s, test && given == PM_UNANNOTATED_ERROR ? PM_UNANNOTATED_EMPTY : given, picture,
            pm_arena_printf(j->arena, "%s does not exist", xml));
        if (err == 1)
            pm_annotations_picture(&j->s, of);
        return err < 0 ? err : PM_OK;
    }
    PM_TRY(pm_voc_read(j->arena, xml, &f));
    pm_annotations_picture(&j->s, of);
    pm_annotations_size(&j->s, f.height, f.width);
    PM_TRY(add_objects(j, &f, xml));
out:
    pm_voc_free(&f);
    return err;
}

/* ---- folders --------------------------------------------------------------------------------- */

static const char *const xml_folders[] = { "Annotations", "annotations", NULL };
static const char *const picture_folders[] = { "JPEGImages", "images", "Images", NULL };

static const char *folder_of(struct job *j, const char *root, const char *const *names)
{
    const char *found = pm_first_folder(j->arena, root, names);
    return found ? found : root;
}

/* All pictures of a folder. */
static int add_folder(struct job *j, const char *root)
{
    int err = PM_OK;
    struct pm_sources list = { 0 };
    const char *xml = folder_of(j, root, xml_folders);
    const char *pictures = folder_of(j, root, picture_folders);

    PM_TRY(pm_sources_folder(j->arena, pictures, 0, &list));
    if (list.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no pictures (" PM_IMAGE_ENDINGS "); expected "
                       "SRC/JPEGImages, SRC/images or SRC/train", pictures));
    for (size_t i = 0; i < list.count; i++)
        PM_TRY(add_picture(j, list.item[i].path,
                           pm_arena_printf(j->arena, "%s/%s.xml", xml,
                                           pm_stem(j->arena, list.item[i].name)), false));
out:
    pm_sources_free(&list);
    return err;
}

static int add_folders(struct job *j, const char *src)
{
    int err = PM_OK;
    bool found = false;

    for (int k = 0; k < PM_SPLITS; k++) {
        const char *root = pm_split_folder(j->arena, src, k);

        if (!root)
            continue;
        found = true;
        pm_annotations_split(&j->s, pm_split_names[k]);
        PM_TRY(add_folder(j, root));
    }
    if (!found) {
        pm_annotations_split(&j->s, NULL);
        PM_TRY(add_folder(j, src));
    }
out:
    return err;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The name in a line, without quotes and without the 1, 0 or -1 of a list of a single class. */
static char *name_of_line(char *line)
{
    char *end = line + strlen(line);

    char *last = end;
    while (last > line && !strchr(" \t", last[-1]))
        last--;
    if (last > line && (!strcmp(last, "1") || !strcmp(last, "0") || !strcmp(last, "-1")))
        for (end = last; end > line && strchr(" \t", end[-1]);)
            *--end = '\0';
    if (line[0] == '"' && end - line >= 2 && end[-1] == '"') {
        end[-1] = '\0';
        line++;
    }
    return line;
}

static int add_list(struct job *j, const char *root, const char *split)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;
    const char *list = pm_arena_printf(j->arena, "%s/ImageSets/Main/%s.txt", root, split);

    PM_TRY(pm_lines_of(j->arena, list, &lines, &count));
    for (size_t i = 0; i < count; i++) {
        const char *id = name_of_line(lines[i]);

        if (!id[0] || id[0] == '#')
            continue;
        if (!pm_path_inside(id))
            PM_TRY(pm_fail(PM_EDATA, "%s:%zu: \"%.80s\" is not the name of a picture in "
                           "JPEGImages, without its ending", list, i + 1, id));
        const char *pictures = folder_of(j, root, picture_folders);
        const char *picture = pm_picture_of_stem(j->arena, pictures, id);
        const char *xml = pm_arena_printf(j->arena, "%s/%s.xml", folder_of(j, root, xml_folders),
                                          id);
        if (!picture) /* reported when it is read */
            picture = pm_arena_printf(j->arena, "%s/%s.jpg", pictures, id);
        PM_TRY(add_picture(j, picture, xml, !strcmp(split, "test")));
    }
out:
    return err;
}

struct lists {
    const char **name;
    size_t count;
};

static bool has_list(const struct lists *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (!strcmp(l->name[i], name))
            return true;
    return false;
}

/* Whether it is a list of one class: NAME_train beside train. */
static bool of_one_class(const struct lists *l, const char *name)
{
    for (const char *mark = strchr(name, '_'); mark; mark = strchr(mark + 1, '_'))
        if (has_list(l, mark + 1))
            return true;
    return false;
}

/* Adds the lists of a root that are not known yet. */
static int list_lists(struct job *j, const char *root, struct lists *l)
{
    int err = PM_OK;
    char **names = NULL;
    size_t count = 0;
    const char *folder = pm_arena_printf(j->arena, "%s/ImageSets/Main", root);

    if (!pm_is_folder(folder))
        return PM_OK;
    PM_TRY(pm_list_folder(j->arena, folder, &names, &count));
    const char **all = pm_arena_alloc(j->arena, (l->count + count + 1) * sizeof *all);
    for (size_t i = 0; i < l->count; i++)
        all[i] = l->name[i];
    l->name = all;
    for (size_t i = 0; i < count; i++)
        if (names[i][0] != '.' && pm_ends_with(names[i], ".txt") &&
            !has_list(l, pm_stem(j->arena, names[i])))
            all[l->count++] = pm_stem(j->arena, names[i]);
out:
    return err;
}

/* Leaves the lists that become splits. */
static int choose_lists(const struct job *j, const char *src, struct lists *l)
{
    const struct lists all = *l;
    const struct pm_strings *wanted = &j->cfg->splits;
    const char **chosen = pm_arena_alloc(j->arena, (all.count + (size_t)wanted->count + 1) *
                                         sizeof *chosen);

    *l = (struct lists){ chosen, 0 };
    for (int i = 0; i < wanted->count; i++) {
        if (!has_list(&all, wanted->v[i]))
            return pm_fail(PM_ECONFIG, "dataset convert voc: splits: %s has no list "
                           "ImageSets/Main/%s.txt", src, wanted->v[i]);
        chosen[l->count++] = wanted->v[i];
    }
    const bool both = has_list(&all, "train") && has_list(&all, "val");
    for (size_t i = 0; !wanted->count && i < all.count; i++)
        if (!of_one_class(&all, all.name[i]) && !(both && !strcmp(all.name[i], "trainval")))
            chosen[l->count++] = all.name[i];
    return PM_OK;
}

/* SRC itself, or the years in it. */
static size_t list_roots(struct job *j, const char *src, const char *roots[2])
{
    static const char *const kit[] = { "VOCdevkit", NULL };
    static const char *const years[] = { "VOC2007", "VOC2012" };
    const char *packed = pm_first_folder(j->arena, src, kit);
    size_t count = 0;

    for (size_t i = 0; i < PM_COUNT(years); i++) {
        const char *path = pm_arena_printf(j->arena, "%s/%s", packed ? packed : src, years[i]);
        if (pm_is_folder(path))
            roots[count++] = path;
    }
    if (count == 0)
        roots[count++] = src;
    return count;
}

/* pm_annotations_convert's add */
static int add_all(void *ctx, const char *src)
{
    int err = PM_OK;
    struct job *j = ctx;
    struct lists l = { 0 };
    const char *roots[2];

    j->arena = j->s.arena;
    j->s.has = PM_HAS_DIFFICULT | PM_HAS_TRUNCATED | PM_HAS_VIEW;
    const size_t count = list_roots(j, src, roots);
    for (size_t i = 0; i < count; i++)
        PM_TRY(list_lists(j, roots[i], &l));
    PM_TRY(choose_lists(j, src, &l));
    for (size_t k = 0; k < l.count; k++) {
        pm_annotations_split(&j->s, l.name[k]);
        for (size_t i = 0; i < count; i++)
            if (pm_file_exists(pm_arena_printf(j->arena, "%s/ImageSets/Main/%s.txt", roots[i],
                                               l.name[k])))
                PM_TRY(add_list(j, roots[i], l.name[k]));
    }
    if (l.count == 0)
        PM_TRY(add_folders(j, roots[0]));
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    struct job j = { .cfg = config };

    return pm_annotations_convert(&j.s, config, src, add_all, &j, m);
}

const struct pm_converter pm_converter_voc = {
    .name = "voc",
    .help = "PASCAL VOC with boxes (XML files), also LabelImg's and Roboflow's",
    .layout =
        "SRC/Annotations/ID.xml, SRC/JPEGImages/ID.jpg, SRC/ImageSets/Main/SPLIT.txt with one ID "
        "per line: each list\n"
        "becomes a split. SRC may also hold VOC2007 and VOC2012, whose lists are joined. Without "
        "lists: SRC/train,\n"
        "SRC/validation (or val, valid) and SRC/test with XML files and pictures; or all in SRC; "
        "a part becomes validation.\n"
        "Boxes without an area are dropped and counted, boxes beyond the picture are clipped. The "
        "size of the picture\n"
        "counts, not the one in the XML file. train.record-00000-of-00010.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct voc_cfg),
    .convert = convert,
};
