/* Invalid configs: each message names the place, the key and the reason. */
#include "config_rows.h"

#include <cjson/cJSON.h>

/* A text (model.name is added unless the text has a model), and a part of the expected message. */
static void messages(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        { "{}", "t.json: model.name is not given (nor model.layers, nor model.onnx)" },
        { "[]", "t.json:1: a config is an object" },
        { "{\"model\":\n{\"name\": \"lenett\"}}",
          "t.json:2: model.name: 'lenett' is no net of this "
          "version, did you mean 'lenet'? (known: lenet, cifarnet)" },
        { "{\"model\": {\"name\": \"lenet\", \"layers\": []}}", "name and layers are both given" },
        { "{\"model\": {\"layers\": {}}}", "t.json:1: model.layers: a list" },
        { "{\"model\": {\"name\": \"lenet\", \"keep_prob\": 2}}",
          "t.json:1: model.keep_prob: 2 is outside 0.01..1 (share kept)" },
        { "{\"model\": {\"name\": \"cifarnet\", \"keep_prob\": 1}}",
          "model.keep_prob: 'cifarnet' has no such option" },
        { "{\"model\": 3}", "t.json:1: model: an object" },
        { "{\"model\": {\"name\": \"lenet\", \"output_stride\": 8}}",
          "t.json:1: model.output_stride: 'lenet' has no such option (its own: " },
        { "{\"model\": {\"name\": \"lenet\", \"meta\": \"ssd\"}}",
          "t.json:1: model.meta: there is no such key. The net's name, model.name, decides" },
        { "{\"optim\": {\n\n\"momentun\": 1, \"name\": \"momentum\"}}",
          "t.json:3: optim.momentun: unknown key, did you mean 'momentum'?" },
        { "{\"optim\": {\"momentum\": 1, \"name\": \"adam\"}}",
          "t.json:1: optim.momentum: 'adam' has no such option" },
        { "{\"optim\": {\"name\": \"adma\"}}", "'adma' is no optimizer of this version, did you "
                                               "mean 'adam'?" },
        { "{\"optim\": {\"multipliers\": {\"x\": \"y\"}}}", "the factor of 'x' must be a number" },
        { "{\"optim\": {\"multipliers\": 2}}", "optim.multipliers: an object" },
        { "{\"input\": {\"preprocessing\": \"ritch\"}}", "is no preprocessing of this version, did "
                                                         "you mean 'rich'?" },
        { "{\"input\": {\"fast\": true}}", "t.json:1: input.fast: unknown key" },
        { "{\"input\": {\"augment\": {}}}", "t.json:1: input.augment: a list" },
        { "{\"input\": {\"augment\": [\n{\"angle\": 1}]}}",
          "t.json:2: input.augment.0: an object { \"name\"" },
        { "{\"input\": {\"augment\": [{\"name\": \"flip\"},\n{\"name\": \"tern\"}]}}",
          "t.json:2: input.augment.1.name: 'tern' is no augmentation of this version, did you "
          "mean "
          "'turn'? "
          "(known: turn, flip)" },
        { "{\"input\": {\"augment\": [{\"name\": \"turn\", \"angle\": 200}]}}",
          "t.json:1: input.augment.0.angle: 200 is outside 0..180 (degrees)" },
        { "{\"input\": {\"augment\": [{\"name\": \"flip\", \"angle\": 1}]}}",
          "input.augment.0.angle: unknown key" },
        { "{\"input\": {\"size\": [1, 2, 3]}}",
          "input.size: 3 numbers; a side or [height, width]" },
        { "{\"model\": {\"name\": \"lenet\"},\n\"input\": {\"buckets\": [32]}}",
          "t.json:2: input.buckets: this key is for segmentation, but task is classification: "
          "remove it" },
        { BUCKETS("32"), "t.json:2: input.buckets: a list of sizes is needed" },
        { BUCKETS("[]"), "t.json:2: input.buckets: a list of sizes is needed" },
        { BUCKETS("[33,\n0]"),
          "t.json:3: input.buckets.1: a side or [height, width] is needed, 1..16384 pixels each" },
        { BUCKETS("[[33, 16385]]"), "input.buckets.0: a side or" },
        { BUCKETS("[[33]]"), "input.buckets.0: a side or" },
        { BUCKETS("[33.5]"), "input.buckets.0: a side or" },
        { BUCKETS("[\"33\"]"), "input.buckets.0: a side or" },
        { BUCKETS("[33, [9, 33], [33, 33]]"),
          "input.buckets.2: 33 x 33 is listed twice: remove one" },
        { BUCKETS("[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17]"),
          "t.json:2: input.buckets: 17 sizes; at most 16 are possible" },
        { BUCKETS("[33, [65, 49]], \"size\": [49, 65]"),
          "t.json:2: input.size: 49 x 65 is none of input.buckets: add it to them, or set "
          "input.size to null" },
        { "{\"run\": {\"base_lr\": 1}}", "run.base_lr: unknown key, did you mean "
                                         "'schedule.base_lr'?" },
        { "{\"schedule\": {\"base_lr\": \"0.01\"}}",
          "schedule.base_lr: \"0.01\" is a text: write the number without quotes" },
        { "{\"run\": {\"steps\": \"5\"}}", "\"5\" is a text: write the number without quotes" },
        { "{\"run\": {\"steps\": \"five\"}}", "run.steps: \"five\" is not an integer" },
        { "{\"schedule\": {\"lr\": 1}}", "schedule.lr: unknown key, did you mean "
                                       "'schedule.base_lr'?" },
        { "{\"lr\": 1}", "t.json:1: lr: unknown key, did you mean 'schedule.base_lr'?" },
        { "{\"optimizer\": \"adam\"}", "optimizer: unknown key, did you mean 'optim.name'?" },
        { "{\"master\": \"\"}", "t.json:1: master: this flag has no counterpart: "
          "`mpirun` connects the processes. Remove it" },
        { "{\"run\": {\"master\": \"\"}}", "run.master: this flag has no counterpart" },
        { "{\"data\": {\"num_readers\": 1}}", "data.num_readers: unknown key, did you mean "
                                            "'data.threads'?" },
        { "{\"optim\": {\"name\": \"Adam\"}}", "did you mean 'adam'?" },
        { "{\"model\": {\"layers\": [], \"keep_prob\": 0.5}}",
          "model.keep_prob: this is an option of some nets; set model.name to choose the net" },
        { "{\"run\": {\"train_dir\": \"x\"}}", "did you mean 'run.folder'?" },
        { "{\"run\": {\"max_number_of_steps\": 1}}", "did you mean 'run.steps'?" },
        { "{\"run\": {\"qqqqqq\": 1}}", "run.qqqqqq: unknown key (docs/keys.md lists all)" },
        { "{\"run\": {\"batch_size\": 0}}", "t.json:1: run.batch_size: 0 is outside 1..1000000" },
        { "{\"run\": {\"batch_size\": 10, \"micro_batches\": 4}}",
          "run.micro_batches: 4 does not divide run.batch_size 10" },
        { "{\"run\": {\"keep_best\": \"acuracy\"}}", "run.keep_best: 'acuracy' is not a metric" },
        { "{\"run\": {\"keep_best\": \"accuracy\"}}", "set eval.every_steps" },
        { "{\"runn\": {}}", "t.json:1: runn: unknown key, did you mean 'run'?" },
        { "{\"batch_size\": 3}", "t.json:1: batch_size: unknown key, did you mean "
                                 "'run.batch_size'?" },
        { "{\"task\": \"x\"}", "task: one of classification, segmentation, detection" },
        { "{\"devices\": []}", "t.json:1: devices: the list is empty" },
        { "{\"replicas\": {}}", "t.json:1: replicas: a list of objects such as" },
        { "{\"replicas\": [{\"share\": 1}]}", "replicas.0: set host, a pattern of host names, or" },
        { "{\"replicas\": [{\"rank\": 0, \"host\": \"a\"}]}", "replicas.0: set host, a pattern" },
        { "{\"replicas\": [{\"rank\": 0, \"devices\": []}]}",
          "t.json:1: replicas.0.devices: the list is empty" },
        { "{\"replicas\": [{\"rank\": 0},\n {\"rank\": 800}]}", "t.json:2: replicas.1.rank:" },
        { "{\"replicas\": [{\"rank\": 0, \"share\": 2}], \"run\": {\"balance\": \"auto\"}}",
          "run.balance: \"auto\" measures the shares, but devices or replicas sets them" },
        { "{\"devices\": [3]}", "devices.0: a name such as" },
        { "{\"devices\": [\"cpu\",\n {\"nam\": \"x\"}]}",
          "t.json:2: devices.1.nam: unknown key, did you mean 'name'?" },
        { "{\"devices\": [\"cpu\", {\"name\": \"x\", \"share\": 2}]}",
          "1 of 2 devices have a share" },
        { "{\"devices\": [\"cpu\", \"cpu\", \"cpu\"], \"run\": {\"batch_size\": 2}}",
          "run.batch_size: 2 is less than one example for each of 3 devices" },
        { "{\"devices\": [{\"name\": \"cpu\", \"share\": 2}],\n\"run\": {\"balance\": \"auto\"}}",
          "t.json:2: run.balance: \"auto\" measures the shares" },
        { "{\"export\": {\"frames\": 3}}",
          "t.json:1: export.frames: there is no such key. Nets for video are not available" },
        { "{\"export\": {\"weights\": \"x\"}}",
          "export.weights: \"x\" is not one of auto|inside|beside" },
        { "{\"run\": {\"replicas\": -1}}", "t.json:1: run.replicas: -1 is outside 0..800" },
        { "{\"run\": {\"exchange\": \"fp16\"}}",
          "run.exchange: \"fp16\" is not one of float32|bfloat16" },
        { "{\"run\": {\"task\": -1}}", "run.task: -1 is outside 0..799" },
        { "{\"run\": {\"parameter_servers\": 800}}",
          "run.parameter_servers: 800 is outside 0..799" },
        { "{\"run\": {\"replicas_to_aggregate\": -2}}",
          "run.replicas_to_aggregate: -2 is outside -1..2147483647" },
        { "{\"run\": {\"startup_delay_steps\": -1}}",
          "run.startup_delay_steps: -1 is outside 0.." },
        { "{\"run\": {\"sync_replicas\": 0}}", "run.sync_replicas: 0 is neither true nor false" },
        { "{\"model\": {\"name\": \"lenet\", \"quantize_delay\": -2}}",
          "model.quantize_delay: -2 is outside -1..1073741824" },
        { "{\"model\": {\"name\": \"lenet\", \"quantize_delay\": 0}, \"devices\": [\"cpu\", "
          "\"cpu\"]}",
          "t.json:1: devices: 2 are given, but a net that is quantised in training" },
        { "{\"model\": {\"name\": \"lenet\", \"quantize_delay\": 0}, \"run\": {\"micro_batches\": "
          "2}}",
          "t.json:1: run.micro_batches: 2, but a net that is quantised in training" },
        { "{\"model\": {\"name\": \"lenet\", \"quantize_freeze_steps\": -1}}",
          "model.quantize_freeze_steps: -1 is outside 0..1073741824" },
        { "{\"model\": {\"name\": \"lenet\", \"quantize_freeze_steps\": 9}}",
          "t.json:1: model.quantize_freeze_steps: it is set, but the net is not quantised in "
          "training: set model.quantize_delay to 0 or more" },
        { "{\"model\": {\"name\": \"lenet\", \"quantize_symmetric\": true}}",
          "t.json:1: model.quantize_symmetric: it is set, but the net is not quantised" },
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": [], \"quantize_delay\": 0}, "
          "\"eval\": {\"flip\": true}}",
          "t.json:1: eval.flip: a quantised net (model.quantize_delay 0) evaluates a picture "
          "once" },
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": [], \"quantize_delay\": 5}, "
          "\"export\": {\"scales\": [0.5, 1]}}",
          "t.json:1: export.scales: a quantised net (model.quantize_delay 5) evaluates a picture "
          "once" },
        { "{\"data\": {\"sample_1_of_n\": 0}}", "data.sample_1_of_n: 0 is outside 1..1000000000" },
        { "{\"eval\": {\"panoptic\": {}}}",
          "t.json:1: eval.panoptic: this key is for segmentation, but" },
