/* dataset_check_report: compares the splits, and shows what was found, as JSON and as text made
 * from it. */
#include "app/dataset_check.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* ---- the sentences -------------------------------------------------------------------------- */

static const struct sentence {
    const char *name; /* in the JSON */
    bool wrong;
    const char *one, *many; /* after the count */
} sentences[FINDINGS] = {
    [FOUND_DAMAGED] = { "damaged", true, "record is damaged", "records are damaged" },
    [FOUND_UNKNOWN_CLASS] = { "unknown_class", true, "box has a class that the label map lacks",
                              "boxes have classes that the label map lacks" },
    [FOUND_TURNED] = { "turned", true,
                       "picture is turned by EXIF, but its boxes belong to the stored picture: "
                       "convert the data again",
                       "pictures are turned by EXIF, but their boxes belong to the stored "
                       "pictures: convert the data again" },
    [FOUND_NOTHING] = { "nothing", true, "pictures with a usable box: there is nothing to learn",
                        NULL },
    [FOUND_EQUAL] = { "equal_pictures", true, "picture is in both splits (equal pixels)",
                      "pictures are in both splits (equal pixels)" },
    [FOUND_PART] = { "part", false,
                     "picture is in both splits (equal pixels); do not train on one and evaluate "
                     "on the other",
                     "pictures are in both splits (equal pixels); do not train on one and "
                     "evaluate on the other" },
    [FOUND_WITHOUT_CLASS] = { "without_class", false, "box has no class; training drops it",
                              "boxes have no class; training drops them" },
    [FOUND_DEGENERATE] = { "degenerate", false, "box has no area; training drops it",
                           "boxes have no area; training drops them" },
    [FOUND_OUTSIDE] = { "outside", false, "box is outside of its picture; training drops it",
                        "boxes are outside of their pictures; training drops them" },
    [FOUND_CLIPPED] = { "clipped", false,
                        "box reaches beyond its picture; training clips it",
                        "boxes reach beyond their pictures; training clips them" },
    [FOUND_TINY] = { "tiny", false, "box has a side below one pixel",
                     "boxes have a side below one pixel" },
    [FOUND_DOUBLED] = { "doubled", false, "box is there twice with the same class",
                        "boxes repeat a box of the same class" },
    [FOUND_TWO_CLASSES] = { "two_classes", false,
                            "box has a second class",
                            "boxes repeat a box with another class" },
    [FOUND_WITHOUT_MASK] = { "without_mask", false,
                             "box has no mask, but other boxes of its record have one",
                             "boxes have no mask, but other boxes of their records have one" },
    [FOUND_EMPTY_MASK] = { "empty_mask", false, "mask has no pixel; its box is kept",
                           "masks have no pixel; their boxes are kept" },
    [FOUND_NUMBERS] = { "numbers", false,
                        "box has another class number than the label map; its name counts",
                        "boxes have other class numbers than the label map; their names count" },
    [FOUND_MANY] = { "many", false,
                     "picture has more than 100 boxes; raise data.max_boxes to train on all",
                     "pictures have more than 100 boxes; raise data.max_boxes to train on all" },
    [FOUND_UNCLEAR] = { "unclear_turn", false,
                        "picture is turned by EXIF, and its size does not tell whether its boxes "
                        "are, too: look at it (--boxes)",
                        "pictures are turned by EXIF, and their sizes do not tell whether their "
                        "boxes are, too: look at them (--boxes)" },
    [FOUND_UNREAD] = { "unread", false, "record has values that are not read",
                       "records have values that are not read" },
    [FOUND_SIZE] = { "size", false,
                     "picture has another size than its record states",
                     "pictures have other sizes than their records state" },
    [FOUND_REPEATED] = { "repeated", false, "picture is there twice (equal pixels)",
                         "pictures repeat another one of the split (equal pixels)" },
    [FOUND_ABSENT_CLASS] = { "absent_class", false, "class of other splits has no box here",
                             "classes of other splits have no boxes here" },
};

