/* lost_objects: keeps, of each true object, what decides its outcome at any threshold. */
#include "tasks/detection/lost_objects.h"

#include "base/pack.h"

#include <cjson/cJSON.h>
#include <math.h>

static const double covers = 0.5; /* IoU */

const char *const pm_stage_outcome_names[PM_STAGE_OUTCOMES] = {
    [PM_STAGE_FOUND] = "found",
    [PM_STAGE_NO_PROPOSAL] = "no_proposal",
    [PM_STAGE_REJECTED] = "rejected",
    [PM_STAGE_SUPPRESSED] = "suppressed",
};

/* ---- objects ----------------------------------------------------------------------------- */

struct kept_object {
    int label;
    double proposal;          /* the largest IoU with a proposal */
    double second, detection; /* the best score of a box that covers it; -INFINITY: none does */
};
enum { PACKED_OBJECT = 4 * 8 }; /* bytes */

struct pm_lost_objects {
    int classes;
    struct kept_object *list; /* owned */
    size_t count, capacity;
};

struct pm_lost_objects *pm_lost_objects_create(int classes)
{
    struct pm_lost_objects *l = pm_calloc(1, sizeof *l);

    l->classes = classes;
    return l;
}

void pm_lost_objects_destroy(struct pm_lost_objects **l)
{
    if (*l)
        pm_free((*l)->list);
    pm_free(*l);
    *l = NULL;
}

static void keep(struct pm_lost_objects *l, const struct kept_object *o)
{
    PM_GROW(l->list, l->count, l->capacity);
    l->list[l->count++] = *o;
}

/* Sets *best to the score of the box if it is higher and the box covers the object. */
static void improve(const struct pm_box_geometry *g, const double *box, double score,
                    const double *truth, double *best)
{
    if (score > *best && g->overlap(box, truth, false) >= covers)
        *best = score;
}

static struct kept_object object_of(const struct pm_lost_objects *l,
                                    const struct pm_stages_picture *p,
                                    const struct pm_box_truth *truth)
{
    struct kept_object o = { truth->label, 0, -INFINITY, -INFINITY };
    const struct pm_box_geometry *g = p->geometry;
    const size_t n = (size_t)g->numbers, each = (size_t)p->boxes_each;
    const size_t own_box = each == 1 ? 0 : (size_t)truth->label;
    const double *true_box = pm_box_truth_numbers(g, truth);

    for (int i = 0; i < p->proposals; i++) {
        const size_t row = (size_t)i;
        const float score = p->score[row * (size_t)l->classes + (size_t)truth->label];

        o.proposal = fmax(o.proposal, g->overlap(p->proposal + row * n, true_box, false));
        improve(g, p->box + (row * each + own_box) * n, (double)score, true_box, &o.second);
    }
    for (int i = 0; i < p->detections; i++)
        if (p->detection[i].label == truth->label)
            improve(g, pm_box_found_numbers(g, &p->detection[i]), p->detection[i].score, true_box,
                    &o.detection);
    return o;
}

void pm_lost_objects_add(struct pm_lost_objects *l, const struct pm_stages_picture *p)
{
    for (int i = 0; i < p->truths; i++) {
        const struct pm_box_truth *truth = &p->truth[i];

        if (truth->crowd || truth->difficult || truth->group_of)
            continue;
        const struct kept_object o = object_of(l, p, truth);

        keep(l, &o);
    }
}

/* ---- packing ----------------------------------------------------------------------------- */

void pm_lost_objects_pack(const struct pm_lost_objects *l, struct pm_str *out)
{
    pm_pack_int(out, l->count);
    for (size_t i = 0; i < l->count; i++) {
        pm_pack_int(out, (uint64_t)l->list[i].label);
        pm_pack_double(out, l->list[i].proposal);
        pm_pack_double(out, l->list[i].second);
        pm_pack_double(out, l->list[i].detection);
    }
}

