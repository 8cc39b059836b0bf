/* Readers with attention on devices that fail: training that is killed, or loses its device, ends
 * with the same bits; the CPU and a GPU together learn what two CPUs do; an evaluation of one
 * picture counts this one only; TensorBoard shows the decoder as it trains. */
#include "e2e/software_drivers.h"
#include "e2e/event_values.h"
#include "e2e/small_reader.h"

#define FORWARD ATTENTION "model.attention_direction=forward "
#define BOTH ATTENTION "model.attention_direction=both "
static const struct training trainings[] = {
    { "forward_", FORWARD }, { "both_", BOTH }, { "forward_straight_", FORWARD TRANSFORMER },
    { "both_straight_", BOTH TRANSFORMER },
};

static int make_data(void **state)
{
    (void)state;
    return make_reader();
}

static void killed(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(trainings); i++)
        assert_same_after_kills(&trainings[i]);
}

static void lost(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(trainings); i++)
        assert_same_after_loss(&trainings[i]);
}

/* Trains PREFIXname with these devices. */
static void train_on(const struct training *t, const char *name, const char *devices,
                     const char *more)
{
    char run[64], options[2048];

    snprintf(run, sizeof run, "%s%s", t->prefix, name);
    snprintf(options, sizeof options, "'devices=[%s]' eval.every_steps=0 optim.epsilon=1e-5 %s %s",
             devices, t->more, more);
    train(run, options);
}

/* A CPU and a Vulkan driver, each with half of the batch, follow two CPUs. Sums in another order
 * differ by rounding, as between two parts of a batch: the bound is that of assert_same_in_parts.
 * The transformer has batch norm, of whose few rows rounding is a larger part; it takes three
 * steps, as the runs on one driver do (recognition_run_test). */
static void unlike_devices(void **state)
{
    (void)state;
    need_lavapipe();
    for (size_t i = 0; i < PM_COUNT(trainings); i++) {
        const bool straight = strstr(trainings[i].more, "transformer") != NULL;
        const char *more = straight ? "run.steps=3" : "run.steps=10 " NO_BATCH_NORM;
        char cpus[64], mixed[64];

        train_on(&trainings[i], "cpus", "\"cpu\",\"cpu\"", more);
        train_on(&trainings[i], "mixed", "\"cpu\",\"llvmpipe\"", more);
        snprintf(cpus, sizeof cpus, "%scpus", trainings[i].prefix);
        snprintf(mixed, sizeof mixed, "%smixed", trainings[i].prefix);
        same_losses(cpus, mixed, 1, straight ? 3 : 10, 1e-5);
    }
}

/* A split of one picture: absent examples of the batch do not count. Its loss and its text are the
 * same in batches of any size. The loss adds the letters of one text; absent ones add zeros. So
 * only the order of sums may differ, by a rounding for each of at most 4 letters in 2
 * predictors. */
static void one_picture(void **state)
{
    static const char *const batches[] = { "1", "4", "7" };

    (void)state;
    check(run(NULL, "dataset make words %s letters=abcd most=3 height=16 train=20 validation=1 "
              "test=0 seed=5", in("single")), 0);
    for (size_t i = 0; i < PM_COUNT(trainings); i++) {
        double loss = 0, distance = 0;

        train_undisturbed(&trainings[i]);
        for (size_t k = 0; k < PM_COUNT(batches); k++) {
            char name[64], options[1024];
            cJSON *report;

            snprintf(name, sizeof name, "%swhole", trainings[i].prefix);
            snprintf(options, sizeof options, "data.folder=%s eval.batch_size=%s %s", in("single"),
                     batches[k], trainings[i].more);
            report = eval_report(name, options);
            const cJSON *metrics = cJSON_GetObjectItem(report, "metrics");

            assert_true(number_of(report, "count") == 1);
            if (k == 0) {
                loss = number_of(metrics, "loss");
                distance = number_of(metrics, "edit_distance");
            }
            assert_true(loss > 0);
            assert_true(fabs(number_of(metrics, "loss") - loss) <= 8 * 0x1p-24 * loss);
            assert_true(number_of(metrics, "edit_distance") == distance);
            assert_true(number_of(metrics, "total_edit_distance") == distance);
            assert_true(number_of(metrics, "exact_accuracy") == (distance == 0));
            cJSON_Delete(report);
        }
    }
}

