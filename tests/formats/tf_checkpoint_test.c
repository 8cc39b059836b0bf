/* TensorFlow checkpoints: those written by TensorFlow (tests/golden/tensorflow_checkpoint.py)
 * and foreign ones have the expected values, for every path that names them. Written checkpoints
 * equal TensorFlow's. Graphs are refused. tf_damage_test.c and tf_table_test.c cover damaged
 * files. */
#include "formats/tf_files.h"

static const struct pm_file_tensor *get(const struct pm_tensor_file *f, const char *name,
                                        enum pm_dtype type, const char *shape)
{
    const struct pm_file_tensor *t = pm_tensor_file_find(f, name);
    char buf[96];

    if (!t)
        fail_msg("%s has no %s", pm_tensor_file_path(f), name);
    assert_string_equal(pm_dtype_name(t->type), pm_dtype_name(type));
    assert_string_equal(pm_file_tensor_shape(t, buf), shape);
    return t;
}

/* Checks that all numbers, read at once and in pieces of odd sizes, are those of value(i). */
static void check(const struct pm_tensor_file *f, const char *name, enum pm_dtype type,
                  const char *shape, double (*value)(size_t i))
{
    const struct pm_file_tensor *t = get(f, name, type, shape);
    double *all = pm_malloc(t->count * sizeof *all + 1), piece[7];
    float *floats = pm_malloc(t->count * sizeof *floats + 1);

    assert_int_equal(t->bytes, t->count * pm_dtype_size(type));
    for (uint64_t i = 0; i < t->count; i += 7) {
        const size_t n = t->count - i < 7 ? (size_t)(t->count - i) : 7;
        assert_int_equal(pm_tensor_file_doubles(f, t, i, n, piece), 0);
        for (size_t k = 0; k < n; k++)
            assert_true(piece[k] == value(i + k));
    }
    assert_int_equal(pm_tensor_file_doubles(f, t, 0, t->count, all), 0);
    assert_int_equal(pm_tensor_file_floats(f, t, 0, t->count, floats), 0);
    for (uint64_t i = 0; i < t->count; i++)
        assert_true(all[i] == value(i) && floats[i] == (float)value(i));
    pm_free(all);
    pm_free(floats);
}

static double index_of(size_t i)
{
    return (double)i;
}

static double quarters(size_t i)
{
    return (double)i / 4;
}

static double half(size_t i)
{
    (void)i;
    return 0.5;
}

static double step(size_t i)
{
    (void)i;
    return 46900;
}

static double numbers(size_t i)
{
    static const double v[] = { -2, 0, 1, 3, 100 };

    return v[i];
}

static double positive(size_t i)
{
    return i == 0 ? 0 : numbers(i);
}

static double alternating(size_t i)
{
    return i != 1;
}

static double sevens(size_t i)
{
    return (double)(i % 7);
}

/* Checks the tensors that variables() of the script made. */
static void check_variables(const struct pm_tensor_file *f, bool v2)
{
    check(f, "global_step", PM_DTYPE_I64, "scalar", step);
    check(f, "net/weights", PM_DTYPE_F32, "2x3x4", quarters);
    check(f, "net/half", PM_DTYPE_F32, "scalar", half);
    check(f, "net/empty", PM_DTYPE_F32, "0x3", index_of);
    check(f, "dtype/float16", PM_DTYPE_F16, "5", numbers);
    check(f, "dtype/float32", PM_DTYPE_F32, "5", numbers);
    check(f, "dtype/float64", PM_DTYPE_F64, "5", numbers);
    check(f, "dtype/int8", PM_DTYPE_I8, "5", numbers);
    check(f, "dtype/int16", PM_DTYPE_I16, "5", numbers);
    check(f, "dtype/int32", PM_DTYPE_I32, "5", numbers);
    check(f, "dtype/int64", PM_DTYPE_I64, "5", numbers);
    check(f, "dtype/uint8", PM_DTYPE_U8, "5", positive);
    check(f, "dtype/bool", PM_DTYPE_BOOL, "3", alternating);
    if (!v2)
        return;
    check(f, "dtype/bfloat16", PM_DTYPE_BF16, "5", numbers);
    check(f, "dtype/uint16", PM_DTYPE_U16, "5", positive);
    check(f, "dtype/uint32", PM_DTYPE_U32, "5", positive);
    check(f, "dtype/uint64", PM_DTYPE_U64, "5", positive);
}

