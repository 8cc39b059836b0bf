/* Matting (loss.matting): values of label maps become degrees of foreground. Also the loss in
 * training and evaluation, the metrics, and refused options. */
#include <pumice/plan.h>
#include <pumice/task.h>

#include "tasks/task_fields.h"
#include "tasks/segmentation/segmentation.h"
#include "tasks/segmentation/segmentation_setup.h"

#include <cjson/cJSON.h>

enum { SIZE = 8, PIXELS = SIZE * SIZE };

static struct pm_task setup_of(struct pm_arena *a)
{
    struct pm_task s = segmentation_setup(a, SIZE, SIZE, 2);

    s.pixels.ignore_label = -1;
    s.pixels.matting = true;
    return s;
}

/* ---- samples ----------------------------------------------------------------------------- */

static void make_sample(const struct pm_task *s, int height, int width, int bits,
                        const uint16_t *map, float *out)
{
    struct pm_sampler sampler = { .task = s };
    struct pm_example_builder *b = pm_example_builder_create();
    static const uint8_t pixels[PIXELS * 3] = { 0 };
    uint8_t *record;
    float image[PIXELS * 3];
    size_t size;

    add_picture(b, "image/encoded", height, width, 3, pixels);
    add_map(b, "image/segmentation/class/encoded", height, width, bits, map);
    pm_example_serialise(b, &record, &size);
    const struct pm_loader_record r = { .bytes = record, .size = size, .where = "record",
                                        .seed = 1, .frame = frame_of(&s->facts, false) };
    if (task()->make(&sampler, &r, (void *[]){ image, out }) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(record);
    pm_example_builder_destroy(&b);
}

/* Values of 8 and 16 bits become 0..1; 255 is not ignored. Padding and absent examples are -1. */
static void degrees(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    struct pm_field f[8];
    uint16_t map[PIXELS];
    float out[PIXELS], absent;

    assert_int_equal(fields_of(task(), &s, false, frame_of(&s.facts, false), f), 2);
    assert_int_equal(f[1].type, PM_F32);
    memcpy(&absent, &f[1].absent, sizeof absent);
    assert_true(absent == -1);
    for (int bits = 8; bits <= 16; bits += 8) {
        const int most = (1 << bits) - 1, h = 7, w = 6;

        for (int i = 0; i < h * w; i++)
            map[i] = (uint16_t)(i == 3 ? most : i * 37 % (most + 1));
        make_sample(&s, h, w, bits, map, out);
        for (int y = 0; y < SIZE; y++)
            for (int x = 0; x < SIZE; x++)
                if (y < h && x < w)
                    assert_float_equal(out[y * SIZE + x], (double)map[y * w + x] / most, 1e-7);
                else
                    assert_true(out[y * SIZE + x] == -1);
        assert_true(out[3] == 1 && out[0] == 0);
    }
    pm_arena_destroy(&a);
}

/* ---- losses ------------------------------------------------------------------------------ */

static int heads_of(void *ctx, struct pm_net *net, struct pm_node *images, struct pm_heads *out)
{
    (void)ctx;
    *out = (struct pm_heads){ 0 };
    pm_heads_add(net, out, "logits", pm_net_add(net, "conv", images, "conv2d filters=2 kernel=3"));
    return net->error;
}

/* The loss of the net's logits, which are returned, too. */
static double run(struct pm_net *net, const char *node, const float *labels, float *z)
{
    const char *const names[] = { node, NULL };
    struct planned p = planned(net, names);
    float *x = pm_plan_input(p.plan, 0, "images", 0);

    for (int i = 0; i < PIXELS * 3; i++)
        x[i] = (float)(i * 29 % 17) / 8 - 1;
    memcpy(pm_plan_input(p.plan, 0, "labels", 0), labels, PIXELS * sizeof *labels);
    run_plan(p.plan);
    memcpy(z, pm_plan_output(p.plan, 0, node, 0), 2 * PIXELS * sizeof *z);
    const double loss = pm_plan_loss(p.plan, 0);
    drop_plan(&p);
    return loss;
}

static double expected(const float *z, const float *labels)
{
    double sum = 0;
    int count = 0;

    for (int i = 0; i < PIXELS; i++) {
        const double a = exp(z[2 * i]), b = exp(z[2 * i + 1]);

        if (labels[i] < 0)
            continue;
        sum -= (1 - labels[i]) * log(a / (a + b)) + labels[i] * log(b / (a + b));
        count++;
    }
    return sum / count;
}

static void losses(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    const struct pm_net_maker maker = { heads_of, NULL, NULL };
    float labels[PIXELS], z[2 * PIXELS];

    for (int i = 0; i < PIXELS; i++)
        labels[i] = i % 5 == 4 ? -1 : (float)(i % 11) / 10;
    settle_by(&s, &maker);
    for (int eval = 0; eval < 2; eval++) {
        struct pm_net *net = pm_net_create();
        struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(1, SIZE, SIZE, 3), PM_F32);
        struct pm_heads heads = { 0 };
        struct pm_outputs outputs = { 0 };

        if (eval) {
            assert_int_equal(task()->add_outputs(net, images, &maker, &s, PM_USE_EVAL, &outputs),
                             PM_OK);
        } else {
            pm_net_input(net, "labels", PM_SHAPE3(1, SIZE, SIZE), PM_F32);
            assert_int_equal(heads_of(NULL, net, images, &heads), PM_OK);
            task()->add_loss(net, &heads, NULL, &s);
        }
        if (net->error)
            fail_msg("%s", pm_error_text());
        const double loss = run(net, "conv", labels, z);
        assert_float_equal(loss, expected(z, labels), 1e-5);
        pm_net_destroy(&net);
    }
    pm_arena_destroy(&a);
}

