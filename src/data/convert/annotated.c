/* Collecting the annotations of a detection data set: pictures, objects, classes, splits. */
#include "data/convert/annotated.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "data/convert/pair_records.h"

/* ---- classes ------------------------------------------------------------------------------- */

static size_t place_of(const struct pm_annotations *s, const char *name)
{
    size_t at = (size_t)pm_hash(name) & (s->slots - 1);

    while (s->slot[at] && strcmp(s->item[s->slot[at] - 1].name, name))
        at = (at + 1) & (s->slots - 1);
    return at;
}

static void grow_slots(struct pm_annotations *s)
{
    pm_free(s->slot);
    s->slots = s->slots ? 2 * s->slots : 64;
    s->slot = pm_calloc(s->slots, sizeof *s->slot);
    for (int i = 0; i < s->map.count; i++)
        s->slot[place_of(s, s->item[i].name)] = i + 1;
}

static void add_class(struct pm_annotations *s, struct pm_label_item item)
{
    PM_GROW(s->item, s->map.count, s->items_capacity);
    if (2 * ((size_t)s->map.count + 1) > s->slots)
        grow_slots(s);
    s->item[s->map.count] = item;
    s->map.item = s->item;
    s->slot[place_of(s, item.name)] = ++s->map.count;
}

static int find_class(const struct pm_annotations *s, const char *name)
{
    return s->slots ? s->slot[place_of(s, name)] - 1 : -1;
}

static int give_items(struct pm_annotations *s, const struct pm_label_item *items, size_t count,
                      const char *from)
{
    if (count > PM_MOST_LABEL_ID)
        return pm_fail(PM_EDATA, "%s: %zu classes; at most %d are allowed", from, count,
                       PM_MOST_LABEL_ID);
    s->fixed = true;
    s->classes_from = from;
    for (size_t i = 0; i < count; i++) {
        const char *name = items[i].name;

        if (!name[0] || !pm_is_line(name))
            return pm_fail(PM_EDATA,
                           "%s: class %zu has the name \"%.80s\"; a name is one line without "
                           "control characters",
                           from, i + 1, name);
        if (find_class(s, name) >= 0)
            return pm_fail(PM_EDATA, "%s: class %zu is named \"%.80s\", as an earlier class is: "
                           "rename one of them", from, i + 1, name);
        add_class(s, (struct pm_label_item){ .id = items[i].id ? items[i].id : (int)i + 1,
                                             .name = pm_arena_strdup(s->arena, name) });
    }
    return pm_label_map_check(&s->map, from);
}

static int read_label_map(struct pm_annotations *s)
{
    struct pm_label_map map = { 0 };
    const int err = pm_label_map_read(s->arena, s->cfg->label_map, &map);

    s->fixed = true;
    s->classes_from = s->cfg->label_map;
    for (int i = 0; err == PM_OK && i < map.count; i++)
        add_class(s, map.item[i]);
    return err;
}

int pm_annotations_start(struct pm_annotations *s, const struct pm_detection_cfg *cfg)
{
    *s = (struct pm_annotations){ .arena = pm_arena_create(), .cfg = cfg };
    return cfg->label_map ? read_label_map(s) : PM_OK;
}

void pm_annotations_free(struct pm_annotations *s)
{
    pm_free(s->item);
    pm_free(s->picture);
    pm_free(s->object);
    pm_free(s->split);
    pm_free(s->slot);
    pm_arena_destroy(&s->arena);
}

int pm_annotations_items(struct pm_annotations *s, const struct pm_label_item *items, size_t count,
                         const char *from)
{
    return s->cfg->label_map ? PM_OK : give_items(s, items, count, from);
}

int pm_annotations_classes(struct pm_annotations *s, const char *const *names, size_t count,
                           const char *from)
{
    struct pm_label_item *items = pm_calloc(count + 1, sizeof *items);

    for (size_t i = 0; i < count; i++)
        items[i].name = names[i];
    const int err = pm_annotations_items(s, items, count, from);
    pm_free(items);
    return err;
}

static int unknown_class(const struct pm_annotations *s, const char *name, const char *where,
                         unsigned line)
{
    const char *near = pm_label_map_nearest(&s->map, name);
    char at[16] = "";

    if (line)
        snprintf(at, sizeof at, ":%u", line);
    return pm_fail(PM_EDATA, "%s%s: class \"%.80s\" is not one of the %d in %s%s%s%s: correct one "
                   "of the files", where, at, name, s->map.count, s->classes_from,
                   near ? " (did you mean \"" : "", near ? near : "", near ? "\"?)" : "");
}

int pm_annotations_class(struct pm_annotations *s, const char *name, const char *where,
                         unsigned line)
{
    const int known = find_class(s, name);

    if (known >= 0)
        return known;
    if (s->fixed) {
        const int id = pm_label_map_find(&s->map, name); /* by its display name */

        for (int i = 0; id >= 0 && i < s->map.count; i++)
            if (s->item[i].id == id)
                return i;
        return unknown_class(s, name, where, line);
    }
    if (!name[0] || !pm_is_line(name))
        return pm_fail(PM_EDATA, "%s: line %u has the class name \"%.80s\"; a name is one line "
                       "without control characters", where, line, name);
    if (s->map.count >= PM_MOST_LABEL_ID)
        return pm_fail(PM_EDATA, "%s: line %u has a class more than the allowed %d", where, line,
                       PM_MOST_LABEL_ID);
    add_class(s, (struct pm_label_item){ .name = pm_arena_strdup(s->arena, name) });
    return s->map.count - 1;
}

