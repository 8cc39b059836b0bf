/* Reading damaged ONNX models: cut at every byte, with changed bytes, with lengths of 10 GB in
 * files of a few bytes, or cut while being read. Also the memory that reading and writing need. */
#include <formats/onnx_bytes.h>
#include <pumice/rng.h>

#include "base/small_process.h"

static char *folder;

static int setup(void **state)
{
    (void)state;
    folder = make_folder();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    drop_folder(folder);
    return 0;
}

/* A small model with every kind of message, and META metadata pairs at its end. */
enum { META = 2 };
static struct pm_str make_bytes(void)
{
    static const float v[6] = { 1, 2, 3, 4, 5, 6 };
    struct pm_str g = { 0 }, n = { 0 }, a = { 0 }, t = { 0 };
    struct pm_str in = { 0 }, type = { 0 }, shape = { 0 }, dim = { 0 };

    put_text(&a, 1, "pads");
    put_int(&a, 8, 1), put_int(&a, 8, 300);
    put_int(&a, 20, 7);
    put_text(&n, 1, "x"), put_text(&n, 1, "w"), put_text(&n, 2, "y");
    put_text(&n, 3, "node"), put_text(&n, 4, "Conv");
    put_inner(&n, 5, &a);
    put_text(&a, 1, "value");
    t = tensor_of("", 1, 1, (const int64_t[]){ 2 });
    put_bytes(&t, 9, v, 8);
    put_inner(&a, 5, &t);
    put_int(&a, 20, 4);
    put_inner(&n, 5, &a);
    put_inner(&g, 1, &n);
    put_text(&g, 2, "graph");
    t = tensor_of("w", 1, 2, (const int64_t[]){ 2, 3 });
    put_bytes(&t, 9, v, sizeof v);
    put_inner(&g, 5, &t);
    t = tensor_of("list", 1, 1, (const int64_t[]){ 6 });
    put_bytes(&t, 4, v, sizeof v);
    put_inner(&g, 5, &t);
    t = tensor_of("ints", 7, 1, (const int64_t[]){ 2 });
    put_int(&t, 7, 300), put_int(&t, 7, UINT64_MAX);
    put_inner(&g, 5, &t);
    put_text(&dim, 2, "N");
    put_inner(&shape, 1, &dim);
    put_int(&dim, 1, 3);
    put_inner(&shape, 1, &dim);
    put_int(&type, 1, 1);
    put_inner(&type, 2, &shape);
    put_text(&in, 1, "x");
    put_inner(&shape, 1, &type);
    put_inner(&in, 2, &shape);
    put_inner(&g, 11, &in);
    struct pm_str m = model_of(8, &g, 17);
    for (int i = 0; i < META; i++)
        put_pair(&m, 14, i ? "b" : "a", "value");
    return m;
}

static void read_all(const struct pm_onnx_model *m)
{
    float v[64];
    int64_t n[64];

    for (size_t i = 0; i < m->tensor_count; i++)
        if (m->tensors[i].count <= 64 && m->tensors[i].type != PM_DTYPE_OTHER) {
            assert_int_equal(pm_onnx_floats(&m->tensors[i], 0, (size_t)m->tensors[i].count, v), 0);
            assert_int_equal(pm_onnx_ints(&m->tensors[i], 0, (size_t)m->tensors[i].count, n), 0);
        }
}

/* Reading from memory and from a file give the same result. A cut is accepted only when it
 * removes whole metadata pairs from the end. */
static void cut_at_every_byte(void **state)
{
    struct pm_str bytes = make_bytes();
    struct pm_arena *a = pm_arena_create();
    const char *path = pm_arena_printf(a, "%s/cut.onnx", folder);
    int read = 0;

    (void)state;
    for (size_t cut = 0; cut <= bytes.length; cut++) {
        const struct pm_str part = { .text = bytes.text, .length = cut };
        struct pm_onnx_model *m, *same = NULL;
        uint8_t *copy;
        const int err = read_bytes(&part, &m, &copy);
        assert_int_equal(pm_file_write(path, bytes.text, cut), 0);
        assert_int_equal(pm_onnx_read(path, &same), err);
        if (err == PM_OK) {
            assert_int_equal(m->meta_count, read++);
            read_all(m);
            read_all(same);
        } else {
            assert_int_equal(err, PM_EDATA);
            assert_contains(pm_error_text(), path);
        }
        pm_onnx_close(&same);
        close_bytes(&m, copy);
    }
    assert_int_equal(read, META + 1);
    pm_arena_destroy(&a);
    pm_str_free(&bytes);
}