void pm_lost_objects_merge(struct pm_lost_objects *l, struct pm_unpack *u)
{
    const size_t count = pm_unpack_count(u, PACKED_OBJECT);

    for (size_t i = 0; i < count; i++) {
        struct kept_object o = { .label = (int)pm_unpack_below(u, (uint64_t)l->classes) };

        o.proposal = pm_unpack_double(u);
        o.second = pm_unpack_double(u);
        o.detection = pm_unpack_double(u);
        if (!u->damaged)
            keep(l, &o);
    }
}

/* ---- counts ------------------------------------------------------------------------------ */

static enum pm_stage_outcome outcome_of(const struct kept_object *o, double threshold)
{
    return o->detection > threshold  ? PM_STAGE_FOUND
           : o->second > threshold   ? PM_STAGE_SUPPRESSED
           : o->proposal >= covers   ? PM_STAGE_REJECTED
                                     : PM_STAGE_NO_PROPOSAL;
}

static void count_object(const struct kept_object *o, double threshold, struct pm_stage_counts *c)
{
    c->objects++;
    c->outcome[outcome_of(o, threshold)]++;
    c->proposed_50 += o->proposal >= 0.5;
    c->proposed_70 += o->proposal >= 0.7;
}

void pm_lost_objects_count(const struct pm_lost_objects *l, double threshold,
                           struct pm_stage_counts *total, struct pm_stage_counts *per_class)
{
    *total = (struct pm_stage_counts){ 0 };
    for (int c = 0; per_class && c < l->classes; c++)
        per_class[c] = (struct pm_stage_counts){ 0 };
    for (size_t i = 0; i < l->count; i++) {
        count_object(&l->list[i], threshold, total);
        if (per_class)
            count_object(&l->list[i], threshold, &per_class[l->list[i].label]);
    }
}

/* ---- JSON -------------------------------------------------------------------------------- */

static double share(uint64_t part, const struct pm_stage_counts *c)
{
    return c->objects ? (double)part / (double)c->objects : NAN;
}

void pm_lost_objects_report(const struct pm_lost_objects *l, struct cJSON *object)
{
    struct pm_stage_counts total;

    pm_lost_objects_count(l, 0, &total, NULL);
    cJSON_AddNumberToObject(object, "proposal_recall_50", share(total.proposed_50, &total));
    cJSON_AddNumberToObject(object, "proposal_recall_70", share(total.proposed_70, &total));
}

/* Adds a number, or with `lists` appends it to the list of this name. */
static void add_number(cJSON *object, const char *name, bool lists, double v)
{
    cJSON *list = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!lists)
        cJSON_AddNumberToObject(object, name, v);
    else
        cJSON_AddItemToArray(list ? list : cJSON_AddArrayToObject(object, name),
                             cJSON_CreateNumber(v));
}

static void add_counts(const struct pm_stage_counts *c, bool lists, cJSON *object)
{
    cJSON *shares = cJSON_GetObjectItemCaseSensitive(object, "shares");

    add_number(object, "objects", lists, (double)c->objects);
    for (int k = 0; k < PM_STAGE_OUTCOMES; k++)
        add_number(object, pm_stage_outcome_names[k], lists, (double)c->outcome[k]);
    add_number(object, "proposal_recall_50", lists, share(c->proposed_50, c));
    add_number(object, "proposal_recall_70", lists, share(c->proposed_70, c));
    shares = shares ? shares : cJSON_AddObjectToObject(object, "shares");
    for (int k = 0; k < PM_STAGE_OUTCOMES; k++)
        add_number(shares, pm_stage_outcome_names[k], lists, share(c->outcome[k], c));
}

void pm_lost_objects_detail(const struct pm_lost_objects *l, double threshold,
                            struct cJSON *object)
{
    struct pm_stage_counts *list = pm_calloc((size_t)l->classes, sizeof *list), total;
    cJSON *stages = cJSON_AddObjectToObject(object, "stages"), *per_class;

    pm_lost_objects_count(l, threshold, &total, list);
    add_counts(&total, false, stages);
    per_class = cJSON_AddObjectToObject(stages, "per_class");
    for (int c = 0; c < l->classes; c++)
        add_counts(&list[c], true, per_class);
    pm_free(list);
}
