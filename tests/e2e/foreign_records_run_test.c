/* Records of other programs train without a converter: those of TensorFlow's Object
 * Detection API with a label map, of the Inception trainer (boxes with numbers of classes), and of
 * annotation programs (masks, an object without a class, a picture without lists). The number of
 * boxes in a batch shows that each record is read whole. */
#include "base/shared_data.h"
#include "e2e/program.h"

#include <pumice/data.h>
#include <pumice/formats.h>

enum { HEIGHT = 48, WIDTH = 64 };

static const char net[] =
    "{ \"task\": \"detection\",\n"
    "  \"model\": { \"name\": \"ssd_mobilenet_v2\", \"depth_multiplier\": 0.25 },\n"
    "  \"data\": { \"folder\": \"%s/records\", \"threads\": 2 },\n"
    "  \"input\": { \"size\": 96, \"augment\": [{ \"name\": \"random_flip\" },\n"
    "                                      { \"name\": \"resize\" }] },\n"
    "  \"optim\": { \"name\": \"momentum\" }, \"devices\": [\"cpu\"],\n"
    "  \"schedule\": { \"policy\": \"fixed\", \"base_lr\": 0.001 },\n"
    "  \"run\": { \"folder\": \"%s/run\", \"steps\": 3, \"log_every_steps\": 1 },\n"
    "  \"eval\": { \"every_steps\": 3, \"batch_size\": 2, \"metrics\": [\"coco\", \"voc\"] } }\n";

/* ---- records --------------------------------------------------------------------------------- */

static void add_png(struct pm_example_builder *b, const char *key, int channels, int value)
{
    struct pm_image8 im = { HEIGHT, WIDTH, channels, pm_malloc((size_t)HEIGHT * WIDTH * channels) };
    uint8_t *png = NULL;
    size_t size = 0;

    memset(im.pixels, value, (size_t)HEIGHT * WIDTH * channels);
    assert_int_equal(pm_image_encode_png(&im, &png, &size), PM_OK);
    pm_example_add_bytes(b, key, png, size);
    pm_free(png);
    pm_free(im.pixels);
}

static void add_int(struct pm_example_builder *b, const char *key, int64_t value)
{
    pm_example_add_ints(b, key, &value, 1);
}

static struct pm_example_builder *new_record(int grey)
{
    struct pm_example_builder *b = pm_example_builder_create();

    add_png(b, "image/encoded", 3, grey);
    pm_example_add_bytes(b, "image/format", "png", 3);
    add_int(b, "image/height", HEIGHT);
    add_int(b, "image/width", WIDTH);
    return b;
}

/* Box k is [0.1, 0.1 k] to [0.9, 0.1 k + 0.4]. */
static void add_boxes(struct pm_example_builder *b, int count)
{
    static const float low[] = { 0.1F, 0.1F, 0.1F }, high[] = { 0.9F, 0.9F, 0.9F };
    static const float left[] = { 0, 0.1F, 0.2F }, right[] = { 0.4F, 0.5F, 0.6F };

    pm_example_add_floats(b, "image/object/bbox/ymin", low, (size_t)count);
    pm_example_add_floats(b, "image/object/bbox/xmin", left, (size_t)count);
    pm_example_add_floats(b, "image/object/bbox/ymax", high, (size_t)count);
    pm_example_add_floats(b, "image/object/bbox/xmax", right, (size_t)count);
}

static void add_classes(struct pm_example_builder *b, const char *const *names,
                        const int64_t *numbers, int count)
{
    for (int i = 0; i < count; i++)
        pm_example_add_bytes(b, "image/object/class/text", names[i], strlen(names[i]));
    pm_example_add_ints(b, "image/object/class/label", numbers, (size_t)count);
}

