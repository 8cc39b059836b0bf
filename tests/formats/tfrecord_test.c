/* TFRecord framing and tf.Example: published vectors, damage at every place, files of other
 * programs. */
#include "../data/data_common.h"
#include "formats/tfrecord.h"

static void crc_vectors(void **state)
{
    static const uint8_t eight_zeros[8], twenty_four[8] = { 24 };
    uint8_t bytes[300];

    (void)state;
    assert_int_equal(pm_crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(pm_crc32c_masked("123456789", 9), 0xc78ab0e5u);
    assert_int_equal(pm_crc32c_masked(eight_zeros, 8), 0x07980329u);
    assert_int_equal(pm_crc32c_masked(twenty_four, 8), 0x224b7fa3u);
    assert_int_equal(pm_crc32c_masked("", 0), 0xa282ead8u);
    /* Every length and alignment, compared with a bit-by-bit computation from the definition. */
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37 + i / 7);
    for (size_t n = 0; n < 280; n++) {
        const uint8_t *p = bytes + n % 9;
        uint32_t c = ~0u;
        for (size_t i = 0; i < n; i++)
            for (int bit = 0; bit < 8; bit++) {
                const uint32_t in = (uint32_t)(p[i] >> bit & 1);
                c = (c ^ in) & 1 ? c >> 1 ^ 0x82F63B78u : c >> 1;
            }
        assert_int_equal(pm_crc32c(p, n), ~c);
        assert_int_equal(pm_crc32c_portable(p, n), ~c);
    }
}

/* Three records of 0, 5 and 1000 bytes. */
static void write_three(const char *path)
{
    struct pm_tfrecord_writer *w = NULL;
    char big[1000];

    memset(big, 'x', sizeof big);
    assert_int_equal(pm_tfrecord_create(path, &w), PM_OK);
    assert_int_equal(pm_tfrecord_write(w, "", 0), PM_OK);
    assert_int_equal(pm_tfrecord_write(w, "hello", 5), PM_OK);
    assert_int_equal(pm_tfrecord_write(w, big, sizeof big), PM_OK);
    assert_false(pm_file_exists(path));
    assert_int_equal(pm_tfrecord_finish(w), PM_OK);
    pm_tfrecord_destroy(&w);
    assert_null(w);
    assert_true(pm_file_exists(path));
}

static void round_trip(void **state)
{
    struct pm_dataset *d = NULL;
    uint8_t *buf = NULL;
    size_t capacity = 0, size = 0;
    char where[300];

    (void)state;
    scratch_make();
    write_three(in_scratch("a_train.tfrecord"));
    assert_int_equal(pm_dataset_open(scratch, "train", &d), PM_OK);
    assert_int_equal(pm_dataset_get_info(d)->count, 3);
    assert_int_equal(pm_dataset_read(d, 1, &buf, &capacity, &size), PM_OK);
    assert_int_equal(size, 5);
    assert_memory_equal(buf, "hello", 5);
    assert_int_equal(pm_dataset_read(d, 2, &buf, &capacity, &size), PM_OK);
    assert_int_equal(size, 1000);
    assert_int_equal(buf[999], 'x');
    assert_int_equal(pm_dataset_read(d, 0, &buf, &capacity, &size), PM_OK);
    assert_int_equal(size, 0);
    pm_dataset_where(d, 2, where, sizeof where);
    assert_non_null(strstr(where, "a_train.tfrecord record 2 (offset 37)"));
    pm_free(buf);
    pm_dataset_close(&d);
    scratch_remove();
}

/* Without pm_tfrecord_finish no file remains. */
static void abandoned(void **state)
{
    struct pm_tfrecord_writer *w = NULL;
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t count = 0;

    (void)state;
    scratch_make();
    assert_int_equal(pm_tfrecord_create(in_scratch("b.tfrecord"), &w), PM_OK);
    assert_int_equal(pm_tfrecord_write(w, "hello", 5), PM_OK);
    pm_tfrecord_destroy(&w);
    assert_int_equal(pm_list_folder(a, scratch, &names, &count), PM_OK);
    assert_int_equal(count, 0);
    assert_int_equal(pm_tfrecord_create(in_scratch("no/such/b.tfrecord"), &w), PM_EFAIL);
    assert_null(w);
    pm_arena_destroy(&a);
    scratch_remove();
}

