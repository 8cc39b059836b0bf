/* box_pack: packs the boxes of an evaluation and merges them. A pack has the pictures with their
 * boxes; the merging side adds them like its own, since all metrics follow from the boxes. */
#include "tasks/detection/box_lists.h"
#include "tasks/detection/box_metrics.h"

#include "base/pack.h"

#include <limits.h>
#include <string.h>

/* Sizes in bytes; of a picture without its boxes and names. */
enum {
    PACKED_BOX = 4 * 8,
    PACKED_TRUTH = PACKED_BOX + 3 * 8,
    PACKED_DETECTION = PACKED_BOX + 2 * 8,
    PACKED_PICTURE = 6 * 8,
};
/* The flags of a true object in one number below FLAGS. */
enum { CROWD = 1, DIFFICULT = 2, GROUP_OF = 4, FLAGS = 8 };

/* ---- packing ----------------------------------------------------------------------------- */

static void pack_truth(const struct pm_box_truth *t, struct pm_str *out)
{
    pm_str_bytes(out, t->box.v, sizeof t->box.v);
    pm_pack_double(out, t->area);
    pm_pack_int(out, (uint64_t)t->label);
    pm_pack_int(out, (t->crowd ? CROWD : 0u) | (t->difficult ? DIFFICULT : 0u) |
                         (t->group_of ? GROUP_OF : 0u));
}

static void pack_detection(const struct pm_box_detection *d, struct pm_str *out)
{
    pm_str_bytes(out, d->box.v, sizeof d->box.v);
    pm_pack_double(out, d->score);
    pm_pack_int(out, (uint64_t)d->label);
}

static void pack_picture(const struct pm_box_lists *l, const struct pm_kept_picture *p,
                         struct pm_str *out)
{
    pm_pack_int(out, p->record);
    pm_pack_text(out, p->name);
    pm_pack_text(out, p->file);
    pm_pack_int(out, (uint64_t)p->truths);
    for (int i = 0; i < p->truths; i++)
        pack_truth(&l->truth[p->truth + (size_t)i], out);
    pm_pack_int(out, (uint64_t)p->detections);
    for (int i = 0; i < p->detections; i++)
        pack_detection(&l->detection[p->detection + (size_t)i], out);
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
}

static int read_count(struct pm_unpack *u, size_t least)
{
    const size_t count = pm_unpack_count(u, least);

    u->damaged |= count > INT_MAX;
    return u->damaged ? 0 : (int)count;
}

static void read_box(struct pm_unpack *u, struct pm_box *b)
{
    for (int k = 0; k < 4; k++)
        b->v[k] = pm_unpack_double(u);
}

static void read_truth(struct pm_unpack *u, uint64_t classes, struct pm_box_truth *t)
{
    read_box(u, &t->box);
    t->area = pm_unpack_double(u);
    t->label = (int)pm_unpack_below(u, classes);
    const uint64_t flags = pm_unpack_below(u, FLAGS);

    t->crowd = flags & CROWD;
    t->difficult = flags & DIFFICULT;
    t->group_of = flags & GROUP_OF;
}

static void read_detection(struct pm_unpack *u, uint64_t classes, struct pm_box_detection *d)
{
    read_box(u, &d->box);
    d->score = pm_unpack_double(u);
    d->label = (int)pm_unpack_below(u, classes);
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

static void read_picture(struct pm_unpack *u, uint64_t classes, struct unpacked *p,
                         struct pm_box_picture *out)
{
    *p = (struct unpacked){ 0 };
    *out = (struct pm_box_picture){ .record = pm_unpack_below(u, PM_COCO_ORDERS) };
    out->name = p->name = pm_unpack_text(u);
    out->file = p->file = pm_unpack_text(u);
    out->truths = read_count(u, PACKED_TRUTH);
    out->truth = p->truth = pm_calloc((size_t)out->truths + 1, sizeof *p->truth);
    for (int i = 0; i < out->truths; i++)
        read_truth(u, classes, &p->truth[i]);
    out->detections = read_count(u, PACKED_DETECTION);
    out->detection = p->detection = pm_calloc((size_t)out->detections + 1, sizeof *p->detection);
    for (int i = 0; i < out->detections; i++)
        read_detection(u, classes, &p->detection[i]);
    read_verified(u, p, out);
}

void pm_box_metrics_merge(struct pm_box_metrics *m, struct pm_unpack *u)
{
    const uint64_t classes = (uint64_t)pm_box_metrics_lists(m)->classes;
    const size_t count = pm_unpack_count(u, PACKED_PICTURE);

    for (size_t i = 0; i < count && !u->damaged; i++) {
        struct unpacked p;
        struct pm_box_picture picture;

        read_picture(u, classes, &p, &picture);
        if (!u->damaged)
            pm_box_metrics_add(m, &picture);
        free_unpacked(&p);
    }
}
