/* The classification task: examples from records, scores, predictions, loss nodes. */
#include "tasks/task_fields.h"
#include "tasks/classification/classification.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/placing.h"

enum { SIZE = 6 };

static const struct pm_task_row *task(void)
{
    const struct pm_task_row *t = pm_task_find("classification");

    assert_non_null(t);
    assert_null(pm_task_find("clasification"));
    return t;
}

/* A task that uses a preprocessing with its default options. */
static struct pm_task setup_of(const char *preprocessing, int channels, int classes,
                                struct pm_arena *a)
{
    const struct pm_preprocessing *p = pm_preprocessing_find(preprocessing);
    assert_non_null(p);
    void *cfg = pm_arena_alloc(a, p->cfg_size + 1);

    if (p->opts)
        pm_opts_defaults(p->opts, cfg, a);
    return (struct pm_task) {
        .facts = { .height = SIZE, .width = SIZE, .eval_height = SIZE, .eval_width = SIZE,
                   .channels = channels, .num_classes = classes, .preprocessing = p,
                   .preprocessing_cfg = cfg },
        .loss = { .aux_weight = NAN },
    };
}

/* The parts of a record; a NULL format or a negative label is omitted. */
struct record {
    const char *format;
    int channels, label;
    bool cut; /* only half of the picture's bytes */
    int boxes, ymax; /* number of boxes in the record, and of values in the list ymax */
};

/* ymin, xmin, ymax, xmax; the last box reaches beyond the picture. */
static const float boxes[2][4] = { { 0.5f, 0, 1, 0.5f }, { 0.1f, 0.2f, 0.3f, 1.5f } };

static void add_boxes(struct pm_example_builder *b, const struct record *r)
{
    static const char *const keys[4] = { "image/object/bbox/ymin", "image/object/bbox/xmin",
                                         "image/object/bbox/ymax", "image/object/bbox/xmax" };
    for (int k = 0; k < 4; k++) {
        const float v[2] = { boxes[0][k], boxes[1][k] };
        pm_example_add_floats(b, keys[k], v, (size_t)(k == 2 ? r->ymax : r->boxes));
    }
}

static void fill_pixels(uint8_t *pixels, size_t count)
{
    for (size_t i = 0; i < count; i++)
        pixels[i] = (uint8_t)(i * 37 + 11);
}

static void make_record(const struct record *r, uint8_t **out, size_t *size)
{
    struct pm_example_builder *b = pm_example_builder_create();
    uint8_t pixels[SIZE * SIZE * 3], *png = NULL;
    const size_t count = (size_t)SIZE * SIZE * r->channels;
    const struct pm_image8 im = { SIZE, SIZE, r->channels, pixels };
    const int64_t label = r->label, side = SIZE;

    fill_pixels(pixels, count);
    if (r->format && strcmp(r->format, "raw") == 0) {
        pm_example_add_bytes(b, "image/encoded", pixels, r->cut ? count / 2 : count);
        pm_example_add_ints(b, "image/height", &side, 1);
        pm_example_add_ints(b, "image/width", &side, 1);
    } else if (r->format) {
        size_t bytes;
        assert_int_equal(pm_image_encode_png(&im, &png, &bytes), PM_OK);
        pm_example_add_bytes(b, "image/encoded", png, r->cut ? bytes / 2 : bytes);
    }
    if (r->format)
        pm_example_add_bytes(b, "image/format", r->format, strlen(r->format));
    add_boxes(b, r);
    if (r->label >= 0)
        pm_example_add_ints(b, "image/class/label", &label, 1);
    pm_example_serialise(b, out, size);
    pm_example_builder_destroy(&b);
    pm_free(png);
}

static int make_sample(const struct pm_task *s, bool train, const struct record *r,
                       uint32_t example, float *image, int32_t *label)
{
    struct pm_sampler sampler = { .task = s, .train = train };
    uint8_t *bytes;
    size_t size;

    make_record(r, &bytes, &size);
    const struct pm_loader_record at = { .bytes = bytes, .size = size, .seed = 7, .step = 3,
                                         .example = example, .where = "a.tfrecord record 5",
                                         .frame = frame_of(&s->facts, train) };
    const int err = task()->make(&sampler, &at, (void *[]){ image, label });
    pm_free(bytes);
    return err;
}

