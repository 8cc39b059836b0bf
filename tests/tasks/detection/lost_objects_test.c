/* At which of two stages objects are lost: every outcome, boxes shared by the classes and boxes by
 * class, overlaps and scores equal to their limits, packs, and the way from a net's outputs. */
#include "detection_setup.h"

#include "base/pack.h"
#include "tasks/detection/lost_objects.h"

#include <cjson/cJSON.h>

enum { ROWS = 5 /* proposals of the scene */, LABELS = 3 };

static struct pm_box box(double top, double left, double height, double width)
{
    return (struct pm_box){ { top, left, top + height, left + width } };
}

/* NAN: null, or not there. */
static double number(const cJSON *object, const char *name)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(object, name));
}

/* ---- the scene --------------------------------------------------------------------------- */

/* Objects of 10x10 pixels. A box as high as the object that begins where it does, w pixels wide,
 * has an IoU of w / 10. */
static const struct pm_box_truth truths[] = {
    { .box = { { 0, 0, 10, 10 } }, .label = 0 },     /* nothing covers it */
    { .box = { { 0, 20, 10, 30 } }, .label = 0 },    /* a proposal of 0.5 does */
    { .box = { { 20, 0, 30, 10 } }, .label = 1 },    /* a proposal of 0.7, a second box of 0.5 */
    { .box = { { 20, 20, 30, 30 } }, .label = 1 },   /* all of 1 */
    { .box = { { 40, 0, 50, 10 } }, .label = 1 },    /* a detection, but no proposal */
    { .box = { { 60, 0, 70, 10 } }, .label = 0, .crowd = true },
    { .box = { { 60, 20, 70, 30 } }, .label = 0, .difficult = true },
    { .box = { { 60, 40, 70, 50 } }, .label = 0, .group_of = true },
};

/* proposal, then the second stage's box of the object's class and its scores */
struct scene {
    struct pm_box proposal[ROWS], box[ROWS * LABELS];
    float score[ROWS * LABELS];
    struct pm_box_detection detection[4];
    struct pm_stages_picture picture;
};

static void set_row(struct scene *s, int row, struct pm_box proposal, int label, struct pm_box own,
                    float score)
{
    const int each = s->picture.boxes_each, at = each == 1 ? 0 : label;

    s->proposal[row] = proposal;
    s->box[row * each + at] = own;
    s->score[row * LABELS + label] = score;
}

/* With boxes by class, boxes of other classes lie far away. */
static void make_scene(struct scene *s, int each)
{
    *s = (struct scene){ .picture = {
        .geometry = &pm_box_upright, .truth = truths, .truths = PM_COUNT(truths),
        .proposal = (const double *)s->proposal, .box = (const double *)s->box,
        .score = s->score, .detection = s->detection, .proposals = ROWS,
        .detections = PM_COUNT(s->detection), .boxes_each = each } };
    for (int i = 0; i < ROWS * LABELS; i++)
        s->box[i] = box(500, 500, 10, 10);
    set_row(s, 0, box(0, 20, 10, 5), 0, box(0, 20, 10, 4.75), 0.9f); /* its IoU is below 0.5 */
    set_row(s, 1, box(20, 0, 10, 7), 1, box(20, 0, 10, 5), 0.75f);
    set_row(s, 2, box(20, 20, 10, 10), 1, box(20, 20, 10, 10), 0.625f);
    set_row(s, 3, box(0, 4, 10, 10), 0, box(100, 100, 9, 9), 0.9f); /* 6 / 14 of the first one */
    set_row(s, 4, box(60, 0, 10, 50), 0, box(60, 0, 10, 10), 0.9f); /* only the crowd's */
    s->score[1 * LABELS + 2] = 0.95f; /* not the object's class */
    s->detection[0] = (struct pm_box_detection){ box(20, 20, 10, 10), 0.625, 1 };
    s->detection[1] = (struct pm_box_detection){ box(40, 0, 10, 10), 0.75, 1 };
    s->detection[2] = (struct pm_box_detection){ box(0, 20, 10, 10), 0.9, 2 }; /* wrong class */
    s->detection[3] = (struct pm_box_detection){ box(20, 0, 10, 4.75), 0.9, 1 }; /* too small */
}

static struct pm_lost_objects *count_scene(int each)
{
    struct pm_lost_objects *l = pm_lost_objects_create(LABELS);
    struct scene s;

