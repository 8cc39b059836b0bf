/* Anchors and suppression give the numbers of TensorFlow's Object Detection API, on every device:
 * tests/golden/detections.json, which detections.py computed. */
#include <pumice/plan.h>

#include <cjson/cJSON.h>
#include <math.h>

#include "base/golden_file.h"
#include "device/every_device.h"
#include "layers/anchors.h"

enum { BOXES = 80, CLASSES = 3 };

static double item(const cJSON *list, int i)
{
    return cJSON_GetArrayItem(list, i)->valuedouble;
}

/* ---- anchors -------------------------------------------------------------------------------- */

/* The API computes in float32: a few roundings of numbers up to the largest. */
static void expect_boxes(const char *what, const cJSON *want, const float *got, int count)
{
    double most = 1;
    int i = 0;
    const cJSON *v;

    assert_int_equal(cJSON_GetArraySize(want), count);
    cJSON_ArrayForEach(v, want)
        most = fmax(most, fabs(v->valuedouble));
    cJSON_ArrayForEach(v, want) {
        if (!(fabs(got[i] - v->valuedouble) <= 1e-6 * most))
            fail_msg("%s: number %d is %.9g instead of %.9g", what, i, got[i], v->valuedouble);
        i++;
    }
}

static void anchors(void **state)
{
    cJSON *all = read_golden("detections.json");
    const cJSON *maps = cJSON_GetObjectItem(all, "maps"), *one;
    int compared = 0;

    (void)state;
    cJSON_ArrayForEach(one, cJSON_GetObjectItem(all, "anchors")) {
        const char *spec = cJSON_GetObjectItem(one, "spec")->valuestring;
        const int count = cJSON_GetObjectItem(one, "maps")->valueint;
        struct pm_net *net = pm_net_create();
        struct pm_node *in[1 + PM_MAX_LEVELS];

        in[0] = pm_net_input(net, "images",
                             PM_SHAPE4(1, cJSON_GetObjectItem(all, "height")->valueint,
                                       cJSON_GetObjectItem(all, "width")->valueint, 3), PM_F32);
        for (int k = 0; k < count; k++) {
            const cJSON *map = cJSON_GetArrayItem(maps, k);
            char name[8];

            snprintf(name, sizeof name, "map%d", k + 1);
            in[1 + k] = pm_net_input(net, name,
                                     PM_SHAPE4(1, (int)item(map, 0), (int)item(map, 1), 1), PM_F32);
        }
        const struct pm_node *n = pm_net_add_many(net, "anchors", in, 1 + count, "%s", spec);
        ok(net->error);
        const int numbers = n->out_shape.dim[0] * 4;
        float *v = pm_malloc((size_t)numbers * sizeof *v);

        pm_anchors_write(n, v);
        expect_boxes(spec, cJSON_GetObjectItem(one, "boxes"), v, numbers);
        pm_free(v);
        pm_net_destroy(&net);
        compared++;
    }
    assert_int_equal(compared, 5);
    cJSON_Delete(all);
}

/* ---- suppression ---------------------------------------------------------------------------- */

/* As scene() in detections.py. */
static void draw(int index, float boxes[BOXES][4], float scores[BOXES][CLASSES])
{
    uint32_t n = (uint32_t)index + 1;
    int y[BOXES], x[BOXES];

    for (int i = 0; i < BOXES; i++) {
        const int from = i % 4 == 3 ? number(&n, i) : -1;

        y[i] = from < 0 ? number(&n, 1100) - 138 : y[from] + number(&n, 21) - 10;
        x[i] = from < 0 ? number(&n, 1100) - 138 : x[from] + number(&n, 21) - 10;
        const int h = 40 + number(&n, 400), w = 40 + number(&n, 400);

        boxes[i][0] = (float)y[i] / 1024, boxes[i][1] = (float)x[i] / 1024;
        boxes[i][2] = (float)(y[i] + h) / 1024, boxes[i][3] = (float)(x[i] + w) / 1024;
    }
    for (int i = 0; i < BOXES; i++)
        for (int k = 0; k < CLASSES; k++)
            scores[i][k] = (float)(number(&n, 4000) * 256 + CLASSES * i + k) / 1048576;
}

