/* The base configs of the seven variants of DeepLab's trainer: every value in which they differ,
 * and the rates that follow from them. */
#include "../base/unit.h"

#include "optim/schedule.h"

#include <pumice/options.h>
#include <pumice/train.h>

#include <cjson/cJSON.h>

enum { VARIANTS = 7 };
static struct pm_arena *arena;
static struct pm_open_sections rows;

/* The variant's base with a net, and further overrides. */
static struct pm_config *load(int variant, const char *const *overrides, size_t n)
{
    const char *text = pm_arena_printf(
        arena, "{\"base\": \"%s/configs/base/deeplab_seed%d.json\","
        "\"model\": {\"name\": \"deeplab_mobilenet_v2\"}}", getenv("PUMICE_SOURCE"), variant);
    struct pm_config *c = NULL;

    if (pm_config_parse("t.json", text, overrides, n, &rows, &c) < 0)
        fail_msg("variant %d: %s", variant, pm_error_text());
    return c;
}

static void values(void **state)
{
    /* One value, or that of each variant. */
    static const struct {
        const char *key, *value[VARIANTS];
    } cases[] = {
        { "optim.name", { "\"momentum\"" } },
        { "optim.momentum", { "0.9" } },
        { "optim.weight_decay", { "null" } },
        { "schedule.policy", { "\"polynomial\"" } },
        { "schedule.base_lr", { "0.0001" } },
        { "schedule.end_lr", { "0" } },
        { "schedule.power", { "0.9" } },
        { "schedule.decay_steps", { "0" } },
        { "schedule.num_epochs_per_decay", { "0" } },
        { "schedule.decay_factor", { "0.1" } },
        { "schedule.warmup_steps", { "0" } },
        { "schedule.warmup_lr", { "0.0001" } },
        { "schedule.warmup_shape", { "\"constant\"" } },
        { "schedule.warmup_shift", { "false", "false", "false", "true", "false", "false",
                                     "false" } },
        { "init.ignore_missing", { "true" } },
        { "input.size", { "[513]" } },
        { "input.min_scale", { "0.5" } },
        { "input.max_scale", { "2" } },
        { "input.scale_step", { "0.25" } },
        { "data.shuffle", { "true", "true", "true", "false", "true", "true", "true" } },
        { "data.train_split", { "\"train\"", "\"train\"", "\"train\"", "\"train\"", "\"train\"",
                                "\"train\"", "\"trainval\"" } },
        { "data.eval_split", { "\"val\"" } },
        { "data.edge_width", { "20" } },
        { "loss.normalize", { "\"nonzero_weight\"" } },
        { "loss.upsample_logits", { "true" } },
        { "loss.top_k_percent", { "1" } },
        { "model.batch_norm_train", { "true", "true", "true", "true", "false", "true", "true" } },
        { "model.quantize_delay", { "-1" } },
        { "model.instance", { "false", "false", "false", "true", "false", "false", "false" } },
        { "model.edge_classes", { "0" } },
        { "run.steps", { "30000" } },
        { "run.batch_size", { "8", "8", "8", "1", "8", "8", "8" } },
        { "run.batch_norm_update", { "\"first\"", "\"first\"", "\"all\"", "\"first\"", "\"first\"",
                                     "\"all\"", "\"first\"" } },
        { "run.log_loss", { "\"mean\"", "\"mean\"", "\"sum\"", "\"mean\"", "\"mean\"", "\"sum\"",
                            "\"mean\"" } },
        { "run.log_every_steps", { "10" } },
        { "run.save_every_secs", { "1200", "1200", "1200", "600", "1200", "1200", "1200" } },
        { "run.save_first_step", { "true", "true", "false", "true", "true", "false", "true" } },
        { "run.keep", { "5" } },
        { "run.summary_every_steps", { "0", "0", "600", "0", "0", "600", "0" } },
        { "run.summary_every_secs", { "600", "600", "0", "100", "600", "0", "600" } },
        { "run.summary_images", { "0", "0", "0", "3", "0", "0", "0" } },
        { "run.summary_tags", { "\"deeplab\"" } },
        { "run.summary_labels", { "\"grey\"", "\"grey\"", "\"grey\"", "\"grey\"", "\"grey\"",
                                  "\"grey\"", "\"classes\"" } },
        { "run.train_metrics", { "false", "false", "false", "false", "true", "false", "false" } },
        { "eval.batch_size", { "1" } },
        { "eval.interval_secs", { "300" } },
    };
    (void)state;

    for (int variant = 1; variant <= VARIANTS; variant++) {
        struct pm_config *c = load(variant, NULL, 0);
        cJSON *dump = pm_config_dump(c);

        for (size_t i = 0; i < PM_COUNT(cases); i++) {
            const size_t n = strcspn(cases[i].key, ".");
            const char *section = pm_arena_printf(arena, "%.*s", (int)n, cases[i].key);
            const char *wanted = cases[i].value[1] ? cases[i].value[variant - 1]
                                                   : cases[i].value[0];
            const cJSON *v = cJSON_GetObjectItem(cJSON_GetObjectItem(dump, section),
                                                 cases[i].key + n + 1);
            assert_non_null(v);
            char *is = pm_json_print(v);
            if (strcmp(is, wanted) != 0)
                fail_msg("variant %d: %s is %s, not %s", variant, cases[i].key, is, wanted);
            pm_free(is);
        }
        cJSON_Delete(dump);
        pm_config_destroy(&c);
    }
}

