/* Optimizers against vectors of two steps, computed independently in double precision, on the
 * CPU and on every Vulkan device. Clipping, weight decay, freezing and the finite flag are
 * compared with values worked out by hand. nadam, adamw, lamb and a centered rmsprop are also
 * compared with references in double precision over layers of several thousand weights. */
#include "optim/optimizer.h"

#include <pumice/rng.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

/* Two variables of one float each, w/a and w/b, and a plan that holds only the update. */
struct bench {
    struct pm_device *device;
    struct pm_net *net;
    struct pm_variables *v;
    struct pm_plan *plan;
    char cfg[64];
    struct pm_update update;
};

static struct pm_device_info *devices;
static size_t device_count;

static void check(int err)
{
    if (err < 0)
        fail_msg("%s", pm_error_text());
}

static float frozen_b(const char *variable, void *ctx)
{
    (void)ctx;
    return strncmp(variable, "b", 1) == 0 ? 0 : 2;
}

/* The net is still empty. */
static void start_bench(struct bench *b, const struct pm_device_info *info, const char *optimizer,
                        const char *options, struct pm_update update)
{
    struct pm_arena *a = pm_arena_create();

    memset(b, 0, sizeof *b);
    b->update = update;
    b->update.optimizer = pm_optimizer_find(optimizer);
    b->update.cfg = b->cfg;
    check(pm_opts_parse_text(b->update.optimizer->opts, options, b->cfg, a, optimizer));
    check(pm_device_open(info, NULL, &b->device));
    b->net = pm_net_create();
    pm_arena_destroy(&a);
}

static void make_plan(struct bench *b, uint64_t seed)
{
    check(b->net->error);
    check(pm_variables_create(b->device, b->net, true,
                              pm_optimizer_slots(b->update.optimizer, b->cfg), &b->v));
    check(pm_variables_allocate(b->v));
    check(pm_optimizer_init(b->update.optimizer, b->cfg, b->v, seed));
    check(pm_plan_create(b->net, b->device, b->v, &(struct pm_plan_options){
        .name = "update", .update_only = true, .update = pm_update_append,
        .update_ctx = &b->update, .slots = 1 }, &b->plan));
    check(pm_plan_load(b->plan));
}

static void open_bench(struct bench *b, const struct pm_device_info *info, const char *optimizer,
                       const char *options, struct pm_update update)
{
    struct pm_node *x;

    start_bench(b, info, optimizer, options, update);
    x = pm_net_input(b->net, "x", PM_SHAPE2(1, 1), PM_F32);
    pm_net_add(b->net, "a", x, "fully_connected units=1 bias=false");
    pm_net_add(b->net, "b", x, "fully_connected units=1 bias=false");
    make_plan(b, 0);
    for (int i = 0; i < 2; i++)
        check(pm_variables_write(b->v, i, -1, &(float){ 1 }));
}

static void close_bench(struct bench *b)
{
    pm_plan_destroy(&b->plan);
    pm_variables_destroy(&b->v);
    pm_net_destroy(&b->net);
    pm_device_close(&b->device);
}

static void step(struct bench *b, uint32_t n, float ga, float gb)
{
    double beta1 = 0, beta2 = 0;

    if (b->update.optimizer->betas)
        b->update.optimizer->betas(b->cfg, &beta1, &beta2);
    check(pm_buffer_write(b->device, b->v->grads, b->v->offset[0], &ga, sizeof ga));
    check(pm_buffer_write(b->device, b->v->grads, b->v->offset[1], &gb, sizeof gb));
    *pm_plan_step(b->plan, 0) = (struct pm_step){
        .step = n, .lr = 0.1f, .beta1_power = (float)pow(beta1, n + 1),
        .beta2_power = (float)pow(beta2, n + 1) };
    check(pm_plan_submit(b->plan, 0));
    check(pm_plan_wait(b->plan, 0));
}

static float value(struct bench *b, int i)
{
    float w;

    check(pm_variables_read(b->v, i, -1, &w));
    return w;
}