static void add_finding(cJSON *list, enum app_finding which, const struct app_found *f,
                        const char *split, const char *other)
{
    const struct sentence *t = &sentences[which];
    struct pm_str text = { 0 };
    cJSON *o = cJSON_CreateObject();

    pm_str_add(&text, "%zu %s", f->count, f->count == 1 || !t->many ? t->one : t->many);
    cJSON_AddStringToObject(o, "finding", t->name);
    cJSON_AddBoolToObject(o, "wrong", t->wrong);
    cJSON_AddStringToObject(o, "split", split);
    if (other)
        cJSON_AddStringToObject(o, "other", other);
    cJSON_AddNumberToObject(o, "count", (double)f->count);
    if (f->first)
        cJSON_AddStringToObject(o, "first", f->first);
    cJSON_AddStringToObject(o, "text", text.text);
    cJSON_AddItemToArray(list, o);
    pm_str_free(&text);
}

/* ---- equal pictures ------------------------------------------------------------------------- */

static int compare_pictures(const void *x, const void *y)
{
    const struct app_picture_hash *a = x, *b = y;
    const int order = memcmp(a->hash, b->hash, sizeof a->hash);

    if (order)
        return order;
    if (a->split != b->split)
        return a->split < b->split ? -1 : 1;
    return strcmp(a->where, b->where);
}

/* Whether one split contains the other by its name, as trainval contains train and val. */
static bool contains(const char *whole, const char *part)
{
    const char *w = strrchr(whole, '_'), *p = strrchr(part, '_');

    w = w ? w + 1 : whole;
    p = p ? p + 1 : part;
    return strlen(w) > strlen(p) && strstr(w, p);
}

/* Adds a group of equal pictures, sorted by their splits, to the counts of splits, pair[s][s], and
 * of pairs, pair[a][b] with a < b. A picture counts once for each split that has an equal one
 * before it. first: [splits], to work in. */
static void count_group(struct app_check *c, const struct app_picture_hash *p, size_t count,
                        size_t *first, struct app_found *pair)
{
    size_t runs = 0;

    for (size_t i = 0; i < count; i++) {
        for (size_t r = 0; r < runs; r++) {
            const struct app_picture_hash *earlier = &p[first[r]];
            struct app_found *f = &pair[earlier->split * c->splits + p[i].split];

            if (f->count++ == 0)
                f->first = pm_arena_printf(c->arena, "%s and %s", earlier->where, p[i].where);
        }
        if (i == 0 || p[i].split != p[i - 1].split)
            first[runs++] = i;
    }
}

static void compare_splits(struct app_check *c, cJSON *list)
{
    struct app_found *pair = pm_calloc(c->splits * c->splits + 1, sizeof *pair);
    size_t *first = pm_calloc(c->splits + 1, sizeof *first);

    if (c->pictures)
        qsort(c->picture, c->pictures, sizeof *c->picture, compare_pictures);
    for (size_t begin = 0, end; begin < c->pictures; begin = end) {
        for (end = begin + 1; end < c->pictures; end++)
            if (memcmp(c->picture[begin].hash, c->picture[end].hash, 16) != 0)
                break;
        count_group(c, c->picture + begin, end - begin, first, pair);
    }
    for (size_t a = 0; a < c->splits; a++)
        for (size_t b = a; b < c->splits; b++) {
            const struct app_found *f = &pair[a * c->splits + b];
            const char *x = c->split[a].name, *y = c->split[b].name;
            const bool part = contains(x, y) || contains(y, x);

            if (f->count && a == b)
                add_finding(list, FOUND_REPEATED, f, x, NULL);
            else if (f->count)
                add_finding(list, part ? FOUND_PART : FOUND_EQUAL, f, x, y);
        }
    pm_free(first);
    pm_free(pair);
}

/* ---- classes -------------------------------------------------------------------------------- */

static size_t boxes_of(const struct app_split_check *s, const struct app_class *class)
{
    for (size_t i = 0; i < s->classes; i++)
        if (!strcmp(s->class[i].name, class->name))
            return s->class[i].boxes;
    return 0;
}

