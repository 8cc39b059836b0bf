/* Loading a config: merging, origins, messages with their places, what goes together. */
#include "../base/unit.h"

#include <cjson/cJSON.h>

#include "config/config_private.h"

#include <pumice/task.h>

/* Two optimizers with one key in common, a net, a preprocessing: rows as upper levels hand them in.
 */
struct momentum_cfg {
    float momentum;
    bool nesterov;
};
static const struct pm_opt momentum_opts[] = {
    PM_FLOAT(momentum_cfg, momentum, 0.9, 0, 1, "decay of the sum"),
    PM_BOOL(momentum_cfg, nesterov, false, "look ahead"),
    { 0 },
};
struct adam_cfg {
    float beta1;
    const char *note;
};
static const struct pm_opt adam_opts[] = {
    PM_FLOAT(adam_cfg, beta1, 0.9, 0, 0.999, "decay of the mean"),
    PM_STRING(adam_cfg, note, NULL, "a text"),
    { 0 },
};
struct net_cfg {
    float keep_prob;
};
static const struct pm_opt net_opts[] = {
    PM_FLOAT(net_cfg, keep_prob, 0.5, 0.01, 1, "share kept"),
    { 0 },
};
struct pre_cfg {
    bool fast;
};
static const struct pm_opt pre_opts[] = {
    PM_BOOL(pre_cfg, fast, true, "cheaper colours"),
    { 0 },
};
static const struct pm_open_row nets[] = { { "lenet", "digits", net_opts, "plain" },
                                           { "cifarnet", "photographs", NULL, "rich" } };
static const struct pm_open_row optimizers[] = { { "momentum", "", momentum_opts, NULL },
                                                 { "adam", "", adam_opts, NULL },
                                                 { "rmsprop", "", NULL, NULL } };
static const struct pm_open_row pres[] = { { "plain", "", NULL, NULL },
                                           { "rich", "", pre_opts, NULL } };
struct turn_cfg {
    double angle;
};
static const struct pm_opt turn_opts[] = {
    PM_DOUBLE(turn_cfg, angle, 10, 0, 180, "degrees"),
    { 0 },
};
static const struct pm_open_row augmentations[] = { { "turn", "", turn_opts, NULL },
                                                    { "flip", "", NULL, NULL } };
/* The tasks are the program's own. */
static struct pm_open_sections rows = {
    { nets, 2 }, { optimizers, 3 }, { pres, 2 }, { augmentations, 2 }, NULL, 0,
};

static struct pm_config *load(const char *text, const char *const *overrides, size_t n)
{
    struct pm_config *c = NULL;

    if (pm_config_parse("t.json", text, overrides, n, &rows, &c) < 0)
        fail_msg("%s", pm_error_text());
    return c;
}

static void defaults(void **state)
{
    struct pm_config *c = load("{\"model\": {\"name\": \"lenet\"}}", NULL, 0);
    int height, width;
    (void)state;

    assert_string_equal(c->task, "classification");
    assert_string_equal(c->model.name, "lenet");
    assert_string_equal(c->input.preprocessing, "plain");
    assert_ptr_equal(c->model_row, &nets[0]);
    assert_ptr_equal(c->preprocessing_row, &pres[0]);
    assert_ptr_equal(c->optimizer_row, &optimizers[2]);
    assert_true(isnan(c->optim.weight_decay));
    assert_true(c->schedule.base_lr == 0.01);
    assert_int_equal(c->schedule.policy, PM_POLICY_EXPONENTIAL);
    assert_int_equal(c->run.batch_size, 32);
    assert_int_equal(c->devices_count, 1);
    assert_string_equal(c->devices[0].name, "auto");
    assert_null(c->run.folder);
    pm_config_size(c, true, &height, &width);
    assert_int_equal(height, 0);
    assert_int_equal(pm_config_need(c, "run.folder", c->run.folder), PM_ECONFIG);
    assert_contains(pm_error_text(), "t.json: run.folder is not given and this command needs it");
    assert_string_equal(pm_config_origin(c, "model.name"), "t.json:1");
    assert_string_equal(pm_config_origin(c, "model.num_classes"), "default");
    assert_string_equal(pm_config_origin(c, "run.steps"), "default");
    pm_config_destroy(&c);
    assert_null(c);
    pm_config_destroy(&c);
}

