/* box_pack: packs the boxes of an evaluation and merges them. A pack has the pictures with their
 * boxes, masks (as COCO's compressed text) and keypoints; the merging side adds them like its own,
 * since all metrics follow from the boxes and shapes. */
#include "data/coco_mask.h"
#include "tasks/detection/box_lists.h"
#include "tasks/detection/box_metrics.h"

#include "base/pack.h"

#include <limits.h>
#include <string.h>

/* Sizes in bytes; of a picture without its boxes and names. */
enum {
    PACKED_BOX = 4 * 8, /* rotated ones have five numbers more */
    PACKED_TRUTH = PACKED_BOX + 3 * 8,
    PACKED_DETECTION = PACKED_BOX + 3 * 8,
    PACKED_PICTURE = 6 * 8,
};
/* The flags of an object in one number below FLAGS. The first three are those of true objects. */
enum { CROWD = 1, DIFFICULT = 2, GROUP_OF = 4, MASK = 8, POINTS = 16, FLAGS = 32 };

/* ---- packing ----------------------------------------------------------------------------- */

static unsigned shapes_of(const struct pm_runs *mask, const double *points)
{
    return (mask ? MASK : 0u) | (points ? POINTS : 0u);
}

static void pack_shapes(const struct pm_box_lists *l, const struct pm_runs *mask,
                        const double *points, struct pm_str *out)
{
    struct pm_str text = { 0 };

    if (mask) {
        pm_runs_print(mask, &text);
        pm_pack_int(out, (uint64_t)mask->height);
        pm_pack_int(out, (uint64_t)mask->width);
        pm_pack_text(out, text.text ? text.text : "");
        pm_str_free(&text);
    }
    if (points)
        pm_str_bytes(out, points, 2 * (size_t)l->points * sizeof *points);
}

static void pack_box(const struct pm_box_lists *l, const struct pm_box *b, const double rotated[5],
                     struct pm_str *out)
{
    pm_str_bytes(out, b->v, sizeof b->v);
    if (l->geometry == &pm_box_rotated)
        pm_str_bytes(out, rotated, 5 * sizeof *rotated);
}

static void pack_truth(const struct pm_box_lists *l, const struct pm_box_truth *t,
                       struct pm_str *out)
{
    pack_box(l, &t->box, t->rotated, out);
    pm_pack_double(out, t->area);
    pm_pack_int(out, (uint64_t)t->label);
    pm_pack_int(out, (t->crowd ? CROWD : 0u) | (t->difficult ? DIFFICULT : 0u) |
                         (t->group_of ? GROUP_OF : 0u) | shapes_of(t->mask, t->points));
    pack_shapes(l, t->mask, t->points, out);
}

static void pack_detection(const struct pm_box_lists *l, const struct pm_box_detection *d,
                           struct pm_str *out)
{
    pack_box(l, &d->box, d->rotated, out);
    pm_pack_double(out, d->score);
    pm_pack_int(out, (uint64_t)d->label);
    pm_pack_int(out, shapes_of(d->mask, d->points));
    pack_shapes(l, d->mask, d->points, out);
}

static void pack_picture(const struct pm_box_lists *l, const struct pm_kept_picture *p,
                         struct pm_str *out)
{
    pm_pack_int(out, p->record);
    pm_pack_text(out, p->name);
    pm_pack_text(out, p->file);
    pm_pack_int(out, (uint64_t)p->truths);
    for (int i = 0; i < p->truths; i++)
        pack_truth(l, &l->truth[p->truth + (size_t)i], out);
    pm_pack_int(out, (uint64_t)p->detections);
    for (int i = 0; i < p->detections; i++)
        pack_detection(l, &l->detection[p->detection + (size_t)i], out);
    pm_pack_int(out, (uint64_t)(p->verified_count + 1)); /* 0: all classes */
    for (int i = 0; i < p->verified_count; i++)
        pm_pack_int(out, (uint32_t)l->verified[p->verified + (size_t)i]);
}

void pm_box_metrics_pack(const struct pm_box_metrics *m, struct pm_str *out)
{
    const struct pm_box_lists *l = pm_box_metrics_lists(m);

    pm_pack_int(out, l->count);
    for (size_t i = 0; i < l->count; i++)
        pack_picture(l, &l->pictures[i], out);
}

/* ---- merging ----------------------------------------------------------------------------- */

/* The picture that is read; all of it is owned. */
struct unpacked {
    struct pm_arena *shapes; /* masks and keypoints */
    int height, width;       /* of the masks; 0: there was none yet */
    char *name, *file;
    struct pm_box_truth *truth;
    struct pm_box_detection *detection;
    int *verified;
};

static void free_unpacked(struct unpacked *p)
{
    pm_free(p->name);
    pm_free(p->file);
    pm_free(p->truth);
    pm_free(p->detection);
    pm_free(p->verified);
    pm_arena_destroy(&p->shapes);
}

static int read_count(struct pm_unpack *u, size_t least)
{
    const size_t count = pm_unpack_count(u, least);

    u->damaged |= count > INT_MAX;
    return u->damaged ? 0 : (int)count;
}

