/* crop_and_resize and sensitive_crops on maps and boxes whose crops are known by hand, on the CPU
 * and every device: samples exactly on the map's border, and next to it. A map that rises by 10 for
 * each row and by 1 for each column has the value 10 y + x everywhere. */
#include <pumice/plan.h>

#include <math.h>

#include "device/every_device.h"
#include "two_steps.h"

enum { SIDE = 4, MOST = 4096 };

struct scene {
    const char *layer; /* with options */
    int h, w, c;
    const float *map;
    int boxes;
    const float (*box)[4];
    const int *count; /* or NULL */
};

/* Fills out with the output and returns its number of values. */
static size_t run(struct pm_device *d, const struct scene *s, float *out)
{
    static const char *const outputs[] = { "y", NULL };
    const struct pm_plan_options options = { .outputs = outputs, .slots = 1, .loss_share = 1 };
    const struct pm_shape map = PM_SHAPE4(1, s->h, s->w, s->c);
    struct pm_net *net = pm_net_create();
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;
    struct pm_node *in[3];
    size_t count;

    in[0] = pm_net_input(net, "map", map, PM_F32);
    in[1] = pm_net_input(net, "boxes", PM_SHAPE3(1, s->boxes, 4), PM_F32);
    if (s->count)
        in[2] = pm_net_input(net, "count", PM_SHAPE1(1), PM_I32);
    const struct pm_node *y = pm_net_add_many(net, "y", in, s->count ? 3 : 2, "%s", s->layer);
    ok(net->error);
    count = pm_shape_count(y->out_shape);
    assert_true(count <= MOST);
    ok(pm_variables_create(d, net, false, NULL, &variables));
    ok(pm_plan_create(net, d, variables, &options, &plan));
    ok(pm_plan_load(plan));
    memcpy(pm_plan_input(plan, 0, "map", 0), s->map, pm_shape_count(map) * sizeof *s->map);
    memcpy(pm_plan_input(plan, 0, "boxes", 0), s->box, (size_t)s->boxes * sizeof *s->box);
    if (s->count)
        memcpy(pm_plan_input(plan, 0, "count", 0), s->count, sizeof *s->count);
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    memcpy(out, pm_plan_output(plan, 0, "y", 0), count * sizeof *out);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
    return count;
}

/* 10 y + x. */
static const float *rising(void)
{
    static float map[SIDE * SIDE];

    for (int i = 0; i < SIDE * SIDE; i++)
        map[i] = (float)(10 * (i / SIDE) + i % SIDE);
    return map;
}

/* The numbers of these cases are exact in float32. */
static void expect(struct pm_device *d, const char *options, const float box[4], const float *want,
                   size_t count)
{
    static float y[MOST];
    char layer[64];
    const struct scene s = { layer, SIDE, SIDE, 1, rising(), 1, (const float (*)[4])box, NULL };

    snprintf(layer, sizeof layer, "crop_and_resize %s", options);
    assert_int_equal(run(d, &s, y), count);
    for (size_t i = 0; i < count; i++)
        if (y[i] != want[i])
            fail_msg("%s: %s: value %zu is %g instead of %g", pm_device_get_info(d)->name, layer, i,
                     y[i], want[i]);
}

#define BOX(...) (const float[]){ __VA_ARGS__ }
#define WANT(...)                                                                                  \
    (const float[]){ __VA_ARGS__ }, sizeof((const float[]){ __VA_ARGS__ }) / sizeof(float)