static void values(void **state)
{
    static const char text[] =
        "{ // all kinds\n"
        "  \"task\": \"classification\", \"description\": \"d\", \"$schema\": \"s\",\n"
        "  \"model\": {\"name\": \"cifarnet\", \"num_classes\": 7},\n"
        "  \"input\": {\"size\": [20, 30], \"eval_size\": 40, \"fast\": false},\n"
        "  \"optim\": {\"name\": \"momentum\", \"momentum\": 0.5, \"weight_decay\": 0,\n"
        "            \"multipliers\": {\".*/biases\": 2, \"x\": 0}, \"freeze\": \"a/.*\"},\n"
        "  \"devices\": [\"cpu\", {\"name\": \"vulkan:0\", \"threads\": 3}],\n"
        "  \"run\": {\"steps\": 9007199254740991, \"seed\": null, \"balance\": \"auto\"}\n"
        "}";
    struct pm_config *c = load(text, NULL, 0);
    struct momentum_cfg momentum;
    struct pre_cfg pre;
    int height, width;
    (void)state;

    pm_config_size(c, true, &height, &width);
    assert_true(height == 20 && width == 30);
    pm_config_size(c, false, &height, &width);
    assert_true(height == 40 && width == 40);
    assert_int_equal(pm_config_read(c, "optim", momentum_opts, &momentum), 0);
    assert_true(momentum.momentum == 0.5f && !momentum.nesterov);
    assert_int_equal(pm_config_read(c, "input", pre_opts, &pre), 0);
    assert_false(pre.fast);
    assert_true(c->optim.weight_decay == 0);
    assert_int_equal(c->optim.multiplier_count, 2);
    assert_string_equal(c->optim.multiplier[0].pattern, ".*/biases");
    assert_true(c->optim.multiplier[0].factor == 2 && c->optim.multiplier[1].factor == 0);
    assert_string_equal(c->optim.freeze.v[0], "a/.*");
    assert_int_equal(c->devices_count, 2);
    assert_string_equal(c->devices[1].name, "vulkan:0");
    assert_int_equal(c->devices[1].threads, 3);
    assert_true(c->run.steps == INT64_C(9007199254740991));
    assert_int_equal(c->run.seed, 1);
    assert_int_equal(c->run.balance, PM_BALANCE_AUTO);
    assert_string_equal(pm_config_origin(c, "optim.momentum"), "t.json:5");
    assert_string_equal(pm_config_origin(c, "optim.freeze"), "t.json:6");
    assert_string_equal(pm_config_origin(c, "devices"), "t.json:7");
    pm_config_destroy(&c);
}

/* Biases learn twice as fast, unless the config has factors of its own. */
static void segmentation_doubles_biases(void **state)
{
    static const char *const cases[] = {
        "{\"task\": \"segmentation\", \"model\": {\"layers\": []}}",
        "{\"task\": \"segmentation\", \"model\": {\"layers\": []}, \"optim\": {\"multipliers\": "
        "{}}}",
        "{\"model\": {\"layers\": []}}",
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_config *c = NULL;
        if (pm_config_parse("t.json", cases[i], NULL, 0, &rows, &c) < 0)
            fail_msg("%s", pm_error_text());
        assert_int_equal(c->optim.multiplier_count, i == 0);
        if (i == 0) {
            assert_string_equal(c->optim.multiplier[0].pattern, ".*biases");
            assert_true(c->optim.multiplier[0].factor == 2);
            assert_string_equal(c->task, "segmentation");
        }
        pm_config_destroy(&c);
    }
}

