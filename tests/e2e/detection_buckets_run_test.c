/* Training a detector with pictures of several sizes (input.buckets) by the program, on landscapes,
 * portraits and squares with bright rectangles. Killed and started again, or after a lost device,
 * training ends with the same bits. Clones of any shares, and micro-batches, learn what one device
 * does. The sizes share the memory of the largest. Wrong sizes are found before training. */
#include "e2e/interrupted.h"

#include <pumice/objects.h>
#include <pumice/rng.h>

/* Pictures become 64x96, 96x64 or 64x64. */
static const char net[] =
    "{ \"task\": \"detection\", \"model\": { \"name\": \"faster_rcnn_mobilenet_v1\",\n"
    "    \"number_of_stages\": 1, \"depth_multiplier\": 0.25,\n"
    "    \"first_stage_box_predictor_depth\": 32,\n"
    "    \"anchors\": { \"scales\": [0.1, 0.2], \"aspect_ratios\": [1, 2] } },\n"
    "  \"data\": { \"folder\": \"%s/data\", \"eval_split\": \"test\", \"class_agnostic\": true,\n"
    "            \"threads\": 2 },\n"
    "  \"input\": { \"buckets\": [64, [64, 96], [96, 64], 96],\n"
    "             \"resizer\": \"keep_aspect_ratio\", \"min_dimension\": 64,\n"
    "             \"max_dimension\": 96, \"pad_value\": [-1],\n"
    "             \"augment\": [{ \"name\": \"random_flip\" }] },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"loss\": { \"minibatch_sampler\": { \"batch_size\": 32 } },\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.01 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 24, \"batch_size\": 3,\n"
    "           \"log_every_steps\": 1, \"save_every_steps\": 4, \"keep\": 2 },\n"
    "  \"eval\": { \"every_steps\": 12, \"batch_size\": 4, \"score_threshold\": 0.01 } }\n";
enum { ANCHORS = 4 }; /* in a cell of 16 x 16 pixels */

/* Of landscapes, portraits and squares. */
static const int sizes[3][2] = { { 128, 192 }, { 192, 128 }, { 70, 70 } };

/* Pictures of a split. first: which of the sizes the first one has; the others follow in turn. */
struct split { const char *name; size_t count; uint64_t seed; size_t first; };

/* Draws picture i of a split: grey with noise, and a bright rectangle. */
static int fill(void *ctx, size_t i, struct pm_example_builder *b)
{
    const struct split *split = ctx;
    const int *size = sizes[(split->first + i) % 3];
    struct pm_rng r = pm_rng_make(9, split->seed, (uint32_t)i, 0);
    struct pm_image8 im = { size[0], size[1], 3,
                            pm_malloc(3 * (size_t)size[0] * (size_t)size[1]) };
    const int y = (int)pm_rng_int(&r, 2, size[0] / 2), x = (int)pm_rng_int(&r, 2, size[1] / 2);
    const int bottom = y + size[0] / 4, right = x + size[1] / 4;
    struct pm_objects o;
    int err;

    for (int k = 0; k < size[0] * size[1] * 3; k++) {
        const int row = k / 3 / size[1], column = k / 3 % size[1];
        const bool in = row >= y && row < bottom && column >= x && column < right;

        im.pixels[k] = (uint8_t)(pm_rng_int(&r, 40, 90) + (in ? 150 : 0));
    }
    pm_objects_start(&o, size[0], size[1]);
    o.has = PM_HAS_LABEL;
    struct pm_object *one = pm_objects_add(&o);
    const float box[4] = { (float)y / (float)size[0], (float)x / (float)size[1],
                           (float)bottom / (float)size[0], (float)right / (float)size[1] };

    memcpy(one->box, box, sizeof box);
    one->label = 1;
    err = pm_making_picture(b, &im, 0);
    pm_objects_write(&o, b);
    pm_objects_free(&o);
    pm_image_free(&im);
    return err;
}

static int make_data(void **state)
{
    static struct split splits[] = {
        { "train", 24, 1, 0 }, { "test", 6, 2, 0 },
        { "portraits", 1, 3, 1 }, { "squares", 1, 4, 2 },
    };
    struct pm_making *m = NULL;

    (void)state;
    if (make_world(false) < 0)
        return -1;
    assert_int_equal(pm_making_create(in("data"), "plates", false, &m), PM_OK);
    assert_int_equal(pm_making_labels(m, (const char *const[]){ "plate" }, 1), PM_OK);
    for (size_t i = 0; i < PM_COUNT(splits); i++)
        assert_int_equal(pm_making_split(m, splits[i].name, splits[i].count, NULL, fill,
                                         &splits[i]), PM_OK);
    assert_int_equal(pm_making_finish(m), PM_OK);
    pm_making_destroy(&m);
    put_net(net);
    return 0;
}

