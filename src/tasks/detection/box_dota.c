/* box_dota: the detections as submission files of DOTA's Task1, one file for each class. */
#include "data/rotated_box.h"
#include "tasks/detection/box_lists.h"
#include "tasks/detection/box_metrics.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = 200 /* bytes of a class's name in a file's name */ };

/* ---- pictures -------------------------------------------------------------------------------- */

/* The original picture of a record. */
struct original {
    const char *id; /* in the arena */
    bool tile;      /* the record is a tile of it */
    int at[2];      /* y, x of the tile's first pixel */
};

/* Reads digits that end before `end`; *begin becomes the first one. false: there are none, or the
 * number is beyond a picture's size. */
static bool digits_before(const char *text, const char *end, const char **begin, int *out)
{
    const char *p = end;
    long v = 0;

    while (p > text && p[-1] >= '0' && p[-1] <= '9')
        p--;
    for (const char *c = p; c < end && v <= 1000000000; c++)
        v = 10 * v + (*c - '0');
    *begin = p;
    *out = (int)v;
    return p < end && v <= 1000000000;
}

/* Whether `with` ends at *end; then *end moves before it. */
static bool take_back(const char *text, const char **end, const char *with)
{
    const size_t n = strlen(with);

    if ((size_t)(*end - text) < n || memcmp(*end - n, with, n) != 0)
        return false;
    *end -= n;
    return true;
}

/* Reads ID__SIZE__X___Y from the right, since an id may have such characters, too. */
static bool read_tile(const char *stem, int *id_length, int at[2])
{
    const char *end = stem + strlen(stem);
    int y, x, size;

    if (!digits_before(stem, end, &end, &y) || !take_back(stem, &end, "___") ||
        !digits_before(stem, end, &end, &x) || !take_back(stem, &end, "__") ||
        !digits_before(stem, end, &end, &size) || !take_back(stem, &end, "__") || end == stem)
        return false;
    *id_length = (int)(end - stem);
    at[0] = y, at[1] = x;
    return true;
}

static struct original original_of(const struct pm_kept_picture *p, struct pm_arena *a)
{
    struct original o = { NULL };
    const char *name = p->file && p->file[0] ? p->file : p->name;
    const char *slash = name ? strrchr(name, '/') : NULL, *dot;
    struct pm_str printable = { 0 };
    char *stem;
    int length;

    name = slash ? slash + 1 : name;
    if (!name || !name[0])
        name = pm_arena_printf(a, "%llu", (unsigned long long)p->record);
    dot = strrchr(name, '.');
    pm_str_printable(&printable, name, dot && dot > name ? (size_t)(dot - name) : strlen(name));
    stem = pm_arena_strdup(a, printable.text ? printable.text : "");
    pm_str_free(&printable);
    for (char *c = stem; *c; c++)
        if (*c == ' ') /* it separates the words of a line */
            *c = '_';
    o.tile = read_tile(stem, &length, o.at);
    if (o.tile)
        stem[length] = '\0';
    o.id = stem;
    return o;
}

/* ---- detections of a class ------------------------------------------------------------------- */

struct row {
    const struct original *from;
    double score;       /* NAN is 0 */
    double rotated[5];  /* in the original picture */
    size_t at;          /* its place among equal scores */
};
struct rows {
    struct row *list; /* owned */
    size_t count, capacity;
};

static int by_score(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    const int ids = strcmp(x->from->id, y->from->id);

    if (ids)
        return ids;
    return x->score != y->score ? (x->score > y->score ? -1 : 1)
                                : (x->at > y->at) - (x->at < y->at);
}