static void read_box(struct pm_unpack *u, const struct pm_box_lists *l, struct pm_box *b,
                     double rotated[5])
{
    for (int k = 0; k < 4; k++)
        b->v[k] = pm_unpack_double(u);
    for (int k = 0; k < 5 && l->geometry == &pm_box_rotated; k++)
        rotated[k] = pm_unpack_double(u);
}

/* Reads a mask. All masks of a picture must have the same size. */
static const struct pm_runs *read_mask(struct pm_unpack *u, struct unpacked *p)
{
    const int height = (int)pm_unpack_below(u, INT_MAX), width = (int)pm_unpack_below(u, INT_MAX);
    char *text = pm_unpack_text(u);
    struct pm_runs *out = NULL, runs = { 0 };

    u->damaged |= !text || (p->height && (p->height != height || p->width != width));
    if (!u->damaged)
        u->damaged = pm_runs_text(text, height, width, "a packed score", &runs) < 0;
    if (!u->damaged) {
        out = pm_arena_alloc(p->shapes, sizeof *out);
        *out = pm_runs_copy(p->shapes, &runs);
        p->height = height, p->width = width;
    }
    pm_runs_free(&runs);
    pm_free(text);
    return out;
}

/* Reads the mask and the keypoints that the flags state. The score must keep them. */
static void read_shapes(struct pm_unpack *u, const struct pm_box_lists *l, uint64_t flags,
                        struct unpacked *p, const struct pm_runs **mask, const double **points)
{
    const size_t size = 2 * (size_t)l->points * sizeof **points;

    u->damaged |= (flags & MASK && !l->masks) || (flags & POINTS && !l->points);
    if (flags & MASK && !u->damaged)
        *mask = read_mask(u, p);
    const void *bytes = flags & POINTS ? pm_unpack_bytes(u, size) : NULL;

    if (bytes)
        *points = pm_arena_copy(p->shapes, bytes, size);
}

static void read_truth(struct pm_unpack *u, const struct pm_box_lists *l, struct unpacked *p,
                       struct pm_box_truth *t)
{
    read_box(u, l, &t->box, t->rotated);
    t->area = pm_unpack_double(u);
    t->label = (int)pm_unpack_below(u, (uint64_t)l->classes);
    const uint64_t flags = pm_unpack_below(u, FLAGS);

    t->crowd = flags & CROWD;
    t->difficult = flags & DIFFICULT;
    t->group_of = flags & GROUP_OF;
    read_shapes(u, l, flags, p, &t->mask, &t->points);
}

static void read_detection(struct pm_unpack *u, const struct pm_box_lists *l, struct unpacked *p,
                           struct pm_box_detection *d)
{
    read_box(u, l, &d->box, d->rotated);
    d->score = pm_unpack_double(u);
    d->label = (int)pm_unpack_below(u, (uint64_t)l->classes);
    const uint64_t flags = pm_unpack_below(u, FLAGS);

    u->damaged |= (flags & (CROWD | DIFFICULT | GROUP_OF)) != 0;
    read_shapes(u, l, flags, p, &d->mask, &d->points);
}

/* Reads the classes that somebody looked for; NULL stays if those are all. A record may list
 * classes that the net does not know. */
static void read_verified(struct pm_unpack *u, struct unpacked *p, struct pm_box_picture *out)
{
    const uint64_t more = pm_unpack_int(u);

    if (more == 0)
        return;
    if (more - 1 > u->left / 8 || more > INT_MAX) {
        u->damaged = true;
        return;
    }
    out->verified_count = (int)(more - 1);
    out->verified = p->verified = pm_malloc((size_t)more * sizeof *p->verified);
    for (int i = 0; i < out->verified_count; i++)
        p->verified[i] = (int)pm_unpack_below(u, (uint64_t)UINT32_MAX + 1);
}

static void read_picture(struct pm_unpack *u, const struct pm_box_lists *l, struct unpacked *p,
                         struct pm_box_picture *out)
{
    *p = (struct unpacked){ .shapes = pm_arena_create() };
    *out = (struct pm_box_picture){ .record = pm_unpack_below(u, PM_COCO_ORDERS) };
    out->name = p->name = pm_unpack_text(u);
    out->file = p->file = pm_unpack_text(u);
    out->truths = read_count(u, PACKED_TRUTH);
    out->truth = p->truth = pm_calloc((size_t)out->truths + 1, sizeof *p->truth);
    for (int i = 0; i < out->truths; i++)
        read_truth(u, l, p, &p->truth[i]);
    out->detections = read_count(u, PACKED_DETECTION);
    out->detection = p->detection = pm_calloc((size_t)out->detections + 1, sizeof *p->detection);
    for (int i = 0; i < out->detections; i++)
        read_detection(u, l, p, &p->detection[i]);
    read_verified(u, p, out);
}

void pm_box_metrics_merge(struct pm_box_metrics *m, struct pm_unpack *u)
{
    const size_t count = pm_unpack_count(u, PACKED_PICTURE);

    for (size_t i = 0; i < count && !u->damaged; i++) {
        struct unpacked p;
        struct pm_box_picture picture;

        read_picture(u, pm_box_metrics_lists(m), &p, &picture);
        if (!u->damaged)
            pm_box_metrics_add(m, &picture);
        free_unpacked(&p);
    }
}