/* ---- pictures and objects ------------------------------------------------------------------ */

void pm_annotations_split(struct pm_annotations *s, const char *name)
{
    PM_GROW(s->split, s->splits, s->splits_capacity);
    s->split[s->splits++] = (struct pm_annotated_split){
        name ? pm_arena_strdup(s->arena, name) : NULL, s->pictures
    };
}

void pm_annotations_picture(struct pm_annotations *s, struct pm_annotated of)
{
    of.first = s->objects;
    of.count = 0;
    PM_GROW(s->picture, s->pictures, s->pictures_capacity);
    s->picture[s->pictures++] = of;
}

void pm_annotations_object(struct pm_annotations *s, struct pm_annotated_object of)
{
    PM_GROW(s->object, s->objects, s->objects_capacity);
    s->object[s->objects++] = of;
    s->picture[s->pictures - 1].count++;
}

void pm_annotations_size(struct pm_annotations *s, int height, int width)
{
    s->picture[s->pictures - 1].height = height;
    s->picture[s->pictures - 1].width = width;
}

int pm_annotations_missing(struct pm_annotations *s, int rule, const char *picture,
                           const char *missing)
{
    if (rule == PM_UNANNOTATED_ERROR)
        return pm_fail(PM_EDATA,
                       "%s has no annotations: %s; add them, or set unannotated=empty (no "
                       "objects in the picture) or unannotated=skip",
                       picture, missing);
    if (s->missing++ == 0)
        s->first_missing = missing;
    return rule == PM_UNANNOTATED_EMPTY;
}

/* ---- files ----------------------------------------------------------------------------------- */

const char *pm_picture_of_stem(struct pm_arena *a, const char *folder, const char *stem)
{
    static const char endings[] = PM_IMAGE_ENDINGS " ";

    for (int upper = 0; upper < 2; upper++)
        for (const char *e = endings, *end; (end = strchr(e, ' ')); e = end + 1) {
            char *path = pm_arena_printf(a, "%s/%s%.*s", folder, stem, (int)(end - e), e);

            for (char *c = path + strlen(path) - (end - e); upper && *c; c++)
                *c = (char)toupper((unsigned char)*c);
            if (pm_file_exists(path))
                return path;
        }
    return NULL;
}

int pm_warn_unused_labels(struct pm_arena *a, const char *labels, const char *ending,
                          const char *other, const char *pictures)
{
    int err = PM_OK;
    char **names = NULL;
    const char *first = NULL;
    size_t count = 0, unused = 0;

    if (!strcmp(labels, pictures))
        return PM_OK;
    PM_TRY(pm_list_folder(a, labels, &names, &count));
    for (size_t i = 0; i < count; i++)
        if (pm_ends_with(names[i], ending) && !(other && !strcmp(names[i], other)) &&
            !pm_picture_of_stem(a, pictures, pm_stem(a, names[i])) && !unused++)
            first = names[i];
    if (unused)
        PM_WARN("data", "%s: %zu label file%s no picture in %s, the first is %s: add the "
                "picture%s, or remove the file%s", labels, unused,
                unused == 1 ? " has" : "s have", pictures, first, unused == 1 ? "" : "s",
                unused == 1 ? "" : "s");
out:
    return err;
}

int pm_lines_of(struct pm_arena *a, const char *path, char ***lines, size_t *count)
{
    int err = PM_OK;
    char *text = NULL;
    size_t capacity = 1;

    PM_TRY(pm_text_read(path, PM_MOST_LIST, &text));
    for (const char *c = text; *c; c++)
        capacity += *c == '\n';
    char *copy = pm_arena_strdup(a, text), *end = NULL;
    *lines = pm_arena_alloc(a, capacity * sizeof **lines);
    *count = 0;
    for (char *line = copy; line && *line; line = end ? end + 1 : NULL) {
        end = strchr(line, '\n');
        char *last = end ? end : line + strlen(line);
        *last = '\0';
        while (last > line && isspace((unsigned char)last[-1]))
            *--last = '\0';
        (*lines)[(*count)++] = line;
    }
out:
    pm_free(text);
    return err;
}

int pm_lines_add(struct pm_arena *a, const char *path,
                 int (*add)(void *ctx, const char *line, size_t number), void *ctx)
{
    int err = PM_OK;
    char **lines = NULL;
    size_t count = 0;

    PM_TRY(pm_lines_of(a, path, &lines, &count));
    for (size_t i = 0; i < count; i++)
        if (lines[i][0])
            PM_TRY(add(ctx, lines[i], i + 1));
out:
    return err;
}

bool pm_path_inside(const char *path)
{
    if (path[0] == '/' || !path[0])
        return false;
    for (const char *p = path; p; p = strchr(p, '/'), p = p ? p + 1 : NULL)
        if (!strncmp(p, "..", 2) && (p[2] == '/' || !p[2]))
            return false;
    return true;
}

const char *const pm_split_names[PM_SPLITS] = { "train", "validation", "test" };

const char *pm_split_folder(struct pm_arena *a, const char *root, int k)
{
    static const char *const names[PM_SPLITS][5] = {
        { "train", "training", "Train", NULL },
        { "validation", "val", "valid", "Val", NULL },
        { "test", "testing", "Test", NULL },
    };

    return pm_first_folder(a, root, names[k]);
}

bool pm_number_in_text(const char *text, double *out)
{
    char *end = NULL;

    *out = strtod(text, &end);
    if (end == text || !isfinite(*out))
        return false;
    while (isspace((unsigned char)*end))
        end++;
    return *end == '\0';
}
