/* safetensors: written files read back bit for bit, equal contents give equal bytes, malformed
 * headers are refused with the tensor's name, and files of other programs are read. */
#include <math.h>
#include <pumice/tensor_file.h>
#include <pumice/rng.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char folder[] = "/tmp/pumice-safetensors-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int setup(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    return pm_remove_tree(folder);
}

/* Builds a file from header text and data. */
static size_t compose(const char *header, const void *data, size_t size, uint8_t *out)
{
    size_t length = strlen(header);

    for (int i = 0; i < 8; i++)
        out[i] = (uint8_t)((uint64_t)length >> 8 * i);
    memcpy(out + 8, header, length);
    memcpy(out + 8 + length, data, size);
    return 8 + length + size;
}

static void round_trip(void **state)
{
    float w[2 * 3 * 4], scalar = -0.0f;
    uint8_t bytes[5] = { 1, 2, 3, 250, 255 };
    int64_t big = INT64_C(0x123456789abcdef), back;
    char sha[65], hex[65], *text;
    size_t size;
    struct pm_sha256 sum;
    struct pm_tensor_file *s = NULL;
    struct pm_file_tensor list[] = {
        { .name = "net/w", .type = PM_DTYPE_F32, .rank = 3, .dim = { 2, 3, 4 }, .data = w },
        { .name = "quote\"back\\slash\nline",
          .type = PM_DTYPE_U8,
          .rank = 1,
          .dim = { 5 },
          .data = bytes },
        { .name = "a", .type = PM_DTYPE_F32, .data = &scalar },
        { .name = "step", .type = PM_DTYPE_I64, .data = &big },
        { .name = "empty", .type = PM_DTYPE_F32, .rank = 2, .dim = { 0, 7 }, .data = w },
    };
    const char *meta[] = { "format", "pumice", "key \"2\"", "value\t", NULL };
    const char *key, *value;
    float got[24], minus;

    (void)state;
    for (int i = 0; i < 24; i++)
        w[i] = (float)i * 0.37f - 4;
    w[5] = NAN, w[6] = INFINITY;
    assert_int_equal(pm_safetensors_write(in_folder("a.safetensors"), list, 5, meta, sha), 0);
    assert_int_equal(pm_file_read(in_folder("a.safetensors"), &text, &size), 0);
    pm_sha256_start(&sum);
    pm_sha256_add(&sum, text, size);
    pm_sha256_end(&sum, hex);
    assert_string_equal(sha, hex);
    pm_free(text);

    assert_int_equal(pm_safetensors_open(in_folder("a.safetensors"), &s), 0);
    assert_int_equal(pm_tensor_file_count(s), 5);
    assert_int_equal(pm_tensor_file_size(s), size);
    for (size_t i = 1; i < 5; i++)
        assert_true(strcmp(pm_tensor_file_get(s, i - 1)->name, pm_tensor_file_get(s, i)->name) < 0);
    const struct pm_file_tensor *t = pm_tensor_file_find(s, "net/w");
    assert_non_null(t);
    assert_int_equal(t->rank, 3);
    assert_int_equal(t->dim[2], 4);
    assert_int_equal(t->offset % 4, 0);
    assert_int_equal(pm_tensor_file_floats(s, t, 0, 24, got), 0);
    assert_memory_equal(got, w, sizeof w);
    assert_int_equal(pm_tensor_file_floats(s, t, 20, 4, got), 0);
    assert_memory_equal(got, w + 20, 16);
    assert_true(pm_tensor_file_floats(s, t, 20, 5, got) < 0);
    t = pm_tensor_file_find(s, "a");
    assert_int_equal(pm_tensor_file_floats(s, t, 0, 1, &minus), 0);
    assert_true(signbit(minus));
    t = pm_tensor_file_find(s, "step");
    assert_int_equal(t->offset % 8, 0);
    assert_int_equal(pm_tensor_file_bytes(s, t, 0, 8, &back), 0);
    assert_true(back == big);
    assert_non_null(pm_tensor_file_find(s, list[1].name));
    assert_null(pm_tensor_file_find(s, "net/W"));
    assert_string_equal(pm_tensor_file_meta(s, "key \"2\""), "value\t");
    assert_true(pm_tensor_file_meta_at(s, 0, &key, &value));
    assert_string_equal(key, "format");
    assert_false(pm_tensor_file_meta_at(s, 2, &key, &value));
    pm_tensor_file_close(&s);
    assert_null(s);
}