/* One flipped bit anywhere is detected: in a header when indexing, in the data when reading. */
static void every_flip(void **state)
{
    char *good = NULL;
    size_t size = 0;

    (void)state;
    scratch_make();
    write_three(in_scratch("good"));
    assert_int_equal(pm_file_read(in_scratch("good"), &good, &size), PM_OK);
    assert_int_equal(size, 3 * 16 + 1005);
    for (size_t at = 0; at < size; at += at < 70 ? 1 : 61) {
        struct pm_dataset *d = NULL;
        uint8_t *buf = NULL;
        size_t capacity = 0, length = 0;
        int bad = 0;
        good[at] ^= 1 << at % 8;
        assert_int_equal(pm_file_write(in_scratch("bad.tfrecord"), good, size), PM_OK);
        good[at] ^= 1 << at % 8;
        const int opened = pm_dataset_open(scratch, "bad.tfrecord", &d);
        if (opened < 0) {
            assert_int_equal(opened, PM_EDATA);
            assert_non_null(strstr(pm_error_text(), "bad.tfrecord"));
            assert_non_null(strstr(pm_error_text(), "offset"));
            bad = 1;
        }
        for (size_t i = 0; d && i < 3; i++) {
            const int err = pm_dataset_read(d, i, &buf, &capacity, &length);
            assert_true(err == PM_OK || err == PM_ECORRUPT);
            bad += err < 0;
        }
        assert_int_equal(bad, 1);
        pm_free(buf);
        pm_dataset_close(&d);
    }
    pm_free(good);
    scratch_remove();
}

static void cut_and_compressed(void **state)
{
    static const char gzip[] = "\x1f\x8b\x08\0\0\0\0\0\0\3 some more bytes than twelve";
    struct pm_dataset *d = NULL;
    char *good = NULL;
    size_t size = 0;

    (void)state;
    scratch_make();
    write_three(in_scratch("good"));
    assert_int_equal(pm_file_read(in_scratch("good"), &good, &size), PM_OK);
    assert_int_equal(pm_file_write(in_scratch("c.tfrecord"), good, size - 1), PM_OK);
    assert_fails(pm_dataset_open(scratch, "c", &d), PM_EDATA, "c.tfrecord: record 2 (offset 37)",
                 "of 1000 bytes", "cut short");
    assert_int_equal(pm_file_write(in_scratch("c.tfrecord"), good, 40), PM_OK);
    assert_fails(pm_dataset_open(scratch, "c", &d), PM_EDATA, "record 2 (offset 37)", "cut short");
    assert_int_equal(pm_file_write(in_scratch("c.tfrecord"), gzip, sizeof gzip), PM_OK);
    assert_fails(pm_dataset_open(scratch, "c", &d), PM_EDATA, "gzip", "decompress");
    assert_int_equal(pm_file_write(in_scratch("c.tfrecord"), "", 0), PM_OK);
    assert_fails(pm_dataset_open(scratch, "c", &d), PM_EDATA, "no records");
    assert_null(d);
    pm_free(good);
    scratch_remove();
}

static void example_round_trip(void **state)
{
    struct pm_example_builder *b = pm_example_builder_create();
    struct pm_example *e = NULL;
    const int64_t ints[3] = { 1, -1, INT64_MIN }, *iv = NULL;
    const float floats[2] = { 0.5f, -3e38f }, *fv = NULL;
    const uint8_t *data = NULL;
    uint8_t *text = NULL;
    int64_t one = 0;
    size_t size = 0, n = 0;

    (void)state;
    pm_example_add_bytes(b, "image/encoded", "a\0b", 3);
    pm_example_add_ints(b, "ints", ints, 3);
    pm_example_add_floats(b, "floats", floats, 2);
    pm_example_add_bytes(b, "texts", "first", 5);
    pm_example_add_bytes(b, "texts", "", 0);
    pm_example_add_ints(b, "none", NULL, 0);
    pm_example_serialise(b, &text, &size);
    pm_example_builder_destroy(&b);
    assert_int_equal(pm_example_parse(text, size, "here", &e), PM_OK);
    assert_int_equal(pm_example_count(e), 5);
    assert_int_equal(pm_example_bytes(e, "image/encoded", &data, &n), 1);
    assert_int_equal(n, 3);
    assert_memory_equal(data, "a\0b", 3);
    assert_int_equal(pm_example_ints(e, "ints", &iv, &n), 1);
    assert_int_equal(n, 3);
    assert_memory_equal(iv, ints, sizeof ints);
    assert_int_equal(pm_example_int(e, "ints", &one), 1);
    assert_int_equal(one, 1);
    assert_int_equal(pm_example_floats(e, "floats", &fv, &n), 1);
    assert_int_equal(n, 2);
    assert_memory_equal(fv, floats, sizeof floats);
    assert_int_equal(pm_example_bytes_at(e, "texts", 1, &data, &n), 1);
    assert_int_equal(n, 0);
    assert_int_equal(pm_example_bytes_at(e, "texts", 2, &data, &n), 0);
    assert_int_equal(pm_example_int(e, "none", &one), 0);
    assert_int_equal(pm_example_int(e, "absent", &one), 0);
    assert_fails(pm_example_floats(e, "ints", &fv, &n), PM_EDATA, "here", "ints", "integers",
                 "floats");
    pm_example_destroy(&e);
    /* Every prefix is an example or an error; none crashes. */
    for (size_t k = 0; k < size; k++) {
        uint8_t *part = pm_malloc(k);
        memcpy(part, text, k);
        const int err = pm_example_parse(part, k, "cut", &e);
        assert_true(err == PM_OK || err == PM_EDATA);
        pm_example_destroy(&e);
        pm_free(part);
    }
    /* Changed bytes give an example or an error; all values of an example can be read. */
    struct pm_rng r = pm_rng_make(1, pm_hash("mutate"), 0, 0);
    for (int k = 0; k < 20000; k++) {
        uint8_t *part = pm_malloc(size);
        memcpy(part, text, size);
        for (int changes = 0; changes <= k % 3; changes++)
            part[pm_rng_int(&r, 0, (int64_t)size - 1)] = (uint8_t)pm_rng_u32(&r);
        if (pm_example_parse(part, size, "changed", &e) == PM_OK) {
            for (size_t i = 0; i < pm_example_count(e); i++) {
                const char *kind = NULL, *key = pm_example_key(e, i, &kind, &n);
                if (pm_example_ints(e, key, &iv, &n) == 1)
                    for (size_t j = 0; j < n; j++)
                        one ^= iv[j];
                if (pm_example_bytes(e, key, &data, &n) == 1 && n)
                    one ^= data[n - 1];
            }
            pm_example_destroy(&e);
        }
        pm_free(part);
    }
    pm_free(text);
}

