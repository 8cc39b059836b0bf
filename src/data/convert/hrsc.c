/* hrsc: HRSC2016, photos of ships with rotated boxes. An XML file has the objects of a picture,
 * each with centre, sides and angle: mbox_cx, mbox_cy, mbox_w, mbox_h in pixels, mbox_ang in
 * radians, clockwise. Lists in ImageSets are the splits. */
#include <math.h>
#include <string.h>

#include "data/convert/annotated.h"
#include "data/convert/pair_records.h"
#include "data/convert/xml_fields.h"
#include "data/rotated_box.h"

enum { SHIP, ID };
struct hrsc_cfg {
    struct pm_detection_cfg common;
    int classes;
};

static const struct pm_opt opts[] = {
    PM_ENUM(hrsc_cfg, classes, SHIP, "ship|id",
            "ship: one class; id: the numbers in Class_ID are the names of the classes"),
    PM_OPT_UNANNOTATED(PM_UNANNOTATED_ERROR),
    PM_OPTS_DETECTION,
    { 0 },
};

struct job {
    const struct hrsc_cfg *cfg;
    struct pm_annotations s;
    struct pm_arena *arena; /* of s */
};

/* ---- annotation files ------------------------------------------------------------------------ */

enum { WIDTH = 1, HEIGHT, RESOLUTION, CLASS, TRUNCATED, DIFFICULT, CX, CY, W, H, ANG };
#define OBJECT "HRSC_Objects/HRSC_Object"
static const char *const fields[] = {
    "Img_SizeWidth",    "Img_SizeHeight",     "Img_Resolution",     OBJECT "/Class_ID",
    OBJECT "/truncated", OBJECT "/difficult", OBJECT "/mbox_cx",    OBJECT "/mbox_cy",
    OBJECT "/mbox_w",   OBJECT "/mbox_h",     OBJECT "/mbox_ang",
};

struct object {
    const char *class;
    bool truncated, difficult;
    double v[5]; /* mbox_cx, cy, w, h, ang */
    unsigned line;
};
struct file {
    int width, height;
    double resolution; /* metres per pixel; 0: unknown */
    struct object *object; /* owned */
    size_t count, capacity;
};

static void begin(struct pm_xml *x)
{
    struct file *f = x->out;

    PM_GROW(f->object, f->count, f->capacity);
    f->object[f->count++] = (struct object){ .line = pm_xml_line(x) };
}

static void take(struct pm_xml *x, int field, char *text)
{
    struct file *f = x->out;
    struct object *o = f->count ? &f->object[f->count - 1] : NULL;
    double number = 0;

    switch (field) {
    case WIDTH: pm_xml_number(x, text, 0, &number), f->width = (int)number; break;
    case HEIGHT: pm_xml_number(x, text, 0, &number), f->height = (int)number; break;
    case RESOLUTION: /* it may be empty */
        f->resolution = pm_number_in_text(text, &number) && number > 0 && number < 1e6 ? number : 0;
        break;
    case CLASS: o->class = pm_arena_strdup(x->arena, text); break;
    case TRUNCATED: pm_xml_flag(x, text, &o->truncated); break;
    case DIFFICULT: pm_xml_flag(x, text, &o->difficult); break;
    default: pm_xml_number(x, text, -1e9, &o->v[field - CX]); break;
    }
}

static void end(struct pm_xml *x)
{
    static const double full_turn = 6.2831853071795864769;
    const struct file *f = x->out;
    const struct object *o = &f->object[f->count - 1];

    for (int k = CX; k <= ANG; k++)
        if (!(x->seen & 1u << k))
            pm_xml_refuse(x, "the object that begins in line %u has no <%s>", o->line,
                          strrchr(fields[k - 1], '/') + 1);
    if (o->v[2] < 0 || o->v[3] < 0)
        pm_xml_refuse(x, "the object that begins in line %u has the sides mbox_w %g, mbox_h %g; "
                      "write pixels above 0", o->line, o->v[2], o->v[3]);
    if (fabs(o->v[4]) > full_turn)
        PM_WARN("data", "%s:%u: mbox_ang is %g, beyond a full turn of radians; the angle is "
                "wrapped: if the file has degrees, divide them by 57.29578", x->path, o->line,
                o->v[4]);
}

static const struct pm_xml_form form = {
    .root = "HRSC_Image", .kind = "HRSC", .levels = 4, .fields = fields,
    .fields_count = PM_COUNT(fields), .object = OBJECT, .begin = begin, .value = take, .end = end,
};

/* ---- one picture ----------------------------------------------------------------------------- */

static int add_objects(struct job *j, const struct file *f, const char *where)
{
    int err = PM_OK;

    for (size_t i = 0; i < f->count; i++) {
        const struct object *o = &f->object[i];
        const struct pm_rectangle r = pm_rectangle_of_hrsc(o->v);
        double at[PM_CORNERS][2];
        int class = 0;

        pm_rectangle_corners(&r, at);
        PM_TRY(class = pm_annotations_class(&j->s, j->cfg->classes == SHIP ? "ship"
                                            : o->class ? o->class : "", where, o->line));
        pm_annotations_object(&j->s, (struct pm_annotated_object){
            .corners = pm_arena_copy(j->arena, at, sizeof at), .class = class, .line = o->line,
            .marks = (o->difficult ? PM_MARK_DIFFICULT : 0u) |
                     (o->truncated ? PM_MARK_TRUNCATED : 0u) });
    }
    err = PM_OK;
out:
    return err;
}