    make_scene(&s, each);
    pm_lost_objects_add(l, &s.picture);
    return l;
}

/* outcomes: found, no proposal, rejected, suppressed */
static void assert_counts(const struct pm_stage_counts *c, const uint64_t outcomes[4],
                          uint64_t proposed_50, uint64_t proposed_70)
{
    uint64_t sum = 0;

    for (int k = 0; k < PM_STAGE_OUTCOMES; k++) {
        assert_int_equal(c->outcome[k], outcomes[k]);
        sum += c->outcome[k];
    }
    assert_int_equal(c->objects, sum);
    assert_int_equal(c->proposed_50, proposed_50);
    assert_int_equal(c->proposed_70, proposed_70);
}

#define OUTCOMES(...) ((const uint64_t[]){ __VA_ARGS__ })

/* ---- counts ------------------------------------------------------------------------------ */

static void outcomes(void **state)
{
    static const int each[] = { 1, LABELS };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(each); i++) {
        struct pm_lost_objects *l = count_scene(each[i]);
        struct pm_stage_counts total, per_class[LABELS];

        pm_lost_objects_count(l, 0.5, &total, per_class);
        assert_counts(&total, OUTCOMES(2, 1, 1, 1), 3, 2);
        assert_counts(&per_class[0], OUTCOMES(0, 1, 1, 0), 1, 0);
        assert_counts(&per_class[1], OUTCOMES(2, 0, 0, 1), 2, 2);
        assert_counts(&per_class[2], OUTCOMES(0, 0, 0, 0), 0, 0);
        pm_lost_objects_destroy(&l);
        assert_null(l);
    }
}

/* A score must be above the threshold. The proposals' recall does not depend on it. */
static void thresholds(void **state)
{
    static const struct { double threshold; uint64_t outcomes[4]; } cases[] = {
        { 0, { 2, 1, 1, 1 } },     { 0.62, { 2, 1, 1, 1 } }, { 0.625, { 1, 1, 2, 1 } },
        { 0.74, { 1, 1, 2, 1 } },  { 0.75, { 0, 2, 3, 0 } }, { 1, { 0, 2, 3, 0 } },
        { NAN, { 0, 2, 3, 0 } },
    };
    struct pm_lost_objects *l = count_scene(LABELS);

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_stage_counts total;

        pm_lost_objects_count(l, cases[i].threshold, &total, NULL);
        assert_counts(&total, cases[i].outcomes, 3, 2);
    }
    pm_lost_objects_destroy(&l);
}

/* Rotated boxes, whose upright boxes are all equal: bars of 10 x 60 at +-45 degrees. Boxes of
 * class 1 lie across the object, those of class 0 on it. */
static void rotated_boxes(void **state)
{
    enum { ROWS_OF = 2, CLASSES_OF = 2 };
    static const double on[5] = { 50, 50, 10, 60, 0.785398163397448 };
    static const double across[5] = { 50, 50, 10, 60, -0.785398163397448 };
    static const float score[ROWS_OF * CLASSES_OF] = { 0.75f, 0.75f, 0.25f, 0.25f };
    double proposal[ROWS_OF][5], second[ROWS_OF][CLASSES_OF][5];
    struct pm_box_truth truth[CLASSES_OF] = { { .label = 0 }, { .label = 1 } };
    struct pm_box_detection found = { .score = 0.75, .label = 0 };

    (void)state;
    for (int step = 0; step < 3; step++) {
        struct pm_lost_objects *l = pm_lost_objects_create(CLASSES_OF);
        struct pm_stage_counts total;

        for (int i = 0; i < ROWS_OF; i++) {
            memcpy(proposal[i], step == 0 ? across : on, sizeof on);
            memcpy(second[i][0], on, sizeof on);
            memcpy(second[i][1], across, sizeof across);
        }
        for (int c = 0; c < CLASSES_OF; c++)
            memcpy(truth[c].rotated, on, sizeof on);
        memcpy(found.rotated, step == 1 ? across : on, sizeof on);
        pm_lost_objects_add(l, &(struct pm_stages_picture){
            .geometry = &pm_box_rotated, .truth = truth, .proposal = proposal[0],
            .box = second[0][0], .score = score, .detection = &found, .truths = CLASSES_OF,
            .proposals = ROWS_OF, .detections = 1, .boxes_each = CLASSES_OF });
        pm_lost_objects_count(l, 0.5, &total, NULL);
        if (step == 0) /* class 0 is found, nothing covers class 1 */
            assert_counts(&total, OUTCOMES(1, 1, 0, 0), 0, 0);
        else if (step == 1)
            assert_counts(&total, OUTCOMES(0, 0, 1, 1), 2, 2);
        else
            assert_counts(&total, OUTCOMES(1, 0, 1, 0), 2, 2);
        pm_lost_objects_destroy(&l);
    }
}

