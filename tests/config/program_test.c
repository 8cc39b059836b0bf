/* The program from outside: help, exit codes, --json, generated files, and faults at every
 * place. */
#include "../base/unit.h"

#include <cjson/cJSON.h>
#include <sys/wait.h>
#include <unistd.h>

#include <pumice/options.h>

static const char *program, *source; /* from the environment that ctest sets */

struct outcome {
    int code;           /* -1 when a signal ended it */
    struct pm_str text; /* standard output, or error with "2>&1 >/dev/null" */
};

static struct outcome run(const char *arguments)
{
    struct outcome o = { 0 };
    struct pm_str command = { 0 };
    char buf[4096];
    size_t got;

    pm_str_add(&o.text, "%s", "");
    pm_str_add(&command, "cd '%s' && '%s' %s", source, program, arguments);
    FILE *f = popen(command.text, "r");
    assert_non_null(f);
    while ((got = fread(buf, 1, sizeof buf, f)) > 0)
        pm_str_bytes(&o.text, buf, got);
    int status = pclose(f);
    o.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    pm_str_free(&command);
    return o;
}

static void expect(const char *arguments, int code, const char *part)
{
    struct outcome o = run(arguments);

    if (o.code != code)
        fail_msg("pumice %s: exit code %d, expected %d: %s", arguments, o.code, code, o.text.text);
    assert_contains(o.text.text, part);
    pm_str_free(&o.text);
}

static void help(void **state)
{
    (void)state;

    expect("", 0, "usage: pumice COMMAND");
    expect("help", 0, "  config     checks and shows config files");
    expect("--help", 0, "usage: pumice COMMAND");
    expect("--version", 0, "pumice ");
    expect("config --help", 0,
           "       pumice config schema [--markdown keys|flags|operators | --update FOLDER]");
    expect("help config", 0, "usage: pumice config check");
    expect("dataset --help", 0,
           "--keep-archives]\n                               [--max-megabytes N] [option=value");
    expect("dataset convert folder --help", 0, "\nfolder: pictures in one folder per class\n");
    expect("dataset convert foldr --help 2>&1", 2,
           "error: dataset convert: unknown format foldr (did you mean folder?); known formats: "
           "mnist, ");
    expect("help conifg 2>&1", 2,
           "error: command line: 'conifg' is no command, did you mean "
           "'config'?");
    expect("zzz 2>&1", 2, "'zzz' is no command (pumice help lists them)");
    expect("config 2>&1", 2, "config needs check, show, convert or schema first");
    expect("config check 2>&1", 2, "needs a config file");
    expect("config check --frob x 2>&1", 2, "has no flag '--frob'");
    expect("config check configs/lenet_mnist.json model.name=i3d 2>&1", 2,
           "model.name: 'i3d' is a net for videos, whose input has five axes");
    expect("config check configs/lenet_mnist.json model.name=s3dg 2>&1", 2, "not supported");
    expect("config schema --update 2>&1", 2, "--update needs a value");
    expect("config schema > /dev/full 2>&1", 1, "");
}

static void shows(void **state)
{
    cJSON *v = NULL;
    struct outcome o =
        run("config show configs/lenet_mnist.json run.steps=77 optim.name=adam --json");
    (void)state;

    assert_int_equal(o.code, 0);
    assert_int_equal(pm_json_parse("output", o.text.text, &v), 0);
    const cJSON *steps = cJSON_GetObjectItem(cJSON_GetObjectItem(v, "run"), "steps");
    assert_true(steps && steps->valuedouble == 77);
    cJSON_Delete(v);
    pm_str_free(&o.text);
    expect("config show configs/lenet_mnist.json -v 2>/dev/null", 0,
           "run.seed = 1                                      configs/base/run.json:5\n");
}

static cJSON *show_json(const char *arguments)
{
    struct outcome o = run(arguments);
    cJSON *v = NULL;

    if (o.code != 0)
        fail_msg("pumice %s: exit code %d: %s", arguments, o.code, o.text.text);
    assert_int_equal(pm_json_parse("output", o.text.text, &v), 0);
    pm_str_free(&o.text);
    return v;
}