static void check_slices(const struct pm_tensor_file *f)
{
    check(f, "slices/rows", PM_DTYPE_F32, "5x4", index_of);
    check(f, "slices/columns", PM_DTYPE_I32, "4x5", index_of);
    check(f, "slices/many", PM_DTYPE_I16, "200", index_of);
}

static void v2_by_every_path(void **state)
{
    static const char *const paths[] = { "v2", "v2/", "v2/checkpoint", "v2/model.ckpt-7",
                                         "v2/model.ckpt-7.index",
                                         "v2/model.ckpt-7.data-00000-of-00001" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(paths); i++) {
        struct pm_tensor_file *f = opened(golden(paths[i]));
        assert_string_equal(pm_tensor_file_format(f), "TensorFlow V2 checkpoint");
        assert_int_equal(pm_tensor_file_count(f), 22);
        check_variables(f, true);
        check_slices(f);
        check(f, "slices/long", PM_DTYPE_I8, "9100", sevens);
        /* Lengths, their checksum, and texts. */
        uint8_t bytes[15];
        const struct pm_file_tensor *t = get(f, "strings", PM_DTYPE_OTHER, "3");
        assert_int_equal(t->bytes, sizeof bytes);
        assert_int_equal(pm_tensor_file_bytes(f, t, 0, sizeof bytes, bytes), 0);
        assert_memory_equal(bytes, "\3\0\5", 3);
        assert_memory_equal(bytes + 7, "onethree", 8);
        assert_int_equal(pm_tensor_file_doubles(f, t, 0, 1, (double[1]){ 0 }), PM_EDATA);
        pm_tensor_file_close(&f);
    }
    struct pm_tensor_file *f = opened(golden("plain"));
    assert_int_equal(pm_tensor_file_count(f), 17);
    check_variables(f, true);
    pm_tensor_file_close(&f);
    f = opened(golden("v2_shards"));
    assert_int_equal(pm_tensor_file_count(f), 20);
    check_variables(f, true);
    check_slices(f);
    pm_tensor_file_close(&f);
}

static void v1_by_every_path(void **state)
{
    static const char *const paths[] = { "v1", "v1/checkpoint", "v1/model.ckpt-7", "v1_shards",
                                         "v1_shards/model.ckpt-7",
                                         "v1_shards/model.ckpt-7-?????" "-of-00003",
                                         "v1_shards/model.ckpt-7-00001-of-00003" };

    (void)state;
    for (size_t i = 0; i < PM_COUNT(paths); i++) {
        struct pm_tensor_file *f = opened(golden(paths[i]));
        assert_string_equal(pm_tensor_file_format(f), "TensorFlow V1 checkpoint");
        assert_int_equal(pm_tensor_file_count(f), 16);
        check_variables(f, false);
        check_slices(f);
        pm_tensor_file_close(&f);
    }
}

static double five(size_t i)
{
    (void)i;
    return 5;
}

/* A single .index in a folder without the file `checkpoint`, with names of TensorFlow 2. */
static void objects(void **state)
{
    struct pm_tensor_file *f = opened(golden("object"));

    (void)state;
    assert_int_equal(pm_tensor_file_count(f), 2);
    check(f, "layer/kernel", PM_DTYPE_F32, "2x3", index_of);
    check(f, "step", PM_DTYPE_I64, "scalar", five);
    pm_tensor_file_close(&f);
}

/* ---- writing ----------------------------------------------------------------------------- */

static void same_bytes(const char *a, const char *b)
{
    char *x = NULL, *y = NULL;
    size_t n = 0, m = 0;

    assert_int_equal(pm_file_read(a, &x, &n), 0);
    assert_int_equal(pm_file_read(b, &y, &m), 0);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    pm_free(x);
    pm_free(y);
}

/* Reads a tensor of the file t->from. */
static int fill(const struct pm_file_tensor *t, void *dst)
{
    const struct pm_tensor_file *f = t->from;
    const struct pm_file_tensor *from = pm_tensor_file_find(f, t->name);

    return pm_tensor_file_bytes(f, from, 0, (size_t)from->bytes, dst);
}

static size_t entries_of(const char *path)
{
    struct pm_arena *a = pm_arena_create();
    char **names = NULL;
    size_t count = 0;

    assert_int_equal(pm_list_folder(a, path, &names, &count), 0);
    pm_arena_destroy(&a);
    return count;
}

