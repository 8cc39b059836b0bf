/* Rotated boxes, words and quantised detectors by the program: recomputed activations and threads
 * of the loader change no bit, threads of the device only the rounding; the size of evaluation
 * batches, whose last one is padded, changes no metric; a split of one picture is evaluated. */
#include "e2e/program.h"

#define HEAD                                                                                       \
    "  { \"name\": \"c\", \"layer\": \"conv2d\", \"filters\": 8, \"kernel\": 5, \"stride\": 4,\n"  \
    "    \"bias\": false },\n"                                                                     \
    "  { \"name\": \"n\", \"layer\": \"batch_norm\", \"activation\": \"relu6\", \"decay\": 0.9 },\n"
#define REST(kind, input, more)                                                                    \
    "  \"data\": { \"folder\": \"%s/" kind "\", \"eval_split\": \"test\"" more " },\n"             \
    "  \"input\": { \"preprocessing\": \"ssd\", \"size\": " input " }, \"devices\": [\"cpu\"],\n"  \
    "  \"optim\": { \"name\": \"momentum\" },\n"                                                   \
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"                              \
    "  \"run\": { \"steps\": 8, \"batch_size\": 5, \"log_every_steps\": 1 },\n"                    \
    "  \"eval\": { \"every_steps\": 4, \"batch_size\": 4 } }\n"
/* One map of 4x4. */
#define DETECTOR(more, anchors, boxes)                                                             \
    "{ \"task\": \"detection\", \"model\": { " more "\"layers\": [\n" HEAD                         \
    "  { \"name\": \"m\", \"layer\": \"conv2d\", \"filters\": 16, \"stride\": 2,\n"                \
    "    \"activation\": \"relu6\" },\n"                                                           \
    "  { \"name\": \"anchors\", \"layer\": \"ssd_anchors\", " anchors ",\n"                        \
    "    \"interpolated_scale_aspect_ratio\": 0, \"reduce_boxes_in_lowest_layer\": false,\n"       \
    "    \"inputs\": [\"images\", \"m\"] },\n"                                                     \
    "  { \"name\": \"boxes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m\"],\n"                     \
    "    \"filters\": " boxes " },\n"                                                              \
    "  { \"name\": \"classes_1\", \"layer\": \"conv2d\", \"inputs\": [\"m\"],\n"                   \
    "    \"filters\": 4 } ] },\n"

/* A part of the program, as FOLDER/NAME.json. */
static const struct part {
    const char *name, *net, *options;
    int steps;    /* in which other sums of the device differ by rounding only */
    bool by_text; /* the loss of a picture does not depend on its batch */
} parts[] = {
    { "rotated",
      DETECTOR("\"boxes\": \"rotated\", ",
               "\"scales\": [0.4], \"aspect_ratios\": [3], \"angles\": [-1.2, -0.4, 0.4, 1.2]",
               "20") REST("bars", "32", ""), "", 8, false },
    /* Rounding begins in the middle. Then a number near the middle of two steps may be rounded
     * to another one. */
    { "quantised",
      DETECTOR("\"quantize_delay\": 5, ", "\"scales\": [0.5], \"aspect_ratios\": [1]", "4")
      REST("shapes", "32", ""), "", 4, false },
    { "words",
      "{ \"task\": \"recognition\", \"model\": { \"layers\": [\n" HEAD
      "  { \"name\": \"d\", \"layer\": \"conv2d\", \"filters\": 16, \"kernel\": [4, 1],\n"
      "    \"padding\": \"valid\", \"bias\": false },\n"
      "  { \"name\": \"o\", \"layer\": \"batch_norm\", \"activation\": \"relu\",\n"
      "    \"decay\": 0.9 },\n"
      "  { \"name\": \"r\", \"layer\": \"lstm\", \"units\": 8 },\n"
      "  { \"name\": \"s\", \"layer\": \"lstm\", \"units\": 8, \"direction\": \"backward\",\n"
      "    \"inputs\": [\"o\"] },\n"
      "  { \"name\": \"both\", \"layer\": \"concat\", \"inputs\": [\"r\", \"s\"] },\n"
      "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 37, \"kernel\": 1 } ] },\n"
      REST("words", "[16, 48]", ", \"charset\": \"lowercase\", \"max_num_steps\": 6"), "", 8,
      true },
    { "attention", NULL,
      "model.predictor=attention model.attention_direction=both model.decoder_units=8 "
      "model.attention_units=8 loss.keypoint_weight=10 model.transformer=tps "
      "'model.spatial_transformer={\"output_h\":16,\"output_w\":48,"
      "\"localization_depth\":0.25,\"num_control_points\":8}'", 8, true },
};

static int make_data(void **state)
{
    static const char *const kinds[][2] = { { "bars", "size=48" }, { "shapes", "size=32" },
                                            { "words", "height=16 most=5" } };

    (void)state;
    if (make_world(false) < 0)
        return -1;
    for (size_t i = 0; i < PM_COUNT(kinds); i++)
        check(run(NULL, "dataset make %s %s %s train=11 validation=1 test=1", kinds[i][0],
                  in("%s", kinds[i][0]), kinds[i][1]), 0);
    for (size_t i = 0; i < PM_COUNT(parts); i++) {
        char name[64];

        snprintf(name, sizeof name, "%s.json", parts[i].name);
        put_folder_text(name, parts[i].net ? parts[i].net : parts[i - 1].net);
    }
    return 0;
}

/* ---- training -------------------------------------------------------------------------------- */

