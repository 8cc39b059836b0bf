/* Annotation files of PASCAL VOC:
 *     <annotation> <filename>F</filename> <size> <width>W</width> <height>H</height> </size>
 *         <object> <name>N</name> <pose>P</pose> <truncated>0</truncated> <difficult>0</difficult>
 *             <bndbox> <xmin>..</xmin> <ymin>..</ymin> <xmax>..</xmax> <ymax>..</ymax> </bndbox>
 *         </object> </annotation> */
#include "data/convert/voc_xml.h"

#include <string.h>

#include "data/convert/xml_fields.h"

enum { FILENAME = 1, WIDTH, HEIGHT, NAME, POSE, TRUNCATED, DIFFICULT, YMIN, XMIN, YMAX, XMAX };
static const char *const fields[] = {
    "filename", "size/width", "size/height", "object/name", "object/pose", "object/truncated",
    "object/difficult", "object/bndbox/ymin", "object/bndbox/xmin", "object/bndbox/ymax",
    "object/bndbox/xmax",
};

static void begin(struct pm_xml *x)
{
    struct pm_voc_file *f = x->out;

    PM_GROW(f->object, f->count, f->capacity);
    f->object[f->count++] = (struct pm_voc_object){ .line = pm_xml_line(x) };
}

static void take(struct pm_xml *x, int field, char *text)
{
    struct pm_voc_file *f = x->out;
    struct pm_voc_object *o = f->count ? &f->object[f->count - 1] : NULL;
    double number = 0;

    switch (field) {
    case FILENAME: f->filename = pm_arena_strdup(x->arena, text); break;
    case WIDTH: pm_xml_number(x, text, 0, &number), f->width = (int)number; break;
    case HEIGHT: pm_xml_number(x, text, 0, &number), f->height = (int)number; break;
    case NAME: o->name = pm_arena_strdup(x->arena, text); break;
    case POSE: o->pose = text[0] ? pm_arena_strdup(x->arena, text) : NULL; break;
    case TRUNCATED: pm_xml_flag(x, text, &o->truncated); break;
    case DIFFICULT: pm_xml_flag(x, text, &o->difficult); break;
    default: pm_xml_number(x, text, -1e9, &o->box[field - YMIN]); break;
    }
}

static void end(struct pm_xml *x)
{
    const struct pm_voc_file *f = x->out;
    const struct pm_voc_object *o = &f->object[f->count - 1];

    if (!o->name || !o->name[0])
        pm_xml_refuse(x, "the object that begins in line %u has no <name>", o->line);
    for (int k = YMIN; k <= XMAX; k++)
        if (!(x->seen & 1u << k))
            pm_xml_refuse(x, "the object that begins in line %u has no <bndbox> with <%s>; rotated "
                          "boxes are not read from files of PASCAL VOC", o->line,
                          strrchr(fields[k - 1], '/') + 1);
}

static const struct pm_xml_form form = {
    .root = "annotation", .kind = "PASCAL VOC", .levels = 5, .fields = fields,
    .fields_count = PM_COUNT(fields), .object = "object", .begin = begin, .value = take,
    .end = end,
};

int pm_voc_read(struct pm_arena *a, const char *path, struct pm_voc_file *out)
{
    *out = (struct pm_voc_file){ 0 };
    return pm_xml_read(&form, a, path, "dataset convert voc", out);
}

void pm_voc_free(struct pm_voc_file *f)
{
    pm_free(f->object);
    *f = (struct pm_voc_file){ 0 };
}
