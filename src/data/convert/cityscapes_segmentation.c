/* cityscapes_segmentation: street scenes with the 19 classes that Cityscapes evaluates. The map of
 * a picture is the first of these files that exists: labelTrainIds (stored unchanged), labelIds,
 * instanceIds (a number of 1000 or more is 1000 x labelId + instance). labelIds and instanceIds are
 * converted to train ids; an id without a train id becomes 255. Records are sorted by city and
 * name. The split train_coarse includes train_extra.
 *
 * With instances=true records also have an instance map, made from instanceIds. In that file
 * instances count from 0, and a group of objects that are not separated has only its labelId. */
#include <ctype.h>
#include <string.h>

#include "data/convert/pair_records.h"

enum { CLASSES = PM_CITYSCAPES_CLASSES, IGNORE = 255, FIRST_THING = 11 };
struct cityscapes_cfg {
    const char *annotations;
    bool instances;
    int num_shards, bad;
};

static const struct pm_opt opts[] = {
    PM_STRING(cityscapes_cfg, annotations, "gtFine",
              "folder of the label maps: gtFine or gtCoarse"),
    PM_BOOL(cityscapes_cfg, instances, false,
            "also store instance maps, made from *_instanceIds.png; every picture needs that file"),
    PM_INT(cityscapes_cfg, num_shards, 10, 1, 99999, "files of each split"),
    PM_OPT_BAD_PAIRS(cityscapes_cfg),
    { 0 },
};

static const char *const names[CLASSES] = {
    "road",  "sidewalk",   "building", "wall",       "fence",   "pole",  "light",
    "sign",  "vegetation", "terrain",  "sky",        "person",  "rider", "car",
    "truck", "bus",        "train",    "motorcycle", "bicycle",
};

/* Each kind of map has its own table, because the same number has a different meaning in each
 * kind. */
enum { TRAIN_IDS, LABEL_IDS, INSTANCE_IDS, KINDS };
static const char *const kinds[KINDS] = { "labelTrainIds", "labelIds", "instanceIds" };

static void fill_meaning(int kind, uint16_t *meaning)
{
    for (int v = 0; v < 65536; v++) {
        const int id = kind == INSTANCE_IDS && v >= 1000 ? v / 1000 : v;
        meaning[v] = IGNORE;
        for (int k = 0; k < CLASSES; k++)
            if (pm_cityscapes_ids[k] == id)
                meaning[v] = (uint16_t)k;
    }
}

/* For things: train id x 1000 + instance number from 1; + 0 for a group. */
static void fill_instances(uint16_t *meaning)
{
    const int wide = PM_INSTANCE_DIVISOR;

    memset(meaning, 0, 65536 * sizeof *meaning);
    for (int k = FIRST_THING; k < CLASSES; k++) {
        meaning[pm_cityscapes_ids[k]] = (uint16_t)(k * wide);
        for (int n = 0; n < wide; n++)
            meaning[pm_cityscapes_ids[k] * wide + n] =
                (uint16_t)(n + 1 < wide ? k * wide + n + 1 : PM_INSTANCE_TOO_MANY);
    }
}

/* The first kind of map that exists for this picture, and its path; KINDS and NULL if none
 * exists. */
static int find_map(struct pm_arena *a, const char *maps, const char *stem, const char *annotations,
                    const char **path)
{
    for (int k = 0; k < KINDS; k++) {
        *path = pm_arena_printf(a, "%s/%s_%s_%s.png", maps, stem, annotations, kinds[k]);
        if (pm_file_exists(*path))
            return k;
    }
    *path = NULL;
    return KINDS;
}

struct listing {
    const struct cityscapes_cfg *cfg;
    const char *pictures, *maps; /* folders of the splits */
    struct pm_segmentation *s;
    int kind; /* of all maps so far; KINDS: none yet */
};

/* Finds the instance map of the pair that was added last. Returns 0 and logs a warning if it is
 * missing. */
static int find_instances(struct pm_arena *a, const struct listing *l, const char *maps,
                          const char *stem)
{
    struct pm_pair *p = &l->s->pair[l->s->count - 1];

    if (!l->cfg->instances || !p->label)
        return 1;
    p->instances = pm_arena_printf(a, "%s/%s_%s_instanceIds.png", maps, stem, l->cfg->annotations);
    if (pm_file_exists(p->instances))
        return 1;
    if (l->cfg->bad != PM_BAD_SKIP)
        return pm_fail(PM_EDATA, "%s has no instance map: %s does not exist", p->image,
                       p->instances);
    PM_WARN("data", "skipped: %s has no %s", p->image, p->instances);
    return 0;
}

static int list_city(struct pm_arena *a, struct listing *l, const char *split, const char *city)
{
    static const char ending[] = "_leftImg8bit";
    struct pm_sources files = { 0 };
    int err = PM_OK;
    const char *maps = pm_arena_printf(a, "%s/%s/%s", l->maps, split, city);

    PM_TRY(
        pm_sources_folder(a, pm_arena_printf(a, "%s/%s/%s", l->pictures, split, city), 0, &files));
    for (size_t i = 0; i < files.count; i++) {
        char *stem = pm_arena_strdup(a, pm_stem(a, files.item[i].name));
        const size_t n = strlen(stem), m = sizeof ending - 1;
        const char *map = NULL;
        if (n <= m || strcmp(stem + n - m, ending))
            continue;
        stem[n - m] = '\0';
        const int kind = find_map(a, maps, stem, l->cfg->annotations, &map);
        if (!map && strcmp(split, "test") && l->cfg->bad == PM_BAD_SKIP) {
            PM_WARN("data", "skipped: %s has no label map in %s", files.item[i].path, maps);
            continue;
        }
        if (!map && strcmp(split, "test"))
            PM_TRY(
                pm_fail(PM_EDATA,
                        "%s has no label map: none of %s/%s_%s_labelTrainIds.png, ..._labelIds.png "
                        "and ..._instanceIds.png exists",
                        files.item[i].path, maps, stem, l->cfg->annotations));
        if (map && l->kind != KINDS && l->kind != kind)
            PM_TRY(pm_fail(PM_EDATA,
                           "%s: this map is of the kind %s, but earlier maps are of the kind %s: "
                           "all must be of one kind",
                           map, kinds[kind], kinds[l->kind]));
        l->kind = map ? kind : l->kind;
        pm_segmentation_add(l->s, files.item[i].path, map, stem);
        const int whole = find_instances(a, l, maps, stem);
        PM_TRY(whole);
        l->s->count -= whole == 0;
    }
out:
    pm_sources_free(&files);
    return err;
}

