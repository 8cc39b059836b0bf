/* The trial of an exported model: two outputs; a reader of words; a classifier with a
 * transformer; pasted masks, their sample of
 * boxes and masks and their bound; and wrong graphs, which it must refuse. */
#include "../net/named_net.h"

#include "jobs/export_try.h"
#include "jobs/export_try_masks.h"

#include <pumice/onnx.h>

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

enum { N = 2, HEIGHT = 24, WIDTH = 40, DETECTIONS = 3 };

/* ---- the sample ------------------------------------------------------------------------------ */

/* A border is the picture's, or half a pixel from two pixels, at most an eighth of the axis inside.
 * The place is a rounded float below 1, so in pixels it errs by at most size * 2^-24. */
static void expect_border(double place, int size)
{
    const double pixels = place * (size - 1);

    assert_true(place >= 0 && place <= 0.125);
    if (place > 0)
        assert_true(fabs(pixels - floor(pixels) - 0.5) <= ldexp(size, -24));
}

static void sample(void **state)
{
    static const int sizes[][2] = { { 1, 7 }, { 7, 1 }, { 8, 9 }, { 15, 16 }, { 17, 64 },
                                    { 800, 1333 } };
    enum { D = 100 };

    (void)state;
    for (size_t k = 0; k < PM_COUNT(sizes); k++) {
        const struct pm_try_masks t = { PM_SHAPE4(N, 3, 5, D), sizes[k][0], sizes[k][1] };
        float boxes[N * D * 4], masks[N * 3 * 5 * D];
        int inside = 0;

        pm_try_masks_fill(&t, boxes, masks);
        for (size_t i = 0; i < PM_COUNT(boxes); i++) {
            const double v = (double)boxes[i];

            expect_border(i % 4 < 2 ? v : 1 - v, sizes[k][i % 2]);
            inside += v > 0 && v < 1;
        }
        assert_true(inside > 0 || (sizes[k][0] < 8 && sizes[k][1] < 8));
        for (size_t i = 0; i < PM_COUNT(masks); i++)
            assert_true(masks[i] >= 0 && masks[i] < 1);
    }
}

/* 2^-24 times 10 of each gap between cells divided by 0.75, and 20. */
static void bounds(void **state)
{
    const struct pm_try_masks t = { PM_SHAPE4(1, 256, 33, 1), 10, 10 };
    const struct pm_try_masks turned = { PM_SHAPE4(1, 33, 256, 1), 10, 10 };

    (void)state;
    assert_true(fabs(pm_try_masks_bound(&t) - 3420 * ldexp(1, -24)) < 1e-12);
    assert_true(pm_try_masks_bound(&t) == pm_try_masks_bound(&turned));
}

/* ---- the trial ------------------------------------------------------------------------------- */

struct model {
    struct pm_net *net;
    const char *first;          /* name of its first output */
    const struct pm_node *also; /* its second output */
    struct pm_export *graph;
    struct pm_export_options o;
};

/* ctx: name of a variable that the file has wrong; NULL: none. */
static int initial(void *ctx, const struct pm_variable *v, float *data)
{
    const int err = pm_variable_initial(v, 0, data);

    if (err == PM_OK && ctx && !strcmp(v->name, ctx))
        data[0] += 1;
    return err;
}

static void open_model(struct model *m, struct pm_node *first, struct pm_export_options o)
{
    if (m->net->error)
        fail_msg("%s", pm_error_text());
    m->first = first->name;
    m->o = o;
    if (pm_export_create(m->net, first, &m->o, &m->graph) < 0)
        fail_msg("%s", pm_error_text());
}

/* wrong: as ctx of `initial`. */
static void open_graph(struct model *m, struct pm_node *first, const enum pm_places *places,
                       char *wrong)
{
    open_model(m, first, (struct pm_export_options){ .also = &m->also, .also_count = 1,
                                                     .places = places, .read = initial,
                                                     .ctx = wrong });
}

