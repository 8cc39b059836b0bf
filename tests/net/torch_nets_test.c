/* Nets with PyTorch's conventions compared with torchvision's and timm's own
 * (tests/golden/torch_nets.py). A file with PyTorch's names, whose values are drawn by name as
 * in the golden, is opened through the map of names and loaded. Then the logits of a batch, or a
 * step's loss, gradients and moving averages, must equal PyTorch's in double precision.
 *
 *     torch_nets_test [CASE ...]
 *
 * The error of logits may be 10 times that of PyTorch's own float32 run, at least 2e-5 of the
 * largest and at most 1e-4. The tensors of a step are compared by products with vectors of +-1,
 * as in golden_test; the vectors pass through the map, too, which brings them into Pumice's
 * order. */
#include <pumice/names.h>
#include <pumice/rng.h>

#include <cjson/cJSON.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/tensor_format.h"

enum { VECTORS = 16 };
#define FLOOR 2e-5
#define CEILING_LOGITS 1e-4
#define CEILING_STEP 1e-2

struct golden {
    const char *name;
    cJSON *root, *sizes, *step;
    int batch, size, classes;
    uint64_t seed;
    bool apart; /* offsets keep activations away from kinks */
};

static struct pm_device *device;

/* ---- the golden -------------------------------------------------------------------------- */

static const cJSON *member(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    if (!v)
        fail_msg("the golden has no %s", key);
    return v;
}

static void load(struct golden *g, const char *name)
{
    const char *source = getenv("PUMICE_SOURCE");
    char path[1024], *text;

    snprintf(path, sizeof path, "%s/tests/golden/torch/%s.json", source ? source : ".", name);
    if (pm_file_read(path, &text, NULL))
        fail_msg("%s", pm_error_text());
    *g = (struct golden){ .name = name, .root = cJSON_Parse(text) };
    pm_free(text);
    if (!g->root)
        fail_msg("%s is not JSON", path);
    g->sizes = cJSON_GetObjectItem(g->root, "sizes");
    g->step = cJSON_GetObjectItem(g->root, "step");
    g->batch = member(g->root, "batch")->valueint;
    g->size = member(g->root, "size")->valueint;
    g->classes = member(g->root, "classes")->valueint;
    g->seed = (uint64_t)member(g->root, "seed")->valuedouble;
    g->apart = cJSON_IsTrue(cJSON_GetObjectItem(g->root, "apart"));
}

static struct pm_rng stream(const struct golden *g, const char *kind, const char *name)
{
    char text[512];

    snprintf(text, sizeof text, "torch/%s%s", kind, name);
    return pm_rng_make(g->seed, pm_hash(text), 0, 0);
}

/* ---- files whose values are drawn -------------------------------------------------------- */

/* Reads a tensor in order. Another tensor or an earlier place restarts its stream. */
struct drawing {
    const struct golden *g;
    bool vectors; /* an element's 16 signs as a number, instead of a weight */
    const struct pm_file_tensor *of;
    uint64_t place;
    struct pm_rng r;
    uint32_t word;
};

static float weight(struct drawing *d, const struct pm_file_tensor *t, uint64_t i)
{
    static const int sides[] = { 3, 3, 3, 9, -3 };
    const double u = pm_rng_uniform(&d->r);
    const char *dot = strrchr(t->name, '.');
    char module[256];

    if (t->rank > 1)
        return (float)((2 * u - 1) * sqrt(6 / (double)(t->count / (uint64_t)t->dim[0])));
    snprintf(module, sizeof module, "%.*s", (int)(dot - t->name), t->name);
    if (pm_ends_with(t->name, ".running_var"))
        return (float)(pow(4, member(d->g->sizes, module)->valueint) * (0.5 + u));
    if (pm_ends_with(t->name, ".running_mean"))
        return (float)(pow(2, member(d->g->sizes, module)->valueint) * (u - 0.5));
    if (d->g->apart && cJSON_HasObjectItem(d->g->sizes, module))
        return (float)(pm_ends_with(t->name, ".weight") ? 0.1 + 0.4 * u
                                                        : sides[i % 5] + 0.2 * u - 0.1);
    return (float)(pm_ends_with(t->name, ".weight") ? 0.5 + u : u - 0.5);
}