/* Finds the classes that have boxes in a split, but none in `s`. */
static void find_absent(struct app_check *c, size_t s)
{
    struct app_found *f = &c->split[s].found[FOUND_ABSENT_CLASS];
    struct pm_str names = { 0 };

    for (size_t k = 0; k < c->splits; k++)
        for (size_t i = 0; i < c->split[k].classes; i++) {
            const struct app_class *class = &c->split[k].class[i];
            bool known = class->boxes == 0 || boxes_of(&c->split[s], class) > 0;

            for (size_t before = 0; before < k && !known; before++)
                known = boxes_of(&c->split[before], class) > 0;
            if (known)
                continue;
            if (f->count++ < 20)
                pm_str_add(&names, "%s%s", names.length ? ", " : "", class->name);
        }
    if (f->count)
        f->first = pm_arena_printf(c->arena, "%s%s", names.text, f->count > 20 ? ", ..." : "");
    pm_str_free(&names);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static int compare_numbers(const void *x, const void *y)
{
    const float a = *(const float *)x, b = *(const float *)y;
    return a < b ? -1 : a > b;
}

/* Adds the quantiles of the values: the value at the place nearest to each share. */
static void add_quantiles(cJSON *o, const char *key, struct app_numbers *n)
{
    static const struct {
        const char *name;
        double share;
    } points[] = { { "min", 0 },    { "p10", 0.1 }, { "p25", 0.25 }, { "p50", 0.5 },
                   { "p75", 0.75 }, { "p90", 0.9 }, { "max", 1 } };
    cJSON *q;

    if (n->count == 0)
        return;
    qsort(n->v, n->count, sizeof *n->v, compare_numbers);
    q = cJSON_AddObjectToObject(o, key);
    for (size_t i = 0; i < PM_COUNT(points); i++)
        cJSON_AddNumberToObject(
            q, points[i].name,
            (double)n->v[(size_t)(points[i].share * (double)(n->count - 1) + 0.5)]);
}

static cJSON *split_json(struct app_split_check *s)
{
    cJSON *o = cJSON_CreateObject(), *list;

    cJSON_AddNumberToObject(o, "pictures", (double)s->records);
    cJSON_AddNumberToObject(o, "without_objects", (double)s->empty);
    cJSON_AddNumberToObject(o, "boxes", (double)s->boxes);
    cJSON_AddNumberToObject(o, "crowds", (double)s->crowds);
    cJSON_AddNumberToObject(o, "difficult", (double)s->difficult);
    cJSON_AddNumberToObject(o, "group_of", (double)s->group_of);
    cJSON_AddNumberToObject(o, "masks", (double)s->masks);
    cJSON_AddNumberToObject(o, "with_keypoints", (double)s->keypoints);
    list = cJSON_AddArrayToObject(o, "classes");
    for (size_t i = 0; i < s->classes; i++) {
        cJSON *class = cJSON_CreateObject();

        cJSON_AddNumberToObject(class, "id", s->class[i].id);
        cJSON_AddStringToObject(class, "name", s->class[i].name);
        cJSON_AddNumberToObject(class, "boxes", (double)s->class[i].boxes);
        cJSON_AddNumberToObject(class, "pictures", (double)s->class[i].pictures);
        cJSON_AddItemToArray(list, class);
    }
    add_quantiles(o, "boxes_per_picture", &s->objects);
    add_quantiles(o, "side_pixels", &s->side);
    add_quantiles(o, "side_share", &s->share);
    return o;
}

size_t app_check_report(struct app_check *c, cJSON *out)
{
    cJSON *list = cJSON_AddArrayToObject(out, "findings"), *o;
    size_t wrong = 0, boxes = 0;

    for (size_t i = 0; i < c->splits; i++) {
        find_absent(c, i);
        boxes += c->split[i].boxes;
    }
    for (size_t i = 0; i < c->splits; i++) {
        struct app_split_check *s = &c->split[i];
        const struct app_found none = { 0 };

        if (s->boxes == 0 && (boxes == 0 || strstr(s->name, "train")))
            add_finding(list, FOUND_NOTHING, &none, s->name, NULL);
        for (int k = 0; k < FINDINGS; k++)
            if (s->found[k].count)
                add_finding(list, (enum app_finding)k, &s->found[k], s->name, NULL);
        cJSON_ArrayForEach(o, cJSON_GetObjectItem(out, "splits"))
            if (!strcmp(cJSON_GetObjectItem(o, "name")->valuestring, s->name))
                cJSON_AddItemToObject(o, "objects", split_json(s));
    }
    compare_splits(c, list);
    cJSON_ArrayForEach(o, list)
        wrong += cJSON_IsTrue(cJSON_GetObjectItem(o, "wrong"));
    return wrong;
}

/* ---- text ----------------------------------------------------------------------------------- */

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);
    return v ? v->valuedouble : 0;
}

static void add_count(struct pm_str *s, const cJSON *o, const char *key, const char *what)
{
    if (number(o, key) > 0)
        pm_str_add(s, ", %.0f %s", number(o, key), what);
}