static void changed_bytes(void **state)
{
    struct pm_str bytes = make_bytes();
    struct pm_rng r = pm_rng_make(7, pm_hash("damage"), 0, 0);
    int good = 0;

    (void)state;
    for (int trial = 0; trial < 20000; trial++) {
        struct pm_str part = { 0 };
        struct pm_onnx_model *m;
        uint8_t *copy;
        pm_str_bytes(&part, bytes.text, bytes.length);
        for (int64_t n = pm_rng_int(&r, 1, 3); n > 0; n--)
            part.text[pm_rng_int(&r, 0, (int64_t)part.length - 1)] = (char)pm_rng_u32(&r);
        const int err = read_bytes(&part, &m, &copy);
        assert_true(err == PM_OK || err == PM_EDATA);
        if (err == PM_OK)
            read_all(m), good++;
        close_bytes(&m, copy);
        pm_str_free(&part);
    }
    assert_true(good > 100 && good < 19000);
    pm_str_free(&bytes);
}

/* ---- memory ---------------------------------------------------------------------------- */

/* Sets the length of field `number` inside these nested fields to 10 GB. */
static struct pm_str with_length(const unsigned *path, int depth)
{
    struct pm_str inner = { 0 };

    put_number(&inner, path[depth - 1] << 3 | 2);
    put_number(&inner, UINT64_C(10) << 30);
    pm_str_add(&inner, "%0*d", 900, 0);
    for (int i = depth - 2; i >= 0; i--) {
        struct pm_str outer = { 0 };
        put_inner(&outer, path[i], &inner);
        inner = outer;
    }
    return inner;
}

static bool is_refused(const char *path)
{
    struct pm_onnx_model *m = NULL;
    const uint64_t before = pm_live_count();
    const size_t peak = peak_kib();
    const int err = pm_onnx_read(path, &m);

    return err == PM_EDATA && !m && pm_live_count() == before && peak_kib() - peak < 4096;
}

static void claims_of_10_gb(void **state)
{
    static const unsigned claims[][5] = {
        { 7 }, { 2 }, { 8 }, { 8, 1 }, { 14 }, { 14, 1 }, { 25 }, { 25, 1 }, { 7, 1 }, { 7, 2 },
        { 7, 5 }, { 7, 11 }, { 7, 12 }, { 7, 13 }, { 7, 1, 1 }, { 7, 1, 4 }, { 7, 1, 5 },
        { 7, 1, 5, 1 }, { 7, 1, 5, 4 }, { 7, 1, 5, 5 }, { 7, 1, 5, 6 }, { 7, 1, 5, 7 },
        { 7, 1, 5, 8 }, { 7, 1, 5, 9 }, { 7, 1, 5, 5, 9 }, { 7, 5, 1 }, { 7, 5, 4 }, { 7, 5, 5 },
        { 7, 5, 6 }, { 7, 5, 7 }, { 7, 5, 8 }, { 7, 5, 9 }, { 7, 5, 10 }, { 7, 5, 13 },
        { 7, 5, 13, 1 }, { 7, 11, 1 }, { 7, 11, 2 }, { 7, 11, 2, 1 }, { 7, 11, 2, 1, 2 },
    };
    struct pm_arena *a = pm_arena_create();
    const char *path = pm_arena_printf(a, "%s/claim.onnx", folder);

    (void)state;
    for (size_t i = 0; i < PM_COUNT(claims); i++) {
        int depth = 0;
        while (depth < 5 && claims[i][depth])
            depth++;
        struct pm_str bytes = with_length(claims[i], depth);
        assert_true(bytes.length < 1024);
        assert_int_equal(pm_file_write(path, bytes.text, bytes.length), 0);
        if (!in_small_process(is_refused, path))
            fail_msg("claim %zu (field %u, depth %d)", i, claims[i][depth - 1], depth);
        pm_str_free(&bytes);
    }
    /* Shapes of 10 GB without the bytes for them. */
    for (int list = 0; list < 3; list++) {
        struct pm_str t = tensor_of("big", list == 2 ? 7 : 1, 2, (const int64_t[]){ 50000, 50000 });
        put_bytes(&t, list == 0 ? 9 : list == 1 ? 4 : 7, "\1\1\1\1\1\1\1\1", 8);
        struct pm_str bytes = model_with(&t);
        assert_int_equal(pm_file_write(path, bytes.text, bytes.length), 0);
        assert_true(in_small_process(is_refused, path));
        pm_str_free(&bytes);
    }
    pm_arena_destroy(&a);
}