/* The tolerance of 1e-6 is 8 roundings: some ten float operations act on values near 1. Adam
 * divides by 1 - beta2^t = 1e-3. This difference of numbers near 1 has a relative error of 3e-5,
 * half of that after the root, and it scales a change of 0.1. */
static const struct vector {
    const char *optimizer, *options;
    double w1, w2, tolerance;
} vectors[] = {
    { "sgd", "", .95, .975, 1e-6 },
    { "momentum", "momentum=0.9", .95, .93, 1e-6 },
    { "momentum", "momentum=0.9 nesterov=true", .905, .912, 1e-6 },
    { "rmsprop", "decay=0.9 momentum=0.9 epsilon=1", .963962501, .949965261, 1e-6 },
    { "rmsprop", "decay=0.9 momentum=0.9 epsilon=1e-10", .948012476, .928521258, 1e-6 },
    { "adagrad", "", .915484575, .954409522, 1e-6 },
    { "adadelta", "", .950309601, .97527689, 1e-6 },
    { "ftrl", "", .380962091, .419887038, 1e-6 },
    { "ftrl", "l1=0.01 l2=0.01", .377993929, .416798041, 1e-6 },
    { "ftrl", "l1=100", 0, 0, 0 },
    { "ftrl", "power=-0.75", .499324948, .547895388, 1e-6 },
    { "adam", "epsilon=1", .998443472, .997981011, 3e-6 },
    { "adam", "epsilon=1e-8", .900000063, .873366374, 3e-6 },
    /* TensorFlow's ResourceApplyAdam with use_nesterov, in double precision. Its first step is 1.9
     * times adam's, and so is the tolerance. */
    { "nadam", "epsilon=1", .997042597, .997204458, 6e-6 },
    { "nadam", "epsilon=1e-8", .81000012, .819321911, 6e-6 },
};

static void test_vectors(void **state)
{
    (void)state;
    for (size_t d = 0; d < device_count; d++)
        for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
            const struct vector *v = &vectors[i];
            struct bench b;

            if (!devices[d].usable)
                continue;
            open_bench(&b, &devices[d], v->optimizer, v->options, (struct pm_update){ 0 });
            step(&b, 0, 0.5f, 0);
            if (fabs(value(&b, 0) - v->w1) > v->tolerance)
                fail_msg("%s, %s %s: w1 %.9g, not %.9g", devices[d].name, v->optimizer, v->options,
                         value(&b, 0), v->w1);
            step(&b, 1, -0.25f, 0);
            if (fabs(value(&b, 0) - v->w2) > v->tolerance)
                fail_msg("%s, %s %s: w2 %.9g, not %.9g", devices[d].name, v->optimizer, v->options,
                         value(&b, 0), v->w2);
            close_bench(&b);
        }
}

static void test_clipping(void **state)
{
    (void)state;
    for (size_t d = 0; d < device_count; d++) {
        const float *result, *norms;
        struct bench b;

        if (!devices[d].usable)
            continue;
        /* The norm of (3, 4) is 5; clipped to 1 the step is lr * (0.6, 0.8). */
        open_bench(&b, &devices[d], "sgd", "", (struct pm_update){ .clip_norm = 1 });
        step(&b, 0, 3, 4);
        result = pm_plan_output(b.plan, 0, "result", 0);
        norms = pm_plan_output(b.plan, 0, "norms", 0);
        assert_true(fabs(result[PM_RESULT_NORM] - 5) < 1e-5);
        assert_true(fabs(norms[0] - 3) < 1e-5 && fabs(norms[1] - 4) < 1e-5);
        assert_true(fabs(value(&b, 0) - (1 - 0.06)) < 1e-6);
        assert_true(fabs(value(&b, 1) - (1 - 0.08)) < 1e-6);
        close_bench(&b);
        /* Each variable clipped to 2: (2, 0.5), norm sqrt(4.25). */
        open_bench(&b, &devices[d], "sgd", "", (struct pm_update){ .clip_variable_norm = 2 });
        step(&b, 0, 3, 0.5f);
        result = pm_plan_output(b.plan, 0, "result", 0);
        assert_true(fabs(result[PM_RESULT_NORM] - sqrt(4.25)) < 1e-5);
        assert_true(fabs(value(&b, 0) - 0.8) < 1e-6 && fabs(value(&b, 1) - 0.95) < 1e-6);
        close_bench(&b);
    }
}

