/* seen_pictures: two short sorted lists. A picture on both lists is stored twice, but packed
 * once. */
#include "tasks/segmentation/seen_pictures.h"

#include "base/pack.h"
#include "data/picture.h"

#include <math.h>
#include <string.h>

enum { SIDE = 256 };

void pm_seen_create(struct pm_seen_pictures *p)
{
    *p = (struct pm_seen_pictures){ .worst.most = PM_SEEN_WORST, .chance.most = PM_MAX_SAMPLES };
}

static void free_list(struct pm_seen_list *l)
{
    for (int i = 0; i < l->count; i++) {
        pm_free(l->list[i].classes);
        pm_free(l->list[i].ids);
    }
    l->count = 0;
}

void pm_seen_free(struct pm_seen_pictures *p)
{
    free_list(&p->worst);
    free_list(&p->chance);
}

/* ---- adding ------------------------------------------------------------------------------ */

static void set_frame(struct pm_seen *s, struct pm_frame f)
{
    s->frame = f;
    s->step = ((f.height > f.width ? f.height : f.width) + SIDE - 1) / SIDE;
    s->rows = (f.height + s->step - 1) / s->step;
    s->columns = (f.width + s->step - 1) / s->step;
}

static size_t stored(const struct pm_seen *s)
{
    return (size_t)s->rows * (size_t)s->columns;
}

/* Pictures without counted pixels come last. */
static double worst_key(const struct pm_seen *s)
{
    return isnan(s->accuracy) ? 2 : s->accuracy;
}

static double chance_key(const struct pm_seen *s)
{
    return (double)pm_hash_bytes(&s->record, sizeof s->record, 0);
}

static uint16_t *remembered(const struct pm_seen *s, const int32_t *classes)
{
    uint16_t *out = pm_malloc(stored(s) * sizeof *out);

    for (int y = 0; y < s->rows; y++)
        for (int x = 0; x < s->columns; x++)
            out[(size_t)y * (size_t)s->columns + (size_t)x] = (uint16_t)
                classes[(size_t)(y * s->step) * (size_t)s->frame.width + (size_t)(x * s->step)];
    return out;
}

/* Copies the stored rows and columns of the ids. */
static int32_t *remembered_ids(const struct pm_seen *s, const struct pm_segment_map *said)
{
    int32_t *out = pm_malloc(stored(s) * sizeof *out);

    for (int y = 0; y < s->rows; y++)
        for (int x = 0; x < s->columns; x++) {
            const int v = y * s->step, u = x * s->step;

            out[(size_t)y * (size_t)s->columns + (size_t)x] =
                v < said->height && u < said->width
                    ? said->map[(size_t)v * (size_t)said->width + (size_t)u]
                    : PM_VOID;
        }
    return out;
}

/* Puts a copy of the picture, without its arrays, where the key belongs. Returns the copy, or NULL
 * if the list is full of pictures that come before. */
static struct pm_seen *rank(struct pm_seen_list *l, const struct pm_seen *s, double key)
{
    int at = l->count;

    while (at > 0 && (key < l->list[at - 1].key ||
                      (key == l->list[at - 1].key && s->record < l->list[at - 1].record)))
        at--;
    if (at == l->most)
        return NULL;
    if (l->count == l->most) {
        pm_free(l->list[--l->count].classes);
        pm_free(l->list[l->count].ids);
    }
    memmove(l->list + at + 1, l->list + at, (size_t)(l->count - at) * sizeof *l->list);
    l->count++;
    l->list[at] = *s;
    l->list[at].key = key;
    l->list[at].classes = NULL;
    l->list[at].ids = NULL;
    return &l->list[at];
}

static void fill(struct pm_seen *s, const int32_t *classes, const struct pm_segment_map *said)
{
    if (!s)
        return;
    s->classes = remembered(s, classes);
    s->ids = said ? remembered_ids(s, said) : NULL;
}

void pm_seen_add(struct pm_seen_pictures *p, uint64_t record, double accuracy,
                 struct pm_frame frame, const int32_t *classes, const struct pm_segment_map *said)
{
    struct pm_seen s = { .record = record, .accuracy = accuracy };

    set_frame(&s, frame);
    fill(rank(&p->worst, &s, worst_key(&s)), classes, said);
    fill(rank(&p->chance, &s, chance_key(&s)), classes, said);
}

/* ---- selecting --------------------------------------------------------------------------- */

enum { MOST = PM_SEEN_WORST + PM_MAX_SAMPLES };