/* pictures, originals [l->count]: by record. */
static void collect(const struct pm_box_lists *l, const struct pm_kept_picture *const *pictures,
                    const struct original *originals, int label, struct rows *out)
{
    out->count = 0;
    for (size_t i = 0; i < l->count; i++)
        for (int k = 0; k < pictures[i]->detections; k++) {
            const struct pm_box_detection *d = &l->detection[pictures[i]->detection + (size_t)k];
            struct row r = { .from = &originals[i], .at = out->count,
                             .score = isfinite(d->score) ? d->score : 0 };

            if (d->label != label || !pm_box_rotated.has_sides(d->rotated))
                continue;
            memcpy(r.rotated, d->rotated, sizeof r.rotated);
            r.rotated[0] += originals[i].at[0];
            r.rotated[1] += originals[i].at[1];
            PM_GROW(out->list, out->count, out->capacity);
            out->list[out->count++] = r;
        }
    if (out->count)
        qsort(out->list, out->count, sizeof *out->list, by_score);
}

/* Drops the detections of tiles that overlap with a kept one of the same picture. */
static void merge_tiles(struct rows *rows)
{
    size_t kept = 0, first = 0;

    for (size_t i = 0; i < rows->count; i++) {
        const struct row *r = &rows->list[i];
        bool drop = false;

        if (kept == first || strcmp(rows->list[first].from->id, r->from->id) != 0)
            first = kept;
        for (size_t k = first; r->from->tile && k < kept && !drop; k++)
            drop = rows->list[k].from->tile &&
                   pm_box_rotated.overlap(r->rotated, rows->list[k].rotated, false) >
                       PM_DOTA_MERGE_IOU;
        if (!drop)
            rows->list[kept++] = *r;
    }
    rows->count = kept;
}

/* ---- files ----------------------------------------------------------------------------------- */

static void add_row(struct pm_str *s, const struct row *r)
{
    const struct pm_rectangle box = pm_rectangle_of_pixels(r->rotated);
    double corner[PM_CORNERS][2];

    pm_rectangle_corners(&box, corner);
    pm_str_add(s, "%s %.9g", r->from->id, r->score);
    for (int k = 0; k < PM_CORNERS; k++)
        pm_str_add(s, " %.2f %.2f", corner[k][1], corner[k][0]);
    pm_str_add(s, "\n");
}

static bool is_file_name(const char *name)
{
    return name && name[0] && strlen(name) <= MOST_NAME && !strchr(name, '/') && pm_is_line(name);
}

/* Appends the name of a class's file. */
static void add_name(struct pm_str *path, const char *const *names, int label)
{
    bool own = is_file_name(names[label]);

    for (int k = 0; k < label && own; k++)
        own = !names[k] || strcmp(names[k], names[label]) != 0;
    if (own)
        pm_str_add(path, "Task1_%s.txt", names[label]);
    else
        pm_str_add(path, "Task1_%d.txt", label + 1);
}

static int write_class(const struct rows *rows, const char *const *names, int label,
                       const char *folder)
{
    struct pm_str path = { 0 }, text = { 0 };

    pm_str_add(&path, "%s/", folder);
    add_name(&path, names, label);
    for (size_t i = 0; i < rows->count; i++)
        add_row(&text, &rows->list[i]);
    const int err = pm_file_write(path.text, text.text ? text.text : "", text.length);

    pm_str_free(&path);
    pm_str_free(&text);
    return err;
}

int pm_box_metrics_write_dota(const struct pm_box_metrics *m, const char *const *names,
                              const char *folder)
{
    int err = PM_OK;
    const struct pm_box_lists *l = pm_box_metrics_lists(m);
    const struct pm_kept_picture **order = pm_box_lists_by_record(l);
    struct original *originals = pm_malloc((l->count + 1) * sizeof *originals);
    struct pm_arena *a = pm_arena_create();
    struct rows rows = { NULL };

    assert(l->geometry == &pm_box_rotated);
    for (size_t i = 0; i < l->count; i++)
        originals[i] = original_of(order[i], a);
    for (int c = 0; c < l->classes && err == PM_OK; c++) {
        collect(l, order, originals, c, &rows);
        merge_tiles(&rows);
        err = write_class(&rows, names, c, folder);
    }
    pm_free(rows.list);
    pm_arena_destroy(&a);
    pm_free(originals);
    pm_free(order);
    return err;
}