static double number_at(const cJSON *v, const char *key)
{
    const cJSON *n = cJSON_GetObjectItemCaseSensitive(v, key);

    if (!cJSON_IsNumber(n))
        fail_msg("no number '%s'", key);
    return n->valuedouble;
}

/* Too few classes: the message names the key or the data that causes it. */
static void too_few_classes(void **state)
{
    static const char show[] = "config show configs/shapes_classification.json --layers";
    char folder[] = "/tmp/pumice_classes_XXXXXX";
    struct pm_arena *a = pm_arena_create();
    (void)state;

    assert_non_null(mkdtemp(folder));
    expect(pm_arena_printf(a, "dataset make shapes %s/s size=16 train=8 validation=1 test=1 2>&1",
                           folder),
           0, "4 classes");
    expect(
        pm_arena_printf(a, "%s data.folder=%s/s data.labels_offset=9 2>&1", show, folder), 2,
        "data.labels_offset: 9 leaves none of the 4 classes of the data; it must be less than 3");
    expect(pm_arena_printf(a, "%s data.folder=%s/s data.labels_offset=3 2>&1", show, folder), 2,
           "data.labels_offset: 3 leaves 1 class; at least 2 are needed");
    expect(pm_arena_printf(a, "%s data.folder=%s/s model.num_classes=1 2>&1", show, folder), 2,
           "model.num_classes: 1 in the config or the data; at least 2 are needed");
    pm_remove_tree(folder);
    pm_arena_destroy(&a);
}

/* A net shown as layers and put into a config is shown as the same layers. Its number of
 * parameters is that of the published net. */
static void layers_again(void **state)
{
    static const char *const nets[] = { "lenet", "cifarnet", "resnet_v1_50", "mobilenet_v1_050" };
    static const double parameters[] = {
        5 * 5 * 32 + 32 + 5 * 5 * 32 * 64 + 64 + 7 * 7 * 64 * 1024 + 1024 + 1024 * 1000 + 1000,
        0,
        25557032,
        0,
    };
    char path[] = "/tmp/pumice_layers_XXXXXX";
    struct pm_arena *a = pm_arena_create();
    int file = mkstemp(path);
    (void)state;

    assert_true(file >= 0);
    close(file);
    for (size_t i = 0; i < PM_COUNT(nets); i++) {
        cJSON *first = show_json(pm_arena_printf(
            a,
            "config show configs/lenet_mnist.json --layers --json model.num_classes=1000 "
            "model.name=%s data.folder=null",
            nets[i]));
        cJSON *list = cJSON_GetObjectItem(first, "layers");
        char *text = pm_json_print(list);
        struct pm_str config = { 0 };
        pm_str_add(
            &config,
            "{\"model\": {\"num_classes\": 1000, \"layers\": %s}, \"input\": {\"size\": %d, "
            "\"channels\": %d, \"preprocessing\": \"vgg\"}, \"optim\": {\"weight_decay\": 0}}",
            text,
            i == 0   ? 28
            : i == 1 ? 32
                     : 224,
            i == 0 ? 1 : 3);
        assert_int_equal(pm_file_write(path, config.text, config.length), 0);
        cJSON *second = show_json(pm_arena_printf(a, "config show '%s' --layers --json", path));
        char *again = pm_json_print(cJSON_GetObjectItem(second, "layers"));
        assert_string_equal(text, again);
        assert_true(number_at(first, "trainable_parameters") ==
                    number_at(second, "trainable_parameters"));
        if (parameters[i] > 0 && number_at(first, "trainable_parameters") != parameters[i])
            fail_msg("%s: %.0f trainable parameters, expected %.0f", nets[i],
                     number_at(first, "trainable_parameters"), parameters[i]);
        pm_str_free(&config);
        pm_free(text);
        pm_free(again);
        cJSON_Delete(first);
        cJSON_Delete(second);
    }
    unlink(path);
    pm_arena_destroy(&a);
}

