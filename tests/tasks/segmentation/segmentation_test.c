/* The segmentation task: the confusion matrix, samples with label maps, loss nodes, outputs over
 * several scales, and predictions at the size of their pictures. */
#include <pumice/plan.h>
#include <pumice/task.h>

#include "tasks/task_fields.h"
#include "tasks/colormap.h"
#include "tasks/confusion.h"
#include "tasks/segmentation/segmentation.h"
#include "tasks/segmentation/segmentation_setup.h"

#include <cjson/cJSON.h>

enum { SIZE = 9, CLASSES = 3 };

static struct pm_task setup_of(struct pm_arena *a)
{
    return segmentation_setup(a, SIZE, SIZE, CLASSES);
}

static double value(const cJSON *o, const char *key)
{
    return cJSON_GetNumberValue(cJSON_GetObjectItem(o, key));
}

/* ---- counting ------------------------------------------------------------------------------ */

/* Class 2 is absent but was predicted twice. Class 3 is absent and was never predicted. */
static void an_absent_class(void **state)
{
    (void)state;
    struct pm_confusion c;
    static const uint64_t count[16] = { 5, 1, 2, 0, 2, 4, 0, 0 };

    pm_confusion_create(&c, 4);
    memcpy(c.count, count, sizeof count);
    const struct pm_confusion_metrics m = pm_confusion_metrics(&c);
    assert_int_equal(m.pixels, 14);
    assert_true(fabs(pm_confusion_class(&c, 0).iou - 5.0 / 10) < 1e-12);
    assert_true(fabs(pm_confusion_class(&c, 1).iou - 4.0 / 7) < 1e-12);
    assert_true(isnan(pm_confusion_class(&c, 2).iou));
    assert_true(isnan(pm_confusion_class(&c, 3).iou));
    assert_true(fabs(m.miou - (0.5 + 4.0 / 7) / 3) < 1e-12);
    assert_true(fabs(m.pixel_accuracy - 9.0 / 14) < 1e-12);
    assert_true(fabs(m.mean_accuracy - (5.0 / 8 + 4.0 / 6) / 2) < 1e-12);
    assert_true(fabs(m.fw_iou - (8 * 0.5 + 6 * 4.0 / 7) / 14) < 1e-12);
    pm_confusion_free(&c);
    pm_confusion_create(&c, 2);
    assert_true(isnan(pm_confusion_metrics(&c).miou));
    assert_true(isnan(pm_confusion_metrics(&c).fw_iou));
    pm_confusion_free(&c);
}

/* ---- samples ----------------------------------------------------------------------------- */

/* A record with a picture of height x width and the label map `label`. */
static void make_record(int height, int width, const uint8_t *label, uint8_t **out, size_t *size)
{
    struct pm_example_builder *b = pm_example_builder_create();
    uint8_t pixels[SIZE * SIZE * 3];

    for (int i = 0; i < height * width * 3; i++)
        pixels[i] = (uint8_t)(i * 37 + 11);
    add_picture(b, "image/encoded", height, width, 3, pixels);
    pm_example_add_bytes(b, "image/format", "png", 3);
    if (label)
        add_picture(b, "image/segmentation/class/encoded", height, width, 1, label);
    pm_example_serialise(b, out, size);
    pm_example_builder_destroy(&b);
}

static int make_sample(const struct pm_task *s, bool train, int height, int width,
                       const uint8_t *label, float *image, int32_t *map)
{
    struct pm_sampler sampler = { .task = s, .train = train };
    uint8_t *bytes;
    size_t size;

    make_record(height, width, label, &bytes, &size);
    const struct pm_loader_record r = { .bytes = bytes, .size = size, .seed = 7, .step = 3,
                                        .where = "a.tfrecord record 5",
                                        .frame = frame_of(&s->facts, train) };
    const int err = task()->make(&sampler, &r, (void *[]){ image, map });
    pm_free(bytes);
    return err;
}

static void fill_label(uint8_t *label, int count)
{
    for (int i = 0; i < count; i++)
        label[i] = (uint8_t)(i % 5 == 4 ? 255 : i % CLASSES);
}