static int add_picture(struct job *j, const char *picture, const char *xml)
{
    int err = PM_OK;
    struct file f = { 0 };
    struct pm_annotated of = { .path = picture, .filename = strrchr(picture, '/') + 1,
                               .where = xml };

    if (!pm_file_exists(xml)) {
        err = pm_annotations_missing(&j->s, j->cfg->common.unannotated, picture,
                                     pm_arena_printf(j->arena, "%s does not exist", xml));
        if (err == 1)
            pm_annotations_picture(&j->s, of);
        return err < 0 ? err : PM_OK;
    }
    PM_TRY(pm_xml_read(&form, j->arena, xml, "dataset convert hrsc", &f));
    of.gsd = (float)f.resolution;
    pm_annotations_picture(&j->s, of);
    pm_annotations_size(&j->s, f.height, f.width);
    PM_TRY(add_objects(j, &f, xml));
out:
    pm_free(f.object);
    return err;
}

/* ---- folders --------------------------------------------------------------------------------- */

struct folders {
    const char *pictures, *xml;
};

struct list {
    struct job *j;
    const char *path;
    const struct folders *at;
};

/* pm_lines_add's add */
static int add_line(void *ctx, const char *line, size_t number)
{
    const struct list *l = ctx;
    struct pm_arena *a = l->j->arena;

    if (!pm_path_inside(line))
        return pm_fail(PM_EDATA, "%s:%zu: \"%.80s\" is not the name of a picture without its "
                       "ending", l->path, number, line);
    const char *picture = pm_picture_of_stem(a, l->at->pictures, line);
    if (!picture)
        return pm_fail(PM_EDATA, "%s:%zu: %s has no picture %s.bmp: add it, or remove the line",
                       l->path, number, l->at->pictures, line);
    return add_picture(l->j, picture, pm_arena_printf(a, "%s/%s.xml", l->at->xml, line));
}

/* The lists of splits; *any: whether there are any. trainval counts only without train and val. */
static int add_lists(struct job *j, const char *src, const struct folders *at, bool *any)
{
    static const char *const names[][2] = { { "train", "train" }, { "val", "validation" },
                                            { "trainval", "train" }, { "test", "test" } };
    int err = PM_OK;
    bool divided = false;

    for (size_t k = 0; k < PM_COUNT(names); k++) {
        const char *list = pm_arena_printf(j->arena, "%s/ImageSets/%s.txt", src, names[k][0]);

        if (!pm_file_exists(list) || (k == 2 && divided))
            continue;
        *any = true;
        divided |= k < 2;
        pm_annotations_split(&j->s, names[k][1]);
        PM_TRY(pm_lines_add(j->arena, list, add_line, &(struct list){ j, list, at }));
    }
out:
    return err;
}

/* All pictures of the folder. Annotations without a picture are reported. */
static int add_folder(struct job *j, const struct folders *at)
{
    int err = PM_OK;
    struct pm_sources list = { 0 };

    pm_annotations_split(&j->s, NULL);
    PM_TRY(pm_sources_folder(j->arena, at->pictures, 0, &list));
    PM_TRY(pm_warn_unused_labels(j->arena, at->xml, ".xml", NULL, at->pictures));
    if (list.count == 0)
        PM_TRY(pm_fail(PM_EDATA, "%s: has no pictures (" PM_IMAGE_ENDINGS ")", at->pictures));
    for (size_t i = 0; i < list.count; i++)
        PM_TRY(add_picture(j, list.item[i].path,
                           pm_arena_printf(j->arena, "%s/%s.xml", at->xml,
                                           pm_stem(j->arena, list.item[i].name))));
out:
    pm_sources_free(&list);
    return err;
}

/* pm_annotations_convert's add */
static int add_all(void *ctx, const char *src)
{
    static const char *const inside[] = { "FullDataSet", NULL };
    static const char *const picture_names[] = { "AllImages", "JPEGImages", "images", NULL };
    static const char *const xml_names[] = { "Annotations", "annotations", NULL };
    int err = PM_OK;
    struct job *j = ctx;
    bool any = false;

    j->arena = j->s.arena;
    j->s.rotated = true;
    j->s.has = PM_HAS_DIFFICULT | PM_HAS_TRUNCATED;
    const char *found = pm_first_folder(j->arena, src, inside), *root = found ? found : src;
    const struct folders at = { pm_first_folder(j->arena, root, picture_names),
                                pm_first_folder(j->arena, root, xml_names) };

    if (!at.pictures || !at.xml)
        PM_TRY(pm_fail(PM_EDATA, "%s: no folder %s in it; expected SRC/FullDataSet/AllImages and "
                       "SRC/FullDataSet/Annotations", root,
                       at.pictures ? xml_names[0] : picture_names[0]));
    PM_TRY(add_lists(j, src, &at, &any));
    if (!any)
        PM_TRY(add_folder(j, &at));
out:
    return err;
}

static int convert(const void *config, const char *src, struct pm_making *m)
{
    struct job j = { .cfg = config };

    return pm_annotations_convert(&j.s, config, src, add_all, &j, m);
}

const struct pm_converter pm_converter_hrsc = {
    .name = "hrsc",
    .help = "HRSC2016's photos of ships with rotated boxes",
    .layout =
        "SRC/FullDataSet/AllImages/ID.bmp, SRC/FullDataSet/Annotations/ID.xml, and the lists "
        "SRC/ImageSets/train.txt,\n"
        "val.txt (or trainval.txt) and test.txt with one ID per line; without lists a part becomes "
        "validation. Folders and\n"
        "lists may also be in SRC itself. An object has mbox_cx, mbox_cy, mbox_w, mbox_h in pixels "
        "and mbox_ang in radians.\n"
        "Img_Resolution becomes image/gsd.",
    .own_name = true,
    .opts = opts,
    .cfg_size = sizeof(struct hrsc_cfg),
    .convert = convert,
};
