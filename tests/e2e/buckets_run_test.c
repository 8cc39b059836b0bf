/* Training with pictures of several sizes (input.buckets) by the program, on drawn shapes of
 * three sizes in one folder. A batch uses the smallest size that holds it. Killed and started
 * again, or after a lost device, training ends with the same bits. One bucket trains like
 * input.size. The memory of each size is shown. Summaries and metrics use the batch's size. Two
 * devices give the same bits each time. */
#include "e2e/interrupted.h"

static const char net[] =
    "{ \"task\": \"segmentation\", \"model\": { \"layers\": [\n"
    "  { \"name\": \"conv1\", \"layer\": \"conv2d\", \"filters\": 8, \"stride\": 2 },\n"
    "  { \"name\": \"norm1\", \"layer\": \"batch_norm\", \"activation\": \"relu\",\n"
    "    \"decay\": 0.5 },\n"
    "  { \"name\": \"drop\", \"layer\": \"dropout\", \"keep\": 0.8 },\n"
    "  { \"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, \"kernel\": 1 } ] },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"threads\": 2 },\n"
    "  \"input\": { \"preprocessing\": \"deeplab\", \"buckets\": [17, [25, 25], [41, 41]],\n"
    "             \"min_scale\": 0.75, \"max_scale\": 1 },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.05 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 30, \"batch_size\": 3,\n"
    "           \"log_every_steps\": 1, \"save_every_steps\": 4,\n"
    "           \"keep\": 2, \"summary_every_steps\": 3,\n"
    "           \"summary_activations\": 2 },\n"
    "  \"eval\": { \"every_steps\": 10, \"batch_size\": 8 } }\n";

/* Appends the records of FOLDER/sSIDE's split to those of FOLDER/data. */
static void append(int side, const char *split)
{
    const char *to = in("data/shapes_%s_00000-of-00001.tfrecord", split);
    char *data[2] = { NULL, NULL };
    size_t size[2] = { 0, 0 };
    FILE *f;

    if (pm_file_exists(to) && pm_file_read(to, &data[0], &size[0]) < 0)
        fail_msg("%s", pm_error_text());
    if (pm_file_read(in("s%d/shapes_%s_00000-of-00001.tfrecord", side, split), &data[1],
                     &size[1]) < 0)
        fail_msg("%s", pm_error_text());
    f = fopen(to, "wb");
    assert_non_null(f);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(fwrite(data[i] ? data[i] : "", 1, size[i], f), size[i]);
        pm_free(data[i]);
    }
    fclose(f);
}

static int make_data(void **state)
{
    static const int sides[] = { 17, 25, 41 };

    (void)state;
    if (make_world(false) < 0)
        return -1;
    assert_int_equal(pm_make_folders(in("data")), PM_OK);
    for (size_t i = 0; i < PM_COUNT(sides); i++) {
        check(run(NULL, "dataset make shapes %s size=%d train=20 validation=2 test=5 seed=%d",
                  in("s%d", sides[i]), sides[i], sides[i]), 0);
        append(sides[i], "train");
        append(sides[i], "test");
    }
    put_text(in("data/dataset.json"),
             "{ \"name\": \"mixed\", \"splits\": { \"train\": 60, \"test\": 15 },\n"
             "  \"map_labels\": [\"ground\", \"disc\", \"box\", \"triangle\", \"ring\"],\n"
             "  \"thing_classes\": [1, 2, 3, 4], \"ignore_label\": 255, \"num_classes\": 4,\n"
             "  \"channels\": 3 }\n");
    put_net(net);
    return 0;
}

static char *log_of(const char *name)
{
    return get_text(in("%s/log.txt", name));
}

static void sizes_in_log(void **state)
{
    char *log;

    (void)state;
    train_whole();
    log = log_of("whole");
    assert_contains(log, "cpu: 3 sizes of pictures, 41x41 (");
    assert_contains(log, ", 17x17 (");
    assert_contains(log, " for activations");
    pm_free(log);
}

/* With a list of one size only config.json differs. */
static void one_bucket(void **state)
{
    (void)state;
    train("bucket", "'input.buckets=[[41,33]]' input.eval_size=49 run.steps=8");
    train("size", "input.buckets=null 'input.size=[41,33]' input.eval_size=49 run.steps=8");
    same_run(in("bucket"), in("size"));
}