static void test_decay_and_multipliers(void **state)
{
    (void)state;
    for (size_t d = 0; d < device_count; d++) {
        const float *result;
        struct bench b;

        if (!devices[d].usable)
            continue;
        /* a: (0.5 + 0.1 * 1) * 2 = 1.2; b is frozen and ignores its gradient. The L2 value
         * counts both: 0.05 * (1 + 1). */
        open_bench(&b, &devices[d], "sgd", "", (struct pm_update){ .weight_decay = 0.1f,
                                                                   .multiplier = frozen_b });
        step(&b, 0, 0.5f, NAN);
        result = pm_plan_output(b.plan, 0, "result", 0);
        assert_int_equal(*(const uint32_t *)pm_plan_output(b.plan, 0, "flag", 0), 1);
        assert_true(fabs(result[PM_RESULT_L2] - 0.1) < 1e-6);
        assert_true(fabs(value(&b, 0) - 0.88) < 1e-6);
        assert_true(value(&b, 1) == 1);
        close_bench(&b);
    }
}

/* A frozen variable does not change, whatever its slots hold from earlier training. */
static void test_frozen_stays(void **state)
{
    size_t optimizers;
    const struct pm_optimizer *const *rows = pm_optimizers(&optimizers);

    (void)state;
    for (size_t d = 0; d < device_count; d++)
        for (size_t o = 0; o < optimizers && devices[d].usable; o++) {
            struct bench b;

            open_bench(&b, &devices[d], rows[o]->name, "", (struct pm_update){
                .weight_decay = 0.1f, .multiplier = frozen_b });
            for (int k = 0; k < b.v->slot_count; k++)
                check(pm_variables_write(b.v, 1, k, &(float){ 0.7f }));
            step(&b, 0, 0.5f, 0.5f);
            step(&b, 1, 0.5f, 0.5f);
            if (value(&b, 0) == 1 || value(&b, 1) != 1)
                fail_msg("%s on %s: %g and, frozen, %g", rows[o]->name, devices[d].address,
                         (double)value(&b, 0), (double)value(&b, 1));
            close_bench(&b);
        }
}

static void test_not_finite_changes_nothing(void **state)
{
    static const float bad[] = { NAN, INFINITY, -INFINITY };
    size_t optimizers;
    const struct pm_optimizer *const *rows = pm_optimizers(&optimizers);

    (void)state;
    for (size_t d = 0; d < device_count; d++)
        for (size_t o = 0; o < optimizers; o++)
            for (size_t i = 0; i < 3 && devices[d].usable; i++) {
                const char *name = rows[o]->name;
                float slot = 0, before = 0;
                struct bench b;

                open_bench(&b, &devices[d], name, "", (struct pm_update){ 0 });
                if (b.v->slot_count)
                    check(pm_variables_read(b.v, 1, 0, &before));
                step(&b, 0, bad[i], 0.5f);
                assert_int_equal(*(const uint32_t *)pm_plan_output(b.plan, 0, "flag", 0), 0);
                assert_true(value(&b, 0) == 1 && value(&b, 1) == 1);
                if (b.v->slot_count)
                    check(pm_variables_read(b.v, 1, 0, &slot));
                assert_true(slot == before);
                close_bench(&b);
            }
}

/* ---- compared with references ------------------------------------------------------------- */

/* Two layers; the second may be frozen. Weights of 70 x 100, two chunks of 4096 floats, and
 * biases, which are not regularised. */
enum { IN = 70, UNITS = 100, LAYERS = 2, REFERENCE_STEPS = 4 };

struct reference {
    double w[IN * UNITS], m[IN * UNITS], v[IN * UNITS], mg[IN * UNITS];
    size_t count;
    bool regularized, frozen;
};

static const double rate = 0.05, beta1 = 0.9, beta2 = 0.999, tiny = 1e-6, lambda = 0.1;