static void samples(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    struct pm_field fields[8];
    uint8_t label[SIZE * SIZE];
    float image[SIZE * SIZE * 3];
    int32_t map[SIZE * SIZE];

    fill_label(label, SIZE * SIZE);
    assert_int_equal(fields_of(task(), &s, false, frame_of(&s.facts, false), fields), 2);
    assert_int_equal(fields[1].absent, 255);
    assert_int_equal(make_sample(&s, false, 7, 6, label, image, map), PM_OK);
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++) {
            const bool inside = y < 7 && x < 6;
            assert_int_equal(map[y * SIZE + x], inside ? label[y * 6 + x] : 255);
            if (!inside) /* padding is grey */
                assert_true(fabsf(image[(y * SIZE + x) * 3]) < 1e-6f);
        }
    assert_int_equal(make_sample(&s, false, SIZE, SIZE, NULL, image, map), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "image/segmentation/class/encoded"));
    label[20] = CLASSES;
    assert_int_equal(make_sample(&s, false, 7, 6, label, image, map), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "label 3 at row 3, column 2 is outside 0..2"));
    pm_arena_destroy(&a);
}

/* In training the label map is reduced to the size of the logits when the config asks for it. */
static void smaller_maps(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a), small;
    uint8_t label[SIZE * SIZE];
    float image[SIZE * SIZE * 3];
    int32_t map[SIZE * SIZE], down[9];

    fill_label(label, SIZE * SIZE);
    small = s;
    small.pixels.upsample_logits = false;
    small.pixels.label_height = small.pixels.label_width = 3;
    assert_int_equal(make_sample(&s, true, SIZE, SIZE, label, image, map), PM_OK);
    assert_int_equal(make_sample(&small, true, SIZE, SIZE, label, image, down), PM_OK);
    for (int y = 0; y < 3; y++)
        for (int x = 0; x < 3; x++)
            assert_int_equal(down[y * 3 + x], map[4 * y * SIZE + 4 * x]);
    pm_arena_destroy(&a);
}

static void what_does_not_fit(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of(a);
    struct pm_task other = s;

    other.facts.preprocessing = pm_preprocessing_find("vgg");
    refused(other, "\"vgg\" is for pictures without label maps");
    other = s, other.facts.labels_offset = 1;
    refused(other, "data.labels_offset: 1");
    other = s, other.facts.num_classes = 1;
    refused(other, "model.num_classes: 1");
    other = s, other.facts.num_classes = 152, other.pixels.colormap = PM_COLORMAP_ADE20K;
    refused(other,
            "eval.colormap: it has colours for 151 classes, but there are 152: choose pascal");
    other.facts.num_classes = 513, other.pixels.colormap = PM_COLORMAP_PASCAL;
    refused(other, "has colours for 512 classes, but there are 513: no palette has more");
    other = s, other.facts.num_classes = 300, other.pixels.save_raw = true;
    refused(other, "eval.save_raw");
    const struct pm_segmentation_loss loss = { .label_weights = { 2, (float[]){ 1, 2 } } };
    other = s, other.pixels.loss = &loss;
    refused(other, "loss.label_weights: 2 numbers, but there are 3 classes");
    pm_arena_destroy(&a);
}

/* ---- nets -------------------------------------------------------------------------------- */

/* Logits at a third of the size; with ctx the same value everywhere. */
static int heads_of(void *ctx, struct pm_net *net, struct pm_node *images, struct pm_heads *out)
{
    struct pm_node *x = pm_net_add(net, "net/conv", images, "conv2d filters=3 kernel=3 stride=3");

    if (ctx)
        x = pm_net_add(net, "net/flat", x, "flatten");
    *out = (struct pm_heads){ 0 };
    pm_heads_add(net, out, "logits", x);
    return net->error;
}