/* Where every picture fits into the smaller size, training is the same as with only this size. */
static void smaller_bucket(void **state)
{
    char more[2048];

    (void)state;
    snprintf(more, sizeof more, "data.folder=%s input.eval_size=17 run.steps=8", in("s17"));
    train("fits", more);
    snprintf(more, sizeof more,
             "data.folder=%s input.buckets=null input.size=17 input.eval_size=17 run.steps=8",
             in("s17"));
    train("only", more);
    same_run(in("fits"), in("only"));
}

/* The loss at the size of the logits, micro-batches, and an evaluation at another size. */
static void other_options(void **state)
{
    (void)state;
    train("small", "loss.upsample_logits=false run.steps=12 input.eval_size=49");
    train("parts", "run.micro_batches=3 run.recompute=most run.steps=12");
    train("list", "run.steps=12 'input.augment=[{\"name\": \"random_scale\"}, "
                  "{\"name\": \"random_crop\"}]'");
    train("traced", "run.steps=6 'run.trace_steps=[2,5]'");
    assert_true(pm_file_exists(in("traced/trace-000002.json")));
    check(run(NULL, "bench %s --steps 4", in("net.json")), 0);
    check(run(NULL, "profile %s --steps 2", in("net.json")), 0);
}

/* The losses of instances and edges have the batch's size, too. */
static void heads(void **state)
{
    (void)state;
    train("heads",
          "run.steps=12 optim.clip_norm=1 schedule.base_lr=0.001 "
          "'model.layers=[{\"name\": \"a\", \"layer\": \"conv2d\", "
          "\"filters\": 8, \"stride\": 2}, "
          "{\"name\": \"instance_center\", \"layer\": \"conv2d\", \"filters\": 1}, "
          "{\"name\": \"instance_offset\", \"layer\": \"conv2d\", \"filters\": 2, "
          "\"inputs\": [\"a\"]}, "
          "{\"name\": \"edge\", \"layer\": \"conv2d\", \"filters\": 2, "
          "\"inputs\": [\"a\"]}, "
          "{\"name\": \"logits\", \"layer\": \"conv2d\", \"filters\": 5, "
          "\"inputs\": [\"a\"]}]'");
}

static void two_devices(void **state)
{
    (void)state;
    train("two", "'devices=[\"cpu\",\"cpu\"]' run.batch_size=4 run.steps=12");
    train("again", "'devices=[\"cpu\",\"cpu\"]' run.batch_size=4 run.steps=12");
    same_run(in("two"), in("again"));
}

static void shown(void **state)
{
    struct result r = run(NULL, "config show %s --plan --json", in("net.json"));
    cJSON *json = json_of(&r), *plan, *sizes, *size;
    double largest = 0, sum = 0;

    (void)state;
    check(r, 0);
    plan = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "clones"), 0);
    sizes = cJSON_GetObjectItem(plan, "sizes");
    assert_int_equal(cJSON_GetArraySize(sizes), 3);
    cJSON_ArrayForEach(size, sizes)
    {
        const double bytes = number_of(size, "activations");

        largest = bytes > largest ? bytes : largest;
        sum += bytes;
    }
    assert_true(number_of(plan, "activations") == largest && sum > 1.3 * largest);
    cJSON_Delete(json);
    r = run(NULL, "config show %s --plan", in("net.json"));
    assert_contains(r.out, "train 25x25 plan on");
    assert_contains(r.out, "3 sizes share one block of activations");
    check(r, 0);
    check(run(NULL, "config check %s", in("net.json")), 0);
}

static void refusals(void **state)
{
    (void)state;
    check(run(NULL, "train %s 'input.buckets=[[17,17],[25]]'", in("net.json")), 2,
          "input.buckets.1: a side or [height, width] is needed");
    check(run(NULL, "train %s input.size=33", in("net.json")), 2,
          "input.size: 33 x 33 is none of input.buckets");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_in_log), cmocka_unit_test(same_after_kills),
        cmocka_unit_test(same_after_loss), cmocka_unit_test(one_bucket),
        cmocka_unit_test(smaller_bucket), cmocka_unit_test(other_options), cmocka_unit_test(heads),
        cmocka_unit_test(two_devices), cmocka_unit_test(shown), cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