static void moments(struct reference *r, const float *g)
{
    for (size_t i = 0; i < r->count; i++) {
        r->m[i] = beta1 * r->m[i] + (1 - beta1) * g[i];
        r->v[i] = beta2 * r->v[i] + (1 - beta2) * g[i] * g[i];
    }
}

static void adamw_reference(struct reference *r, const float *g, int t)
{
    double alpha = rate * sqrt(1 - pow(beta2, t)) / (1 - pow(beta1, t));
    double keep = r->regularized && !r->frozen ? 1 - rate * lambda : 1;

    moments(r, g);
    for (size_t i = 0; i < r->count; i++)
        r->w[i] = keep * r->w[i] - alpha * r->m[i] / (sqrt(r->v[i]) + tiny);
}

static void nadam_reference(struct reference *r, const float *g, int t)
{
    double alpha = rate * sqrt(1 - pow(beta2, t)) / (1 - pow(beta1, t));

    for (size_t i = 0; i < r->count; i++) {
        double x = g[i] + (r->regularized && !r->frozen ? lambda * r->w[i] : 0);

        r->m[i] = beta1 * r->m[i] + (1 - beta1) * x;
        r->v[i] = beta2 * r->v[i] + (1 - beta2) * x * x;
        r->w[i] -= alpha * (beta1 * r->m[i] + (1 - beta1) * x) / (sqrt(r->v[i]) + tiny);
    }
}

static void lamb_reference(struct reference *r, const float *g, int t)
{
    double decay = r->regularized && !r->frozen ? lambda : 0, ww = 0, uu = 0, trust = 1;
    double u[IN * UNITS];

    moments(r, g);
    for (size_t i = 0; i < r->count; i++) {
        double mean = r->m[i] / (1 - pow(beta1, t)), square = r->v[i] / (1 - pow(beta2, t));

        u[i] = mean / (sqrt(square) + tiny) + decay * r->w[i];
        ww += r->w[i] * r->w[i];
        uu += u[i] * u[i];
    }
    if (r->regularized && ww > 0 && uu > 0)
        trust = sqrt(ww) / sqrt(uu);
    for (size_t i = 0; i < r->count; i++)
        r->w[i] -= rate * trust * u[i];
}

/* v: mean of squares, starting at 1; m: sum of the steps. */
static void centered_reference(struct reference *r, const float *g, int t)
{
    const double rho = 0.9, mu = 0.5;

    for (size_t i = 0; i < r->count; i++) {
        double x = g[i] + (r->regularized && !r->frozen ? lambda * r->w[i] : 0);

        if (t == 1)
            r->v[i] = 1;
        r->v[i] = rho * r->v[i] + (1 - rho) * x * x;
        r->mg[i] = rho * r->mg[i] + (1 - rho) * x;
        r->m[i] = mu * r->m[i] + rate * x / sqrt(r->v[i] - r->mg[i] * r->mg[i] + tiny);
        r->w[i] -= r->m[i];
    }
}

static float frozen_second(const char *variable, void *ctx)
{
    (void)ctx;
    return strncmp(variable, "b/", 2) == 0 ? 0 : 1;
}

static void open_layers(struct bench *b, const struct pm_device_info *info, const char *optimizer,
                        const char *options)
{
    struct pm_node *x;

    start_bench(b, info, optimizer, options, (struct pm_update){
        .weight_decay = (float)lambda, .multiplier = frozen_second });
    x = pm_net_input(b->net, "x", PM_SHAPE2(1, IN), PM_F32);
    pm_net_add(b->net, "a", x, "fully_connected units=%d", UNITS);
    pm_net_add(b->net, "b", x, "fully_connected units=%d", UNITS);
    make_plan(b, 3);
}

/* Gradients of one step. They are the same on all devices; those of the bias of a are equal for
 * all elements. */
static void make_gradient(const struct pm_variable *v, int t, float *g)
{
    struct pm_rng r = pm_rng_make(5, pm_hash(v->name), (uint32_t)t, 0);

    for (size_t i = 0; i < pm_shape_count(v->shape); i++)
        g[i] = (float)(0.2 * pm_rng_normal(&r) + 0.1);
}