#define PANOPTIC(o) \
    "{\"task\": \"segmentation\", \"model\": {\"layers\": []}, \"eval\": {\"panoptic\": " o "}}"
        { PANOPTIC("3"), "t.json:1: eval.panoptic: an object is needed" },
        { PANOPTIC("{\"nms\": 3}"),
          "t.json:1: eval.panoptic.nms: unknown key (known: threshold, nms_kernel" },
        { PANOPTIC("{\"nms_kernel\": 4}"), "eval.panoptic.nms_kernel: 4 is even" },
        { PANOPTIC("{\"precision\": \"voc\"}"),
          "t.json:1: eval.panoptic.precision: \"voc\" is not one of "
          "cityscapes|coco" },
        { PANOPTIC("{\"top_k\": 256, \"label_divisor\": 256}"),
          "eval.panoptic.top_k: 256 instances of a class need as many" },
        { PANOPTIC("{\"top_k\": 300, \"label_divisor\": 256}"),
          "eval.panoptic.top_k: 300 instances of a class need as many" },
        { "{\"run\": {\"keep_best\": \"miou\"}, \"eval\": {\"every_steps\": 1}}",
          "run.keep_best: 'miou' is not a metric of classification (accuracy, recall_at_5, loss)" },
        { "{\"task\": \"segmentation\", \"run\": {\"keep_best\": \"accuracy\"}, "
          "\"model\": {\"layers\": []}, \"eval\": {\"every_steps\": 1}}",
          "run.keep_best: 'accuracy' is not a metric of segmentation (miou, pixel_accuracy, " },
        { "{\"task\": \"segmentation\", \"model\": {\"name\": \"lenet\"}}",
          "t.json:1: model.name: lenet is a net for classification, but task is segmentation" },
        { "{\"export\": {\"frames\": 3}}",
          "t.json:1: export.frames: there is no such key. Nets" },
        { "{\"base\": 3}", "t.json: base: a file name or a list of file names" },
        { "{\"base\": \"none.json\"}", "t.json: base: none.json: cannot be opened: No such file" },
        { "{\"a\": 1,\n\"a\": 2}", "t.json:2:1: key 'a' is given twice" },
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        static const char *const model = "model.name=lenet";
        struct pm_config *c = NULL;
        bool has_model = i < 2 || strstr(cases[i].text, "\"model\"");
        assert_int_equal(
            pm_config_parse("t.json", cases[i].text, &model, has_model ? 0 : 1, &rows, &c),
            PM_ECONFIG);
        assert_null(c);
        assert_contains(pm_error_text(), cases[i].message);
    }
}

