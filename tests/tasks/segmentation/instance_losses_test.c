/* The losses of a net with heads for instances, on every device: losses and gradients of the
 * heads' maps compared with tests/golden/instance_losses.json (instance_losses.py writes it). */
#include "tasks/task_fields.h"
#include "tasks/segmentation/segmentation.h"

#include <pumice/plan.h>
#include <pumice/task.h>

#include "base/golden_file.h"
#include "device/every_device.h"

#include <cjson/cJSON.h>

enum {
    N = 2,
    H = 17,
    W = 25,
    MAP_H = 5,
    MAP_W = 7,
    CLASSES = 3,
    MAP = N * MAP_H * MAP_W,
    ALL = N * H * W
};

/* ---- values, as the script makes them ---------------------------------------------------- */

static uint32_t at;

static struct {
    float semantic[MAP * CLASSES], center[MAP], offset[MAP * 2];
} maps;
static struct {
    int32_t labels[ALL];
    float center[ALL], center_weight[ALL], offset[2 * ALL], offset_weight[2 * ALL],
        semantic_weight[ALL];
} fields;

static void draw(float *out, int count, float divisor, float minus)
{
    for (int i = 0; i < count; i++)
        out[i] = (float)number(&at, 1 << 15) / divisor - minus;
}

static void make_values(void)
{
    at = 7;
    draw(maps.semantic, MAP * CLASSES, 8192, 2);
    draw(maps.center, MAP, 16384, 0.5f);
    draw(maps.offset, MAP * 2, 4096, 4);
    for (int i = 0; i < ALL; i++) {
        const int v = number(&at, 4);
        fields.labels[i] = v == 3 ? 255 : v;
    }
    draw(fields.center, ALL, 32768, 0);
    for (int i = 0; i < ALL; i++)
        fields.center_weight[i] = number(&at, 4) != 0;
    draw(fields.offset, 2 * ALL, 1024, 16);
    for (int i = 0; i < ALL; i++)
        fields.offset_weight[2 * i] = fields.offset_weight[2 * i + 1] = (float)(number(&at, 2));
    for (int i = 0; i < ALL; i++)
        fields.semantic_weight[i] = (float)(1 + number(&at, 2) * 2);
}

/* ---- a net of heads only ----------------------------------------------------------------- */

static const struct { const char *name; const void *values; size_t size; } inputs[] = {
    { "labels", fields.labels, sizeof fields.labels },
    { "center", fields.center, sizeof fields.center },
    { "center_weight", fields.center_weight, sizeof fields.center_weight },
    { "offset", fields.offset, sizeof fields.offset },
    { "offset_weight", fields.offset_weight, sizeof fields.offset_weight },
    { "semantic_weight", fields.semantic_weight, sizeof fields.semantic_weight },
};

static struct pm_node *head(struct pm_net *net, const char *name, int channels)
{
    return pm_net_add(net, name, net->nodes[0], "parameter shape=[%d,%d,%d,%d]", N, MAP_H, MAP_W,
                      channels);
}

static void add_fields(struct pm_net *net, const struct pm_field *list, int count)
{
    for (int i = 1; i < count; i++) {
        struct pm_shape shape = { .rank = list[i].shape.rank + 1, .dim = { N } };

        memcpy(shape.dim + 1, list[i].shape.dim, (size_t)list[i].shape.rank * sizeof *shape.dim);
        pm_net_input(net, list[i].name, shape, list[i].type);
    }
}

static struct pm_net *build(const struct pm_task *s)
{
    const struct pm_task_row *task = pm_task_find("segmentation");
    struct pm_net *net = pm_net_create();
    struct pm_field list[8];
    const int count = fields_of(task, s, true, frame_of(&s->facts, true), list);

    if (count < 0)
        fail_msg("%s", pm_error_text());
    pm_net_input(net, "images", PM_SHAPE1(1), PM_F32);
    struct pm_heads heads = { 0 };

