/* The spatial transformer of words: its shapes and parameters, counted by hand; the control points
 * of an untrained net; and gradients that reach its first layer once its points have moved. */
#include <pumice/plan.h>

#include "device/every_device.h"
#include "nets/spatial_transformer.h"

static struct pm_spatial_transformer defaults(struct pm_arena *a)
{
    struct pm_spatial_transformer t;

    pm_opts_defaults(pm_spatial_transformer_opts, &t, a);
    return t;
}

static struct pm_node *built(struct pm_net *net, const struct pm_spatial_transformer *t, int h,
                             int w)
{
    struct pm_node *y = pm_spatial_transformer_build(
        net, pm_net_input(net, "images", PM_SHAPE4(2, h, w, 3), PM_F32), t);

    ok(net->error);
    return y;
}

static size_t parameters(const struct pm_net *net)
{
    size_t sum = 0;

    for (int i = 0; i < net->var_count; i++)
        sum += net->vars[i]->trainable ? pm_shape_count(net->vars[i]->shape) : 0;
    return sum;
}

static void shapes(void **state)
{
    /* 3x3 kernels, then gamma and beta of each layer with batch norm, then the last layer. */
    static const size_t expected = 9 * (3 * 32 + 32 * 64 + 64 * 128 + 128 * 256 + 2 * 256 * 256) +
                                   2 * (32 + 64 + 128 + 3 * 256) + 2 * 256 * 512 + 2 * 512 +
                                   512 * 40 + 40;
    struct pm_arena *a = pm_arena_create();
    struct pm_spatial_transformer t = defaults(a);
    struct pm_net *net = pm_net_create();
    const struct pm_node *y = built(net, &t, 64, 200);

    (void)state;
    assert_true(pm_net_find(net, "LocalizationNet/resize") != NULL);
    assert_true(pm_shape_equal(y->out_shape, PM_SHAPE4(2, 32, 100, 3)));
    assert_true(pm_shape_equal(pm_net_find(net, "LocalizationNet/Convnet/conv6")->out_shape,
                               PM_SHAPE4(2, 1, 2, 256)));
    assert_int_equal(parameters(net), expected);
    pm_net_destroy(&net);
    net = pm_net_create();
    t.output_h = 48, t.output_w = 160, t.num_control_points = 8, t.localization_depth = 0.5;
    assert_true(pm_shape_equal(built(net, &t, 32, 64)->out_shape, PM_SHAPE4(2, 48, 160, 3)));
    assert_true(pm_net_find(net, "LocalizationNet/resize") == NULL);
    assert_true(pm_shape_equal(pm_net_find(net, "LocalizationNet/fc2")->out_shape,
                               PM_SHAPE2(2, 16)));
    pm_net_destroy(&net);
    pm_arena_destroy(&a);
}