/* The number of anchors in a step's log shows the size of its pictures. In 24 steps, 24 cells
 * (64x96 and 96x64) and 36 cells (96x96) both occur more than twice. 16 cells (64x64) need three
 * squares in one batch and may be missing. */
static void sizes_in_log(void **state)
{
    int seen[4] = { 0 };
    char *log;

    (void)state;
    train_whole();
    log = get_text(in("whole/log.txt"));
    assert_contains(log, "cpu: 4 sizes of pictures, 96x96 (");
    pm_free(log);
    for (int step = 1; step <= 24; step++) {
        const double n = logged("whole", step, "positive_anchors") +
                         logged("whole", step, "negative_anchors") +
                         logged("whole", step, "ignored_anchors");
        const int cells = (int)(n / ANCHORS + 0.5);

        assert_true(cells == 16 || cells == 24 || cells == 36);
        seen[cells == 16 ? 0 : cells == 24 ? 1 : 2]++;
        assert_true(logged("whole", step, "positive_anchors") > 0);
    }
    assert_true(seen[1] > 2 && seen[2] > 2);
}

/* With a list of one size training is the same as with input.size. */
static void one_bucket(void **state)
{
    (void)state;
    train("bucket", "input.buckets=[96] run.steps=8");
    train("size", "input.buckets=null input.size=96 run.steps=8");
    same_run(in("bucket"), in("size"));
}

/* The loss of a picture in a bucket of its own size is that of a run with only this size. The first
 * picture of each split has another size. */
static void own_size(void **state)
{
    static const char *const splits[][2] = {
        { "train", "[64,96]" }, { "portraits", "[96,64]" }, { "squares", "64" },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(splits); i++) {
        char text[512], more[256], name[32];

        snprintf(more, sizeof more, "data.shuffle=false data.train_split=%s run.batch_size=1 "
                 "run.steps=1 eval.every_steps=0 input.augment=[]", splits[i][0]);
        snprintf(name, sizeof name, "all_%s", splits[i][0]);
        train(name, more);
        snprintf(text, sizeof text, "%s 'input.buckets=[%s]'", more, splits[i][1]);
        train(splits[i][0], text);
        same_losses(name, splits[i][0], 1, 1, 0);
    }
}

/* Beside a faster device, a slow one gets a smaller part of each batch. The losses stay those of
 * one device. */
static void moved_shares(void **state)
{
    static const char more[] = "run.batch_size=4 run.steps=14 eval.every_steps=0";
    cJSON *shares;
    char *text;

    (void)state;
    train("still", more);
    check(run(&(struct how){ .environment = "PM_SLOW=1:6" }, "train %s run.folder=%s %s "
              "run.balance=auto 'devices=[\"cpu\",\"cpu\"]'", in("net.json"), in("moved"), more),
          0);
    text = get_text(in("moved/shares.json"));
    shares = cJSON_Parse(text);
    assert_true(number_of(cJSON_GetArrayItem(shares, 1), "share") <
                number_of(cJSON_GetArrayItem(shares, 0), "share"));
    cJSON_Delete(shares);
    pm_free(text);
    same_losses("still", "moved", 1, 14, 1e-5);
}

static void other_options(void **state)
{
    (void)state;
    train("less", "run.recompute=most run.steps=8");
    train("usual", "run.steps=8");
    same_losses("less", "usual", 1, 8, 0);
    train("own", "eval.resize=false run.steps=6 eval.every_steps=3");
    train("crops", "run.steps=8 eval.every_steps=0 'input.augment=["
                   "{\"name\": \"ssd_random_crop\"}, {\"name\": \"random_pad_image\"}]'");
    train("ssd", "run.steps=8 loss.minibatch_sampler=null eval.every_steps=0");
    check(run(NULL, "bench %s --steps 2", in("net.json")), 0);
}

