/* xplane: xplane.h has the contract. Names of events are stored once per plane and found by a hash
 * table; all else lives in an arena. */
#include "formats/xplane.h"

#include "xplane.pb-c.h"

#include <limits.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

enum { DETAIL = 1 }; /* number of the only kind of statistics */

struct line {
    Pm__XLine message;
    size_t capacity;
};

struct plane {
    Pm__XPlane message;
    size_t lines, entries;   /* capacities */
    int *slots;              /* open addressing: number of an event's name, or 0 */
    size_t slot_count;
};

struct pm_xplane {
    struct pm_arena *arena;
    struct plane **plane; /* owned */
    size_t count, capacity;
};

struct pm_xplane *pm_xplane_create(void)
{
    struct pm_xplane *x = pm_calloc(1, sizeof *x);

    x->arena = pm_arena_create();
    return x;
}

void pm_xplane_destroy(struct pm_xplane **x)
{
    if (!*x)
        return;
    for (size_t i = 0; i < (*x)->count; i++) {
        struct plane *p = (*x)->plane[i];

        for (size_t k = 0; k < p->message.n_lines; k++)
            pm_free(p->message.lines[k]->events);
        pm_free(p->message.lines);
        pm_free(p->message.event_metadata);
        pm_free(p->slots);
        pm_free(p);
    }
    pm_free((*x)->plane);
    pm_arena_destroy(&(*x)->arena);
    pm_free(*x);
    *x = NULL;
}

/* ---- planes and lines -------------------------------------------------------------------- */

/* A plane for the spans' second lines must name the kind of statistics. */
static void add_kind(struct pm_xplane *x, struct plane *p)
{
    Pm__XStatMetadata *kind = pm_arena_alloc(x->arena, sizeof *kind);
    Pm__XStatEntry *entry = pm_arena_alloc(x->arena, sizeof *entry);

    pm__xstat_metadata__init(kind);
    kind->id = DETAIL;
    kind->name = pm_arena_strdup(x->arena, "what");
    pm__xstat_entry__init(entry);
    entry->key = DETAIL;
    entry->value = kind;
    p->message.stat_metadata = pm_arena_alloc(x->arena, sizeof *p->message.stat_metadata);
    p->message.stat_metadata[0] = entry;
    p->message.n_stat_metadata = 1;
}

/* The profiler shows planes whose names begin like this. */
static struct plane *plane_of(struct pm_xplane *x, const char *group)
{
    static const char prefix[] = "/device:CUSTOM:";
    struct plane *p;

    for (size_t i = 0; i < x->count; i++)
        if (strcmp(x->plane[i]->message.name + sizeof prefix - 1, group) == 0)
            return x->plane[i];
    p = pm_calloc(1, sizeof *p);
    pm__xplane__init(&p->message);
    p->message.id = (int64_t)x->count + 1;
    p->message.name = pm_arena_printf(x->arena, "%s%s", prefix, group);
    add_kind(x, p);
    PM_GROW(x->plane, x->count, x->capacity);
    return x->plane[x->count++] = p;
}

static struct line *line_of(struct pm_xplane *x, struct plane *p, const char *row)
{
    Pm__XPlane *m = &p->message;
    struct line *l;

    for (size_t i = 0; i < m->n_lines; i++)
        if (strcmp(m->lines[i]->name, row) == 0)
            return (struct line *)m->lines[i]; /* its first member */
    l = pm_arena_alloc(x->arena, sizeof *l);
    *l = (struct line){ .capacity = 0 };
    pm__xline__init(&l->message);
    l->message.id = (int64_t)m->n_lines + 1;
    l->message.name = pm_arena_strdup(x->arena, row);
    PM_GROW(m->lines, m->n_lines, p->lines);
    m->lines[m->n_lines++] = &l->message;
    return l;
}

/* ---- names of events --------------------------------------------------------------------- */

static const char *detail_of(const Pm__XEventMetadata *e)
{
    return e->n_stats ? e->stats[0]->str_value : NULL;
}

static bool is_same(const Pm__XEventMetadata *e, const char *name, const char *detail)
{
    const char *own = detail_of(e);

    return strcmp(e->name, name) == 0 && !own == !detail && (!own || strcmp(own, detail) == 0);
}

