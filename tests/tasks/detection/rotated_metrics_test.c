/* Metrics of rotated boxes: cases counted by hand; tests/golden/rotated_metrics.json, which
 * rotated_metrics.py computed with shapely and pycocotools; scenes that are turned; and upright
 * boxes as rotated ones of the angle 0. */
#include "base/pack.h"
#include "tasks/detection/box_given.h"
#include "tasks/detection/box_lists.h"
#include "tasks/detection/box_report.h"
#include "tasks/detection/box_scenes.h"
#include "tasks/detection/rotated_reference.h"

static const unsigned all_sets = PM_BOX_COCO | PM_BOX_PASCAL | PM_BOX_OPEN_IMAGES |
                                 PM_BOX_OPEN_IMAGES_CHALLENGE;
static const double pi = 3.14159265358979323846;

/* A true object whose upright box is what surrounds it. */
static struct pm_box_truth truth_of(int label, double cy, double cx, double h, double w,
                                    double angle)
{
    struct pm_box_truth t = { .area = NAN, .label = label, .rotated = { cy, cx, h, w, angle } };

    pm_box_rotated.bounds(t.rotated, &t.box);
    return t;
}

/* ---- overlaps ---------------------------------------------------------------------------- */

static double unit(uint32_t *n)
{
    return (number(n, 32768) * 32768.0 + number(n, 32768)) / (32768.0 * 32768.0);
}

static void draw_box(uint32_t *n, double box[5])
{
    box[0] = 20 * unit(n);
    box[1] = 20 * unit(n);
    box[2] = exp(4 * unit(n) - 1);
    box[3] = exp(5 * unit(n) - 1);
    box[4] = 8 * unit(n) - 4;
}

/* The reference errs by some 1e-13 of the sides' squares; 1e-9 is what rotated_overlap.h states. */
static void overlaps_by_reference(void **state)
{
    uint32_t n = 1;
    int apart = 0, touching = 0;

    (void)state;
    for (int i = 0; i < 200000; i++) {
        double a[5], b[5];

        draw_box(&n, a);
        draw_box(&n, b);
        const double inner = fmax(0, reference_inner(a, b)), one = a[2] * a[3], two = b[2] * b[3];
        const double iou = pm_box_rotated.overlap(a, b, false);

        assert_float_equal(iou, inner / (one + two - inner), 1e-9);
        assert_float_equal(pm_box_rotated.overlap(a, b, true), inner / one, 1e-9);
        assert_true(iou == pm_box_rotated.overlap(b, a, false));
        apart += iou == 0;
        touching += iou > 0 && iou < 1e-3;
    }
    assert_true(apart > 50000 && apart < 150000 && touching > 500); /* all kinds are drawn */
}

/* Corner against corner along the line of the centres: the circles around the boxes meet where the
 * boxes do, so a rejection that is too early drops these. */
static void corners_that_meet(void **state)
{
    uint32_t n = 2;

    (void)state;
    for (int i = 0; i < 20000; i++) {
        double a[5], b[5];

        draw_box(&n, a);
        draw_box(&n, b);
        const double direction = 7 * unit(&n);
        const double reach = (hypot(a[2], a[3]) + hypot(b[2], b[3])) / 2;
        const double depth = 1e-6 * fmin(fmin(a[2], a[3]), fmin(b[2], b[3]));

        /* The diagonals lie on the line of the centres. */
        a[4] = direction - atan2(a[2], a[3]);
        b[4] = direction - atan2(b[2], b[3]);
        b[0] = a[0] + (reach - depth) * sin(direction);
        b[1] = a[1] + (reach - depth) * cos(direction);
        assert_true(pm_box_rotated.overlap(a, b, false) > 0);
        b[0] = a[0] + (reach + depth) * sin(direction);
        b[1] = a[1] + (reach + depth) * cos(direction);
        assert_true(pm_box_rotated.overlap(a, b, false) == 0);
    }
}