static void order_does_not_matter(void **state)
{
    float v[3] = { 1, 2, 3 };
    char first[65], second[65];
    struct pm_file_tensor t[] = {
        { .name = "b", .type = PM_DTYPE_F32, .data = &v[1] },
        { .name = "c", .type = PM_DTYPE_F32, .data = &v[2] },
        { .name = "a", .type = PM_DTYPE_F32, .data = &v[0] },
    };

    (void)state;
    assert_int_equal(pm_safetensors_write(in_folder("x.safetensors"), t, 3, NULL, first), 0);
    struct pm_file_tensor swapped[] = { t[2], t[1], t[0] };
    assert_int_equal(pm_safetensors_write(in_folder("y.safetensors"), swapped, 3, NULL, second), 0);
    assert_string_equal(first, second);
}

struct filling {
    int calls, fails_at;
};

static int fill(const struct pm_file_tensor *t, void *dst)
{
    struct filling *f = *(struct filling *const *)t->from;
    float *v = dst;

    if (f->calls++ == f->fails_at)
        return pm_fail(PM_EDATA, "no elements for %s", t->name);
    for (int64_t i = 0; i < t->dim[0]; i++)
        v[i] = (float)(i + (t->name[0] - 'a') * 100);
    return PM_OK;
}

/* Elements that a callback supplies during writing give the same file, and each is asked for
 * once. When the callback fails, no file is written. */
static void filled_while_writing(void **state)
{
    enum { N = 700 };
    static float a[N], b[N];
    struct filling f = { .fails_at = -1 }, *at = &f;
    struct pm_file_tensor t[] = {
        { .name = "b", .type = PM_DTYPE_F32, .rank = 1, .dim = { N }, .fill = fill, .from = &at },
        { .name = "a",
          .type = PM_DTYPE_F32,
          .rank = 1,
          .dim = { N / 2 },
          .fill = fill,
          .from = &at },
        { .name = "none", .type = PM_DTYPE_F32, .rank = 1, .dim = { 0 } },
    };
    char sha[2][65];

    (void)state;
    for (int i = 0; i < N; i++)
        a[i] = (float)i, b[i] = (float)(i + 100);
    assert_int_equal(pm_safetensors_write(in_folder("f.safetensors"), t, 3, NULL, sha[0]), 0);
    assert_int_equal(f.calls, 2);
    t[0].data = b, t[1].data = a;
    assert_int_equal(pm_safetensors_write(in_folder("g.safetensors"), t, 3, NULL, sha[1]), 0);
    assert_int_equal(f.calls, 2);
    assert_string_equal(sha[0], sha[1]);
    t[0].data = t[1].data = NULL;
    f = (struct filling){ .fails_at = 1 };
    assert_int_equal(pm_safetensors_write(in_folder("h.safetensors"), t, 3, NULL, NULL), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "no elements for b"));
    assert_false(pm_file_exists(in_folder("h.safetensors")));
}

