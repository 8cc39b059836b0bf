/* Evaluation of a quantised net computes what integer arithmetic does: on the CPU and every Vulkan
 * device, each rounded value is that of 64-bit integers, int32 biases, and one product for each
 * sum. Steps of the sums are nearly as long as those of the results, so a bias that is not rounded
 * would change many values. */
#include "two_steps.h"

#include <stdlib.h>

enum { BATCH = 2, SIDE = 6, DEEP = 8, OUT = 5, PIXELS = BATCH * SIDE * SIDE };
/* The images' step: their magnitude is at most 1, so it is 1 / 2048. */
#define IMAGE_STEP 0x1p-11

static const char layers[] =
    "[{\"name\":\"a\",\"layer\":\"conv2d\",\"filters\":8,\"bias\":false},"
    "{\"name\":\"a/BatchNorm\",\"layer\":\"batch_norm\",\"activation\":\"relu6\"},"
    "{\"name\":\"b\",\"layer\":\"depthwise_conv2d\",\"bias\":false},"
    "{\"name\":\"b/BatchNorm\",\"layer\":\"batch_norm\",\"scale\":false},"
    "{\"name\":\"c\",\"layer\":\"conv2d\",\"filters\":5,\"kernel\":1}]";

/* Values of variables by the end of their names: numbers evenly spread from low to high. */
static const struct { const char *end; float low, high; } ranges[] = {
    { "weights_quant/min", -13, -13 },      { "weights_quant/max", 12, 12 },
    { "a/act_quant/min", 0, 0 },            { "a/act_quant/max", 2.9f, 2.9f },
    { "b/act_quant/min", -1.3f, -1.3f },    { "b/act_quant/max", 1.1f, 1.1f },
    { "c/act_quant/min", -0.9f, -0.9f },    { "c/act_quant/max", 1.7f, 1.7f },
    { "moving_variance", 0.3f, 1.4f },      { "gamma", 0.4f, 1.3f },
    { "beta", -0.7f, 0.9f },                { "biases", -0.8f, 0.7f },
    { "moving_mean", -0.5f, 0.5f },         { "weights", -0.6f, 0.6f },
};

static float spread(size_t i, float low, float high)
{
    return low + (high - low) * (float)((i * 2654435761u + 12345) % 9973) / 9972;
}

static bool ends(const char *name, const char *end)
{
    const size_t n = strlen(name), e = strlen(end);

    return n >= e && strcmp(name + n - e, end) == 0;
}

static void fill(struct pm_variables *v)
{
    for (int i = 0; i < v->count; i++) {
        const size_t count = pm_shape_count(v->list[i].shape);
        float *values = pm_calloc(count + 1, sizeof *values);

        for (size_t r = 0; r < PM_COUNT(ranges); r++)
            if (ends(v->list[i].name, ranges[r].end)) {
                for (size_t k = 0; k < count; k++)
                    values[k] = spread(k + 17 * (size_t)i, ranges[r].low, ranges[r].high);
                break;
            }
        check(pm_variables_write(v, i, -1, values));
        pm_free(values);
    }
}

static double *variable(struct pm_variables *v, const char *name, double missing, size_t count)
{
    double *out = pm_malloc(count * sizeof *out);

    for (size_t k = 0; k < count; k++)
        out[k] = missing;
    for (int i = 0; i < v->count; i++)
        if (strcmp(v->list[i].name, name) == 0) {
            float *values = pm_malloc(count * sizeof *values);

            assert_int_equal(pm_shape_count(v->list[i].shape), count);
            check(pm_variables_read(v, i, -1, values));
            for (size_t k = 0; k < count; k++)
                out[k] = (double)values[k];
            pm_free(values);
        }
    return out;
}

/* Steps of a stored range whose end moves so that 0 is a step. */
struct steps { double step; int64_t low, high; };

static struct steps steps_of(struct pm_variables *v, const char *scope, int least)
{
    char name[64];
    double *end[2], zero;
    struct steps s;

    for (int i = 0; i < 2; i++) {
        snprintf(name, sizeof name, "%s/%s", scope, i ? "max" : "min");
        end[i] = variable(v, name, NAN, 1);
    }
    s.step = (*end[1] - *end[0]) / (255 - least);
    zero = floor(least - *end[0] / s.step + 0.5);
    s.low = least - (int64_t)zero, s.high = 255 - (int64_t)zero;
    pm_free(end[0]), pm_free(end[1]);
    return s;
}

/* A layer of the net above: of its input in steps, the convolution's result in steps. */
struct stage {
    const char *name, *weights;
    int in, out, window;
    bool depthwise, relu6;
};

/* Returns how many results are so near to the middle of two steps that a float's rounding decides,
 * and asserts that all others are as computed. */
