/* Shared by the tests of the backends that run shaders: small kernel rows with their shaders, and
 * functions that build programs from them. */
#ifndef SHADER_ROWS_H
#define SHADER_ROWS_H

#include "base/unit.h"
#include "device/ok.h"
#include "device/pipelines.h"

#include "axpy.spv.h"
#include "optional.spv.h"
#include "tile.spv.h"
#include "wide.spv.h"

static const struct pm_shader test_shaders[] = {
    { "test_axpy", spv_axpy, sizeof spv_axpy },
    { "test_optional", spv_optional, sizeof spv_optional },
    { "test_tile", spv_tile, sizeof spv_tile },
    { "test_wide", spv_wide, sizeof spv_wide },
    { 0 },
};

/* ---- rows --------------------------------------------------------------------------- */

struct axpy_params { int count; float a; };
struct optional_params { int count, has_b; };
struct tile_params { int count, groups_x, groups_y; };
struct wide_params { int count; int add[40]; };

static void no_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    (void)a, (void)begin, (void)end;
}

static double huge_work(const void *params, size_t count)
{
    (void)params, (void)count;
    return 1e15;
}

/* y += a * x */
static const struct pm_kernel row_axpy = {
    .name = "test_axpy", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct axpy_params),
};

/* y += 6 * x, with 64 invocations in a group over three axes; level 1: 8 invocations. */
static bool pick_tile(const struct pm_caps *caps, const void *params, size_t count, int level,
                      struct pm_picks *out)
{
    const struct tile_params *p = params;
    uint32_t size = level == 0 ? 64 : 8;

    (void)caps;
    *out = (struct pm_picks){ .count = 1, .variant = level == 0 ? "wide" : "narrow" };
    out->d[0] = (struct pm_dispatch){
        .shader = "test_tile", .specs = 6, .spec = { size, 1, 1, 3, 0, 0 },
        .groups = { (uint32_t)p->groups_x, (uint32_t)p->groups_y,
                    (uint32_t)(count / (size * (uint32_t)(p->groups_x * p->groups_y))) },
    };
    return level < 2;
}
static const struct pm_kernel row_tile = {
    .name = "test_tile", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params), .pick = pick_tile,
};
static const struct pm_kernel row_tile_long = {
    .name = "test_tile", .bufs = "r:x u:y", .cpu = no_cpu,
    .params_size = sizeof(struct tile_params), .pick = pick_tile, .flops = huge_work,
};

static const struct pm_kernel row_wide = {
    .name = "test_wide", .bufs = "r:x w:y", .cpu = no_cpu,
    .params_size = sizeof(struct wide_params),
};

/* y = x + a + b */
static const struct pm_kernel row_optional = {
    .name = "test_optional", .bufs = "r:x r?:a r:b w:y", .cpu = no_cpu,
    .params_size = sizeof(struct optional_params),
};

/* ---- programs ----------------------------------------------------------------------- */

enum { N = 64 * 64 }; /* floats in most buffers of the tests */

static inline struct pm_place place(struct pm_buffer *b, size_t offset, size_t count)
{
    return (struct pm_place){ b, offset, count * sizeof(float) };
}

/* y += a * x over count floats; *p holds the params. */
static inline struct pm_bound_call axpy(struct axpy_params *p, float a, size_t count,
                                        struct pm_place x, struct pm_place y)
{
    *p = (struct axpy_params){ (int)count, a };
    return (struct pm_bound_call){ .kernel = &row_axpy, .label = "axpy", .count = count,
                                   .params = p, .buf = { x, y } };
}

/* A call of `row`, which runs the shader test_tile; *p holds the params. */
static inline struct pm_bound_call tile(const struct pm_kernel *row, struct tile_params *p,
                                        size_t count, struct pm_place x, struct pm_place y)
{
    *p = (struct tile_params){ (int)count, 2, 4 };
    return (struct pm_bound_call){ .kernel = row, .label = "tile", .count = count, .params = p,
                                   .buf = { x, y } };
}

