/* Text recognition by the program, on drawn words: training that is killed, or loses its device,
 * ends with the same bits; clones of any shares and micro-batches learn what one does; the CPU and
 * Vulkan learn the same; a net that learns reads the words of its training, which evaluation
 * counts, prediction prints and the report shows. */
#include "e2e/small_reader.h"

/* Without batch norm, whose statistics depend on the parts. */
static void in_parts(void **state)
{
    (void)state;
    assert_same_in_parts("", NO_BATCH_NORM);
}

static int make_data(void **state)
{
    (void)state;
    return make_reader();
}

/* The words of the training split: FOLDER/words/NAME.png and its text. Reads the records as
 * `dataset inspect` writes them. */
static void inspect(const char *split, char text[][8], int count)
{
    static const char part[] = "image/transcript";
    struct result r = run(NULL, "dataset inspect %s/words_%s_00000-of-00001.tfrecord --records %d "
                          "--pictures %s", in("data"), split, count, in("words"));
    const char *at = r.out;

    for (int i = 0; i < count; i++) {
        at = strstr(at, part);
        assert_non_null(at);
        assert_int_equal(sscanf(at, "image/transcript bytes 1 \"%7[a-d]\"", text[i]), 1);
        at += strlen(part);
    }
    check(r, 0);
}

/* Reads the words of the training split after 900 steps; a trial read all of them after 600. */
static void learns(void **state)
{
    cJSON *report;

    (void)state;
    train("learns", "run.steps=900 run.batch_size=10 eval.every_steps=0 schedule.base_lr=0.02 "
          "schedule.policy=cosine run.log_every_steps=100");
    report = eval_report("learns", "data.eval_split=train");
    const cJSON *metrics = cJSON_GetObjectItem(report, "metrics");

    assert_true(number_of(metrics, "exact_accuracy") >= 0.9);
    assert_true(number_of(metrics, "word_accuracy") >= number_of(metrics, "exact_accuracy"));
    assert_true(number_of(metrics, "edit_distance") <= 0.1);
    assert_true(fabs(number_of(metrics, "total_edit_distance") -
                     20 * number_of(metrics, "edit_distance")) < 1e-9);
    assert_true(cJSON_IsNull(cJSON_GetObjectItem(metrics, "lexicon_accuracy")));
    assert_true(logged("learns", 900, "loss") < 1);
    assert_true(logged("learns", 900, "impossible_texts") == 0);
    cJSON_Delete(report);
    check(run(NULL, "eval %s", in("learns")), 0); /* its config has all keys, also of attention */
}

/* The report of FOLDER/NAME shows where the letters of its last evaluation were read. beside: the
 * name of the picture with the marks; NULL: the record's own. */
static void expect_marks(const char *name, const char *beside)
{
    char *text = get_text(in("%s/evaluation.json", name)), *page;
    cJSON *evaluation = cJSON_Parse(text), *sample, *mark;
    int letters = 0;

    cJSON_ArrayForEach(sample, cJSON_GetObjectItem(evaluation, "samples"))
    {
        const cJSON *list = cJSON_GetObjectItem(sample, "attention");
        const cJSON *other = cJSON_GetObjectItem(sample, "beside");

        assert_int_equal(cJSON_GetArraySize(list),
                         strlen(cJSON_GetStringValue(cJSON_GetObjectItem(sample, "text"))));
        cJSON_ArrayForEach(mark, list) assert_true(mark->valuedouble > 0 && mark->valuedouble < 1);
        letters += cJSON_GetArraySize(list);
        assert_int_equal(cJSON_GetArraySize(other), beside != NULL);
        if (beside)
            assert_string_equal(
                cJSON_GetStringValue(cJSON_GetObjectItem(other->child, "what")), beside);
    }
    assert_true(letters > 0);
    page = get_text(in("%s/report.html", name));
    assert_int_equal(count_text(page, "<path class=\"rim\""), letters);
    pm_free(page);
    pm_free(text);
    cJSON_Delete(evaluation);
}

