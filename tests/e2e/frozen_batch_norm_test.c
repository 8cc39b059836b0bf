/* model.batch_norm_train=false with the program, a DeepLab net on drawn shapes: the moving
 * averages stay the same bit for bit, scale and offset of every batch norm are trained, and
 * dropout is active. golden_test compares the computed values (deeplab_frozen). */
#include "e2e/program.h"

#include <pumice/checkpoint.h>

static const char net[] =
    "{ \"task\": \"segmentation\",\n"
    "  \"model\": { \"name\": \"deeplab_mobilenet_v3_small_seg\", \"decoder_strides\": 4 },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"threads\": 2 }, \"input\": { \"size\": 33 },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"steps\": 3, \"batch_size\": 4, \"log_every_steps\": 1 } }\n";

/* Trains three steps with the batch's statistics, from which the other runs start. Their
 * averages are close to the statistics, as after a long training. With the initial 0 and 1
 * hardly any gradient would reach the first layers. */
static int begin(void **state)
{
    struct pm_str text = { 0 };

    (void)state;
    if (make_world(true) < 0)
        return -1;
    pm_str_add(&text, net, folder);
    put_text(in("seg.json"), text.text);
    pm_str_free(&text);
    check(run(NULL, "train %s run.folder=%s model.batch_norm_decay=0.5 "
              "model.head_batch_norm_decay=0.5", in("seg.json"), in("source")), 0);
    return 0;
}

static void train_frozen(const char *name, const char *more)
{
    check(run(NULL, "train %s run.folder=%s init.checkpoint=%s model.batch_norm_train=false %s",
              in("seg.json"), in("%s", name), in("source"), more), 0);
}

static struct pm_checkpoint *newest(const char *name)
{
    struct pm_checkpoint *c = NULL;

    if (pm_checkpoint_open_newest(in("%s", name), &c) < 0 || !c)
        fail_msg("%s", pm_error_text());
    return c;
}

static bool ends_with(const char *text, const char *end)
{
    const size_t n = strlen(text), m = strlen(end);
    return n >= m && strcmp(text + n - m, end) == 0;
}

static bool same(const struct pm_checkpoint *x, const struct pm_checkpoint *y,
                 const struct pm_file_tensor *t)
{
    const struct pm_file_tensor *u = pm_tensor_file_find(y->tensors, t->name);
    const size_t size = (size_t)t->bytes;
    char *a = pm_malloc(size), *b = pm_malloc(size);

    if (!u || u->bytes != t->bytes || pm_tensor_file_bytes(x->tensors, t, 0, size, a) < 0 ||
        pm_tensor_file_bytes(y->tensors, u, 0, size, b) < 0)
        fail_msg("%s is not in %s", t->name, y->path);
    const bool equal = memcmp(a, b, size) == 0;
    pm_free(a), pm_free(b);
    return equal;
}

static void averages_stay(void **state)
{
    struct pm_checkpoint *x = newest("source"), *y;
    int averages = 0, trained = 0;

    (void)state;
    train_frozen("frozen", "");
    y = newest("frozen");
    for (size_t i = 0; i < pm_tensor_file_count(x->tensors); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(x->tensors, i);
        const bool average =
            ends_with(t->name, "/moving_mean") || ends_with(t->name, "/moving_variance");

        if (!average && !ends_with(t->name, "/gamma") && !ends_with(t->name, "/beta"))
            continue;
        if (same(x, y, t) != average)
            fail_msg("%s %s", t->name, average ? "has moved" : "was not trained");
        averages += average, trained += !average;
    }
    assert_int_equal(averages, trained);
    assert_true(averages > 2 * 40);
    pm_checkpoint_close(&x), pm_checkpoint_close(&y);
}

/* The loss of the first step. */
static double loss(const char *name)
{
    char *text = get_text(in("%s/metrics.jsonl", name));

    cJSON *json = cJSON_Parse(text); /* the first line */
    const double value = number_of(json, "loss");
    cJSON_Delete(json);
    pm_free(text);
    return value;
}

static void dropout_works(void **state)
{
    (void)state;
    train_frozen("dropped", "run.steps=1");
    train_frozen("again", "run.steps=1");
    train_frozen("whole", "run.steps=1 model.keep_prob=1");
    assert_true(loss("dropped") == loss("again"));
    assert_true(loss("dropped") != loss("whole"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(averages_stay),
        cmocka_unit_test(dropout_works),
    };

    return cmocka_run_group_tests_name("frozen_batch_norm", tests, begin, drop_world);
}
