/* Verification covers every kernel of the program. On every driver it finds each kind of wrong
 * kernel, in a row made for this test and in the program's own shaders with changed
 * instructions. Correct kernels pass. Verdicts are stored, and a damaged file counts as no
 * verdicts. */
#include "device/drivers.h"
#include "net/tile_device.h"
#include "optim/optimizer.h"

#include <pumice/rng.h>
#include <pumice/train.h>
#include <pumice/verify.h>
#include "verify/changed_shader.h"

#include "faulty.spv.h"

/* ---- every kernel is verified ------------------------------------------------------------- */

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

static struct pm_caps caps_of(enum pm_class class)
{
    struct pm_caps c = {
        .runs_shaders = true, .device_class = class, .subgroup_size = 32,
        .max_workgroup_size = { 1024, 1024, 64 }, .max_workgroup_invocations = 1024,
        .max_groups = { 65535, 65535, 65535 }, .shared_bytes = 32768,
    };

    if (class == PM_CLASS_LAVAPIPE)
        c.subgroup_size = 8, c.int64 = true;
    if (class == PM_CLASS_SWIFTSHADER)
        c.subgroup_size = 4;
    return c;
}

static void reach_call(const struct pm_planned_call *c)
{
    static struct pm_picks picks;

    for (int class = PM_CLASS_OTHER; class <= PM_CLASS_INTEL; class++) {
        struct pm_caps caps = caps_of((enum pm_class)class);

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

static bool has_kernel(const struct pm_verify *v, const char *name)
{
    size_t count;
    const struct pm_verified *list = pm_verify_results(v, &count);

    for (size_t i = 0; i < count; i++)
        if (strcmp(list[i].kernel, name) == 0)
            return true;
    return false;
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

static void find_case(const char *name, struct pm_verify_source *s)
{
    for (size_t i = 0; pm_verify_case(i, s); i++)
        if (strcmp(s->name, name) == 0)
            return;
    fail_msg("no case %s", name);
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

/* ---- a row with planted faults ------------------------------------------------------------- */

static const struct pm_device_info *current;

struct faulty_params { int count, taps, accumulate; };
static int fault;

static void faulty_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    const struct faulty_params *p = a->params;
    const float *x = a->buf[0], *w = a->buf[1];
    float *y = a->buf[2];
    int *z = a->buf[3];

    for (size_t i = begin; i < end; i++) {
        float sum = 0;

        for (int k = 0; k < p->taps; k++)
            sum += x[i + (size_t)k] * w[k];
        y[i] = p->accumulate ? y[i] + sum : sum;
        z[i] = 3 * (int)i;
    }
}

static bool faulty_pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    (void)caps, (void)params;
    pm_pick_elements("test_faulty", 64, count, out);
    out->variant = level == 0 ? "fast" : "plain";
    out->d[0].spec[3] = level == 0 ? (uint32_t)fault : 0;
    out->d[0].specs = 4;
    return level < 2;
}

static const struct pm_kernel faulty = {
    .name = "test_faulty", .bufs = "r:x r:w u:y w:z", .cpu = faulty_cpu, .pick = faulty_pick,
    .params_size = sizeof(struct faulty_params),
    .accumulate = offsetof(struct faulty_params, accumulate) + 1,
};
static const struct pm_shader faulty_shaders[] = {
    { "test_faulty", spv_faulty, sizeof spv_faulty }, { 0 },
};

static struct vk_device *open_with(const struct pm_shader *shaders)
{
    struct vk_device *d = open_device(current);

    d->pipelines.extra = shaders;
    return d;
}

/* A sum of 576 random terms; wrong[f] is the shader code for fault f. */
static void test_faults(void **state)
{
    enum { COUNT = 1000, TAPS = 576, X = COUNT + TAPS };
    static const char *const wrong[] = {
        NULL, "y[499] of 1000 is ", "y[", "y[", "y[", "accumulating", "y[0] of 1000 is nan",
        "writes 0 bytes after the end of its buffer y", "changes its input x",
        "y[999] of 1000 is nan", "z differs at byte 3996",
    };
    static float x[X], w[TAPS];
    static const struct faulty_params p = { COUNT, TAPS, 0 };
    static float y[COUNT];
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    const struct pm_verify_call call = {
        .kernel = &faulty, .label = "window", .count = COUNT, .params = &p,
        .buf = { { PM_F32, sizeof x, x }, { PM_F32, sizeof w, w }, { PM_F32, sizeof y, y },
                 { PM_I32, sizeof y, NULL } },
    };

    (void)state;
    for (size_t i = 0; i < X; i++)
        x[i] = (float)pm_rng_normal(&r);
    for (size_t i = 0; i < TAPS; i++)
        w[i] = (float)pm_rng_normal(&r);
    for (fault = 0; fault < (int)PM_COUNT(wrong); fault++) {
        struct vk_device *d = open_with(faulty_shaders);
        struct pm_verify *v = NULL;
        const struct pm_verified *list;
        size_t count;

        ok(pm_verify_open(&d->base, &v));
        ok(pm_verify_call(v, &call));
        list = pm_verify_results(v, &count);
        assert_int_equal(count, 2);
        assert_string_equal(list[0].variant, "fast");
        if (list[0].verdict != (wrong[fault] ? PM_VERDICT_WRONG : PM_VERDICT_OK))
            fail_msg("fault %d: verdict %d, %s", fault, list[0].verdict, list[0].why);
        if (wrong[fault])
            assert_contains(list[0].why, wrong[fault]);
        if (list[1].verdict != PM_VERDICT_OK || list[1].worst > 0.5)
            fail_msg("the right variant at %g of the bound: %s", list[1].worst, list[1].why);
        pm_verify_close(&v);
        close_device(d);
    }
    fault = 0;
}

/* ---- changed instructions ------------------------------------------------------------------ */

/* Each changed shader fails in its case; all other variants pass. */
static void test_changed_shaders(void **state)
{
    static const struct {
        const char *shader, *kernel, *variant, *of_case;
        enum pm_recompute recompute;
    } changes[] = {
        { "add2x4", "add2", "add2x4", "merges_four" },
        { "multiply_sum", "multiply_sum", "multiply_sum", "merges_odd" },
        { "conv2d_s", "conv2d_fwd", "s64x64x16", "convolution_stem" },
        { "conv2d_filter_s", "conv2d_bwd_filter", "s64x64x16", "convolution_stem" },
        { "conv2d_filter_s", "conv2d_bwd_filter", "s64x64x16_rolled_last", "convolutions_wide" },
        { "conv2d_s", "conv2d_bwd_data", "s64x64x16_transposing", "convolutions_transposing" },
        { "conv2d_s", "conv2d_bwd_data", "s64x64x16_transposing", "convolutions_wide",
          PM_RECOMPUTE_HALF }, /* such a plan keeps no transposed weights */
        { "depthwise_bwd_data", "depthwise_bwd_data", "strips", "depthwise" },
        { "local_response_norm_bwd", "local_response_norm_bwd", "local_response_norm_bwd",
          "neighbours" },
        { "softmax_cross_entropy_rows", "softmax_cross_entropy_rows", "softmax_cross_entropy_rows",
          "neighbours" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(changes); i++) {
        const struct pm_shader *real = shader_named(changes[i].shader);
        uint32_t *words = changed_shader(real);
        const struct pm_shader table[] = { { real->name, words, real->bytes }, { 0 } };
        struct vk_device *d = open_with(table);
        struct pm_verify *v = NULL;
        struct pm_verify_source s;
        const struct pm_verified *list;
        bool found = false;
        size_t count;

        find_case(changes[i].of_case, &s);
        s.options.recompute = changes[i].recompute;
        ok(pm_verify_open(&d->base, &v));
        pm_verify_want(v, changes[i].kernel, changes[i].variant);
        ok(pm_verify_source(v, &s));
        assert_int_equal(pm_verify_lacks(v), 0);
        list = pm_verify_results(v, &count);
        for (size_t k = 0; k < count; k++)
            if (strcmp(list[k].kernel, changes[i].kernel) == 0)
                found = list[k].verdict == PM_VERDICT_WRONG;
        if (!found)
            fail_msg("%s with changed instructions passes for right", changes[i].shader);
        pm_verify_close(&v);
        close_device(d);
        pm_free(words);
    }
}

/* A software driver needs minutes to compile the tiles for GPUs. Some of the changed shaders
 * above are such tiles, and `pumice verify` runs them all. */
static void avoid_gpu_tiles(struct vk_device *d)
{
    static const char *const kernels[] = { "conv2d_fwd", "conv2d_bwd_data", "conv2d_bwd_filter" };
    static const char *const forms[] = { "", "_last", "_two", "_transposing" };

    for (size_t i = 0; i < PM_COUNT(kernels) * PM_COUNT(forms) * 2; i++) {
        char name[64];

        snprintf(name, sizeof name, "s64x64x16%s%s", i % 2 ? "_rolled" : "",
                 forms[i / 2 % PM_COUNT(forms)]);
        pm_device_avoid(&d->base, kernels[i / 2 / PM_COUNT(forms)], name);
    }
}

/* Correct kernels pass, with errors far below the bound. */
static void test_right(void **state)
{
    static const char *const names[] = { "merges_odd", "softmaxes" };
    struct vk_device *d = open_with(NULL);
    struct pm_verify *v = NULL;
    const struct pm_verified *list;
    size_t count;

    (void)state;
    avoid_gpu_tiles(d);
    ok(pm_verify_open(&d->base, &v));
    for (size_t i = 0; i < PM_COUNT(names); i++) {
        struct pm_verify_source s;

        find_case(names[i], &s);
        ok(pm_verify_source(v, &s));
    }
    list = pm_verify_results(v, &count);
    assert_true(count > 25);
    for (size_t i = 0; i < count; i++)
        if (list[i].verdict == PM_VERDICT_WRONG || list[i].worst > 0.5 || list[i].values == 0)
            fail_msg("%s, variant %s: %g of the bound, %llu values, %s", list[i].kernel,
                     list[i].variant, list[i].worst, (unsigned long long)list[i].values,
                     list[i].why);
    pm_verify_close(&v);
    close_device(d);
}

/* A variant that the device avoids is not run, and is no fault; the next variant runs. */
static void test_avoided(void **state)
{
    struct vk_device *d = open_with(NULL);
    struct pm_verify *v = NULL;
    struct pm_verify_source s;
    const struct pm_verified *list;
    size_t count;

    (void)state;
    avoid_gpu_tiles(d);
    pm_device_avoid(&d->base, "add2", "add2x4");
    find_case("merges_four", &s);
    ok(pm_verify_open(&d->base, &v));
    ok(pm_verify_source(v, &s));
    assert_true(has_kernel(v, "add2"));
    list = pm_verify_results(v, &count);
    for (size_t i = 0; i < count; i++)
        assert_string_not_equal(list[i].variant, "add2x4");
    pm_verify_close(&v);
    close_device(d);
}

/* ---- stored verdicts ------------------------------------------------------------------------ */

static char *only_file(const char *folder)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_str pattern = { 0 };
    char **paths, *path;
    size_t count;

    pm_str_add(&pattern, "%s/pumice/verified-*.txt", folder);
    ok(pm_glob(a, pattern.text, &paths, &count));
    assert_int_equal(count, 1);
    path = pm_strdup(paths[0]);
    pm_str_free(&pattern);
    pm_arena_destroy(&a);
    return path;
}

static void verify_one(struct vk_device *d, const char *kernel, const char *variant,
                       struct pm_verdicts *known)
{
    struct pm_verify *v = NULL;
    struct pm_verify_source s;

    find_case("merges_four", &s);
    ok(pm_verify_open(&d->base, &v));
    pm_verify_want(v, kernel, variant);
    ok(pm_verify_source(v, &s));
    pm_verdicts_save(known, v);
    pm_verify_close(&v);
}

static void expect_known(struct vk_device *d, bool add2, bool concat)
{
    struct pm_verdicts *k = pm_verdicts_load(&d->base);

    assert_int_equal(pm_verdicts_find(k, "add2", "add2x4") != NULL, add2);
    assert_int_equal(pm_verdicts_find(k, "concat_fwd", "concat_fwd4") != NULL, concat);
    pm_verdicts_free(&k);
}

static void test_memory(void **state)
{
    const struct pm_shader *real = shader_named("add2x4");
    uint32_t *words = changed_shader(real);
    const struct pm_shader table[] = { { real->name, words, real->bytes }, { 0 } };
    char *folder = make_folder(), *path, *text;
    const char *before = getenv("XDG_CACHE_HOME");
    char *saved = before ? pm_strdup(before) : NULL;
    struct vk_device *d, *other;
    struct pm_verdicts *first, *second;
    const struct pm_verified *r;
    size_t size;

    (void)state;
    setenv("XDG_CACHE_HOME", folder, 1);
    d = open_with(table);
    expect_known(d, false, false);
    first = pm_verdicts_load(&d->base); /* two processes that load before either has written */
    second = pm_verdicts_load(&d->base);
    verify_one(d, "add2", "add2x4", first);
    verify_one(d, "concat_fwd", "concat_fwd4", second);
    pm_verdicts_free(&first);
    pm_verdicts_free(&second);
    expect_known(d, true, true);
    first = pm_verdicts_load(&d->base);
    r = pm_verdicts_find(first, "add2", "add2x4");
    assert_int_equal(r->verdict, PM_VERDICT_WRONG);
    assert_contains(r->why, "on the CPU; the tolerance is");
    assert_true(r->values > 0 && r->calls == 1 && r->worst > 1);
    assert_int_equal(pm_verdicts_find(first, "concat_fwd", "concat_fwd4")->verdict, PM_VERDICT_OK);
    pm_verdicts_free(&first);
    other = open_with(NULL); /* other shaders, as in another build */
    expect_known(other, false, false);
    close_device(other);
    path = only_file(folder);
    ok(pm_file_read(path, &text, &size));
    for (size_t i = 3; i < size; i += 41) { /* flips one bit anywhere */
        text[i] ^= 4;
        ok(pm_file_write(path, text, size));
        expect_known(d, false, false);
        text[i] ^= 4;
    }
    for (size_t n = 0; n < size; n += 61) { /* cuts the file short */
        ok(pm_file_write(path, text, n));
        expect_known(d, false, false);
    }
    first = pm_verdicts_load(&d->base);
    verify_one(d, "add2", "add2x4", first); /* written again */
    pm_verdicts_free(&first);
    expect_known(d, true, false);
    setenv("XDG_CACHE_HOME", "/dev/null/nowhere", 1); /* without a folder for the cache nothing
                                                       * fails */
    first = pm_verdicts_load(&d->base);
    verify_one(d, "add2", "add2x4", first);
    assert_non_null(pm_verdicts_find(first, "add2", "add2x4"));
    pm_verdicts_free(&first);
    close_device(d);
    if (saved)
        setenv("XDG_CACHE_HOME", saved, 1);
    pm_free(saved);
    pm_free(words);
    pm_free(text);
    pm_free(path);
    drop_folder(folder);
}

static void test_no_messages(void **state)
{
    (void)state;
    assert_int_equal(pm_device_messages(), 0);
}

int main(void)
{
    const struct CMUnitTest once[] = { cmocka_unit_test(test_everything),
                                       cmocka_unit_test(test_limit) };
    const struct CMUnitTest each[] = {
        cmocka_unit_test(test_faults), cmocka_unit_test(test_changed_shaders),
        cmocka_unit_test(test_right),  cmocka_unit_test(test_avoided),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_no_messages),
    };
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed;
    char *cache = make_folder();

    setenv("XDG_CACHE_HOME", cache, 1);
    use_software_drivers();
    failed = cmocka_run_group_tests_name("everything", once, NULL, NULL);
    ok(pm_device_list(&list, &count));
    for (size_t i = 0; i < count; i++) {
        current = &list[i];
        if (!current->caps.runs_shaders || !current->usable)
            continue;
        print_message("%s: %s\n", current->address, current->name);
        failed += cmocka_run_group_tests_name(current->name, each, NULL, NULL);
    }
    pm_free(list);
    drop_folder(cache);
    return failed ? 1 : 0;
}
