/* PyTorch files: the files of tests/golden/pytorch/ hold the bytes that PyTorch recorded, for
 * any layout of the views, and so do foreign files. Files that were cut short are refused.
 * torch_made_test.c covers invalid files. */
#include <pumice/rng.h>
#include <pumice/tensor_file.h>

#include "formats/torch_common.h"

/* ---- PyTorch's own files --------------------------------------------------------------- */

/* All files except others.pt, whose tensors cannot be stored as numbers. */
static const char *const goldens[] = {
    "checkpoint.pt",     "dataparallel.pt", "legacy_module.pt", "legacy_protocol4.pt",
    "legacy_views.pt",   "list.pt",         "module.pt",        "nested.pt",
    "objects.pt",        "protocol2.pt",    "protocol3.pt",     "protocol4.pt",
    "protocol5.pt",      "script.pt",       "tensor.pt",        "trace.pt",
    "two_nets.pt",       "types.pt",        "views.pt",         "wide.pt",
    "wrapped_module.pt", "wrapped.pt",      "unwrapped.pt",
};

static const char *golden(const char *name)
{
    static char path[1024];
    const char *source = getenv("PUMICE_SOURCE");

    snprintf(path, sizeof path, "%s/tests/golden/pytorch/%s", source ? source : ".", name);
    return path;
}

static struct pm_tensor_file *open_golden(const char *name)
{
    struct pm_tensor_file *f = NULL;

    if (pm_tensor_file_open(golden(name), &f) < 0)
        fail_msg("%s", pm_error_text());
    return f;
}

/* The tensor's bytes, read in pieces of `piece` bytes. */
static uint8_t *bytes_of(struct pm_tensor_file *f, const struct pm_file_tensor *t, size_t piece)
{
    uint8_t *bytes = pm_malloc((size_t)t->bytes + 1);

    for (uint64_t at = 0; at < t->bytes; at += piece) {
        size_t n = t->bytes - at < piece ? (size_t)(t->bytes - at) : piece;
        assert_int_equal(pm_tensor_file_bytes(f, t, at, n, bytes + at), 0);
    }
    return bytes;
}

static void same_tensor(struct pm_tensor_file *f, const struct pm_file_tensor *t,
                        struct pm_tensor_file *g, const struct pm_file_tensor *wanted)
{
    static const size_t pieces[] = { 1 << 20, 1000, 7 };
    uint8_t *b = bytes_of(g, wanted, 1 << 20);

    if (t->type != wanted->type || t->rank != wanted->rank || t->count != wanted->count ||
        t->bytes != wanted->bytes || memcmp(t->dim, wanted->dim, sizeof t->dim) != 0)
        fail_msg("%s: type or shape differs", wanted->name);
    for (size_t i = 0; i < PM_COUNT(pieces); i++) {
        uint8_t *a = bytes_of(f, t, pieces[i]);
        if (memcmp(a, b, (size_t)t->bytes) != 0)
            fail_msg("%s differs, read %zu bytes at a time", wanted->name, pieces[i]);
        pm_free(a);
    }
    pm_free(b);
}

static void goldens_are_what_pytorch_says(void **state)
{
    struct pm_tensor_file *all = open_golden("expected.safetensors");
    size_t seen = 0;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(goldens); i++) {
        struct pm_tensor_file *f = open_golden(goldens[i]);
        assert_string_equal(pm_tensor_file_format(f), "PyTorch");
        for (size_t k = 0; k < pm_tensor_file_count(f); k++) {
            char name[256];
            const struct pm_file_tensor *t = pm_tensor_file_get(f, k);
            snprintf(name, sizeof name, "%s:%s", goldens[i], t->name);
            const struct pm_file_tensor *wanted = pm_tensor_file_find(all, name);
            if (!wanted)
                fail_msg("%s is not expected", name);
            same_tensor(f, t, all, wanted);
            seen++;
        }
        pm_tensor_file_close(&f);
    }
    assert_int_equal(seen, pm_tensor_file_count(all) - 1); /* others.pt has one */
    pm_tensor_file_close(&all);
}

static void tensors_without_numbers(void **state)
{
    static const struct { const char *name, *shape; uint64_t bytes;
    } wanted[] = {
        { "complex", "2", 16 },  { "conjugate", "1", 0 }, { "float8", "3", 3 },
        { "imaginary", "1", 0 }, { "meta", "2x3", 0 },    { "quantised", "2x2", 4 },
        { "rows", "2x2", 0 },    { "sparse", "3x3", 0 },
    };
    struct pm_tensor_file *f = open_golden("others.pt"), *all = open_golden("expected.safetensors");
    char shape[96];
    float x[2], complex[4];

    (void)state;
    assert_int_equal(pm_tensor_file_count(f), PM_COUNT(wanted) + 1);
    for (size_t i = 0; i < PM_COUNT(wanted); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_find(f, wanted[i].name);
        assert_non_null(t);
        assert_int_equal(t->type, PM_DTYPE_OTHER);
        assert_int_equal(t->bytes, wanted[i].bytes);
        assert_string_equal(pm_file_tensor_shape(t, shape), wanted[i].shape);
        assert_fails(pm_tensor_file_floats(f, t, 0, 1, x), wanted[i].name,
                     "dtype is unknown to Pumice");
    }
    assert_int_equal(pm_tensor_file_bytes(f, pm_tensor_file_find(f, "complex"), 0, 16, complex), 0);
    assert_true(complex[0] == 1 && complex[1] == 2 && complex[2] == 3 && complex[3] == -1);
    same_tensor(f, pm_tensor_file_find(f, "plain"), all,
                pm_tensor_file_find(all, "others.pt:plain"));
    pm_tensor_file_close(&all);
    pm_tensor_file_close(&f);
}

