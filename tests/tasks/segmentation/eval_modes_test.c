/* Predictions at several scales and mirrored, compared with the original program
 * (tests/golden/deeplab_eval_modes.py): the averaged probabilities, and the softmax that it applies
 * to them. The bound is 10 times the error of the original's own float32 run, and at least the
 * rounding of sums in another order. */
#include "base/golden_file.h"
#include "tasks/segmentation/segmentation.h"

#include <pumice/plan.h>
#include <pumice/rng.h>
#include <pumice/task.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { VECTORS = 16, BATCH = 2 };
#define FLOOR 2e-5

struct golden {
    const cJSON *root;
    const struct pm_net_row *row;
    void *cfg;
    int classes;
    uint64_t seed;
};

static struct pm_device *device;
static struct pm_net *net;
static struct pm_variables *variables;
static struct pm_plan *plan;
static cJSON *file;

static int int_of(const cJSON *o, const char *key)
{
    assert_true(cJSON_IsNumber(cJSON_GetObjectItem(o, key)));
    return cJSON_GetObjectItem(o, key)->valueint;
}

/* ---- the golden's random numbers ----------------------------------------------------------- */

static struct pm_rng stream(const struct golden *g, const char *name)
{
    char text[512];

    snprintf(text, sizeof text, "golden/%s", name);
    return pm_rng_make(g->seed, pm_hash(text), 0, 0);
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);

    return n >= m && strcmp(text + n - m, end) == 0;
}

static void initial(const struct golden *g, const struct pm_variable *v, float *out)
{
    const bool near_one = ends_with(v->name, "gamma") || ends_with(v->name, "moving_variance");
    const bool depthwise = ends_with(v->name, "depthwise_weights");
    const int *dim = v->shape.dim;
    const double most = sqrt(6.0 / (dim[0] * dim[1] * (depthwise ? 1 : dim[2])));
    struct pm_rng r = stream(g, v->name);

    for (size_t i = 0; i < pm_shape_count(v->shape); i++) {
        const double u = pm_rng_uniform(&r);

        out[i] = (float)(near_one ? 0.5 + u : ends_with(v->name, "weights") ? (2 * u - 1) * most
                                                                            : 0.2 * u - 0.1);
    }
}

/* The relative error of the norm, estimated from products with vectors of +-1, as in
 * golden_test.c. */
static double off_by(const struct golden *g, const char *name, const float *t, size_t count,
                     const cJSON *row)
{
    struct pm_rng r = stream(g, name);
    double have[VECTORS] = { 0 }, sum = 0;
    uint32_t word = 0;

    assert_int_equal(cJSON_GetArraySize(row), 3 + VECTORS);
    assert_int_equal(row->child->valueint, count);
    for (size_t i = 0; i < count; i++) {
        word = i % 2 ? word >> 16 : pm_rng_u32(&r);
        for (int k = 0; k < VECTORS; k++)
            have[k] += word >> k & 1 ? t[i] : -t[i];
    }
    for (int k = 0; k < VECTORS; k++)
        sum += pow(have[k] - cJSON_GetArrayItem(row, 3 + k)->valuedouble, 2);
    return sqrt(sum / VECTORS) / row->child->next->valuedouble;
}

/* ---- a case -------------------------------------------------------------------------------- */

static int heads_of(void *ctx, struct pm_net *n, struct pm_node *images, struct pm_heads *out)
{
    const struct golden *g = ctx;

    g->row->build(n, images, g->classes, g->cfg, out);
    return n->error;
}

static void make_variables(const struct golden *g)
{
    assert_int_equal(pm_variables_create(device, net, false, NULL, &variables), PM_OK);
    assert_int_equal(pm_variables_allocate(variables), PM_OK);
    for (int i = 0; i < variables->count; i++) {
        float *values = pm_malloc(pm_shape_count(variables->list[i].shape) * sizeof *values);

        initial(g, &variables->list[i], values);
        assert_int_equal(pm_variables_write(variables, i, -1, values), PM_OK);
        pm_free(values);
    }
}

