/* One training step of each named net compared with that of the original program in float64
 * (tests/golden/tensorflow_nets.py, deeplab_nets.py for segmentation, tfod_nets.py for detection):
 * logits (a detector's heads and anchors), loss, moving averages and every gradient. For
 * deeplab_frozen it is the third step, after two with momentum.
 *
 *     golden_test [DEVICE [CASE ...]]
 *
 * The default device is "cpu"; without cases the quick ones run. golden_values.h says how tensors
 * are compared. */
#include "golden_detectors.h"
#include "golden_values.h"

#include "optim/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { MAX_HEADS = 32 };

static struct pm_device *device;
/* Made by a case; tear_down frees them after a failure. */
static struct pm_net *net;
static struct pm_variables *variables;
static struct pm_plan *plan;
static const char *device_name = "cpu";

static void load(struct golden *g, const char *name)
{
    char file[256];

    snprintf(file, sizeof file, "nets/%s", name);
    cJSON *o = read_net_golden(file);
    *g = (struct golden) {
        .case_name = pm_strdup(name), .root = o,
        .tensors = cJSON_GetObjectItem(o, "tensors"), .moves = cJSON_GetObjectItem(o, "moves"),
        .shifts = cJSON_GetObjectItem(o, "shifts"),
        .net_name = cJSON_GetObjectItem(o, "net")->valuestring,
        .batch = (int)number(o, "batch"), .height = (int)number(o, "height"),
        .width = (int)number(o, "width"), .channels = (int)number(o, "channels"),
        .classes = (int)number(o, "classes"), .seed = (uint64_t)number(o, "seed"),
        .shift = number(o, "shift"), .label_smoothing = number(o, "label_smoothing"),
        .ignore_label = cJSON_HasObjectItem(o, "ignore_label") ? (int)number(o, "ignore_label") : 0,
        .regularized = cJSON_GetObjectItem(o, "regularized"),
        .steps = cJSON_HasObjectItem(o, "steps") ? (int)number(o, "steps") : 1,
        .learning_rate = cJSON_HasObjectItem(o, "steps") ? number(o, "learning_rate") : 0,
        .frozen = cJSON_IsFalse(cJSON_GetObjectItem(cJSON_GetObjectItem(o, "options"),
                                                    "batch_norm_train")),
    };
}

/* As in deeplab_nets.py: each picture has its own colour beneath the noise. */
static void fill_maps(const struct golden *g, float *images, int32_t *labels)
{
    const size_t pixels = (size_t)g->height * g->width;
    struct pm_rng r = stream(g, "images"), own = stream(g, "colours");

    for (int n = 0; n < g->batch; n++) {
        double colour[3];

        for (int c = 0; c < 3; c++)
            colour[c] = 4 * pm_rng_uniform(&own) - 2;
        for (size_t i = 0; i < 3 * pixels; i++)
            *images++ = (float)((pm_rng_uniform(&r) - 0.5) + colour[i % 3]);
    }
    r = stream(g, "labels");
    for (size_t i = 0; i < pixels * g->batch; i++) {
        const int label = (int)(pm_rng_uniform(&r) * (g->classes + 1));
        labels[i] = label == g->classes ? g->ignore_label : label;
    }
}

static void fill_inputs(const struct golden *g, float *images, int32_t *labels)
{
    const size_t count = (size_t)g->batch * g->height * g->width * g->channels;
    struct pm_rng r = stream(g, "images");

    if (g->ignore_label) {
        fill_maps(g, images, labels);
        return;
    }
    for (size_t i = 0; i < count; i++)
        images[i] = (float)(2 * pm_rng_uniform(&r) - 1);
    r = stream(g, "labels");
    for (int i = 0; i < g->batch && labels; i++)
        labels[i] = (int32_t)(pm_rng_uniform(&r) * g->classes);
}

/* ---- a step --------------------------------------------------------------------------------- */

static void add_map_loss(const struct golden *g, const struct pm_heads *heads)
{
    struct pm_node *labels =
        pm_net_input(net, "labels", PM_SHAPE3(g->batch, g->height, g->width), PM_I32);
    struct pm_node *x = pm_net_add(net, "enlarged", pm_heads_main(heads), "resize size=[%d,%d] "
                                   "coordinates=align_corners", g->height, g->width);

    pm_net_add_many(net, "loss", (struct pm_node *[]){ x, labels }, 2,
                    "softmax_cross_entropy ignore_label=%d", g->ignore_label);
}

