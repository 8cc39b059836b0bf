/* Stages of Faster R-CNN as lists of layers, by the program on drawn shapes: they train like the
 * same layers of a named net, end with the same bits after kills, and are evaluated and exported;
 * masks and R-FCN; a changed list is another net. */
#include "e2e/interrupted.h"
#include "e2e/small_rcnn.h"
#include "net/listed_stages.h"

/* Small lists, with batch norm in both. */
static const char net[] =
    "{ \"base\": [\"rcnn.json\"], \"model\": { \"depth_multiplier\": null,\n"
    "    \"first_stage_layers\": [\n"
    "      { \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 5, \"stride\": 4,\n"
    "        \"bias\": false },\n"
    "      { \"layer\": \"batch_norm\", \"decay\": 0.9, \"activation\": \"relu\" },\n"
    "      { \"layer\": \"conv2d\", \"filters\": 16, \"stride\": 2, \"activation\": \"relu\" } ],\n"
    "    \"second_stage_layers\": [\n"
    "      { \"name\": \"conv\", \"layer\": \"conv2d\", \"filters\": 16, \"bias\": false },\n"
    "      { \"name\": \"norm\", \"layer\": \"batch_norm\", \"decay\": 0.9,\n"
    "        \"activation\": \"relu\" },\n"
    "      { \"layer\": \"concat\", \"inputs\": [\"norm\", \"crops\"] } ],\n"
    "    \"initial_crop_size\": 8, \"proposals\": { \"max_proposals\": 40 } },\n"
    "  \"loss\": { \"proposal_sampler\": { \"batch_size\": 12 } } }\n";

/* Batch norm that trains, so that rows of padding matter. */
static const char named[] = "{\"depth_multiplier\": 0.25, \"batch_norm_train\": true}";

/* Writes FOLDER/named.json of a named net, and FOLDER/listed.json of its layers as lists. */
static void put_twins(void)
{
    static const char rest[] = "{ \"base\": [\"rcnn.json\"], \"model\": { \"batch_norm_train\": "
                               "true, \"proposals\": { \"max_proposals\": 40 } },\n"
                               "  \"loss\": { \"proposal_sampler\": { \"batch_size\": 12 } } }\n";
    struct pm_heads heads = { 0 };
    struct pm_net *of = named_net("faster_rcnn_mobilenet_v1", 2, 96, 96, 4, named, &heads);

    named_second(of, "faster_rcnn_mobilenet_v1", 3, 4, named, &heads);
    cJSON *layers = pm_net_to_json(of), *all = cJSON_CreateObject();
    cJSON *first = list_of(layers, FIRST), *second = list_of(layers, SECOND);
    char *model = with_lists("{}", first, second);

    cJSON_AddItemToObject(all, "base", cJSON_Parse("[\"named.json\"]"));
    cJSON_AddItemToObject(all, "model", cJSON_Parse(model));
    char *text = cJSON_Print(all);
    put_folder_text("named.json", rest);
    put_text(in("listed.json"), text);
    cJSON_free(text);
    cJSON_free(model);
    cJSON_Delete(first);
    cJSON_Delete(second);
    cJSON_Delete(layers);
    cJSON_Delete(all);
    pm_net_destroy(&of);
}

static int make_data(void **state)
{
    (void)state;
    if (make_rcnn(net, 96, 50, 21) < 0)
        return -1;
    put_twins();
    return 0;
}

/* The same layers have the same names and calls, so also the same initial values and bits. */
static void same_as_named(void **state)
{
    static const char *const devices[] = { "cpu", "vulkan:0" };
    static const char *const nets[] = { "named", "listed" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(devices); i++) {
        char runs[2][16];

        for (size_t k = 0; k < PM_COUNT(nets); k++) {
            snprintf(runs[k], sizeof runs[k], "%s%zu", nets[k], i);
            check(run(NULL, "train %s run.folder=%s run.steps=4 eval.every_steps=4 "
                      "devices='[\"%s\"]'", in("%s.json", nets[k]), in("%s", runs[k]),
                      devices[i]), 0);
        }
        same_losses(runs[0], runs[1], 1, 4, 0);
        assert_true(logged(runs[1], 4, "second_stage_loss/classification_loss") > 0);
        assert_true(logged_eval(runs[0], 4, "loss") == logged_eval(runs[1], 4, "loss"));
    }
}

