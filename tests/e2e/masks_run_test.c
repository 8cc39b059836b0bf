/* Mask R-CNN by the program, on drawn shapes with their masks: training that is killed ends with
 * the same bits; clones of any shares and micro-batches learn what one does; a net that learns
 * finds masks, which evaluation counts and prediction writes and paints. */
#include "data/coco_mask.h"
#include "e2e/small_rcnn.h"
#include "e2e/tile_pictures.h"

static const char net[] =
    "{ \"base\": [\"rcnn.json\"], \"model\": {\n"
    "    \"second_stage_box_predictor\": { \"predict_instance_masks\": true,\n"
    "      \"mask_prediction_conv_depth\": 16, \"mask_height\": 11, \"mask_width\": 13 },\n"
    "    \"proposals\": { \"max_proposals\": 30 },\n"
    "    \"post_processing\": { \"score_converter\": \"softmax\",\n"
    "      \"max_detections_per_class\": 20, \"max_total_detections\": 20 } },\n"
    "  \"data\": { \"instance_masks\": true, \"max_boxes\": 8 },\n"
    "  \"optim\": { \"clip_norm\": 10 },\n"
    "  \"loss\": { \"second_stage\": { \"mask_weight\": 2 },\n"
    "            \"proposal_sampler\": { \"batch_size\": 12 } },\n"
    "  \"run\": { \"steps\": 16 },\n"
    "  \"eval\": { \"every_steps\": 8, \"score_threshold\": 0.3,\n"
    "            \"metrics\": [\"coco\", \"coco_masks\", \"voc_masks\"] } }\n";

enum { SIDE = 96 }; /* of the pictures */

static void in_parts(void **state)
{
    (void)state;
    assert_rcnn_in_parts("");
    assert_true(logged("both_one", 10, "mask_loss") > 0);
}

static int make_data(void **state)
{
    (void)state;
    return make_rcnn(net, SIDE, 50, 21);
}

/* A net that learns finds the masks of the training pictures: a trial gave 0.86 for boxes and 0.69
 * for masks. Then the loss of masks, of weight 2, is below that of equal probabilities, 2 ln 2 =
 * 1.39; the trial's was 0.79. */
static void learns(void **state)
{
    (void)state;
    train_learns("");
    assert_true(logged("learns", 400, "mask_loss") < 1.1);
    assert_true(eval_metric("learns", "mask_map_50", "") >= 0.5);
    assert_true(eval_metric("learns", "mask_voc_map", "") >= 0.5);
}

/* The drawing is the picture, a whole number of times as large, with other colours in most pixels
 * of the masks. inside: [SIDE][SIDE], nonzero in a mask. */
static void assert_painted(const uint8_t *inside)
{
    struct pm_image8 before = read_picture(in("pictures/" LEARNT_PICTURE));
    struct pm_image8 after = read_picture(in("drawn/" LEARNT_PICTURE));
    const int times = after.width / SIDE;
    int masked = 0, changed = 0;

    assert_true(before.height == SIDE && before.width == SIDE);
    assert_true(times > 0 && after.height == times * SIDE && after.width == times * SIDE);
    for (int i = 0; i < SIDE * SIDE; i++)
        if (inside[i]) {
            const int y = i / SIDE * times + times / 2, x = i % SIDE * times + times / 2;
            const uint8_t *painted = after.pixels + 3 * (y * after.width + x);

            masked++;
            changed += memcmp(before.pixels + 3 * i, painted, 3) != 0;
        }
    assert_true(masked > 0 && 2 * changed > masked);
    pm_image_free(&before);
    pm_image_free(&after);
}

/* A predicted mask lies inside its box, and the drawing shows those of a training picture. */
static void predicted(void **state)
{
    cJSON *image = predict_learnt(), *row;
    const double threshold = number_of(image, "score_threshold");
    uint8_t inside[SIDE * SIDE] = { 0 }, one[SIDE * SIDE];

    (void)state;
    cJSON_ArrayForEach(row, cJSON_GetObjectItem(image, "boxes"))
    {
        const cJSON *mask = cJSON_GetObjectItem(row, "mask");
        const cJSON *box = cJSON_GetObjectItem(row, "box");
        const bool drawn = cJSON_GetObjectItem(row, "score")->valuedouble > threshold;
        struct pm_runs runs = { 0 };
        uint32_t around[4];

        assert_int_equal(pm_runs_text(cJSON_GetStringValue(cJSON_GetObjectItem(mask, "counts")),
                                      SIDE, SIDE, "mask", &runs), PM_OK);
        pm_runs_box(&runs, around);
        if (pm_runs_area(&runs) > 0) {
            assert_true(around[1] + 1 >= cJSON_GetArrayItem(box, 0)->valuedouble);
            assert_true(around[0] + 1 >= cJSON_GetArrayItem(box, 1)->valuedouble);
            assert_true(around[1] + around[3] <= cJSON_GetArrayItem(box, 2)->valuedouble + 1);
            assert_true(around[0] + around[2] <= cJSON_GetArrayItem(box, 3)->valuedouble + 1);
        }
        pm_runs_decode(&runs, one);
        for (int i = 0; i < SIDE * SIDE && drawn; i++)
            inside[i] |= one[i];
        pm_runs_free(&runs);
    }
    assert_painted(inside);
    cJSON_Delete(image);
}

/* Decodes a row's mask in a picture of SIDE x width pixels. */
static void mask_of(const cJSON *row, int width, uint8_t *out)
{
    const cJSON *mask = cJSON_GetObjectItem(row, "mask");
    struct pm_runs runs = { 0 };

    assert_int_equal(pm_runs_text(cJSON_GetStringValue(cJSON_GetObjectItem(mask, "counts")), SIDE,
                                  width, "mask", &runs), PM_OK);
    pm_runs_decode(&runs, out);
    pm_runs_free(&runs);
}

static void same_mask(const cJSON *one, const cJSON *pair, int x)
{
    uint8_t a[SIDE * SIDE], b[SIDE * 2 * SIDE], moved[SIDE * 2 * SIDE] = { 0 };

    mask_of(one, SIDE, a);
    mask_of(pair, 2 * SIDE, b);
    for (int y = 0; y < SIDE; y++)
        memcpy(moved + y * 2 * SIDE + x, a + y * SIDE, SIDE);
    assert_memory_equal(b, moved, sizeof moved);
}

/* The masks of tiles are at their place in the photo. */
static void in_tiles(void **state)
{
    (void)state;
    compare_pair(SIDE, same_mask);
}

static void refused(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s data.instance_masks=false", in("net.json"), in("bad")),
          2, "data.instance_masks: false, but the net predicts masks: set it to true");
    check(run(NULL, "train %s run.folder=%s model.second_stage_box_predictor.predict_instance_masks"
              "=false", in("net.json"), in("bad")), 2, "eval.metrics: the net predicts no masks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_after_kills), cmocka_unit_test(same_after_loss),
        cmocka_unit_test(in_parts), cmocka_unit_test(learns), cmocka_unit_test(predicted),
        cmocka_unit_test(in_tiles), cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
