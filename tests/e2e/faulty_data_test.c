/* Damaged data with the program: each fault is put into a data set of small pictures. train and
 * eval must stop and name the record, or skip it if data.on_corrupt says so. */
#include "e2e/program.h"

#include <pumice/data.h>
#include <pumice/formats.h>
#include <zlib.h>

enum { COUNT = 24, SIDE = 16, CLASSES = 4 };

enum fault {
    GOOD,
    /* Faults that data.on_corrupt can skip, */
    CUT_PNG, CUT_JPEG, DAMAGED_PNG, NO_PICTURE, NOT_A_PICTURE, EMPTY_PICTURE, PICTURE_IS_A_NUMBER,
    NO_ROWS, RAW_TOO_SHORT, RAW_CHANNELS, NOT_AN_EXAMPLE, A_SEQUENCE,
    FIRST_FATAL, /* and faults that it cannot skip */
    NO_LABEL = FIRST_FATAL, NEGATIVE_LABEL, LARGE_LABEL, LABEL_IS_TEXT, LABEL_LIST_EMPTY,
    EMPTY_RECORD, FAULTS
};

static const struct {
    const char *says[2];
} faults[FAULTS] = {
    [CUT_PNG] = { { "the PNG is damaged", "cut short" } },
    [CUT_JPEG] = { { "the JPEG is cut short" } },
    [DAMAGED_PNG] = { { "the PNG is damaged" } },
    [NO_PICTURE] = { { "the record has no image/encoded" } },
    [NOT_A_PICTURE] = { { "not a JPEG, PNG, WebP" } },
    [EMPTY_PICTURE] = { { "the record has no image/encoded" } },
    [PICTURE_IS_A_NUMBER] = { { "image/encoded", "integers" } },
    [NO_ROWS] = { { "the PNG is 16 x 0 pixels" } },
    [RAW_TOO_SHORT] = { { "raw bytes do not make a picture of 16x16x3" } },
    [RAW_CHANNELS] = { { "raw bytes do not make a picture of 16x16x1", "3 channels are needed" } },
    [NOT_AN_EXAMPLE] = { { "not a tf.Example" } },
    [A_SEQUENCE] = { { "a tf.SequenceExample",
                       "a tf.Example with one picture is needed" } },
    [NO_LABEL] = { { "has no image/class/label" } },
    [NEGATIVE_LABEL] = { { "image/class/label: -1 is outside 0..3" } },
    [LARGE_LABEL] = { { "image/class/label: 4 is outside 0..3", "4 classes" } },
    [LABEL_IS_TEXT] = { { "image/class/label", "bytes" } },
    [LABEL_LIST_EMPTY] = { { "has no image/class/label" } },
    [EMPTY_RECORD] = { { "no image/class/label" } },
};

/* ---- making damaged records -------------------------------------------------------------- */

static void add_label(struct pm_example_builder *b, enum fault f, int i)
{
    const int64_t label = f == NEGATIVE_LABEL ? -1 : f == LARGE_LABEL ? CLASSES : i % CLASSES;

    if (f == LABEL_IS_TEXT)
        pm_example_add_bytes(b, "image/class/label", "2", 1);
    else if (f != NO_LABEL)
        pm_example_add_ints(b, "image/class/label", &label, f != LABEL_LIST_EMPTY);
}

/* Sets the number of rows in a PNG's header to 0 and corrects the checksum. */
static void take_rows(uint8_t *png)
{
    memset(png + 20, 0, 4);
    const uint32_t crc = (uint32_t)crc32(0, png + 12, 17);
    for (int k = 0; k < 4; k++)
        png[29 + k] = (uint8_t)(crc >> (24 - 8 * k));
}

static void add_raw(struct pm_example_builder *b, const struct pm_image8 *im, enum fault f)
{
    const int64_t side = SIDE, channels = f == RAW_CHANNELS ? 1 : 3;

    pm_example_add_bytes(b, "image/encoded", im->pixels,
                         (size_t)(SIDE * SIDE * channels) - (f == RAW_TOO_SHORT));
    pm_example_add_bytes(b, "image/format", "raw", 3);
    pm_example_add_ints(b, "image/height", &side, 1);
    pm_example_add_ints(b, "image/width", &side, 1);
    pm_example_add_ints(b, "image/channels", &channels, 1);
}