static void simple_members_are_notes(void **state)
{
    static const struct { const char *file, *key, *value; } wanted[] = {
        { "checkpoint.pt", "epoch", "12" }, { "checkpoint.pt", "arch", "small" },
        { "checkpoint.pt", "lr", "0.001" }, { "checkpoint.pt", "optimizer", NULL },
        { "objects.pt", "negative", "-5" }, { "objects.pt", "big", "1099511627776" },
        { "objects.pt", "large", NULL }, { "objects.pt", "text", "two words" },
        { "objects.pt", "yes", "true" }, { "objects.pt", "none", NULL },
        { "objects.pt", "tenth", "0.1" }, { "objects.pt", "long", NULL },
        { "objects.pt", "size", NULL }, { "objects.pt", "bytes", NULL },
    };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(wanted); i++) {
        struct pm_tensor_file *f = open_golden(wanted[i].file);
        const char *value = pm_tensor_file_meta(f, wanted[i].key);
        if (wanted[i].value)
            assert_string_equal(value ? value : "(none)", wanted[i].value);
        else
            assert_null(value);
        pm_tensor_file_close(&f);
    }
}

/* ---- files of other programs ----------------------------------------------------------- */

static const char *foreign(const char *name)
{
    static char path[1024];
    const char *data = getenv("PUMICE_DATA"), *source = getenv("PUMICE_SOURCE");

    if (data)
        snprintf(path, sizeof path, "%s/checkpoints/%s", data, name);
    else
        snprintf(path, sizeof path, "%s/../shared/data/checkpoints/%s", source ? source : ".",
                 name);
    if (!pm_file_exists(path)) {
        print_message("skipped: %s is not there (set PUMICE_DATA)\n", path);
        skip();
    }
    return path;
}

static void foreign_files(void **state)
{
    static const struct {
        const char *file, *name, *shape;
        enum pm_dtype type;
        double first, last;
    } wanted[] = {
        { "bfloat16.pt", "tensor", "3", PM_DTYPE_BF16, 1.5, 3.5 },
        { "float16.pt", "tensor", "3", PM_DTYPE_F16, 1.5, 3.125 },
        { "float64.pt", "tensor", "3", PM_DTYPE_F64, 1.1, 3.3 },
        { "int32.pt", "tensor", "3", PM_DTYPE_I32, 10, -30 },
        { "int8.pt", "tensor", "4", PM_DTYPE_I8, 127, 50 },
        { "scalar.pt", "tensor", "scalar", PM_DTYPE_F32, 42, 42 },
        { "tensor_2d.pt", "tensor", "3x2", PM_DTYPE_F32, 1, 6 },
        { "tensor_4d.pt", "tensor", "2x3x2x2", PM_DTYPE_F32, 0.03491166606545448,
          -0.7508036494255066 },
        { "special_values.pt", "tensor", "5", PM_DTYPE_F32, NAN, 1 },
        { "empty.pt", "tensor", "0", PM_DTYPE_F32, 0, 0 },
        { "nested_dict.pt", "layer1.bias", "2", PM_DTYPE_F32, 0.11148621141910553,
          -0.03919669985771179 },
        { "nested_dict.pt", "layer2.weight", "4x2", PM_DTYPE_F32, 1.4111539125442505,
          -2.475163221359253 },
        { "checkpoint.pt", "model_state_dict.fc1.weight", "10x5", PM_DTYPE_F32, 1.0414010286331177,
          1.080486536026001 },
        { "checkpoint.pt", "model_state_dict.fc2.bias", "3", PM_DTYPE_F32, 1.4371334314346313,
          0.4995947778224945 },
        { "checkpoint.pt", "optimizer_state_dict.state.0.momentum_buffer", "10x5", PM_DTYPE_F32,
          0.9732940793037415, -0.7154958844184875 },
        { "legacy_with_offsets.pt", "tensor1", "10", PM_DTYPE_F32, 1, 1.090000033378601 },
        { "legacy_with_offsets.pt", "tensor3", "5", PM_DTYPE_F32, 3, 3.4000000953674316 },
        { "legacy_shared_storage.pt", "view2", "20", PM_DTYPE_F32, 0.5303624272346497,
          0.9274455308914185 },
        { "legacy_shared_storage.pt", "view3", "10", PM_DTYPE_F32, 0.153853639960289,
          -0.9001213312149048 },
    };
    char path[64], shape[96];
    double v;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(wanted); i++) {
        struct pm_tensor_file *f = NULL;
        snprintf(path, sizeof path, "pytorch/%s", wanted[i].file);
        assert_int_equal(pm_tensor_file_open(foreign(path), &f), 0);
        const struct pm_file_tensor *t = pm_tensor_file_find(f, wanted[i].name);
        assert_non_null(t);
        assert_int_equal(t->type, wanted[i].type);
        assert_string_equal(pm_file_tensor_shape(t, shape), wanted[i].shape);
        if (t->count) {
            assert_int_equal(pm_tensor_file_doubles(f, t, 0, 1, &v), 0);
            assert_true(v == wanted[i].first || (isnan(v) && isnan(wanted[i].first)));
            assert_int_equal(pm_tensor_file_doubles(f, t, t->count - 1, 1, &v), 0);
            assert_true(v == wanted[i].last);
        }
        pm_tensor_file_close(&f);
    }
}