/* Scores and boxes that are not finite cover nothing; the same net would otherwise find both. */
static void diverged(void **state)
{
    struct pm_lost_objects *l = pm_lost_objects_create(LABELS);
    struct pm_stage_counts total;
    struct scene s;

    (void)state;
    make_scene(&s, 1);
    s.proposal[0].v[0] = s.proposal[1].v[3] = NAN;
    s.detection[0].score = NAN;
    s.score[1 * LABELS + 1] = NAN;
    s.box[2].v[2] = NAN;
    pm_lost_objects_add(l, &s.picture);
    pm_lost_objects_count(l, 0.5, &total, NULL);
    assert_counts(&total, OUTCOMES(1, 3, 1, 0), 1, 1);
    pm_lost_objects_destroy(&l);
}

static void nothing(void **state)
{
    struct pm_lost_objects *l = pm_lost_objects_create(LABELS);
    struct pm_stage_counts total;
    cJSON *o = cJSON_CreateObject();
    struct scene s;

    (void)state;
    pm_lost_objects_report(l, o);
    assert_true(cJSON_GetArraySize(o) == 2 && isnan(number(o, "proposal_recall_50")) &&
                isnan(number(o, "proposal_recall_70")));
    make_scene(&s, 1);
    s.picture.proposals = s.picture.detections = 0;
    pm_lost_objects_add(l, &s.picture);
    pm_lost_objects_count(l, 0.5, &total, NULL);
    assert_counts(&total, OUTCOMES(0, 5, 0, 0), 0, 0);
    s.picture.truths = 0;
    pm_lost_objects_add(l, &s.picture);
    pm_lost_objects_count(l, 0.5, &total, NULL);
    assert_int_equal(total.objects, 5);
    cJSON_Delete(o);
    pm_lost_objects_destroy(&l);
}

/* ---- packs ------------------------------------------------------------------------------- */

static int merge(struct pm_lost_objects *l, const struct pm_str *pack, size_t size)
{
    struct pm_unpack u = { .at = (const uint8_t *)pack->text, .left = size };

    pm_lost_objects_merge(l, &u);
    return u.damaged ? -1 : (int)u.left;
}

/* Merged packs have the same bytes as the object that all pictures were added to. */
static void packs(void **state)
{
    struct pm_lost_objects *a = count_scene(1), *b = count_scene(LABELS);
    struct pm_lost_objects *both = count_scene(1), *few = pm_lost_objects_create(1);
    struct pm_str pack = { 0 }, merged = { 0 }, expected = { 0 };
    struct pm_stage_counts total;
    struct scene s;

    (void)state;
    make_scene(&s, LABELS);
    pm_lost_objects_add(both, &s.picture);
    pm_lost_objects_pack(both, &expected);
    pm_lost_objects_pack(b, &pack);
    assert_int_equal(merge(a, &pack, pack.length), 0);
    pm_lost_objects_pack(a, &merged);
    assert_int_equal(merged.length, expected.length);
    assert_memory_equal(merged.text, expected.text, merged.length);
    pm_lost_objects_count(a, 0.5, &total, NULL);
    assert_counts(&total, OUTCOMES(4, 2, 2, 2), 6, 4);
    for (size_t size = 0; size < pack.length; size++)
        assert_int_equal(merge(b, &pack, size), -1);
    assert_int_equal(merge(few, &pack, pack.length), -1); /* labels above 0 */
    pm_str_free(&pack);
    pm_str_free(&merged);
    pm_str_free(&expected);
    pm_lost_objects_destroy(&a);
    pm_lost_objects_destroy(&b);
    pm_lost_objects_destroy(&both);
    pm_lost_objects_destroy(&few);
}

/* ---- JSON -------------------------------------------------------------------------------- */