/* Writes and frees the records. */
static void write_records(const char *name, struct pm_example_builder **records, int count)
{
    struct pm_tfrecord_writer *w = NULL;

    assert_int_equal(pm_make_folders(in("records")), PM_OK);
    assert_int_equal(pm_tfrecord_create(in("records/%s", name), &w), PM_OK);
    for (int i = 0; i < count; i++) {
        uint8_t *data = NULL;
        size_t size = 0;

        pm_example_serialise(records[i], &data, &size);
        assert_int_equal(pm_tfrecord_write(w, data, size), PM_OK);
        pm_free(data);
        pm_example_builder_destroy(&records[i]);
    }
    assert_int_equal(pm_tfrecord_finish(w), PM_OK);
    pm_tfrecord_destroy(&w);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Trains and evaluates FOLDER/NAME with the file as both splits and further options. Every batch
 * has each of its records once. Checks the number of boxes per picture in each step. */
PM_PRINTF(5, 6) static void trains(const char *name, const char *file, int records, double boxes,
                                   const char *options, ...)
{
    char more[2048];
    va_list ap;

    va_start(ap, options);
    vsnprintf(more, sizeof more, options, ap);
    va_end(ap);
    check(run(NULL, "train %s run.folder=%s data.train_split=%s data.eval_split=%s "
                    "run.batch_size=%d %s", in("net.json"), in("%s", name), file, file, records,
              more), 0);
    for (int step = 1; step <= 3; step++) {
        if (!(fabs(logged(name, step, "true_boxes") - boxes) < 1e-6))
            fail_msg("%s: %g boxes per picture, not %g", name, logged(name, step, "true_boxes"),
                     boxes);
        assert_true(isfinite(logged(name, step, "loss")));
    }
    assert_true(pm_file_exists(in("%s/evaluation.json", name)));
}

static void object_detection_api(void **state)
{
    static const char *const names[] = { "Siamese", "chihuahua" };
    static const int64_t numbers[] = { 33, 11 }, difficult[] = { 0, 1 }, none[] = { 0, 0 };
    struct pm_example_builder *records[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        records[i] = new_record(100 + i);
        add_boxes(records[i], i + 1);
        add_classes(records[i], names, numbers, i + 1);
        pm_example_add_ints(records[i], "image/object/difficult", difficult, (size_t)i + 1);
        pm_example_add_ints(records[i], "image/object/truncated", none, (size_t)i + 1);
        for (int k = 0; k <= i; k++)
            pm_example_add_bytes(records[i], "image/object/view", "Frontal", 7);
    }
    write_records("pets.record", records, 2);
    put_text(in("pets.pbtxt"), "item {\n  id: 11\n  name: 'chihuahua'\n}\n\n"
                               "item {\n  id: 33\n  name: 'Siamese'\n}\n");
    trains("pets", "pets.record", 2, 1.5, "data.label_map=%s", in("pets.pbtxt"));
}

/* Class 0 is the background, so the class of number 287 is the net's column 286. */
static void inception_trainer(void **state)
{
    static const int64_t numbers[] = { 287, 287 };
    struct pm_example_builder *records[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        const int boxes = i == 0 ? 2 : 0;

        records[i] = new_record(100 + i);
        add_int(records[i], "image/class/label", 287 + i);
        pm_example_add_bytes(records[i], "image/class/synset", "n02125311", 9);
        add_boxes(records[i], boxes);
        pm_example_add_ints(records[i], "image/object/bbox/label", numbers, (size_t)boxes);
    }
    write_records("imagenet.tfrecord", records, 3);
    trains("imagenet", "imagenet.tfrecord", 3, 2.0 / 3, "model.num_classes=1000");
    check(run(NULL, "train %s run.folder=%s data.train_split=imagenet.tfrecord "
                    "data.eval_split=imagenet.tfrecord", in("net.json"), in("none")), 3,
          "has no label map");
}

/* The third object has neither a name nor a number: it is dropped, as TensorFlow does. */
static void annotation_program(void **state)
{
    static const char *const names[] = { "label_2", "label_3", "" };
    static const int64_t numbers[] = { 3, 4, 0 };
    struct pm_example_builder *records[2] = { new_record(100), new_record(101) };

    (void)state;
    add_boxes(records[0], 3);
    add_classes(records[0], names, numbers, 3);
    for (int k = 0; k < 3; k++)
        add_png(records[0], "image/object/mask", 1, 1);
    write_records("made.tfrecord", records, 2);
    put_text(in("made.pbtxt"), "item { id: 3 name: 'label_2' } item { id: 4 name: 'label_3' }");
    trains("made", "made.tfrecord", 2, 1, "data.label_map=%s", in("made.pbtxt"));
}

/* ---- files of other programs ----------------------------------------------------------------- */

/* Ten pictures of the Oxford pets, three of ImageNet, and one made by a program, with masks. */
static void installed(void **state)
{
    const char *files = shared_data("tfrecord"), *maps = shared_data("pipeline-configs/label_maps");

    (void)state;
    trains("pets_real", "pets_examples.record", 10, 1,
           "data.folder=%s data.label_map=%s/pet_label_map.pbtxt", files, maps);
    trains("imagenet_real", "imagenet-bbox-sample.tfrecord", 3, 2.0 / 3,
           "data.folder=%s model.num_classes=1000", files);
    trains("made_real", "datumaro-tfod-train.tfrecord", 1, 2,
           "data.folder=%s data.label_map=%s/datumaro-tfod-label_map.pbtxt", files, files);
}

static int make_net(void **state)
{
    (void)state;
    if (make_world(false) < 0)
        return -1;
    put_net(net);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(object_detection_api),
        cmocka_unit_test(inception_trainer),
        cmocka_unit_test(annotation_program),
        cmocka_unit_test(installed),
    };

    return cmocka_run_group_tests(tests, make_net, drop_world);
}