/* The same net at two times of its training, in two formats. The sum covers the archive's
 * entries in the order of the tensors' names. */
static void foreign_net(void **state)
{
    struct pm_tensor_file *f = NULL, *g = NULL, *none = NULL;
    struct pm_sha256 sum;
    char hex[65];

    (void)state;
    assert_int_equal(pm_tensor_file_open(foreign("pytorch/mnist.pt"), &f), 0);
    assert_int_equal(pm_tensor_file_open(foreign("safetensors/mnist.safetensors"), &g), 0);
    assert_int_equal(pm_tensor_file_count(f), 20);
    assert_int_equal(pm_tensor_file_count(g), 20);
    pm_sha256_start(&sum);
    for (size_t i = 0; i < 20; i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(f, i), *u = pm_tensor_file_get(g, i);
        assert_string_equal(t->name, u->name);
        assert_int_equal(t->type, u->type);
        assert_int_equal(t->rank, u->rank);
        assert_memory_equal(t->dim, u->dim, sizeof t->dim);
        uint8_t *bytes = bytes_of(f, t, 1 << 20);
        pm_sha256_add(&sum, bytes, (size_t)t->bytes);
        pm_free(bytes);
    }
    pm_sha256_end(&sum, hex);
    assert_string_equal(hex, "cc03a9db0d6281d3bcef193611430c3ba3faa0eb975bf3969a3a8837ff583ad8");
    pm_tensor_file_close(&f);
    pm_tensor_file_close(&g);
    assert_fails(pm_tensor_file_open(foreign("pytorch/broken.pt"), &none), "broken.pt",
                 "not a PyTorch file");
}

/* ---- damage ---------------------------------------------------------------------------- */

static void read_everything(struct pm_tensor_file *f)
{
    for (size_t i = 0; i < pm_tensor_file_count(f); i++) {
        const struct pm_file_tensor *t = pm_tensor_file_get(f, i);
        double v[256];
        uint64_t n = t->count < 256 ? t->count : 256;
        if (t->type != PM_DTYPE_OTHER) {
            assert_int_equal(pm_tensor_file_doubles(f, t, 0, (size_t)n, v), 0);
            assert_int_equal(pm_tensor_file_doubles(f, t, t->count - n, (size_t)n, v), 0);
        }
    }
}

/* A file cut at any place is refused; flipped bytes are refused or read. */
static void damaged_files(void **state)
{
    struct pm_rng r = pm_rng_make(7, pm_hash("damage"), 0, 0);
    size_t size;
    char *text;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(goldens); i++) {
        assert_int_equal(pm_file_read(golden(goldens[i]), &text, &size), 0);
        for (size_t cut = 0; cut < size; cut++) {
            struct pm_tensor_file *f = NULL;
            char *part = pm_malloc(cut + 1);
            memcpy(part, text, cut);
            if (pm_torch_open_memory("cut", part, cut, &f) != PM_EDATA)
                fail_msg("%s is read when it is cut at %zu", goldens[i], cut);
            pm_free(part);
        }
        for (int trial = 0; trial < 1500; trial++) {
            struct pm_tensor_file *f = NULL;
            char *copy = pm_malloc(size);
            memcpy(copy, text, size);
            for (int64_t n = pm_rng_int(&r, 1, 3); n > 0; n--)
                copy[pm_rng_int(&r, 0, (int64_t)size - 1)] = (char)pm_rng_u32(&r);
            if (pm_torch_open_memory("flipped", copy, size, &f) == PM_OK)
                read_everything(f);
            pm_tensor_file_close(&f);
            pm_free(copy);
        }
        pm_free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(goldens_are_what_pytorch_says),
        cmocka_unit_test(tensors_without_numbers),
        cmocka_unit_test(simple_members_are_notes),
        cmocka_unit_test(foreign_files),
        cmocka_unit_test(foreign_net),
        cmocka_unit_test(damaged_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