/* TensorFlow's checkpoints, written again, have the same bytes. */
static void written_as_tensorflow_does(void **state)
{
    static const char *const files[] = { "model.ckpt-7.index", "model.ckpt-7.data-00000-of-00001",
                                         "checkpoint" };
    struct pm_tensor_file *f = opened(golden("plain"));
    struct pm_file_tensor list[32];
    const size_t count = pm_tensor_file_count(f);
    const char *to = text("%s/plain", folder);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        list[i] = *pm_tensor_file_get(f, count - 1 - i); /* the order of the list does not matter */
        list[i].fill = fill;
        list[i].from = f;
    }
    assert_int_equal(pm_make_folders(to), 0);
    assert_int_equal(pm_tf_bundle_write(text("%s/model.ckpt-7", to), list, count, true), 0);
    for (size_t i = 0; i < PM_COUNT(files); i++)
        same_bytes(text("%s/%s", to, files[i]), golden(text("plain/%s", files[i])));
    /* Written again over itself, and without the text file `checkpoint`. */
    assert_int_equal(pm_tf_bundle_write(text("%s/model.ckpt-7", to), list, count, false), 0);
    same_bytes(text("%s/%s", to, files[0]), golden(text("plain/%s", files[0])));
    assert_int_equal(entries_of(to), 3);
    pm_tensor_file_close(&f);
}

/* Enough names for several blocks of the index, with bytes that need an escape or a long key. */
static void many_names(void **state)
{
    enum { COUNT = 4000 };
    struct pm_arena *a = pm_arena_create();
    struct pm_file_tensor *list = pm_calloc(COUNT, sizeof *list);
    int32_t *values = pm_calloc(COUNT, sizeof *values);
    struct pm_tensor_file *f = NULL;
    double v;

    (void)state;
    for (int i = 0; i < COUNT; i++) {
        values[i] = i * 3;
        list[i] = (struct pm_file_tensor){ .type = PM_DTYPE_I32, .data = &values[i] };
        list[i].name = pm_arena_printf(a, "%s/%d/%0*d", i % 2 ? "\xff\xfe" : "net",
                                       i * 7919 % COUNT, 100 + i % 50, i);
    }
    assert_int_equal(pm_tf_bundle_write(text("%s/many \"ckpt\\", folder), list, COUNT, true), 0);
    f = opened(text("%s/checkpoint", folder));
    assert_int_equal(pm_tensor_file_count(f), COUNT);
    for (int i = 0; i < COUNT; i++) {
        const struct pm_file_tensor *t = pm_tensor_file_find(f, list[i].name);
        assert_non_null(t);
        assert_int_equal(pm_tensor_file_doubles(f, t, 0, 1, &v), 0);
        assert_true(v == values[i]);
    }
    pm_tensor_file_close(&f);
    pm_free(list);
    pm_free(values);
    pm_arena_destroy(&a);
}

static int no_fill(const struct pm_file_tensor *t, void *dst)
{
    (void)dst;
    return pm_fail(PM_EDATA, "%s cannot be had", t->name);
}

static void failed_write_leaves_nothing(void **state)
{
    const float x = 1;
    struct pm_file_tensor list[] = {
        { .name = "a", .type = PM_DTYPE_F32, .data = &x },
        { .name = "b", .type = PM_DTYPE_F32, .data = &x },
    };
    const char *to = text("%s/failed", folder), *prefix = text("%s/failed/m", folder);
    struct pm_tensor_file *f;

    (void)state;
    assert_int_equal(pm_make_folders(to), 0);
    assert_int_equal(pm_tf_bundle_write(prefix, list, 1, false), 0);
    list[1].data = NULL, list[1].fill = no_fill;
    assert_int_equal(pm_tf_bundle_write(prefix, list, 2, true), PM_EDATA);
    assert_string_equal(pm_error_text(), "b cannot be had");
    list[1] = list[0];
    assert_int_equal(pm_tf_bundle_write(prefix, list, 2, true), PM_EDATA);
    list[1].name = "";
    assert_int_equal(pm_tf_bundle_write(prefix, list, 2, true), PM_EDATA);
    assert_int_equal(pm_tf_bundle_write(text("%s/", to), list, 1, true), PM_ECONFIG);
    assert_int_equal(pm_tf_bundle_write(text("%s/none/m", to), list, 1, true), PM_EFAIL);
    assert_int_equal(entries_of(to), 2);
    f = opened(prefix); /* the former file is unchanged */
    assert_int_equal(pm_tensor_file_count(f), 1);
    pm_tensor_file_close(&f);
    /* The data file cannot be written, because a folder has its name. */
    assert_int_equal(pm_make_folders(text("%s/n.data-00000-of-00001", to)), 0);
    assert_int_equal(pm_tf_bundle_write(text("%s/n", to), list, 1, true), PM_EFAIL);
    assert_int_equal(entries_of(to), 3);
}