static void samples(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of("lenet", 1, 10, a);
    uint8_t pixels[SIZE * SIZE];
    fill_pixels(pixels, sizeof pixels);

    s.facts.labels_offset = 1;
    for (int raw = 0; raw < 2; raw++) {
        const struct record r = { raw ? "raw" : "png", 1, 4, false };
        float image[SIZE * SIZE];
        int32_t label;
        if (make_sample(&s, false, &r, 0, image, &label))
            fail_msg("%s", pm_error_text());
        assert_int_equal(label, 3);
        for (int i = 0; i < SIZE * SIZE; i++)
            assert_true(image[i] == ((float)pixels[i] - 128) / 128);
    }
    pm_arena_destroy(&a);
}

static void bad_records(void **state)
{
    (void)state;
    static const struct { struct record r; const char *words; } cases[] = {
        { { "png", 1, 11, false }, "image/class/label: 11 is outside 1..10" },
        { { "png", 1, 0, false }, "image/class/label: 0 is outside 1..10" },
        { { "png", 1, -1, false }, "has no image/class/label" },
        { { NULL, 1, 3, false }, "the record has no image/encoded" },
        { { "png", 1, 3, true }, "" },
        { { "raw", 1, 3, true }, "18 raw bytes" },
        { { "raw", 2, 3, false }, "72 raw bytes" },
    };
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of("lenet", 1, 10, a);
    s.facts.labels_offset = 1;

    for (size_t i = 0; i < PM_COUNT(cases); i++) {
        float image[SIZE * SIZE];
        int32_t label;
        /* A label out of range is an error in the data; the other cases are damaged records. */
        assert_int_equal(make_sample(&s, false, &cases[i].r, 0, image, &label),
                         strstr(cases[i].words, "image/class/label") ? PM_EDATA : PM_ECORRUPT);
        if (!strstr(pm_error_text(), "a.tfrecord record 5") ||
            !strstr(pm_error_text(), cases[i].words))
            fail_msg("\"%s\" does not name the record or say \"%s\"", pm_error_text(),
                     cases[i].words);
    }
    pm_arena_destroy(&a);
}

/* A net with one channel gets colour pictures in grey, as with use_grayscale. */
static void grey(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of("lenet", 1, 10, a);
    uint8_t pixels[SIZE * SIZE * 3];
    fill_pixels(pixels, sizeof pixels);

    for (int raw = 0; raw < 2; raw++) {
        const struct record r = { raw ? "raw" : "png", 3, 4, false };
        float image[SIZE * SIZE];
        int32_t label;
        assert_int_equal(make_sample(&s, false, &r, 0, image, &label), PM_OK);
        for (int i = 0; i < SIZE * SIZE; i++) {
            const uint8_t *p = pixels + 3 * i;
            const double want = (0.2989 * p[0] + 0.587 * p[1] + 0.114 * p[2] - 128) / 128;
            assert_true(fabs(image[i] - want) < 4 * 255 / 128.0 / (1 << 24));
        }
    }
    pm_arena_destroy(&a);
}

/* The Inception trainer's preprocessing gets the record's boxes and the number of the example. */
static void record_boxes(void **state)
{
    (void)state;
    enum { VALUES = SIZE * SIZE * 3 };
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of("inception_trainer", 3, 10, a);
    uint8_t pixels[VALUES];
    const struct pm_image8 im = { SIZE, SIZE, 3, pixels };
    float held[8], image[VALUES], want[VALUES];
    int32_t label;

    fill_pixels(pixels, sizeof pixels);
    memcpy(held, boxes, sizeof held);
    held[7] = 1;
    for (uint32_t example = 0; example < 40; example++) {
        const int n = (int)example % 3;
        const struct record r = { "png", 3, 4, false, n, n };
        struct pm_rng rng = pm_rng_make(7, pm_hash("augmentation"), 3, example);
        struct pm_draws d;
        assert_int_equal(make_sample(&s, true, &r, example, image, &label), PM_OK);
        s.facts.preprocessing->draw(s.facts.preprocessing_cfg, &rng,
                              &(struct pm_scene){ SIZE, SIZE, example, held, (size_t)n }, &d);
        assert_int_equal(d.resize_method * 10 + d.color_ordering, example % 4 * 10 + example % 2);
        assert_int_equal(place_picture(s.facts.preprocessing, s.facts.preprocessing_cfg, &im, true,
                                       &d, SIZE, SIZE, 3, want, "x"),
                         PM_OK);
        assert_memory_equal(image, want, sizeof want);
    }
    const struct record r = { "png", 3, 4, false, 2, 1 };
    assert_int_equal(make_sample(&s, true, &r, 0, image, &label), PM_ECORRUPT);
    assert_non_null(strstr(pm_error_text(), "2 values of image/object/bbox/ymin and 1 of"));
    pm_arena_destroy(&a);
}

