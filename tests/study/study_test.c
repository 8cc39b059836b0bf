/* The points of studies: the Sobol sequence against the first points of PyTorch's SobolEngine
 * (torch 2.15, scramble=False), even cover of its dimensions, grids, draws, names, and which points
 * successive halving keeps. */
#include "base/unit.h"

#include "study/study_parts.h"
#include "study/study_run.h"

#include <cjson/cJSON.h>
#include <math.h>

/* ---- the Sobol sequence ------------------------------------------------------------------ */

static void sobol_points(void **state)
{
    /* Points 1000 and 1023 in all dimensions, times 2^10. */
    static const int golden[2][PM_STUDY_PARTS] = {
        { 225, 99, 531, 693, 287, 929, 47, 921, 513, 71, 87, 261, 165, 393, 147, 379,
          737, 353, 1015, 743, 535 },
        { 1, 771, 627, 149, 191, 449, 143, 633, 353, 871, 695, 37, 133, 681, 371, 475,
          321, 897, 599, 327, 887 },
    };
    (void)state;

    for (int d = 0; d < PM_STUDY_PARTS; d++) {
        assert_int_equal(pm_sobol(0, d), 0);
        assert_int_equal(pm_sobol(1, d), UINT32_C(1) << 31);
        assert_int_equal(pm_sobol(1000, d) >> 22, golden[0][d]);
        assert_int_equal(pm_sobol(1023, d) >> 22, golden[1][d]);
    }
}

/* Of the first 1024 points, each interval of length 1/1024 has one, in every dimension. */
static void sobol_cover(void **state)
{
    (void)state;
    for (int d = 0; d < PM_STUDY_PARTS; d++) {
        bool seen[1024] = { false };

        for (uint32_t i = 0; i < 1024; i++) {
            const uint32_t cell = pm_sobol(i, d) >> 22;
            assert_false(seen[cell]);
            seen[cell] = true;
        }
    }
}

/* ---- studies ----------------------------------------------------------------------------- */

/* Opens the points of a study without its config's checks. */
static struct pm_study *study_of(const char *members)
{
    struct pm_study *s = pm_calloc(1, sizeof *s);
    const struct pm_open_sections none = { 0 };
    struct pm_str text = { 0 };

    pm_str_add(&text, "{ \"eval\": { \"every_steps\": 1 }, \"run\": { \"steps\": 100 }, "
               "\"study\": { \"folder\": \"x\", %s } }", members);
    s->arena = pm_arena_create();
    if (pm_config_parse("x.json", text.text, NULL, 0, &none, &s->config) < 0)
        fail_msg("%s", pm_error_text());
    s->repeats = s->config->study.repeats;
    s->steps = s->config->run.steps;
    s->higher_is_better = true;
    s->metric = "accuracy";
    if (pm_study_read_vary(s, s->config) < 0 || pm_study_make_points(s, s->config) < 0)
        fail_msg("%s", pm_error_text());
    pm_str_free(&text);
    return s;
}

static void is_named(const struct pm_study *s, int point, const char *name)
{
    assert_string_equal(s->points[point].name, name);
}

static void grid(void **state)
{
    struct pm_study *s = study_of(
        "\"vary\": { \"schedule.base_lr\": [0.1, 0.01], \"input.size\": [[32, 64], 48], "
        "\"model.name\": [\"a/b\", \"c\", null] }");
    (void)state;

    assert_int_equal(s->points_count, 12);
    is_named(s, 0, "lr=0.1,size=_32_64_,model=a_b");
    is_named(s, 1, "lr=0.1,size=_32_64_,model=c");
    is_named(s, 2, "lr=0.1,size=_32_64_,model=null");
    is_named(s, 3, "lr=0.1,size=48,model=a_b");
    is_named(s, 11, "lr=0.01,size=48,model=null");
    pm_study_close(&s);
}

/* Keys that end alike have longer names. */
static void key_names(void **state)
{
    struct pm_study *s = study_of("\"vary\": { \"optim.name\": [\"a\"], \"model.name\": [\"b\"], "
                                  "\"loss.name\": [\"c\"], \"eval.size\": [1, 2] }");
    (void)state;

    is_named(s, 1, "optim.name=a,model=b,loss.name=c,size=2");
    pm_study_close(&s);
}

/* The same study has the same points; another seed has others. Values lie in their ranges and have
 * four digits. A range inside an entry varies with it. */