static void equal_boxes(void **state)
{
    uint32_t n = 3;

    (void)state;
    for (int i = 0; i < 100000; i++) {
        double a[5];

        draw_box(&n, a);
        assert_true(pm_box_rotated.overlap(a, a, false) == 1);
        assert_true(pm_box_rotated.overlap(a, a, true) == 1);
    }
}

/* Boxes without a side, and numbers that are not finite. */
static void no_boxes(void **state)
{
    static const double good[5] = { 5, 5, 4, 8, 0.3 };
    static const double bad[][5] = { { 5, 5, 0, 8, 0.3 },   { 5, 5, 4, -8, 0.3 },
                                     { 5, 5, -4, -8, 0.3 }, { NAN, 5, 4, 8, 0.3 },
                                     { 5, 5, NAN, 8, 0.3 }, { 5, 5, 4, 8, NAN },
                                     { 5, 5, 4, 8, INFINITY } };
    const struct pm_box window = { { 0, 0, 10, 10 } };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        assert_true(pm_box_rotated.overlap(good, bad[i], false) == 0);
        assert_true(pm_box_rotated.overlap(bad[i], good, true) == 0);
        assert_false(pm_box_rotated.agreement(good, bad[i], &window) > 0);
        assert_false(pm_box_rotated.agreement(bad[i], good, &window) > 0);
    }
    assert_false(pm_box_rotated.has_sides(bad[2]));
    assert_true(pm_box_rotated.has_sides(good));
}

/* ---- golden ------------------------------------------------------------------------------ */

static void check(const char *what, int at, double v, const cJSON *want)
{
    if (cJSON_IsNull(want) != isnan(v) ||
        (!cJSON_IsNull(want) && !(fabs(v - want->valuedouble) <= 1e-11)))
        fail_msg("%s of scene %d: %.17g is not %s", what, at, v, cJSON_PrintUnformatted(want));
}

static void set_numbers(const struct pm_box *box, double angle, double rotated[5])
{
    const double *v = box->v;

    rotated[0] = (v[0] + v[2]) / 2, rotated[1] = (v[1] + v[3]) / 2;
    rotated[2] = v[2] - v[0], rotated[3] = v[3] - v[1];
    rotated[4] = angle;
}

/* Turns the boxes as rotated_metrics.py does. */
static void turn_golden(struct scene *s)
{
    for (int i = 0; i < s->count; i++) {
        struct scene_picture *p = &s->picture[i];

        for (int g = 0; g < p->truths; g++) {
            const double *v = p->truth[g].box.v;

            set_numbers(&p->truth[g].box, (v[1] + 2 * v[0]) / 200, p->truth[g].rotated);
        }
        for (int d = 0; d < p->detections; d++) {
            struct pm_box *box = &p->detection[d].box;
            const double angle = (box->v[1] + 2 * box->v[0]) / 200;

            box->v[3] += 0.26;
            set_numbers(box, angle, p->detection[d].rotated);
        }
    }
}

static void golden_scenes(void **state)
{
    static const enum pm_box_metric voc[] = { PM_BOX_VOC_MAP, PM_BOX_VOC07_MAP,
                                              PM_BOX_WEIGHTED_MAP, PM_BOX_CORLOC };
    static struct scene s;
    cJSON *all = read_golden("rotated_metrics.json");
    const cJSON *want;
    int counts[2] = { 0 };

    (void)state;
    for (int of_voc = 0; of_voc < 2; of_voc++)
        cJSON_ArrayForEach(want, cJSON_GetObjectItem(all, of_voc ? "voc" : "coco"))
        {
            const int index = counts[of_voc]++;
            struct pm_box_values mean;

            draw_scene(&s, index, of_voc);
            turn_golden(&s);
            struct pm_box_metrics *m = add_scene_of(&s, index % 2, true);

            pm_box_metrics_values(m, all_sets, &mean, NULL);
            for (int k = 0; !of_voc && k < PM_COCO_FIGURES; k++)
                check(pm_box_metric_names[k], index, mean.v[k], cJSON_GetArrayItem(want, k));
            for (int k = 0; of_voc && k < (int)PM_COUNT(voc); k++)
                check(pm_box_metric_names[voc[k]], index, mean.v[voc[k]],
                      cJSON_GetArrayItem(want, k));
            pm_box_metrics_destroy(&m);
        }
    assert_true(counts[0] == 200 && counts[1] == 200);
    cJSON_Delete(all);
}