static float element(struct drawing *d, const struct pm_file_tensor *t)
{
    const uint64_t i = d->place++;

    if (!d->vectors)
        return weight(d, t, i);
    d->word = i % 2 ? d->word >> 16 : pm_rng_u32(&d->r);
    return (float)(d->word & 0xffff);
}

static int draw(const struct pm_tensor_file *f, const struct pm_file_tensor *t, uint64_t begin,
                size_t size, void *dst)
{
    struct drawing *d = f->own;
    float *out = dst;

    if (d->of != t || d->place > begin / 4) {
        d->of = t;
        d->place = 0;
        d->r = stream(d->g, d->vectors ? "vectors/" : "", t->name);
    }
    while (d->place < begin / 4)
        element(d, t);
    for (size_t i = 0; i < size / 4; i++)
        out[i] = element(d, t);
    return PM_OK;
}

static void forget(struct pm_tensor_file *f)
{
    pm_free(f->own);
}

/* PyTorch's file under Pumice's names. */
static struct pm_tensor_file *open_drawn(const struct golden *g, const struct pm_variables *v,
                                         bool vectors)
{
    static const struct pm_tensor_format format = { .name = "drawn" };
    struct pm_tensor_file *f = pm_tensor_file_make(g->name, &format), *mapped = NULL;
    const cJSON *row, *dim;

    f->own = pm_calloc(1, sizeof(struct drawing));
    *(struct drawing *)f->own = (struct drawing){ .g = g, .vectors = vectors };
    f->read = draw;
    f->close = forget;
    cJSON_ArrayForEach(row, member(g->root, "tensors"))
    {
        struct pm_file_tensor *t = pm_tensor_file_add(f, row->string);
        t->type = PM_DTYPE_F32;
        cJSON_ArrayForEach(dim, row)
            t->dim[t->rank++] = dim->valueint;
        assert_int_equal(pm_tensor_file_measure(f, t), PM_OK);
    }
    assert_int_equal(pm_tensor_file_finish(f), PM_OK);
    assert_true(pm_names_are_torch(f));
    if (pm_names_torch(v, f, &mapped))
        fail_msg("%s", pm_error_text());
    return mapped;
}

/* ---- nets -------------------------------------------------------------------------------- */

static struct pm_net *build(const struct golden *g, struct pm_heads *heads)
{
    cJSON *options = cJSON_Duplicate(member(g->root, "options"), true);
    const struct pm_net_row *row =
        pm_net_row_variant(pm_net_row_find(member(g->root, "net")->valuestring), options);
    struct pm_net *net = pm_net_create();
    void *cfg = pm_arena_alloc(net->arena, row->cfg_size + 1);
    struct pm_node *images =
        pm_net_input(net, "images", PM_SHAPE4(g->batch, g->size, g->size, 3), PM_F32);

    if (g->step && pm_opts_find(row->opts, "keep_prob") >= 0)
        cJSON_AddNumberToObject(options, "keep_prob", 1);
    if (pm_opts_parse(row->opts, options, NULL, cfg, net->arena, "model"))
        fail_msg("%s", pm_error_text());
    cJSON_Delete(options);
    row->build(net, images, g->classes, cfg, heads);
    if (g->step) {
        struct pm_node *labels = pm_net_input(net, "labels", PM_SHAPE1(g->batch), PM_I32);
        pm_net_add_many(net, "loss", (struct pm_node *[]){ pm_heads_main(heads), labels }, 2,
                        "softmax_cross_entropy");
    }
    if (net->error)
        fail_msg("%s", pm_error_text());
    assert_int_equal(net->conventions, PM_CONVENTIONS_TORCH);
    return net;
}

/* Loads the file. It holds every variable and nothing else. */
static void fill(const struct golden *g, struct pm_variables *v)
{
    struct pm_tensor_file *f = open_drawn(g, v, false);

    for (int i = 0; i < v->count; i++) {
        const struct pm_variable *x = &v->list[i];
        const struct pm_file_tensor *t = pm_tensor_file_find(f, x->name);
        const size_t count = pm_shape_count(x->shape);
        float *values = pm_malloc(count * sizeof *values);

        if (!t)
            fail_msg("%s: PyTorch's file has no %s", g->name, x->name);
        assert_int_equal(t->rank, x->shape.rank);
        for (int k = 0; k < t->rank; k++)
            assert_int_equal(t->dim[k], x->shape.dim[k]);
        if (pm_tensor_file_floats(f, t, 0, count, values) || pm_variables_write(v, i, -1, values))
            fail_msg("%s", pm_error_text());
        pm_free(values);
    }
    assert_int_equal(pm_tensor_file_count(f), v->count);
    pm_tensor_file_close(&f);
}