static inline struct pm_buffer *new_buffer(struct pm_device *d, size_t floats, const float *values)
{
    struct pm_buffer *b = NULL;

    ok(pm_buffer_create(d, floats * sizeof(float), &b));
    if (values)
        ok(pm_buffer_write(d, b, 0, values, floats * sizeof(float)));
    else
        ok(pm_buffer_fill(d, b, 0, floats * sizeof(float), 0));
    return b;
}

static inline void drop_buffer(struct pm_device *d, struct pm_buffer *b)
{
    pm_buffer_destroy(d, &b);
}

/* The values that most buffers start with: small integers. */
static inline float ramp(size_t i)
{
    return (float)(i % 97);
}

/* What row_tile makes of them. */
static inline float six_times(size_t i)
{
    return 6 * ramp(i);
}

/* Free it with pm_free. */
static inline float *ramp_values(size_t count)
{
    float *v = pm_malloc(count * sizeof *v);

    for (size_t i = 0; i < count; i++)
        v[i] = ramp(i);
    return v;
}

static inline struct pm_buffer *ramp_buffer(struct pm_device *d, size_t count)
{
    float *v = ramp_values(count);
    struct pm_buffer *b = new_buffer(d, count, v);

    pm_free(v);
    return b;
}

/* Runs the program once on slot 0 and waits. */
static inline void run_once(struct pm_program *p)
{
    ok(pm_program_submit(p, 0));
    ok(pm_program_wait(p, 0));
}

static inline void expect(struct pm_device *d, struct pm_buffer *b, size_t count,
                          float (*want)(size_t i))
{
    float *got = pm_malloc(count * sizeof *got);

    ok(pm_buffer_read(d, b, 0, got, count * sizeof *got));
    for (size_t i = 0; i < count; i++)
        if (got[i] != want(i))
            fail_msg("element %zu: %g, not %g", i, got[i], want(i));
    pm_free(got);
}

/* Each run adds 2 to y, with `slots` runs under way. The sums must arrive in order, and after run
 * number `warm` nothing may be allocated. */
static inline void replay(struct pm_device *d, int slots, int warm)
{
    enum { REPLAYS = 20 };
    struct pm_buffer *x = new_buffer(d, N, NULL), *y = new_buffer(d, N, NULL);
    struct axpy_params p;
    struct pm_bound_call call = axpy(&p, 2, N, place(x, 0, N), place(y, 0, N));
    struct pm_place in = place(x, 0, N), out = place(y, 0, N);
    size_t after = 1;
    struct pm_program_desc desc = { .name = "replay", .calls = &call, .calls_count = 1, .in = &in,
                                    .in_count = 1, .out = &out, .out_after = &after,
                                    .out_count = 1, .slots = slots };
    struct pm_program *prog = NULL;
    uint64_t allocated = 0;

    ok(pm_program_create(d, &desc, &prog));
    for (int run = 0; run < REPLAYS + slots; run++) {
        const int slot = run % slots, before = run - slots;

        if (before >= 0) {
            const float *got;

            ok(pm_program_wait_out(prog, slot, 0));
            got = pm_program_out(prog, slot, 0);
            for (int i = 0; i < N; i++) /* 2 * (1 + ... + before + 1), and i % 5 each run */
                assert_true(got[i] == (float)((before + 1) * (before + 2) +
                                              2 * (before + 1) * (i % 5)));
            ok(pm_program_wait(prog, slot));
        }
        if (run < REPLAYS) {
            float *v = pm_program_in(prog, slot, 0);

            for (int i = 0; i < N; i++)
                v[i] = (float)(run + 1 + i % 5);
            ok(pm_program_submit(prog, slot));
        }
        if (run == warm)
            allocated = pm_alloc_count();
    }
    assert_int_equal(pm_alloc_count(), allocated);
    pm_program_destroy(&prog);
    drop_buffer(d, x), drop_buffer(d, y);
}

/* How many variants of the shader the device has for this set of present buffers. */
static inline size_t variants_of(const struct pm_shader_device *s, const char *shader,
                                 uint32_t present)
{
    size_t n = 0;

    for (size_t i = 0; i < s->pipelines.count; i++)
        n += strcmp(s->pipelines.list[i]->shader->name, shader) == 0 &&
             s->pipelines.list[i]->present == present;
    return n;
}

#endif
