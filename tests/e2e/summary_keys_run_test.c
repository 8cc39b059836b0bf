/* When histograms and pictures are written (run.summary_every_steps, run.summary_every_secs), the
 * names of the original programs (run.summary_tags), and unscaled label maps
 * (run.summary_labels). */
#include "e2e/event_values.h"

#include <math.h>

static const char pixels[] =
    "{ \"task\": \"segmentation\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 3 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"deeplab\", \"size\": 17, \"min_scale\": 1,\n"
    "    \"max_scale\": 1 }, \"devices\": [\"cpu\"],\n"
    "  \"run\": { \"steps\": 3, \"batch_size\": 4, \"log_every_steps\": 1 } }\n";

static int world(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    if (make_world(true) < 0)
        return -1;
    pm_str_add(&text, pixels, folder);
    put_text(in("pixels.json"), text.text);
    pm_str_free(&text);
    return 0;
}

/* ---- when -------------------------------------------------------------------------------- */

static int64_t steps[16];
static int count;

static void see_weights(int64_t step, const Pm__SummaryValue *v)
{
    if (strcmp(v->tag, "conv1/weights") == 0 && count < 16)
        steps[count++] = step;
}

/* Expects the histograms of these steps; a list ends with 0. */
static void expect_steps(const char *name, const int64_t *wanted)
{
    int n = 0;

    count = 0;
    each_value(name, see_weights);
    while (wanted[n])
        n++;
    if (count != n || memcmp(steps, wanted, (size_t)n * sizeof *steps) != 0)
        fail_msg("%s: %d histograms, the first of step %d; %d are wanted", name, count,
                 (int)steps[0], n);
}

static void by_steps_and_seconds(void **state)
{
    static const char by_steps[] = "run.steps=4 run.summary_every_steps=2";
    static const char by_time[] = "run.steps=4 run.summary_every_steps=0 "
                                  "run.summary_every_secs=0.000001";
    static const char seldom[] = "run.steps=4 run.summary_every_steps=0 "
                                 "run.summary_every_secs=1000000";
    static const char both[] = "run.steps=4 run.summary_every_steps=3 "
                               "run.summary_every_secs=1000000";
    static const char none[] = "run.steps=4 run.summary_every_steps=0";
    (void)state;

    check(train_net(NULL, "steps", by_steps), 0);
    expect_steps("steps", (int64_t[]){ 1, 2, 4, 0 });
    check(train_net(NULL, "time", by_time), 0);
    expect_steps("time", (int64_t[]){ 1, 2, 3, 4, 0 });
    check(train_net(NULL, "seldom", seldom), 0);
    expect_steps("seldom", (int64_t[]){ 1, 0 });
    check(train_net(NULL, "seldom", "run.steps=6 run.summary_every_steps=0 "
                                    "run.summary_every_secs=1000000"), 0);
    expect_steps("seldom", (int64_t[]){ 1, 5, 0 }); /* the first of each process */
    check(train_net(NULL, "both", both), 0);
    expect_steps("both", (int64_t[]){ 1, 3, 0 });
    check(train_net(NULL, "none", none), 0);
    expect_steps("none", (int64_t[]){ 0 });
    check(train_net(NULL, "no", "run.summary_every_secs=-1"), 2, "run.summary_every_secs: -1");
}

/* ---- names ------------------------------------------------------------------------------- */

static struct wanted {
    const char *tag;
    int found;
    double last;
} *tags;

static void see_tag(int64_t step, const Pm__SummaryValue *v)
{
    (void)step;
    for (struct wanted *w = tags; w->tag; w++)
        if (strcmp(w->tag, v->tag) == 0) {
            w->found++;
            w->last = v->value_case == PM__SUMMARY_VALUE__VALUE_SIMPLE_VALUE
                          ? (double)v->simple_value
                          : 0;
        }
}

static void expect_tags(const char *name, struct wanted *list)
{
    tags = list;
    each_value(name, see_tag);
    for (const struct wanted *w = list; w->tag; w++)
        if (!w->found)
            fail_msg("%s: nothing has the tag %s", name, w->tag);
}

static void names_of_slim(void **state)
{
    struct wanted slim[] = {
        { "losses/softmax_cross_entropy_loss/value", 0, 0 }, { "Losses/clone_loss", 0, 0 },
        { "Losses/regularization_loss", 0, 0 }, { "total_loss", 0, 0 },
        { "activations/norm1", 0, 0 }, { "sparsity/norm1", 0, 0 },
        { "final_distorted_image/image/0", 0, 0 }, { "conv1/weights/gradient", 0, 0 },
        { "learning_rate", 0, 0 }, { 0 } };
    struct wanted inception[] = {
        { "loss__raw_", 0, 0 }, { "total_loss__raw_", 0, 0 }, { "total_loss", 0, 0 },
        { "norm1/activations", 0, 0 }, { "norm1/sparsity", 0, 0 },
        { "conv1/weights/gradients", 0, 0 }, { "images/image/0", 0, 0 }, { 0 } };
    struct wanted own[] = { { "losses/loss", 0, 0 }, { "losses/clone_loss", 0, 0 },
                            { "activations/norm1", 0, 0 }, { 0 } };
    static const char more[] = "run.summary_gradients=true run.summary_activations=2 ";
    char options[256];
    (void)state;

    snprintf(options, sizeof options, "%srun.summary_tags=slim", more);
    check(train_net(NULL, "slim", options), 0);
    expect_tags("slim", slim);
    snprintf(options, sizeof options, "%srun.summary_tags=inception", more);
    check(train_net(NULL, "inception", options), 0);
    expect_tags("inception", inception);
    check(train_net(NULL, "own", more), 0);
    expect_tags("own", own);
    assert_true(own[0].last == own[1].last); /* one loss: their sum */
    check(train_net(NULL, "other", "run.summary_tags=keras"), 2, "own|slim|inception|deeplab");
}