    pm_heads_add(net, &heads, "logits", head(net, "net/semantic", CLASSES));
    pm_heads_add(net, &heads, "center", head(net, "net/center", 1));
    pm_heads_add(net, &heads, "offset", head(net, "net/offset", 2));
    add_fields(net, list, count);
    task->add_loss(net, &heads, NULL, s);
    ok(net->error);
    return net;
}

static const cJSON *get(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItem(o, key);

    assert_non_null(v);
    return v;
}

/* ---- compared with the golden ------------------------------------------------------------ */

static void check_losses(const struct pm_plan *plan, const cJSON *want)
{
    static const char *const names[] = { "loss", "loss_center", "loss_offset" };
    const int count = pm_plan_loss_count(plan);
    struct pm_loss_part parts[3];
    double total = 0;

    assert_int_equal(count, 3);
    pm_plan_losses(plan, 0, parts);
    for (int k = 0; k < 3; k++) {
        const double v = cJSON_GetArrayItem(want, k)->valuedouble;

        total += v;
        assert_string_equal(parts[k].name, names[k]);
        if (!(fabs(parts[k].value - v) <= 2e-6 * v))
            fail_msg("%s: %.9g, not %.9g", names[k], parts[k].value, v);
    }
    assert_true(fabs(pm_plan_loss(plan, 0) - total) <= 2e-6 * total);
}

static void check_gradient(const struct pm_variables *v, const char *grads, const char *name,
                           const cJSON *want)
{
    char full[64];
    double largest = 0;
    int at_variable = -1, i = 0;

    snprintf(full, sizeof full, "net/%s/values", name);
    for (int k = 0; k < v->count; k++)
        at_variable = strcmp(v->list[k].name, full) == 0 ? k : at_variable;
    assert_true(at_variable >= 0);
    const float *got = (const float *)(const void *)(grads + v->offset[at_variable]);
    for (const cJSON *c = want->child; c; c = c->next)
        largest = fabs(c->valuedouble) > largest ? fabs(c->valuedouble) : largest;
    for (const cJSON *c = want->child; c; c = c->next, i++)
        if (!(fabs(got[i] - c->valuedouble) <= 1e-5 * largest))
            fail_msg("gradient %d of %s: %.9g, not %.9g", i, name, got[i], c->valuedouble);
    assert_int_equal((size_t)i, pm_shape_count(v->list[at_variable].shape));
}