/* Built by hand: unpacked integers and floats, a repeated key, an entry without a value. */
static void example_by_hand(void **state)
{
    static const uint8_t bytes[] = {
        0x0a, 49, /* features, 49 bytes */
        0x0a, 11,   0x0a, 1,    'i',  0x12, 6,  0x1a, 4,  0x08, 7,    0x08, 9, /* i: unpacked 7, 9
                                                                                */
        0x0a, 17,   0x0a, 1,    'f',  0x12, 12, 0x12, 10, /* f: unpacked 1.0, 2.0 */
        0x0d, 0,    0,    0x80, 0x3f, 0x0d, 0,  0,    0,  0x40, 0x0a, 10,   0x0a, 1,
        'i',  0x12, 5,    0x1a, 3,    0x0a, 1,  42, /* i again: packed 42 */
        0x0a, 3,    0x0a, 1,    'v',                /* v: nothing */
    };
    struct pm_example *e = NULL;
    const float *f = NULL;
    const uint8_t *data = NULL;
    int64_t v = 0;
    size_t n = 0;

    (void)state;
    assert_int_equal(pm_example_parse(bytes, sizeof bytes, "hand", &e), PM_OK);
    assert_int_equal(pm_example_int(e, "i", &v), 1);
    assert_int_equal(v, 42);
    assert_int_equal(pm_example_floats(e, "f", &f, &n), 1);
    assert_int_equal(n, 2);
    assert_true(f[0] == 1 && f[1] == 2);
    assert_int_equal(pm_example_bytes(e, "v", &data, &n), 0);
    pm_example_destroy(&e);
    assert_fails(pm_example_parse("\x0a\xff", 2, "file record 3", &e), PM_EDATA, "file record 3");
}

/* Files of other programs: all records are read, and the keys that readers need exist. */
static void foreign_files(void **state)
{
    static const struct {
        const char *file, *key;
        size_t count;
    } files[] = {
        { "deeplab-pascal_voc_seg-val-00000-of-00001.tfrecord", "image/segmentation/class/encoded",
          3 },
        { "pets_examples.record", "image/encoded", 10 },
        { "imagenet-bbox-sample.tfrecord", "image/encoded", 3 },
        { "datumaro-tfod-train.tfrecord", "image/encoded", 1 },
        { "datumaro-tfod-val.tfrecord", "image/encoded", 1 },
    };
    const char *folder = shared_data("tfrecord");
    uint8_t *buf = NULL;
    size_t capacity = 0;

    (void)state;
    for (size_t k = 0; k < PM_COUNT(files); k++) {
        struct pm_dataset *d = NULL;
        assert_int_equal(pm_dataset_open(folder, files[k].file, &d), PM_OK);
        assert_true(pm_dataset_get_info(d)->count >= files[k].count);
        for (size_t i = 0; i < pm_dataset_get_info(d)->count; i++) {
            struct pm_example *e = NULL;
            struct pm_image8 im;
            const uint8_t *data = NULL;
            int64_t height = 0, width = 0;
            size_t size = 0, n = 0;
            assert_int_equal(pm_dataset_read(d, i, &buf, &capacity, &size), PM_OK);
            assert_int_equal(pm_example_parse(buf, size, "record", &e), PM_OK);
            assert_int_equal(pm_example_bytes(e, files[k].key, &data, &n), 1);
            assert_int_equal(pm_image_decode(data, n, 1, 0, "mask", &im), PM_OK);
            if (pm_example_int(e, "image/height", &height) == 1 &&
                pm_example_int(e, "image/width", &width) == 1) {
                assert_int_equal(im.height, height);
                assert_int_equal(im.width, width);
            }
            pm_image_free(&im);
            pm_example_destroy(&e);
        }
        pm_dataset_close(&d);
    }
    pm_free(buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc_vectors),        cmocka_unit_test(round_trip),
        cmocka_unit_test(abandoned),          cmocka_unit_test(every_flip),
        cmocka_unit_test(cut_and_compressed), cmocka_unit_test(example_round_trip),
        cmocka_unit_test(example_by_hand),    cmocka_unit_test(foreign_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
