/* Packed scores of the segmentation task: merged, they give the same bits as one process, for nets
 * with instances, edges or alpha mattes. */
#include "tasks/packed_scores.h"
#include "tasks/segmentation/segmentation_setup.h"

#include "data/edge_labels.h"

enum { HEIGHT = 24, WIDTH = 40, CLASSES = 4, IGNORE = 255, BATCHES = 9, SIZE = 4, LAST = 1 };
enum { PICTURE_HEIGHT = 7, PICTURE_WIDTH = 6 };

static const int thing_list[] = { 1, 3 };
static const struct pm_panoptic_options scoring = { .threshold = NAN,
                                                    .nms_kernel = 3,
                                                    .top_k = 200,
                                                    .stuff_area = 4,
                                                    .label_divisor = 1000,
                                                    .least_area = 12,
                                                    .ignored_area = -1 };

static struct pm_task setup_of(struct pm_arena *a, int classes)
{
    return segmentation_setup(a, HEIGHT, WIDTH, classes);
}

static struct pm_task instances_of(struct pm_arena *a, const struct pm_panoptic_options *o)
{
    struct pm_task t = setup_of(a, CLASSES);

    t.pixels.instance = (struct pm_instances){
        .on = true, .things = { 2, thing_list }, .label_divisor = 1000, .panoptic = o
    };
    return t;
}

/* ---- drawn batches ----------------------------------------------------------------------- */

/* The arrays of a batch; [SIZE] pictures each. */
struct drawing {
    int height, width;
    int32_t *labels, *instances, *classes, *edges, *edges_said;
    float *degrees, *probabilities, *heat, *offset;
};

static void *array_of(struct pm_arena *a, const struct drawing *d, size_t size)
{
    return pm_arena_alloc(a, (size_t)SIZE * (size_t)d->height * (size_t)d->width * size);
}

/* Fills the box of a picture with a class, and an instance of it if it is a thing: in the truth,
 * and moved by a pixel or two in the prediction. One box in six is missed. */
static void draw_box(struct drawing *d, int picture, int number, uint32_t *seed)
{
    const int h = 4 + (int)drawn(seed, 8), w = 4 + (int)drawn(seed, 8);
    const int top = (int)drawn(seed, (uint32_t)(d->height - h - 2));
    const int left = (int)drawn(seed, (uint32_t)(d->width - w - 2));
    const int label = 1 + (int)drawn(seed, CLASSES - 1), moved = (int)drawn(seed, 3);
    const int cy = top + moved + h / 2, cx = left + moved + w / 2;
    const int first = picture * d->height * d->width;
    const bool missed = drawn(seed, 6) == 0;

    for (int i = 0; i < h * w; i++) {
        const int y = top + i / w, x = left + i % w, at = first + y * d->width + x;
        const int said_y = y + moved, said_x = x + moved;
        const int said = first + said_y * d->width + said_x;

        d->labels[at] = label;
        d->instances[at] = label == 2 ? 0 : 1000 * label + (drawn(seed, 90) ? number : 0);
        if (missed)
            continue;
        d->classes[said] = label;
        d->offset[2 * said] = (float)(cy - said_y);
        d->offset[2 * said + 1] = (float)(cx - said_x);
    }
    if (!missed && label != 2)
        d->heat[first + cy * d->width + cx] = 0.2f + (float)drawn(seed, 700) / 1000;
}

static void draw_pictures(struct pm_arena *a, int height, int width, uint32_t *seed,
                          struct drawing *d)
{
    const int pixels = height * width;