/* DeepLab's polynomial, unless the config says how long it is. */
static void segmentation_falls_over_the_run(void **state)
{
    static const struct {
        const char *text;
        double epochs;
    } cases[] = {
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": []}, "
          "\"schedule\": {\"policy\": \"polynomial\"}}", 0 },
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": []}, "
          "\"schedule\": {\"policy\": \"polynomial\", \"num_epochs_per_decay\": 2}}", 2 },
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": []}}", 2 },
        { "{\"model\": {\"layers\": []}, \"schedule\": {\"policy\": \"polynomial\"}}", 2 },
    };
    (void)state;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        struct pm_config *c = NULL;
        if (pm_config_parse("t.json", cases[i].text, NULL, 0, &rows, &c) < 0)
            fail_msg("%s", pm_error_text());
        assert_true(c->schedule.num_epochs_per_decay == cases[i].epochs);
        cJSON *dump = pm_config_dump(c);
        const cJSON *schedule = cJSON_GetObjectItem(dump, "schedule");
        assert_true(cJSON_GetObjectItem(schedule, "num_epochs_per_decay")->valuedouble ==
                    cases[i].epochs);
        cJSON_Delete(dump);
        pm_config_destroy(&c);
    }
}

/* Text (model.name is given unless the text has a model), and a part of the message it must
 * give. */
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
          "t.json:1: model.meta: known, but not available in this version (detection" },
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
          "t.json:2: input.augment.1.name: 'tern' is no augmentation of this version, did you mean "
          "'turn'? "
          "(known: turn, flip)" },
        { "{\"input\": {\"augment\": [{\"name\": \"turn\", \"angle\": 200}]}}",
          "t.json:1: input.augment.0.angle: 200 is outside 0..180 (degrees)" },
        { "{\"input\": {\"augment\": [{\"name\": \"flip\", \"angle\": 1}]}}",
          "input.augment.0.angle: unknown key" },
        { "{\"input\": {\"size\": [1, 2, 3]}}",
          "input.size: 3 numbers; a side or [height, width]" },
        { "{\"run\": {\"base_lr\": 1}}", "run.base_lr: unknown key, did you mean "
                                         "'schedule.base_lr'?" },
        { "{\"run\": {\"train_dir\": \"x\"}}", "did you mean 'run.folder'?" },
        { "{\"run\": {\"max_number_of_steps\": 1}}", "did you mean 'run.steps'?" },
        { "{\"run\": {\"qqqqqq\": 1}}", "run.qqqqqq: unknown key (docs/keys.md lists all)" },
        { "{\"run\": {\"batch_size\": 0}}", "t.json:1: run.batch_size: 0 is outside 1..1000000" },
        { "{\"run\": {\"batch_size\": 10, \"micro_batches\": 4}}",
          "run.micro_batches: 4 does not divide run.batch_size 10" },
        { "{\"run\": {\"keep_best\": \"acuracy\"}}", "run.keep_best: 'acuracy' is no metric" },
        { "{\"run\": {\"keep_best\": \"accuracy\"}}", "set eval.every_steps" },
        { "{\"runn\": {}}", "t.json:1: runn: unknown key, did you mean 'run'?" },
        { "{\"batch_size\": 3}", "t.json:1: batch_size: unknown key, did you mean "
                                 "'run.batch_size'?" },
        { "{\"task\": \"detection\"}", "t.json:1: task: detection is known, but not available" },
        { "{\"task\": \"x\"}", "task: one of classification, segmentation, detection" },
        { "{\"devices\": []}", "t.json:1: devices: the list is empty" },
        { "{\"devices\": [3]}", "devices.0: a name such as" },
        { "{\"devices\": [\"cpu\",\n {\"nam\": \"x\"}]}",
          "t.json:2: devices.1.nam: unknown key, did you mean 'name'?" },
        { "{\"devices\": [\"cpu\", {\"name\": \"x\", \"share\": 2}]}",
          "1 of 2 devices have a share" },
        { "{\"devices\": [\"cpu\", \"cpu\", \"cpu\"], \"run\": {\"batch_size\": 2}}",
          "run.batch_size: 2 is less than one example for each of 3 devices" },
        { "{\"devices\": [{\"name\": \"cpu\", \"share\": 2}],\n\"run\": {\"balance\": \"auto\"}}",
          "t.json:2: run.balance: \"auto\" measures the shares" },
        { "{\"export\": {\"frames\": 3}}", "t.json:1: export.frames: known, but not available" },
        { "{\"export\": {\"weights\": \"x\"}}",
          "export.weights: \"x\" is none of auto|inside|beside" },
        { "{\"run\": {\"replicas\": 4}}",
          "t.json:1: run.replicas: 4 is not available: only 1 is (processes of one training; "
          "several "
          "machines are not supported in this version: list several devices of one in devices)" },
        { "{\"run\": {\"task\": 1}}", "run.task: 1 is not available: only 0 is (" },
        { "{\"run\": {\"parameter_servers\": 2}}",
          "only 0 is (processes that hold variables; several" },
        { "{\"run\": {\"replicas_to_aggregate\": 0}}", "only 1 is (replicas whose gradients" },
        { "{\"run\": {\"startup_delay_steps\": 15}}", "only 0 is (step at which" },
        { "{\"run\": {\"sync_replicas\": true}}",
          "run.sync_replicas: true is not available: only false is (replicas wait" },
        { "{\"run\": {\"sync_replicas\": 0}}", "run.sync_replicas: 0 is neither true nor false" },
        { "{\"model\": {\"name\": \"lenet\", \"quantize_delay\": -2}}",
          "model.quantize_delay: -2 is outside -1..1073741824" },
        { "{\"model\": {\"name\": \"lenet\", \"quantize_delay\": 0}, \"devices\": [\"cpu\", "
          "\"cpu\"]}",
          "t.json:1: devices: 2 are given, but a net that is quantised in training" },
        { "{\"model\": {\"name\": \"lenet\", \"quantize_delay\": 0}, \"run\": {\"micro_batches\": "
          "2}}",
          "t.json:1: run.micro_batches: 2, but a net that is quantised in training" },
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": [], \"quantize_delay\": 0}, "
          "\"eval\": {\"flip\": true}}",
          "t.json:1: eval.flip: a quantised net (model.quantize_delay 0) sees a picture once" },
        { "{\"task\": \"segmentation\", \"model\": {\"layers\": [], \"quantize_delay\": 5}, "
          "\"export\": {\"scales\": [0.5, 1]}}",
          "t.json:1: export.scales: a quantised net (model.quantize_delay 5) sees a picture once" },
        { "{\"data\": {\"sample_1_of_n\": 0}}", "data.sample_1_of_n: 0 is outside 1..1000000000" },
        { "{\"eval\": {\"metrics\": []}}", "t.json:1: eval.metrics: known, but not" },
        { "{\"eval\": {\"panoptic\": {}}}", "t.json:1: eval.panoptic: is of segmentation, but" },