/* Adds "8 to 250; 10 % up to 60, half up to 98, 90 % up to 110". */
static void quantiles_text(struct pm_str *s, const char *what, const cJSON *q, double unit,
                           int digits)
{
    if (q)
        pm_str_add(s, "    %s: %.*f to %.*f; 10 %% up to %.*f, half up to %.*f, 90 %% up to %.*f\n",
                   what, digits, number(q, "min") * unit, digits, number(q, "max") * unit, digits,
                   number(q, "p10") * unit, digits, number(q, "p50") * unit, digits,
                   number(q, "p90") * unit);
}

static int compare_boxes(const void *x, const void *y)
{
    const double a = number(*(cJSON *const *)x, "boxes"), b = number(*(cJSON *const *)y, "boxes");
    return a > b ? -1 : a < b;
}

enum { MOST_NAMED = 40 };

/* Adds the classes with their boxes, the most frequent one first. */
static void classes_text(struct pm_str *s, const cJSON *list)
{
    const size_t count = (size_t)cJSON_GetArraySize(list);
    const cJSON **class = pm_calloc(count + 1, sizeof *class), *o;
    size_t n = 0;

    cJSON_ArrayForEach(o, list)
        class[n++] = o;
    qsort(class, n, sizeof *class, compare_boxes);
    pm_str_add(s, "    boxes per class:");
    for (size_t i = 0; i < n && i < MOST_NAMED; i++) {
        pm_str_add(s, "%s ", i ? "," : "");
        pm_str_name(s, cJSON_GetObjectItem(class[i], "name")->valuestring, 0);
        pm_str_add(s, " %.0f", number(class[i], "boxes"));
    }
    pm_str_add(s, n > MOST_NAMED ? ", ... (%zu classes; all with --json)\n" : "\n", n);
    pm_free(class);
}

void app_check_split_text(struct pm_str *s, const cJSON *o)
{
    if (!o)
        return;
    pm_str_add(s, "  objects: %.0f picture%s (%.0f without objects), %.0f box%s",
               number(o, "pictures"), number(o, "pictures") == 1 ? "" : "s",
               number(o, "without_objects"), number(o, "boxes"),
               number(o, "boxes") == 1 ? "" : "es");
    add_count(s, o, "crowds", number(o, "crowds") == 1 ? "crowd" : "crowds");
    add_count(s, o, "difficult", "difficult");
    add_count(s, o, "group_of", number(o, "group_of") == 1 ? "group" : "groups");
    add_count(s, o, "masks", "with masks");
    add_count(s, o, "with_keypoints", "with keypoints");
    pm_str_add(s, "\n");
    classes_text(s, cJSON_GetObjectItem(o, "classes"));
    quantiles_text(s, "boxes per picture", cJSON_GetObjectItem(o, "boxes_per_picture"), 1, 0);
    quantiles_text(s, "side of boxes (root of the area) in pixels",
                   cJSON_GetObjectItem(o, "side_pixels"), 1, 0);
    quantiles_text(s, "the same in % of the picture's side",
                   cJSON_GetObjectItem(o, "side_share"), 100, 1);
}

static void finding_text(struct pm_str *s, const cJSON *f)
{
    const cJSON *other = cJSON_GetObjectItem(f, "other"), *first = cJSON_GetObjectItem(f, "first");

    pm_str_add(s, cJSON_IsTrue(cJSON_GetObjectItem(f, "wrong")) ? "wrong: " : "note: ");
    pm_str_name(s, cJSON_GetObjectItem(f, "split")->valuestring, 0);
    if (other) {
        pm_str_add(s, " and ");
        pm_str_name(s, other->valuestring, 0);
    }
    pm_str_add(s, ": %s\n", cJSON_GetObjectItem(f, "text")->valuestring);
    if (!first)
        return;
    pm_str_add(s, number(f, "count") > 1 ? "    e.g. " : "    ");
    pm_str_name(s, first->valuestring, 0);
    pm_str_add(s, "\n");
}

void app_check_findings_text(struct pm_str *s, const cJSON *list)
{
    const cJSON *f;

    for (int wrong = 1; wrong >= 0; wrong--)
        cJSON_ArrayForEach(f, list)
            if (cJSON_IsTrue(cJSON_GetObjectItem(f, "wrong")) == wrong)
                finding_text(s, f);
    if (list && cJSON_GetArraySize(list) == 0)
        pm_str_add(s, "no finding about the objects\n");
}
