/* Keypoint R-CNN by the program, on drawn shapes with keypoints: training that is killed ends with
 * the same bits; clones of any shares and micro-batches learn what one does; a net that learns
 * finds keypoints, which evaluation counts and prediction writes and draws; training without
 * anything to learn; and what is refused. */
#include "e2e/keypoint_shapes.h"
#include "e2e/small_rcnn.h"
#include "e2e/tile_pictures.h"

#include <pumice/draw.h>

static const char net[] =
    "{ \"base\": [\"rcnn.json\"], \"model\": {\n"
    "    \"second_stage_box_predictor\": { \"predict_keypoints\": true,\n"
    "      \"keypoint_prediction_num_conv_layers\": 1, \"keypoint_prediction_conv_depth\": 32,\n"
    "      \"keypoint_heatmap_height\": 21, \"keypoint_heatmap_width\": 23 },\n"
    "    \"proposals\": { \"max_proposals\": 30 },\n"
    "    \"post_processing\": { \"score_converter\": \"softmax\",\n"
    "      \"max_detections_per_class\": 20, \"max_total_detections\": 20 } },\n"
    "  \"data\": { \"num_keypoints\": 4, \"max_boxes\": 8 },\n"
    "  \"input\": { \"augment\": [" SHAPE_FLIP ", { \"name\": \"resize\" }] },\n"
    "  \"optim\": { \"clip_norm\": 10 },\n"
    "  \"loss\": { \"second_stage\": { \"keypoint_weight\": 0.5 },\n"
    "            \"proposal_sampler\": { \"batch_size\": 12 } },\n"
    "  \"run\": { \"steps\": 16 },\n"
    "  \"eval\": { \"every_steps\": 8, \"score_threshold\": 0.3,\n"
    "            \"keypoint_sigmas\": " SHAPE_SIGMAS ", \"keypoint_edges\": [[0, 3], [1, 2]],\n"
    "            \"metrics\": [\"coco\", \"coco_keypoints\"] } }\n";

enum { SIDE = 96 }; /* of the pictures */

static void in_parts(void **state)
{
    (void)state;
    assert_rcnn_in_parts("");
    assert_true(logged("both_one", 10, "keypoint_loss") > 0);
}

static int make_data(void **state)
{
    (void)state;
    if (make_rcnn(net, SIDE, 50, 21) < 0)
        return -1;
    give_keypoints("train", true);
    give_keypoints("test", true);
    return 0;
}

/* A net that learns finds the keypoints of the training pictures. A softmax over 21 x 23 places
 * without any knowledge has a loss of ln 483 = 6.2, and half of it with this weight. */
static void learns(void **state)
{
    (void)state;
    train_learns("");
    assert_true(logged("learns", 400, "keypoint_loss") < 2);
    assert_true(eval_metric("learns", "keypoint_map_50", "") >= 0.6);
}

static double item(const cJSON *list, int i)
{
    return cJSON_GetNumberValue(cJSON_GetArrayItem(list, i));
}

/* The drawing shows the keypoint's disc: in the colour that the keypoint has, at its place. */
static void assert_drawn(const struct pm_image8 *drawing, const cJSON *point, size_t number)
{
    const struct pm_color c = pm_draw_color(number);
    const int y = (int)(item(point, 0) * drawing->height / SIDE);
    const int x = (int)(item(point, 1) * drawing->width / SIDE);
    const uint8_t *p = drawing->pixels + 3 * ((size_t)y * (size_t)drawing->width + (size_t)x);

    assert_true(y < drawing->height && x < drawing->width);
    assert_true(p[0] == c.r && p[1] == c.g && p[2] == c.b);
}

/* Keypoints lie inside their box, at the centres of its 21 x 23 places, and have scores. */
static int check_points(const cJSON *row, const struct pm_image8 *drawing)
{
    const cJSON *points = cJSON_GetObjectItem(row, "keypoints");
    const cJSON *box = cJSON_GetObjectItem(row, "box");
    const int sides[] = { 21, 23 };

    assert_int_equal(cJSON_GetArraySize(points), SHAPE_POINTS);
    for (int k = 0; k < SHAPE_POINTS; k++) {
        const cJSON *point = cJSON_GetArrayItem(points, k);

        assert_int_equal(cJSON_GetArraySize(point), 3);
        assert_true(item(point, 2) > 0 && item(point, 2) <= 1);
        for (int i = 0; i < 2; i++) {
            const double part = (item(point, i) - item(box, i)) / (item(box, i + 2) - item(box, i));
            const double place = part * sides[i] - 0.5;
            /* Both are rounded to 0.01 pixel, and a box has at least 8 pixels. */
            const double rounded = 3 * 0.01 / 8 * sides[i];

            assert_true(place > -rounded && place < sides[i] - 1 + rounded);
            assert_true(fabs(place - round(place)) < rounded);
        }
    }
    /* The last keypoint of the object that is drawn last is on top of everything. */
    assert_drawn(drawing, cJSON_GetArrayItem(points, SHAPE_POINTS - 1), SHAPE_POINTS - 1);
    return 1;
}

static void predicted(void **state)
{
    cJSON *image = predict_learnt(), *row;
    struct pm_image8 drawing = read_picture(in("drawn/" LEARNT_PICTURE));
    int count = 0;

    (void)state;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(image, "boxes"))
        if (cJSON_GetNumberValue(cJSON_GetObjectItem(row, "score")) > 0.3 && count == 0)
            count += check_points(row, &drawing);
    assert_int_equal(count, 1);
    pm_image_free(&drawing);
    cJSON_Delete(image);
}

