/* Nets written by PyTorch's own exporter: the logits of a batch, and the losses of ten steps of
 * plain SGD on it with batch norm in training mode, compared with PyTorch's
 * (tests/golden/torch_onnx.py). The nets are classifiers, segmentation nets, whose maps of
 * logits are compared in ONNX's order, and heads of detectors. Arguments: a folder of such
 * models (default: the committed narrow ones), a device, names of models. */
#include "onnx/import_common.h"

#include <cjson/cJSON.h>

static struct pm_device *device;
static const struct pm_import_options options = { .any_shape = true };

/* Draws the images of the script, in ONNX's order and in Pumice's. */
static void draw_images(float *out, int batch, int size)
{
    for (int n = 0; n < batch; n++)
        for (int c = 0; c < 3; c++)
            for (int y = 0; y < size; y++)
                for (int x = 0; x < size; x++) {
                    const double v = sin((((n * 3.0 + c) * size + y) * size + x + 1) * 12.9898) *
                                     43758.5453;
                    const size_t at = (((size_t)n * size + y) * size + x) * 3 + c;

                    out[at] = (float)((v - floor(v)) * 4 - 2);
                }
}

static double number(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);

    assert_non_null(v);
    return v->valuedouble;
}

/* The shape of the model's output, in ONNX's order. */
static int shape_of(const cJSON *facts, int dim[4])
{
    const cJSON *shape = cJSON_GetObjectItem(facts, "shape"), *d;
    int rank = 0;

    assert_in_range(cJSON_GetArraySize(shape), 2, 4);
    cJSON_ArrayForEach(d, shape) dim[rank++] = d->valueint;
    return rank;
}

/* The place in [n, h, w, c] of element i of maps [n, c, h, w]. For other ranks the place is i. */
static size_t place(size_t i, int rank, const int dim[4])
{
    if (rank < 4)
        return i;
    const size_t pixels = (size_t)dim[2] * (size_t)dim[3], c = (size_t)dim[1];
    const size_t n = i / (c * pixels), k = i / pixels % c, p = i % pixels;

    return (n * pixels + p) * c + k;
}

/* The largest difference from the stored values, relative to the largest of them. */
static double difference(const float *y, size_t count, const cJSON *facts)
{
    const cJSON *expected = cJSON_GetObjectItem(facts, "logits"), *e = expected->child;
    const size_t every = (size_t)number(facts, "every");
    double worst = 0, largest = 1e-30;
    int dim[4];
    const int rank = shape_of(facts, dim);

    assert_int_equal(cJSON_GetArraySize(expected), (count + every - 1) / every);
    for (size_t i = 0; i < count; i += every, e = e->next) {
        largest = fmax(largest, fabs(e->valuedouble));
        worst = fmax(worst, fabs((double)y[place(i, rank, dim)] - e->valuedouble));
    }
    return worst / largest;
}

static void step(struct pm_plan *plan, struct pm_variables *v, double rate)
{
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    for (int i = 0; i < v->count; i++) {
        const size_t count = pm_shape_count(v->list[i].shape);
        float *w, *g;

        if (!v->list[i].trainable)
            continue;
        w = pm_malloc(count * sizeof *w);
        g = pm_malloc(count * sizeof *g);
        ok(pm_variables_read(v, i, -1, w));
        ok(pm_buffer_read(device, v->grads, v->offset[i], g, count * sizeof *g));
        for (size_t k = 0; k < count; k++)
            w[k] = (float)((double)w[k] - rate * (double)g[k]);
        ok(pm_variables_write(v, i, -1, w));
        pm_free(w);
        pm_free(g);
    }
}