/* Distortions depend on seed, step and example, and occur only in training. */
static void augmentation(void **state)
{
    (void)state;
    enum { VALUES = SIZE * SIZE * 3 };
    const struct record r = { "png", 3, 1, false };
    struct pm_arena *a = pm_arena_create();
    const struct pm_task s = setup_of("cifarnet", 3, 10, a);
    float first[VALUES], again[VALUES], other[VALUES], plain[2][VALUES];
    int32_t label;

    assert_int_equal(make_sample(&s, true, &r, 5, first, &label), PM_OK);
    assert_int_equal(make_sample(&s, true, &r, 5, again, &label), PM_OK);
    assert_int_equal(make_sample(&s, true, &r, 6, other, &label), PM_OK);
    assert_memory_equal(first, again, sizeof first);
    assert_memory_not_equal(first, other, sizeof first);
    assert_int_equal(make_sample(&s, false, &r, 5, plain[0], &label), PM_OK);
    assert_int_equal(make_sample(&s, false, &r, 6, plain[1], &label), PM_OK);
    assert_memory_equal(plain[0], plain[1], sizeof plain[0]);
    pm_arena_destroy(&a);
}

static void batch_fields(void **state)
{
    (void)state;
    struct pm_arena *a = pm_arena_create();
    struct pm_task s = setup_of("vgg", 3, 10, a);
    struct pm_field f[8];

    s.facts.eval_height = 20, s.facts.eval_width = 10;
    assert_int_equal(fields_of(task(), &s, true, frame_of(&s.facts, true), f), 2);
    assert_string_equal(f[0].name, "images");
    assert_true(pm_shape_equal(f[0].shape, PM_SHAPE3(SIZE, SIZE, 3)));
    assert_string_equal(f[1].name, "labels");
    assert_int_equal(f[1].type, PM_I32);
    assert_int_equal(pm_shape_count(f[1].shape), 1);
    assert_int_equal(fields_of(task(), &s, false, frame_of(&s.facts, false), f), 2);
    assert_true(pm_shape_equal(f[0].shape, PM_SHAPE3(20, 10, 3)));

    const struct pm_preprocessing colour = { .name = "colour", .channels = 3 };
    s.facts.preprocessing = &colour;
    assert_int_equal(fields_of(task(), &s, true, frame_of(&s.facts, true), f), 2);
    s.facts.channels = 1;
    assert_int_equal(pm_classification_check(&s), PM_ECONFIG);
    assert_non_null(strstr(pm_error_text(), "\"colour\" needs 3 channels"));
    s.facts.channels = 4;
    assert_int_equal(pm_classification_check(&s), PM_ECONFIG);
    s.facts.channels = 3, s.facts.num_classes = 1;
    assert_int_equal(pm_classification_check(&s), PM_ECONFIG);
    pm_arena_destroy(&a);
}

/* ---- score ------------------------------------------------------------------------------- */

static double value(const cJSON *o, const char *key)
{
    const cJSON *v = cJSON_GetObjectItemCaseSensitive(o, key);

    assert_true(cJSON_IsNumber(v));
    return v->valuedouble;
}