static void same_points(const cJSON *one, const cJSON *pair, int x)
{
    const cJSON *a = cJSON_GetObjectItem(one, "keypoints");
    const cJSON *b = cJSON_GetObjectItem(pair, "keypoints");

    assert_int_equal(cJSON_GetArraySize(a), SHAPE_POINTS);
    assert_int_equal(cJSON_GetArraySize(b), SHAPE_POINTS);
    for (int k = 0; k < SHAPE_POINTS; k++) {
        const cJSON *from = cJSON_GetArrayItem(a, k), *to = cJSON_GetArrayItem(b, k);

        assert_float_equal(item(to, 0), item(from, 0), 1e-9);
        assert_float_equal(item(to, 1), item(from, 1) + x, 1e-9);
        assert_float_equal(item(to, 2), item(from, 2), 1e-9); /* the score */
    }
}

/* The keypoints of tiles are at their place in the photo. */
static void in_tiles(void **state)
{
    (void)state;
    compare_pair(SIDE, same_points);
}

/* The file of an evaluation has COCO's form. */
static void results(void **state)
{
    char *text;
    cJSON *list;

    (void)state;
    check(run(NULL, "eval %s run.folder=%s", in("net.json"), in("learns")), 0);
    text = get_text(in("learns/eval_test/detections_keypoints.json"));
    list = cJSON_Parse(text);
    assert_true(cJSON_GetArraySize(list) > 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(cJSON_GetArrayItem(list, 0),
                                                            "keypoints")), 3 * SHAPE_POINTS);
    cJSON_Delete(list);
    pm_free(text);
}

/* A step without a proposal that is an object, and then without anything in any step. */
static void nothing_to_learn(void **state)
{
    struct result r;

    (void)state;
    train("none", "run.steps=2 eval.every_steps=0 loss.proposal_sampler='{\"batch_size\":12,"
                  "\"iou_threshold\":1}'");
    for (int step = 1; step <= 2; step++)
        assert_true(logged("none", step, "keypoint_loss") == 0);
    give_keypoints("train", false);
    r = run(NULL, "train %s run.folder=%s run.steps=11 eval.every_steps=0 "
            "loss.proposal_sampler='{\"batch_size\":12,\"append_truth\":true}'", in("net.json"),
            in("unlabelled"));
    assert_contains(r.err, "no object of the first 64 training pictures has a labelled keypoint");
    assert_true(strstr(r.err, "no object") == strstr(r.err, "no object of the first"));
    check(r, 0);
    for (int step = 1; step <= 11; step++) {
        assert_true(logged("unlabelled", step, "keypoint_loss") == 0);
        assert_true(isfinite(logged("unlabelled", step, "loss")));
        assert_true(logged("unlabelled", step, "positive_proposals") > 0);
    }
    give_keypoints("train", true);
}

static void refuse(const char *more, const char *message)
{
    check(run(NULL, "train %s run.folder=%s %s", in("net.json"), in("bad"), more), 2, message);
}

static void refused(void **state)
{
    (void)state;
    refuse("data.num_keypoints=0 eval.keypoint_sigmas=[] eval.keypoint_edges=null",
           "predict_keypoints: true, but objects have no keypoints: set data.num_keypoints");
    refuse("data.num_keypoints=0", "eval.keypoint_sigmas: not together with data.num_keypoints=0");
    refuse("eval.keypoint_sigmas=[]", "eval.keypoint_sigmas: not set, but coco_keypoints needs a "
                                      "number for each of 4 keypoints");
    refuse("eval.keypoint_sigmas=[1,1,1]", "eval.keypoint_sigmas: 3 numbers, but there are 4");
    refuse("'eval.keypoint_edges=[[0,3],[2,1],[0,4]]'",
           "eval.keypoint_edges[2]: [0,4] is not a pair of keypoints 0..3 (data.num_keypoints). "
           "Write a list of pairs [from, to]");
    refuse("'eval.keypoint_edges=[0,1]'", "eval.keypoint_edges[0]: 0 is not a pair of keypoints");
    refuse("'eval.keypoint_edges=[[0,1,2]]'", "eval.keypoint_edges[0]: [0,1,2] is not a pair");
    refuse("'eval.keypoint_edges=[[1,2],[-1,0.5]]'",
           "eval.keypoint_edges[1]: [-1,0.5] is not a pair");
    refuse("'eval.keypoint_edges=\"all\"'",
           "eval.keypoint_edges: \"all\" is not a list of pairs of keypoints 0..3");
    refuse("model.second_stage_box_predictor.predict_keypoints=false",
           "eval.metrics: the net predicts no keypoints: remove coco_keypoints");
    refuse("input.augment='[{\"name\":\"random_flip\"},{\"name\":\"resize\"}]'",
           "objects have 4 keypoints, and input.augment does not say which of them change places");
    check(run(NULL, "train %s run.folder=%s data.num_keypoints=3 eval.keypoint_sigmas=[1,1,1] "
              "eval.keypoint_edges=null input.augment=[]", in("net.json"), in("bad")), 3,
          "the objects have 4 keypoints, but data.num_keypoints is 3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_after_kills), cmocka_unit_test(same_after_loss),
        cmocka_unit_test(in_parts),         cmocka_unit_test(learns),
        cmocka_unit_test(predicted),        cmocka_unit_test(in_tiles),
        cmocka_unit_test(results),          cmocka_unit_test(nothing_to_learn),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