    *d = (struct drawing){ .height = height, .width = width };
    d->labels = array_of(a, d, sizeof(int32_t));
    d->instances = array_of(a, d, sizeof(int32_t));
    d->classes = array_of(a, d, sizeof(int32_t));
    d->edges = array_of(a, d, sizeof(int32_t));
    d->edges_said = array_of(a, d, sizeof(int32_t));
    d->degrees = array_of(a, d, sizeof(float));
    d->probabilities = array_of(a, d, CLASSES * sizeof(float));
    d->heat = array_of(a, d, sizeof(float));
    d->offset = array_of(a, d, 2 * sizeof(float));
    for (int picture = 0; picture < SIZE; picture++)
        for (int number = 1; number <= 5; number++)
            draw_box(d, picture, number, seed);
    for (int i = 0; i < SIZE * pixels; i++) {
        const int y = i / width % height;

        if (i < pixels || drawn(seed, 12) == 0) /* nothing counts in the first picture */
            d->labels[i] = IGNORE;
        if (y >= height - 3 && i / pixels % 2)
            d->instances[i] = -1; /* below the picture */
        for (int c = 0; c < CLASSES; c++)
            d->probabilities[i * CLASSES + c] =
                i / pixels == 1 ? (float)drawn(seed, 1000) / 1000 : 0.5f; /* equal scores */
        d->edges[i] = drawn(seed, 7) ? (int32_t)drawn(seed, 2) : PM_EDGE_IGNORE;
        d->edges_said[i] = (int32_t)drawn(seed, 2);
        d->degrees[i] = drawn(seed, 9) ? (float)drawn(seed, 1000) / 1000 : -1;
    }
}

/* The frames of the batches: one is larger than what is stored of a picture. */
static struct pm_frame size_of(int batch)
{
    return batch == 3   ? (struct pm_frame){ 30, 31 }
           : batch == 5 ? (struct pm_frame){ 530, 20 }
                        : (struct pm_frame){ HEIGHT, WIDTH };
}

/* Lists the batch's fields and outputs as the task of these pixels orders them. */
static void set_arrays(const struct pm_task *t, const struct drawing *d, void **field,
                       const void **output)
{
    const int32_t *classes = d->classes;

    field[1] = t->pixels.matting ? (void *)d->degrees : d->labels;
    if (t->pixels.matting)
        classes = d->edges_said; /* two classes */
    if (t->pixels.instance.on)
        field[2] = d->instances;
    output[0] = classes, output[1] = d->probabilities;
    output[2] = d->heat, output[3] = d->offset;
    if (t->pixels.edge_classes) {
        field[pm_segmentation_edge_field(t, false)] = d->edges;
        output[pm_segmentation_edge_output(t)] = d->edges_said;
    }
}

static struct evaluation evaluation_of(const struct pm_task *t, struct pm_arena *a)
{
    struct scored_batch *list = pm_arena_alloc(a, BATCHES * sizeof *list);
    uint32_t seed = 99;

    for (int b = 0; b < BATCHES; b++) {
        void **field = pm_arena_alloc(a, 4 * sizeof *field);
        const void **output = pm_arena_alloc(a, 5 * sizeof *output);
        uint64_t *records = pm_arena_alloc(a, SIZE * sizeof *records);
        struct drawing d;

        draw_pictures(a, size_of(b).height, size_of(b).width, &seed, &d);
        set_arrays(t, &d, field, output);
        for (int i = 0; i < SIZE; i++)
            records[i] = 70 + (uint64_t)(b * SIZE + i);
        list[b] = (struct scored_batch){ .batch = { .field = field,
                                                    .frame = size_of(b),
                                                    .examples = SIZE,
                                                    .valid = b == BATCHES - 1 ? LAST : SIZE,
                                                    .record = records },
                                         .outputs = output,
                                         .loss = 1.0 / (1 + drawn(&seed, 1000)) };
    }
    return (struct evaluation){ .row = task(), .task = t, .batches = list, .count = BATCHES };
}

/* A record with a picture, its label map and instances. The caller frees the bytes. */
static uint8_t *make_record(struct evaluation *e)
{
    enum { COUNT = PICTURE_HEIGHT * PICTURE_WIDTH };
    static const uint8_t pixels[3 * COUNT] = { 9, 8, 7 }, labels[COUNT] = { 1, 1, 0, IGNORE };
    static const uint16_t instances[COUNT] = { 1001, 1002 };
    struct pm_example_builder *b = pm_example_builder_create();
    uint8_t *bytes = NULL;

    add_picture(b, "image/encoded", PICTURE_HEIGHT, PICTURE_WIDTH, 3, pixels);
    add_picture(b, "image/segmentation/class/encoded", PICTURE_HEIGHT, PICTURE_WIDTH, 1, labels);
    add_map(b, "image/segmentation/instance/encoded", PICTURE_HEIGHT, PICTURE_WIDTH, 16, instances);
    pm_example_serialise(b, &bytes, &e->record_size);
    pm_example_builder_destroy(&b);
    e->record = bytes;
    return bytes;
}