static void losses(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    struct pm_heads heads = { 0 };
    const struct pm_net_maker maker = { heads_of, NULL, NULL };

    for (int small = 0; small < 2; small++) {
        struct pm_net *net = pm_net_create();
        struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, SIZE, SIZE, 3), PM_F32);

        const struct pm_segmentation_loss options_of = {
            .normalize = PM_NORMALIZE_KEPT_PIXELS, .top_k_percent = 0.25f, .hard_mining_steps = 10,
            .label_weights = { 3, (float[]){ 1, 2, 0.5f } } };
        s.pixels.upsample_logits = !small;
        s.pixels.loss = small ? &options_of : NULL;
        settle_by(&s, &maker);
        assert_int_equal(s.pixels.label_height, small ? 3 : SIZE);
        assert_int_equal(heads_of(NULL, net, images, &heads), PM_OK);
        assert_int_equal(task()->check_heads(&s, &heads, 2), PM_OK);
        for (int i = 0; i < 2; i++)
            pm_heads_add_loss_only(net, &heads, "scale_logits", pm_heads_main(&heads),
                                   PM_HEAD_SCALE, 1);
        pm_net_input(net, "labels", PM_SHAPE3(2, s.pixels.label_height, s.pixels.label_width),
                     PM_I32);
        task()->add_loss(net, &heads, NULL, &s);
        if (net->error)
            fail_msg("%s", pm_error_text());
        assert_non_null(pm_net_find(net, "loss_scale_2"));
        cJSON *options = cJSON_CreateObject();
        const struct pm_node *made = pm_net_find(net, "loss");
        pm_opts_dump(made->layer->opts, made->cfg, options, false);
        assert_true(value(options, "ignore_label") == 255);
        assert_true(value(options, "top_k_percent") == (small ? 0.25 : 1));
        assert_true(value(options, "mining_steps") == (small ? 10 : 0));
        const cJSON *weights = cJSON_GetObjectItem(options, "label_weights");
        assert_int_equal(cJSON_GetArraySize(weights), small ? 3 : 0);
        if (small)
            assert_true(cJSON_GetArrayItem(weights, 1)->valuedouble == 2);
        cJSON_Delete(options);
        const struct pm_node *loss = pm_net_find(net, "loss");
        assert_int_equal(loss->in[0]->out_shape.dim[1], small ? 3 : SIZE);
        assert_int_equal(loss->in[1]->out_shape.dim[2], small ? 3 : SIZE);
        pm_net_destroy(&net);
    }
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(2, SIZE, SIZE, 3), PM_F32);
    heads_of(net, net, images, &heads);
    assert_int_equal(task()->check_heads(&s, &heads, 2), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "needs [2, height, width, 3]"));
    pm_net_destroy(&net);
    pm_arena_destroy(&a);
}

/* ---- outputs ----------------------------------------------------------------------------- */

struct answer {
    int32_t classes[SIZE * SIZE];
    float probabilities[SIZE * SIZE * CLASSES]; /* or logits, or their sum */
    double loss;
};

/* Runs the net for evaluation on a picture and labels made from example. node: a further output. */
static void run(const struct pm_task *s, const char *node, struct answer *out)
{
    const struct pm_net_maker maker = { heads_of, NULL, NULL };
    struct pm_net *net = pm_net_create();
    struct pm_node *images = pm_net_input(net, "images", PM_SHAPE4(1, SIZE, SIZE, 3), PM_F32);
    struct pm_outputs outputs = { 0 };

    if (task()->add_outputs(net, images, &maker, s, PM_USE_EVAL, &outputs) < 0)
        fail_msg("%s", pm_error_text());
    const char *const names[] = { outputs.node[0], node, NULL };
    assert_int_equal(outputs.count, 1);
    struct planned p = planned(net, names);
    float *x = pm_plan_input(p.plan, 0, "images", 0);
    int32_t *labels = pm_plan_input(p.plan, 0, "labels", 0);
    struct pm_rng r = pm_rng_make(1, 2, 3, 4);
    for (int i = 0; i < SIZE * SIZE * 3; i++)
        x[i] = (float)(2 * pm_rng_uniform(&r) - 1);
    for (int i = 0; i < SIZE * SIZE; i++)
        labels[i] = i % 4 == 3 ? 255 : i % CLASSES;
    run_plan(p.plan);
    memcpy(out->classes, pm_plan_output(p.plan, 0, names[0], 0), sizeof out->classes);
    memcpy(out->probabilities, pm_plan_output(p.plan, 0, node, 0), sizeof out->probabilities);
    out->loss = pm_plan_loss(p.plan, 0);
    drop_plan(&p);
    pm_net_destroy(&net);
}

static int largest(const float *z)
{
    int best = 0;

    for (int c = 1; c < CLASSES; c++)
        best = z[c] > z[best] ? c : best;
    return best;
}

