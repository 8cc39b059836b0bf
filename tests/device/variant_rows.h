/* Shared by the tests of the backends that run shaders: rows whose variants cannot all be used, and
 * the checks that a row runs with a variant or cannot be made. */
#ifndef VARIANT_ROWS_H
#define VARIANT_ROWS_H

#include "device/shader_rows.h"

/* ---- checks ------------------------------------------------------------------------- */

/* Runs a program of one call of `row`. It must use the variant `variant` and give the right
 * result. */
static inline void runs_variant(struct pm_device *d, struct pm_buffer *x, struct pm_buffer *y,
                                const struct pm_kernel *row, const int *levels,
                                const char *variant)
{
    struct tile_params p;
    struct pm_bound_call call = tile(row, &p, N, place(x, 0, N), place(y, 0, N));
    struct pm_program_desc desc = { .calls = &call, .calls_count = 1, .slots = 1,
                                    .levels = levels };
    struct pm_program *prog = NULL;
    float *v = ramp_values(N);

    ok(pm_buffer_write(d, x, 0, v, N * sizeof *v));
    ok(pm_buffer_fill(d, y, 0, N * sizeof *v, 0));
    ok(pm_program_create(d, &desc, &prog));
    assert_string_equal(pm_program_variant(prog, 0), variant);
    run_once(prog);
    expect(d, y, N, six_times);
    pm_program_destroy(&prog);
    pm_free(v);
}

/* Such a program must not be made: the result is `want`, and the error has `text` and the row's
 * name. */
static inline void fails_to_make(struct pm_device *d, struct pm_buffer *x, struct pm_buffer *y,
                                 const struct pm_kernel *row, int want, const char *text)
{
    struct tile_params p;
    struct pm_bound_call call = tile(row, &p, N, place(x, 0, N), place(y, 0, N));
    struct pm_program_desc desc = { .calls = &call, .calls_count = 1, .slots = 1 };
    struct pm_program *prog = NULL;

    assert_int_equal(pm_program_create(d, &desc, &prog), want);
    assert_contains(pm_error_text(), text);
    assert_contains(pm_error_text(), row->name);
}

/* ---- rows --------------------------------------------------------------------------- */

/* Level 0 is impossible on any device: its workgroup or its shared memory is too large. */
static bool pick_greedy(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const bool more = pick_tile(caps, params, count, level, out);

    if (level == 0) {
        out->variant = "greedy";
        out->d[0].spec[0] = 1 << 20;
    }
    return more;
}
static const struct pm_kernel row_greedy = {
    .name = "test_greedy", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params), .pick = pick_greedy,
};

static bool pick_shared(const struct pm_caps *caps, const void *params, size_t count, int level,
                        struct pm_picks *out)
{
    const bool more = pick_tile(caps, params, count, level, out);

    if (level == 0)
        out->d[0].spec[3] = 1 << 12;
    return more;
}
static const struct pm_kernel row_shared = {
    .name = "test_shared", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params), .pick = pick_shared,
};

static bool pick_crowd(const struct pm_caps *caps, const void *params, size_t count, int level,
                       struct pm_picks *out)
{
    const bool more = pick_tile(caps, params, count, 0, out);

    out->d[0].groups[1] = caps->max_groups[1] + 1;
    return more && level == 0;
}
static const struct pm_kernel row_crowd = {
    .name = "test_crowd", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params), .pick = pick_crowd,
};

/* A row whose params differ from those of the shader. */
static const struct pm_kernel row_mistaken = {
    .name = "test_mistaken", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params) + 4, .pick = pick_tile,
};

#endif