/* The memory of a step without running it: variables and gradients are LeNet's, in floats. */
static void plan(void **state)
{
    cJSON *v = show_json("config show configs/lenet_mnist.json --plan --json model.num_classes=10 "
                         "data.folder=null run.batch_size=9 'devices=[\"cpu\", \"cpu\"]'");
    const cJSON *clones = cJSON_GetObjectItem(v, "clones"), *clone;
    double examples = 0, floats = 3274634;
    (void)state;

    assert_int_equal(cJSON_GetArraySize(clones), 2);
    cJSON_ArrayForEach(clone, clones)
    {
        assert_string_equal(cJSON_GetObjectItem(clone, "device")->valuestring, "cpu");
        examples += number_at(clone, "examples");
        /* Each of the eight tensors begins at a multiple of 256 bytes. */
        assert_in_range((long)number_at(clone, "variables"), 4 * floats, 4 * floats + 8 * 256);
        assert_in_range((long)number_at(clone, "gradients"), 4 * floats, 4 * floats + 8 * 256);
        assert_true(number_at(clone, "peak_live") <= number_at(clone, "activations"));
        assert_true(number_at(clone, "calls") > 20);
        assert_true(number_at(clone, "bytes_moved") > 4 * floats); /* the CPU has no dispatches */
        assert_false(cJSON_HasObjectItem(clone, "dispatches"));
    }
    assert_true(examples == 9);
    cJSON_Delete(v);
    expect("config show configs/lenet_mnist.json --plan model.num_classes=10 data.folder=null "
           "devices=cpu",
           0, "calls, batch 100 x 1\n  activations ");
    expect(
        "config show configs/lenet_mnist.json --plan data.folder=null 2>&1", 2,
        "model.num_classes: not set, and data.folder, which would contain it, is not set; set it");
    expect("config show configs/lenet_mnist.json --layers data.folder=/nowhere 2>&1", 2,
           "model.num_classes: not set, and /nowhere, which would contain it, does not exist");
    expect("config show configs/lenet_mnist.json --layers --plan 2>&1", 2, "not both");
    expect("config check configs/lenet_mnist.json model.num_classes=10 data.folder=/none/mnist", 0,
           "1 warning\nwarning: data.folder: /none/mnist does not exist, so the data was not "
           "checked. Make it with pumice dataset download mnist /none/mnist\n");
    expect("config check configs/lenet_mnist.json model.num_classes=10 data.folder=null", 0,
           "nothing wrong\n");
    expect("config check configs/lenet_mnist.json data.folder=/none", 0, "the net was not built");
    expect("config check configs/lenet_mnist.json data.folder=/none model.name=null "
           "model.onnx=x.onnx model.onnx_new_head=true input.preprocessing=lenet", 0,
           "the net was not built");
    expect("config check configs/resnet_cifar10.json model.num_classes=10 "
           "model.layers='[{\"layer\": \"slice\", \"inputs\": [\"nowhere\"]}]' 2>&1", 2, "nowhere");
    expect("config check configs/resnet_cifar10.json model.num_classes=10 run.micro_batches=2 "
           "model.layers='[{\"layer\": \"fake_quant\"}, {\"layer\": \"global_pool\"}, "
           "{\"layer\": \"flatten\"}, {\"layer\": \"fully_connected\", \"units\": 10}]' 2>&1",
           2,
           "fake_quant_1: run.micro_batches: 2, but a fake_quant layer computes its ranges from "
           "the whole");
    expect("config check configs/lenet_mnist.json more 2>&1", 2, "but not 'more'");
    expect("config check configs/lenet_mnist.json --layers 2>&1", 2, "has no flag '--layers'");
    expect("config schema configs/lenet_mnist.json 2>&1", 2, "config schema takes no file");
}

/* Levels of PM_LOG, for all subsystems and for one. */
static void log_levels(void **state)
{
    static const char show[] =
        "config show configs/cifarnet_cifar10.json optim.name=adam 2>&1 >/dev/null";
    static const char line[] =
        "debug: config: configs/base/momentum.json:3: optim.momentum: left out";
    (void)state;

    setenv("PM_LOG", "error,config=debug", 1);
    expect(show, 0, line);
    setenv("PM_LOG", "config=info,debug", 1);
    struct outcome o = run(show);
    assert_string_equal(o.text.text, "");
    pm_str_free(&o.text);
    setenv("PM_LOG", "loud", 1);
    expect(show, 0, "PM_LOG: 'loud' is not a level");
    unsetenv("PM_LOG");
}