static void known_crops(struct pm_device *d)
{
    const float above = nextafterf(1, 2);

    expect(d, "size=4", BOX(0, 0, 1, 1), rising(), SIDE * SIDE);
    expect(d, "size=1", BOX(0, 0, 1, 1), WANT(16.5f));
    expect(d, "size=[1,2]", BOX(0, 0, 1, 1), WANT(15, 18));
    expect(d, "size=[2,4]", BOX(1, 0, 1, 1), WANT(30, 31, 32, 33, 30, 31, 32, 33));
    expect(d, "size=[3,2]", BOX(0, 0, 2, 1), WANT(0, 3, 30, 33, 0, 0));
    expect(d, "size=2", BOX(1, 1, 0, 0), WANT(33, 30, 3, 0));
    expect(d, "size=[2,3]", BOX(0.5f, -0.5f, 0.5f, 0.5f), WANT(0, 15, 16.5f, 0, 15, 16.5f));
    /* The next float after the border is outside. So small a number that a device may round to 0 is
     * inside for all. */
    expect(d, "size=2", BOX(1, 1, above, above), WANT(33, 0, 0, 0));
    expect(d, "size=2", BOX(0, 1, -1e-40f, 0), WANT(3, 0, 3, 0));
    expect(d, "size=2", BOX(-1e-20f, 0, 1, 1), WANT(0, 0, 30, 33));
    /* Not numbers, infinite, beyond the limit. */
    expect(d, "size=2", BOX(0, 0, 1, NAN), WANT(0, 0, 0, 0));
    expect(d, "size=2", BOX(-INFINITY, 0, 1, 1), WANT(0, 0, 0, 0));
    expect(d, "size=[1,2]", BOX(0, 0, 1, 1.5e30f), WANT(0, 0));
    expect(d, "size=[1,2]", BOX(0, 0, 1, 1e30f), WANT(15, 0));
}

/* Boxes that end at the last row have their last samples there, wherever they begin, also far
 * outside, where roundings are larger. */
static void last_row(struct pm_device *d)
{
    enum { BOXES = 97, SAMPLES = 13 };
    static float box[BOXES][4], y[MOST];
    const struct scene s = { "crop_and_resize size=[13,2]", SIDE, SIDE, 1, rising(), BOXES,
                             (const float (*)[4])box, NULL };

    for (int i = 0; i < BOXES; i++)
        box[i][0] = 0.9f - (float)i / 7, box[i][2] = box[i][3] = 1;
    assert_int_equal(run(d, &s, y), BOXES * SAMPLES * 2);
    for (int i = 0; i < BOXES * SAMPLES; i++) {
        const double top = 30.0 * box[i / SAMPLES][0];
        const double want = top + i % SAMPLES * (30 - top) / (SAMPLES - 1);
        /* Three roundings of a place, whose terms are up to |top| + 30 together, and four of the
         * sum of up to 30. */
        const double allowed = (3 * (fabs(top) + 30) + 4 * 30) * 0x1p-24;

        if (fabs(want) <= allowed)
            continue; /* either side of the first row's border */
        if (!(fabs(y[2 * i] - (want < 0 ? 0 : want)) <= allowed))
            fail_msg("%s: sample %d of box %d is %g instead of %g", pm_device_get_info(d)->name,
                     i % SAMPLES, i / SAMPLES, y[2 * i], want);
    }
}

/* Groups that hold 1, 2, 3 and 4: a box on the map has their mean. A box that leaves the map on one
 * side loses the samples there. */
static void known_bins(struct pm_device *d)
{
    static float map[SIDE * SIDE * 4], y[MOST];
    const float box[][4] = { { 0, 0, 1, 1 }, { 0, 0, 2, 1 }, { 2, 2, 3, 3 }, { 0, 0, 1, 1 } };
    const float want[] = { 2.5f, 0.5f * (1 + 2) * 0.5f, 0, 0 };
    const int count = 3;
    struct scene s = { "sensitive_crops bins=2 size=2", SIDE, SIDE, 4, map, 4, box, &count };

    for (int i = 0; i < SIDE * SIDE * 4; i++)
        map[i] = (float)(1 + i % 4);
    assert_int_equal(run(d, &s, y), 4);
    for (int i = 0; i < 4; i++)
        assert_true(y[i] == want[i]);
    s.layer = "sensitive_crops bins=2 size=4"; /* samples at the corners of the bins */
    run(d, &s, y);
    assert_true(y[0] == 2.5f);
    /* Rows at 0 and 3 in the upper bins, 3 and 6 in the lower: the last is outside. */
    assert_true(y[1] == 0.25f * (1 + 2 + 1.5f + 2));
    s.layer = "sensitive_crops bins=1 size=1"; /* the centres, all groups apart */
    assert_int_equal(run(d, &s, y), 16);
    for (int i = 0; i < 16; i++)
        assert_true(y[i] == (i < 8 ? (float)(1 + i % 4) : 0));
}