/* The options of a base's row are replaced with the row. Options of another row in the same file
 * are a mistake. */
static void refuses(const char *text, const char *override, const char *why)
{
    struct pm_config *c = NULL;

    assert_int_equal(pm_config_parse("t.json", text, &override, 1, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), why);
}

/* Keys of another task are refused, unless they have their default values. */
static void keys_of_other_tasks(void **state)
{
    static const char lenet[] =
        "{\"model\": {\"name\": \"lenet\"},\n\"loss\": {\"top_k_percent\": 0.5}}";
    static const char layers[] = "{\"task\": \"segmentation\", \"model\": {\"layers\": []}}";
    static const char *const same[] = { "loss.top_k_percent=1", "eval.scales=null",
                                        "eval.flip=false", "export.pad=true" };
    struct pm_config *c = load(lenet, same, PM_COUNT(same));

    (void)state;
    pm_config_destroy(&c);
    refuses(lenet, "eval.flip=false",
            "t.json:2: loss.top_k_percent: this key is for segmentation, but task is "
            "classification: remove it");
    refuses("{\"model\": {\"name\": \"lenet\"}}", "eval.scales=[1]",
            "command line: eval.scales: this key is for "
            "segmentation, but task is");
    refuses(layers, "data.labels_offset=1",
            "data.labels_offset: this key is for classification, but task is "
            "segmentation");
    refuses(layers, "export.output=probabilities", "export.output: this key is for classification");
}