/* Trains FOLDER/PART-NAME and returns what it logged; the caller frees it. */
static char *train(const struct part *p, const char *name, const char *more)
{
    struct result r = run(NULL, "train %s run.folder=%s %s %s", in("%s.json", p->name),
                          in("%s-%s", p->name, name), p->options, more);
    char *log = pm_strdup(r.err);

    check(r, 0);
    return log;
}

static void train_as(const struct part *p, const char *name, const char *more, bool same)
{
    static const char last[] = "checkpoints/step-000008.safetensors";
    char one[64], other[64], *log = train(p, name, more);

    snprintf(one, sizeof one, "%s-one", p->name);
    snprintf(other, sizeof other, "%s-%s", p->name, name);
    if (strstr(more, "recompute"))
        assert_contains(log, "run again in the backward pass");
    if (same)
        same_bytes(in("%s/%s", one, last), in("%s/%s", other, last));
    else
        same_losses(one, other, 1, p->steps, 1e-5);
    pm_free(log);
}

/* Trains FOLDER/PART-one, unless a test before did. */
static void train_one(const struct part *p)
{
    if (!pm_file_exists(in("%s-one/latest", p->name)))
        pm_free(train(p, "one", ""));
}

static void recomputed(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(parts); i++) {
        train_one(&parts[i]);
        train_as(&parts[i], "most", "run.recompute=most", true);
    }
}

/* The bound is that of assert_same_in_parts (interrupted.h): sums in another order. */
static void threads(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(parts); i++) {
        train_one(&parts[i]);
        train_as(&parts[i], "loader", "data.threads=5", true);
        train_as(&parts[i], "device", "'devices=[{\"name\":\"cpu\",\"threads\":3}]'", false);
    }
}

/* ---- evaluation ------------------------------------------------------------------------------ */

/* The metrics of FOLDER/PART-NAME on a split, in batches of that size; the caller frees them. */
static cJSON *metrics_of(const struct part *p, const char *name, const char *split, int batch)
{
    struct result r = run(NULL, "eval %s run.folder=%s %s data.eval_split=%s eval.batch_size=%d "
                          "--json", in("%s.json", p->name), in("%s-%s", p->name, name), p->options,
                          split, batch);
    cJSON *report = json_of(&r);
    cJSON *metrics = cJSON_DetachItemFromObject(report, "metrics");

    assert_true(number_of(report, "count") == (strcmp(split, "train") == 0 ? 11 : 1));
    cJSON_Delete(report);
    check(r, 0);
    return metrics;
}

/* Two evaluations give the same metrics. The loss is compared only if `loss`: it is the sum of the
 * batches' losses, so it may differ by rounding. */
static void compare_metrics(const struct part *p, bool loss, const cJSON *one, const cJSON *other)
{
    const cJSON *v, *w;

    assert_int_equal(cJSON_GetArraySize(one), cJSON_GetArraySize(other));
    cJSON_ArrayForEach(v, one)
    {
        w = cJSON_GetObjectItem(other, v->string);
        assert_non_null(w);
        if (strcmp(v->string, "loss") != 0) {
            if (!cJSON_Compare(v, w, true))
                fail_msg("%s: %s depends on the batch", p->name, v->string);
        } else if (loss && !(fabs(v->valuedouble - w->valuedouble) <= 1e-5 * v->valuedouble)) {
            fail_msg("%s: the loss is %.9g and %.9g", p->name, v->valuedouble, w->valuedouble);
        }
    }
}

/* Whether a metric other than the loss is above 0: two lists of zeros would always be equal. */
static bool has_metric(const cJSON *metrics)
{
    const cJSON *v;

    cJSON_ArrayForEach(v, metrics)
        if (strcmp(v->string, "loss") != 0 && cJSON_IsNumber(v) && v->valuedouble > 0)
            return true;
    return false;
}

static void batches(void **state)
{
    static const int sizes[] = { 3, 4, 16 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(parts); i++) {
        const struct part *p = &parts[i];
        const char *name = p->by_text ? "one" : "learnt";

        if (p->by_text)
            train_one(p);
        else /* eight steps find no box */
            pm_free(train(p, name, "run.steps=60 run.batch_size=11 eval.every_steps=0 "
                          "optim.name=adam optim.epsilon=1e-8 schedule.base_lr=0.005"));
        cJSON *one = metrics_of(p, name, "train", 11);

        assert_true(number_of(one, "loss") > 0.1);
        assert_true(has_metric(one));
        for (size_t k = 0; k < PM_COUNT(sizes); k++) {
            cJSON *other = metrics_of(p, name, "train", sizes[k]);

            compare_metrics(p, p->by_text, one, other);
            cJSON_Delete(other);
        }
        cJSON_Delete(one);
    }
}

/* In training, and afterwards in batches of one and of more. */
static void one_picture(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(parts); i++) {
        const struct part *p = &parts[i];
        char name[64];

        train_one(p);
        snprintf(name, sizeof name, "%s-one", p->name);
        cJSON *one = metrics_of(p, "one", "test", 1),
              *other = metrics_of(p, "one", "test", 4);

        compare_metrics(p, true, one, other);
        for (int step = 4; step <= 8; step += 4)
            assert_true(isfinite(logged_eval(name, step, "loss")));
        assert_true(fabs(logged_eval(name, 8, "loss") - number_of(one, "loss")) <=
                    1e-5 * number_of(one, "loss"));
        assert_true(pm_file_exists(in("%s/report.html", name)));
        cJSON_Delete(one);
        cJSON_Delete(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(recomputed), cmocka_unit_test(threads), cmocka_unit_test(batches),
        cmocka_unit_test(one_picture),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