/* ---- scenes that are turned -------------------------------------------------------------- */

/* Everything that is computed must be equal. */
static void assert_alike(const struct pm_box_metrics *a, const struct pm_box_metrics *b, int at)
{
    struct pm_box_values one, two, each[2][SCENE_CLASSES];
    struct pm_box_errors errors[2];
    struct pm_confusion confusion[2];

    pm_box_metrics_values(a, all_sets, &one, each[0]);
    pm_box_metrics_values(b, all_sets, &two, each[1]);
    for (int k = 0; k < PM_BOX_METRICS; k++) {
        if (isnan(one.v[k]) != isnan(two.v[k]) || fabs(one.v[k] - two.v[k]) > 1e-12)
            fail_msg("%s of scene %d: %.17g is not %.17g", pm_box_metric_names[k], at, two.v[k],
                     one.v[k]);
        for (int c = 0; c < SCENE_CLASSES; c++)
            assert_true(isnan(each[0][c].v[k]) == isnan(each[1][c].v[k]) &&
                        !(fabs(each[0][c].v[k] - each[1][c].v[k]) > 1e-12));
    }
    for (int i = 0; i < 2; i++) {
        pm_confusion_create(&confusion[i], SCENE_CLASSES + 1);
        pm_box_metrics_errors(i ? b : a, 0.2, &errors[i], NULL, &confusion[i]);
    }
    assert_memory_equal(&errors[0], &errors[1], sizeof errors[0]);
    assert_memory_equal(confusion[0].count, confusion[1].count,
                        (SCENE_CLASSES + 1) * (SCENE_CLASSES + 1) * sizeof *confusion[0].count);
    for (int i = 0; i < 2; i++)
        pm_confusion_free(&confusion[i]);
    for (int c = -1; c < SCENE_CLASSES; c++) {
        struct pm_coco_curve curve[2];

        pm_box_metrics_curve(a, c, &curve[0]);
        pm_box_metrics_curve(b, c, &curve[1]);
        assert_true(curve[0].truths == curve[1].truths);
        if (curve[0].truths)
            near(curve[0].f1, curve[1].f1);
    }
}

/* Turns the whole scene by an angle about the point (200, 200). The upright boxes stay. wider: is
 * added to the width of detections. */
static void turn_scene(struct scene *s, double angle, double wider)
{
    for (int i = 0; i < s->count; i++) {
        struct scene_picture *p = &s->picture[i];

        for (int k = 0; k < p->truths + p->detections; k++) {
            const bool found = k >= p->truths;
            struct pm_box_detection *d = &p->detection[k - p->truths];
            struct pm_box *box = found ? &d->box : &p->truth[k].box;
            double *to = found ? d->rotated : p->truth[k].rotated;

            box->v[3] += found ? wider : 0;
            set_numbers(box, angle, to);
            if (angle == 0)
                continue;
            const double y = to[0] - 200, x = to[1] - 200;

            to[0] = 200 + y * cos(angle) + x * sin(angle);
            to[1] = 200 + x * cos(angle) - y * sin(angle);
        }
    }
}

/* Removes the upright boxes, so that nothing can be computed from them. */
static void drop_upright(struct scene *s)
{
    for (int i = 0; i < s->count; i++) {
        for (int g = 0; g < s->picture[i].truths; g++)
            s->picture[i].truth[g].box = (struct pm_box){ { 0 } };
        for (int d = 0; d < s->picture[i].detections; d++)
            s->picture[i].detection[d].box = (struct pm_box){ { 0 } };
    }
}

static void check_turned(int index, double angle, double wider)
{
    static struct scene s;

    draw_scene(&s, index, index % 2);
    turn_scene(&s, angle, wider);
    struct pm_box_metrics *upright = add_scene(&s, false);

    drop_upright(&s);
    struct pm_box_metrics *rotated = add_scene_of(&s, index % 3 == 0, true);

    assert_alike(upright, rotated, index);
    pm_box_metrics_destroy(&upright);
    pm_box_metrics_destroy(&rotated);
}