static void add_picture(struct pm_example_builder *b, enum fault f, int i)
{
    uint8_t pixels[SIDE * SIDE * 3], *bytes = NULL;
    const struct pm_image8 im = { SIDE, SIDE, 3, pixels };
    const int64_t number = i;
    size_t size = 0;

    for (int k = 0; k < SIDE * SIDE * 3; k++)
        pixels[k] = (uint8_t)(k * (i + 3) + (i % CLASSES) * 40);
    if (f == NO_PICTURE)
        return;
    if (f == PICTURE_IS_A_NUMBER) {
        pm_example_add_ints(b, "image/encoded", &number, 1);
        return;
    }
    if (f == RAW_TOO_SHORT || f == RAW_CHANNELS) {
        add_raw(b, &im, f);
        return;
    }
    assert_int_equal(f == CUT_JPEG ? pm_image_encode_jpeg(&im, 90, &bytes, &size)
                                   : pm_image_encode_png(&im, &bytes, &size), PM_OK);
    if (f == DAMAGED_PNG)
        bytes[size / 2] ^= 16;
    if (f == NO_ROWS)
        take_rows(bytes);
    pm_example_add_bytes(b, "image/encoded", f == NOT_A_PICTURE ? (const void *)"text" : bytes,
                         f == CUT_PNG || f == CUT_JPEG ? size - 20 : f == NOT_A_PICTURE ? 4
                         : f == EMPTY_PICTURE                                          ? 0
                                                                                       : size);
    pm_free(bytes);
}

static void write_record(struct pm_tfrecord_writer *w, enum fault f, int i)
{
    struct pm_example_builder *b = pm_example_builder_create();
    static const char lists[] = "\x12\x06\n\x04\n\x02hi"; /* feature_lists, with an empty one,
                                                           * "hi" */
    struct pm_str sequence = { 0 };
    uint8_t *data = NULL;
    size_t size = 0;

    add_label(b, f, i);
    add_picture(b, f, i);
    pm_example_serialise(b, &data, &size);
    if (f == NOT_AN_EXAMPLE)
        memset(data, 0xff, size);
    if (f == EMPTY_RECORD)
        size = 0;
    pm_str_bytes(&sequence, data, size);
    if (f == A_SEQUENCE) /* an Example has only the context */
        pm_str_bytes(&sequence, lists, sizeof lists - 1);
    assert_int_equal(pm_tfrecord_write(w, sequence.text, sequence.length), PM_OK);
    pm_str_free(&sequence);
    pm_free(data);
    pm_example_builder_destroy(&b);
}

/* Makes a split in which record i has the fault `kind` when bit i of `which` is set. */
static void make_split(const char *name, enum fault kind, uint32_t which)
{
    struct pm_tfrecord_writer *w = NULL;

    pm_make_folders(in("data"));
    put_text(in("data/labels.txt"), "0:a\n1:b\n2:c\n3:d\n");
    assert_int_equal(pm_tfrecord_create(in("data/%s", name), &w), PM_OK);
    for (int i = 0; i < COUNT; i++)
        write_record(w, which >> i & 1 ? kind : GOOD, i);
    assert_int_equal(pm_tfrecord_finish(w), PM_OK);
    pm_tfrecord_destroy(&w);
}

static void fresh(enum fault kind, uint32_t which)
{
    assert_int_equal(pm_remove_tree(in("data")), PM_OK);
    assert_int_equal(pm_remove_tree(in("r")), PM_OK);
    make_split("x_train.tfrecord", kind, which);
    make_split("x_test.tfrecord", kind, which);
}

static struct result train(const char *more)
{
    return run(NULL, "train %s run.folder=%s %s", in("net.json"), in("r"), more);
}

static struct result eval(const char *more)
{
    return run(NULL, "eval %s run.folder=%s %s", in("net.json"), in("r"), more);
}

/* ---- one record -------------------------------------------------------------------------- */

