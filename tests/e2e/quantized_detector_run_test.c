/* Quantised detectors with the program: a feature pyramid and heads that its maps share, started
 * from a run with floats. Rounding begins, and batch norm is frozen, in the middle of the run.
 * Killed and lost runs end with the same bits, ranges included. */
#include "e2e/interrupted.h"

#include <pumice/checkpoint.h>

enum { DELAY = 11, FREEZE = 15, STEPS = 24 };

/* Maps of 8x8, 4x4 and 1x1. No drawn shape is as large as the anchors of the last one, and its own
 * tower's batch norm sees few cells. */
static const char net[] =
    "{ \"task\": \"detection\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"a\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 4, \"stride\": 4,\n"
    "    \"bias\": false },\n"
    "  { \"name\": \"a/norm\", \"layer\": \"batch_norm\", \"decay\": 0.9,\n"
    "    \"activation\": \"relu6\" },\n"
    "  { \"name\": \"b\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2,\n"
    "    \"activation\": \"relu6\" },\n"
    "  { \"name\": \"top\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 1 },\n"
    "  { \"name\": \"up\", \"layer\": \"resize\", \"size\": 8, \"method\": \"nearest\" },\n"
    "  { \"name\": \"side\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 1,\n"
    "    \"inputs\": [\"a/norm\"] },\n"
    "  { \"name\": \"sum\", \"layer\": \"add\", \"inputs\": [\"up\", \"side\"] },\n"
    "  { \"name\": \"last\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 4,\n"
    "    \"activation\": \"relu6\", \"inputs\": [\"top\"] },\n"
    "  { \"name\": \"anchors\", \"layer\": \"ssd_anchors\", \"aspect_ratios\": [1],\n"
    "    \"scales\": [0.3, 0.5, 4], \"reduce_boxes_in_lowest_layer\": false,\n"
    "    \"inputs\": [\"images\", \"sum\", \"top\", \"last\"] },\n"
#define HEADS(level, map, tower, boxes, classes)                                                   \
    "  { \"name\": \"tower_" level "\", \"layer\": \"conv2d\", \"filters\": 8,\n"                  \
    "    \"bias\": false, \"inputs\": [\"" map "\"]" tower " },\n"                                 \
    "  { \"name\": \"norm_" level "\", \"layer\": \"batch_norm\", \"decay\": 0.9,\n"               \
    "    \"activation\": \"relu6\" },\n"                                                           \
    "  { \"name\": \"boxes_" level "\", \"layer\": \"conv2d\", \"filters\": 8,\n"                  \
    "    \"inputs\": [\"norm_" level "\"]" boxes " },\n"                                           \
    "  { \"name\": \"classes_" level "\", \"layer\": \"conv2d\", \"filters\": 8,\n"                \
    "    \"inputs\": [\"norm_" level "\"]" classes " }"
#define SHARED(level, map)                                                                         \
    HEADS(level, map, ", \"share\": \"tower_1\"", ", \"share\": \"boxes_1\"",                      \
          ", \"share\": \"classes_1\"")
    HEADS("1", "sum", "", "", "") ",\n" SHARED("2", "top") ",\n" SHARED("3", "last") " ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": 32, \"augment\": [] },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.003 },\n"
    "  \"run\": { \"steps\": 24, \"batch_size\": 6, \"log_every_steps\": 1,\n"
    "           \"save_every_steps\": 4, \"keep\": 2, \"summary_every_steps\": 10 },\n"
    "  \"eval\": { \"every_steps\": 12, \"batch_size\": 8, \"score_threshold\": 0.01 } }\n";

/* The run with floats is FOLDER/source; net.json then quantises. */
static int make_data(void **state)
{
    (void)state;
    if (make_shapes(net, 32, 48, 20) < 0)
        return -1;
    put_folder_text("float.json", net);
    check(run(NULL, "train %s run.folder=%s", in("float.json"), in("source")), 0);
    put_folder_text("net.json",
                    "{ \"base\": [\"float.json\"], \"model\": { \"quantize_delay\": 11,\n"
                    "    \"quantize_freeze_steps\": 15 },\n"
                    "  \"init\": { \"checkpoint\": \"%s/source\" } }\n");
    return 0;
}