static void run(struct pm_device *d, struct pm_net *net, const cJSON *want)
{
    static const char *const names[] = { "semantic", "center", "offset" };
    const float *const values[] = { maps.semantic, maps.center, maps.offset };
    const struct pm_plan_options options = { .name = "train", .train = true, .slots = 1,
                                             .loss_share = 1, .micro_batches = 1 };
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;
    char *grads;

    ok(pm_variables_create(d, net, true, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_variables_init(v, 1, NULL));
    assert_int_equal(v->count, 3);
    for (int i = 0; i < 3; i++)
        ok(pm_variables_write(v, i, -1, values[i]));
    ok(pm_plan_create(net, d, v, &options, &plan));
    ok(pm_plan_load(plan));
    for (size_t i = 0; i < PM_COUNT(inputs); i++)
        if (pm_net_find(net, inputs[i].name))
            memcpy(pm_plan_input(plan, 0, inputs[i].name, 0), inputs[i].values, inputs[i].size);
    *pm_plan_step(plan, 0) = (struct pm_step){ .loss_scale = 1 };
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    check_losses(plan, get(want, "losses"));
    grads = pm_malloc(v->gradient_bytes);
    ok(pm_buffer_read(d, v->grads, 0, grads, v->gradient_bytes));
    for (int i = 0; i < 3; i++)
        check_gradient(v, grads, names[i], get(get(want, "gradients"), names[i]));
    pm_free(grads);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
}

static void run_case(struct pm_device *d, const cJSON *want)
{
    static const int things[] = { 1 };
    const struct pm_preprocessing *p = pm_preprocessing_find("deeplab");
    struct pm_segmentation_loss loss = {
        .upsample_logits = true,
        .top_k_percent = (float)get(want, "top_k_percent")->valuedouble,
        .normalize =
            cJSON_IsTrue(get(want, "by_k")) ? PM_NORMALIZE_TOP_K : PM_NORMALIZE_KEPT_PIXELS,
        .center_weight = (float)get(want, "center_weight")->valuedouble,
        .offset_weight = (float)get(want, "offset_weight")->valuedouble,
    };
    const struct pm_task s = {
        .facts = { .height = H,
                   .width = W,
                   .eval_height = H,
                   .eval_width = W,
                   .channels = 3,
                   .num_classes = CLASSES,
                   .preprocessing = p },
        .pixels = { .ignore_label = 255,
                    .label_height = H,
                    .label_width = W,
                    .upsample_logits = true,
                    .predict_upsampled = true,
                    .loss = &loss,
                    .instance = { .on = true, .things = { 1, things }, .label_divisor = 1000 } },
    };
    struct pm_task of = s;

    of.pixels.instance.mode = strcmp(get(want, "mode")->valuestring, "seed4") == 0
                                  ? PM_INSTANCE_SEED4 : PM_INSTANCE_REFERENCE;
    /* Weights at the mode's default may be omitted. */
    if (loss.center_weight == (of.pixels.instance.mode ? 1 : 200))
        loss.center_weight = loss.offset_weight = NAN;
    struct pm_net *net = build(&of);
    run(d, net, want);
    pm_net_destroy(&net);
}

static void golden(void **state)
{
    cJSON *all = read_golden("instance_losses.json");
    struct every_device e = { 0 };
    int cases = 0;

    (void)state;
    make_values();
    while (next_device(&e))
        for (const cJSON *c = get(all, "cases")->child; c; c = c->next, cases++)
            run_case(e.d, c);
    assert_true(cases >= 4);
    cJSON_Delete(all);
}

/* ---- each axis has its own ratio --------------------------------------------------------- */

enum { WIDE = 31 }; /* 16 / 4 is 4, 30 / 6 is 5 */

static struct pm_task wide_setup(const struct pm_segmentation_loss *loss)
{
    static const int things[] = { 1 };

    return (struct pm_task){
        .facts = { .height = H,
                   .width = WIDE,
                   .eval_height = H,
                   .eval_width = WIDE,
                   .channels = 3,
                   .num_classes = CLASSES,
                   .preprocessing = pm_preprocessing_find("deeplab") },
        .pixels = { .ignore_label = 255,
                    .label_height = H,
                    .label_width = WIDE,
                    .upsample_logits = true,
                    .predict_upsampled = true,
                    .loss = loss,
                    .instance = { .on = true, .things = { 1, things }, .label_divisor = 1000 } },
    };
}

/* Runs the net with offsets of 1 everywhere, a weight of 1 for each, and zeros for the other
 * inputs. The caller destroys the plan and the variables. */
static struct pm_plan *run_ones(struct pm_device *d, struct pm_net *net, const char *const *outputs,
                                struct pm_variables **v)
{
    const struct pm_plan_options options = { .name = "ratio",
                                             .train = !outputs,
                                             .slots = 1,
                                             .loss_share = 1,
                                             .micro_batches = 1,
                                             .outputs = outputs };
    struct pm_plan *plan = NULL;

    ok(pm_variables_create(d, net, !outputs, NULL, v));
    ok(pm_variables_allocate(*v));
    ok(pm_variables_init(*v, 1, NULL));
    ok(pm_plan_create(net, d, *v, &options, &plan));
    ok(pm_plan_load(plan));
    for (int i = 0; i < net->count; i++) {
        const struct pm_node *n = net->nodes[i];
        const size_t count = pm_shape_count(n->out_shape);
        float *values;

        if (strcmp(n->layer->name, "input") != 0 || n->index == 0) /* nothing reads the pictures */
            continue;
        values = pm_plan_input(plan, 0, n->name, 0);
        for (size_t k = 0; k < count; k++)
            values[k] = strcmp(n->name, "offset_weight") == 0;
    }
    if (!outputs)
        *pm_plan_step(plan, 0) = (struct pm_step){ .loss_scale = 1 };
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    return plan;
}

static struct pm_node *constant(struct pm_net *net, const char *name, int channels, int value)
{
    return pm_net_add(net, name, net->nodes[0], "parameter shape=[%d,%d,%d,%d] init=constant(%d)",
                      N, MAP_H, MAP_W, channels, value);
}

static int constant_heads(void *ctx, struct pm_net *net, struct pm_node *images,
                          struct pm_heads *out)
{
    (void)ctx, (void)images;
    *out = (struct pm_heads){ 0 };
    pm_heads_add(net, out, "logits", constant(net, "net/semantic", CLASSES, 0));
    pm_heads_add(net, out, "center", constant(net, "net/center", 1, 0));
    pm_heads_add(net, out, "offset", constant(net, "net/offset", 2, 1));
    return net->error;
}

static void check_wide_loss(struct pm_device *d, const struct pm_task *s)
{
    const struct pm_task_row *task = pm_task_find("segmentation");
    struct pm_net *net = pm_net_create();
    struct pm_loss_part parts[3];
    struct pm_field list[8];
    const int count = fields_of(task, s, true, frame_of(&s->facts, true), list);
    struct pm_variables *v = NULL;
    struct pm_heads heads = { 0 };
    struct pm_plan *plan;

    assert_true(count > 1);
    ok(constant_heads(NULL, net, pm_net_input(net, "images", PM_SHAPE1(1), PM_F32), &heads));
    add_fields(net, list, count);
    task->add_loss(net, &heads, NULL, s);
    ok(net->error);
    plan = run_ones(d, net, NULL, &v);
    assert_int_equal(pm_plan_loss_count(plan), 3);
    pm_plan_losses(plan, 0, parts);
    assert_string_equal(parts[2].name, "loss_offset");
    assert_float_equal(parts[2].value, 0.01 * (4 + 5) / 2, 1e-7);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

/* x: the row component of every pixel's offset. */
static void check_wide_output(struct pm_device *d, const struct pm_task *s, float x)
{
    const struct pm_net_maker maker = { constant_heads, NULL, NULL };
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(N, H, WIDE, 3), PM_F32);
    struct pm_variables *v = NULL;
    struct pm_outputs made = { 0 };
    struct pm_plan *plan;
    const float *offset;

    ok(pm_task_find("segmentation")->add_outputs(net, images, &maker, s, PM_USE_PREDICT, &made));
    plan = run_ones(d, net, made.node, &v);
    offset = pm_plan_output(plan, 0, "InstanceOffsetPredictions", 0);
    assert_non_null(offset);
    for (int i = 0; i < N * H * WIDE; i++) {
        assert_float_equal(offset[2 * i], 4, 1e-6);
        assert_float_equal(offset[2 * i + 1], x, 1e-6);
    }
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
}

static void ratios(void **state)
{
    const struct pm_segmentation_loss loss = { .upsample_logits = true, .top_k_percent = 1,
                                         .center_weight = NAN, .offset_weight = NAN };
    struct pm_task s = wide_setup(&loss);
    struct pm_device_info *list;
    struct pm_device *d = NULL;
    size_t count, cpu;

    (void)state;
    ok(pm_device_list(&list, &count));
    ok(pm_device_find(list, count, "cpu", "test", &cpu));
    ok(pm_device_open(&list[cpu], &(struct pm_device_options){ .threads = 1 }, &d));
    check_wide_loss(d, &s);
    check_wide_output(d, &s, 5);
    s.pixels.eval_modes.flip = true; /* half of them point in the opposite direction */
    check_wide_output(d, &s, 0);
    pm_device_close(&d);
    pm_free(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(golden), cmocka_unit_test(ratios) };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