static void run_net(const struct golden *g, const struct pm_outputs *outputs, size_t values)
{
    struct pm_rng r = stream(g, "images");
    float *images;

    make_variables(g);
    if (pm_plan_create(net, device, variables, &(struct pm_plan_options){
            .name = "modes", .outputs = outputs->node, .slots = 1, .loss_share = 1 }, &plan) ||
        pm_plan_load(plan))
        fail_msg("%s", pm_error_text());
    images = pm_plan_input(plan, 0, "images", 0);
    for (size_t i = 0; i < values; i++)
        images[i] = (float)(2 * pm_rng_uniform(&r) - 1);
    assert_int_equal(pm_plan_submit(plan, 0), PM_OK);
    assert_int_equal(pm_plan_wait(plan, 0), PM_OK);
}

static void compare(const struct golden *g, const char *name, const char *node)
{
    const cJSON *row = cJSON_GetObjectItem(cJSON_GetObjectItem(g->root, "tensors"), name);
    const double bound = fmax(10 * cJSON_GetArrayItem(row, 2)->valuedouble, FLOOR);
    const double off = off_by(g, name, pm_plan_output(plan, 0, node, 0),
                              pm_shape_count(pm_net_find(net, node)->out_shape), row);

    print_message("%s: %s: off by %.1e, allowed is %.1e\n", g->row->name, name, off, bound);
    assert_true(off <= bound);
}

static void mode(const cJSON *c, bool again)
{
    const cJSON *scales = cJSON_GetObjectItem(c, "scales");
    struct golden g = { .root = c, .classes = int_of(c, "classes"),
                        .seed = (uint64_t)int_of(c, "seed") };
    const int height = int_of(c, "height"), width = int_of(c, "width");
    const struct pm_task_row *task = pm_task_find("segmentation");
    struct pm_task s = { .facts = { .height = height, .width = width, .channels = 3,
                                     .num_classes = g.classes },
                          .pixels = { .predict_upsampled = true } };
    struct pm_outputs outputs = { 0 };
    float scale[8];

    net = pm_net_create();
    g.row = pm_net_row_find(cJSON_GetObjectItem(c, "net")->valuestring);
    g.cfg = pm_arena_alloc(net->arena, g.row->cfg_size);
    assert_int_equal(pm_opts_parse(g.row->opts, cJSON_GetObjectItem(c, "options"), NULL, g.cfg,
                                   net->arena, "model"), PM_OK);
    for (int i = 0; i < cJSON_GetArraySize(scales); i++)
        scale[i] = (float)cJSON_GetArrayItem(scales, i)->valuedouble;
    s.pixels.export_modes.scales = (struct pm_floats){ cJSON_GetArraySize(scales), scale };
    s.pixels.export_modes.double_softmax = again;
    s.pixels.export_modes.flip = cJSON_IsTrue(cJSON_GetObjectItem(c, "flip"));
    struct pm_node *images =
        pm_net_input(net, "images", PM_SHAPE4(BATCH, height, width, 3), PM_F32);
    if (task->add_outputs(net, images, &(struct pm_net_maker){ heads_of, NULL, &g }, &s,
                          PM_USE_EXPORT, &outputs))
        fail_msg("%s", pm_error_text());
    run_net(&g, &outputs, (size_t)BATCH * height * width * 3);
    compare(&g, again ? "again" : "probabilities", "SemanticProbabilities");
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
}

static void modes(void **state)
{
    const cJSON *c;

    (void)state;
    cJSON_ArrayForEach(c, cJSON_GetObjectItem(file, "cases"))
    {
        mode(c, false);
        mode(c, true);
    }
}

static int set_up(void **state)
{
    struct pm_device_info *list = NULL;
    size_t count, index;

    (void)state;
    file = read_golden("deeplab_eval_modes.json");
    const int err = pm_device_list(&list, &count) ||
                    pm_device_find(list, count, "cpu", "test", &index) ||
                    pm_device_open(&list[index], &(struct pm_device_options){ 0 }, &device);
    pm_free(list);
    return err ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
    pm_device_close(&device);
    cJSON_Delete(file);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(modes) };

    return cmocka_run_group_tests_name("modes", tests, set_up, tear_down);
}