static void add_loss(const struct golden *g, const struct pm_heads *heads)
{
    struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(g->batch), PM_I32);
    struct pm_node *aux = pm_heads_find(heads, "aux_logits");

    pm_net_add_many(net, "loss", (struct pm_node *[]){ pm_heads_main(heads), labels }, 2,
                    "softmax_cross_entropy label_smoothing=%.9g", g->label_smoothing);
    if (aux)
        pm_net_add_many(net, "aux_loss", (struct pm_node *[]){ aux, labels }, 2,
                        "softmax_cross_entropy label_smoothing=%.9g weight=%.9g",
                        g->label_smoothing, (double)pm_heads_weight(heads, "aux_logits"));
}

/* ---- heads ---------------------------------------------------------------------------------- */

static void compare_anchors(struct golden *g, const struct pm_node *anchors)
{
    const size_t count = pm_shape_count(anchors->out_shape);
    float *values = pm_malloc(count * sizeof *values);

    pm_anchors_write(anchors, values);
    compare(g, "anchors", values, count);
    pm_free(values);
}

static void compare_output(struct golden *g, const char *name, const struct pm_node *node)
{
    compare(g, name, pm_plan_output(plan, 0, node->name, 0), pm_shape_count(node->out_shape));
}

static void compare_heads(struct golden *g, const struct pm_heads *heads)
{
    if (!g->regularized)
        compare_output(g, "logits", pm_heads_main(heads));
    for (int i = 0; g->regularized && i < heads->count; i++) {
        const struct pm_head *h = &heads->list[i];

        if (is_anchors(h))
            compare_anchors(g, h->node);
        else
            compare_output(g, h->name, h->node);
    }
}

/* ---- the net -------------------------------------------------------------------------------- */

/* The golden holds the searched cell as JSON; the net reads a file, which this function writes. */
static void file_of_cell(cJSON *options)
{
    cJSON *cell = cJSON_DetachItemFromObject(options, "dense_prediction_cell");
    char path[] = "/tmp/pumice-cell-XXXXXX", *text;

    if (!cell)
        return;
    text = cJSON_PrintUnformatted(cell);
    const int file = mkstemp(path);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t)strlen(text) || close(file))
        fail_msg("%s cannot be written", path);
    cJSON_AddStringToObject(options, "dense_prediction_cell", path);
    free(text);
    cJSON_Delete(cell);
}

static void build(const struct golden *g, struct pm_heads *heads)
{
    const struct pm_net_row *row = pm_net_row_find(g->net_name);
    const cJSON *own = cJSON_GetObjectItem(g->root, "options");

    net = pm_net_create();
    cJSON *options = own ? cJSON_Duplicate(own, true) : cJSON_CreateObject();
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size + 1);
    struct pm_node *images = pm_net_input(
        net, "images", PM_SHAPE4(g->batch, g->height, g->width, g->channels), PM_F32);

    file_of_cell(options);
    if (pm_opts_find(row->opts, "keep_prob") >= 0)
        cJSON_AddNumberToObject(options, "keep_prob", 1);
    if (pm_opts_parse(row->opts, options, NULL, cfg, net->arena, "model"))
        fail_msg("%s", pm_error_text());
    row->build(net, images, g->classes, cfg, heads);
    if (cJSON_HasObjectItem(options, "dense_prediction_cell"))
        unlink(cJSON_GetObjectItem(options, "dense_prediction_cell")->valuestring);
    cJSON_Delete(options);
    if (!net->error && g->regularized)
        add_detector_losses(net, heads);
    else if (!net->error && g->ignore_label)
        add_map_loss(g, heads);
    else if (!net->error)
        add_loss(g, heads);
    if (net->error)
        fail_msg("%s", pm_error_text());
}

static void update(struct pm_calls *c, void *ctx)
{
    static const uint32_t finite = 1;

    (void)ctx;
    pm_calls_layer_updates(c, pm_calls_constant(c, "finite", &finite, PM_SHAPE1(1), PM_U32));
}

/* The optimizer of goldens with several steps. */
static char momentum_cfg[64];
static struct pm_update momentum = { .cfg = momentum_cfg, .layers = true };

static void make_variables(const struct golden *g)
{
    const char *const *slots = NULL;
    struct pm_variables *v;

    if (g->steps > 1) {
        momentum.optimizer = pm_optimizer_find("momentum");
        pm_opts_defaults(momentum.optimizer->opts, momentum_cfg, NULL);
        slots = pm_optimizer_slots(momentum.optimizer, momentum_cfg);
    }
    if (pm_variables_create(device, net, true, slots, &variables) ||
        pm_variables_allocate(variables) ||
        (slots && pm_optimizer_init(momentum.optimizer, momentum_cfg, variables, g->seed)))
        fail_msg("%s", pm_error_text());
    v = variables;
    for (int i = 0; i < v->count; i++) {
        float *values = pm_malloc(pm_shape_count(v->list[i].shape) * sizeof *values);
        initial(g, &v->list[i], values);
        if (pm_variables_write(v, i, -1, values))
            fail_msg("%s", pm_error_text());
        pm_free(values);
    }
}

