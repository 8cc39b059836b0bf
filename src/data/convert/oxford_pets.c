/* oxford_pets: the Oxford-IIIT Pet data set (Parkhi et al. 2012), as TensorFlow's
 * create_pet_tf_record.py converts it: the list trainval.txt, shuffled by Python with the seed 42,
 * is divided into train (70 %) and val. The class is the file's name up to its last "_".
 *
 * Objects are the heads (XML files), or the whole animals with masks: all pixels of the trimap that
 * are not 2, the background. Only the whole animals have annotations for the list test.txt. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "data/convert/annotated.h"
#include "data/convert/pair_records.h"
#include "data/convert/voc_xml.h"

struct oxford_pets_cfg {
    struct pm_detection_cfg common;
    bool heads;
};

static const struct pm_opt opts[] = {
    PM_BOOL(oxford_pets_cfg, heads, true,
            "true: boxes of heads from annotations/xmls; false: boxes and masks of whole animals "
            "from annotations/trimaps"),
    PM_DOUBLE(pm_detection_cfg, validation, 0.3, 0, 0.9,
              "share of annotations/trainval.txt that becomes val"),
    PM_INT64(pm_detection_cfg, seed, 42, 0, 9007199254740992, "seed of that selection"),
    PM_OPT_UNANNOTATED(PM_UNANNOTATED_SKIP),
    PM_OPT_BOXES(pm_detection_cfg),
    PM_OPT_BOX_EXIF(pm_detection_cfg),
    { 0 },
};

/* A line of a list. */
struct entry {
    const char *name;  /* of the picture, without its ending */
    const char *class; /* the name's part before the last "_" */
    int id;            /* CLASS-ID, from 1; 0: the list has no such column */
    unsigned line;
};
struct entries {
    const char *list; /* the file */
    struct entry *item;
    size_t count;
};
struct job {
    const struct oxford_pets_cfg *cfg;
    struct pm_annotations s;
    struct pm_arena *arena; /* of s */
    const char *src;
};

/* ---- lists ----------------------------------------------------------------------------------- */

/* Reads "Abyssinian_100 1 1 1": name, number of the class, species, breed. */
static int read_line(struct job *j, const char *line, const char *list, size_t number,
                     struct entry *out)
{
    const size_t length = strcspn(line, " \t");
    char *end = NULL;

    *out = (struct entry){ .name = pm_arena_printf(j->arena, "%.*s", (int)length, line),
                           .line = (unsigned)number };
    const char *mark = strrchr(out->name, '_');
    if (!mark || mark == out->name || !pm_path_inside(out->name))
        return pm_fail(PM_EDATA, "%s:%zu: \"%.80s\" is not the name of a picture: CLASS_NUMBER, as "
                       "in Abyssinian_100, is needed", list, number, out->name);
    out->class = pm_arena_printf(j->arena, "%.*s", (int)(mark - out->name), out->name);
    if (line[length] == '\0')
        return PM_OK;
    const long id = strtol(line + length, &end, 10);
    if (end == line + length || !strchr(" \t", *end) || id < 1 || id > PM_MOST_LABEL_ID)
        return pm_fail(PM_EDATA, "%s:%zu: the second column \"%.40s\" is not the number of a "
                       "class, 1..%d", list, number, line + length + strspn(line + length, " \t"),
                       PM_MOST_LABEL_ID);
    out->id = (int)id;
    return PM_OK;
}

/* Reads a list; none if the file does not exist. */
static int read_list(struct job *j, const char *name, struct entries *out)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;

    out->list = pm_arena_printf(j->arena, "%s/annotations/%s.txt", j->src, name);
    if (!pm_file_exists(out->list))
        return PM_OK;
    PM_TRY(pm_lines_of(j->arena, out->list, &lines, &count));
    out->item = pm_arena_alloc(j->arena, (count + 1) * sizeof *out->item);
    for (size_t i = 0; i < count; i++)
        if (lines[i][0] && lines[i][0] != '#')
            PM_TRY(read_line(j, lines[i], out->list, i + 1, &out->item[out->count++]));
out:
    return err;
}

/* ---- classes --------------------------------------------------------------------------------- */

/* By number, or without numbers by name in TensorFlow's order: upper and lower case are equal. */
static int compare_classes(const void *x, const void *y)
{
    const struct pm_label_item *a = x, *b = y;

    if (a->id != b->id)
        return a->id < b->id ? -1 : 1;
    return strcasecmp(a->name, b->name);
}

enum { MOST_CLASSES = 1000 }; /* the data set has 37 */

static int add_class(struct pm_label_item *item, size_t *count, const struct entry *e,
                     const char *list)
{
    for (size_t i = 0; i < *count; i++)
        if (!strcmp(item[i].name, e->class) && item[i].id == e->id)
            return PM_OK;
    if (*count == MOST_CLASSES)
        return pm_fail(PM_EDATA, "%s:%u: \"%.80s\" is class %d; at most %d are allowed", list,
                       e->line, e->class, MOST_CLASSES + 1, MOST_CLASSES);
    item[(*count)++] = (struct pm_label_item){ .id = e->id, .name = e->class };
    return PM_OK;
}

/* Gives the classes of both lists their numbers. */
static int number_classes(struct job *j, const struct entries *lists, size_t count)
{
    int err = PM_OK;
    size_t n = 0;
    struct pm_label_item *item = pm_calloc(MOST_CLASSES, sizeof *item);

    for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < lists[k].count; i++)
            PM_TRY(add_class(item, &n, &lists[k].item[i], lists[k].list));
    qsort(item, n, sizeof *item, compare_classes);
    PM_TRY(pm_annotations_items(&j->s, item, n, lists[0].list));