/* A net with boxes [N, DETECTIONS, 4] and masks [N, HEIGHT / 2, WIDTH / 2, DETECTIONS]. */
static void make_model(struct model *m)
{
    static const enum pm_places places[] = { PM_PLACES_BOXES, PM_PLACES_MASKS };
    struct pm_net *net = m->net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "images", PM_SHAPE4(N, HEIGHT, WIDTH, DETECTIONS),
                                     PM_F32);

    m->also = pm_net_add(net, "masks", x, "max_pool kernel=2 stride=2");
    x = pm_net_add(net, "mean", x, "global_pool");
    x = pm_net_add(net, "flat", x, "flatten");
    x = pm_net_add(net, "codes", x, "fully_connected units=%d", 4 * DETECTIONS);
    x = pm_net_add(net, "boxes", x, "reshape shape=[0,%d,4]", DETECTIONS);
    open_graph(m, x, places, NULL);
}

/* A net with two outputs that are not a detector's. */
static void make_pair(struct model *m, char *wrong)
{
    struct pm_net *net = m->net = pm_net_create();
    struct pm_node *x = pm_net_input(net, "images", PM_SHAPE4(N, HEIGHT, WIDTH, 3), PM_F32);
    struct pm_node *first;

    x = pm_net_add(net, "mean", x, "global_pool");
    x = pm_net_add(net, "flat", x, "flatten");
    first = pm_net_add(net, "first", x, "fully_connected units=5");
    m->also = pm_net_add(net, "second", x, "fully_connected units=7");
    open_graph(m, first, NULL, wrong);
}

/* Adds an input of pictures, a transformer and a convolution. */
static struct pm_node *add_transformer(struct pm_net *net)
{
    struct pm_node *in[2], *x;

    in[0] = pm_net_input(net, "images", PM_SHAPE4(N, HEIGHT, WIDTH, 3), PM_F32);
    x = pm_net_add(net, "mean", in[0], "global_pool");
    x = pm_net_add(net, "flat", x, "flatten");
    in[1] = pm_net_add(net, "points", x, "fully_connected units=16 bias_init="
                       "values(0,0,.3,0,.6,0,1,0,0,1,.3,1,.6,1,1,1)");
    x = pm_net_add_many(net, "sampler", in, 2, "thin_plate_sampler size=[4,10]");
    return pm_net_add(net, "conv", x, "conv2d filters=6 kernel=[4,1] padding=valid");
}

/* A reader of words: a transformer, a recurrent layer, and a decoder with attention or without. */
static void make_reader(struct model *m, bool attention, char *wrong)
{
    struct pm_net *net = m->net = pm_net_create();
    struct pm_node *x = add_transformer(net);

    x = pm_net_add(net, "lstm", x, "lstm units=5 bias_init=constant(0.3)");
    if (attention)
        x = pm_net_add(net, "logits", x, "attention_search classes=6 units=4 attention_units=3 "
                       "steps=3 beam_width=1");
    open_model(m, x, (struct pm_export_options){ .read = initial, .ctx = wrong });
}

/* A classification net with a transformer, whose model returns probabilities. */
static void make_classifier(struct model *m, char *wrong)
{
    struct pm_net *net = m->net = pm_net_create();
    struct pm_node *x = add_transformer(net);

    x = pm_net_add(net, "mean_of_maps", x, "global_pool");
    x = pm_net_add(net, "flat_maps", x, "flatten");
    x = pm_net_add(net, "classes", x, "fully_connected units=5");
    open_model(m, x, (struct pm_export_options){ .end = PM_END_SOFTMAX, .read = initial,
                                                 .ctx = wrong });
}

static void destroy_model(struct model *m)
{
    pm_export_destroy(&m->graph);
    pm_net_destroy(&m->net);
}