/* Frozen batch norm: the stored averages are unchanged bit for bit. */
static void expect_stored(const struct golden *g, const struct pm_variable *v, const float *values)
{
    const size_t count = pm_shape_count(v->shape);
    float *before = pm_malloc(count * sizeof *before);

    initial(g, v, before);
    if (memcmp(before, values, count * sizeof *values) != 0)
        fail_msg("%s: %s has moved", g->case_name, v->name);
    pm_free(before);
}

static void compare_variables(struct golden *g, struct pm_variables *v)
{
    for (int i = 0; i < v->count; i++) {
        const struct pm_variable *var = &v->list[i];
        const size_t count = pm_shape_count(var->shape);
        float *values = pm_malloc(count * sizeof *values);
        const int err = var->trainable
            ? pm_buffer_read(device, v->grads, v->offset[i], values, count * sizeof *values)
            : pm_variables_read(v, i, -1, values);
        if (err)
            fail_msg("%s", pm_error_text());
        compare(g, var->name, values, count);
        if (g->frozen && !var->trainable)
            expect_stored(g, var, values);
        pm_free(values);
    }
}

static void take_step(const struct golden *g, const struct pm_heads *heads, uint32_t step)
{
    fill_inputs(g, pm_plan_input(plan, 0, "images", 0),
                g->regularized ? NULL : pm_plan_input(plan, 0, "labels", 0));
    if (g->regularized)
        fill_detector_targets(plan, g->seed, heads);
    *pm_plan_step(plan, 0) = (struct pm_step) { .step = step, .seed_low = (uint32_t)g->seed,
                                                .lr = (float)g->learning_rate, .loss_scale = 1 };
    if (pm_plan_submit(plan, 0) || pm_plan_wait(plan, 0))
        fail_msg("%s", pm_error_text());
}

static void run_case(void **state)
{
    struct golden g;
    struct pm_heads heads = { 0 };
    const double start = pm_seconds();

    load(&g, *state);
    build(&g, &heads);
    make_variables(&g);
    const char *outputs[MAX_HEADS + 1] = { pm_heads_main(&heads)->name };
    for (int i = 1; i < heads.count && g.regularized; i++)
        outputs[i] = is_anchors(&heads.list[i]) ? NULL : heads.list[i].node->name;
    if (g.regularized)
        expect_regularized(net, g.regularized);
    const struct pm_plan_options o = {
        .train = true, .loss_share = 1, .micro_batches = 1, .outputs = outputs,
        .update = g.steps > 1 ? pm_update_append : update, .update_ctx = &momentum, .slots = 1,
        .name = g.case_name,
    };
    if (pm_plan_create(net, device, variables, &o, &plan) || pm_plan_load(plan))
        fail_msg("%s", pm_error_text());
    const double ready = pm_seconds();
    for (int i = 0; i < g.steps; i++)
        take_step(&g, &heads, (uint32_t)i);
    const double done = pm_seconds();

    const float loss = (float)pm_plan_loss(plan, 0);
    compare(&g, "loss", &loss, 1);
    compare_heads(&g, &heads);
    compare_variables(&g, variables);
    print_message("%s on %s: %d tensors, %d wrong, worst %.2g of its bound (%s); ready in %.1f s, "
                  "run in %.2f s\n", g.case_name, device_name, g.compared, g.wrong, g.worst,
                  g.worst_name, ready - start, done - ready);
    assert_int_equal(g.compared, cJSON_GetArraySize(g.tensors));
    assert_int_equal(g.wrong, 0);
    cJSON_Delete(g.root);
    pm_free(g.case_name);
}

static int tear_down(void **state)
{
    (void)state;
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
    return 0;
}

int main(int argc, char **argv)
{
    static char *quick[] = { "lenet", "cifarnet", "mobilenet_v1", "resnet_v1_50" };
    char **names = argc > 2 ? argv + 2 : quick;
    size_t count = argc > 2 ? (size_t)argc - 2 : PM_COUNT(quick);
    struct CMUnitTest *tests = pm_malloc(count * sizeof *tests);

    device_name = argc > 1 ? argv[1] : "cpu";
    int code = open_golden_device(device_name, &device);
    if (code) {
        pm_free(tests);
        return code;
    }
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest) { names[i], run_case, NULL, tear_down, names[i] };
    code = _cmocka_run_group_tests("golden", tests, count, NULL, NULL);
    pm_device_close(&device);
    pm_free(tests);
    return code;
}
