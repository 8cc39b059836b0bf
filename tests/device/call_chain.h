/* Shared by the tests of calls' times: a program of six calls with early outputs, which is run with
 * and without times on any device. */
#ifndef CALL_CHAIN_H
#define CALL_CHAIN_H

#include "device/shader_rows.h"

enum { LENGTH = 4096, CALLS = 6, SLOTS = 2, RUNS = 6 };

/* Copies x in; y += x; z += 6 x (in eight submissions where possible); w = z + the constants of
 * the wide row; y += w. y and z are copied out early, y again at the end. */
struct chain {
    struct pm_device *d;
    struct pm_buffer *x, *y, *z, *w;
    struct axpy_params p[3];
    struct tile_params t[2];
    struct wide_params w_params;
    struct pm_bound_call calls[CALLS];
    struct pm_place in, out[3];
    size_t after[3];
    struct pm_program_desc desc;
};

static inline struct pm_buffer *zeros(struct pm_device *d)
{
    struct pm_buffer *b = NULL;

    ok(pm_buffer_create(d, LENGTH * sizeof(float), &b));
    ok(pm_buffer_fill(d, b, 0, LENGTH * sizeof(float), 0));
    return b;
}

static inline void make_chain(struct chain *c, struct pm_device *d, bool timed)
{
    struct pm_place x, y, z, w;

    *c = (struct chain){ .d = d, .x = zeros(d), .y = zeros(d), .z = zeros(d), .w = zeros(d) };
    x = place(c->x, 0, LENGTH), y = place(c->y, 0, LENGTH);
    z = place(c->z, 0, LENGTH), w = place(c->w, 0, LENGTH);
    for (int i = 0; i < 2; i++)
        c->t[i] = (struct tile_params){ LENGTH, 2, 4 };
    c->calls[0] = axpy(&c->p[0], 1, LENGTH, x, y);
    c->calls[1] = (struct pm_bound_call){ .kernel = &row_tile, .label = "tile",
                                          .count = LENGTH, .params = &c->t[0],
                                          .buf = { x, z } };
    c->calls[2] = (struct pm_bound_call){ .kernel = &row_tile_long, .label = "long",
                                          .count = LENGTH, .params = &c->t[1],
                                          .buf = { x, z } };
    c->calls[3] = axpy(&c->p[1], 1, LENGTH, x, y);
    c->w_params = (struct wide_params){ .count = LENGTH, .add = { 3, 1, 2 } };
    c->calls[4] = (struct pm_bound_call){ .kernel = &row_wide, .label = "wide",
                                          .count = LENGTH, .params = &c->w_params,
                                          .buf = { z, w } };
    c->calls[5] = axpy(&c->p[2], 1, LENGTH, w, y);
    c->in = x;
    c->out[0] = y, c->after[0] = 1;
    c->out[1] = z, c->after[1] = 3;
    c->out[2] = y, c->after[2] = CALLS;
    c->desc = (struct pm_program_desc){ .name = "chain", .calls = c->calls, .calls_count = CALLS,
                                        .in = &c->in, .in_count = 1, .out = c->out,
                                        .out_after = c->after, .out_count = 3, .slots = SLOTS,
                                        .timed = timed };
}

static inline void drop_chain(struct chain *c)
{
    pm_buffer_destroy(c->d, &c->x);
    pm_buffer_destroy(c->d, &c->y);
    pm_buffer_destroy(c->d, &c->z);
    pm_buffer_destroy(c->d, &c->w);
}

static inline void submit(struct pm_program *p, int run)
{
    float *in = pm_program_in(p, run % SLOTS, 0);

    for (int i = 0; i < LENGTH; i++)
        in[i] = (float)(i % 7 + run);
    ok(pm_program_submit(p, run % SLOTS));
}

/* Inputs are copied before the first call. An output is copied after the call it waits for and
 * before the next one. */
static inline void check_copies(struct pm_program *p, int slot, const double *call_begin,
                         const double *call_end, double seconds)
{
    static const size_t after[3] = { 1, 3, CALLS };
    double begin[4], end[4];

    ok(pm_program_copy_times(p, slot, begin, end));
    assert_true(begin[0] >= 0 && end[0] >= begin[0] && call_begin[0] >= end[0]);
    for (int i = 0; i < 3; i++) {
        assert_true(end[1 + i] >= begin[1 + i] && begin[1 + i] >= call_end[after[i] - 1]);
        assert_true(end[1 + i] <= (after[i] < CALLS ? call_begin[after[i]] : seconds));
    }
}

static inline void check_times(struct pm_program *p, int slot, double *last_end)
{
    double begin[CALLS], end[CALLS], seconds, begun;

    ok(pm_program_wait(p, slot));
    ok(pm_program_call_times(p, slot, begin, end));
    seconds = pm_program_seconds(p, slot);
    begun = pm_program_begun(p, slot);
    assert_true(begin[0] >= 0);
    for (int i = 0; i < CALLS; i++) {
        assert_true(end[i] >= begin[i]);
        if (i > 0)
            assert_true(begin[i] >= end[i - 1]);
    }
    assert_true(end[CALLS - 1] <= seconds);
    check_copies(p, slot, begin, end, seconds);
    assert_true(begun >= *last_end - 1e-9); /* runs of a device follow each other */
    *last_end = begun + seconds;
}

/* Copies the outputs of all runs; two runs are under way at a time. */
static inline void run_all(struct pm_program *p, bool timed, float *out)
{
    double last_end = pm_seconds();
    uint64_t allocated = 0;

    for (int run = 0; run < RUNS + SLOTS; run++) {
        int slot = run % SLOTS;

        if (run >= SLOTS) {
            if (timed)
                check_times(p, slot, &last_end);
            else
                ok(pm_program_wait(p, slot));
            for (size_t k = 0; k < 3; k++)
                memcpy(out + ((size_t)(run - SLOTS) * 3 + k) * LENGTH, pm_program_out(p, slot, k),
                       LENGTH * sizeof(float));
        }
        if (run < RUNS)
            submit(p, run);
        if (run == SLOTS)
            allocated = pm_alloc_count();
    }
    assert_int_equal(pm_alloc_count(), allocated);
}

static inline void test_times(void **state)
{
    struct pm_device *d = *state;
    size_t count = (size_t)RUNS * 3 * LENGTH;
    float *out[2] = { pm_malloc(count * sizeof(float)), pm_malloc(count * sizeof(float)) };

    for (int timed = 0; timed < 2; timed++) {
        struct chain c;
        struct pm_program *p = NULL;

        make_chain(&c, d, timed);
        ok(pm_program_create(d, &c.desc, &p));
        run_all(p, timed, out[timed]);
        pm_program_destroy(&p);
        drop_chain(&c);
    }
    assert_memory_equal(out[0], out[1], count * sizeof(float));
    pm_free(out[0]);
    pm_free(out[1]);
}

#endif