/* With --json a failure also prints one JSON object on standard output. */
static void json_failure(void **state)
{
    struct outcome o = run("config check configs/lenet_mnist.json run.stesp=1 --json 2>/dev/null");
    cJSON *v = NULL;
    (void)state;

    assert_int_equal(o.code, 2);
    assert_int_equal(pm_json_parse("output", o.text.text, &v), 0);
    assert_string_equal(cJSON_GetObjectItem(v, "error")->valuestring,
                        "command line: run.stesp: unknown key, did you mean 'steps'?");
    assert_true(cJSON_GetObjectItem(v, "exit_code")->valuedouble == 2);
    cJSON_Delete(v);
    pm_str_free(&o.text);
}

static void check_generated(struct pm_arena *a, const char *file, const char *command)
{
    struct outcome printed = run(command);
    char *text = NULL;

    assert_int_equal(printed.code, 0);
    assert_int_equal(pm_file_read(pm_arena_printf(a, "%s/%s", source, file), &text, NULL), 0);
    const char *mark = strstr(text, "<!-- The rest of this page is generated"), *part = text;
    if (mark)
        part = strchr(mark, '\n') + 1;
    if (strcmp(part, printed.text.text) != 0)
        fail_msg("%s is old: run pumice config schema --update . in the source folder", file);
    pm_free(text);
    pm_str_free(&printed.text);
}

/* configs/schema.json and the tables of the reference pages equal the program's output, and
 * --update writes the same. */
static void generated(void **state)
{
    static const char *const files[][2] = {
        { "configs/schema.json", "config schema" },
        { "docs/keys.md", "config schema --markdown keys" },
        { "docs/migrating.md", "config schema --markdown flags" },
        { "docs/onnx.md", "config schema --markdown operators" },
    };
    struct pm_arena *a = pm_arena_create();
    char folder[] = "/tmp/pumice-XXXXXX";
    (void)state;

    assert_non_null(mkdtemp(folder));
    assert_int_equal(system(pm_arena_printf(a, "cp -R '%s/docs' '%s/docs' && mkdir '%s/configs'",
                                            source, folder, folder)),
                     0);
    expect(pm_arena_printf(a, "config schema --update %s", folder), 0, "");
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        check_generated(a, files[i][0], files[i][1]);
        assert_int_equal(system(pm_arena_printf(a, "cmp '%s/%s' '%s/%s'", source, files[i][0],
                                                folder, files[i][0])),
                         0);
    }
    expect("config schema --markdown all 2>&1", 2, "'all' is not one of keys, flags, operators");
    expect("config schema --markdown keys --update . 2>&1", 2, "--markdown or --update, not both");
    assert_int_equal(system(pm_arena_printf(a, "rm -rf '%s'", folder)), 0);
    pm_arena_destroy(&a);
}

/* Every place that can fail is made to fail once: one line, exit code 1, or 2 when the failure
 * counts as a refused config. No leak and no crash. After the last place the command succeeds. */
static void faults(void **state)
{
    int n = 0, code = 1;
    (void)state;

    while (code != 0) {
        char text[16];
        snprintf(text, sizeof text, "%d", ++n);
        setenv("PM_FAIL_AT", text, 1);
        struct outcome o =
            run("config show configs/lenet_mnist.json run.steps=3 model.keep_prob=0.4 2>&1");
        code = o.code;
        if (code < 0 || code > 2 || strstr(o.text.text, "Sanitizer"))
            fail_msg("PM_FAIL_AT=%d: exit code %d: %s", n, o.code, o.text.text);
        if (code != 0)
            assert_contains(o.text.text, "error: ");
        pm_str_free(&o.text);
    }
    unsetenv("PM_FAIL_AT");
    assert_in_range(n, 30, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(help),         cmocka_unit_test(shows),
        cmocka_unit_test(layers_again), cmocka_unit_test(plan),
        cmocka_unit_test(too_few_classes),
        cmocka_unit_test(json_failure), cmocka_unit_test(log_levels),
        cmocka_unit_test(generated),    cmocka_unit_test(faults),
    };

    program = getenv("PUMICE_PROGRAM");
    source = getenv("PUMICE_SOURCE");
    if (!program || !source) {
        fprintf(stderr,
                "skipped: PUMICE_PROGRAM and PUMICE_SOURCE are not set (ctest sets them)\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
