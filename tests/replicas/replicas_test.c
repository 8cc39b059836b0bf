/* Replicas as threads of one process. Sums have the bits of an addition in the order of ranks, for
 * every size, also if messages are late. Sums in bfloat16 have the bits of a reference. Bytes are
 * gathered, broadcast and compared. Repeated exchanges allocate nothing. If a rank fails, all ranks
 * end with its error. A rank that cannot send, or is silent, is lost. */
#include "replicas/places.h"

#include <pumice/replicas.h>

#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

enum { PIECE = 1 << 18 };

/* ---- sums -------------------------------------------------------------------------------- */

struct sum_case {
    size_t count;
    int ranges, times;
    enum pm_replica_wire wire;
    float *expected; /* [times][count] */
};

static float value(int rank, size_t i, int time)
{
    uint32_t u = (uint32_t)(i * 2654435761u) ^ (uint32_t)(rank * 40503 + time * 977);

    u = u * 1664525u + 1013904223u;
    return ldexpf((float)(int32_t)u, -31 + (int)(u >> 4 & 7));
}

/* Rounds to bfloat16 by arithmetic in double precision: to 8 significant bits, ties to even. */
static float rounded(float x)
{
    int e;
    const double m = frexp((double)x, &e);

    return (float)ldexp(nearbyint(ldexp(m, 8)), e - 8);
}

static float add_ranks(const struct sum_case *c, int ranks, size_t i, int time)
{
    const bool half = c->wire == PM_WIRE_BFLOAT16;
    volatile float sum = 0; /* each addition is rounded to float */

    for (int k = 0; k < ranks; k++) {
        const float v = half ? rounded(value(k, i, time)) : value(k, i, time);

        sum = k == 0 ? v : sum + v;
    }
    return half ? rounded(sum) : sum;
}

static void sum_body(struct place *p)
{
    const struct sum_case *c = p->ctx;
    float *own = pm_calloc(c->count + 1, sizeof *own);
    struct pm_replica_sum *s = pm_replica_sum_create(p->r, c->count, c->ranges, c->wire, NULL);
    const float *result;

    p->right = true;
    for (int time = 0; time < c->times; time++) {
        pm_replica_sum_start(s);
        for (int g = 0; g < c->ranges; g++) {
            const size_t begin = c->count * (size_t)g / (size_t)c->ranges;
            const size_t end = c->count * ((size_t)g + 1) / (size_t)c->ranges;

            for (size_t i = begin; i < end; i++)
                own[i] = value(p->rank, i, time);
            pm_replica_sum_add(s, begin, end - begin, own + begin);
        }
        p->err = pm_replica_sum_wait(s, &result);
        if (p->err < 0)
            break;
        p->right &= memcmp(result, c->expected + (size_t)time * c->count,
                           c->count * sizeof *result) == 0;
    }
    pm_replica_sum_destroy(&s);
    pm_free(own);
}

static void check_wires(struct wires *w, struct sum_case c)
{
    const int ranks = w->ranks;
    struct place p[WIRE_RANKS];

    c.expected = pm_calloc((size_t)c.times * c.count + 1, sizeof *c.expected);
    for (int time = 0; time < c.times; time++)
        for (size_t i = 0; i < c.count; i++)
            c.expected[(size_t)time * c.count + i] = add_ranks(&c, ranks, i, time);
    run_places(w, p, sum_body, &c);
    pm_free(c.expected);
    for (int i = 0; i < ranks; i++) {
        assert_int_equal(p[i].err, PM_OK);
        assert_true(p[i].right);
    }
    wires_destroy(&w);
}

static void check_sum(int ranks, int late, struct sum_case c)
{
    check_wires(wires_create(ranks, late), c);
}

static void sums_have_the_order_of_ranks(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= WIRE_RANKS; ranks++) {
        const size_t sizes[] = { 0, 1, (size_t)ranks - 1, (size_t)ranks, 4099, PIECE - 1, PIECE,
                                 PIECE + 1 };

        for (size_t i = 0; i < PM_COUNT(sizes); i++) {
            check_sum(ranks, i % 2 ? 40 : 0, (struct sum_case){ sizes[i], 1 + (int)i % 3, 2,
                                                                PM_WIRE_FLOAT32, NULL });
            check_sum(ranks, i % 2 ? 0 : 40, (struct sum_case){ sizes[i], 1, 1,
                                                                PM_WIRE_BFLOAT16, NULL });
        }
    }
}