/* A run is evaluated in its folder. */
static void evaluated(void **state)
{
    cJSON *report;

    (void)state;
    train_whole();
    report = eval_report("whole", "");
    assert_true(number_of(cJSON_GetObjectItem(report, "metrics"), "proposal_recall_50") > 0);
    assert_true(isfinite(number_of(cJSON_GetObjectItem(report, "metrics"), "loss")));
    cJSON_Delete(report);
}

/* The exported model is run on the CPU and compared with the net. */
static void exported(void **state)
{
    struct result r;

    (void)state;
    train_whole();
    r = run(NULL, "export %s %s run.folder=%s", in("net.json"), in("model.onnx"), in("whole"));
    assert_contains(r.out, "read again and run on the CPU: differs by at most ");
    check(r, 0);
    assert_true(pm_file_exists(in("model.onnx")));
}

/* Masks and one box for all classes read the list's features; R-FCN's list reads the map. */
static void variants(void **state)
{
    static const char *const more[] = {
        "model.second_stage_box_predictor='{\"predict_instance_masks\":true,"
        "\"mask_prediction_conv_depth\":8}' data.instance_masks=true",
        "model.second_stage_box_predictor='{\"type\":\"rfcn\",\"depth\":16}'",
        "model.second_stage_box_predictor='{\"type\":\"rfcn\",\"depth\":16}' "
        "model.second_stage_layers=[]",
        "model.second_stage_layers=[]",
        "model.first_stage_layers=null model.depth_multiplier=0.25",
        "model.second_stage_layers=null model.depth_multiplier=0.25",
        "model.first_stage_layers.0.stride=2 model.first_stage_layers.2.filters=4",
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(more); i++) {
        char text[512], name[32];

        snprintf(text, sizeof text, "run.steps=3 eval.every_steps=3 %s", more[i]);
        snprintf(name, sizeof name, "variant%zu", i);
        train(name, text);
        for (int step = 1; step <= 3; step++)
            assert_true(logged(name, step, "second_stage_loss/classification_loss") > 0);
        assert_true(isfinite(logged_eval(name, 3, "loss")));
    }
    assert_true(logged("variant0", 3, "mask_loss") > 0);
}

/* A run folder belongs to its lists. Options that only write out a default are no change. */
static void changed(void **state)
{
    (void)state;
    train_whole();
    train("whole", "model.first_stage_layers.0.padding=same run.steps=24");
    check(run(NULL, "train %s run.folder=%s model.second_stage_layers.0.kernel=5 run.steps=26",
              in("net.json"), in("whole")), 2, "model.second_stage_layers");
}

/* The place of a mistake is that in the file. */
static void refused(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s model.second_stage_layers.0.filter=3", in("net.json"),
              in("bad")), 2, "net.json:7: model.second_stage_layers[0].filter: unknown key, "
          "did you mean 'filters'?");
    check(run(NULL, "train %s run.folder=%s model.first_stage_layers=[]", in("net.json"),
              in("bad")), 2, "command line: model.first_stage_layers: must be a list of at least "
          "one layer");
    check(run(NULL, "train %s run.folder=%s model.first_stage_layers.0.filter=3", in("net.json"),
              in("bad")), 2, "net.json:2: model.first_stage_layers[0].filter: unknown key");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_as_named), cmocka_unit_test(same_after_kills),
        cmocka_unit_test(evaluated),     cmocka_unit_test(exported),
        cmocka_unit_test(variants),      cmocka_unit_test(changed),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