static void detail(void **state)
{
    struct pm_lost_objects *l = count_scene(LABELS);
    cJSON *o = cJSON_CreateObject();
    char *text;

    (void)state;
    pm_lost_objects_detail(l, 0.5, o);
    text = cJSON_PrintUnformatted(o);
    assert_string_equal(text,
        "{\"stages\":{\"objects\":5,\"found\":2,\"no_proposal\":1,\"rejected\":1,"
        "\"suppressed\":1,\"proposal_recall_50\":0.6,\"proposal_recall_70\":0.4,"
        "\"shares\":{\"found\":0.4,\"no_proposal\":0.2,\"rejected\":0.2,\"suppressed\":0.2},"
        "\"per_class\":{\"objects\":[2,3,0],\"found\":[0,2,0],\"no_proposal\":[1,0,0],"
        "\"rejected\":[1,0,0],\"suppressed\":[0,1,0],"
        "\"proposal_recall_50\":[0.5,0.66666666666666663,null],"
        "\"proposal_recall_70\":[0,0.66666666666666663,null],"
        "\"shares\":{\"found\":[0,0.66666666666666663,null],\"no_proposal\":[0.5,0,null],"
        "\"rejected\":[0.5,0,null],\"suppressed\":[0,0.33333333333333331,null]}}}}");
    cJSON_free(text);
    cJSON_Delete(o);
    pm_lost_objects_destroy(&l);
}

/* ---- from a net's outputs ---------------------------------------------------------------- */

enum { PICTURES = 2, WIDE = 3 /* rows of proposals */, FINAL = 100 };

/* Two pictures of 64x64 pixels in a frame of half that size, each with an object in its middle. In
 * the first picture a proposal covers the object. Its padded rows would also cover it, in all
 * outputs, and must not count. In the second picture the second proposal gives the object's box.
 * That box is suppressed by one of another class, which has a better score. */
struct outputs {
    float boxes[PICTURES][FINAL][4], scores[PICTURES][FINAL];
    int32_t classes[PICTURES][FINAL], counts[PICTURES];
    float proposals[PICTURES][WIDE][4];
    int32_t proposal_counts[PICTURES];
    float second[PICTURES * WIDE * CLASSES][4], second_scores[PICTURES][WIDE][CLASSES];
};

static const float middle[4] = { 0.25f, 0.25f, 0.75f, 0.75f };

static void set_outputs(struct outputs *o, int each)
{
    *o = (struct outputs){ .counts = { 1, 1 }, .proposal_counts = { 1, 2 } };
    memcpy(o->proposals[0][0], middle, sizeof middle);
    memcpy(o->proposals[0][1], middle, sizeof middle); /* padding */
    memcpy(o->second[1 * each + (each > 1 ? 1 : 0)], middle, sizeof middle);
    o->second_scores[0][1][1] = 0.99f;
    memcpy(o->proposals[1][1], middle, sizeof middle);
    memcpy(o->second[(WIDE + 1) * each + (each > 1 ? 1 : 0)], middle, sizeof middle);
    o->second_scores[1][1][1] = 0.625f;
    for (int i = 0; i < PICTURES; i++) {
        memcpy(o->boxes[i][0], middle, sizeof middle);
        o->classes[i][0] = 3;
        o->scores[i][0] = 0.75f;
    }
}

/* Returns the score of both pictures. */
static struct pm_score *score_of(const struct pm_task_row *row, const struct pm_task *t,
                                 const struct outputs *o)
{
    struct pm_box_truth cat = { .box = { { 16, 16, 48, 48 } }, .area = NAN, .label = 1 };
    struct pm_detection_truths truths_of = { .height = 64, .width = 64, .truth = &cat,
                                             .count = 1 };
    void *fields[] = { NULL }, *host[] = { &truths_of, &truths_of };
    const struct pm_batch b = { .field = fields, .frame = { SIDE, SIDE }, .examples = PICTURES,
                                .valid = PICTURES, .record = (uint64_t[]){ 0, 1 }, .host = host };
    const void *const outputs[] = { o->boxes, o->scores, o->classes, o->counts, o->proposals,
                                    o->proposal_counts, o->second, o->second_scores };
    struct pm_score *m = row->score_create(t);

    assert_int_equal(row->score_add(m, &b, outputs, 0), PM_OK);
    return m;
}