/* ---- tests ------------------------------------------------------------------------------- */

/* Compares all ways of dealing the batches, and damages packs. */
static void check(const struct pm_task *t, struct pm_arena *a)
{
    struct evaluation e = evaluation_of(t, a);
    uint8_t *bytes = make_record(&e);

    check_evaluation(&e);
    check_damage(&e);
    pm_free(bytes);
}

static void pixels_and_edges(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task t = setup_of(a, CLASSES);

    (void)state;
    check(&t, a);
    t.pixels.edge_classes = 2;
    check(&t, a);
    pm_arena_destroy(&a);
}

static void mattes(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task t = setup_of(a, 2);

    (void)state;
    t.pixels.matting = true;
    t.pixels.ignore_label = -1;
    check(&t, a);
    pm_arena_destroy(&a);
}

/* Average precision by both rules, covering by pixels and by shares, with and without edges. */
static void instances(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct pm_arena *a = pm_arena_create();
        struct pm_panoptic_options o = scoring;
        struct pm_task t = instances_of(a, &o);

        o.precision = k % 2 ? PM_PRECISION_COCO : PM_PRECISION_CITYSCAPES;
        o.normalize_by_image_size = k / 2;
        o.score = k == 2 ? PM_SCORE_CLASS_AND_CENTER : PM_SCORE_CLASS;
        o.ignored_area = k == 3 ? 16 : -1;
        t.pixels.edge_classes = k == 1 ? 2 : 0;
        check(&t, a);
        pm_arena_destroy(&a);
    }
}

/* A loss that is not finite. */
static void diverged(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_panoptic_options o = scoring;
    const struct pm_task t = instances_of(a, &o);
    struct evaluation e = evaluation_of(&t, a);

    (void)state;
    for (int b = 0; b < BATCHES; b++)
        ((struct scored_batch *)e.batches)[b].loss = b == 4 ? NAN : INFINITY;
    check_evaluation(&e);
    pm_arena_destroy(&a);
}

static void other_options(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_panoptic_options o = scoring, coco = scoring;
    const struct pm_task t = instances_of(a, &o), other = instances_of(a, &coco);
    struct pm_task plain = setup_of(a, CLASSES);
    const struct evaluation e = evaluation_of(&t, a);

    (void)state;
    coco.precision = PM_PRECISION_COCO;
    check_other_options(&e, &other, "precision cityscapes", "precision coco");
    check_other_options(&e, &plain, "instances of classes 1 3", "\"segmentation, 4 classes, ign");
    plain.facts.num_classes = 5;
    check_other_options(&e, &plain, "4 classes", "5 classes");
    pm_arena_destroy(&a);
}

/* A score from a frame that is smaller than the picture's place in it: the picture is not drawn. */
static void small_frame(void **state)
{
    struct pm_arena *a = pm_arena_create();
    struct pm_task t = setup_of(a, CLASSES);
    struct evaluation e = evaluation_of(&t, a);
    uint8_t *bytes = make_record(&e);
    struct scored_batch *first = (struct scored_batch *)e.batches;
    uint64_t records[PM_MAX_SAMPLES];
    struct pm_drawings drawings = { 0 };
    cJSON *object = cJSON_CreateObject();

    (void)state;
    t.facts.own_sizes = true;
    first->batch.frame = (struct pm_frame){ 3, 3 };
    struct pm_score *m = task()->score_create(&t);
    add_batch(&e, m, 0);
    assert_int_equal(task()->score_samples(m, records), SIZE);
    assert_int_equal(task()->score_sample(m, 0, bytes, e.record_size, "r", object, &drawings),
                     PM_EDATA);
    task()->score_destroy(&m);
    pm_drawings_free(&drawings);
    cJSON_Delete(object);
    pm_free(bytes);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_and_edges), cmocka_unit_test(mattes),
        cmocka_unit_test(instances),        cmocka_unit_test(diverged),
        cmocka_unit_test(other_options),    cmocka_unit_test(small_frame),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