static int list_split(struct pm_arena *a, struct listing *l, const char *split)
{
    const char *folder = pm_arena_printf(a, "%s/%s", l->pictures, split);
    char **cities = NULL;
    size_t count = 0;
    int err = PM_OK;

    if (!pm_is_folder(folder))
        return PM_OK;
    PM_TRY(pm_list_folder(a, folder, &cities, &count));
    for (size_t i = 0; i < count; i++)
        if (cities[i][0] != '.' && pm_is_folder(pm_arena_printf(a, "%s/%s", folder, cities[i])))
            PM_TRY(list_city(a, l, split, cities[i]));
out:
    return err;
}

static int convert_splits(struct pm_arena *a, struct listing *l, struct pm_making *m)
{
    static const char *const splits[][2] = { { "train", "train_extra" }, { "val" }, { "test" } };
    const char *annotations = l->cfg->annotations;
    const char *quality = strncmp(annotations, "gt", 2) ? annotations : annotations + 2;
    char *suffix = pm_arena_strdup(a, quality);
    uint16_t *meaning = pm_arena_alloc(a, 65536 * sizeof *meaning);
    int err = PM_OK;
    size_t listed = 0;

    if (!*quality)
        PM_TRY(pm_fail(PM_ECONFIG,
                       "annotations: \"%s\" must begin with gt, such as gtFine or gtCoarse",
                       annotations));
    suffix[0] = (char)tolower((unsigned char)suffix[0]); /* gtFine: fine */
    for (size_t k = 0; k < PM_COUNT(splits); k++) {
        l->kind = KINDS;
        PM_TRY(list_split(a, l, splits[k][0]));
        if (splits[k][1] && strcmp(suffix, "fine"))
            PM_TRY(list_split(a, l, splits[k][1]));
        listed += l->s->count;
        fill_meaning(l->kind, meaning);
        l->s->meaning = l->kind == TRAIN_IDS || l->kind == KINDS ? NULL : meaning;
        PM_TRY(pm_segmentation_split(m, pm_arena_printf(a, "%s_%s", splits[k][0], suffix), l->s,
                                     l->cfg->num_shards));
    }
    if (listed == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: it has no {train,val,test}/CITY/*_leftImg8bit.png",
                       l->pictures));
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    static const char *const folders[] = { "leftImg8bit", "imgsFine/leftImg8bit", NULL };
    struct listing l = { .cfg = config };
    struct pm_arena *a = pm_arena_create();
    uint16_t *instances = pm_arena_alloc(a, 65536 * sizeof *instances);
    bool *things = pm_arena_alloc(a, 65536 * sizeof *things);
    int err = PM_OK;

    l.s = pm_segmentation_create();
    l.pictures = pm_first_folder(a, src, folders);
    l.maps = pm_arena_printf(a, "%s/%s", src, l.cfg->annotations);
    if (!l.pictures || !pm_is_folder(l.maps))
        PM_TRY(pm_fail(PM_EDATA, "%s: it has no folder %s", src,
                       l.pictures ? l.cfg->annotations : "leftImg8bit"));
    l.s->num_classes = CLASSES;
    l.s->ignore = IGNORE;
    l.s->bad = l.cfg->bad;
    PM_TRY(pm_making_labels(m, names, CLASSES));
    pm_making_segmentation(m, IGNORE, "cityscapes");
    if (l.cfg->instances)
        pm_making_things(m, (const int[]){ 11, 12, 13, 14, 15, 16, 17, 18 }, CLASSES - FIRST_THING);
    fill_instances(instances);
    l.s->instance_meaning = instances;
    for (int k = FIRST_THING; k < CLASSES; k++)
        things[k] = true;
    l.s->things = things;
    PM_TRY(convert_splits(a, &l, m));
out:
    pm_segmentation_destroy(&l.s);
    pm_arena_destroy(&a);
    return err;
}

const struct pm_converter pm_converter_cityscapes_segmentation = {
    .name = "cityscapes_segmentation",
    .help = "Cityscapes with label maps of its 19 classes",
    .layout = "SRC/leftImg8bit/{train,val,test}/CITY/*_leftImg8bit.png and "
              "SRC/gtFine/.../*_gtFine_labelTrainIds.png,\n"
              "or _labelIds.png or _instanceIds.png, whose numbers become train ids. Splits "
              "train_fine, val_fine,\n"
              "test_fine (of gtCoarse: train_coarse with train_extra, val_coarse): "
              "train_fine-00000-of-00010.tfrecord. 255 is\n"
              "ignored. instances=true also stores *_gtFine_instanceIds.png as instance maps of "
              "people and\n"
              "vehicles.",
    .opts = opts,
    .cfg_size = sizeof(struct cityscapes_cfg),
    .convert = convert,
};
