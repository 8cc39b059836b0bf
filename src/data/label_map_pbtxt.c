/* label_map_pbtxt: reads protobuf's text form of a label map. Known fields that are not used are
 * skipped; unknown ones are errors, because a misspelt name would lose a class. */
#include "data/label_reading.h"
#include "formats/proto_text.h"

#include <string.h>

static int wanted(const struct pm_label_reading *r, const struct pm_proto_text *f, const char *what)
{
    return pm_label_fail(r, f->line, "%s: expected %s, found: \"%.20s\"", f->name, what,
                         f->kind == PM_PROTO_TEXT_MESSAGE ? "{" : f->value);
}

static int take_number(const struct pm_label_reading *r, const struct pm_proto_text *f,
                       int64_t *out)
{
    return pm_proto_text_int(f, out) ? PM_OK : wanted(r, f, "a whole number of at most 64 bits");
}

static int take_text(const struct pm_label_reading *r, const struct pm_proto_text *f,
                     const char **out)
{
    if (f->kind != PM_PROTO_TEXT_STRING)
        return wanted(r, f, "a text in quotes");
    if (*out)
        return pm_label_fail(r, f->line, "%s appears twice in one item: remove one", f->name);
    *out = f->value;
    return PM_OK;
}

static int read_point(const struct pm_label_reading *r, const struct pm_proto_text *point,
                      struct pm_label_raw *item)
{
    int64_t id = -1;
    const char *name = NULL;
    int err = PM_OK;

    if (point->kind != PM_PROTO_TEXT_MESSAGE)
        PM_TRY(wanted(r, point, "'{'"));
    for (const struct pm_proto_text *f = point->first; f; f = f->next)
        if (!strcmp(f->name, "id"))
            PM_TRY(take_number(r, f, &id));
        else if (!strcmp(f->name, "label"))
            PM_TRY(take_text(r, f, &name));
        else
            PM_TRY(pm_label_fail(r, f->line,
                                 "a keypoint has no field %s; its fields are id and label",
                                 f->name));
    PM_TRY(pm_label_add_point(r, item, id, name ? name : "", point->line));
out:
    return err;
}

static int unknown(const struct pm_label_reading *r, const struct pm_proto_text *f,
                   const char *const *known, size_t count)
{
    const char *near = pm_nearest(f->name, known, count);

    return pm_label_fail(r, f->line, "an item of a label map has no field %s%s%s%s", f->name,
                         near ? " (did you mean " : "", near ? near : "", near ? "?)" : "");
}

static int read_field(const struct pm_label_reading *r, const struct pm_proto_text *f,
                      struct pm_label_raw *item)
{
    static const char *const known[] = { "name",         "id",
                                         "display_name", "keypoints",
                                         "ancestor_ids", "descendant_ids",
                                         "frequency",    "instance_count" };
    size_t k = 0;

    while (k < PM_COUNT(known) && strcmp(known[k], f->name))
        k++;
    switch (k) {
    case 0: return take_text(r, f, &item->name);
    case 1:
        if (item->has_id)
            return pm_label_fail(r, f->line, "id appears twice in one item: remove one");
        item->has_id = true;
        return take_number(r, f, &item->id);
    case 2: return take_text(r, f, &item->display_name);
    case 3: return read_point(r, f, item);
    case PM_COUNT(known): return unknown(r, f, known, PM_COUNT(known));
    default: return PM_OK;
    }
}

int pm_label_read_pbtxt(struct pm_label_reading *r, const char *text)
{
    const struct pm_proto_text *root = NULL;
    struct pm_proto_text_error error;
    int err = PM_OK;

    r->lines = true;
    if (pm_proto_text_parse(r->arena, text, false, &root, &error) < 0)
        PM_TRY(pm_label_fail(r, error.line, "%s", error.text));
    for (const struct pm_proto_text *i = root->first; i; i = i->next) {
        if (strcmp(i->name, "item"))
            PM_TRY(pm_label_fail(r, i->line, "expected item, found: %s; is this a label map?",
                                 i->name));
        if (i->kind != PM_PROTO_TEXT_MESSAGE)
            PM_TRY(wanted(r, i, "'{'"));
        struct pm_label_raw *item = pm_label_add(r, i->line);
        for (const struct pm_proto_text *f = i->first; f; f = f->next)
            PM_TRY(read_field(r, f, item));
    }
out:
    return err;
}
