/* dataset_check: reads the records of a split in parallel, a block at a time, and counts them in
 * their order, so that "first" does not depend on the threads. */
#include "app/dataset_check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <pumice/thread.h>

#include "app/dataset_boxes.h"
#include "data/coco_mask.h"
#include "data/rotated_box.h"

enum { BLOCK = 128, WHERE = 512 };

void app_check_start(struct app_check *c)
{
    *c = (struct app_check){ .arena = pm_arena_create() };
}

void app_check_free(struct app_check *c)
{
    for (size_t i = 0; i < c->splits; i++) {
        pm_free(c->split[i].class);
        pm_free(c->split[i].side.v);
        pm_free(c->split[i].share.v);
        pm_free(c->split[i].objects.v);
    }
    pm_free(c->split);
    pm_free(c->picture);
    pm_arena_destroy(&c->arena);
    *c = (struct app_check){ 0 };
}

static bool has_key(const struct pm_example *e, const char *key)
{
    const char *kind = NULL;
    size_t values = 0;

    for (size_t i = 0; i < pm_example_count(e); i++)
        if (!strcmp(pm_example_key(e, i, &kind, &values), key))
            return true;
    return false;
}

bool app_check_applies(const struct pm_example *e)
{
    return has_key(e, "image/object/class/text") || has_key(e, "image/object/class/label") ||
           (has_key(e, "image/object/bbox/xmin") && !has_key(e, "image/class/label"));
}

/* ---- one record ----------------------------------------------------------------------------- */

struct record {
    char where[WHERE];
    char *damage;  /* owned: the message; NULL: the record is whole */
    int err;       /* an error that is no finding: the file cannot be read */
    uint8_t hash[16];
    int height, width, orientation; /* of the upright picture; of its file */
    const char *unread; /* a key whose values are not read; or NULL */
    int stated_height, stated_width; /* by the record; 0: not */
    struct pm_objects o; /* owned; masks are no longer valid */
    bool *empty;         /* [o.count], owned: the mask has no pixel; NULL: damaged record */
};

struct block {
    struct pm_dataset *d;
    size_t first;
    struct record *record;
};

/* Hashes size and pixels. Half of the digits of SHA-256 suffice against chance. */
static void hash_picture(const struct pm_image8 *im, uint8_t hash[16])
{
    const int32_t size[] = { im->height, im->width };
    struct pm_sha256 s;
    char hex[65];
    unsigned byte = 0;

    pm_sha256_start(&s);
    pm_sha256_add(&s, size, sizeof size);
    pm_sha256_add(&s, im->pixels, (size_t)im->height * (size_t)im->width * (size_t)im->channels);
    pm_sha256_end(&s, hex);
    for (int i = 0; i < 16; i++) {
        sscanf(hex + 2 * i, "%2x", &byte);
        hash[i] = (uint8_t)byte;
    }
}

/* Returns the first of the keys of TensorFlow's Object Detection API that Pumice does not read. */
static const char *unread_key(const struct pm_example *e)
{
    static const char *const keys[] = {
        "image/additional_channels/encoded", "image/context_features",
        "image/context_features_image_id_list", "image/object/densepose/num",
        "image/class/confidence",
    };

    for (size_t i = 0; i < PM_COUNT(keys); i++)
        if (has_key(e, keys[i]))
            return keys[i];
    return NULL;
}

static int read_picture(const struct pm_example *e, struct record *r)
{
    const uint8_t *data = NULL;
    size_t size = 0;
    struct pm_image8 im = { 0 };
    int err = PM_OK, found = 0;

    PM_TRY(found = pm_example_bytes(e, "image/encoded", &data, &size));
    if (!found)
        PM_TRY(pm_fail(PM_ECORRUPT, "%s: has no image/encoded: convert the data again", r->where));
    PM_TRY(pm_image_decode(data, size, 3, 0, r->where, &im));
    r->height = im.height;
    r->width = im.width;
    r->orientation = pm_image_orientation(data, size);
    hash_picture(&im, r->hash);
out:
    pm_image_free(&im);
    return err;
}