/* The rate contains 1 - beta2^t, a difference of numbers near 1 with a relative error of 3e-5,
 * half of that after the root. It multiplies at most a few times the rate. */
static void compare(struct bench *b, const struct reference *refs, const char *what)
{
    float w[IN * UNITS];

    for (int i = 0; i < b->v->count; i++) {
        check(pm_variables_read(b->v, i, -1, w));
        for (size_t k = 0; k < refs[i].count; k++)
            if (!(fabs(w[k] - refs[i].w[k]) <= REFERENCE_STEPS * 1e-4 * rate))
                fail_msg("%s, %s, %s[%zu]: %.9g, not %.9g", pm_device_get_info(b->device)->name,
                         what, b->v->list[i].name, k, (double)w[k], refs[i].w[k]);
    }
}

static void check_reference(const struct pm_device_info *info, const char *optimizer,
                            const char *options,
                            void (*reference)(struct reference *r, const float *g, int t))
{
    struct reference *refs = pm_calloc(2 * LAYERS, sizeof *refs);
    float g[IN * UNITS], w[IN * UNITS], none[IN * UNITS] = { 0 };
    struct bench b;

    open_layers(&b, info, optimizer, options);
    assert_int_equal(b.v->count, 2 * LAYERS);
    for (int i = 0; i < b.v->count; i++) {
        const struct pm_variable *v = &b.v->list[i];

        refs[i].count = pm_shape_count(v->shape);
        refs[i].regularized = strstr(v->name, "weights") != NULL;
        refs[i].frozen = frozen_second(v->name, NULL) == 0;
        pm_variable_initial(v, 3, w);
        for (size_t k = 0; k < refs[i].count; k++)
            refs[i].w[k] = w[k];
    }
    for (int t = 1; t <= REFERENCE_STEPS; t++) {
        for (int i = 0; i < b.v->count; i++) {
            make_gradient(&b.v->list[i], t, g);
            check(pm_buffer_write(b.device, b.v->grads, b.v->offset[i], g,
                                  refs[i].count * sizeof *g));
            reference(&refs[i], refs[i].frozen ? none : g, t);
        }
        *pm_plan_step(b.plan, 0) = (struct pm_step){
            .step = (uint32_t)t - 1, .lr = (float)rate, .beta1_power = (float)pow(beta1, t),
            .beta2_power = (float)pow(beta2, t) };
        check(pm_plan_submit(b.plan, 0));
        check(pm_plan_wait(b.plan, 0));
    }
    compare(&b, refs, optimizer);
    for (int i = 0; i < b.v->count; i++) {
        pm_variable_initial(&b.v->list[i], 3, w);
        check(pm_variables_read(b.v, i, -1, g));
        assert_int_equal(memcmp(g, w, refs[i].count * sizeof *g) == 0, refs[i].frozen);
    }
    /* Decoupled weight decay does not enter the loss. */
    assert_int_equal(((const float *)pm_plan_output(b.plan, 0, "result", 0))[PM_RESULT_L2] == 0,
                     b.update.optimizer->decoupled);
    close_bench(&b);
    pm_free(refs);
}

static void test_references(void **state)
{
    (void)state;
    for (size_t d = 0; d < device_count; d++) {
        if (!devices[d].usable)
            continue;
        check_reference(&devices[d], "adamw", "epsilon=1e-6", adamw_reference);
        check_reference(&devices[d], "nadam", "epsilon=1e-6", nadam_reference);
        check_reference(&devices[d], "lamb", "", lamb_reference);
        check_reference(&devices[d], "rmsprop",
                        "decay=0.9 momentum=0.5 epsilon=1e-6 centered=true", centered_reference);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_clipping),
        cmocka_unit_test(test_decay_and_multipliers),
        cmocka_unit_test(test_frozen_stays),
        cmocka_unit_test(test_not_finite_changes_nothing),
        cmocka_unit_test(test_references),
    };
    int failed;

    if (pm_device_list(&devices, &device_count) < 0)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_free(devices);
    return failed;
}