/* The map is a variable, so its gradient can be read. The boxes overlap each other. */
static const char layers[] =
    "[{\"name\": \"m\", \"layer\": \"parameter\", \"shape\": [2, 9, 8, 32],"
    "  \"init\": \"normal(1)\", \"inputs\": [\"images\"]},"
    " {\"name\": \"f\", \"layer\": \"slice\", \"size\": [-1, 2, 6, 3], \"inputs\": [\"images\"]},"
    " {\"name\": \"r\", \"layer\": \"reshape\", \"shape\": [0, -1, 4]},"
    " {\"name\": \"b\", \"layer\": \"sigmoid\"},"
    " {\"name\": \"c\", \"layer\": \"crop_and_resize\", \"size\": 5, \"inputs\": [\"m\", \"b\"]},"
    " {\"name\": \"d\", \"layer\": \"reshape\", \"shape\": [2, -1]},"
    " {\"name\": \"s\", \"layer\": \"sensitive_crops\", \"bins\": 2, \"size\": 4,"
    "  \"inputs\": [\"m\", \"b\"]},"
    " {\"name\": \"e\", \"layer\": \"reshape\", \"shape\": [2, -1]},"
    " {\"name\": \"j\", \"layer\": \"concat\", \"axis\": 1, \"inputs\": [\"d\", \"e\"]},"
    " {\"name\": \"y\", \"layer\": \"fully_connected\", \"units\": 10}]";

static struct two_steps steps_with(int threads, enum pm_recompute recompute)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = list_net(layers, 2, 9, 8, &heads);
    struct pm_device *d = cpu_with(threads);
    struct two_steps r;

    ok(net->error);
    add_head_losses(net, &heads);
    ok(net->error);
    r = two_steps(d, net, 1, recompute);
    pm_device_close(&d);
    pm_net_destroy(&net);
    return r;
}

/* Threads share the gradient's rows, not its sums: their number changes no bit. Nor does computing
 * the samples' places again. */
static void same_bits(void **state)
{
    const struct two_steps one = steps_with(1, PM_RECOMPUTE_OFF),
                           three = steps_with(3, PM_RECOMPUTE_OFF),
                           again = steps_with(1, PM_RECOMPUTE_MOST);
    const float *gradient = (const float *)one.bits;
    size_t changed = 0;

    (void)state;
    assert_int_equal(one.bytes, three.bytes);
    assert_memory_equal(one.bits, three.bits, one.bytes);
    assert_true(again.again > 0);
    assert_memory_equal(one.bits, again.bits, one.bytes);
    for (size_t i = 0; i < (size_t)2 * 9 * 8 * 32; i++)
        changed += gradient[i] != 0;
    assert_true(changed > 2 * 9 * 8 * 32 / 4); /* the boxes cover more than a quarter of the map */
    pm_free(one.bits);
    pm_free(three.bits);
    pm_free(again.bits);
}

/* Each cell of the map is touched by one or two rows of samples with weights above 0. If all
 * gradients of the crop are infinite, so are all of the map's. */