static void shown(void **state)
{
    struct result r = run(NULL, "config show %s --plan --json", in("net.json"));
    cJSON *json = json_of(&r), *plan, *list, *size;
    double largest = 0, sum = 0;

    (void)state;
    check(r, 0);
    plan = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "clones"), 0);
    list = cJSON_GetObjectItem(plan, "sizes");
    assert_int_equal(cJSON_GetArraySize(list), 4);
    cJSON_ArrayForEach(size, list)
    {
        const double bytes = number_of(size, "activations");

        largest = bytes > largest ? bytes : largest;
        sum += bytes;
    }
    assert_true(number_of(plan, "activations") == largest && sum > 1.5 * largest);
    cJSON_Delete(json);
    r = run(NULL, "config show %s --plan", in("net.json"));
    assert_contains(r.out, "train 64x96 plan on");
    assert_contains(r.out, "train 96x64 plan on");
    assert_contains(r.out, "4 sizes share one block of activations");
    check(r, 0);
}

static struct result check_with(const char *more)
{
    return run(NULL, "config check %s %s", in("net.json"), more);
}

/* `config check` finds sizes that do not suit the pictures. */
static void checked(void **state)
{
    struct result r = check_with("");

    (void)state;
    assert_null(strstr(r.out, "input.buckets"));
    assert_contains(r.out, "input 64x96: ");
    check(r, 0);
    r = check_with("'input.buckets=[64,[64,96],[96,64],96,[48,60],[96,112]]'");
    assert_contains(r.out, "input.buckets: 48 x 60 holds no picture of the training split");
    assert_contains(r.out, "input.buckets: no batch has the size 96 x 112, because smaller ones "
                           "hold all pictures");
    check(r, 0);
    r = check_with("run.batch_size=1");
    assert_contains(r.out, "input.buckets: no batch has the size 96 x 96");
    check(r, 0);
    check(check_with("'input.buckets=[64,[64,96]]'"), 2, "input.buckets: ",
          "plates_train.tfrecord record ", ": the picture is 96 x 64 when resized, which no size "
          "of input.buckets holds; the largest is 64 x 96: add [96, 64]");
    check(check_with("'input.buckets=[64,[64,96],[96,64]]'"), 2,
          "no size of input.buckets holds both ",
          "the largest is 64 x 96: add [96, 96] to input.buckets, or set run.batch_size=1");
    r = check_with("'input.buckets=[64,[64,96],[96,64]]' run.batch_size=1");
    assert_contains(r.out, "input.eval_size: evaluation pads pictures to 64 x 96 and fails at "
                           "larger ones, such as ");
    assert_contains(r.out, ", which is 96 x 64 when resized");
    check(r, 0);
    r = check_with("'input.buckets=[64,[64,96],[96,64]]' run.batch_size=1 input.eval_size=96");
    assert_null(strstr(r.out, "warning"));
    check(r, 0);
    r = check_with("'input.buckets=[64,[64,96],[96,64]]' run.batch_size=1 eval.resize=false");
    assert_null(strstr(r.out, "warning"));
    check(r, 0);
}

/* Training ends with one line at the first batch that no size holds. */
static void refused(void **state)
{
    (void)state;
    check(run(NULL, "train %s run.folder=%s 'input.buckets=[64,[64,96]]' eval.every_steps=0",
              in("net.json"), in("bad")), 3, ": the picture is 96 x 64 when resized, which no size "
          "of input.buckets holds; the largest is 64 x 96: add [96, 64]");
    check(run(NULL, "train %s run.folder=%s 'input.buckets=[64,[64,96],[96,64]]' "
                    "eval.every_steps=0", in("net.json"), in("bad")), 3,
          ": no size of input.buckets holds both ", "add [96, 96] to input.buckets, or set "
          "run.batch_size=1");
    check(run(NULL, "train %s run.folder=%s 'input.buckets=[96,32]'", in("net.json"), in("bad")),
          2, "images of 32x32 are too small, at least 33x33 are needed: set a larger input size");
    check(run(NULL, "train %s run.folder=%s input.preprocessing=torch 'input.resizer=null'",
              in("net.json"), in("bad")), 2,
          "input.resizer: unknown key, did you mean 'size'?");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_in_log), cmocka_unit_test(same_after_kills),
        cmocka_unit_test(same_after_loss), cmocka_unit_test(same_in_parts),
        cmocka_unit_test(one_bucket), cmocka_unit_test(own_size), cmocka_unit_test(moved_shares),
        cmocka_unit_test(other_options), cmocka_unit_test(shown), cmocka_unit_test(checked),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests(tests, make_data, drop_world);
}