static void spec_of(const cJSON *s, char text[400])
{
    const bool agnostic = cJSON_IsTrue(cJSON_GetArrayItem(s, 0));

    snprintf(text, 400, "suppress use_class_agnostic_nms=%s score_threshold=%.9g "
             "iou_threshold=%.9g max_detections_per_class=%g max_total_detections=%g "
             "change_coordinate_frame=%s soft_nms_sigma=%.9g", agnostic ? "true" : "false",
             item(s, 1), item(s, 2), item(s, 3), item(s, 4),
             cJSON_IsTrue(cJSON_GetArrayItem(s, 6)) ? "true" : "false", item(s, 7));
}

static void expect_found(const struct pm_plan *plan, const cJSON *want, bool soft, const char *what)
{
    const float *boxes = pm_plan_output(plan, 0, "y", 0);
    const float *scores = pm_plan_output(plan, 0, "y:1", 0);
    const int *classes = pm_plan_output(plan, 0, "y:2", 0);
    const int *anchor = pm_plan_output(plan, 0, "y:4", 0);
    const int count = *(const int *)pm_plan_output(plan, 0, "y:3", 0);
    const cJSON *anchors_of = cJSON_GetObjectItem(want, "anchors");

    if (count != cJSON_GetArraySize(anchors_of))
        fail_msg("%s: %d detections instead of %d", what, count, cJSON_GetArraySize(anchors_of));
    for (int i = 0; i < count; i++)
        if (anchor[i] != (int)item(anchors_of, i) ||
            classes[i] != (int)item(cJSON_GetObjectItem(want, "classes"), i))
            fail_msg("%s: detection %d is box %d of class %d instead of %g of %g", what, i,
                     anchor[i], classes[i], item(anchors_of, i),
                     item(cJSON_GetObjectItem(want, "classes"), i));
    expect_boxes(what, cJSON_GetObjectItem(want, "boxes"), boxes, 4 * count);
    for (int i = 0; i < count; i++) /* soft: products of up to 80 exponentials, 5 ulp each */
        assert_float_equal(scores[i], (float)item(cJSON_GetObjectItem(want, "scores"), i),
                           soft ? 3e-5 : 0);
}

/* Runs all scenes with one setting. */
static void run_setting(struct pm_device *d, const cJSON *all, int index)
{
    static const char *const outputs[] = { "y", "y:1", "y:2", "y:3", "y:4", NULL };
    const struct pm_plan_options options = { .outputs = outputs, .slots = 1, .loss_share = 1 };
    const cJSON *s = cJSON_GetArrayItem(cJSON_GetObjectItem(all, "settings"), index), *scene;
    struct pm_net *net = pm_net_create();
    struct pm_node *in[3] = { pm_net_input(net, "boxes", PM_SHAPE3(1, BOXES, 4), PM_F32),
                              pm_net_input(net, "scores", PM_SHAPE3(1, BOXES, CLASSES), PM_F32),
                              pm_net_input(net, "windows", PM_SHAPE2(1, 4), PM_F32) };
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;
    char spec[400], what[800];
    int number_of_scene = 0;

    spec_of(s, spec);
    pm_net_add_many(net, "y", in, 3, "%s", spec);
    ok(net->error);
    ok(pm_variables_create(d, net, false, NULL, &variables));
    ok(pm_plan_create(net, d, variables, &options, &plan));
    ok(pm_plan_load(plan));
    cJSON_ArrayForEach(scene, cJSON_GetObjectItem(all, "scenes")) {
        float *window = pm_plan_input(plan, 0, "windows", 0);

        draw(number_of_scene, (void *)pm_plan_input(plan, 0, "boxes", 0),
             (void *)pm_plan_input(plan, 0, "scores", 0));
        for (int i = 0; i < 4; i++)
            window[i] = (float)item(cJSON_GetArrayItem(s, 5), i);
        ok(pm_plan_submit(plan, 0));
        ok(pm_plan_wait(plan, 0));
        snprintf(what, sizeof what, "%s: scene %d, %s", pm_device_get_info(d)->name,
                 number_of_scene++, spec);
        expect_found(plan, cJSON_GetArrayItem(scene, index), item(s, 7) > 0, what);
    }
    assert_int_equal(number_of_scene, 5);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
}

static void suppression(void **state)
{
    cJSON *all = read_golden("detections.json");
    struct every_device e = { 0 };

    (void)state;
    while (next_device(&e))
        for (int k = 0; k < 6; k++)
            run_setting(e.d, all, k);
    cJSON_Delete(all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anchors),
        cmocka_unit_test(suppression),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