static void softmax(const float *z, double *p)
{
    double sum = 0;

    for (int c = 0; c < CLASSES; c++)
        sum += p[c] = exp((double)z[c]);
    for (int c = 0; c < CLASSES; c++)
        p[c] /= sum;
}

static void one_mode(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    static struct answer enlarged, nearest;
    double loss = 0, p[CLASSES];
    int count = 0;

    run(&s, "logits_enlarged", &enlarged);
    for (int i = 0; i < SIZE * SIZE; i++) {
        assert_int_equal(enlarged.classes[i], largest(enlarged.probabilities + i * CLASSES));
        if (i % 4 == 3)
            continue;
        softmax(enlarged.probabilities + i * CLASSES, p);
        loss -= log(p[i % CLASSES]);
        count++;
    }
    assert_true(fabs(enlarged.loss - loss / count) < 1e-5);
    s.pixels.predict_upsampled = false; /* 3 -> 9: places 0, 4 and 8; halves are rounded up
                                         * between them */
    run(&s, "logits_enlarged", &nearest);
    for (int i = 0; i < SIZE * SIZE; i++) {
        const int y = (i / SIZE + 2) / 4 * 4, x = (i % SIZE + 2) / 4 * 4;
        assert_int_equal(nearest.classes[i], enlarged.classes[y * SIZE + x]);
    }
    pm_arena_destroy(&a);
}

/* all must hold the sums of both modes' probabilities, the largest class, and the loss of their
 * means. */
static void assert_summed(const struct answer *one, const struct answer *other,
                          const struct answer *all)
{
    double loss = 0;
    int count = 0;

    for (int i = 0; i < SIZE * SIZE; i++) {
        double p[CLASSES], q[CLASSES];

        softmax(one->probabilities + i * CLASSES, p);
        softmax(other->probabilities + i * CLASSES, q);
        for (int c = 0; c < CLASSES; c++)
            assert_true(fabs(p[c] + q[c] - (double)all->probabilities[i * CLASSES + c]) < 1e-5);
        assert_int_equal(all->classes[i], largest(all->probabilities + i * CLASSES));
        if (i % 4 == 3)
            continue;
        loss -= log((p[i % CLASSES] + q[i % CLASSES]) / 2);
        count++;
    }
    assert_true(fabs(all->loss - loss / count) < 1e-5);
}

/* Probabilities are averaged, not logits. The output of the mirrored picture is mirrored back. */
static void several_modes(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    static const float scales[] = { 1, 0.5f };
    static struct answer one, mirrored, half, all;

    s.pixels.eval_modes.flip = true;
    run(&s, "logits_enlarged", &one);
    run(&s, "mode_2/logits_enlarged", &mirrored);
    run(&s, "mode_2/sum", &all);
    assert_summed(&one, &mirrored, &all);
    s.pixels.eval_modes.scales = (struct pm_floats){ 2, scales };
    s.pixels.eval_modes.flip = false;
    run(&s, "mode_2/logits_enlarged", &half);
    run(&s, "mode_2/sum", &all);
    assert_summed(&one, &half, &all);
    pm_arena_destroy(&a);
}

/* ---- scores and predictions -------------------------------------------------------------- */

