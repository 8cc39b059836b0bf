/* Segmentation with edges: edge labels beside the class labels, and the two losses. */
#include <pumice/plan.h>
#include <pumice/task.h>

#include "tasks/task_fields.h"
#include "data/edge_labels.h"
#include "tasks/segmentation/segmentation.h"
#include "tasks/segmentation/segmentation_setup.h"
#include "data/placing.h"

#include <cjson/cJSON.h>

enum { SIZE = 13, CLASSES = 3, IGNORE = 0 }; /* the ignored label is also a class of the edges */

static const struct pm_segmentation_loss loss = { .top_k_percent = 1, .edge_weight = 0.25f,
                                            .normalize = PM_NORMALIZE_KEPT_PIXELS };

static struct pm_task setup_of(struct pm_arena *a)
{
    struct pm_task s = segmentation_setup(a, SIZE, SIZE, CLASSES);

    s.pixels.ignore_label = IGNORE;
    s.pixels.loss = &loss;
    s.pixels.edge_classes = s.pixels.edge_width = 2;
    return s;
}

/* ---- samples ----------------------------------------------------------------------------- */

/* Draws a box of class 2 in class 1, beside an ignored corner. */
static void draw(int height, int width, uint8_t *label)
{
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            label[y * width + x] = y < 3 && x < 3 ? IGNORE
                                   : y > 3 && y < 8 && x > 4 && x < 9 ? 2 : 1;
}

/* Makes an example with the random numbers of (seed, step), as in training. */
static void make_sample(const struct pm_task *s, bool train, uint64_t step, int height, int width,
                        int32_t *map, int32_t *edges)
{
    struct pm_sampler sampler = { .task = s, .train = train };
    struct pm_example_builder *b = pm_example_builder_create();
    uint8_t label[SIZE * SIZE], pixels[SIZE * SIZE * 3] = { 0 }, *bytes;
    float image[SIZE * SIZE * 3];
    size_t size;

    draw(height, width, label);
    add_picture(b, "image/encoded", height, width, 3, pixels);
    add_picture(b, "image/segmentation/class/encoded", height, width, 1, label);
    pm_example_serialise(b, &bytes, &size);
    const struct pm_loader_record r = { .bytes = bytes, .size = size, .seed = 7, .step = step,
                                        .where = "record", .frame = frame_of(&s->facts, train) };
    if (task()->make(&sampler, &r, (void *[]){ image, map, edges }) < 0)
        fail_msg("%s", pm_error_text());
    pm_free(bytes);
    pm_example_builder_destroy(&b);
}

static void fields(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    struct pm_field f[8];

    assert_int_equal(fields_of(task(), &s, true, frame_of(&s.facts, true), f), 3);
    assert_string_equal(f[2].name, "edge_labels");
    assert_int_equal(f[2].absent, PM_EDGE_IGNORE);
    assert_int_equal(f[2].shape.dim[1], SIZE);
    assert_int_equal(fields_of(task(), &s, false, frame_of(&s.facts, false), f), 3);
    s.pixels.edge_classes = 0;
    assert_int_equal(fields_of(task(), &s, true, frame_of(&s.facts, true), f), 2);
    pm_arena_destroy(&a);
}

/* In evaluation the sample has the record's edge map, without edges along the padding. */
static void framed_in_evaluation(void **state)
{
    (void)state;
    enum { H = 11, W = 12 };
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    int32_t map[SIZE * SIZE], edges[SIZE * SIZE];
    uint8_t drawn[H * W];
    uint16_t values[H * W];
    struct pm_label label = { H, W, values }, want;
    int bands = 0;

    draw(H, W, drawn);
    for (int i = 0; i < H * W; i++)
        values[i] = drawn[i];
    pm_edge_labels(&(struct pm_edge_options){ 2, 2, IGNORE }, &label, &want);
    make_sample(&s, false, 0, H, W, map, edges);
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++) {
            const bool inside = y < H && x < W;

            assert_int_equal(edges[y * SIZE + x], inside ? want.values[y * W + x] : PM_EDGE_IGNORE);
            bands += edges[y * SIZE + x] == 0;
            if (inside && (y == H - 1 || x == W - 1))
                assert_int_equal(edges[y * SIZE + x], 1);
        }
    assert_true(bands > 10 && bands < 60);
    pm_label_free(&want);
    pm_arena_destroy(&a);
}

/* In training the edge map is scaled, cropped and flipped with the same random numbers as the
 * label map. */