static void train(struct pm_import *import, const cJSON *facts)
{
    const int batch = (int)number(facts, "batch"), size = (int)number(facts, "size");
    const cJSON *losses = cJSON_GetObjectItem(facts, "losses"), *e;
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(batch, size, size, 3), PM_F32);
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    struct pm_heads heads = { 0 };
    int k = 0;

    ok(pm_import_net(import, net, images, &options, &heads));
    const struct pm_shape y = pm_heads_main(&heads)->out_shape;
    const int rows = (int)pm_shape_count(y) / y.dim[y.rank - 1];
    struct pm_node *xs[] = { pm_heads_main(&heads),
                             pm_net_input(net, "labels", PM_SHAPE1(rows), PM_I32) };
    if (y.rank == 4)
        xs[0] = pm_net_add(net, "pixels", xs[0], "reshape shape=[%d,%d]", rows, y.dim[3]);
    pm_net_add_many(net, "loss", xs, 2, "softmax_cross_entropy");
    ok(net->error);
    ok(pm_variables_create(device, net, true, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    ok(pm_plan_create(net, device, v, &(struct pm_plan_options){
        .train = true, .loss_share = 1, .micro_batches = 1, .slots = 1, .name = "train" }, &plan));
    ok(pm_plan_load(plan));
    draw_images(pm_plan_input(plan, 0, "images", 0), batch, size);
    for (int i = 0; i < rows; i++)
        ((int32_t *)pm_plan_input(plan, 0, "labels", 0))[i] = i % (int)number(facts, "classes");
    *pm_plan_step(plan, 0) = (struct pm_step){ .loss_scale = 1 };
    cJSON_ArrayForEach(e, losses)
    {
        step(plan, v, number(facts, "rate"));
        const double loss = pm_plan_loss(plan, 0);
        print_message("  step %d: loss %.6f, PyTorch's %.6f\n", k++, loss, e->valuedouble);
        if (!(fabs(loss - e->valuedouble) < 1e-3 * fmax(1, e->valuedouble)))
            fail_msg("the loss of step %d is %g, PyTorch's %g", k - 1, loss, e->valuedouble);
    }
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

/* The variables do not depend on the batch: evaluation uses another batch size than training. */
static void same_with_one_image(struct pm_import *import, const struct pm_net *net, int size)
{
    struct pm_net *one = pm_net_create();
    struct pm_node *image = pm_net_input(one, "images", PM_SHAPE4(1, size, size, 3), PM_F32);
    struct pm_heads heads = { 0 };
    char a[64], b[64];

    ok(pm_import_net(import, one, image, &options, &heads));
    assert_int_equal(one->var_count, net->var_count);
    for (int i = 0; i < net->var_count; i++) {
        assert_string_equal(one->vars[i]->name, net->vars[i]->name);
        assert_string_equal(pm_shape_text(one->vars[i]->shape, a),
                            pm_shape_text(net->vars[i]->shape, b));
    }
    pm_net_destroy(&one);
}

static void one_net(void **state)
{
    char *text = NULL;
    struct pm_str path = { 0 };
    struct pm_import *import = NULL;
    struct pm_heads heads = { 0 };
    char names[1][16] = { "images" };

    pm_str_add(&path, "%s.json", (const char *)*state);
    ok(pm_file_read(path.text, &text, NULL));
    cJSON *facts = cJSON_Parse(text);
    assert_non_null(facts);
    const int batch = (int)number(facts, "batch"), size = (int)number(facts, "size");
    pm_str_free(&path);
    pm_str_add(&path, "%s.onnx", (const char *)*state);
    ok(pm_import_open(path.text, &import));
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, names[0], PM_SHAPE4(batch, size, size, 3), PM_F32);
    float *x = pm_malloc(pm_shape_count(images->out_shape) * sizeof *x);

    draw_images(x, batch, size);
    ok(pm_import_net(import, net, images, &options, &heads));
    int dim[4], rank = shape_of(facts, dim);
    if (rank == 4)
        assert_true(pm_shape_equal(pm_heads_main(&heads)->out_shape,
                                   PM_SHAPE4(dim[0], dim[2], dim[3], dim[1])));
    float *y = run_net(device, net, pm_heads_main(&heads), names, &x, 1);
    const double off = difference(y, pm_shape_count(pm_heads_main(&heads)->out_shape), facts);
    print_message("  %d nodes, %d variables, logits off by %.2g\n", net->count, net->var_count,
                  off);
    if (!(off < 1e-4))
        fail_msg("the logits are off by %g of the largest", off);
    same_with_one_image(import, net, size);
    pm_free(x);
    pm_free(y);
    pm_net_destroy(&net);
    if (cJSON_GetArraySize(cJSON_GetObjectItem(facts, "losses")))
        train(import, facts);
    pm_import_close(&import);
    cJSON_Delete(facts);
    pm_free(text);
    pm_str_free(&path);
}

int main(int argc, char **argv)
{
    const char *source = getenv("PUMICE_SOURCE");
    struct pm_arena *a = pm_arena_create();
    const char *folder = argc > 1 ? argv[1] : pm_arena_printf(a, "%s/tests/golden/onnx",
                                                              source ? source : ".");
    static struct CMUnitTest tests[100];
    size_t count = 0, found;
    char **paths;

    use_software_drivers();
    if (pm_glob(a, pm_arena_printf(a, "%s/*.json", folder), &paths, &found) < 0 || found == 0) {
        print_message("%s: no models\n", folder);
        return 1;
    }
    for (size_t i = 0; i < found && count < PM_COUNT(tests); i++) {
        char *name = paths[i];
        bool wanted = argc < 4;

        for (int k = 3; k < argc; k++)
            wanted |= strstr(strrchr(name, '/'), argv[k]) != NULL;
        name[strlen(name) - strlen(".json")] = 0;
        if (wanted)
            tests[count++] = (struct CMUnitTest){ .name = name, .test_func = one_net,
                                                  .initial_state = name };
    }
    device = device_named(argc > 2 ? argv[2] : "cpu");
    if (!device) {
        print_message("skipped: %s\n", pm_error_text());
        return 77;
    }
    const int failed = _cmocka_run_group_tests("torch", tests, count, NULL, NULL);
    pm_device_close(&device);
    pm_arena_destroy(&a);
    return failed;
}