static float *values(const char *name, const char *variable, size_t count)
{
    static float v[4][16];
    static int next;
    struct pm_checkpoint *c = NULL;
    const struct pm_shape shape = count > 1 ? PM_SHAPE1((int)count) : (struct pm_shape){ 0 };
    float *out = v[next = (next + 1) % 4];

    assert_true(count <= 16);
    if (pm_checkpoint_open_newest(in("%s", name), &c) < 0 || !c ||
        pm_checkpoint_read(c, variable, shape, out) < 0)
        fail_msg("%s: %s: %s", name, variable, pm_error_text());
    pm_checkpoint_close(&c);
    return out;
}

static float value(const char *name, const char *variable)
{
    return values(name, variable, 1)[0];
}

/* Before the delay, the losses are those of training with floats. Sums of folded weights differ by
 * rounding, with the bound of assert_same_in_parts. In the first step after it they are rounded. */
static void delayed(void **state)
{
    (void)state;
    train_whole();
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s eval.every_steps=0",
              in("float.json"), in("floats"), in("source")), 0);
    same_losses("floats", "whole", 1, DELAY - 1, 1e-5);
    assert_true(fabs(logged("floats", DELAY, "loss") - logged("whole", DELAY, "loss")) >
                1e-4 * logged("floats", DELAY, "loss"));
    for (int k = 1; k <= STEPS; k++)
        assert_true(isfinite(logged("whole", k, "loss")));
}

/* Ranges follow the values from the first step on, also those of the map whose anchors match no
 * object. Each level has its own, and its own statistics. */
static void ranges(void **state)
{
    static const char *const heads[] = { "tower", "boxes", "classes" };
    char name[64];

    (void)state;
    train_whole();
    for (size_t i = 0; i < PM_COUNT(heads); i++) {
        float high[3], low[3];

        for (int level = 1; level <= 3; level++) {
            snprintf(name, sizeof name, "%s_%d/act_quant/min", heads[i], level);
            low[level - 1] = value("whole", name);
            snprintf(name, sizeof name, "%s_%d/act_quant/max", heads[i], level);
            high[level - 1] = value("whole", name);
            snprintf(name, sizeof name, "%1$s_%2$d/act_quant/%1$s_%2$d/act_quant/max/local_step",
                     heads[i], level);
            assert_true(value("whole", name) == STEPS);
            assert_true(low[level - 1] <= 0 && high[level - 1] >= 0);
            assert_true(low[level - 1] < high[level - 1]);
        }
        assert_true(low[0] != low[1] || high[0] != high[1]);
        assert_true(low[1] != low[2] || high[1] != high[2]);
    }
    /* relu6 stays: its range ends at 6 or below. That of a sum has no such bound. */
    assert_true(value("whole", "tower_1/act_quant/max") <= 6);
    assert_true(value("whole", "tower_1/act_quant/min") == 0);
    assert_true(value("whole", "sum/add_quant/min") < 0);
    /* One kernel: its range is the same at each level, but not that of the folded tower. */
    assert_true(value("whole", "boxes_1/weights_quant/max") ==
                value("whole", "boxes_3/weights_quant/max"));
    assert_true(value("whole", "tower_1/weights_quant/max") !=
                value("whole", "tower_2/weights_quant/max"));
}

/* After quantize_freeze_steps the moving averages stay, and gamma and beta are still trained. */
static void frozen(void **state)
{
    static const char *const averages[] = { "a/norm/moving_mean", "a/norm/moving_variance",
                                            "norm_2/moving_mean", "norm_3/moving_variance" };

    (void)state;
    train("short", "run.steps=15 eval.every_steps=0");
    train("never", "model.quantize_freeze_steps=0 eval.every_steps=0");
    train_whole();
    for (size_t i = 0; i < PM_COUNT(averages); i++) {
        float *at_freeze = values("short", averages[i], 8);

        assert_memory_equal(at_freeze, values("whole", averages[i], 8), 8 * sizeof(float));
        assert_memory_not_equal(at_freeze, values("never", averages[i], 8), 8 * sizeof(float));
    }
    assert_memory_not_equal(values("short", "norm_2/beta", 8), values("whole", "norm_2/beta", 8),
                            8 * sizeof(float));
    assert_memory_not_equal(values("short", "norm_2/gamma", 8), values("whole", "norm_2/gamma", 8),
                            8 * sizeof(float));
    same_losses("never", "whole", 1, FREEZE, 0);
    assert_true(logged("never", FREEZE + 1, "loss") != logged("whole", FREEZE + 1, "loss"));
}