static void large_sums_fill_the_window(void **state)
{
    (void)state;
    check_sum(2, 5, (struct sum_case){ 30 * PIECE + 17, 9, 1, PM_WIRE_FLOAT32, NULL });
    check_sum(3, 20, (struct sum_case){ 12 * PIECE + 1, 5, 2, PM_WIRE_BFLOAT16, NULL });
}

/* One part of the first piece comes long after all others: no later piece may take its messages. */
static void a_slow_piece_keeps_its_place(void **state)
{
    (void)state;
    for (int wire = 0; wire < 2; wire++) {
        struct wires *w = wires_create(3, 0);

        w->slow.from = 2, w->slow.to = 1, w->slow.tag = 4, w->slow.polls = 400;
        check_wires(w, (struct sum_case){ 70 * PIECE, 1, 1,
                                          wire ? PM_WIRE_BFLOAT16 : PM_WIRE_FLOAT32, NULL });
    }
}

/* ---- bfloat16 ---------------------------------------------------------------------------- */

#include "replicas/bfloat16.h"

static void bfloat16_rounds_to_nearest_even(void **state)
{
    static const float special[] = { 0.0f, -0.0f, INFINITY, -INFINITY, 3.4e38f, 1e-40f };

    (void)state;
    for (uint32_t high = 0; high < 0x7f80; high++)
        for (int k = 0; k < 5; k++) {
            static const uint32_t low[] = { 0, 1, 0x7fff, 0x8000, 0x8001 };
            const uint32_t u = high << 16 | low[k];
            float x, back;
            uint16_t h;

            memcpy(&x, &u, sizeof x);
            pm_bfloat16_from(&h, &x, 1);
            pm_bfloat16_to(&back, &h, 1);
            if (high >= 0x80 && isfinite(rounded(x))) /* normal numbers */
                assert_memory_equal(&back, &(float){ rounded(x) }, sizeof back);
            else if (high < 0x80)
                assert_true(fabsf(back - x) <= 0x1p-134f);
        }
    for (size_t i = 0; i < PM_COUNT(special); i++) {
        uint16_t h;
        float back;

        pm_bfloat16_from(&h, &special[i], 1);
        pm_bfloat16_to(&back, &h, 1);
        assert_int_equal(signbit(back), signbit(special[i]));
        assert_true(i < 2 || i > 3 || back == special[i]);
    }
    uint16_t h;
    float nan;
    pm_bfloat16_from(&h, &(float){ NAN }, 1);
    pm_bfloat16_to(&nan, &h, 1);
    assert_true(isnan(nan));
}

/* ---- bytes ------------------------------------------------------------------------------- */

static void bytes_body(struct place *p)
{
    const int ranks = pm_replicas_count(p->r);
    enum { LARGE = (16 << 20) + 5 };
    int own = 100 + p->rank, all[WIRE_RANKS], unlike;
    char *large = pm_calloc(1, LARGE), *text = NULL, *joined = NULL;
    struct pm_replica_texts texts;
    size_t length = 0, sizes[WIRE_RANKS];
    int err = PM_OK;

    p->right = true;
    for (int time = 0; time < 20; time++) {
        PM_TRY(pm_replicas_allgather(p->r, &own, sizeof own, all));
        for (int i = 0; i < ranks; i++)
            p->right &= all[i] == 100 + i;
    }
    for (int root = 0; root < ranks; root++) {
        if (p->rank == root)
            memset(large, 'a' + root, LARGE);
        PM_TRY(pm_replicas_broadcast(p->r, root, large, LARGE));
        p->right &= large[0] == 'a' + root && large[LARGE - 1] == 'a' + root;
    }
    if (p->rank == ranks - 1)
        text = pm_strdup("a text of one rank"), length = strlen(text);
    PM_TRY(pm_replicas_broadcast_bytes(p->r, ranks - 1, &text, &length));
    p->right &= strcmp(text, "a text of one rank") == 0;
    for (int to_all = 0; to_all < 2; to_all++) { /* rank k gives k bytes */
        PM_TRY(pm_replicas_gather_bytes(p->r, to_all, p->rank ? "zyxw" : NULL, (size_t)p->rank,
                                        &joined, sizes));
        for (int i = 0; i < ranks; i++)
            p->right &= sizes[i] == (size_t)i;
        p->right &= (joined != NULL) == (to_all || p->rank == 0);
        p->right &= !joined || strncmp(joined, "zzyzyx", strlen(joined)) == 0;
        p->right &= !joined || strlen(joined) == (size_t)(ranks * (ranks - 1) / 2);
        pm_free(joined);
        joined = NULL;
    }
    PM_TRY(pm_replicas_compare(p->r, "the same", &unlike, &texts));
    p->right &= unlike == -1;
    PM_TRY(pm_replicas_compare(p->r, p->rank == 1 ? "unlike" : "the same", &unlike, &texts));
    p->right &= unlike == 1 && strcmp(texts.other, "unlike") == 0;
    p->right &= strcmp(texts.first, "the same") == 0;
out:
    p->err = err;
    pm_free(joined);
    pm_free(large);
    pm_free(text);
}