/* Two predictors with attention: clones and micro-batches learn what one does; a longer training
 * reads the words of its training. The last layer's numbers are the sequence. */
static void attention(void **state)
{
    cJSON *report;

    (void)state;
    assert_same_in_parts("attention_", ATTENTION "model.attention_direction=both "
                         "optim.epsilon=1e-5 " NO_BATCH_NORM);
    train("writes", "model.predictor=attention model.attention_direction=both optim.epsilon=1e-8 "
          "model.decoder_units=64 model.attention_units=64 run.steps=400 run.batch_size=10 "
          "eval.every_steps=200 schedule.policy=cosine run.log_every_steps=100");
    expect_marks("writes", NULL);
    report = eval_report("writes", "model.predictor=attention model.attention_direction=both "
                         "model.decoder_units=64 model.attention_units=64 data.eval_split=train");
    assert_true(number_of(cJSON_GetObjectItem(report, "metrics"), "exact_accuracy") >= 0.9);
    cJSON_Delete(report);
    check(run(NULL, "train %s run.folder=%s model.beam_width=2", in("net.json"), in("bad")), 2,
          "model.beam_width has no effect with model.predictor=ctc");
    check(run(NULL, "train %s run.folder=%s model.predictor=attention 'model.layers=[{\"name\":"
              "\"c\",\"layer\":\"conv2d\"}]'", in("net.json"), in("bad")), 2,
          "attention reads [pictures, steps, channels]");
}

/* Prediction of picture files reads the words of the records, and draws them. */
static void predicted(void **state)
{
    char truth[20][8];
    struct result r;
    cJSON *report, *image;
    int right = 0, count = 0;

    (void)state;
    inspect("train", truth, 20);
    r = run(NULL, "predict %s run.folder=%s %s --out %s --json", in("net.json"), in("learns"),
            in("words"), in("drawn"));
    report = json_of(&r);
    cJSON_ArrayForEach(image, cJSON_GetObjectItem(report, "images"))
    {
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(image, "text"));
        const double score = number_of(image, "score");

        assert_non_null(text);
        assert_true(score > 0 && score <= 1);
        right += strcmp(text, truth[count++]) == 0;
    }
    assert_int_equal(count, 20);
    assert_true(right >= 18);
    assert_true(pm_file_exists(in("drawn/words_train_00000-of-00001.tfrecord_00000.png")));
    cJSON_Delete(report);
    check(r, 0);
    r = run(NULL, "predict %s run.folder=%s %s", in("net.json"), in("learns"),
            in("words/words_train_00000-of-00001.tfrecord_00000.png"));
    assert_contains(r.out, truth[0]);
    check(r, 0);
}

#define STRAIGHT ATTENTION "model.attention_direction=backward " TRANSFORMER

/* A backward predictor behind a transformer learns, and reads the pictures of `predicted`. */
static void straightens(void **state)
{
    struct result r;
    char *points;
    size_t size;

    (void)state;
    train("straight", STRAIGHT " run.steps=120 eval.every_steps=120 "
          "schedule.base_lr=0.01");
    expect_marks("straight", "straightened");
    assert_true(logged("straight", 120, "loss") < 0.8 * logged("straight", 1, "loss"));
    points = run_text(in("straight"), "checkpoints/step-000120.safetensors", &size);
    assert_non_null(memmem(points, size, "LocalizationNet", 15));
    pm_free(points);
    r = run(NULL, "predict %s run.folder=%s " STRAIGHT " %s --json", in("net.json"),
            in("straight"), in("words"));
    assert_contains(r.out, "\"text\"");
    check(r, 0);
    check(run(NULL, "predict %s run.folder=%s " STRAIGHT " %s --out %s", in("net.json"),
              in("straight"), in("words"), in("bent")), 0);
    assert_true(pm_file_exists(in("bent/words_train_00000-of-00001.tfrecord_00000.png")));
    assert_true(pm_file_exists(in("bent/words_train_00000-of-00001.tfrecord_00000-straight.png")));
    check(run(NULL, "train %s run.folder=%s 'model.spatial_transformer={\"output_h\":16}'",
              in("net.json"), in("bad")), 2, "model.spatial_transformer has no effect with "
          "model.transformer=none: remove it, or set model.transformer=tps");
}