static void each_fault_is_named(void **state)
{
    (void)state;
    for (enum fault f = GOOD + 1; f < FAULTS; f++) {
        const bool fatal = f >= FIRST_FATAL;

        fresh(f, 1u << 13);
        check(train("run.steps=6"), 3, "x_train.tfrecord record 13 (offset ", faults[f].says[0],
              faults[f].says[1], fatal ? NULL : "data.on_corrupt");
        check(train("run.steps=6 data.on_corrupt=skip"), fatal ? 3 : 0,
              "x_train.tfrecord record 13 (offset ", faults[f].says[0]);
    }
}

/* Two damaged records of the test split do not count; the others are evaluated as if alone. */
static void evaluation_counts_them_out(void **state)
{
    struct result r;
    cJSON *json;

    (void)state;
    fresh(CUT_JPEG, 0);
    check(train(""), 0);
    check(eval(""), 0);
    make_split("x_test.tfrecord", CUT_JPEG, 1u << 2 | 1u << 23);
    check(eval(""), 3, "x_test.tfrecord record 2 (offset ", "the JPEG is cut short",
          "data.on_corrupt");
    r = eval("data.on_corrupt=skip --json");
    assert_int_equal(r.code, 0);
    json = json_of(&r);
    assert_int_equal(number_of(json, "count"), COUNT - 2);
    assert_int_equal(number_of(json, "skipped"), 2);
    assert_true(number_of(cJSON_GetObjectItem(json, "metrics"), "loss") > 0);
    assert_contains(r.err, "2 damaged records were skipped, 22 pictures were evaluated");
    cJSON_Delete(json);
    drop(&r);
}

static double last_skipped(void)
{
    char *text = get_text(in("r/metrics.jsonl")), *at = NULL;
    double n = -1;

    for (char *p = text; (p = strstr(p, "\"skipped\": ")); p++)
        at = p;
    if (at)
        n = strtod(at + 11, NULL);
    pm_free(text);
    return n;
}

/* The results have the same bits with and without an interruption, and the same count. */
static void passing_over_repeats(void **state)
{
    struct result r;
    cJSON *json;
    double skipped;

    (void)state;
    fresh(CUT_PNG, 0x810430);
    r = train("run.steps=10 data.on_corrupt=skip --json");
    assert_int_equal(r.code, 0);
    json = json_of(&r);
    skipped = number_of(json, "skipped");
    assert_true(skipped > 5);
    assert_true(last_skipped() == skipped);
    assert_contains(r.err, "damaged records were skipped since step 0");
    cJSON_Delete(json);
    drop(&r);
    assert_int_equal(rename(in("r"), in("whole")), 0);
    check(train("run.steps=4 data.on_corrupt=skip"), 0);
    check(train("run.steps=10 data.on_corrupt=skip data.threads=1"), 0);
    assert_true(last_skipped() == skipped);
    same_bytes(in("r/checkpoints/step-000010.safetensors"),
               in("whole/checkpoints/step-000010.safetensors"));
    pm_remove_tree(in("whole"));
}

static void nothing_left(void **state)
{
    (void)state;
    fresh(NOT_A_PICTURE, 0);
    check(train(""), 0);
    fresh(NOT_A_PICTURE, UINT32_MAX);
    check(train("data.on_corrupt=skip"), 3, "24 consecutive records are damaged", "(offset ");
    make_split("x_train.tfrecord", GOOD, 0);
    check(train("data.on_corrupt=skip"), 0);
    check(eval("data.on_corrupt=skip"), 3, "split test: all 24 records are damaged");
    check(train("data.on_corrupt=sometimes"), 2, "data.on_corrupt", "sometimes", "error", "skip");
}

/* ---- shards ------------------------------------------------------------------------------ */

static uint8_t *shard(size_t *size)
{
    char *text = NULL;

    if (pm_file_read(in("data/x_train.tfrecord"), &text, size) < 0)
        fail_msg("%s", pm_error_text());
    return (uint8_t *)text;
}

static void put_shard(const uint8_t *bytes, size_t size)
{
    if (pm_file_write(in("data/x_train.tfrecord"), bytes, size) < 0)
        fail_msg("%s", pm_error_text());
}