/* Bit patterns whose values follow from the definitions of the formats. */
static void element_types(void **state)
{
    static const uint16_t half[] = {
        0x3c00, 0xc000, 0x7bff, 0x0001, 0x03ff, 0x0400, 0x8000, 0x7c00
    };
    static const double half_is[] = { 1, -2, 65504, 0x1p-24, 0x3ffp-24, 0x1p-14, -0.0, INFINITY };
    static const uint16_t brain[] = { 0x3f80, 0xc040, 0x0001 };
    static const double brain_is[] = { 1, -3, 0x1p-133 };
    static const int64_t wide[] = { -5, INT64_C(1) << 60 };
    static const uint8_t odd[] = { 0, 200 };
    struct pm_file_tensor list[] = {
        { .name = "half", .type = PM_DTYPE_F16, .rank = 1, .dim = { 8 }, .data = half },
        { .name = "brain", .type = PM_DTYPE_BF16, .rank = 1, .dim = { 3 }, .data = brain },
        { .name = "wide", .type = PM_DTYPE_I64, .rank = 1, .dim = { 2 }, .data = wide },
        { .name = "odd", .type = PM_DTYPE_U8, .rank = 1, .dim = { 2 }, .data = odd },
        { .name = "signed", .type = PM_DTYPE_I8, .rank = 1, .dim = { 2 }, .data = odd },
        { .name = "flag", .type = PM_DTYPE_BOOL, .rank = 1, .dim = { 1 }, .data = "\1" },
    };
    double got[8];
    float single[8];
    struct pm_tensor_file *s = NULL;

    (void)state;
    assert_int_equal(pm_safetensors_write(in_folder("t.safetensors"), list, 6, NULL, NULL), 0);
    assert_int_equal(pm_safetensors_open(in_folder("t.safetensors"), &s), 0);
    pm_tensor_file_doubles(s, pm_tensor_file_find(s, "half"), 0, 8, got);
    for (int i = 0; i < 8; i++)
        assert_true(got[i] == half_is[i] && !signbit(got[i]) == !signbit(half_is[i]));
    pm_tensor_file_floats(s, pm_tensor_file_find(s, "half"), 0, 8, single);
    assert_true(single[2] == 65504);
    pm_tensor_file_doubles(s, pm_tensor_file_find(s, "brain"), 0, 3, got);
    for (int i = 0; i < 3; i++)
        assert_true(got[i] == brain_is[i]);
    pm_tensor_file_doubles(s, pm_tensor_file_find(s, "wide"), 0, 2, got);
    assert_true(got[0] == -5 && got[1] == 0x1p60);
    pm_tensor_file_doubles(s, pm_tensor_file_find(s, "odd"), 0, 2, got);
    assert_true(got[1] == 200);
    pm_tensor_file_doubles(s, pm_tensor_file_find(s, "signed"), 0, 2, got);
    assert_true(got[1] == -56);
    pm_tensor_file_doubles(s, pm_tensor_file_find(s, "flag"), 0, 1, got);
    assert_true(got[0] == 1);
    pm_tensor_file_close(&s);
}

/* Header, bytes of data, and words that the message must contain; NULL for a valid file. */
static const struct {
    const char *header;
    size_t data;
    const char *says;
} headers[] = {
    { "{}", 0, NULL },
    { "{}   ", 0, NULL },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, NULL },
    { "{\"a\":{\"dtype\":\"F8_E4M3\",\"shape\":[3],\"data_offsets\":[0,3]}}", 3, NULL },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[8,9]}}",
      9, NULL },
    { "", 0, "not JSON" },
    { "{", 0, "not JSON" },
    { "[]", 0, "not a JSON object" },
    { "{} x", 0, "follows" },
    { "{\"a\":3}", 0, "'a'" },
    { "{\"a\":{}}", 0, "no \"dtype\"" },
    { "{\"a\":{\"dtype\":\"F32\"}}", 0, "\"shape\"" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2]}}", 8, "\"data_offsets\"" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8],\"x\":1}}", 8,
      "unknown key 'x'" },
    { "{\"a\":{\"dtype\":\"F32\",\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8,
      "second" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "not a size" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1.5],\"data_offsets\":[0,8]}}", 8, "not a size" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,2],\"data_offsets\":[0,8]}}", 8,
      "8 dimensions" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,4],\"data_offsets\":[0,0]}}", 0,
      "larger" },
    { "{\"a\":{\"dtype\":\"F64\",\"shape\":[4611686018427387904],\"data_offsets\":[0,0]}}", 0,
      "not a size" },
    { "{\"a\":{\"dtype\":\"F64\",\"shape\":[4503599627370496,2048],\"data_offsets\":[0,0]}}", 0,
      "fit" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4,
      "does not fit its 4 bytes" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "[8, 0]" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 7, "[0, 8]" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9, "end at offset" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, "hole" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
      12, "'b' begins" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
      "\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}",
      8, "twice" },
    { "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,99999999999999999999]}}", 4,
      "offsets" },
    { "{\"__metadata__\":{\"a\":1}}", 0, "__metadata__.a" },
    { "{\"__metadata__\":7}", 0, "__metadata__" },
    { "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "one object" },
};

static void malformed_headers(void **state)
{
    uint8_t file[1024], data[16] = { 0 };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(headers); i++) {
        struct pm_tensor_file *s = NULL;
        size_t size = compose(headers[i].header, data, headers[i].data, file);
        uint8_t *exact = pm_malloc(size); /* exact size, so that the sanitizer detects a read
                                           * beyond the end */
        memcpy(exact, file, size);
        int err = pm_safetensors_open_memory("file.st", exact, size, &s);
        if (!headers[i].says) {
            assert_int_equal(err, 0);
        } else {
            assert_int_equal(err, PM_EDATA);
            assert_null(s);
            if (!strstr(pm_error_text(), headers[i].says) || !strstr(pm_error_text(), "file.st"))
                fail_msg("%s: '%s' lacks '%s'", headers[i].header, pm_error_text(),
                         headers[i].says);
        }
        pm_tensor_file_close(&s);
        pm_free(exact);
    }
}