/* The worst words of the evaluation are in its report. */
static void reported(void **state)
{
    char *text;
    cJSON *evaluation, *samples, *sample;
    double before = INFINITY;

    (void)state;
    train("short", "");
    text = get_text(in("short/evaluation.json"));
    evaluation = cJSON_Parse(text);
    samples = cJSON_GetObjectItem(evaluation, "samples");
    assert_int_equal(cJSON_GetArraySize(samples), 7);
    cJSON_ArrayForEach(sample, samples)
    {
        const double distance = number_of(sample, "edit_distance");

        assert_true(distance <= before);
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(sample, "right")) == (distance == 0));
        before = distance;
    }
    const char *truth = cJSON_GetStringValue(
        cJSON_GetObjectItem(cJSON_GetArrayItem(samples, 0), "truth"));
    char *page = get_text(in("short/report.html"));
    char part[64];

    snprintf(part, sizeof part, "<dt>is</dt><dd>%s</dd>", truth);
    assert_contains(page, part);
    pm_free(page);
    pm_free(text);
    cJSON_Delete(evaluation);
}

/* A net goes on with Vulkan as with the CPU. The bound is that of assert_same_in_parts. It is a
 * share of the loss, so the net has trained for some steps only: the loss of one that reads every
 * word is a difference of numbers near 1. */
static void gpu(void **state)
{
    static const char *const devices[] = { "cpu", "vulkan:0" };

    (void)state;
    train("begun", "run.steps=30 eval.every_steps=0");
    for (size_t i = 0; i < PM_COUNT(devices); i++) {
        char text[1024];

        snprintf(text, sizeof text, "'devices=[\"%s\"]' init.checkpoint=%s init.load_all=true "
                 "run.steps=3 eval.every_steps=0 schedule.base_lr=0.001", devices[i], in("begun"));
        train(i == 0 ? "host" : "gpu", text);
    }
    same_losses("host", "gpu", 1, 3, 1e-5);
}

static bool has_text(const char *bytes, size_t size, const char *text)
{
    return memmem(bytes, size, text, strlen(text)) != NULL;
}