static void score(void **state)
{
    (void)state;
    enum { K = 7 };
    static const float logits[][K] = {
        { 0, 1, 2, 3, 4, 5, 6 }, /* label 6: correct */
        { 3, 3, 1, 1, 1, 1, 1 }, /* label 0: correct, the lowest of equal ones */
        { 3, 3, 1, 1, 1, 1, 1 }, /* label 1: wrong, recalled */
        { 9, 8, 7, 6, 5, 5, 5 }, /* label 6: four values are greater, equal ones do not count:
                                  * recalled */
        { 9, 8, 7, 6, 5, 4, 4 }, /* label 6: five values are greater: not recalled */
        { 9, 9, 9, 9, 9, 9, 9 }, /* beyond `valid`, ignored */
    };
    const int32_t labels[] = { 6, 0, 1, 6, 6, 0 };
    struct pm_task s = { .facts = { .num_classes = K }, .label_smoothing = 0.25f };
    struct pm_batch batch = { .field = (void *[]){ NULL, (void *)labels }, .valid = 2 };
    struct pm_score *m = task()->score_create(&s);
    cJSON *o = cJSON_CreateObject();
    struct pm_metric_list metrics = { 0 };
    double loss = 0;

    assert_int_equal(task()->score_add(m, &batch, (const void *[]){ logits[0] }, 0), PM_OK);
    batch.field[1] = (void *)(labels + 2), batch.valid = 3;
    assert_int_equal(task()->score_add(m, &batch, (const void *[]){ logits[2] }, 0), PM_OK);
    for (int i = 0; i < 5; i++) {
        double sum = 0;
        for (int k = 0; k < K; k++)
            sum += exp((double)logits[i][k]);
        for (int k = 0; k < K; k++)
            loss -= (0.25 / K + (k == labels[i] ? 0.75 : 0)) * log(exp((double)logits[i][k]) / sum);
    }
    task()->score_report(m, o);
    assert_int_equal(cJSON_GetArraySize(o), 3);
    assert_true(value(o, "accuracy") == 2.0 / 5);
    assert_true(value(o, "recall_at_5") == 4.0 / 5);
    assert_true(fabs(value(o, "loss") - loss / 5) < 1e-12 * loss);
    task()->metrics(&s, &metrics);
    assert_int_equal(metrics.count, 3);
    for (int i = 0; i < 3; i++) {
        value(o, metrics.list[i]->name);
        assert_int_equal(metrics.list[i]->higher_is_better,
                         strcmp(metrics.list[i]->name, "loss") != 0);
    }
    assert_string_equal(metrics.list[0]->name, "accuracy");
    pm_free(metrics.list);
    cJSON_Delete(o);
    task()->score_destroy(&m);
    assert_null(m);
}

static void score_not_finite(void **state)
{
    (void)state;
    static const float logits[][6] = { { 1, NAN, 0 }, { INFINITY, 0, 0 }, { 1, 0, 0 } };
    const int32_t labels[] = { 0, 0, 0 };
    struct pm_task s = { .facts = { .num_classes = 6 } };
    struct pm_batch batch = { .field = (void *[]){ NULL, (void *)labels }, .valid = 3 };
    struct pm_score *m = task()->score_create(&s);
    cJSON *o = cJSON_CreateObject();

    assert_int_equal(task()->score_add(m, &batch, (const void *[]){ logits[0] }, 0), PM_OK);
    task()->score_report(m, o);
    assert_true(value(o, "accuracy") == 1.0 / 3);
    assert_true(value(o, "recall_at_5") == 1.0 / 3);
    char *text = cJSON_PrintUnformatted(o);
    assert_non_null(strstr(text, "\"loss\":null"));
    free(text);
    cJSON_Delete(o);
    o = cJSON_CreateObject();
    task()->score_detail(m, o); /* two examples of the class, but no predictions */
    text = cJSON_PrintUnformatted(o);
    assert_string_equal(text, "{\"labels\":[null,null,null,null,null,null],\"labels_offset\":0,"
        "\"per_class\":{\"count\":[3,0,0,0,0,0],\"predicted\":[1,0,0,0,0,0],"
        "\"right\":[1,0,0,0,0,0]},\"unanswered\":2,"
        "\"confusion\":[0,0,1]}");
    free(text);
    cJSON_Delete(o);
    task()->score_destroy(&m);
}

/* Five classes or fewer have no recall_at_5. */
static void no_recall_among_five(void **state)
{
    (void)state;
    for (int classes = 2; classes <= 6; classes++) {
        static const float logits[6] = { 1 };
        const int32_t label = 0;
        struct pm_task s = { .facts = { .num_classes = classes } };
        struct pm_batch batch = { .field = (void *[]){ NULL, (void *)&label }, .valid = 1 };
        struct pm_score *m = task()->score_create(&s);
        struct pm_metric_list metrics = { 0 };
        cJSON *o = cJSON_CreateObject();

        assert_int_equal(task()->score_add(m, &batch, (const void *[]){ logits }, 0), PM_OK);
        task()->score_report(m, o);
        task()->metrics(&s, &metrics);
        assert_int_equal(cJSON_HasObjectItem(o, "recall_at_5"), classes > 5);
        assert_int_equal(metrics.count, classes > 5 ? 3 : 2);
        for (size_t i = 0; i < metrics.count; i++)
            assert_true(cJSON_HasObjectItem(o, metrics.list[i]->name));
        pm_free(metrics.list);
        cJSON_Delete(o);
        task()->score_destroy(&m);
    }
}