/* Lists all pictures once, the worst first. Returns their number. */
static int list_all(const struct pm_seen_pictures *p, const struct pm_seen *out[MOST])
{
    int n = 0;

    for (int i = 0; i < p->worst.count; i++)
        out[n++] = &p->worst.list[i];
    for (int i = 0; i < p->chance.count; i++) {
        bool listed = false;

        for (int k = 0; k < p->worst.count; k++)
            listed |= p->worst.list[k].record == p->chance.list[i].record;
        if (!listed)
            out[n++] = &p->chance.list[i];
    }
    return n;
}

int pm_seen_select(const struct pm_seen_pictures *p, const struct pm_seen *out[PM_MAX_SAMPLES])
{
    const struct pm_seen *all[MOST];
    int n = list_all(p, all);

    n = n < PM_MAX_SAMPLES ? n : PM_MAX_SAMPLES;
    memcpy(out, all, (size_t)n * sizeof *out);
    return n;
}

/* ---- packing ----------------------------------------------------------------------------- */

enum { PACKED_SEEN = 4 * 8 }; /* bytes before the classes */

void pm_seen_pack(const struct pm_seen_pictures *p, struct pm_str *out)
{
    const struct pm_seen *list[MOST];
    const int count = list_all(p, list);

    pm_pack_int(out, (uint64_t)count);
    for (int i = 0; i < count; i++) {
        const struct pm_seen *s = list[i];

        pm_pack_int(out, s->record);
        pm_pack_double(out, s->accuracy);
        pm_pack_int(out, (uint64_t)s->frame.height);
        pm_pack_int(out, (uint64_t)s->frame.width);
        pm_str_bytes(out, s->classes, stored(s) * sizeof *s->classes);
        if (s->ids)
            pm_str_bytes(out, s->ids, stored(s) * sizeof *s->ids);
    }
}

static void *copy_of(const void *bytes, size_t size)
{
    void *out = bytes ? pm_malloc(size) : NULL;

    if (out)
        memcpy(out, bytes, size);
    return out;
}

/* Reads a picture whose arrays are owned by the caller; NULL without instances, or if damaged. */
static void read_seen(struct pm_unpack *u, bool instances, struct pm_seen *s)
{
    struct pm_frame frame;
    size_t size;

    *s = (struct pm_seen){ .record = pm_unpack_int(u) };
    s->accuracy = pm_unpack_double(u);
    frame.height = (int)pm_unpack_below(u, PM_PICTURE_PIXELS + 1);
    frame.width = (int)pm_unpack_below(u, PM_PICTURE_PIXELS + 1);
    u->damaged |= frame.height == 0 || frame.width == 0;
    if (u->damaged)
        return;
    set_frame(s, frame);
    size = stored(s) * sizeof *s->classes;
    s->classes = copy_of(pm_unpack_bytes(u, size), size);
    size = stored(s) * sizeof *s->ids;
    s->ids = instances ? copy_of(pm_unpack_bytes(u, size), size) : NULL;
}

/* Whether every value has a colour. */
static bool is_possible(const struct pm_seen *s, int classes, int64_t ids)
{
    bool possible = true;

    for (size_t i = 0; i < stored(s); i++)
        possible &= s->classes[i] < classes;
    for (size_t i = 0; i < stored(s) && s->ids; i++)
        possible &= s->ids[i] == PM_VOID || (s->ids[i] >= 0 && s->ids[i] < ids);
    return possible;
}

static void keep(struct pm_seen *s, const struct pm_seen *from)
{
    if (!s)
        return;
    s->classes = copy_of(from->classes, stored(from) * sizeof *s->classes);
    s->ids = copy_of(from->ids, stored(from) * sizeof *s->ids);
}

/* Each picture is ranked for both lists. A picture that was on only one list of its pack cannot
 * displace a better one on the other list, because the pack had enough better ones for that
 * list. */
void pm_seen_merge(struct pm_seen_pictures *p, int classes, int64_t ids, struct pm_unpack *u)
{
    const size_t count = pm_unpack_count(u, PACKED_SEEN);

    for (size_t i = 0; i < count && !u->damaged; i++) {
        struct pm_seen s;

        read_seen(u, ids > 0, &s);
        if (!u->damaged)
            u->damaged = !is_possible(&s, classes, ids);
        if (!u->damaged) {
            keep(rank(&p->worst, &s, worst_key(&s)), &s);
            keep(rank(&p->chance, &s, chance_key(&s)), &s);
        }
        pm_free(s.classes);
        pm_free(s.ids);
    }
}