/* A list of layers with the sampler of a transformer: the report and predict show what it gives. */
static void straightened_by_layers(void **state)
{
    static const char start[] = "\"layers\": [";
    static const char sampler[] =
        "{ \"name\": \"mean\", \"layer\": \"global_pool\" },\n"
        "{ \"name\": \"flat\", \"layer\": \"flatten\" },\n"
        "{ \"name\": \"points\", \"layer\": \"fully_connected\", \"units\": 16, \"bias_init\":\n"
        "  \"values(0,0,0.3,0,0.6,0,1,0,0,1,0.3,1,0.6,1,1,1)\" },\n"
        "{ \"name\": \"sampler\", \"layer\": \"thin_plate_sampler\", \"size\": [16, 48],\n"
        "  \"inputs\": [\"images\", \"points\"] },\n";
    char *net = NULL, *evaluation;
    struct pm_str list = { 0 };

    (void)state;
    assert_int_equal(pm_file_read(in("net.json"), &net, NULL), PM_OK);
    assert_contains(net, start);
    const int before = (int)(strstr(net, start) - net) + (int)strlen(start);
    pm_str_add(&list, "%.*s%s%s", before, net, sampler, net + before);
    put_text(in("list.json"), list.text);
    check(run(NULL, "train %s run.folder=%s run.steps=8 " BOTH, in("list.json"), in("list")), 0);
    evaluation = get_text(in("list/evaluation.json"));
    assert_int_equal(count_text(evaluation, "\"straightened\""), 7); /* one for each picture */
    check(run(NULL, "dataset inspect %s/words_test_00000-of-00001.tfrecord --records 1 "
              "--pictures %s", in("data"), in("words")), 0);
    check(run(NULL, "predict %s run.folder=%s " BOTH " %s --out %s", in("list.json"), in("list"),
              in("words"), in("drawn")), 0);
    assert_true(pm_file_exists(in("drawn/words_test_00000-of-00001.tfrecord_00000-straight.png")));
    pm_free(evaluation);
    pm_str_free(&list);
    pm_free(net);
}

static double sum_of_squares;

static void see_decoder(int64_t step, const Pm__SummaryValue *v)
{
    (void)step;
    if (strcmp(v->tag, "activations/Forward/Predictor") == 0)
        sum_of_squares = v->histo->sum_squares;
}

/* TensorBoard shows what the decoder computes with the letters of the batch: the same in a pass of
 * its own as in the training pass. The rate is so small that the weights stay. The net's sums are
 * the same in both passes. */
static void decoder_is_shown(void **state)
{
    static const char *const ways[] = { "6", "training" };
    double seen[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        char options[1024];

        snprintf(options, sizeof options, FORWARD NO_BATCH_NORM "run.steps=1 eval.every_steps=0 "
                 "schedule.base_lr=1e-30 run.summary_every_steps=1 run.summary_activations=%s",
                 ways[i]);
        train(i ? "shown_in_training" : "shown", options);
        sum_of_squares = 0;
        each_value(i ? "shown_in_training" : "shown", see_decoder);
        seen[i] = sum_of_squares;
    }
    assert_true(seen[0] > 0);
    assert_true(seen[0] == seen[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed), cmocka_unit_test(lost), cmocka_unit_test(unlike_devices),
        cmocka_unit_test(one_picture), cmocka_unit_test(decoder_is_shown),
        cmocka_unit_test(straightened_by_layers),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