/* 40 examples of 3 classes; the label of i is i % 3. The prediction is wrong when i % 4 == 0,
 * with a larger error for a larger i. In batches of `size`, in reverse order when asked. */
static struct pm_score *scored(const struct pm_task *s, int size, bool backwards)
{
    struct pm_score *m = task()->score_create(s);

    for (int at = 0; at < 40; at += size) {
        float logits[40][3] = { { 0 } };
        int32_t labels[40];
        uint64_t records[40];
        struct pm_batch batch = { .field = (void *[]){ NULL, labels }, .record = records };

        for (; batch.valid < size && at + batch.valid < 40; batch.valid++) {
            const int k = batch.valid, i = backwards ? 39 - at - k : at + k;
            records[k] = 1000 + (uint64_t)i;
            labels[k] = i % 3;
            logits[k][(i + (i % 4 == 0)) % 3] = 1 + 0.1f * (float)i;
        }
        assert_int_equal(task()->score_add(m, &batch, (const void *[]){ logits[0] }, 0), PM_OK);
    }
    return m;
}

static void details(void **state)
{
    static const char *const labels[] = { "ant", NULL, "cat" };
    const struct pm_task s = { .facts = { .num_classes = 3, .labels = labels, .labels_offset = 1,
                                         .channels = 1 } };
    struct pm_score *m = scored(&s, 7, false), *other = scored(&s, 40, true);
    uint64_t records[PM_MAX_SAMPLES], same[PM_MAX_SAMPLES];
    cJSON *o = cJSON_CreateObject();

    (void)state;
    assert_int_equal(task()->score_samples(m, records), PM_MAX_SAMPLES);
    assert_int_equal(task()->score_samples(other, same), PM_MAX_SAMPLES);
    assert_memory_equal(records, same, sizeof records);
    for (int i = 0; i < 10; i++) /* all wrong ones, the worst first */
        assert_int_equal(records[i], 1036 - 4 * i);
    for (int i = 10; i < PM_MAX_SAMPLES; i++)
        assert_true(records[i] % 4 != 0);

    task()->score_detail(m, o);
    char *text = cJSON_PrintUnformatted(o);
    assert_string_equal(text,
                        "{\"labels\":[\"ant\",null,\"cat\"],\"labels_offset\":1,\"per_class\":{"
                        "\"count\":[14,13,13],\"predicted\":[13,14,13],\"right\":[10,10,10]},"
                        "\"confusion\":[0,0,10,0,1,4,1,1,10,1,2,3,2,0,3,"
                        "2,2,10]}");
    free(text);
    cJSON_Delete(o);

    const struct record r = { "raw", 1, 4, false };
    struct pm_drawings drawings = { 0 };
    uint8_t *bytes;
    size_t size;
    make_record(&r, &bytes, &size);
    o = cJSON_CreateObject();
    assert_int_equal(task()->score_sample(m, 1, bytes, size, "a record", o, &drawings), PM_OK);
    assert_true(value(o, "label") == 2 && value(o, "predicted") == 0); /* example 32 */
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(o, "right")));
    assert_true(fabs(value(o, "probability") - exp(4.2) / (exp(4.2) + 2)) < 1e-6);
    assert_true(fabs(value(o, "label_probability") - 1 / (exp(4.2) + 2)) < 1e-6);
    const struct pm_image8 *im = &drawings.list[0].image;
    assert_true(im->height == SIZE && im->width == SIZE && im->pixels[1] == 48);
    assert_string_equal(drawings.list[0].what, "image");
    assert_int_equal(drawings.count, 1);
    pm_drawings_free(&drawings);
    pm_free(bytes);
    cJSON_Delete(o);
    task()->score_destroy(&m);
    task()->score_destroy(&other);
}