static void framed_in_training(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    int32_t map[SIZE * SIZE], edges[SIZE * SIZE], framed[SIZE * SIZE];
    uint8_t drawn[SIZE * SIZE];
    uint16_t values[SIZE * SIZE];
    struct pm_label label = { SIZE, SIZE, values }, want;
    const struct pm_image8 im = { SIZE, SIZE, 3, NULL };
    int bands = 0, flips = 0;

    draw(SIZE, SIZE, drawn);
    for (int i = 0; i < SIZE * SIZE; i++)
        values[i] = drawn[i];
    pm_edge_labels(&(struct pm_edge_options){ 2, 2, IGNORE }, &label, &want);
    for (uint64_t step = 0; step < 20; step++) {
        struct pm_rng r = pm_rng_make(7, pm_hash("augmentation"), (uint32_t)step, 0);
        struct pm_draws d;

        s.facts.preprocessing->draw(s.facts.preprocessing_cfg, &r,
                                    &(struct pm_scene){ SIZE, SIZE, 0, NULL, 0 }, &d);
        make_sample(&s, true, step, SIZE, SIZE, map, edges);
        assert_int_equal(place_map(s.facts.preprocessing, s.facts.preprocessing_cfg, &want, &im,
                                   true, &d, SIZE, SIZE, PM_EDGE_IGNORE, framed, "map"),
                         PM_OK);
        assert_memory_equal(edges, framed, sizeof edges);
        for (int i = 0; i < SIZE * SIZE; i++) {
            assert_true((map[i] == IGNORE) == (edges[i] == PM_EDGE_IGNORE));
            bands += edges[i] == 0;
        }
        flips += d.flip;
    }
    assert_true(bands > 100 && flips > 0 && flips < 20);
    pm_label_free(&want);
    pm_arena_destroy(&a);
}

/* ---- nets -------------------------------------------------------------------------------- */

static int heads_of(void *ctx, struct pm_net *net, struct pm_node *images, struct pm_heads *out)
{
    struct pm_node *x = pm_net_add(net, "conv", images, "conv2d filters=4 kernel=3 stride=3");

    (void)ctx;
    *out = (struct pm_heads){ 0 };
    pm_heads_add(net, out, "logits", pm_net_add(net, "semantic", x, "conv2d filters=3 kernel=1"));
    pm_heads_add(net, out, "edge", pm_net_add(net, "edge", x, "conv2d filters=5 kernel=1"));
    return net->error;
}

static float option(const struct pm_net *net, const char *name, const char *key)
{
    cJSON *options = cJSON_CreateObject();
    const struct pm_node *made = pm_net_find(net, name);

    assert_non_null(made);
    pm_opts_dump(made->layer->opts, made->cfg, options, false);
    const float v = (float)cJSON_GetNumberValue(cJSON_GetObjectItem(options, key));
    cJSON_Delete(options);
    return v;
}

static void losses(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    const struct pm_net_maker maker = { heads_of, NULL, NULL };
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, SIZE, SIZE, 3), PM_F32);
    struct pm_heads heads = { 0 };

    settle_by(&s, &maker);
    assert_int_equal(s.pixels.edge_classes, 5);
    pm_net_input(net, "labels", PM_SHAPE3(2, SIZE, SIZE), PM_I32);
    pm_net_input(net, "edge_labels", PM_SHAPE3(2, SIZE, SIZE), PM_I32);
    assert_int_equal(heads_of(NULL, net, images, &heads), PM_OK);
    task()->add_loss(net, &heads, NULL, &s);
    if (net->error)
        fail_msg("%s", pm_error_text());
    assert_true(option(net, "loss", "weight") == 0.75f);
    assert_true(option(net, "loss", "ignore_label") == IGNORE);
    assert_true(option(net, "edge_loss", "weight") == 0.25f);
    assert_true(option(net, "edge_loss", "ignore_label") == PM_EDGE_IGNORE);
    assert_int_equal(pm_net_find(net, "edge_loss")->in[0]->out_shape.dim[1], SIZE);
    assert_int_equal(pm_net_find(net, "edge_loss")->in[0]->out_shape.dim[3], 5);
    s.pixels.edge_classes = 0;
    assert_true(pm_segmentation_class_weight(&s) == 1);
    pm_net_destroy(&net);
    pm_arena_destroy(&a);
}

/* Outputs: edges after the classes; for export with their probabilities, averaged over the
 * modes. */