static void bytes_are_exchanged(void **state)
{
    struct place p[WIRE_RANKS];

    (void)state;
    for (int ranks = 2; ranks <= 4; ranks++) {
        struct wires *w = wires_create(ranks, 10);

        run_places(w, p, bytes_body, NULL);
        for (int i = 0; i < ranks; i++) {
            assert_int_equal(p[i].err, PM_OK);
            assert_true(p[i].right);
        }
        wires_destroy(&w);
    }
}

/* Gathers, in which rank 1 gives nothing, and sums, again and again. Nothing is allocated: between
 * rounds 20 and 40 of rank 0 all ranks are within rounds 19 to 41, because each round waits for all
 * ranks. */
static void repeating_body(struct place *p)
{
    enum { COUNT = 1000 };
    const int ranks = pm_replicas_count(p->r);
    size_t sizes[WIRE_RANKS];
    uint64_t before = 0, after = 0;
    float values[COUNT] = { 0 };
    char own[64];
    struct pm_replica_gather *g;
    struct pm_replica_sum *s;
    const void *all;
    const float *sums;
    int err = PM_OK;

    for (int i = 0; i < ranks; i++)
        sizes[i] = i == 1 ? 0 : (size_t)i + 3;
    g = pm_replica_gather_create(p->r, sizes);
    s = pm_replica_sum_create(p->r, COUNT, 1, PM_WIRE_FLOAT32, NULL);
    p->right = true;
    for (int time = 0; time < 50; time++) {
        const char *at;

        before = time == 20 ? pm_alloc_count() : before;
        after = time == 40 ? pm_alloc_count() : after;
        memset(own, '0' + p->rank + time % 9, sizeof own);
        pm_replica_sum_start(s);
        pm_replica_sum_add(s, 0, COUNT, values);
        pm_replica_gather_start(g, own);
        PM_TRY(pm_replica_gather_wait(g, &all));
        PM_TRY(pm_replica_sum_wait(s, &sums));
        at = all;
        for (int i = 0; i < ranks; at += sizes[i], i++)
            for (size_t k = 0; k < sizes[i]; k++)
                p->right &= at[k] == '0' + i + time % 9;
    }
    p->right &= p->rank > 0 || before == after;
out:
    pm_replica_gather_destroy(&g);
    pm_replica_sum_destroy(&s);
    p->err = err;
}

static void repeated_exchanges_allocate_nothing(void **state)
{
    struct wires *w = wires_create(4, 3);
    struct place p[WIRE_RANKS];

    (void)state;
    run_places(w, p, repeating_body, NULL);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(p[i].err, PM_OK);
        assert_true(p[i].right);
    }
    wires_destroy(&w);
}

/* ---- failures ---------------------------------------------------------------------------- */

/* Sums until an error comes. Rank 1 fails after a few sums. */
static void failing_body(struct place *p)
{
    const char *how = p->ctx;
    struct pm_replica_sum *s = pm_replica_sum_create(p->r, 5 * PIECE, 1, PM_WIRE_FLOAT32, NULL);
    float *own = pm_calloc(5 * PIECE, sizeof *own);
    const float *result;
    int err = PM_OK;

    if (strcmp(how, "fails") != 0)
        pm_replicas_limits(p->r, 2, 0);
    for (int time = 0; time < 100; time++) {
        if (p->rank == 1 && time == 3) {
            if (strcmp(how, "fails") == 0)
                PM_TRY(pm_fail(PM_EDATA, "shard 7 is damaged"));
            if (strcmp(how, "cut") == 0)
                atomic_store(&p->wires->cut[1], true);
            if (strcmp(how, "silent") == 0)
                atomic_store(&p->wires->held[1], true);
        }
        pm_replica_sum_start(s);
        pm_replica_sum_add(s, 0, 5 * PIECE, own);
        PM_TRY(pm_replica_sum_wait(s, &result));
    }
out:
    p->err = err;
    pm_replica_sum_destroy(&s);
    pm_free(own);
}