static void fill_inputs(const struct golden *g, struct pm_plan *plan)
{
    const cJSON *index = cJSON_GetObjectItem(g->root, "images");
    float *images = pm_plan_input(plan, 0, "images", 0);
    char name[32];

    snprintf(name, sizeof name, "%d", index ? index->valueint : 0);
    struct pm_rng r = stream(g, "images/", name);
    for (int i = 0; i < g->batch * g->size * g->size * 3; i++)
        images[i] = (float)(4 * pm_rng_uniform(&r) - 2);
    if (!g->step)
        return;
    int32_t *labels = pm_plan_input(plan, 0, "labels", 0);
    r = stream(g, "", "labels");
    for (int i = 0; i < g->batch; i++)
        labels[i] = (int32_t)(pm_rng_uniform(&r) * g->classes);
}

/* ---- comparing --------------------------------------------------------------------------- */

static void compare_logits(const struct golden *g, const float *have)
{
    const double error = member(g->root, "logits_error")->valuedouble;
    const double bound = fmin(fmax(10 * error, FLOOR), CEILING_LOGITS);
    double largest = 0, worst = 0;
    const cJSON *v;
    int i = 0;

    cJSON_ArrayForEach(v, member(g->root, "logits"))
    {
        largest = fmax(largest, fabs(v->valuedouble));
        worst = fmax(worst, fabs((double)have[i] - v->valuedouble));
        if (isnan(have[i]))
            worst = INFINITY;
        i++;
    }
    assert_int_equal(i, g->batch * g->classes);
    print_message("%s: logits off by %.2g of the largest, %.2g are allowed\n", g->name,
                  worst / largest, bound);
    if (!(worst / largest <= bound))
        fail_msg("%s: logits differ", g->name);
}

struct step {
    const struct golden *g;
    int compared, wrong;
    double worst;
    const char *worst_name;
};

/* values: in Pumice's order, like signs; theirs: PyTorch's name. */
static void compare(struct step *s, const char *theirs, const float *values, const float *signs,
                    size_t count)
{
    const cJSON *row = member(s->g->step, theirs);
    double want[3 + VECTORS], sum = 0;
    int n = 0;

    for (const cJSON *v = row->child; v && n < 3 + VECTORS; v = v->next)
        want[n++] = v->valuedouble;
    assert_int_equal(n, 3 + VECTORS);
    assert_int_equal(want[0], count);
    for (int k = 0; k < VECTORS; k++) {
        double product = 0;
        for (size_t i = 0; i < count; i++)
            product += (uint32_t)signs[i] >> k & 1 ? values[i] : -values[i];
        sum += pow(product - want[3 + k], 2);
    }
    const double error = sqrt(sum / VECTORS) / want[1];
    const double bound = fmin(fmax(10 * want[2], FLOOR), CEILING_STEP);
    if (!(error <= bound) && ++s->wrong <= 20)
        print_error("%s: %s is off by %.2g of its norm, %.2g is allowed\n", s->g->name, theirs,
                    error, bound);
    if (!(error / bound <= s->worst)) {
        s->worst = error / bound;
        s->worst_name = row->string;
    }
    s->compared++;
}

static void compare_loss(struct step *s, float loss)
{
    struct pm_rng r = stream(s->g, "vectors/", "loss");
    const float signs = (float)(pm_rng_u32(&r) & 0xffff);

    compare(s, "loss", &loss, &signs, 1);
}

/* Compares gradients, and moving averages after the step. The file of vectors has PyTorch's name
 * of each. */