/* ---- the training pass ------------------------------------------------------------------- */

static double elements;

static void see_elements(int64_t step, const Pm__SummaryValue *v)
{
    (void)step;
    if (strcmp(v->tag, "activations/norm1") == 0)
        elements = v->histo->num;
}

/* The values of the whole batch, with dropout, which the extra pass does not have. Training gives
 * the same bits. */
static void activations_of_training(void **state)
{
    static const char *const devices[] = { "'devices=[\"cpu\"]'",
                                           "'devices=[\"cpu\",\"cpu\"]' run.micro_batches=2" };
    struct wanted tags_of_training[] = { { "activations/drop", 0, 0 }, { "sparsity/drop", 0, 0 },
                                         { "sparsity/pool", 0, 0 }, { "activations/norm1", 0, 0 },
                                         { 0 } };
    char options[256];
    (void)state;

    for (int i = 0; i < 2; i++) {
        snprintf(options, sizeof options, "%s run.summary_every_steps=2 run.steps=5", devices[i]);
        check(train_net(NULL, i ? "plain2" : "plain1", options), 0);
        snprintf(options, sizeof options, "%s run.summary_every_steps=2 run.steps=5 "
                 "run.summary_activations=training", devices[i]);
        check(train_net(NULL, i ? "seen2" : "seen1", options), 0);
        same_bytes(in(i ? "plain2/checkpoints/step-000005.safetensors"
                        : "plain1/checkpoints/step-000005.safetensors"),
                   in(i ? "seen2/checkpoints/step-000005.safetensors"
                        : "seen1/checkpoints/step-000005.safetensors"));
        for (struct wanted *w = tags_of_training; w->tag; w++)
            w->found = 0;
        expect_tags(i ? "seen2" : "seen1", tags_of_training);
        assert_int_equal(tags_of_training[0].found, 3); /* steps 1, 2 and 4 */
        assert_true(tags_of_training[1].last > tags_of_training[2].last);
        each_value(i ? "seen2" : "seen1", see_elements);
        /* 8 pictures in one batch; 2 in the first micro-batch of the first of two devices. */
        assert_true(elements == (i ? 2 : 8) * 8 * 8 * 4);
    }
    check(train_net(NULL, "extra", "run.summary_activations=8"), 0);
    assert_true(has_tag(in("extra"), "activations/norm1"));
    assert_false(has_tag(in("extra"), "activations/drop"));
    check(train_net(NULL, "no", "run.summary_activations=test"), 2,
          "is neither a number nor \"training\"");
    check(train_net(NULL, "no", "run.summary_activations=65"), 2, "outside 0..64");
}

/* ---- names of DeepLab -------------------------------------------------------------------- */

/* The labels' largest value, in pictures of this tag. */
static const char *label_tag;
static int brightest, pictures;

static void see_labels(int64_t step, const Pm__SummaryValue *v)
{
    struct pm_image8 im = { 0 };

    (void)step;
    if (strcmp(v->tag, label_tag) != 0)
        return;
    assert_int_equal(v->value_case, PM__SUMMARY_VALUE__VALUE_IMAGE);
    if (pm_image_decode(v->image->encoded_image_string.data, v->image->encoded_image_string.len,
                        1, 1 << 20, "picture", &im) < 0)
        fail_msg("%s", pm_error_text());
    for (int i = 0; i < im.height * im.width; i++)
        if (im.pixels[i] < 255)
            brightest = im.pixels[i] > brightest ? im.pixels[i] : brightest;
    pictures++;
    pm_image_free(&im);
}

static void expect_labels(const char *name, const char *tag, bool numbers)
{
    label_tag = tag;
    brightest = pictures = 0;
    each_value(name, see_labels);
    assert_true(pictures > 0);
    if (numbers ? brightest < 1 || brightest > 4 : brightest < 51 || brightest % 51 != 0)
        fail_msg("%s: a pixel of %d", name, brightest);
}

static void names_of_deeplab(void **state)
{
    struct wanted deeplab[] = {
        { "train/update_miou", 0, 0 }, { "train/update_acc", 0, 0 }, { "train/miou", 0, 0 },
        { "train/acc", 0, 0 }, { "losses/clone_loss", 0, 0 }, { "samples/image/image/0", 0, 0 },
        { "samples/label/image/0", 0, 0 }, { "samples/semantic/image/0", 0, 0 }, { 0 } };
    (void)state;

    check(run(NULL, "train %s run.folder=%s run.summary_tags=deeplab run.summary_labels=classes",
              in("pixels.json"), in("deeplab")), 0);
    expect_tags("deeplab", deeplab);
    assert_int_equal(deeplab[0].found, 3); /* logged steps */
    /* The mean entry of the confusion matrix of 3 batches of 4 maps of 17 x 17 pixels. */
    assert_true(deeplab[0].last > 0 && deeplab[0].last <= 3 * 4 * 17 * 17 / 25.0);
    assert_true(deeplab[1].last == deeplab[3].last);
    expect_labels("deeplab", "samples/label/image/0", true);
    check(run(NULL, "train %s run.folder=%s", in("pixels.json"), in("grey")), 0);
    expect_labels("grey", "images/label/0", false);
    assert_false(has_tag(in("grey"), "train/update_miou"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_steps_and_seconds),
        cmocka_unit_test(names_of_slim),
        cmocka_unit_test(activations_of_training),
        cmocka_unit_test(names_of_deeplab),
    };

    return cmocka_run_group_tests(tests, world, drop_world);
}