/* ---- paths ------------------------------------------------------------------------------- */

static void state_file(const char *to, const char *contents)
{
    put(text("%s/checkpoint", to), contents, strlen(contents));
}

static void places(void **state)
{
    const char *d = in("places"), *e = in("more");
    struct pm_tensor_file *f;

    (void)state;
    assert_int_equal(pm_make_folders(d), 0);
    assert_int_equal(pm_make_folders(e), 0);
    refused(d, "not a tensor file that Pumice can read");
    refused(in("nothing"), "no such file");
    put(text("%s/.hidden.index", d), "x", 1);
    refused(d, "not a tensor file that Pumice can read");
    put(text("%s/tensor.pb", e), "\x08\x02", 2);
    refused(text("%s/tensor.pb", e), "not a tensor file that Pumice can read");
    copy(golden("plain/model.ckpt-7.index"), text("%s/a\"b.index", d));
    refused(d, "data-00000-of-00001: cannot be opened"); /* one .index */
    copy(golden("plain/model.ckpt-7.data-00000-of-00001"), text("%s/a\"b.data-00000-of-00001", d));
    f = opened(d);
    pm_tensor_file_close(&f);
    copy(golden("plain/model.ckpt-7.index"), text("%s/z.index", d));
    refused(d, "more than one checkpoint (a\"b.index, z.index)");
    /* Escapes, a comment, a path from another machine, a path from another folder, a missing
     * path. */
    state_file(d, "# written by hand\nmodel_checkpoint_path: \"a\\\"b\"\n");
    f = opened(d);
    assert_int_equal(pm_tensor_file_count(f), 17);
    pm_tensor_file_close(&f);
    state_file(d, "  model_checkpoint_path : '/no/such/folder/a\\042b'");
    f = opened(d);
    pm_tensor_file_close(&f);
    state_file(e, text("model_checkpoint_path: \"%s/a\\\"b\"\n", d));
    f = opened(e);
    pm_tensor_file_close(&f);
    state_file(e, "model_checkpoint_path: \"../places/a\\\"b\"\n");
    f = opened(text("%s/checkpoint", e));
    pm_tensor_file_close(&f);
    state_file(d, "all_model_checkpoint_paths: \"a\\\"b\"\nmodel_checkpoint_path: \"gone\"\n");
    refused(d, "names ");
    refused(text("%s/checkpoint", d), "which does not exist");
    state_file(d, "something else");
    refused(d, "more than one checkpoint");
    refused(text("%s/checkpoint", d), "not a tensor file");

    /* A SavedModel without values, a shard without its index, a missing shard of a set, and two
     * sets. */
    put(text("%s/saved_model.pb", d), "x", 1);
    refused(text("%s/saved_model.pb", d), "give its folder");
    assert_int_equal(unlink(text("%s/checkpoint", d)), 0);
    assert_int_equal(unlink(text("%s/z.index", d)), 0);
    assert_int_equal(unlink(text("%s/a\"b.index", d)), 0);
    refused(d, "variables/variables.index: cannot be opened");
    refused(text("%s/a\"b.data-00000-of-00001", d), "this is a shard of a TensorFlow checkpoint");
    copy(golden("v1_shards/model.ckpt-7-00001-of-00003"), text("%s/m-00001-of-00003", d));
    refused(text("%s/m", d), "m-00000-of-00003: cannot be opened");
    copy(golden("v1_shards/model.ckpt-7-00000-of-00003"), text("%s/m-00000-of-00003", d));
    copy(golden("v1_shards/model.ckpt-7-00002-of-00003"), text("%s/m-00002-of-00003", d));
    f = opened(text("%s/m", d));
    assert_int_equal(pm_tensor_file_count(f), 16);
    pm_tensor_file_close(&f);
    copy(golden("v1_shards/model.ckpt-7-00002-of-00003"), text("%s/m-00000-of-00001", d));
    refused(text("%s/m", d), "sets of different sizes");
}

/* ---- files of other programs ------------------------------------------------------------- */

/* The path of a foreign checkpoint; NULL when it is missing. */
static const char *foreign(const char *name)
{
    const char *data = getenv("PUMICE_DATA"), *source = getenv("PUMICE_SOURCE");
    const char *root = data ? text("%s/checkpoints/tf", data)
                            : text("%s/../shared/data/checkpoints/tf", source ? source : ".");

    if (!pm_is_folder(root)) {
        print_message("%s is not there (PUMICE_DATA): foreign files not tried\n", root);
        return NULL;
    }
    return text("%s/%s", root, name);
}