static void compare_variables(struct step *s, struct pm_variables *v)
{
    struct pm_tensor_file *f = open_drawn(s->g, v, true);

    for (int i = 0; i < v->count; i++) {
        const struct pm_variable *x = &v->list[i];
        const struct pm_file_tensor *t = pm_tensor_file_find(f, x->name);
        const size_t count = pm_shape_count(x->shape);
        float *values = pm_malloc(count * sizeof *values),
              *signs = pm_malloc(count * sizeof *signs);
        const int err = x->trainable
            ? pm_buffer_read(device, v->grads, v->offset[i], values, count * sizeof *values)
            : pm_variables_read(v, i, -1, values);

        if (err || pm_tensor_file_floats(f, t, 0, count, signs))
            fail_msg("%s", pm_error_text());
        compare(s, pm_names_origin(f, t), values, signs, count);
        pm_free(values);
        pm_free(signs);
    }
    pm_tensor_file_close(&f);
}

/* ---- cases ------------------------------------------------------------------------------- */

static void update(struct pm_calls *c, void *ctx)
{
    static const uint32_t finite = 1;

    (void)ctx;
    pm_calls_layer_updates(c, pm_calls_constant(c, "finite", &finite, PM_SHAPE1(1), PM_U32));
}

static void run_case(void **state)
{
    struct golden g;
    struct pm_heads heads = { 0 };
    struct pm_variables *v = NULL;
    struct pm_plan *plan = NULL;

    load(&g, *state);
    struct pm_net *net = build(&g, &heads);
    if (pm_variables_create(device, net, g.step != NULL, NULL, &v) || pm_variables_allocate(v))
        fail_msg("%s", pm_error_text());
    fill(&g, v);
    const char *outputs[] = { pm_heads_main(&heads)->name, NULL };
    const struct pm_plan_options o = {
        .train = g.step != NULL, .loss_share = 1, .micro_batches = 1, .outputs = outputs,
        .update = g.step ? update : NULL, .slots = 1, .name = g.name,
    };
    if (pm_plan_create(net, device, v, &o, &plan) || pm_plan_load(plan))
        fail_msg("%s", pm_error_text());
    fill_inputs(&g, plan);
    if (g.step)
        *pm_plan_step(plan, 0) = (struct pm_step){ .loss_scale = 1 };
    if (pm_plan_submit(plan, 0) || pm_plan_wait(plan, 0))
        fail_msg("%s", pm_error_text());
    if (g.step) {
        struct step s = { .g = &g };
        compare_loss(&s, (float)pm_plan_loss(plan, 0));
        compare_variables(&s, v);
        print_message("%s: %d tensors of a step, %d wrong, worst %.2g of its bound (%s)\n", g.name,
                      s.compared, s.wrong, s.worst, s.worst_name);
        assert_int_equal(s.compared, cJSON_GetArraySize(g.step));
        assert_int_equal(s.wrong, 0);
    } else {
        compare_logits(&g, pm_plan_output(plan, 0, pm_heads_main(&heads)->name, 0));
    }
    pm_plan_destroy(&plan);
    pm_variables_destroy(&v);
    pm_net_destroy(&net);
    cJSON_Delete(g.root);
}

static int open_cpu(void)
{
    const struct pm_device_options options = { 0 };
    struct pm_device_info *list;
    size_t count, index;
    int err = pm_device_list(&list, &count);

    if (err)
        return err;
    err = pm_device_find(list, count, "cpu", "torch_nets_test", &index);
    if (!err)
        err = pm_device_open(&list[index], &options, &device);
    pm_free(list);
    return err;
}

int main(int argc, char **argv)
{
    static char *quick[] = { "resnet18", "resnet18_step", "mobilenet_v2", "mobilenet_v2_step",
                             "mobilenet_v3_small", "timm_mobilenetv3_large_100" };
    char **names = argc > 1 ? argv + 1 : quick;
    size_t count = argc > 1 ? (size_t)argc - 1 : PM_COUNT(quick);
    struct CMUnitTest *tests = pm_malloc(count * sizeof *tests);

    if (open_cpu()) {
        fprintf(stderr, "%s\n", pm_error_text());
        pm_free(tests);
        return 1;
    }
    for (size_t i = 0; i < count; i++)
        tests[i] = (struct CMUnitTest){ names[i], run_case, NULL, NULL, names[i] };
    int code = _cmocka_run_group_tests("torch_nets", tests, count, NULL, NULL);
    pm_device_close(&device);
    pm_free(tests);
    return code;
}