/* Averages of the variables, on in both runs. Those of the ranges are the ranges: averages of the
 * first, meaningless ones would stay for long. */
static void averages_of_variables(void **state)
{
    static const char on[] = "optim.moving_average_decay=0.9 optim.moving_average_ramp=false";
    struct pm_checkpoint *c = NULL;
    int averages = 0, ranges = 0;

    (void)state;
    check(run(NULL, "train %s run.folder=%s %s", in("float.json"), in("float_averages"), on), 0);
    check(run(NULL, "train %s run.folder=%s %s init.checkpoint=%s init.averages=on", in("net.json"),
              in("averages"), on, in("float_averages")), 0);
    if (pm_checkpoint_open_newest(in("averages"), &c) < 0)
        fail_msg("%s", pm_error_text());
    for (size_t i = 0; i < pm_tensor_file_count(c->tensors); i++) {
        const char *name = pm_tensor_file_get(c->tensors, i)->name;
        const char *end = strstr(name, "/ExponentialMovingAverage");
        char variable[256];

        if (!end)
            continue;
        averages++;
        if (!strstr(name, "_quant/"))
            continue;
        snprintf(variable, sizeof variable, "%.*s", (int)(end - name), name);
        assert_true(value("averages", name) == value("averages", variable));
        ranges++;
    }
    assert_true(averages > 40 && ranges > 100);
    pm_checkpoint_close(&c);
    const double with = eval_metric("averages", "loss", "eval.averages=on");
    const double without = eval_metric("averages", "loss", "eval.averages=off");
    assert_true(isfinite(with) && isfinite(without) && with != without);
}

static void symmetric(void **state)
{
    (void)state;
    train("symmetric", "model.quantize_symmetric=true model.quantize_delay=0");
    assert_true(value("symmetric", "tower_2/weights_quant/min") ==
                -value("symmetric", "tower_2/weights_quant/max"));
    const double low = (double)value("symmetric", "sum/add_quant/min");
    const double high = (double)value("symmetric", "sum/add_quant/max");
    /* Averages of float32 numbers whose ratio is 128/127, over 24 steps. */
    assert_true(fabs(low * 127 / 128 + high) < 24 * 0x1p-23 * high);
    check(run(NULL, "eval %s run.folder=%s model.quantize_symmetric=true", in("net.json"),
              in("symmetric")), 0);
}

static void refused(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s run.steps=30 model.quantize_delay=11",
              in("float.json"), in("source")), 2,
          "this folder holds another run (model.quantize_delay: -1 -> 11)",
          "start from it with init.checkpoint=");
    check(run(NULL, "eval %s run.folder=%s", in("net.json"), in("source")), 3,
          "ranges of the quantised net are not in ", "trained without quantisation");
    check(run(NULL, "train %s run.folder=%s 'devices=[\"cpu\",\"cpu\"]'", in("net.json"),
              in("bad")), 2, "devices: 2 are given, but a net that is quantised in training");
    check(run(NULL, "train %s run.folder=%s run.micro_batches=2", in("net.json"), in("bad")), 2,
          "run.micro_batches: 2, but a net that is quantised in training");
    check(run(NULL, "train %s run.folder=%s model.quantize_delay=-1", in("net.json"), in("bad")), 2,
          "model.quantize_freeze_steps: it is set, but the net is not quantised");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_after_kills), cmocka_unit_test(same_after_loss),
        cmocka_unit_test(delayed), cmocka_unit_test(ranges), cmocka_unit_test(frozen),
        cmocka_unit_test(averages_of_variables), cmocka_unit_test(symmetric),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests(tests, make_data, drop_world);
}