/* ---- scores and refusals ----------------------------------------------------------------- */

/* A degree of one half or more is foreground. */
static void scores(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    struct pm_score *m = task()->score_create(&s);
    float labels[PIXELS];
    int32_t said[PIXELS];
    const uint64_t record[] = { 0 };
    const struct pm_batch batch = { .frame = frame_of(&s.facts, false),
                                    .field = (void *[]){ NULL, labels },
                                    .valid = 1,
                                    .record = record };
    cJSON *o = cJSON_CreateObject();

    for (int i = 0; i < PIXELS; i++)
        labels[i] = -1, said[i] = 1;
    labels[0] = 0, labels[1] = 0.49f, labels[2] = 0.5f, labels[3] = 1;
    said[0] = 0, said[1] = 1;
    assert_int_equal(task()->score_add(m, &batch, (const void *[]){ said }, 1), PM_OK);
    task()->score_report(m, o);
    assert_float_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(o, "pixel_accuracy")), 0.75, 1e-12);
    assert_float_equal(cJSON_GetNumberValue(cJSON_GetObjectItem(o, "miou")), (0.5 + 2.0 / 3) / 2,
                       1e-12);
    cJSON_Delete(o);
    task()->score_destroy(&m);
    pm_arena_destroy(&a);
}

static void refusals(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    const struct pm_segmentation_loss weights = { .label_weights = { 2, (float[]){ 1, 2 } } };
    struct pm_task other = s;

    other.facts.num_classes = 3;
    refused(other, "loss.matting: needs two classes");
    other = s, other.pixels.ignore_label = 255;
    refused(other, "data.ignore_label: 255");
    other = s, other.pixels.loss = &weights;
    refused(other, "loss.label_weights: with loss.matting labels are alpha values");
    other = s, other.label_smoothing = 0.1f;
    refused(other, "loss.label_smoothing: 0.1");
    other = s, other.pixels.edge_classes = 2;
    assert_int_equal(pm_segmentation_matting_heads(&other), PM_ECONFIG);
    assert_non_null(
        strstr(pm_error_text(), "have no labels for edges: set model.edge_classes to 0"));
    other.pixels.instance.on = true;
    assert_int_equal(pm_segmentation_matting_heads(&other), PM_ECONFIG);
    assert_non_null(
        strstr(pm_error_text(), "have no labels for instances: set model.instance to false"));
    other.pixels.matting = false;
    assert_int_equal(pm_segmentation_matting_heads(&other), PM_OK);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(degrees),
        cmocka_unit_test(losses),
        cmocka_unit_test(scores),
        cmocka_unit_test(refusals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