/* Cut at any length, a file is refused. With changed bytes it is refused or read within its
 * bounds. */
static void damaged_files(void **state)
{
    float v[12] = { 0 }, got[64];
    struct pm_file_tensor list[] = {
        { .name = "one", .type = PM_DTYPE_F32, .rank = 2, .dim = { 2, 4 }, .data = v },
        { .name = "two", .type = PM_DTYPE_F32, .rank = 1, .dim = { 4 }, .data = v },
    };
    const char *meta[] = { "k", "v", NULL };
    char *text;
    size_t size;
    struct pm_rng r = pm_rng_make(7, pm_hash("damage"), 0, 0);

    (void)state;
    assert_int_equal(pm_safetensors_write(in_folder("d.safetensors"), list, 2, meta, NULL), 0);
    assert_int_equal(pm_file_read(in_folder("d.safetensors"), &text, &size), 0);
    for (size_t cut = 0; cut < size; cut++) {
        struct pm_tensor_file *s = NULL;
        uint8_t *part = pm_malloc(cut + 1);
        memcpy(part, text, cut);
        assert_int_equal(pm_safetensors_open_memory("cut", part, cut, &s), PM_EDATA);
        pm_free(part);
    }
    for (int trial = 0; trial < 20000; trial++) {
        struct pm_tensor_file *s = NULL;
        uint8_t *copy = pm_malloc(size);
        memcpy(copy, text, size);
        for (int64_t n = pm_rng_int(&r, 1, 3); n > 0; n--)
            copy[pm_rng_int(&r, 0, (int64_t)size - 49)] = (uint8_t)pm_rng_u32(&r);
        if (pm_safetensors_open_memory("flipped", copy, size, &s) == PM_OK)
            for (size_t i = 0; i < pm_tensor_file_count(s); i++) {
                const struct pm_file_tensor *t = pm_tensor_file_get(s, i);
                if (t->count <= 64)
                    pm_tensor_file_floats(s, t, 0, (size_t)t->count, got);
            }
        pm_tensor_file_close(&s);
        pm_free(copy);
    }
    pm_free(text);
}

static void failed_write_keeps_the_former(void **state)
{
    float v = 1;
    struct pm_file_tensor t = { .name = "v", .type = PM_DTYPE_F32, .data = &v };

    (void)state;
    assert_int_equal(pm_safetensors_write(in_folder("no/such/folder"), &t, 1, NULL, NULL),
                     PM_EFAIL);
    assert_non_null(strstr(pm_error_text(), "no/such/folder"));
    assert_int_equal(pm_safetensors_write(folder, &t, 1, NULL, NULL), PM_EFAIL);
}

static void foreign_file(void **state)
{
    const char *data = getenv("PUMICE_DATA");
    const char *source = getenv("PUMICE_SOURCE");
    char path[1024];
    struct pm_tensor_file *s = NULL;
    float bias[10], sum = 0;

    (void)state;
    snprintf(path, sizeof path, "%s%s/checkpoints/safetensors/mnist.safetensors",
             data ? data : source ? source : ".", data ? "" : "/../shared/data");
    if (!pm_file_exists(path)) {
        print_message("%s is not there (PUMICE_DATA): foreign files not tried\n", path);
        skip();
    }
    assert_int_equal(pm_safetensors_open(path, &s), 0);
    const struct pm_file_tensor *t = pm_tensor_file_find(s, "fc2.bias");
    assert_non_null(t);
    assert_int_equal(t->count, 10);
    assert_int_equal(pm_tensor_file_floats(s, t, 0, 10, bias), 0);
    for (int i = 0; i < 10; i++) {
        assert_true(isfinite(bias[i]));
        sum += fabsf(bias[i]);
    }
    assert_true(sum > 0 && sum < 100);
    t = pm_tensor_file_find(s, "conv1.weight");
    assert_non_null(t);
    assert_int_equal(t->rank, 4);
    assert_int_equal(t->dim[0], 8);
    pm_tensor_file_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(order_does_not_matter),
        cmocka_unit_test(filled_while_writing),
        cmocka_unit_test(element_types),
        cmocka_unit_test(malformed_headers),
        cmocka_unit_test(damaged_files),
        cmocka_unit_test(failed_write_keeps_the_former),
        cmocka_unit_test(foreign_file),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