/* Reads the masks, which must have the size of the record's picture. */
static int read_masks(struct record *r)
{
    struct pm_objects *o = &r->o;
    struct pm_runs runs = { 0 };
    int err = PM_OK;

    if (!o->height || !o->width)
        o->height = r->height, o->width = r->width;
    r->empty = pm_calloc(o->count + 1, sizeof *r->empty);
    for (size_t i = 0; i < o->count; i++) {
        if (!pm_object_has_mask(&o->item[i]))
            continue;
        PM_TRY(pm_objects_runs(o, i, r->where, &runs));
        r->empty[i] = pm_runs_area(&runs) == 0;
        pm_runs_free(&runs);
    }
out:
    pm_runs_free(&runs);
    return err;
}

static void read_record(struct pm_dataset *d, size_t i, uint8_t **buf, size_t *capacity,
                        struct record *r)
{
    struct pm_example *e = NULL;
    size_t size = 0;
    int err = PM_OK;

    pm_dataset_where(d, i, r->where, sizeof r->where);
    err = pm_dataset_read(d, i, buf, capacity, &size);
    const bool unread = err < 0 && err != PM_ECORRUPT;
    PM_TRY(err);
    PM_TRY(pm_example_parse(*buf, size, r->where, &e));
    PM_TRY(pm_objects_parse(e, true, r->where, &r->o));
    r->unread = unread_key(e);
    r->stated_height = r->o.height;
    r->stated_width = r->o.width;
    PM_TRY(read_picture(e, r));
    PM_TRY(read_masks(r));
out:
    if (err < 0) {
        struct pm_str text = { 0 };
        pm_str_add(&text, "%s", pm_error_text());
        r->damage = text.text;
        r->err = unread || (err != PM_ECORRUPT && err != PM_EDATA) ? err : PM_OK;
    }
    pm_example_destroy(&e);
}

static void read_records(void *ctx, size_t begin, size_t end)
{
    struct block *b = ctx;
    uint8_t *buf = NULL;
    size_t capacity = 0;

    for (size_t i = begin; i < end; i++)
        read_record(b->d, b->first + i, &buf, &capacity, &b->record[i]);
    pm_free(buf);
}

/* ---- counting ------------------------------------------------------------------------------- */

static void add_number(struct app_numbers *n, double v)
{
    PM_GROW(n->v, n->count, n->capacity);
    n->v[n->count++] = (float)v;
}

/* Counts a finding; returns whether it is the split's first, which needs a text. */
static bool is_first(struct app_split_check *s, enum app_finding which)
{
    return s->found[which].count++ == 0;
}

static void set_first(struct app_check *c, struct app_split_check *s, enum app_finding which,
                      const struct record *r, const char *what)
{
    s->found[which].first = pm_arena_printf(c->arena, "%s: %s", r->where, what);
}

/* Counts a finding about an object. The first one's text has the object's number, its class, its
 * box in pixels, and more (NULL: nothing). */
static void add_object(struct app_check *c, struct app_split_check *s, enum app_finding which,
                       const struct record *r, size_t i, const char *more)
{
    const struct pm_object *o = &r->o.item[i];
    char buf[40];

    if (!is_first(s, which))
        return;
    set_first(c, s, which, r,
              pm_arena_printf(c->arena, "object %zu (%s), pixels ymin %.5g, xmin %.5g, ymax %.5g, "
                              "xmax %.5g%s", i + 1, app_object_name(o, c->map, buf, sizeof buf),
                              (double)o->box[0] * r->height, (double)o->box[1] * r->width,
                              (double)o->box[2] * r->height, (double)o->box[3] * r->width,
                              more ? more : ""));
}