/* Writes the graph to a file and tries it. */
static int try_model(const struct model *m)
{
    char file[] = "/tmp/export_try_XXXXXX";
    const int fd = mkstemp(file);
    double difference = NAN;
    int err;

    assert_true(fd >= 0);
    close(fd);
    if (pm_onnx_write(pm_export_model(m->graph), file, false, NULL) < 0)
        fail_msg("%s", pm_error_text());
    err = pm_export_try(file, "model.onnx", m->net, m->first, m->graph, &m->o, NULL, 0,
                        &difference);
    unlink(file);
    if (err == PM_OK)
        assert_true(difference <= 1e-4);
    return err;
}

/* Replaces the only constant of the graph that is a list of i / gaps, i = 0..count - 1, by a list
 * of i / others. */
static void replace(const struct model *m, int count, float gaps, float others)
{
    struct pm_onnx_model *model = pm_export_model(m->graph);
    int found = 0;

    for (size_t t = 0; t < model->tensor_count; t++) {
        float *v = (float *)(uintptr_t)model->tensors[t].data;
        bool same = v && model->tensors[t].type == PM_DTYPE_F32 &&
                    model->tensors[t].count == (uint64_t)count;

        for (int i = 0; same && i < count; i++)
            same = v[i] == (float)i / gaps;
        for (int i = 0; same && i < count; i++)
            v[i] = (float)i / others;
        found += same;
    }
    assert_int_equal(found, 1);
}

static void right(void **state)
{
    struct model m;

    (void)state;
    make_model(&m);
    if (try_model(&m) != PM_OK)
        fail_msg("%s", pm_error_text());
    destroy_model(&m);
}

/* Places of pixels that end before the picture's border, or cells that are too near: in rows, then
 * in columns. */
static void wrong(void **state)
{
    static const struct { int count; float gaps, others; } faults[] = {
        { HEIGHT, HEIGHT - 1, HEIGHT }, { WIDTH, WIDTH - 1, WIDTH },
        { HEIGHT / 2, 1, 1.01f },       { WIDTH / 2, 1, 1.01f },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(faults); i++) {
        struct model m;

        make_model(&m);
        replace(&m, faults[i].count, faults[i].gaps, faults[i].others);
        assert_int_equal(try_model(&m), PM_EFAIL);
        assert_contains(pm_error_text(), "model.onnx: the exported model's output for a sample "
                        "differs from the net's by ");
        destroy_model(&m);
    }
}

/* Both outputs are compared: weights of either that are not the net's are found. */
static void pair(void **state)
{
    static char *const weights[] = { NULL, "first/weights", "second/weights" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(weights); i++) {
        struct model m;

        make_pair(&m, weights[i]);
        assert_int_equal(try_model(&m), i > 0 ? PM_EFAIL : PM_OK);
        destroy_model(&m);
    }
}

/* The parts before, between and behind the layers that the import does not know are compared. */
static void reader(void **state)
{
    static char *const weights[] = { NULL, "points/weights", "conv/weights", "lstm/kernel",
                                     "lstm/bias" };

    (void)state;
    for (size_t i = 0; i < 2 * PM_COUNT(weights); i++) {
        struct model m;

        make_reader(&m, i % 2 == 0, weights[i / 2]);
        assert_int_equal(try_model(&m), i / 2 > 0 ? PM_EFAIL : PM_OK);
        destroy_model(&m);
    }
}

/* A softmax at the end is that of the last output, not of the values where the net is cut. */
static void classifier(void **state)
{
    static char *const weights[] = { NULL, "points/weights", "conv/weights", "classes/weights" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(weights); i++) {
        struct model m;

        make_classifier(&m, weights[i]);
        if (try_model(&m) != (i > 0 ? PM_EFAIL : PM_OK))
            fail_msg("%s: %s", weights[i] ? weights[i] : "nothing wrong", pm_error_text());
        destroy_model(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sample), cmocka_unit_test(bounds), cmocka_unit_test(right),
        cmocka_unit_test(wrong), cmocka_unit_test(pair), cmocka_unit_test(reader),
        cmocka_unit_test(classifier),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