static int check_stage(struct pm_variables *v, const struct stage *s, const int64_t *x,
                       double input_step, const float *got)
{
    char name[64];
    const int reads = s->depthwise ? 1 : s->in;
    const size_t count = (size_t)(s->window * s->window * reads * s->out), out = (size_t)s->out;
    struct steps w, y;
    double *var[6];
    int near = 0, moved = 0;
    static const struct { const char *end; double missing; } parts[] = {
        { "/BatchNorm/beta", 0 }, { "/BatchNorm/gamma", 1 }, { "/BatchNorm/moving_mean", 0 },
        { "/BatchNorm/moving_variance", 1 - 1e-3 }, { "/biases", 0 },
    };

    snprintf(name, sizeof name, "%s/weights_quant", s->name);
    w = steps_of(v, name, 1);
    snprintf(name, sizeof name, "%s/act_quant", s->name);
    y = steps_of(v, name, 0);
    for (size_t i = 0; i < PM_COUNT(parts); i++) {
        snprintf(name, sizeof name, "%s%s", s->name, parts[i].end);
        var[i] = variable(v, name, parts[i].missing, out);
    }
    snprintf(name, sizeof name, "%s/%s", s->name, s->weights);
    var[5] = variable(v, name, NAN, count);
    const double unit = input_step * w.step;
    for (int i = 0; i < PIXELS * s->out; i++) {
        const int k = i % s->out, ow = i / s->out % SIDE, oh = i / s->out / SIDE % SIDE;
        const double factor = var[1][k] / sqrt(var[3][k] + 1e-3);
        const double bias = (var[0][k] + var[4][k] - var[2][k] * factor) / unit;
        int64_t sum = (int64_t)nearbyint(bias);

        assert_true(fabs(bias - floor(bias) - 0.5) > 1e-4); /* floats round it, too */
        for (int a = 0; a < s->window * s->window; a++) {
            const int h = oh + a / s->window - s->window / 2;
            const int u = ow + a % s->window - s->window / 2;

            for (int c = 0; c < reads && h >= 0 && h < SIDE && u >= 0 && u < SIDE; c++) {
                const double q = var[5][(a * reads + c) * s->out + k] * factor / w.step;
                const int64_t weight = (int64_t)floor(fmin(fmax(q, (double)w.low), (double)w.high) +
                                                      0.5);

                assert_true(fabs(q - floor(q) - 0.5) > 1e-4);
                sum += weight * x[((i / s->out / SIDE / SIDE * SIDE + h) * SIDE + u) * s->in +
                                  (s->depthwise ? k : c)];
            }
        }
        double real = (double)sum * unit, plain = ((double)sum - nearbyint(bias) + bias) * unit;
        if (s->relu6)
            real = fmin(fmax(real, 0), 6), plain = fmin(fmax(plain, 0), 6);
        const double at = fmin(fmax(real / y.step, (double)y.low), (double)y.high);
        const double want = nearbyint(at) * y.step;

        if (fabs(at - floor(at) - 0.5) < 1e-4)
            near++;
        else if (!(fabs((double)got[i] - want) < 0.01 * y.step))
            fail_msg("%s: value %d is %.9g, not %.9g", s->name, i, (double)got[i], want);
        plain = nearbyint(fmin(fmax(plain / y.step, (double)y.low), (double)y.high)) * y.step;
        moved += fabs(plain - want) > 0.5 * y.step;
    }
    if (input_step != IMAGE_STEP) /* images have short steps */
        assert_true(moved > 3);
    for (int i = 0; i < 6; i++)
        pm_free(var[i]);
    return near;
}

/* The steps of values that a layer has rounded. */
static void integers_of(const float *values, size_t count, double step, int64_t *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = (int64_t)nearbyint((double)values[i] / step);
        assert_true(fabs((double)values[i] - (double)out[i] * step) < 0.01 * step);
    }
}

static void check_device(struct pm_device *d)
{
    static const struct stage stages[] = {
        { "a", "weights", 3, DEEP, 3, false, true },
        { "b", "depthwise_weights", DEEP, DEEP, 3, true, false },
        { "c", "weights", DEEP, OUT, 1, false, false },
    };
    const char *outputs[] = { "a/act_quant", "b/act_quant", "c/act_quant", NULL };
    struct pm_heads heads = { 0 };
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;
    struct pm_net *net = pm_net_create();
    cJSON *list = cJSON_Parse(layers);
    int64_t x[PIXELS * DEEP];
    int near = 0;

    check(pm_net_from_json(net, pm_net_input(net, "images", PM_SHAPE4(BATCH, SIDE, SIDE, 3),
                                             PM_F32), list, "layers", &heads));
    check(pm_net_quantize(net, 1, &(struct pm_quantization){ .largest = 1 }, &heads));
    check(pm_variables_create(d, net, false, NULL, &v));
    check(pm_variables_allocate(v));
    fill(v);
    check(pm_plan_create(net, d, v, &(struct pm_plan_options){
        .slots = 1, .loss_share = 1, .micro_batches = 1, .outputs = outputs }, &p));
    check(pm_plan_load(p));
    float *images = pm_plan_input(p, 0, "images", 0);
    for (size_t i = 0; i < PIXELS * 3; i++) {
        images[i] = spread(i, -1, 1);
        x[i] = (int64_t)nearbyint((double)images[i] / IMAGE_STEP);
    }
    check(pm_plan_submit(p, 0));
    check(pm_plan_wait(p, 0));
    for (size_t i = 0; i < PM_COUNT(stages); i++) {
        const float *y = pm_plan_output(p, 0, outputs[i], 0);
        const double step = i ? steps_of(v, outputs[i - 1], 0).step : IMAGE_STEP;

        near += check_stage(v, &stages[i], x, step, y);
        integers_of(y, (size_t)PIXELS * stages[i].out, steps_of(v, outputs[i], 0).step, x);
    }
    assert_true(near < PIXELS / 10);
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    cJSON_Delete(list);
}

static void all_devices(void **state)
{
    struct pm_device_info *list = NULL;
    size_t count = 0;

    (void)state;
    check(pm_device_list(&list, &count));
    assert_true(count > 0);
    for (size_t i = 0; i < count; i++) {
        struct pm_device *d = NULL;

        check(pm_device_open(&list[i], &(struct pm_device_options){ 0 }, &d));
        print_message("on %s\n", list[i].name);
        check_device(d);
        pm_device_close(&d);
    }
    pm_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(all_devices) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