/* Also IoUs that are exactly at a threshold: areas of these boxes are exact. */
static void angle_0(void **state)
{
    (void)state;
    for (int index = 0; index < 300; index++)
        check_turned(index, 0, 0);
}

static void any_angle(void **state)
{
    static const double angles[] = { 0.3, -1.2, 2, 3.9, -0.785398163397448, 1.5707963267948966 };

    (void)state;
    for (int index = 0; index < 150; index++)
        check_turned(index, angles[index % (int)PM_COUNT(angles)], 0.2637);
}

/* ---- cases counted by hand --------------------------------------------------------------- */

/* The upright boxes around two crossed bars are equal; the bars overlap by 1 / 11. */
static void crossed_bars(void **state)
{
    const struct pm_box_truth truth = truth_of(0, 50, 50, 10, 60, pi / 4);
    const struct pm_box_detection found = rotated_found(0, 0.9, 50, 50, 10, 60, -pi / 4);
    struct pm_box_metrics *upright = pm_box_metrics_create(&(struct pm_box_metrics_options){
        .classes = 1, .recall_upper = 1 }), *rotated = rotated_metrics(1);
    struct pm_box_values mean;

    (void)state;
    near(pm_box_overlap(&pm_box_rotated, &found, &truth, false), 1.0 / 11);
    add_boxes(upright, 0, 1, &truth, 1, &found);
    add_boxes(rotated, 0, 1, &truth, 1, &found);
    pm_box_metrics_values(upright, all_sets, &mean, NULL);
    assert_true(mean.v[PM_BOX_MAP_50] == 1 && mean.v[PM_BOX_VOC_MAP] == 1);
    pm_box_metrics_values(rotated, all_sets, &mean, NULL);
    assert_true(mean.v[PM_BOX_MAP_50] == 0 && mean.v[PM_BOX_VOC_MAP] == 0);
    assert_true(mean.v[PM_BOX_CORLOC] == 0);
    pm_box_metrics_destroy(&upright);
    pm_box_metrics_destroy(&rotated);
}

/* Two boxes of nearly the same direction whose angles differ by almost half a turn: training's rule
 * of far angles would give them no overlap. */
static void far_angles(void **state)
{
    const struct pm_box_truth truth = truth_of(0, 50, 50, 20, 40, 1.55);
    const struct pm_box_detection found = rotated_found(0, 0.9, 50, 50, 20, 40, -1.55);
    struct pm_box_metrics *m = rotated_metrics(1);
    struct pm_box_values mean;

    (void)state;
    assert_true(pm_box_overlap(&pm_box_rotated, &found, &truth, false) > 0.9);
    add_boxes(m, 0, 1, &truth, 1, &found);
    pm_box_metrics_values(m, all_sets, &mean, NULL);
    assert_true(mean.v[PM_BOX_MAP_50] == 1 && mean.v[PM_BOX_VOC07_MAP] == 1);
    pm_box_metrics_destroy(&m);
}

/* Class 0, bars of 10 x 40 at 0.5 radians, objects at x = 100, 200, 300 and a difficult one at 400;
 * by score: right (100), doubled (100), turned away (200: IoU below 0.5), ignored (400),
 * right (200), background. Precisions: 1, 1/2, 1/3, 1/2, 2/5; recalls: 1/3, ..., 2/3.
 * Class 1 has detections only, class 2 nothing. */