static size_t slot_of(const struct plane *p, const char *name, const char *detail)
{
    size_t i = (pm_hash(name) ^ (detail ? 31 * pm_hash(detail) : 0)) & (p->slot_count - 1);

    while (p->slots[i] &&
           !is_same(p->message.event_metadata[p->slots[i] - 1]->value, name, detail))
        i = (i + 1) & (p->slot_count - 1);
    return i;
}

static void grow_slots(struct plane *p)
{
    pm_free(p->slots);
    p->slot_count = p->slot_count ? 2 * p->slot_count : 64;
    p->slots = pm_calloc(p->slot_count, sizeof *p->slots);
    for (size_t i = 0; i < p->message.n_event_metadata; i++) {
        const Pm__XEventMetadata *e = p->message.event_metadata[i]->value;

        p->slots[slot_of(p, e->name, detail_of(e))] = (int)i + 1;
    }
}

static void add_detail(struct pm_xplane *x, Pm__XEventMetadata *e, const char *detail)
{
    Pm__XStat *stat = pm_arena_alloc(x->arena, sizeof *stat);

    pm__xstat__init(stat);
    stat->metadata_id = DETAIL;
    stat->str_value = pm_arena_strdup(x->arena, detail);
    e->stats = pm_arena_alloc(x->arena, sizeof *e->stats);
    e->stats[0] = stat;
    e->n_stats = 1;
}

/* Returns the number of an event's name in its plane. */
static int64_t name_of(struct pm_xplane *x, struct plane *p, const char *name, const char *detail)
{
    Pm__XPlane *m = &p->message;
    size_t slot;

    if (2 * m->n_event_metadata >= p->slot_count)
        grow_slots(p);
    slot = slot_of(p, name, detail);
    if (!p->slots[slot]) {
        Pm__XEventMetadata *e = pm_arena_alloc(x->arena, sizeof *e);
        Pm__XEventEntry *entry = pm_arena_alloc(x->arena, sizeof *entry);

        pm__xevent_metadata__init(e);
        e->id = (int64_t)m->n_event_metadata + 1;
        e->name = pm_arena_strdup(x->arena, name);
        if (detail)
            add_detail(x, e, detail);
        pm__xevent_entry__init(entry);
        entry->key = e->id;
        entry->value = e;
        PM_GROW(m->event_metadata, m->n_event_metadata, p->entries);
        m->event_metadata[m->n_event_metadata++] = entry;
        p->slots[slot] = (int)e->id;
    }
    return p->slots[slot];
}

/* ---- spans ------------------------------------------------------------------------------- */

/* Whole nanoseconds, so rounding does not make separate spans overlap. */
static int64_t picoseconds(double seconds)
{
    return 1000 * (int64_t)llround(1e9 * fmax(seconds, 0));
}

void pm_xplane_span(struct pm_xplane *x, const char *group, const char *row, const char *name,
                    const char *detail, double begin, double end)
{
    struct plane *p = plane_of(x, group);
    struct line *l = line_of(x, p, row);
    Pm__XEvent *e = pm_arena_alloc(x->arena, sizeof *e);

    pm__xevent__init(e);
    e->metadata_id = name_of(x, p, name, detail);
    e->offset_ps = picoseconds(begin);
    e->duration_ps = picoseconds(end) - e->offset_ps;
    if (e->duration_ps < 0)
        e->duration_ps = 0;
    PM_GROW(l->message.events, l->message.n_events, l->capacity);
    l->message.events[l->message.n_events++] = e;
}

int pm_xplane_write(const struct pm_xplane *x, const char *folder, const char *name)
{
    char host[HOST_NAME_MAX + 1] = "localhost";
    Pm__XSpace space = PM__XSPACE__INIT;
    struct pm_str path = { 0 };
    uint8_t *bytes = NULL;
    int err = PM_OK;

    gethostname(host, sizeof host - 1);
    space.n_planes = x->count;
    space.planes = pm_calloc(x->count + 1, sizeof *space.planes);
    for (size_t i = 0; i < x->count; i++)
        space.planes[i] = &x->plane[i]->message;
    pm_str_add(&path, "%s/plugins/profile/%s", folder, name);
    PM_TRY(pm_make_folders(path.text));
    pm_str_add(&path, "/%s.xplane.pb", host);
    bytes = pm_malloc(pm__xspace__get_packed_size(&space) + 1);
    PM_TRY(pm_file_write(path.text, bytes, pm__xspace__pack(&space, bytes)));
out:
    pm_free(bytes);
    pm_free(space.planes);
    pm_str_free(&path);
    return err;
}