/* Returns the class of an object in the split's list, which it may extend; 0: it has none. */
static struct app_class *class_of(struct app_check *c, struct app_split_check *s,
                                  const struct pm_object *o)
{
    const int id = app_object_class(o, c->map);
    char buf[40];

    for (size_t i = 0; i < s->classes; i++)
        if (c->map->count || !o->text ? id > 0 && s->class[i].id == id
                                      : strcmp(s->class[i].name, o->text) == 0)
            return &s->class[i];
    if (c->map->count || (!o->text && !id))
        return NULL;
    PM_GROW(s->class, s->classes, s->classes_capacity);
    s->class[s->classes] = (struct app_class){
        .id = id, .name = pm_arena_strdup(c->arena, app_object_name(o, c->map, buf, sizeof buf)) };
    return &s->class[s->classes++];
}

static bool has_points(const struct pm_objects *list, const struct pm_object *o)
{
    for (int k = 0; o->keypoints && k < list->points; k++)
        if (o->keypoints[k].visibility > 0)
            return true;
    return false;
}

/* Stores the sides of an object in pixels. Training never clips a rotated box, so its own sides
 * count. Of an upright box those of the part inside the picture count. Returns whether a part is
 * outside, which training cuts off. */
static bool sides_of(const struct record *r, const struct pm_object *o, double sides[2])
{
    double box[4];
    bool cut = false;

    if (r->o.has & PM_HAS_ROTATED) {
        struct pm_rectangle whole;

        pm_rectangle_of_box(o->rotated, r->height, r->width, &whole);
        sides[0] = whole.h, sides[1] = whole.w;
        return false;
    }
    for (int k = 0; k < 4; k++) {
        box[k] = fmin(1, fmax(0, (double)o->box[k]));
        cut |= fabs(box[k] - (double)o->box[k]) > 1e-6; /* rounding of a float division */
    }
    sides[0] = (box[2] - box[0]) * r->height;
    sides[1] = (box[3] - box[1]) * r->width;
    return cut;
}

/* Counts an object that training keeps. */
static void count_object(struct app_check *c, struct app_split_check *s, const struct record *r,
                         size_t i, uint8_t *seen)
{
    const struct pm_object *o = &r->o.item[i];
    double sides[2];
    const bool cut = sides_of(r, o, sides);

    s->boxes++;
    s->crowds += o->is_crowd;
    s->difficult += o->difficult;
    s->group_of += o->group_of;
    s->masks += pm_object_has_mask(o);
    s->keypoints += has_points(&r->o, o);
    add_number(&s->side, sqrt(sides[0] * sides[1]));
    add_number(&s->share, sqrt(sides[0] / r->height * sides[1] / r->width));
    if (cut)
        add_object(c, s, FOUND_CLIPPED, r, i, NULL);
    if (sides[0] < 1 - 1e-3 || sides[1] < 1 - 1e-3)
        add_object(c, s, FOUND_TINY, r, i, NULL);
    struct app_class *class = class_of(c, s, o);
    if (!class)
        return;
    class->boxes++;
    class->pictures += !seen[class - s->class];
    seen[class - s->class] = 1;
}

/* Checks an object's class. */
static void check_class(struct app_check *c, struct app_split_check *s, const struct record *r,
                        size_t i)
{
    const struct pm_object *o = &r->o.item[i];
    const int id = app_object_class(o, c->map);

    if (!o->text && o->label == 0) {
        add_object(c, s, FOUND_WITHOUT_CLASS, r, i, NULL);
    } else if (c->map->count && !pm_label_map_item(c->map, id)) {
        const char *near = o->text ? pm_label_map_nearest(c->map, o->text) : NULL;
        add_object(c, s, FOUND_UNKNOWN_CLASS, r, i,
                   near ? pm_arena_printf(c->arena, ", did you mean \"%s\"?", near) : NULL);
    } else if (c->map->count && o->text && o->label > 0 && o->label != id) {
        add_object(c, s, FOUND_NUMBERS, r, i,
                   pm_arena_printf(c->arena, ", number %lld here, %d in the label map",
                                   (long long)o->label, id));
    }
}