static void draws(void **state)
{
    static const char vary[] =
        "\"vary\": { \"schedule.base_lr\": { \"log_uniform\": [0.001, 0.1] }, "
        "\"run.batch_size\": { \"int\": [3, 5] }, \"optim\": [ { \"name\": \"sgd\" }, "
        "{ \"name\": \"adamw\", \"beta1\": { \"uniform\": [0.5, 0.9] } } ] }, "
        "\"runs\": 40, \"method\": \"%s\", \"seed\": %d";
    char text[3][512];
    (void)state;

    for (int method = 0; method < 2; method++) {
        const char *name = method ? "sobol" : "random";
        struct pm_study *s[3];
        int sizes[3] = { 0 }, with = 0, below = 0;

        for (int i = 0; i < 3; i++) {
            snprintf(text[i], sizeof text[i], vary, name, i == 2 ? 8 : 7);
            s[i] = study_of(text[i]);
            assert_int_equal(s[i]->points_count, 40);
        }
        for (int i = 0; i < 40; i++) {
            struct cJSON *const *v = s[0]->points[i].values;
            const double lr = cJSON_GetNumberValue(v[0]), batch = cJSON_GetNumberValue(v[1]);
            const cJSON *beta = cJSON_GetObjectItem(v[2], "beta1");
            char digits[32];

            assert_string_equal(s[0]->points[i].name, s[1]->points[i].name);
            assert_true(lr >= 0.001 && lr <= 0.1);
            snprintf(digits, sizeof digits, "%.4g", lr);
            assert_true(strtod(digits, NULL) == lr);
            below += lr < 0.01;
            assert_true(batch == 3 || batch == 4 || batch == 5);
            sizes[(int)batch - 3]++;
            assert_true(!beta || (beta->valuedouble >= 0.5 && beta->valuedouble <= 0.9));
            with += beta != NULL;
            assert_true((strstr(s[0]->points[i].name, "optim=adamw,beta1=0.") != NULL) ==
                        (beta != NULL));
        }
        /* Sobol's 40 points cover evenly; independent draws nearly. */
        assert_in_range(below, method ? 18 : 8, method ? 22 : 32);
        assert_in_range(with, method ? 18 : 8, method ? 22 : 32);
        for (int k = 0; k < 3; k++)
            assert_in_range(sizes[k], method ? 11 : 4, method ? 16 : 26);
        assert_string_not_equal(s[0]->points[0].name, s[2]->points[0].name);
        for (int i = 0; i < 3; i++)
            pm_study_close(&s[i]);
    }
}

/* random gives every combination once if so many are wanted. */
static void all_combinations(void **state)
{
    struct pm_study *s = study_of("\"vary\": { \"run.seed\": [1, 2, 3], \"run.batch_size\": "
                                  "[1, 2, 3, 4] }, \"method\": \"random\", \"runs\": 12");
    (void)state;

    for (int i = 0; i < 12; i++)
        for (int k = 0; k < i; k++)
            assert_string_not_equal(s->points[i].name, s->points[k].name);
    pm_study_close(&s);
}

/* ---- halving ----------------------------------------------------------------------------- */

static void survivors(void **state)
{
    struct pm_study *s = study_of("\"vary\": { \"run.batch_size\": [1, 2, 3, 4, 5, 6, 7] }");
    struct pm_study_result list[32];
    struct pm_study_results r = { .list = list };
    /* Point 2 has failed; 1 and 4 are equal. */
    static const double value[7] = { 0.1, 0.5, 0, 0.9, 0.5, 0.2, 0.3 };
    int64_t steps[PM_STUDY_RUNGS];
    bool alive[7];
    int rung;
    (void)state;

    assert_int_equal(pm_study_rungs(s, steps), 1);
    assert_int_equal(steps[0], 100);
    s->halving.factor = 3;
    s->halving.first_steps = 10;
    assert_int_equal(pm_study_rungs(s, steps), 4);
    assert_int_equal(steps[0], 10);
    assert_int_equal(steps[1], 30);
    assert_int_equal(steps[2], 90);
    assert_int_equal(steps[3], 100);
    assert_int_equal(pm_study_best(s, &r, &rung), -1);
    for (int i = 0; i < 7; i++)
        list[r.count++] = (struct pm_study_result){
            .point = i, .step = 10, .value = i == 2 ? NAN : value[i],
            .message = i == 2 ? "lost" : NULL,
        };
    assert_int_equal(pm_study_survivors(s, &r, 0, alive), 7);
    assert_int_equal(pm_study_survivors(s, &r, 1, alive), 3); /* of 7, rounded up */
    for (int i = 0; i < 7; i++)
        assert_int_equal(alive[i], i == 1 || i == 3 || i == 4);
    assert_int_equal(pm_study_best(s, &r, &rung), 3);
    assert_int_equal(rung, 0);
    list[r.count++] = (struct pm_study_result){ .point = 1, .step = 30, .value = 0.4 };
    list[r.count++] = (struct pm_study_result){ .point = 3, .step = 30, .value = 0.4 };
    list[r.count++] = (struct pm_study_result){ .point = 4, .step = 30, .value = 0.3 };
    assert_int_equal(pm_study_survivors(s, &r, 2, alive), 1);
    assert_true(alive[1]); /* the first of two equal ones */
    assert_int_equal(pm_study_best(s, &r, &rung), 1);
    assert_int_equal(rung, 1);
    s->higher_is_better = false;
    assert_int_equal(pm_study_survivors(s, &r, 1, alive), 3);
    for (int i = 0; i < 7; i++)
        assert_int_equal(alive[i], i == 0 || i == 5 || i == 6);
    pm_study_close(&s);
}

static void means(void **state)
{
    struct pm_study *s = study_of("\"vary\": { \"run.batch_size\": [1, 2] }, \"repeats\": 3");
    struct pm_study_result list[3] = {
        { .point = 1, .repeat = 0, .step = 100, .value = 1 },
        { .point = 1, .repeat = 1, .step = 100, .value = NAN, .message = "lost" },
        { .point = 1, .repeat = 2, .step = 100, .value = 4 },
    };
    struct pm_study_results r = { .list = list, .count = 3 };
    double mean, spread;
    (void)state;

    assert_int_equal(pm_study_mean(s, &r, 1, 100, &mean, &spread), 2);
    assert_true(mean == 2.5 && fabs(spread - sqrt(4.5)) < 1e-15);
    assert_int_equal(pm_study_mean(s, &r, 0, 100, &mean, &spread), 0);
    assert_true(isnan(mean) && isnan(spread));
    pm_study_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sobol_points), cmocka_unit_test(sobol_cover), cmocka_unit_test(grid),
        cmocka_unit_test(key_names), cmocka_unit_test(draws), cmocka_unit_test(all_combinations),
        cmocka_unit_test(survivors), cmocka_unit_test(means),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