/* Writes a model whose weights "w" are `bytes` zeros, stored as a hole in the file. */
static void make_large(const char *path, uint64_t bytes)
{
    struct pm_str t = tensor_of("w", 1, 1, (const int64_t[]){ (int64_t)(bytes / 4) });
    struct pm_str head = { 0 }, g = { 0 }, opset = { 0 }, tail = { 0 };
    FILE *f = fopen(path, "wb");

    put_number(&t, 9 << 3 | 2);
    put_number(&t, bytes);
    put_text(&g, 2, "g");
    put_number(&g, 5 << 3 | 2);
    put_number(&g, t.length + bytes);
    pm_str_bytes(&g, t.text, t.length);
    put_int(&head, 1, 8);
    put_number(&head, 7 << 3 | 2);
    put_number(&head, g.length + bytes);
    pm_str_bytes(&head, g.text, g.length);
    put_int(&opset, 2, 17);
    put_inner(&tail, 8, &opset);
    assert_non_null(f);
    assert_int_equal(fwrite(head.text, 1, head.length, f), head.length);
    assert_int_equal(fseek(f, (long)bytes, SEEK_CUR), 0);
    assert_int_equal(fwrite(tail.text, 1, tail.length, f), tail.length);
    assert_int_equal(fclose(f), 0);
    pm_str_free(&t);
    pm_str_free(&g);
    pm_str_free(&head);
    pm_str_free(&tail);
}

enum { LARGE = 200 << 20 };

static bool reads_large(const char *path)
{
    static float piece[65536];
    struct pm_onnx_model *m = NULL;
    const size_t peak = peak_kib();
    bool zero = true;

    if (pm_onnx_read(path, &m) < 0)
        return false;
    for (uint64_t at = 0; at < LARGE / 4; at += 65536) {
        const size_t n = LARGE / 4 - at < 65536 ? (size_t)(LARGE / 4 - at) : 65536;
        piece[0] = piece[n - 1] = 1;
        zero &= pm_onnx_floats(&m->tensors[0], at, n, piece) == 0;
        zero &= piece[0] == 0 && piece[n - 1] == 0;
    }
    pm_onnx_close(&m);
    return zero && peak_kib() - peak < 4096;
}

static bool writes_large(const char *path)
{
    struct pm_onnx_model *m = NULL;
    struct pm_str copy = { 0 };
    const size_t peak = peak_kib();

    pm_str_add(&copy, "%s.copy", path);
    bool good = pm_onnx_read(path, &m) == 0 && pm_onnx_write(m, copy.text, false, NULL) == 0 &&
                pm_onnx_write(m, copy.text, true, NULL) == 0 && peak_kib() - peak < 6144;
    pm_onnx_close(&m);
    pm_str_free(&copy);
    return good;
}

static void memory_of_large_models(void **state)
{
    struct pm_arena *a = pm_arena_create();
    const char *path = pm_arena_printf(a, "%s/large.onnx", folder);

    (void)state;
    make_large(path, LARGE); /* a hole takes no space on the disk */
    assert_true(in_small_process(reads_large, path));
    make_large(path, LARGE / 8);
    assert_true(in_small_process(writes_large, path));
    pm_arena_destroy(&a);
}

static void cut_while_read(void **state)
{
    struct pm_arena *a = pm_arena_create();
    const char *path = pm_arena_printf(a, "%s/shrinking.onnx", folder);
    struct pm_onnx_model *m = NULL;
    float v[16];

    (void)state;
    make_large(path, 1 << 20);
    assert_int_equal(pm_onnx_read(path, &m), 0);
    assert_int_equal(truncate(path, 1 << 19), 0);
    assert_int_equal(pm_onnx_floats(m->tensors, 0, 16, v), 0);
    assert_int_equal(pm_onnx_floats(m->tensors, 200000, 16, v), PM_EDATA);
    assert_contains(pm_error_text(), path);
    assert_int_equal(pm_onnx_write(m, pm_arena_printf(a, "%s/no.onnx", folder), false, NULL),
                     PM_EDATA);
    assert_false(pm_file_exists(pm_arena_printf(a, "%s/no.onnx", folder)));
    pm_onnx_close(&m);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cut_at_every_byte),      cmocka_unit_test(changed_bytes),
        cmocka_unit_test(claims_of_10_gb),        cmocka_unit_test(memory_of_large_models),
        cmocka_unit_test(cut_while_read),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