static void assert_stages(const struct pm_task_row *row, const struct pm_score *m, double found,
                          double rejected, double suppressed)
{
    cJSON *o = cJSON_CreateObject(), *stages;

    row->score_detail(m, o);
    stages = cJSON_GetObjectItem(o, "stages");
    assert_true(number(stages, "objects") == 2);
    assert_true(number(stages, "rejected") == rejected);
    assert_true(number(stages, "suppressed") == suppressed);
    assert_true(number(stages, "no_proposal") == 0 && number(stages, "found") == found);
    cJSON_Delete(o);
}

static void from_outputs(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    const struct pm_task_row *row = s.e->task_row;
    static struct outputs o;

    (void)state;
    for (int each = 1; each <= CLASSES; each += CLASSES - 1) {
        struct pm_task t = two_stages_of(&s, each, WIDE);
        cJSON *report = cJSON_CreateObject();
        struct pm_score *m;

        set_outputs(&o, each);
        m = score_of(row, &t, &o);
        assert_stages(row, m, 0, 1, 1);
        row->score_report(m, report);
        assert_true(number(report, "proposal_recall_50") == 1);
        assert_true(number(report, "proposal_recall_70") == 1);
        cJSON_Delete(report);
        row->score_destroy(&m);
    }
    tear_down(&s);
}

/* The second picture has a right detection of score 0.25, the first a wrong one of 0.125. The best
 * F1 is that of detections above 0.1875, half way between them. The second proposal of the first
 * picture has the object's box, with a score below, at and above this threshold. */
static void best_threshold(void **state)
{
    static const struct { float score; double rejected, suppressed; } cases[] = {
        { 0.125f, 1, 0 }, { 0.1875f, 1, 0 }, { 0.25f, 0, 1 },
    };
    struct setup s = set_up(CONFIG("}, \"eval\": {\"score_threshold\": \"best\"}}"));
    struct pm_task t = two_stages_of(&s, 1, WIDE);
    static struct outputs o;

    (void)state;
    assert_true(t.best_threshold);
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_score *m;

        set_outputs(&o, 1);
        o.classes[1][0] = 1;
        o.scores[1][0] = 0.25f;
        o.scores[0][0] = 0.125f;
        o.proposal_counts[0] = 2;
        o.second_scores[0][1][1] = cases[i].score;
        m = score_of(s.e->task_row, &t, &o);
        assert_stages(s.e->task_row, m, 1, cases[i].rejected, cases[i].suppressed);
        s.e->task_row->score_destroy(&m);
    }
    tear_down(&s);
}

static bool lists(const struct pm_task_row *row, const struct pm_task *t, const char *name)
{
    struct pm_metric_list list = { 0 };
    bool found = false;

    row->metrics(t, &list);
    for (size_t i = 0; i < list.count; i++)
        found |= strcmp(list.list[i]->name, name) == 0;
    pm_free(list.list);
    return found;
}

/* One stage has none of this. */
static void listed(void **state)
{
    struct setup s = set_up(CONFIG("}}"));
    const struct pm_task_row *row = s.e->task_row;
    const struct pm_task t = two_stages_of(&s, 1, WIDE);
    static struct outputs o;
    cJSON *object = cJSON_CreateObject();
    struct pm_score *m;

    (void)state;
    set_outputs(&o, 1);
    m = score_of(row, s.e->task, &o);
    row->score_report(m, object);
    row->score_detail(m, object);
    assert_null(cJSON_GetObjectItem(object, "stages"));
    assert_null(cJSON_GetObjectItem(object, "proposal_recall_50"));
    assert_true(lists(row, &t, "proposal_recall_50") && lists(row, &t, "proposal_recall_70"));
    assert_false(lists(row, s.e->task, "proposal_recall_50"));
    assert_false(lists(row, s.e->task, "proposal_recall_70"));
    assert_true(lists(row, &t, "best_f1") && lists(row, &t, "loss"));
    cJSON_Delete(object);
    row->score_destroy(&m);
    tear_down(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(outcomes), cmocka_unit_test(thresholds),   cmocka_unit_test(diverged),
        cmocka_unit_test(nothing),  cmocka_unit_test(packs),        cmocka_unit_test(detail),
        cmocka_unit_test(listed),   cmocka_unit_test(from_outputs),
        cmocka_unit_test(best_threshold), cmocka_unit_test(rotated_boxes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