static void pascal(void **state)
{
    struct pm_box_truth truth[] = {
        truth_of(0, 50, 100, 10, 40, 0.5), truth_of(0, 50, 200, 10, 40, 0.5),
        truth_of(0, 50, 300, 10, 40, 0.5), truth_of(0, 50, 400, 10, 40, 0.5),
    };
    const struct pm_box_detection found[] = {
        rotated_found(0, 0.9, 50, 100, 10, 40, 0.5), rotated_found(0, 0.8, 50, 101, 10, 40, 0.5),
        rotated_found(0, 0.7, 50, 200, 10, 40, 1.2), rotated_found(0, 0.6, 50, 400, 10, 40, 0.5),
        rotated_found(0, 0.5, 50, 200, 10, 40, 0.45), rotated_found(0, 0.4, 400, 100, 10, 40, 0.5),
        rotated_found(0, 0.3, 50, 300, 0, 40, 0.5), /* no area: dropped */
        rotated_found(1, 0.9, 50, 300, 10, 40, 0.5),
    };
    struct pm_box_metrics *m = rotated_metrics(3);
    struct pm_box_values mean, each[3];
    struct pm_box_errors errors;

    (void)state;
    truth[3].difficult = true;
    add_boxes(m, 7, 4, truth, PM_COUNT(found), found);
    pm_box_metrics_values(m, PM_BOX_PASCAL, &mean, each);
    near(each[0].v[PM_BOX_VOC_MAP], 1.0 / 3 + 1.0 / 3 * 1 / 2);
    near(mean.v[PM_BOX_VOC_MAP], 1.0 / 2);
    near(mean.v[PM_BOX_VOC07_MAP], (4 * 1 + 3 * 0.5) / 11);
    near(mean.v[PM_BOX_WEIGHTED_MAP], 1.0 / 2);
    near(mean.v[PM_BOX_CORLOC], 1);
    assert_true(isnan(each[1].v[PM_BOX_VOC_MAP]) && isnan(each[2].v[PM_BOX_VOC07_MAP]));
    pm_box_metrics_errors(m, 0.35, &errors, NULL, NULL);
    assert_int_equal(errors.count[PM_BOX_RIGHT], 2);
    assert_int_equal(errors.count[PM_BOX_DOUBLE], 1);
    assert_int_equal(errors.count[PM_BOX_IGNORED], 1);
    assert_int_equal(errors.count[PM_BOX_LOOSE], 1);       /* turned away */
    assert_int_equal(errors.count[PM_BOX_WRONG_CLASS], 1); /* class 1 on the object at 300 */
    assert_int_equal(errors.count[PM_BOX_BACKGROUND], 1);
    assert_int_equal(errors.count[PM_BOX_MISSED], 0);
    pm_box_metrics_destroy(&m);
}

/* COCO: an object of 20 x 40 is small (800 <= 32 * 32), although the box around it is not; IoU 0.64
 * counts at 0.5, 0.55 and 0.6. A crowd takes what lies in it. */
static void coco(void **state)
{
    struct pm_box_truth truth[] = { truth_of(0, 60, 60, 20, 40, pi / 4),
                                    truth_of(0, 200, 200, 100, 150, 1) };
    const struct pm_box_detection found[] = {
        rotated_found(0, 0.9, 60, 60, 16, 32, pi / 4), rotated_found(0, 0.8, 200, 200, 10, 20, 1.3),
        rotated_found(0, 0.7, 210, 190, 10, 20, 0.3),
    };
    struct pm_box_metrics *m = rotated_metrics(1);
    struct pm_box_values mean;

    (void)state;
    truth[1].crowd = true;
    add_boxes(m, 0, 2, truth, 3, found);
    assert_true(pm_box_metrics_lists(m)->truth[0].area == 800);
    pm_box_metrics_values(m, PM_BOX_COCO, &mean, NULL);
    near(mean.v[PM_BOX_MAP], 0.3);
    near(mean.v[PM_BOX_MAP_50], 1);
    near(mean.v[PM_BOX_MAP_75], 0);
    near(mean.v[PM_BOX_MAP_SMALL], 0.3);
    assert_true(isnan(mean.v[PM_BOX_MAP_MEDIUM]) && isnan(mean.v[PM_BOX_MAP_LARGE]));
    near(mean.v[PM_BOX_AR_1], 0.3);
    pm_box_metrics_destroy(&m);
}

/* ---- packs, files and the report --------------------------------------------------------- */