#define PANOPTIC(o) \
    "{\"task\": \"segmentation\", \"model\": {\"layers\": []}, \"eval\": {\"panoptic\": " o "}}"
        { PANOPTIC("3"), "t.json:1: eval.panoptic: an object is needed" },
        { PANOPTIC("{\"nms\": 3}"),
          "t.json:1: eval.panoptic.nms: unknown key (known: threshold, nms_kernel" },
        { PANOPTIC("{\"nms_kernel\": 4}"), "eval.panoptic.nms_kernel: 4 has no middle" },
        { PANOPTIC("{\"precision\": \"voc\"}"),
          "t.json:1: eval.panoptic.precision: \"voc\" is none of "
          "cityscapes|coco" },
        { PANOPTIC("{\"top_k\": 256, \"label_divisor\": 256}"),
          "eval.panoptic.top_k: 256 instances of a class cannot be told apart" },
        { PANOPTIC("{\"top_k\": 300, \"label_divisor\": 256}"),
          "eval.panoptic.top_k: 300 instances of a class cannot be told apart" },
        { "{\"run\": {\"keep_best\": \"miou\"}, \"eval\": {\"every_steps\": 1}}",
          "run.keep_best: 'miou' is no metric of classification (accuracy, recall_at_5, loss)" },
        { "{\"task\": \"segmentation\", \"run\": {\"keep_best\": \"accuracy\"}, "
          "\"model\": {\"layers\": []}, \"eval\": {\"every_steps\": 1}}",
          "run.keep_best: 'accuracy' is no metric of segmentation (miou, pixel_accuracy, " },
        { "{\"task\": \"segmentation\", \"model\": {\"name\": \"lenet\"}}",
          "t.json:1: model.name: lenet is a net for classification, but task is segmentation" },
        { "{\"optim\": {\"trainable\": []}}",
          "t.json:1: optim.trainable: known, but not available" },
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