/* Three pictures in two orders, in batches; one batch has an unused place. */
static void scores(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    static int32_t labels[4][SIZE * SIZE], classes[4][SIZE * SIZE];
    const uint64_t record[2][2] = { { 7, 8 }, { 9, 0 } };
    struct pm_score *m = task()->score_create(&s);
    struct pm_batch batch = { .frame = frame_of(&s.facts, false),
                              .field = (void *[]){ NULL, NULL }, .valid = 2,
                              .record = record[0] };
    cJSON *o = cJSON_CreateObject();
    uint64_t records[PM_MAX_SAMPLES];
    uint8_t label[SIZE * SIZE], *bytes;
    size_t size;

    for (int k = 0; k < 3; k++)
        for (int i = 0; i < SIZE * SIZE; i++) {
            labels[k][i] = i < 6 ? 255 : i % 2;
            classes[k][i] = i < 6 + 10 * k ? 2 : i % 2; /* the last picture has most errors */
        }
    batch.field[1] = labels[0];
    assert_int_equal(task()->score_add(m, &batch, (const void *[]){ classes[0] }, 0.5), PM_OK);
    batch = (struct pm_batch){ .frame = frame_of(&s.facts, false), .valid = 1,
                               .record = record[1],
                               .field = (void *[]){ NULL, labels[2] } };
    assert_int_equal(task()->score_add(m, &batch, (const void *[]){ classes[2] }, 2), PM_OK);
    task()->score_report(m, o);
    assert_true(fabs(value(o, "pixel_accuracy") - 195.0 / 225) < 1e-12);
    assert_true(fabs(value(o, "loss") - (2 * 0.5 + 2) / 3) < 1e-12);
    const cJSON *iou = cJSON_GetObjectItem(o, "per_class_iou");
    assert_int_equal(cJSON_GetArraySize(iou), CLASSES);
    assert_true(fabs(cJSON_GetArrayItem(iou, 0)->valuedouble - 99.0 / 114) < 1e-12);
    assert_true(isnan(cJSON_GetArrayItem(iou, 2)->valuedouble));
    assert_true(fabs(value(o, "miou") - (96.0 / 111 + 99.0 / 114) / 3) < 1e-12);
    assert_int_equal(task()->score_samples(m, records), 3);
    assert_true(records[0] == 9 && records[1] == 8 && records[2] == 7);

    struct pm_drawings drawings = { 0 };
    fill_label(label, 7 * 6);
    make_record(7, 6, label, &bytes, &size);
    if (task()->score_sample(m, 0, bytes, size, "a record", o, &drawings) < 0)
        fail_msg("%s", pm_error_text());
    assert_string_equal(drawings.list[1].what, "label");
    assert_string_equal(drawings.list[2].what, "prediction");
    const struct pm_image8 *im = &drawings.list[2].image;
    assert_true(im->height == 7 && im->width == 6);
    for (int i = 0; i < 7 * 6; i++) {
        const struct pm_color c = pm_colormap_color(PM_COLORMAP_PASCAL,
                                                    classes[2][i / 6 * SIZE + i % 6]);
        assert_memory_equal(im->pixels + 3 * i, &c, 3);
    }
    pm_drawings_free(&drawings);
    pm_free(bytes);
    cJSON_Delete(o);
    task()->score_destroy(&m);
    pm_arena_destroy(&a);
}

/* A picture that is not resized is cut out of the output; its classes are those of its pixels. */
static void predictions(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    uint8_t pixels[7 * 6 * 3];
    const struct pm_image8 im = { 7, 6, 3, pixels };
    struct pm_drawings drawings = { 0 };
    int32_t classes[SIZE * SIZE];
    cJSON *o = cJSON_CreateObject();

    memset(pixels, 100, sizeof pixels);
    for (int i = 0; i < SIZE * SIZE; i++)
        classes[i] = i / SIZE < 7 && i % SIZE < 6 ? i / SIZE == 0 : 2;
    s.pixels.save_raw = true;
    s.pixels.colormap = PM_COLORMAP_CITYSCAPES;
    assert_int_equal(task()->present(&s, frame_of(&s.facts, false), (const void *[]){ classes },
                                     &im, o, &drawings), PM_OK);
    const cJSON *list = cJSON_GetObjectItem(o, "classes");
    assert_int_equal(cJSON_GetArraySize(list), 2);
    assert_true(value(cJSON_GetArrayItem(list, 1), "label") == 1);
    assert_true(fabs(value(cJSON_GetArrayItem(list, 1), "share") - 1.0 / 7) < 1e-12);
    assert_string_equal(drawings.list[0].what, "_prediction");
    assert_string_equal(drawings.list[1].what, "_overlay");
    assert_string_equal(drawings.list[2].what, "_raw");
    assert_int_equal(drawings.list[0].image.pixels[0], 244); /* sidewalk */
    assert_int_equal(drawings.list[1].image.pixels[0], 172);
    assert_int_equal(drawings.list[2].image.pixels[0], 8);
    assert_int_equal(drawings.list[2].image.pixels[6], 7);
    assert_int_equal(drawings.list[0].image.height, im.height);
    /* The overlay is enlarged to 256 pixels or more, and has the legend below. */
    const int factor = (256 + im.width - 1) / im.width;
    assert_int_equal(drawings.list[1].image.width, factor * im.width);
    assert_true(drawings.list[1].image.height >= factor * im.height + 12);
    pm_drawings_free(&drawings);
    drawings = (struct pm_drawings){ 0 };
    cJSON_Delete(o);
    o = cJSON_CreateObject();
    s.pixels.colormap = PM_COLORMAP_PASCAL; /* class 0 is black: its pixels keep the picture */
    assert_int_equal(task()->present(&s, frame_of(&s.facts, false), (const void *[]){ classes },
                                     &im, o, &drawings), PM_OK);
    const struct pm_image8 *over = &drawings.list[1].image;
    assert_int_equal(over->pixels[0], (100 + 128 + 1) / 2); /* class 1 */
    assert_int_equal(over->pixels[3 * (2 * factor * over->width)], 100);
    pm_drawings_free(&drawings);
    cJSON_Delete(o);
    const struct pm_image8 large = { SIZE + 1, 6, 3, NULL };
    o = cJSON_CreateObject();
    assert_int_equal(task()->present(&s, frame_of(&s.facts, false), (const void *[]){ classes },
                                     &large, o, NULL), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "input.eval_size"));
    cJSON_Delete(o);
    pm_arena_destroy(&a);
}