out:
    pm_free(item);
    return err;
}

/* ---- pictures -------------------------------------------------------------------------------- */

static int add_heads(struct job *j, const struct pm_annotated *of, int class)
{
    int err = PM_OK;
    struct pm_voc_file f = { 0 };

    PM_TRY(pm_voc_read(j->arena, of->where, &f));
    pm_annotations_picture(&j->s, *of);
    pm_annotations_size(&j->s, f.height, f.width);
    for (size_t i = 0; i < f.count; i++) {
        const struct pm_voc_object *o = &f.object[i];

        pm_annotations_object(&j->s, (struct pm_annotated_object){
            .box = { o->box[0], o->box[1], o->box[2], o->box[3] }, .class = class,
            .marks = (o->difficult ? PM_MARK_DIFFICULT : 0u) |
                     (o->truncated ? PM_MARK_TRUNCATED : 0u),
            .view = o->pose });
    }
out:
    pm_voc_free(&f);
    return err;
}

static int add_picture(struct job *j, const struct entries *list, size_t i)
{
    int err = PM_OK, class = 0;
    const struct entry *e = &list->item[i];
    const bool heads = j->cfg->heads;
    const char *folder = pm_arena_printf(j->arena, "%s/images", j->src);
    const char *picture = pm_picture_of_stem(j->arena, folder, e->name);
    const char *where = pm_arena_printf(j->arena, "%s/annotations/%s/%s.%s", j->src,
                                        heads ? "xmls" : "trimaps", e->name,
                                        heads ? "xml" : "png");

    if (!picture) /* reported when it is read */
        picture = pm_arena_printf(j->arena, "%s/%s.jpg", folder, e->name);
    const struct pm_annotated of = { .path = picture, .filename = strrchr(picture, '/') + 1,
                                     .where = where };
    PM_TRY(class = pm_annotations_class(&j->s, e->class, list->list, e->line));
    if (!pm_file_exists(where)) {
        PM_TRY(pm_annotations_missing(&j->s, j->cfg->common.unannotated, picture,
                                      pm_arena_printf(j->arena, "%s does not exist", where)));
        if (err == 1)
            pm_annotations_picture(&j->s, of);
        err = PM_OK;
    } else if (heads) {
        PM_TRY(add_heads(j, &of, class));
    } else {
        pm_annotations_picture(&j->s, of);
        pm_annotations_object(&j->s,
                              (struct pm_annotated_object){ .class = class, .trimap = where });
        err = PM_OK;
    }
out:
    return err;
}

/* ---- splits ---------------------------------------------------------------------------------- */

/* Adds train and val in the order of Python's shuffle, as TensorFlow's converter writes them. */
static int add_trainval(struct job *j, const struct entries *list)
{
    int err = PM_OK;
    const struct pm_detection_cfg *cfg = &j->cfg->common;
    const size_t train = (size_t)((1 - cfg->validation) * (double)list->count);
    uint32_t *order = pm_malloc((list->count + 1) * sizeof *order);

    pm_python_shuffle((uint64_t)cfg->seed, list->count, order);
    for (size_t i = 0; i < list->count; i++) {
        if (i == 0 || i == train)
            pm_annotations_split(&j->s, i < train ? "train" : "val");
        PM_TRY(add_picture(j, list, order[i]));
    }
out:
    pm_free(order);
    return err;
}

/* pm_annotations_convert's add */
static int add_all(void *ctx, const char *src)
{
    int err = PM_OK;
    struct job *j = ctx;
    struct entries lists[2] = { { 0 }, { 0 } };

    j->arena = j->s.arena;
    j->src = src;
    j->s.has = j->cfg->heads ? PM_HAS_DIFFICULT | PM_HAS_TRUNCATED | PM_HAS_VIEW : 0u;
    j->s.masks = j->cfg->heads ? PM_MASKS_NONE : PM_MASKS_PNG;
    PM_TRY(read_list(j, "trainval", &lists[0]));
    if (lists[0].count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no lines, or does not exist; expected SRC/images and "
                       "SRC/annotations of the Oxford-IIIT Pet data set", lists[0].list));
    if (!j->cfg->heads)
        PM_TRY(read_list(j, "test", &lists[1]));
    PM_TRY(number_classes(j, lists, 2));
    PM_TRY(add_trainval(j, &lists[0]));
    if (lists[1].count)
        pm_annotations_split(&j->s, "test");
    for (size_t i = 0; i < lists[1].count; i++)
        PM_TRY(add_picture(j, &lists[1], i));
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    struct job j = { .cfg = config };

    return pm_annotations_convert(&j.s, config, src, add_all, &j, m);
}

const struct pm_converter pm_converter_oxford_pets = {
    .name = "oxford_pets",
    .help = "Oxford-IIIT Pet: 37 breeds with boxes of heads, or masks of whole animals",
    .layout =
        "SRC/images/CLASS_NUMBER.jpg, SRC/annotations/trainval.txt with a line NAME CLASS-ID "
        "SPECIES BREED-ID for each\n"
        "picture, SRC/annotations/xmls/NAME.xml (heads=true) or SRC/annotations/trimaps/NAME.png "
        "(heads=false). The list is\n"
        "shuffled and divided as TensorFlow's create_pet_tf_record.py does with Python 3: 70 % "
        "train, 30 % val. With\n"
        "heads=false, SRC/annotations/test.txt becomes test. In trimaps 2 is the background; the "
        "box encloses the other\n"
        "pixels. train.record-00000-of-00010.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct oxford_pets_cfg),
    .convert = convert,
};