static float rate(const struct pm_config *c, int64_t step)
{
    struct pm_schedule s;

    assert_int_equal(pm_schedule_make(&c->schedule, 1464, c->run.batch_size, 1, c->run.steps, &s),
                     PM_OK);
    return pm_schedule_rate(&s, step);
}

static bool close_to(double a, double b)
{
    return fabs(a - b) <= 1e-6 * fabs(b) + 1e-12;
}

/* With a slow start of 1,000 steps: the rate during it, and the step that the policy sees after
 * it. */
static void rates(void **state)
{
    static const char *const overrides[] = { "schedule.warmup_steps=1000",
                                             "schedule.base_lr=0.007" };
    (void)state;

    for (int variant = 1; variant <= VARIANTS; variant++) {
        struct pm_config *c = load(variant, overrides, PM_COUNT(overrides));
        const bool shifted = variant == 4;
        const double done = shifted ? (16000.0 - 1000) / (30000 - 1000) : 16000.0 / 30000;

        assert_true(rate(c, 0) == 1e-4f && rate(c, 999) == 1e-4f);
        assert_true(close_to(rate(c, 1000),
                             0.007 * pow(shifted ? 1 : 1 - 1000.0 / 30000, 0.9)));
        assert_true(close_to(rate(c, 16000), 0.007 * pow(1 - done, 0.9)));
        assert_true(rate(c, 30000) == 0);
        pm_config_destroy(&c);
    }
}

/* Variant 4 with adam: a constant rate of its own. The policy "step" falls every 2,000 steps. */
static void adam_and_steps(void **state)
{
    static const char *const adam[] = { "optim.name=adam" };
    static const char *const step[] = { "schedule.policy=exponential" };
    struct pm_config *c = load(4, adam, 1);
    cJSON *dump = pm_config_dump(c);
    (void)state;

    assert_true(rate(c, 0) == 0.001f && rate(c, 29999) == 0.001f);
    assert_true(cJSON_GetObjectItem(cJSON_GetObjectItem(dump, "optim"), "epsilon")->valuedouble ==
                1e-8);
    cJSON_Delete(dump);
    pm_config_destroy(&c);
    for (int variant = 1; variant <= VARIANTS; variant++) {
        c = load(variant, step, 1);
        assert_int_equal(c->schedule.decay_steps, 2000);
        pm_config_destroy(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values), cmocka_unit_test(rates), cmocka_unit_test(adam_and_steps),
    };
    int failed;

    if (!getenv("PUMICE_SOURCE"))
        return 77;
    arena = pm_arena_create();
    rows = pm_train_choices(arena);
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    pm_arena_destroy(&arena);
    return failed;
}