static void outputs(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    const struct pm_net_maker maker = { heads_of, NULL, NULL };
    static const struct {
        enum pm_use use;
        const char *names[5];
    } cases[] = {
        { PM_USE_EVAL, { "predictions", "edge_predictions" } },
        { PM_USE_PREDICT, { "predictions", "edge_predictions" } },
        { PM_USE_EXPORT, { "SemanticProbabilities", "SemanticPredictions", "EdgeProbabilities",
                           "EdgePredictions" } },
    };

    for (size_t i = 0; i < PM_COUNT(cases) * 2; i++) {
        struct pm_net *net = pm_net_create();
        struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(1, SIZE, SIZE, 3), PM_F32);
        struct pm_outputs made = { 0 };

        s.pixels.eval_modes.flip = s.pixels.export_modes.flip = i % 2;
        if (task()->add_outputs(net, images, &maker, &s, cases[i / 2].use, &made) < 0)
            fail_msg("%s", pm_error_text());
        for (int k = 0; k < 4 && cases[i / 2].names[k]; k++) {
            assert_true(k < made.count);
            assert_string_equal(made.node[k], cases[i / 2].names[k]);
        }
        assert_int_equal(made.count, cases[i / 2].use == PM_USE_EXPORT ? 4 : 2);
        if (cases[i / 2].use == PM_USE_EXPORT)
            assert_true(option(net, "EdgeProbabilities", "scale") ==
                        (s.pixels.eval_modes.flip ? 0.5f : 1));
        assert_true(!s.pixels.eval_modes.flip == !pm_net_find(net, "mode_2/edges_mirrored_back"));
        pm_net_destroy(&net);
    }
    pm_arena_destroy(&a);
}

/* A net whose layers have the names of the task's own; ctx: a further name, or NULL. */
static int names_of(void *ctx, struct pm_net *net, struct pm_node *images, struct pm_heads *out)
{
    static const char *const names[] = {
        "edges_mirrored_back",
        "edges_enlarged",
        "edge_probabilities",
        "edge_sum",
        "edge_predictions",
        "center_mirrored_back",
        "center_enlarged",
        "center_sum",
        "offset_mirrored_back",
        "offset_y",
        "offset_x",
        "offset_x_turned",
        "offset_turned",
        "offset_pixels",
        "offset_enlarged",
        "offset_sum",
    };
    struct pm_node *x = images;

    if (ctx)
        x = pm_net_add(net, ctx, x, "neg");
    for (size_t i = 0; i < PM_COUNT(names); i++)
        x = pm_net_add(net, names[i], x, "neg");
    heads_of(NULL, net, x, out);
    pm_heads_add(net, out, "center",
                 pm_net_add(net, "center", pm_net_find(net, "conv"), "conv2d filters=1 kernel=1"));
    pm_heads_add(net, out, "offset",
                 pm_net_add(net, "offset", pm_net_find(net, "conv"), "conv2d filters=2 kernel=1"));
    return net->error;
}

static void names_are_own(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    const struct pm_net_maker maker = { names_of, NULL, NULL };

    s.pixels.instance.on = s.pixels.eval_modes.flip = s.pixels.export_modes.flip = true;
    for (int use = PM_USE_EVAL; use <= PM_USE_EXPORT; use++) {
        struct pm_net *net = pm_net_create();
        struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(1, SIZE, SIZE, 3), PM_F32);
        struct pm_outputs made = { 0 };

        if (task()->add_outputs(net, images, &maker, &s, (enum pm_use)use, &made) < 0)
            fail_msg("%s", pm_error_text());
        assert_string_equal(made.node[made.count - 1],
                            use == PM_USE_EXPORT ? "EdgePredictions" : "edge_predictions_2");
        assert_non_null(pm_net_find(net, "mode_2/offset_turned_2"));
        pm_net_destroy(&net);
    }
    pm_arena_destroy(&a);
}

/* Outputs get other names, too, except in a file. */
static void names_of_outputs(void **state)
{
    (void)state;
    static char names[][32] = { "InstanceCenterPredictions", "InstanceOffsetPredictions",
                                "SemanticProbabilities", "SemanticPredictions", "EdgePredictions" };
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);

    s.pixels.instance.on = true;
    for (size_t i = 0; i < PM_COUNT(names); i++)
        for (int use = PM_USE_EVAL; use <= PM_USE_EXPORT; use++) {
            const struct pm_net_maker maker = { names_of, NULL, names[i] };
            struct pm_net *net = pm_net_create();
            struct pm_node *images =
                pm_net_input(net, "images", PM_SHAPE4(1, SIZE, SIZE, 3), PM_F32);
            struct pm_outputs made = { 0 };

            assert_int_equal(task()->add_outputs(net, images, &maker, &s, (enum pm_use)use, &made),
                             use == PM_USE_EXPORT ? PM_ECONFIG : PM_OK);
            if (use == PM_USE_EXPORT)
                assert_non_null(strstr(pm_error_text(), names[i]));
            pm_net_destroy(&net);
        }
    pm_arena_destroy(&a);
}

