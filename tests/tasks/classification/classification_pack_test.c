/* Packed scores of the classification task: merged, they give the same bits as one process. */
#include "tasks/classification/classification.h"
#include "tasks/packed_scores.h"

enum { BATCHES = 7, SIZE = 8, LAST = 3, MOST_CLASSES = 2100 };

static float logits[BATCHES][SIZE * MOST_CLASSES];
static int32_t labels[BATCHES][SIZE];
static uint64_t records[BATCHES][SIZE];
static struct scored_batch batches[BATCHES];
static void *fields[BATCHES][2];
static const void *outputs[BATCHES][1];

/* The batches of an evaluation of drawn logits; every 9th example has one that is not finite. The
 * last batch is partial. */
static struct evaluation evaluation_of(const struct pm_task *t)
{
    const int classes = t->facts.num_classes;
    uint32_t seed = 7;
    int n = 0;

    for (int b = 0; b < BATCHES; b++) {
        for (int i = 0; i < SIZE; i++, n++) {
            float *z = logits[b] + i * classes;

            labels[b][i] = (int32_t)drawn(&seed, (uint32_t)classes);
            records[b][i] = 500 + (uint64_t)n;
            for (int c = 0; c < classes; c++)
                z[c] = (float)drawn(&seed, 10000) / 1000;
            if (n % 9 == 4)
                z[n % classes] = n % 2 ? NAN : INFINITY;
            else if (n % 3)
                z[labels[b][i]] = 11; /* right */
        }
        fields[b][1] = labels[b];
        outputs[b][0] = logits[b];
        batches[b] = (struct scored_batch){ .batch = { .field = fields[b],
                                                       .examples = SIZE,
                                                       .record = records[b],
                                                       .valid = b == BATCHES - 1 ? LAST : SIZE },
                                            .outputs = outputs[b] };
    }
    return (struct evaluation){
        .row = pm_task_find("classification"), .task = t, .batches = batches, .count = BATCHES
    };
}

static struct pm_task setup_of(int classes)
{
    return (struct pm_task){ .facts = { .num_classes = classes, .channels = 3 },
                             .label_smoothing = 0.1f };
}

/* A record with a small picture. The caller frees the bytes with pm_free. */
static void make_record(struct evaluation *e, uint8_t **bytes)
{
    uint8_t pixels[2 * 3 * 3] = { 1, 2, 3 }, *png = NULL;
    const struct pm_image8 im = { 2, 3, 3, pixels };
    struct pm_example_builder *b = pm_example_builder_create();
    size_t size = 0;

    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    pm_example_add_bytes(b, "image/encoded", png, size);
    pm_example_serialise(b, bytes, &e->record_size);
    pm_example_builder_destroy(&b);
    pm_free(png);
    e->record = *bytes;
}

/* Few classes, more than five, and too many for a table of confused classes. */
static void same_bits(void **state)
{
    static const int classes[] = { 3, 10, MOST_CLASSES };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(classes); i++) {
        const struct pm_task t = setup_of(classes[i]);
        struct evaluation e = evaluation_of(&t);
        uint8_t *bytes = NULL;

        make_record(&e, &bytes);
        check_evaluation(&e); /* the loss is NaN */
        for (int b = 0; b < BATCHES; b++)
            for (int k = 0; k < SIZE * classes[i]; k++)
                if (!isfinite(logits[b][k]))
                    logits[b][k] = 5;
        check_evaluation(&e);
        pm_free(bytes);
    }
}

/* No batch, and batches whose records were all skipped. */
static void empty(void **state)
{
    const struct pm_task t = setup_of(4);
    struct evaluation e = evaluation_of(&t);

    (void)state;
    for (int b = 0; b < BATCHES; b += 2)
        batches[b].batch.valid = 0;
    for (e.count = 0; e.count < 4; e.count++)
        check_evaluation(&e);
}

static void damage(void **state)
{
    const struct pm_task t = setup_of(10), other = setup_of(11);
    struct pm_task smoothed = t;
    const struct evaluation e = evaluation_of(&t);

    (void)state;
    check_damage(&e);
    check_other_options(&e, &other, "\"classification, 10 classes", "\"classification, 11 classes");
    smoothed.label_smoothing = 0;
    check_other_options(&e, &smoothed, "label_smoothing 0.1", "label_smoothing 0\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits),
        cmocka_unit_test(empty),
        cmocka_unit_test(damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