/* An untrained net places the points of its pattern, for all pictures. */
static void check_start(struct pm_device *d, const struct pm_spatial_transformer *t)
{
    static const char *const outputs[] = { "LocalizationNet/fc2", NULL };
    struct pm_net *net = pm_net_create();
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;
    double at[128];
    float *x;

    built(net, t, 40, 90);
    ok(pm_variables_create(d, net, false, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    ok(pm_plan_create(net, d, v, &(struct pm_plan_options){
        .slots = 1, .loss_share = 1, .micro_batches = 1, .outputs = outputs }, &p));
    ok(pm_plan_load(p));
    x = pm_plan_input(p, 0, "images", 0);
    for (int i = 0; i < 2 * 40 * 90 * 3; i++)
        x[i] = (float)(i * 7 % 19) / 9 - 1;
    ok(pm_plan_submit(p, 0));
    ok(pm_plan_wait(p, 0));
    pm_spatial_transformer_start(t, at);
    for (int i = 0; i < 4 * t->num_control_points; i++) {
        double want = at[i % (2 * t->num_control_points)];

        want = t->activation ? fmin(fmax(want, 0.01), 0.99) : want;
        /* The rounding of a bias; a sigmoid has three more. */
        assert_float_equal(((const float *)pm_plan_output(p, 0, outputs[0], 0))[i], want, 0x1p-21);
    }
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

static void start_points(struct pm_device *d)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_spatial_transformer t = defaults(a);

    for (t.activation = 0; t.activation < 2; t.activation++)
        for (t.init_bias_pattern = 0; t.init_bias_pattern < 3; t.init_bias_pattern++)
            check_start(d, &t);
    pm_arena_destroy(&a);
}

/* The numbers of the patterns, for six points. */
static void patterns(void **state)
{
    static const double expected[3][12] = {
        { 0.1, 0.2, 0.5, 0.2, 0.9, 0.2, 0.1, 0.8, 0.5, 0.8, 0.9, 0.8 },
        { 0.1, 0, 0.5, 0.15, 0.9, 0.3, 0.1, 0.7, 0.5, 0.85, 0.9, 1 },
        /* sin(0.2 pi) = 0.587785 */
        { 0.1, 0.367557, 0.5, 0.25, 0.9, 0.132443, 0.1, 0.867557, 0.5, 0.75, 0.9, 0.632443 },
    };
    struct pm_spatial_transformer t = { .num_control_points = 6, .margin_x = 0.1,
                                        .margin_y = 0.2 };
    double at[12];

    (void)state;
    for (t.init_bias_pattern = 0; t.init_bias_pattern < 3; t.init_bias_pattern++) {
        pm_spatial_transformer_start(&t, at);
        for (int i = 0; i < 12; i++)
            assert_float_equal(at[i], expected[t.init_bias_pattern][i], 1e-6);
    }
    t.num_control_points = 7;
    assert_int_equal(pm_spatial_transformer_check(&t, "here"), PM_ECONFIG);
    assert_contains(pm_error_text(), "here.num_control_points: 7 is odd");
}

/* ---- gradients ------------------------------------------------------------------------------- */

static double norm(struct pm_device *d, const struct pm_variables *v, const char *name)
{
    const int index = pm_variables_find(v, name);
    const size_t count = index < 0 ? 0 : pm_shape_count(v->list[index].shape);
    float *g = malloc(count * sizeof *g + 1);
    double sum = 0;

    assert_true(index >= 0);
    ok(pm_buffer_read(d, v->grads, v->offset[index], g, count * sizeof *g));
    for (size_t i = 0; i < count; i++)
        sum += (double)g[i] * (double)g[i];
    free(g);
    return sqrt(sum);
}

/* At the start only the last layer learns, since its weights are 0; then all do. */
static void gradients(struct pm_device *d)
{
    static const char *const names[] = { "LocalizationNet/fc2/weights",
                                         "LocalizationNet/fc2/biases",
                                         "LocalizationNet/fc1/weights",
                                         "LocalizationNet/Convnet/conv1/weights" };
    const struct pm_plan_options o = { .name = "train", .train = true, .slots = 1, .loss_share = 1,
                                       .micro_batches = 1 };
    struct pm_arena *a = pm_arena_create();
    struct pm_spatial_transformer t = defaults(a);
    struct pm_net *net = pm_net_create();
    struct pm_node *loss[2];
    struct pm_variables *v = NULL;
    struct pm_plan *p = NULL;

    t.localization_depth = 0.25, t.output_h = 8, t.output_w = 16;
    loss[0] = built(net, &t, 40, 90);
    loss[1] = pm_net_input(net, "target", loss[0]->out_shape, PM_F32);
    pm_net_add_many(net, "loss", loss, 2, "squared_error");
    ok(net->error);
    ok(pm_variables_create(d, net, true, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    ok(pm_plan_create(net, d, v, &o, &p));
    ok(pm_plan_load(p));
    for (int moved = 0; moved < 2; moved++) {
        float *x = pm_plan_input(p, 0, "images", 0), *y = pm_plan_input(p, 0, "target", 0);

        for (int i = 0; i < 2 * 40 * 90 * 3; i++)
            x[i] = (float)(i * 7 % 19) / 9 - 1;
        for (int i = 0; i < 2 * 8 * 16 * 3; i++)
            y[i] = (float)(i % 5) / 4;
        *pm_plan_step(p, 0) = (struct pm_step){ .loss_scale = 1 };
        ok(pm_plan_submit(p, 0));
        ok(pm_plan_wait(p, 0));
        for (size_t i = 0; i < PM_COUNT(names); i++)
            assert_true((norm(d, v, names[i]) > 0) == (moved || i < 2));
        if (!moved) {
            const int index = pm_variables_find(v, names[0]);
            const size_t count = pm_shape_count(v->list[index].shape);
            float *w = malloc(count * sizeof *w);

            for (size_t i = 0; i < count; i++)
                w[i] = 0.01f * (float)((int)(i % 7) - 3);
            ok(pm_variables_write(v, index, -1, w));
            free(w);
        }
    }
    pm_plan_destroy(&p);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    pm_arena_destroy(&a);
}

ON_EVERY_DEVICE(start_points)
ON_EVERY_DEVICE(gradients)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shapes),
        cmocka_unit_test(patterns),
        cmocka_unit_test(test_start_points),
        cmocka_unit_test(test_gradients),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