static void left_behind(void **state)
{
    static const char *const adam[] = { "optim.name=adam", "model.name=cifarnet" };
    const char *wrong[] = { "optim.name=adam", "optim.nesterov=true" };
    static const char text[] = "{\"model\": {\"name\": \"lenet\", \"keep_prob\": 0.7},\n"
                               "\"optim\": {\"name\": \"momentum\", \"momentum\": 0.3}}";
    struct pm_config *c = load(text, adam, 2);
    (void)state;

    assert_string_equal(c->input.preprocessing, "rich");
    cJSON *dump = pm_config_dump(c);
    const cJSON *optim = cJSON_GetObjectItem(dump, "optim");
    assert_null(cJSON_GetObjectItem(optim, "momentum"));
    assert_non_null(cJSON_GetObjectItem(optim, "beta1"));
    assert_null(cJSON_GetObjectItem(cJSON_GetObjectItem(dump, "model"), "keep_prob"));
    cJSON_Delete(dump);
    pm_config_destroy(&c);
    assert_int_equal(pm_config_parse("t.json", text, wrong, 2, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "command line: optim.nesterov: 'adam' has no such option");
    wrong[1] = "export.frames=true"; /* a section that exists only on the command line */
    assert_int_equal(pm_config_parse("t.json", "{}", wrong + 1, 1, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "command line: export.frames: there is no such key. Nets");
    wrong[1] = "exprt.file=x";
    assert_int_equal(pm_config_parse("t.json", "{}", wrong + 1, 1, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "command line: exprt: unknown key, did you mean 'export'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages),
        cmocka_unit_test(keys_of_other_tasks),
        cmocka_unit_test(left_behind),
    };

    rows.tasks = pm_open_tasks(&rows.task_count);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