/* The offset of record i. */
static size_t offset_of(const uint8_t *bytes, int i)
{
    size_t at = 0;

    for (; i > 0; i--)
        at += 16 + (bytes[at] | (size_t)bytes[at + 1] << 8 | (size_t)bytes[at + 2] << 16);
    return at;
}

static void damaged_shards(void **state)
{
    size_t size, at;
    uint8_t *bytes;
    char place[64];

    (void)state;
    fresh(GOOD, 0);
    bytes = shard(&size);
    at = offset_of(bytes, 17);
    snprintf(place, sizeof place, "record 17 (offset %zu", at);
    put_shard(bytes, at + 5);
    check(train(""), 3, "x_train.tfrecord: ", place, "cut short", "copy or make it again");
    put_shard(bytes, at + 40);
    check(train(""), 3, "x_train.tfrecord: ", place, "cut short");
    bytes[at + 1] ^= 4;
    put_shard(bytes, size);
    check(train(""), 3, "x_train.tfrecord: ", place, "the length's checksum");
    bytes[at + 1] ^= 4;
    bytes[at + 30] ^= 1;
    put_shard(bytes, size);
    check(train("run.steps=6"), 3, "x_train.tfrecord: ", place, "the data's checksum",
          "data.on_corrupt");
    check(train("run.steps=6 data.on_corrupt=skip"), 0, place, "the data's checksum");
    put_shard(bytes, 0);
    check(train(""), 3, "split train has no records");
    assert_int_equal(unlink(in("data/x_train.tfrecord")), 0);
    check(train(""), 3, "no split train; the splits are: test");
    pm_free(bytes);
}

static void missing_and_empty_shards(void **state)
{
    (void)state;
    fresh(GOOD, 0);
    assert_int_equal(
        rename(in("data/x_train.tfrecord"), in("data/x_train_00000-of-00002.tfrecord")), 0);
    check(train(""), 3, "shard 1 of 2 of split train is missing");
    put_text(in("data/x_train_00001-of-00002.tfrecord"), "");
    check(train(""), 0);
    put_text(in("data/x_train_00001-of-00002.tfrecord"), "this is no TFRecord file");
    check(train(""), 3, "x_train_00001-of-00002.tfrecord", "not a TFRecord file, or damaged");
    put_text(in("data/dataset.json"), "{ \"splits\": { \"test\": 25 } }");
    check(eval(""), 3, "split test has 24 records, but dataset.json lists 25");
}

/* The index of an earlier run is not used after the shard changed. */
static void changed_after_indexing(void **state)
{
    struct timespec times[2];
    struct stat st;
    uint8_t *bytes;
    size_t size;

    (void)state;
    fresh(GOOD, 0);
    check(train(""), 0);
    make_split("x_train.tfrecord", A_SEQUENCE, 1);
    check(run(NULL, "dataset inspect %s", in("data")), 3, "a tf.SequenceExample");
    make_split("x_train.tfrecord", NOT_AN_EXAMPLE, 1u << 13);
    check(train("run.steps=9"), 3, "record 13 (offset ");
    /* Other bytes with the same size and time: the checksums find them. */
    fresh(GOOD, 0);
    check(train(""), 0);
    assert_int_equal(stat(in("data/x_train.tfrecord"), &st), 0);
    bytes = shard(&size);
    memmove(bytes, bytes + 1, size - 1);
    put_shard(bytes, size);
    times[0] = st.st_atim, times[1] = st.st_mtim;
    assert_int_equal(utimensat(AT_FDCWD, in("data/x_train.tfrecord"), times, 0), 0);
    check(train("run.steps=9"), 3, "x_train.tfrecord: record ", "(offset ", "checksum");
    pm_free(bytes);
}

static int set_up(void **state)
{
    (void)state;
    return make_world(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_fault_is_named),
        cmocka_unit_test(evaluation_counts_them_out),
        cmocka_unit_test(passing_over_repeats),
        cmocka_unit_test(nothing_left),
        cmocka_unit_test(damaged_shards),
        cmocka_unit_test(missing_and_empty_shards),
        cmocka_unit_test(changed_after_indexing),
    };

    return cmocka_run_group_tests(tests, set_up, drop_world);
}