static void prediction(void **state)
{
    (void)state;
    static const char *const labels[] = { "ant", "bee", "cat", NULL, "elk", "fox" };
    const float logits[] = { 0, 2, 1, 2, -1, -2 };
    struct pm_task s = { .facts = { .num_classes = 6, .labels_offset = 1, .labels = labels } };
    cJSON *o = cJSON_CreateObject();
    double sum = 0;

    for (int i = 0; i < 6; i++)
        sum += exp((double)logits[i]);
    assert_int_equal(task()->present(&s, frame_of(&s.facts, false), (const void *[]){ logits },
                                     &(struct pm_image8){ 6, 6, 3, NULL }, o, NULL),
                     PM_OK);
    assert_true(value(o, "label") == 2);
    assert_string_equal(cJSON_GetObjectItem(o, "name")->valuestring, "bee");
    assert_true(fabs(value(o, "probability") - exp(2) / sum) < 1e-12);
    const cJSON *top = cJSON_GetObjectItem(o, "top");
    assert_int_equal(cJSON_GetArraySize(top), 5);
    static const int order[] = { 2, 4, 3, 1, 5 };
    for (int i = 0; i < 5; i++)
        assert_true(value(cJSON_GetArrayItem(top, i), "label") == order[i]);
    assert_null(cJSON_GetObjectItem(cJSON_GetArrayItem(top, 1), "name"));
    cJSON_Delete(o);
}

/* ---- loss -------------------------------------------------------------------------------- */

static const struct pm_node *losses(struct pm_task s, int logits, float net_aux, bool with_aux,
                                    struct pm_net **net)
{
    *net = pm_net_create();
    struct pm_node *images = pm_net_input(*net, "images", PM_SHAPE2(4, 8), PM_F32);
    struct pm_heads heads = { 0 };

    pm_heads_add(*net, &heads, "logits",
                 pm_net_add(*net, "main", images, "fully_connected units=%d", logits));
    if (with_aux)
        pm_heads_add_loss_only(*net, &heads, "aux_logits",
                               pm_net_add(*net, "aux", images, "fully_connected units=10"),
                               PM_HEAD_AUXILIARY, net_aux);
    pm_net_input(*net, "labels", PM_SHAPE1(4), PM_I32);
    task()->add_loss(*net, &heads, NULL, &s);
    return pm_net_find(*net, "aux_loss");
}

static void loss_nodes(void **state)
{
    (void)state;
    struct pm_task s = { .facts = { .num_classes = 10 }, .loss = { .aux_weight = NAN } };
    struct pm_net *net;

    assert_null(losses(s, 10, 0.4f, false, &net));
    assert_int_equal(net->error, PM_OK);
    assert_non_null(pm_net_find(net, "loss"));
    assert_true(pm_shape_equal(pm_net_find(net, "labels")->out_shape, PM_SHAPE1(4)));
    pm_net_destroy(&net);

    s.label_smoothing = 0.1f; /* of both */
    const struct pm_node *aux = losses(s, 10, 0.4f, true, &net),
                         *main_loss = pm_net_find(net, "loss");
    assert_non_null(aux);
    cJSON *o = cJSON_CreateObject();
    pm_opts_dump(aux->layer->opts, aux->cfg, o, false);
    assert_true((float)value(o, "weight") == 0.4f && (float)value(o, "label_smoothing") == 0.1f);
    cJSON_Delete(o);
    o = cJSON_CreateObject();
    pm_opts_dump(main_loss->layer->opts, main_loss->cfg, o, false);
    assert_true((float)value(o, "weight") == 1 && (float)value(o, "label_smoothing") == 0.1f);
    cJSON_Delete(o);
    pm_net_destroy(&net);

    s.loss.aux_weight = 0;
    assert_null(losses(s, 10, 0.4f, true, &net));
    pm_net_destroy(&net);

    losses(s, 11, 0, false, &net);
    assert_int_equal(net->error, PM_ECONFIG);
    assert_non_null(
        strstr(pm_error_text(), "main: the net's logits are 4x11, but the data has 10"));
    pm_net_destroy(&net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples), cmocka_unit_test(grey), cmocka_unit_test(record_boxes),
        cmocka_unit_test(bad_records),
        cmocka_unit_test(augmentation),     cmocka_unit_test(batch_fields),
        cmocka_unit_test(score),            cmocka_unit_test(score_not_finite),
        cmocka_unit_test(no_recall_among_five),
        cmocka_unit_test(details), cmocka_unit_test(prediction),       cmocka_unit_test(loss_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