static void packs(void **state)
{
    static struct scene s;

    (void)state;
    for (int index = 0; index < 20; index++) {
        draw_scene(&s, index, true);
        turn_golden(&s);
        struct pm_box_metrics *m = add_scene_of(&s, false, true), *merged = rotated_metrics(4);
        struct pm_str pack = { 0 }, again = { 0 };

        pm_box_metrics_pack(m, &pack);
        struct pm_unpack u = { .at = (const uint8_t *)pack.text, .left = pack.length };

        pm_box_metrics_merge(merged, &u);
        assert_false(u.damaged);
        assert_int_equal(u.left, 0);
        pm_box_metrics_pack(merged, &again);
        assert_int_equal(again.length, pack.length);
        assert_memory_equal(again.text, pack.text, pack.length);
        pm_str_free(&pack);
        pm_str_free(&again);
        pm_box_metrics_destroy(&m);
        pm_box_metrics_destroy(&merged);
    }
}

static struct pm_box_metrics *example(void)
{
    const struct pm_box_truth truth = truth_of(0, 50, 100, 20, 40, 0);
    const struct pm_box_detection found = rotated_found(0, 0.75, 50, 100, 20, 40, 0.5);
    struct pm_box_metrics *m = rotated_metrics(1);

    pm_box_metrics_add(m, &(struct pm_box_picture){ .record = 4, .name = "9", .truth = &truth,
                                                    .truths = 1, .detection = &found,
                                                    .detections = 1 });
    return m;
}

static void results_file(void **state)
{
    struct pm_box_metrics *m = example();
    char *folder = make_folder(), path[1024], *text = NULL;

    (void)state;
    snprintf(path, sizeof path, "%s/detections.json", folder);
    assert_int_equal(pm_box_metrics_write(m, PM_BOX_RESULTS_BOXES, NULL, path), PM_OK);
    assert_int_equal(pm_file_read(path, &text, NULL), PM_OK);
    cJSON *list = cJSON_Parse(text), *first = list->child;
    const double half_y = 20 * sin(0.5) + 10 * cos(0.5), half_x = 20 * cos(0.5) + 10 * sin(0.5);
    const double bbox[] = { 100 - half_x, 50 - half_y, 2 * half_x, 2 * half_y };

    for (int k = 0; k < 4; k++)
        near(cJSON_GetArrayItem(cJSON_GetObjectItem(first, "bbox"), k)->valuedouble, bbox[k]);
    char *rotated = cJSON_PrintUnformatted(cJSON_GetObjectItem(first, "rotated_bbox"));

    assert_string_equal(rotated, "[100,50,40,20,0.5]");
    cJSON_free(rotated);
    cJSON_Delete(list);
    pm_free(text);
    pm_box_metrics_destroy(&m);
    drop_folder(folder);
}

static void report(void **state)
{
    struct pm_box_metrics *m = example();
    cJSON *o = cJSON_CreateObject();

    (void)state;
    assert_true(pm_box_report_sample(m, 4, 0.5, 200, 400, o));
    const cJSON *truth = cJSON_GetObjectItem(o, "truth")->child;
    const cJSON *found = cJSON_GetObjectItem(o, "found")->child;
    char *text = cJSON_PrintUnformatted(cJSON_GetObjectItem(truth, "rotated"));

    assert_string_equal(text, "[0.25,0.25,0.1,0.1,0]");
    cJSON_free(text);
    text = cJSON_PrintUnformatted(cJSON_GetObjectItem(found, "rotated"));
    assert_string_equal(text, "[0.25,0.25,0.1,0.1,0.5]");
    cJSON_free(text);
    cJSON_Delete(o);
    pm_box_metrics_destroy(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlaps_by_reference), cmocka_unit_test(corners_that_meet),
        cmocka_unit_test(equal_boxes),           cmocka_unit_test(no_boxes),
        cmocka_unit_test(golden_scenes),         cmocka_unit_test(angle_0),
        cmocka_unit_test(any_angle),             cmocka_unit_test(crossed_bars),
        cmocka_unit_test(far_angles),            cmocka_unit_test(pascal),
        cmocka_unit_test(coco),                  cmocka_unit_test(packs),
        cmocka_unit_test(results_file),          cmocka_unit_test(report),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
