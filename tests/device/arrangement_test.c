/* The arrangement of random calls, without a driver: each call is there once, calls that use the
 * same bytes keep their order and have a barrier or the begin of a submission between them, outputs
 * follow the calls that they wait for, and independent calls share a barrier. */
#include "device/arrangement.h"

#include "base/unit.h"

#include <pumice/rng.h>

#include <string.h>

enum { CALLS = 120, BUFFERS = 6, OUTS = 3, TRIALS = 200 };

static void no_cpu(const struct pm_args *a, size_t begin, size_t end)
{
    (void)a, (void)begin, (void)end;
}

static const struct pm_kernel rows[] = {
    { .name = "copy", .bufs = "r:x w:y", .cpu = no_cpu },
    { .name = "add", .bufs = "r:x u:y", .cpu = no_cpu },
    { .name = "join", .bufs = "r:x w:y r?:z", .cpu = no_cpu },
};

/* A random program over a few buffers, as identities only. */
struct trial {
    struct pm_bound_call calls[CALLS];
    struct pm_picks picks[CALLS];
    const struct pm_picks *pick[CALLS];
    bool whole[CALLS][PM_MAX_DISPATCHES];
    struct pm_place out[OUTS];
    size_t out_after[OUTS];
    struct pm_program_desc desc;
    struct pm_arrange_input in;
};

static struct pm_place random_place(struct pm_rng *r)
{
    static char identity[BUFFERS];
    const size_t offset = 256 * (size_t)pm_rng_int(r, 0, 7);

    return (struct pm_place){ (struct pm_buffer *)(void *)&identity[pm_rng_int(r, 0, BUFFERS - 1)],
                              offset, 256 * (size_t)pm_rng_int(r, 1, 2) };
}

static void make(struct trial *t, struct pm_rng *r)
{
    memset(t, 0, sizeof *t);
    for (int i = 0; i < CALLS; i++) {
        struct pm_bound_call *c = &t->calls[i];

        c->kernel = &rows[pm_rng_int(r, 0, (int)PM_COUNT(rows) - 1)];
        c->count = (size_t)pm_rng_int(r, 1, 1000000);
        for (int k = 0; k < 3; k++)
            if (k < 2 || (c->kernel == &rows[2] && pm_rng_int(r, 0, 1)))
                c->buf[k] = random_place(r);
        t->pick[i] = &t->picks[i];
        t->picks[i].count = (int)pm_rng_int(r, 0, 20) == 0 ? 2 : 1;
        for (int k = 0; k < t->picks[i].count; k++)
            t->picks[i].d[k] = (struct pm_dispatch){
                .groups = { (uint32_t)pm_rng_int(r, 1, 50), 1, 1 } };
    }
    for (int i = 0; i < OUTS; i++) {
        t->out[i] = random_place(r);
        t->out_after[i] = (size_t)pm_rng_int(r, 0, CALLS);
    }
    t->desc = (struct pm_program_desc){ .calls = t->calls, .calls_count = CALLS, .out = t->out,
                                        .out_after = t->out_after, .out_count = OUTS, .slots = 1 };
    t->in = (struct pm_arrange_input){ .desc = &t->desc, .picks = t->pick,
                                       .whole = (const bool (*)[PM_MAX_DISPATCHES])t->whole,
                                       .flops = 1e9, .bytes = 1e12,
                                       .segment_seconds = pm_rng_int(r, 0, 1) ? 1 : 5e-4 };
}

static bool shares(const struct pm_bound_call *a, const struct pm_bound_call *b)
{
    struct pm_buf_spec x[PM_MAX_BUFS], y[PM_MAX_BUFS];
    const int m = pm_kernel_bufs(a->kernel, x), n = pm_kernel_bufs(b->kernel, y);
    bool any = false;

    for (int i = 0; i < m; i++)
        for (int k = 0; k < n; k++) {
            const struct pm_place *p = &a->buf[i], *q = &b->buf[k];

            any |= p->buffer && p->buffer == q->buffer && p->offset < q->offset + q->size &&
                   q->offset < p->offset + p->size && (x[i].access != 'r' || y[k].access != 'r');
        }
    return any;
}

