/* On every driver the verification finds each kind of wrong kernel, in a row made for this test and
 * in the program's own shaders with changed instructions. Correct kernels pass. Verdicts are
 * stored, and a damaged file counts as no verdicts. */
#include "device/drivers.h"
#include "verify/changed_shader.h"
#include "verify/find_case.h"

#include <pumice/rng.h>
#include <pumice/verify.h>

#include "faulty.spv.h"

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

    d->shared.pipelines.extra = shaders;
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

        ok(pm_verify_open(&d->shared.base, &v));
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

/* Whether the source's training plan keeps transposed weights. */
static bool keeps_copies(struct pm_device *d, const struct pm_verify_source *s,
                         enum pm_recompute recompute)
{
    struct pm_plan_options o = s->options;
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;
    struct pm_net *net;
    bool keeps;

    o.recompute = recompute;
    ok(s->build(s->ctx, s->batch, s->height, s->width, &net));
    ok(pm_variables_create(d, net, true, s->slots, &variables));
    ok(pm_plan_create(net, d, variables, &o, &plan));
    keeps = pm_plan_keeps_copies(plan);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
    return keeps;
}

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
        s.options.no_copies = !keeps_copies(&d->shared.base, &s, changes[i].recompute);
        ok(pm_verify_open(&d->shared.base, &v));
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
        pm_device_avoid(&d->shared.base, kernels[i / 2 / PM_COUNT(forms)], name);
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
    ok(pm_verify_open(&d->shared.base, &v));
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
    pm_device_avoid(&d->shared.base, "add2", "add2x4");
    find_case("merges_four", &s);
    ok(pm_verify_open(&d->shared.base, &v));
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
    ok(pm_verify_open(&d->shared.base, &v));
    pm_verify_want(v, kernel, variant);
    ok(pm_verify_source(v, &s));
    pm_verdicts_save(known, v);
    pm_verify_close(&v);
}

static void expect_known(struct vk_device *d, bool add2, bool concat)
{
    struct pm_verdicts *k = pm_verdicts_load(&d->shared.base);

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
    /* Two processes load before either has written. */
    first = pm_verdicts_load(&d->shared.base);
    second = pm_verdicts_load(&d->shared.base);
    verify_one(d, "add2", "add2x4", first);
    verify_one(d, "concat_fwd", "concat_fwd4", second);
    pm_verdicts_free(&first);
    pm_verdicts_free(&second);
    expect_known(d, true, true);
    first = pm_verdicts_load(&d->shared.base);
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
    first = pm_verdicts_load(&d->shared.base);
    verify_one(d, "add2", "add2x4", first); /* written again */
    pm_verdicts_free(&first);
    expect_known(d, true, false);
    setenv("XDG_CACHE_HOME", "/dev/null/nowhere", 1); /* without a folder for the cache nothing
                                                       * fails */
    first = pm_verdicts_load(&d->shared.base);
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
    const struct CMUnitTest each[] = {
        cmocka_unit_test(test_faults), cmocka_unit_test(test_changed_shaders),
        cmocka_unit_test(test_right),  cmocka_unit_test(test_avoided),
        cmocka_unit_test(test_memory), cmocka_unit_test(test_no_messages),
    };
    struct pm_device_info *list = NULL;
    size_t count = 0;
    int failed = 0;
    char *cache = make_folder();

    setenv("XDG_CACHE_HOME", cache, 1);
    use_software_drivers();
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