/* Edge and no edge are two classes. */
static void one_class(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(1, SIZE, SIZE, 3), PM_F32);
    struct pm_heads heads = { 0 };

    assert_int_equal(heads_of(NULL, net, images, &heads), PM_OK);
    assert_int_equal(task()->check_heads(&s, &heads, 1), PM_OK);
    heads.list[1].node = pm_net_add(net, "single", images, "conv2d filters=1 kernel=1");
    assert_int_equal(task()->check_heads(&s, &heads, 1), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "layer single is a head for edges and has 1 channel"));
    pm_net_destroy(&net);
    pm_arena_destroy(&a);
}

/* 12 pixels of edges; one in the band and two beside it are wrong. */
static void scores(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    struct pm_score *m = task()->score_create(&s);
    static int32_t labels[SIZE * SIZE], classes[SIZE * SIZE], edges[SIZE * SIZE], said[SIZE * SIZE];
    const uint64_t record[] = { 0 };
    const struct pm_batch batch = { .frame = frame_of(&s.facts, false),
                                    .field = (void *[]){ NULL, labels, edges },
                                    .valid = 1,
                                    .record = record };
    cJSON *o = cJSON_CreateObject();

    for (int i = 0; i < SIZE * SIZE; i++) {
        labels[i] = classes[i] = 1;
        edges[i] = i < 5 ? 0 : i < 12 ? 1 : PM_EDGE_IGNORE;
        said[i] = i < 4 || i == 5 || i == 6 ? 0 : 1;
    }
    assert_int_equal(task()->score_add(m, &batch, (const void *[]){ classes, said }, 0.5), PM_OK);
    task()->score_report(m, o);
    const cJSON *iou = cJSON_GetObjectItem(o, "per_class_edge_iou");
    assert_int_equal(cJSON_GetArraySize(iou), 2);
    assert_true(fabs(cJSON_GetArrayItem(iou, 0)->valuedouble - 4.0 / 7) < 1e-12);
    assert_true(fabs(cJSON_GetArrayItem(iou, 1)->valuedouble - 5.0 / 8) < 1e-12);
    assert_true(fabs(cJSON_GetNumberValue(cJSON_GetObjectItem(o, "edge_miou")) -
                     (4.0 / 7 + 5.0 / 8) / 2) < 1e-12);
    cJSON_Delete(o);
    task()->score_destroy(&m);
    pm_arena_destroy(&a);
}

/* TensorBoard's picture of the second example: the band is white, ignored pixels and the rest
 * are black. */
static void painted(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    struct pm_drawings drawings = { 0 };
    static int32_t labels[2 * SIZE * SIZE], edges[2 * SIZE * SIZE];
    static float semantic[2 * 4 * CLASSES], edge[2 * 4 * 2];
    const struct pm_shown shown = { .count = 2, .frame = frame_of(&s.facts, true),
                                    .field = (const void *[]){ NULL, labels, edges },
                                    .heads = 2, .head = (const float *[]){ semantic, edge },
                                    .shape = (const struct pm_shape[]){ PM_SHAPE3(2, 2, CLASSES),
                                                                        PM_SHAPE3(2, 2, 2) } };

    for (int i = 0; i < SIZE * SIZE; i++)
        edges[SIZE * SIZE + i] = i < 3 ? 0 : i < 9 ? 1 : PM_EDGE_IGNORE;
    for (int i = 0; i < 4; i++)
        edge[8 + 2 * i] = i == 2 ? 1 : -1;
    task()->paint(&s, &shown, 1, &drawings);
    assert_string_equal(drawings.list[0].what, "label");
    assert_string_equal(drawings.list[1].what, "semantic");
    assert_string_equal(drawings.list[2].what, "label_edge");
    assert_string_equal(drawings.list[3].what, "edge");
    assert_int_equal(drawings.count, 4);
    for (int i = 0; i < SIZE * SIZE; i++)
        assert_int_equal(drawings.list[2].image.pixels[i], i < 3 ? 255 : 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(drawings.list[3].image.pixels[i], i == 2 ? 255 : 0);
    pm_drawings_free(&drawings);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fields),
        cmocka_unit_test(framed_in_evaluation),
        cmocka_unit_test(framed_in_training),
        cmocka_unit_test(losses),
        cmocka_unit_test(outputs),
        cmocka_unit_test(names_are_own), cmocka_unit_test(names_of_outputs),
        cmocka_unit_test(one_class),
        cmocka_unit_test(scores),
        cmocka_unit_test(painted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