/* Rank 0 fails in a sum, and frees its array while a message of it is under way to rank 1. */
static void freeing_body(struct place *p)
{
    struct pm_replica_sum *s = pm_replica_sum_create(p->r, PIECE, 1, PM_WIRE_FLOAT32, NULL);
    float *own = pm_calloc(PIECE, sizeof *own);
    const float *result;
    int err = PM_OK;

    pm_replica_sum_start(s);
    pm_replica_sum_add(s, 0, PIECE, own);
    if (p->rank == 0) {
        usleep(20000);
        err = pm_fail(PM_EDATA, "the device is gone");
    } else {
        err = pm_replica_sum_wait(s, &result);
    }
    pm_replica_sum_destroy(&s);
    pm_free(own);
    if (p->rank == 1)
        usleep(200000); /* the message arrives */
    p->err = err;
}

/* The same of a broadcast: rank 2 fails, and the message to rank 1 is slow. */
static void freeing_broadcast_body(struct place *p)
{
    enum { BYTES = 1 << 20 };
    char *data = pm_calloc(1, BYTES);
    int err = PM_OK;

    if (p->rank == 2)
        err = pm_fail(PM_EDATA, "the device is gone");
    else
        err = pm_replicas_broadcast(p->r, 0, data, BYTES);
    pm_free(data);
    if (p->rank == 1)
        usleep(200000);
    p->err = err;
}

static void failures_leave_no_message_behind(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        struct wires *w = wires_create(3, 0);
        struct place p[WIRE_RANKS];

        w->slow.from = 0, w->slow.to = 1, w->slow.tag = kind ? 3 : 4, w->slow.polls = 100;
        run_places(w, p, kind ? freeing_broadcast_body : freeing_body, NULL);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(p[i].err, PM_EDATA);
            assert_non_null(strstr(p[i].text, "the device is gone"));
        }
        wires_destroy(&w);
    }
}

/* An idle rank answers in time when a signal makes another one ask for its state. */
static void asking_body(struct place *p)
{
    static volatile sig_atomic_t signals[2];
    int all[2];

    if (p->rank == 0) {
        sleep(2); /* in evaluation, for example */
    } else {
        pm_replicas_stop_flag(p->r, &signals[1], 0.3);
        usleep(300000);
        signals[1] = SIGTERM;
    }
    p->err = pm_replicas_allgather(p->r, &p->rank, sizeof p->rank, all);
}

static void an_idle_rank_answers_a_signal(void **state)
{
    struct wires *w = wires_create(2, 0);
    struct place p[WIRE_RANKS];

    (void)state;
    run_places(w, p, asking_body, NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(p[i].err, PM_OK);
    wires_destroy(&w);
}

/* Rank 1 fails when nothing is left to exchange. */
static void late_body(struct place *p)
{
    if (p->rank == 1) {
        usleep(100000);
        p->err = pm_fail(PM_EDATA, "shard 7 is damaged");
    }
}

static void one_failure_ends_all(void **state)
{
    (void)state;
    for (int late = 0; late < 2; late++) {
        struct wires *w = wires_create(4, 0);
        struct place p[WIRE_RANKS];

        run_places(w, p, late ? late_body : failing_body, "fails");
        for (int i = 0; i < 4; i++) {
            assert_int_equal(p[i].err, PM_EDATA);
            assert_non_null(strstr(p[i].text, "shard 7 is damaged"));
            assert_true(p[i].rank == 1 || strncmp(p[i].text, "rank 1 (", 8) == 0);
        }
        wires_destroy(&w);
    }
}

/* A rank whose messages fail reports that; a rank that is silent is lost. The others notice both by
 * its silence. */
static void a_lost_rank_is_an_error(void **state)
{
    static const char *const ways[] = { "cut", "silent" };

    (void)state;
    for (size_t way = 0; way < PM_COUNT(ways); way++) {
        struct wires *w = wires_create(3, 0);
        struct place p[WIRE_RANKS];

        run_places(w, p, failing_body, ways[way]);
        for (int i = 0; i < 3; i++) {
            const bool cut = way == 0 && p[i].rank == 1;

            assert_int_equal(p[i].err, cut ? PM_EDEVICE : PM_ELOST);
            assert_non_null(strstr(p[i].text, cut ? "the wire is cut" : "run.hang_seconds"));
        }
        wires_destroy(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_order_of_ranks),
        cmocka_unit_test(large_sums_fill_the_window),
        cmocka_unit_test(a_slow_piece_keeps_its_place),
        cmocka_unit_test(bfloat16_rounds_to_nearest_even),
        cmocka_unit_test(bytes_are_exchanged),
        cmocka_unit_test(repeated_exchanges_allocate_nothing),
        cmocka_unit_test(one_failure_ends_all),
        cmocka_unit_test(failures_leave_no_message_behind),
        cmocka_unit_test(an_idle_rank_answers_a_signal),
        cmocka_unit_test(a_lost_rank_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
