/* The cases of the verification reach every layer, shader and optimizer of the program. After the
 * limit in time no call runs. */
#include "device/class_caps.h"
#include "device/drivers.h"
#include "net/tile_device.h"
#include "optim/optimizer.h"
#include "verify/find_case.h"

#include <pumice/train.h>

enum { MOST = 512 };
static const char *shaders_reached[MOST];
static size_t shaders_count;
static char layers_reached[128];

static void reach_shader(const char *name)
{
    for (size_t i = 0; i < shaders_count; i++)
        if (strcmp(shaders_reached[i], name) == 0)
            return;
    assert_true(shaders_count < MOST);
    shaders_reached[shaders_count++] = name;
}

static void reach_call(const struct pm_planned_call *c)
{
    static struct pm_picks picks;

    for (int class = PM_CLASS_OTHER; class <= PM_CLASS_INTEL; class++) {
        struct pm_caps caps = class_caps((enum pm_class)class);

        if (!c->kernel->pick) {
            reach_shader(c->kernel->shader ? c->kernel->shader : c->kernel->name);
            continue;
        }
        for (int level = 0; level < 32; level++) {
            memset(&picks, 0, sizeof picks);
            if (!c->kernel->pick(&caps, c->params, c->count, level, &picks))
                break;
            for (int i = 0; i < picks.count; i++)
                reach_shader(picks.d[i].shader);
        }
    }
}

/* Reaches the layers and shaders of the source's plan on a device. If v is not NULL, each of its
 * kernels must be among those that v has run. */
static void reach_source(const struct pm_verify_source *s, struct pm_device *d,
                         const struct pm_verify *v)
{
    struct pm_net *net = NULL;
    struct pm_variables *vars = NULL;
    struct pm_plan *plan = NULL;
    const struct pm_planned_call *calls;
    size_t count, layers;
    const struct pm_layer *const *all = pm_layers(&layers);

    ok(s->build(s->ctx, s->batch, s->height, s->width, &net));
    for (int i = 0; i < net->count; i++)
        for (size_t k = 0; k < layers; k++)
            if (net->nodes[i]->layer == all[k])
                layers_reached[k] = 1;
    ok(pm_variables_create(d, net, true, s->slots, &vars));
    pm_variables_keep_averages(vars);
    ok(pm_plan_create(net, d, vars, &s->options, &plan));
    calls = pm_plan_calls(plan, &count);
    for (size_t i = 0; i < count; i++) {
        reach_call(&calls[i]);
        if (v && !has_kernel(v, calls[i].kernel->name))
            fail_msg("%s is in a case but was not verified", calls[i].kernel->name);
    }
    pm_plan_destroy(&plan);
    pm_variables_destroy(&vars);
    pm_net_destroy(&net);
}

static struct pm_device *open_cpu(void)
{
    struct pm_device_info *list;
    size_t count, index;
    struct pm_device *d = NULL;

    ok(pm_device_list(&list, &count));
    ok(pm_device_find(list, count, "cpu", "test", &index));
    ok(pm_device_open(&list[index], NULL, &d));
    pm_free(list);
    return d;
}

static void on_progress(void *ctx, double done)
{
    double *last = ctx;

    assert_true(done > *last && done <= 1);
    *last = done;
}

/* A layer, shader or optimizer that pm_verify_all does not reach fails here, by name. The CPU
 * compared with itself agrees bit for bit, also in place. */
static void test_everything(void **state)
{
    struct pm_device *cpu = open_cpu();
    struct tile_device tiles = tile_device(false);
    struct pm_verify *v = NULL;
    struct pm_verify_source s;
    size_t count, layers, optimizers;
    double done = 0;
    const struct pm_layer *const *all = pm_layers(&layers);
    const struct pm_optimizer *const *rows = pm_optimizers(&optimizers);
    const struct pm_verified *list;

    (void)state;
    ok(pm_verify_open(cpu, &v));
    ok(pm_verify_all(v, on_progress, &done));
    assert_true(done == 1);
    list = pm_verify_results(v, &count);
    for (size_t i = 0; i < count; i++)
        if (list[i].verdict != PM_VERDICT_OK || list[i].worst > 0)
            fail_msg("%s on the CPU beside itself: %s", list[i].kernel, list[i].why);
    for (size_t i = 0; pm_verify_case(i, &s); i++) {
        reach_source(&s, cpu, v);
        reach_source(&s, &tiles.base, NULL); /* plans for GPUs have further calls */
    }
    find_case("normalised", &s); /* the case on which optimizers are tested */
    for (size_t i = 0; i < 2 * optimizers; i++) {
        const struct pm_optimizer *o = rows[i / 2];
        char cfg[64];
        struct pm_update u = { .optimizer = o, .cfg = cfg, .layers = true, .averages = true };

        pm_opts_defaults(o->opts, cfg, NULL);
        if (i % 2 && o->other)
            ok(pm_opts_parse_text(o->opts, o->other, cfg, NULL, o->name));
        s.options.update = pm_update_append;
        s.options.update_ctx = &u;
        s.slots = pm_optimizer_slots(o, cfg);
        reach_source(&s, cpu, v);
    }
    for (size_t i = 0; i < layers; i++)
        if (!layers_reached[i] && all[i]->forward)
            fail_msg("layer %s is in no case of src/verify/cases.c", all[i]->name);
    for (const struct pm_shader *p = pm_shader_table; p->name; p++) {
        bool reached = strstr(p->name, "_peak") != NULL; /* kernels of bench that measure the
                                                          * device's peak */

        for (size_t i = 0; i < shaders_count; i++)
            reached |= strcmp(shaders_reached[i], p->name) == 0;
        if (!reached)
            fail_msg("shader %s is run by no case of src/verify/cases.c on any class of device",
                     p->name);
    }
    pm_verify_close(&v);
    pm_device_close(&cpu);
}

static void no_progress(void *ctx, double done)
{
    (void)ctx;
    fail_msg("progress %g after the limit", done);
}

/* After the limit no call runs; a limit far away changes nothing. */
static void test_limit(void **state)
{
    struct pm_device *cpu = open_cpu();
    struct pm_verify *v = NULL;
    struct pm_verify_source s;
    size_t count;

    (void)state;
    ok(pm_verify_open(cpu, &v));
    pm_verify_limit(v, -1);
    assert_false(pm_verify_is_cut(v));
    ok(pm_verify_all(v, no_progress, NULL));
    assert_true(pm_verify_is_cut(v));
    pm_verify_results(v, &count);
    assert_int_equal(count, 0);
    pm_verify_close(&v);
    find_case("merges_odd", &s);
    ok(pm_verify_open(cpu, &v));
    pm_verify_limit(v, 3600);
    ok(pm_verify_source(v, &s));
    assert_true(has_kernel(v, "add2"));
    assert_false(pm_verify_is_cut(v));
    pm_verify_close(&v);
    pm_device_close(&cpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_everything),
        cmocka_unit_test(test_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