static void check_mask(struct app_check *c, struct app_split_check *s, const struct record *r,
                       size_t i)
{
    if (r->empty[i])
        add_object(c, s, FOUND_EMPTY_MASK, r, i, NULL);
    else if (r->o.has & PM_HAS_MASK && !pm_object_has_mask(&r->o.item[i]))
        add_object(c, s, FOUND_WITHOUT_MASK, r, i, NULL);
}

/* Returns whether the object has an area inside of the picture. */
static bool check_box(struct app_check *c, struct app_split_check *s, const struct record *r,
                      size_t i)
{
    const float *b = r->o.item[i].box;
    bool flat = b[2] <= b[0] || b[3] <= b[1];
    bool outside = b[0] >= 1 || b[1] >= 1 || b[2] <= 0 || b[3] <= 0;

    if (r->o.has & PM_HAS_ROTATED) {
        struct pm_rectangle whole;

        pm_rectangle_of_box(r->o.item[i].rotated, r->height, r->width, &whole);
        flat = !pm_rectangle_is_valid(&whole);
        outside = !flat && !(pm_rectangle_inside(&whole, r->height, r->width) > 0);
    }
    if (flat) {
        add_object(c, s, FOUND_DEGENERATE, r, i, NULL);
        return false;
    }
    if (outside) {
        add_object(c, s, FOUND_OUTSIDE, r, i, NULL);
        return false;
    }
    return true;
}

static int compare_objects(const void *x, const void *y)
{
    const struct pm_object *a = *(const struct pm_object *const *)x;
    const struct pm_object *b = *(const struct pm_object *const *)y;

    for (int k = 0; k < 4; k++)
        if (a->box[k] != b->box[k])
            return a->box[k] < b->box[k] ? -1 : 1;
    for (int k = 0; k < 5; k++) /* all 0 in upright boxes */
        if (a->rotated[k] != b->rotated[k])
            return a->rotated[k] < b->rotated[k] ? -1 : 1;
    return a < b ? -1 : a > b;
}

static bool same_class(const struct app_check *c, const struct pm_object *a,
                       const struct pm_object *b)
{
    if (!c->map->count && a->text && b->text)
        return !strcmp(a->text, b->text);
    return app_object_class(a, c->map) == app_object_class(b, c->map);
}

/* Finds equal boxes. Each object counts once, as a copy of an earlier one of its class, or as the
 * same box with another class. */
static void check_doubles(struct app_check *c, struct app_split_check *s, const struct record *r)
{
    const size_t count = r->o.count;
    const struct pm_object **o = pm_calloc(count + 1, sizeof *o);

    for (size_t i = 0; i < count; i++)
        o[i] = &r->o.item[i];
    qsort(o, count, sizeof *o, compare_objects);
    for (size_t i = 1, first = 0; i < count; i++) {
        bool copy = false;

        if (memcmp(o[i]->box, o[first]->box, sizeof o[i]->box) != 0 ||
            memcmp(o[i]->rotated, o[first]->rotated, sizeof o[i]->rotated) != 0) {
            first = i;
            continue;
        }
        for (size_t k = first; k < i && !copy; k++)
            copy = same_class(c, o[k], o[i]);
        add_object(c, s, copy ? FOUND_DOUBLED : FOUND_TWO_CLASSES, r,
                   (size_t)(o[i] - r->o.item), NULL);
    }
    pm_free(o);
}

/* Checks the picture's size against the record's and its EXIF turn. Readers other than Pumice
 * ignore EXIF, so their records have the size and the boxes of the stored picture. */
static void check_turn(struct app_check *c, struct app_split_check *s, const struct record *r)
{
    const int height = r->stated_height, width = r->stated_width;
    const bool fits = height == r->height && width == r->width;
    const bool turned = height == r->width && width == r->height;
    enum app_finding which = FOUND_SIZE;

    if (r->orientation >= 5 && turned && !fits)
        which = FOUND_TURNED;
    else if (r->orientation > 1 && (r->orientation < 5 || !fits || turned))
        which = FOUND_UNCLEAR;
    else if (fits || !height || !width)
        return;
    if (is_first(s, which))
        set_first(c, s, which, r,
                  pm_arena_printf(c->arena, "EXIF orientation %d, image/height and image/width are "
                                  "%d x %d, the upright picture has %d x %d", r->orientation,
                                  height, width, r->height, r->width));
}