/* Frames of pictures that keep their own size: k * output_stride + 1 pixels, after min_resize. */
static void own_sizes(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of(a);
    const struct pm_preprocessing *p = s.facts.preprocessing;
    const struct pm_occasion o = { .where = "p" }, train = { .train = true, .where = "p" };
    static const int cases[][4] = { { 1, 1, 1, 1 }, { 2, 17, 17, 17 }, { 18, 33, 33, 33 },
                                    { 7, 300, 17, 305 } };
    struct pm_frame f, before;

    s.pixels.output_stride = 16;
    assert_int_equal(task()->frame(&s, &o, 7, 300, &f), PM_OK);
    assert_int_equal(f.height, SIZE);
    assert_int_equal(task()->frame(&s, &train, 7, 300, &before), PM_OK);
    s.facts.own_sizes = true;
    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        assert_int_equal(task()->frame(&s, &o, cases[i][0], cases[i][1], &f), PM_OK);
        assert_int_equal(f.height, cases[i][2]);
        assert_int_equal(f.width, cases[i][3]);
    }
    assert_int_equal(task()->frame(&s, &train, 7, 300, &f), PM_OK);
    assert_int_equal(f.width, before.width); /* training is the same */
    s.facts.preprocessing_cfg = pm_arena_alloc(a, p->cfg_size + 1);
    assert_int_equal(pm_opts_parse_text(p->opts, "min_resize=20 max_resize=60",
                                        (void *)s.facts.preprocessing_cfg, a, "t"), PM_OK);
    assert_int_equal(task()->frame(&s, &o, 10, 20, &f), PM_OK); /* 20 x 40 */
    assert_int_equal(f.height, 33);
    assert_int_equal(f.width, 49);
    s.facts.preprocessing_cfg = pm_arena_alloc(a, p->cfg_size + 1);
    assert_int_equal(pm_opts_parse_text(p->opts, "min_resize=4000",
                                        (void *)s.facts.preprocessing_cfg, a, "t"), PM_OK);
    assert_int_equal(task()->frame(&s, &o, 1, 100, &f), PM_EDATA);
    assert_contains(pm_error_text(), "set input.max_resize");
    pm_arena_destroy(&a);
}

/* The stride of a net without the option output_stride. */
static void strides(void **state)
{
    (void)state;
    for (int stride = 1; stride <= 32; stride *= 2)
        for (int input = 33; input < 200; input++)
            if (input > 2 * stride)
                assert_int_equal(pm_segmentation_stride(input, (input + stride - 1) / stride),
                                 stride);
    assert_int_equal(pm_segmentation_stride(90, 30), 3);
    assert_int_equal(pm_segmentation_stride(40, 80), 1);
    assert_int_equal(pm_segmentation_stride(40, 1), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_absent_class),
        cmocka_unit_test(samples),
        cmocka_unit_test(smaller_maps),
        cmocka_unit_test(what_does_not_fit),
        cmocka_unit_test(losses),
        cmocka_unit_test(one_mode),
        cmocka_unit_test(several_modes),
        cmocka_unit_test(scores),
        cmocka_unit_test(predictions),
        cmocka_unit_test(own_sizes),
        cmocka_unit_test(strides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