/* The notes of an exported model say how to read its outputs. */
static void exported(void **state)
{
    static const struct {
        const char *run, *options, *rule[2], *lacks;
    } cases[] = {
        { "learns", "", { "the first `lengths` numbers of `symbols`" }, "first end" },
        { "writes", "model.predictor=attention model.attention_direction=both "
          "model.decoder_units=64 model.attention_units=64",
          { "up to the first end. Do so for each output. Reverse the letters of the second output",
            "the first output's if both are equal" }, "`lengths`" },
        { "straight", STRAIGHT, { "up to the first end. Reverse the letters: the net writes the "
          "last letter first\"", "LocalizationNet/sampler" }, "second output" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        char *bytes;
        size_t size;

        check(run(NULL, "export %s run.folder=%s %s %s", in("net.json"), in("%s", cases[i].run),
                  in("words.onnx"), cases[i].options), 0);
        assert_int_equal(pm_file_read(in("words.onnx"), &bytes, &size), PM_OK);
        assert_true(has_text(bytes, size, "\"letters\": \"abcd\""));
        for (int k = 0; k < 2 && cases[i].rule[k]; k++)
            assert_true(has_text(bytes, size, cases[i].rule[k]));
        assert_false(has_text(bytes, size, cases[i].lacks));
        pm_free(bytes);
    }
}

static void refused(void **state)
{
    (void)state;
#define REFUSED(code, text, options)                                                               \
    check(run(NULL, "train %s run.folder=%s " options, in("net.json"), in("bad")), code, text)
    REFUSED(2, "data.charset: \"greek\" is neither lowercase", "data.charset=greek");
    REFUSED(2, "data.unk_label: 4 is outside -1..3: the charset has 4 letters", "data.unk_label=4");
    REFUSED(2, "model.num_classes: 4, but data.charset has 4 letters", "model.num_classes=4");
    REFUSED(2, "input.eval_size: 16 x 64, but recognition needs the size of the training, 16 x 48",
            "input.eval_size=[16,64]");
    REFUSED(2, "logits, gives 1x1x10x5, but reading needs [pictures, steps, 37]",
            "data.charset=lowercase");
#undef REFUSED
    /* Records without a text. */
    check(run(NULL, "dataset make shapes %s size=16 train=8 validation=2 test=2", in("shapes")), 0);
    check(run(NULL, "train %s run.folder=%s data.folder=%s", in("net.json"), in("bad"),
              in("shapes")), 3, "the record has no image/transcript");
    /* Folders of pictures, which only classification reads, and configs that `new` cannot write. */
    check(run(NULL, "train %s run.folder=%s data.folder=%s", in("net.json"), in("bad"),
              in("words")), 3, "where FORMAT is one of words, icdar");
    check(run(NULL, "new %s --task recognition", in("data")), 2,
          "for recognition copy a file of configs/");
}

/* Letters beyond the charset and long texts are reported once each; training goes on. */
static void odd_words(void **state)
{
    struct result r;

    (void)state;
    put_text(in("list.txt"), "xyx\nab\nabcabc\n");
    check(run(NULL, "dataset make words %s words=%s height=16 train=20 validation=7 test=0",
              in("odd"), in("list.txt")), 0);
    r = run(NULL, "train %s run.folder=%s data.folder=%s run.steps=8", in("net.json"),
            in("odd_run"), in("odd"));
    assert_int_equal(count_text(r.err, "the charset lacks the letter \"x\""), 1);
    assert_int_equal(count_text(r.err, "the charset lacks the letter \"y\""), 1);
    assert_int_equal(count_text(r.err, "more than data.max_num_steps, 4"), 1);
    check(r, 0);
}

/* Two sources of words with fixed parts of each batch. The texts of the second one are too long for
 * the net's 10 steps, so the share of such texts is that of the source, in every batch. */
static void mixed(void **state)
{
    char options[1000];
    size_t n[2];
    char *weights[2];

    (void)state;
    put_text(in("long.txt"), "abcdabcdabcd\ndcbadcbadcba\n");
    check(run(NULL, "dataset make words %s words=%s height=16 train=7 validation=0 test=0",
              in("long"), in("long.txt")), 0);
    snprintf(options, sizeof options, "data.max_num_steps=12 eval.every_steps=0 'data.folders=["
             "{\"folder\":\"%s/data\",\"batch\":4},{\"folder\":\"%s/long\",\"batch\":2}]'",
             folder, folder);
    train("mixed", options);
    for (int step = 1; step <= 16; step++)
        assert_true(fabs(logged("mixed", step, "impossible_texts") - 2 / 6.0) < 1e-6);
    for (int k = 0; k < 2; k++) { /* at once, and resumed */
        const char *name = k ? "mixed_parts" : "mixed";

        if (k) {
            snprintf(options + strlen(options), sizeof options - strlen(options), " run.steps=5");
            train(name, options);
            options[strlen(options) - strlen(" run.steps=5")] = '\0';
            train(name, options);
        }
        weights[k] = run_text(in("%s", name), "checkpoints/step-000016.safetensors", &n[k]);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(weights[0], weights[1], n[0]);
    pm_free(weights[0]);
    pm_free(weights[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_after_kills), cmocka_unit_test(same_after_loss),
        cmocka_unit_test(in_parts), cmocka_unit_test(learns), cmocka_unit_test(predicted),
        cmocka_unit_test(attention), cmocka_unit_test(straightens),
        cmocka_unit_test(reported), cmocka_unit_test(gpu), cmocka_unit_test(exported),
        cmocka_unit_test(refused), cmocka_unit_test(odd_words),
        cmocka_unit_test(mixed),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
