/* An experiment builds a net once for each use, number of pictures and size. Training continues
 * with the net that determined the task's heads. Evaluation of many sizes keeps the last 8. */
#include "device/every_device.h"
#include "experiment/experiment.h"
#include "experiment/net_sizes.h"

#include <pumice/train.h>

#include <cjson/cJSON.h>
#include <string.h>

static struct pm_experiment *opened(struct pm_arena *a, const char *text, struct pm_config **c)
{
    const struct pm_open_sections open = pm_train_choices(a);
    struct pm_experiment *e = NULL;

    if (pm_config_parse("t.json", text, NULL, 0, &open, c) < 0 || pm_experiment_open(*c, 0, &e) < 0)
        fail_msg("%s", pm_error_text());
    return e;
}

static struct pm_net *net(struct pm_experiment *e, enum pm_use use, int batch, int height,
                          int width)
{
    struct pm_net *n = NULL;

    if (pm_experiment_net(e, (struct pm_net_want){ use, batch, height, width }, &n, NULL) < 0)
        fail_msg("%s", pm_error_text());
    pm_net_destroy(&(struct pm_net *){ n }); /* the experiment keeps its net */
    return n;
}

static void once(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_config *c = NULL;
    struct pm_experiment *e =
        opened(a, "{\"model\": {\"name\": \"lenet\", \"num_classes\": 10}}", &c);
    struct pm_net *train = net(e, PM_USE_TRAIN, 4, 0, 0), *eval = net(e, PM_USE_EVAL, 4, 0, 0);

    (void)state;
    assert_ptr_not_equal(train, eval);
    assert_ptr_equal(net(e, PM_USE_TRAIN, 4, 0, 0), train);
    assert_ptr_equal(net(e, PM_USE_TRAIN, 4, 28, 28), train); /* the size that lenet expects */
    assert_ptr_equal(net(e, PM_USE_EVAL, 4, 0, 0), eval);
    assert_ptr_not_equal(net(e, PM_USE_TRAIN, 5, 0, 0), train);
    assert_ptr_not_equal(net(e, PM_USE_TRAIN, 4, 32, 28), train);
    pm_experiment_close(&e);
    pm_config_destroy(&c);
    pm_arena_destroy(&a);
}

/* Verification draws labels from the task's label range. */
static void continued(void **state)
{
    static const char text[] =
        "{\"task\": \"segmentation\", \"model\": {\"num_classes\": 3, \"layers\": [\n"
        "  {\"layer\": \"conv2d\", \"filters\": 3, \"kernel\": 1}]},\n"
        " \"input\": {\"size\": 8, \"preprocessing\": \"deeplab\"}, \"run\": {\"batch_size\": 6}}";
    struct pm_arena *a = pm_arena_create();
    struct pm_config *c = NULL;
    struct pm_experiment *e = opened(a, text, &c);
    const int before = (int)e->nets_count;
    struct pm_net *train = net(e, PM_USE_TRAIN, 6, 0, 0);

    (void)state;
    assert_int_equal(before, 1); /* the net that determined the heads */
    assert_int_equal(e->nets_count, 1);
    assert_non_null(pm_net_find(train, "loss"));
    assert_true(pm_net_values(pm_net_find(train, "labels")).low == 0 &&
                pm_net_values(pm_net_find(train, "labels")).high == 2);
    assert_ptr_not_equal(net(e, PM_USE_HEADS, 6, 8, 8), train); /* training owns that net now */
    assert_int_equal(e->nets_count, 2);
    pm_experiment_close(&e);
    pm_config_destroy(&c);
    pm_arena_destroy(&a);
}

/* Returns how many allocations the net of size x size pictures needs; 0: it is there. */
static uint64_t allocations(struct pm_net_sizes *s, int size)
{
    const uint64_t before = pm_alloc_count();
    struct pm_net_of_size out;

    ok(pm_net_sizes_get(s, (struct pm_frame){ size, size }, &out));
    assert_int_equal(out.frame.height, size);
    assert_int_equal(pm_net_find(out.net, "images")->out_shape.dim[1], size);
    return pm_alloc_count() - before;
}