/* Finds a call's first and last entry. All of its workgroups are there once. */
static void find(const struct trial *t, const struct pm_arrangement *a, size_t call, size_t *first,
                 size_t *last)
{
    uint32_t groups = 0, want = 0;

    *first = SIZE_MAX;
    for (size_t i = 0; i < a->count; i++)
        if (a->list[i].call == call) {
            *first = *first == SIZE_MAX ? i : *first;
            *last = i;
            groups += a->list[i].groups[0];
        }
    for (int k = 0; k < t->picks[call].count; k++)
        want += t->picks[call].d[k].groups[0];
    assert_true(*first != SIZE_MAX);
    assert_int_equal(groups, want);
    assert_true(a->list[*first].begins && a->list[*last].ends);
}

/* Whether everything before entry `to` is finished before it begins, from entry `from` on. */
static bool separated(const struct pm_arrangement *a, size_t from, size_t to)
{
    for (size_t i = from + 1; i <= to; i++) {
        if (a->list[i].barrier)
            return true;
        for (size_t g = 0; g < a->segment_count; g++)
            if (a->segments[g].begin == i)
                return true;
    }
    return false;
}

static void check_order(const struct trial *t, const struct pm_arrangement *a)
{
    size_t first[CALLS], last[CALLS];

    for (size_t i = 0; i < CALLS; i++)
        find(t, a, i, &first[i], &last[i]);
    for (size_t j = 0; j < CALLS; j++)
        for (size_t i = 0; i < j; i++)
            if (shares(&t->calls[i], &t->calls[j]))
                assert_true(last[i] < first[j] && separated(a, last[i], first[j]));
    for (int o = 0; o < OUTS; o++)
        for (size_t i = 0; i < CALLS; i++) /* an output lies between the calls before and after */
            assert_true((i < t->out_after[o]) ==
                        (last[i] < a->segments[a->out_segment[o]].end));
}

static void test_random(void **state)
{
    struct trial *t = pm_malloc(sizeof *t);
    size_t barriers = 0, in_order = 0;

    (void)state;
    for (int i = 0; i < TRIALS; i++) {
        struct pm_rng r = pm_rng_make(5, (uint64_t)i, 0, 0);
        struct pm_arrangement a;

        make(t, &r);
        pm_arrange(&t->in, &a);
        check_order(t, &a);
        barriers += a.counts.barriers;
        pm_arrangement_free(&a);
        t->in.timed = true;
        pm_arrange(&t->in, &a);
        check_order(t, &a);
        in_order += a.counts.barriers;
        pm_arrangement_free(&a);
    }
    assert_true(barriers < in_order);
    pm_free(t);
}

/* Two chains of three calls each need two barriers, not four or five. */
static void test_chains(void **state)
{
    static char identity[2];
    static struct trial t;
    struct pm_arrangement a;

    (void)state;
    memset(&t, 0, sizeof t);
    for (int i = 0; i < 6; i++) {
        struct pm_buffer *b = (struct pm_buffer *)(void *)&identity[i / 3];
        const size_t at = 256 * (size_t)(i % 3);

        t.calls[i] = (struct pm_bound_call){ .kernel = &rows[0], .count = 1,
                                             .buf = { { b, at, 256 }, { b, at + 256, 256 } } };
        t.pick[i] = &t.picks[i];
        t.picks[i] = (struct pm_picks){ .count = 1, .d = { { .groups = { 1, 1, 1 } } } };
    }
    t.desc = (struct pm_program_desc){ .calls = t.calls, .calls_count = 6, .slots = 1 };
    t.in = (struct pm_arrange_input){ .desc = &t.desc, .picks = t.pick,
                                      .whole = (const bool (*)[PM_MAX_DISPATCHES])t.whole,
                                      .flops = 1e9, .bytes = 1e9, .segment_seconds = 1 };
    pm_arrange(&t.in, &a);
    assert_int_equal(a.counts.barriers, 2);
    assert_int_equal(a.counts.dispatches, 6);
    assert_int_equal(a.counts.bytes_moved, 6 * 512);
    pm_arrangement_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_chains),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