static double at(const struct pm_tensor_file *f, const char *name, uint64_t i)
{
    double v = 0;

    assert_int_equal(pm_tensor_file_doubles(f, pm_tensor_file_find(f, name), i, 1, &v), 0);
    return v;
}

static double from_three(size_t i)
{
    return (double)i + 3;
}

/* Samples of values, as tf.train.load_checkpoint of TensorFlow 2.12.1 reads them. */
static void foreign_v2(void **state)
{
    struct pm_tensor_file *f;

    (void)state;
    if (!foreign(""))
        skip();
    f = opened(foreign("mnist-trt"));
    assert_int_equal(pm_tensor_file_count(f), 27);
    check(f, "global_step", PM_DTYPE_I64, "scalar", step);
    get(f, "conv2d_1/kernel", PM_DTYPE_F32, "3x3x32x64");
    assert_true((float)at(f, "conv2d_1/kernel", 6144) == -0x1.0e32140000000p-6f);
    assert_true((float)at(f, "conv2d_1/kernel", 18431) == 0x1.d3c0900000000p-5f);
    assert_true((float)at(f, "dense/kernel", 10922) == -0x1.7fd8400000000p-6f);
    assert_true((float)at(f, "dense/kernel", 32767) == 0x1.d7d4d00000000p-7f);
    assert_true((float)at(f, "dense_1/kernel", 1706) == -0x1.1776200000000p-8f);
    assert_true((float)at(f, "dense_1/kernel", 5119) == -0x1.e8d01e0000000p-5f);
    assert_true((float)at(f, "conv2d/kernel/Adam_1", 96) == 0x1.48afc60000000p-15f);
    assert_true((float)at(f, "conv2d/kernel/Adam_1", 287) == 0x1.144f7e0000000p-13f);
    assert_true((float)at(f, "beta2_power", 0) == 0x1.3bde9a0000000p-68f);
    pm_tensor_file_close(&f);

    f = opened(foreign("bundle_checkpoint"));
    assert_int_equal(pm_tensor_file_count(f), 2);
    check(f, "some_scope/embeddings", PM_DTYPE_F32, "5x16", index_of);
    check(f, "some_scope/indices", PM_DTYPE_I64, "5", from_three);
    pm_tensor_file_close(&f);

    f = opened(foreign("old_string_tensors"));
    assert_int_equal(pm_tensor_file_count(f), 4);
    get(f, "strs", PM_DTYPE_OTHER, "4");
    get(f, "floats", PM_DTYPE_F32, "2x3");
    assert_true(at(f, "floats", 5) == (double)16.18f);
    pm_tensor_file_close(&f);

    f = opened(foreign("saved_model_half_plus_two"));
    assert_int_equal(pm_tensor_file_count(f), 3);
    assert_true(at(f, "a", 0) == 0.5 && at(f, "b", 0) == 2 && at(f, "c", 0) == 3);
    pm_tensor_file_close(&f);
}

static void foreign_v1(void **state)
{
    struct pm_tensor_file *f;

    (void)state;
    if (!foreign(""))
        skip();
    f = opened(foreign("half_plus_two_v1ckpt/export"));
    assert_int_equal(pm_tensor_file_count(f), 2);
    check(f, "a", PM_DTYPE_F32, "scalar", half);
    assert_true(at(f, "b", 0) == 2);
    pm_tensor_file_close(&f);
}

static void graphs_are_refused(void **state)
{
    (void)state;
    if (!foreign(""))
        skip();
    refused(foreign("profiler/ckpt.meta"), "give the checkpoint beside it, ");
    refused(foreign("saved_model_half_plus_two/saved_model.pb"), "give its folder, ");
    refused(foreign("frozen_multi_add.pb"), "convert it to ONNX");
    refused(foreign("metrics_export_meta_graph.pb"), "convert it to ONNX");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v2_by_every_path),
        cmocka_unit_test(v1_by_every_path),
        cmocka_unit_test(objects),
        cmocka_unit_test(written_as_tensorflow_does),
        cmocka_unit_test(many_names),
        cmocka_unit_test(failed_write_leaves_nothing),
        cmocka_unit_test(places),
        cmocka_unit_test(foreign_v2),
        cmocka_unit_test(foreign_v1),
        cmocka_unit_test(graphs_are_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