static void infinite_gradients(struct pm_device *d)
{
    static const float box[] = { 0.1f, 0.1f, 0.9f, 0.9f };
    const struct pm_plan_options options = { .name = "train", .train = true, .slots = 1,
                                             .loss_share = 1, .micro_batches = 1 };
    struct pm_net *net = pm_net_create();
    struct pm_variables *variables = NULL;
    struct pm_plan *plan = NULL;
    struct pm_node *in[2], *target = pm_net_input(net, "target", PM_SHAPE4(1, 3, 3, 1), PM_F32);
    float map[SIDE * SIDE] = { 0 };

    in[0] = pm_net_add(net, "map", pm_net_input(net, "x", PM_SHAPE1(1), PM_F32),
                       "parameter shape=[1,4,4,1]");
    in[1] = pm_net_input(net, "boxes", PM_SHAPE3(1, 1, 4), PM_F32);
    in[0] = pm_net_add_many(net, "y", in, 2, "crop_and_resize size=3");
    in[1] = target;
    pm_net_add_many(net, "loss", in, 2, "absolute_error");
    ok(net->error);
    ok(pm_variables_create(d, net, true, NULL, &variables));
    ok(pm_variables_allocate(variables));
    ok(pm_variables_init(variables, 1, NULL));
    ok(pm_plan_create(net, d, variables, &options, &plan));
    ok(pm_plan_load(plan));
    ok(pm_variables_write(variables, 0, -1, map));
    memcpy(pm_plan_input(plan, 0, "boxes", 0), box, sizeof box);
    for (int i = 0; i < 9; i++) /* below the crop: its gradients are positive */
        ((float *)pm_plan_input(plan, 0, "target", 0))[i] = -1;
    *pm_plan_step(plan, 0) = (struct pm_step){ .loss_scale = INFINITY };
    ok(pm_plan_submit(plan, 0));
    ok(pm_plan_wait(plan, 0));
    ok(pm_buffer_read(d, variables->grads, variables->offset[0], map, sizeof map));
    for (int i = 0; i < SIDE * SIDE; i++)
        if (map[i] != INFINITY)
            fail_msg("%s: the gradient of cell %d is %g instead of inf",
                     pm_device_get_info(d)->name, i, map[i]);
    pm_plan_destroy(&plan);
    pm_variables_destroy(&variables);
    pm_net_destroy(&net);
}

static void refused(const char *layer, int channels, bool flat, const char *text)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[3] = { pm_net_input(net, "map", PM_SHAPE4(2, 5, 4, channels), PM_F32),
                              pm_net_input(net, "boxes", flat ? PM_SHAPE2(2, 4)
                                                              : PM_SHAPE3(2, 7, 4), PM_F32),
                              pm_net_input(net, "count", PM_SHAPE1(3), PM_I32) };
    const bool counted = strstr(text, "valid boxes") != NULL;

    pm_net_add_many(net, "y", in, counted ? 3 : 2, "%s", layer);
    assert_int_equal(net->error, PM_ECONFIG);
    if (!strstr(pm_error_text(), text))
        fail_msg("%s: the message is \"%s\"", layer, pm_error_text());
    pm_net_destroy(&net);
}

/* Tables that int cannot count. The inputs have no memory yet. */
static void refused_size(void)
{
    struct pm_net *net = pm_net_create();
    struct pm_node *in[2] = { pm_net_input(net, "map", PM_SHAPE4(1, 2000, 2000, 1), PM_F32),
                              pm_net_input(net, "boxes", PM_SHAPE3(1, 1 << 20, 4), PM_F32) };

    pm_net_add_many(net, "y", in, 2, "crop_and_resize size=1");
    assert_int_equal(net->error, PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "y: boxes of 1x1048576x4 need tables of more than 2^31 "
                                            "- 1 numbers for a map of 2000x2000"));
    pm_net_destroy(&net);
}

static void messages(void **state)
{
    (void)state;
    refused("sensitive_crops size=14", 9, false,
            "y: the height of size is 14, which bins do not divide. Set a multiple of 3");
    refused("sensitive_crops size=[6,8]", 9, false, "y: the width of size is 8");
    refused("sensitive_crops bins=[2,4] size=8", 9, false,
            "y: its map has 9 channels, which its 2x4 bins do not divide. Set a multiple of 8");
    refused("sensitive_crops bins=[1,2,3]", 9, false, "y: bins must be height and width");
    refused("crop_and_resize size=[1,2,3]", 9, false, "y: size must be height and width");
    refused("crop_and_resize size=0", 9, false, "0 is outside 1..1024");
    refused("crop_and_resize", 9, true, "boxes of n x R x 4, not 2x5x4x9 and 2x4");
    refused("crop_and_resize", 9, false,
            "y: the third input of crop_and_resize, count, is int32 of shape 3 instead of int32 of "
            "shape 2. Give the number of valid boxes of each image");
    refused_size();
}

ON_EVERY_DEVICE(known_crops)
ON_EVERY_DEVICE(last_row)
ON_EVERY_DEVICE(infinite_gradients)
ON_EVERY_DEVICE(known_bins)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_crops),
        cmocka_unit_test(test_last_row),
        cmocka_unit_test(test_known_bins),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(test_infinite_gradients),
        cmocka_unit_test(messages),
    };

    use_software_drivers();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