enum { USUAL_MOST = 100 }; /* the default of data.max_boxes */

/* The message of a damaged record, without the record's name in front. */
static const char *damage_text(const struct record *r)
{
    const size_t name = strlen(r->where);

    return strncmp(r->damage, r->where, name) || strncmp(r->damage + name, ": ", 2)
               ? r->damage
               : r->damage + name + 2;
}

static void add_picture(struct app_check *c, const struct record *r)
{
    PM_GROW(c->picture, c->pictures, c->pictures_capacity);
    struct app_picture_hash *p = &c->picture[c->pictures++];
    memcpy(p->hash, r->hash, sizeof p->hash);
    p->split = c->splits - 1;
    p->where = pm_arena_strdup(c->arena, r->where);
}

static void count_record(struct app_check *c, struct app_split_check *s, const struct record *r)
{
    const size_t before = s->boxes;

    s->records++;
    if (r->damage) {
        if (is_first(s, FOUND_DAMAGED))
            set_first(c, s, FOUND_DAMAGED, r, damage_text(r));
        return;
    }
    add_picture(c, r);
    check_turn(c, s, r);
    if (r->unread && is_first(s, FOUND_UNREAD))
        set_first(c, s, FOUND_UNREAD, r, r->unread);
    uint8_t *seen = pm_calloc(s->classes + r->o.count + 1, 1);
    for (size_t i = 0; i < r->o.count; i++) {
        check_class(c, s, r, i);
        check_mask(c, s, r, i);
        if (check_box(c, s, r, i))
            count_object(c, s, r, i, seen);
    }
    pm_free(seen);
    check_doubles(c, s, r);
    s->empty += s->boxes == before;
    add_number(&s->objects, (double)(s->boxes - before));
    if (s->boxes - before > USUAL_MOST && is_first(s, FOUND_MANY))
        set_first(c, s, FOUND_MANY, r, pm_arena_printf(c->arena, "%zu boxes", s->boxes - before));
}

/* ---- the split ------------------------------------------------------------------------------ */

static struct app_split_check *add_split(struct app_check *c, const char *name)
{
    PM_GROW(c->split, c->splits, c->splits_capacity);
    struct app_split_check *s = &c->split[c->splits++];
    *s = (struct app_split_check){ .name = pm_arena_strdup(c->arena, name) };
    for (int i = 0; i < c->map->count; i++) {
        const struct pm_label_item *item = &c->map->item[i];

        PM_GROW(s->class, s->classes, s->classes_capacity);
        s->class[s->classes++] = (struct app_class){
            .id = item->id, .name = item->display_name ? item->display_name : item->name };
    }
    return s;
}

int app_check_split(struct app_check *c, struct pm_dataset *d, const char *name,
                    const struct pm_label_map *map)
{
    const size_t count = pm_dataset_get_info(d)->count;
    struct block b = { .d = d, .record = pm_calloc(BLOCK, sizeof *b.record) };
    int err = PM_OK;

    c->map = map;
    struct app_split_check *s = add_split(c, name);
    for (; b.first < count; b.first += BLOCK) {
        const size_t n = count - b.first < BLOCK ? count - b.first : BLOCK;

        memset(b.record, 0, BLOCK * sizeof *b.record);
        pm_parallel(n, 1, read_records, &b);
        for (size_t i = 0; i < n; i++) {
            struct record *r = &b.record[i];

            if (r->err < 0 && err == PM_OK)
                err = pm_fail((enum pm_error)r->err, "%s", r->damage);
            if (err == PM_OK)
                count_record(c, s, r);
            pm_objects_free(&r->o);
            pm_free(r->empty);
            pm_free(r->damage);
        }
        if (err < 0)
            break;
    }
    pm_free(b.record);
    return err;
}