static void overrides(void **state)
{
    static const char *const good[] = {
        "run.steps=7",
        "data.folder=a/b=c",
        "devices=cpu",
        "optim.name=adam",
        "optim.beta1=0.25",
        "model.layers.1.filters=8",
        "schedule={\"policy\": \"fixed\"}",
        "run.folder=null",
        "run.steps=8",
    };
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "run.steps", "command line: 'run.steps' is not key=value" },
        { "=3", "command line: '=3' is not key=value" },
        { "run..steps=3", "command line: 'run..steps' is not a dotted key" },
        { "run.steps.=3", "is not a dotted key" },
        { "run.seed.x=3", "command line: run.seed.x: what holds 'x' is neither an object nor" },
        { "model.layers.2.filters=3", "'2' is no index of this list of 2 (counted from 0)" },
        { "model.layers.x=3", "'x' is no index" },
        { "model.layers.-1=3", "'-1' is no index" },
        { "run.steps=many", "command line: run.steps: \"many\" is not an integer" },
        { "run.stesp=3", "command line: run.stesp: unknown key, did you mean 'steps'?" },
        { "base=x.json", "base: belongs into a file" },
    };
    static const char text[] =
        "{\"model\": {\"layers\": [{\"layer\": \"a\"}, {\"layer\": \"b\"}]},\n"
        " \"run\": {\"seed\": 3, \"folder\": \"x\"}, \"schedule\": {\"base_lr\": 1}}";
    struct pm_config *c = load(text, good, PM_COUNT(good));
    struct adam_cfg adam;
    (void)state;

    assert_int_equal(c->run.steps, 8);
    assert_int_equal(c->run.seed, 3);
    assert_null(c->run.folder);
    assert_string_equal(c->data.folder, "a/b=c");
    assert_string_equal(c->devices[0].name, "cpu");
    assert_int_equal(pm_config_read(c, "optim", adam_opts, &adam), 0);
    assert_true(adam.beta1 == 0.25f);
    assert_int_equal(c->schedule.policy, PM_POLICY_FIXED);
    assert_true(c->schedule.base_lr == 0.01); /* the object was replaced as a whole */
    const cJSON *layer = cJSON_GetArrayItem(c->model.layers, 1);
    assert_true(cJSON_GetObjectItem(layer, "filters")->valuedouble == 8);
    assert_string_equal(pm_config_origin(c, "model.layers.1.filters"), "command line");
    assert_string_equal(pm_config_origin(c, "model.layers.1.layer"), "t.json:1");
    assert_string_equal(pm_config_origin(c, "schedule.policy"), "command line");
    assert_string_equal(pm_config_origin(c, "schedule.base_lr"), "default");
    assert_string_equal(pm_config_origin(c, "run.seed"), "t.json:2");
    pm_config_destroy(&c);

    for (size_t i = 0; i < PM_COUNT(bad); i++) {
        assert_int_equal(pm_config_parse("t.json", text, &bad[i].text, 1, &rows, &c), PM_ECONFIG);
        assert_contains(pm_error_text(), bad[i].message);
    }
}

static void write_text(struct pm_arena *a, const char *folder, const char *name, const char *text)
{
    assert_int_equal(pm_file_write(pm_arena_printf(a, "%s/%s", folder, name), text, strlen(text)),
                     0);
}