/* Pictures that keep their sizes: the net that was used least recently makes room for a ninth. */
static void last_eight(void **state)
{
    static const char text[] =
        "{\"task\": \"segmentation\", \"model\": {\"num_classes\": 3, \"layers\": [\n"
        "  {\"layer\": \"conv2d\", \"filters\": 3, \"kernel\": 1}]},\n"
        " \"input\": {\"size\": 8, \"preprocessing\": \"deeplab\"}}";
    struct pm_arena *a = pm_arena_create();
    struct pm_device *d = cpu_with(1);
    struct pm_config *c = NULL;
    struct pm_experiment *e = opened(a, text, &c);
    struct pm_variables *v = NULL;
    struct pm_net_sizes *s = NULL;
    const size_t before = e->nets_count;

    (void)state;
    ok(pm_variables_create(d, net(e, PM_USE_EVAL, 2, 0, 0), false, NULL, &v));
    ok(pm_variables_allocate(v));
    ok(pm_net_sizes_create(&(struct pm_net_sizes_options){
        .e = e, .device = d, .variables = v, .use = PM_USE_EVAL, .batch = 2, .slots = 1 }, &s));
    for (int size = 40; size > 33; size--) /* with 8 x 8, these are eight */
        assert_true(allocations(s, size) > 0);
    assert_int_equal(e->nets_count, before + 8);
    for (int i = 0; i < 2; i++) /* at first it is recorded again, because the memory moved */
        assert_true(allocations(s, 8) == 0 || i == 0);
    assert_true(allocations(s, 20) > 0); /* removes 40 x 40 */
    assert_int_equal(e->nets_count, before + 8);
    for (int size = 39; size > 33; size--)
        assert_int_equal(allocations(s, size), 0);
    assert_int_equal(allocations(s, 8), 0);
    assert_true(allocations(s, 40) > 0);
    assert_int_equal(e->nets_count, before + 8);
    pm_net_sizes_destroy(&s);
    pm_variables_destroy(&v);
    pm_experiment_close(&e);
    pm_config_destroy(&c);
    pm_device_close(&d);
    pm_arena_destroy(&a);
}

/* Returns the number of steps over which the paths of a net are dropped more often. */
static double drop_path_steps(const char *more)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_config *c = NULL;
    const char *text = pm_arena_printf(
        a, "{\"task\": \"segmentation\", \"model\": {\"name\": \"deeplab_nas_pnasnet\", "
           "\"num_classes\": 3, \"drop_path_keep\": 0.8, \"output_stride\": 16%s}", more);
    struct pm_experiment *e = opened(a, text, &c);
    const struct pm_net *n = net(e, PM_USE_TRAIN, 1, 65, 65);
    double steps = -1;

    for (int i = 0; i < n->count; i++)
        if (strcmp(n->nodes[i]->layer->name, "drop_path") == 0) {
            cJSON *options = cJSON_CreateObject();

            pm_opts_dump(n->nodes[i]->layer->opts, n->nodes[i]->cfg, options, false);
            steps = cJSON_GetNumberValue(cJSON_GetObjectItem(options, "steps"));
            cJSON_Delete(options);
        }
    pm_experiment_close(&e);
    pm_config_destroy(&c);
    pm_arena_destroy(&a);
    return steps;
}

/* DeepLab's trainer ramps drop_path_keep_prob over training_number_of_steps, 30,000 by default. */
static void drop_path_follows_the_run(void **state)
{
    (void)state;
    assert_true(drop_path_steps("}, \"run\": {\"steps\": 700}") == 700);
    assert_true(drop_path_steps(", \"drop_path_steps\": 9}, \"run\": {\"steps\": 700}") == 9);
    assert_true(drop_path_steps(", \"drop_path_steps\": 0}, \"run\": {\"steps\": 700}") == 0);
    assert_true(drop_path_steps("}, \"run\": {\"steps\": 0}") == 30000);
    assert_true(drop_path_steps("}") == 30000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(once),
        cmocka_unit_test(continued),
        cmocka_unit_test(last_eight),
        cmocka_unit_test(drop_path_follows_the_run),
    };

    return cmocka_run_group_tests_name("nets", tests, NULL, NULL);
}