static void bases(void **state)
{
    char *folder = make_folder();
    struct pm_arena *a = pm_arena_create();
    struct pm_config *c = NULL;
    (void)state;

    assert_int_equal(pm_make_folders(pm_arena_printf(a, "%s/base", folder)), 0);
    write_text(a, folder, "base/a.json",
               "{\"base\": \"c.json\", \"run\": {\"steps\": 1,\n"
               "\"seed\": 1}}");
    write_text(a, folder, "base/b.json", "{\"run\": {\"steps\": 2, \"keep\": 2}}");
    write_text(a, folder, "base/c.json",
               "{\"run\": {\"steps\": 3, \"keep\": 3, "
               "\"log_every_steps\": 3},\n\"devices\": [\"x\", \"y\"]}");
    write_text(a, folder, "x.json",
               "{\"base\": [\"base/a.json\", \"base/b.json\"],\n"
               "\"model\": {\"name\": \"lenet\"},\n"
               "\"run\": {\"keep\": 9}, \"devices\": [\"cpu\"]}");
    const char *path = pm_arena_printf(a, "%s/x.json", folder);
    assert_int_equal(pm_config_load(path, NULL, 0, &rows, &c), 0);
    assert_int_equal(c->run.steps, 2);
    assert_int_equal(c->run.seed, 1);
    assert_int_equal(c->run.keep, 9);
    assert_int_equal(c->run.log_every_steps, 3);
    assert_int_equal(c->devices_count, 1); /* lists are replaced, not merged */
    assert_contains(pm_config_origin(c, "run.seed"), "/base/a.json:2");
    assert_contains(pm_config_origin(c, "run.keep"), "/x.json:3");
    pm_config_destroy(&c);

    write_text(a, folder, "base/c.json", "{\"base\": \"../x.json\"}");
    assert_int_equal(pm_config_load(path, NULL, 0, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "base: the file is its own base, by way of ");
    write_text(a, folder, "base/c.json", "{\"run\": {\n\"stesp\": 1}}");
    assert_int_equal(pm_config_load(path, NULL, 0, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "/base/c.json:2: run.stesp: unknown key");
    assert_int_equal(pm_file_write(path, "{}\0x", 4), 0);
    assert_int_equal(pm_config_load(path, NULL, 0, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "holds a zero byte, at offset 2");
    assert_int_equal(pm_config_load(folder, NULL, 0, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "is a folder");
    pm_arena_destroy(&a);
    drop_folder(folder);
}

/* A base's options go with the row they belong to; those of the same file do not (a mistake). */
static void refuses(const char *text, const char *override, const char *why)
{
    struct pm_config *c = NULL;

    assert_int_equal(pm_config_parse("t.json", text, &override, 1, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), why);
}

/* Keys of another task, unless they say what is so anyway. */
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
            "t.json:2: loss.top_k_percent: is of segmentation, but task is "
            "classification: leave it out");
    refuses("{\"model\": {\"name\": \"lenet\"}}", "eval.scales=[1]",
            "command line: eval.scales: is of "
            "segmentation, but task is");
    refuses(layers, "data.labels_offset=1", "data.labels_offset: is of classification, but task is "
                                            "segmentation");
    refuses(layers, "export.output=probabilities", "export.output: is of classification");
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
    wrong[1] = "export.frames=true"; /* a section that only the command line has */
    assert_int_equal(pm_config_parse("t.json", "{}", wrong + 1, 1, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "command line: export.frames: known, but not available");
    wrong[1] = "exprt.file=x";
    assert_int_equal(pm_config_parse("t.json", "{}", wrong + 1, 1, &rows, &c), PM_ECONFIG);
    assert_contains(pm_error_text(), "command line: exprt: unknown key, did you mean 'export'?");
}

/* What is printed, loaded again, is printed the same. */
static void dump(void **state)
{
    static const char text[] =
        "{\"model\": {\"layers\": [{\"layer\": \"conv2d\", \"filters\": 3}]},\n"
        "\"optim\": {\"name\": \"adam\", \"note\": \"n\", \"clip_norm\": 0.1,\n"
        "\"multipliers\": {\"a\": 0.3}}, \"loss\": {\"aux_weight\": 0.4},\n"
        "\"devices\": [{\"name\": \"cpu\", \"share\": 0.1}, {\"name\": \"cpu\", \"share\": 3}],\n"
        "\"input\": {\"preprocessing\": \"rich\", \"size\": 7}, \"run\": {\"folder\": \"f\"}}";
    struct pm_config *c = load(text, NULL, 0);
    cJSON *first = pm_config_dump(c);
    char *printed = pm_json_print(first);
    (void)state;

    pm_config_destroy(&c);
    c = load(printed, NULL, 0);
    cJSON *second = pm_config_dump(c);
    char *again = pm_json_print(second);
    assert_string_equal(printed, again);
    assert_contains(printed, "\"clip_norm\": 0.1,");
    assert_contains(printed, "{ \"name\": \"cpu\", \"share\": 0.1, \"threads\": 0 }");
    assert_contains(printed, "\"weight_decay\": null");
    pm_free(printed);
    pm_free(again);
    cJSON_Delete(first);
    cJSON_Delete(second);
    pm_config_destroy(&c);
}

/* Without rows, names and foreign keys are left to those who know them. */
static void no_rows(void **state)
{
    const struct pm_open_sections none = { 0 };
    struct pm_config *c = NULL;
    (void)state;

    assert_int_equal(
        pm_config_parse("t.json", "{\"model\": {\"name\": \"any\", \"x\": 1}}", NULL, 0, &none, &c),
        0);
    assert_null(c->model_row);
    pm_config_destroy(&c);
}

/* reference.c and the tables name the same keys. */
static void named(const char *section, const struct pm_opt *o)
{
    for (; o->type; o++) {
        char path[128];
        snprintf(path, sizeof path, "%s.%s", section, o->key);
        const struct pm_reference *r = pm_reference_find(path);
        if (!r || pm_later_find(path))
            fail_msg("%s: src/config/reference.c has no KEY line for it", path);
    }
}

/* The key stands in the section's table or in a task's. */
static bool in_a_table(const struct pm_config_section *s, const char *key)
{
    const struct pm_open_task *task;

    return pm_opts_find(s->opts, key) >= 0 ||
           pm_config_other_task(&rows, NULL, s->name, key, &task);
}

static void reference(void **state)
{
    (void)state;

    for (size_t i = 0; i < rows.task_count; i++)
        for (const struct pm_task_section *t = rows.tasks[i]->sections; t->section; t++)
            if (!strchr(t->section, '.')) /* keys of eval.panoptic have eval.panoptic's line */
                named(t->section, t->opts);
    for (const struct pm_config_section *s = pm_config_sections; s->name; s++)
        named(s->name, s->opts);
    for (const struct pm_reference *r = pm_references; r->key; r++) {
        const char *dot = strchr(r->key, '.');
        const struct pm_config_section *s =
            dot ? pm_config_section_find(r->key, (size_t)(dot - r->key)) : NULL;
        const bool later = pm_later_find(r->key) != NULL;
        if (dot && !s)
            fail_msg("%s: is in no section", r->key);
        if (s && later && in_a_table(s, dot + 1))
            fail_msg("%s: is marked as later but accepted", r->key);
        if (s && !later && !in_a_table(s, dot + 1) && !s->row_kind)
            fail_msg("%s: is in no table", r->key);
        if (pm_reference_find(r->key) != r)
            fail_msg("%s: stands twice", r->key);
        assert_true(strspn(r->tasks, "csd") == strlen(r->tasks) && r->tasks[0]);
    }
    for (const struct pm_later *l = pm_later_keys; l->key; l++) {
        if (!pm_reference_find(l->key))
            fail_msg("%s: src/config/reference.c has no KEY line for it", l->key);
        if (pm_later_find(l->key) != l)
            fail_msg("%s: stands twice in src/config/later.def", l->key);
    }
}

static void schema(void **state)
{
    cJSON *v = pm_config_schema(&rows);
    char *text = cJSON_PrintUnformatted(v);
    (void)state;

    assert_contains(
        text,
        "\"name\":{\"description\":\"name of the optimizer\",\"default\":\"rmsprop\",\"enum\":"
        "[\"momentum\",\"adam\",\"rmsprop\",null]}");
    assert_contains(text, "\"keep_prob\":{\"type\":[\"number\",\"null\"]");
    assert_contains(text, "\"additionalProperties\":false");
    free(text);
    cJSON_Delete(v);
    text = pm_config_keys_markdown(&rows);
    assert_contains(text,
                    "| `run.steps` | int | `0` | 0.. |  | last training step; 0 = no limit |\n");
    assert_contains(text, "### optim of adam");
    assert_contains(text, "| `model.hyperparams` | object | `null` | ");
    pm_free(text);
}

int main(void)
{
    rows.tasks = pm_open_tasks(&rows.task_count);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),  cmocka_unit_test(values),  cmocka_unit_test(messages),
        cmocka_unit_test(segmentation_doubles_biases),
        cmocka_unit_test(segmentation_falls_over_the_run),
        cmocka_unit_test(overrides), cmocka_unit_test(bases),   cmocka_unit_test(left_behind),
        cmocka_unit_test(keys_of_other_tasks),
        cmocka_unit_test(dump),      cmocka_unit_test(no_rows), cmocka_unit_test(reference),
        cmocka_unit_test(schema),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
