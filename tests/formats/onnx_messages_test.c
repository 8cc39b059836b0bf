/* Reading ONNX messages one by one: every element type in raw_data and in lists, attributes of
 * every kind, old and unusual encodings, external data. Errors name the cause. */
#include <dirent.h>
#include <formats/onnx_bytes.h>
#include <sys/stat.h>

/* ---- elements -------------------------------------------------------------------------- */

/* Name and number of a type, its list field, and the wire type of its elements (0 varint, 1 and
 * 5 fixed); then three elements as list values, as raw bytes, and as numbers. */
static const struct {
    enum pm_dtype type;
    unsigned number, list, in;
    uint64_t listed[3];
    const char *raw;
    size_t size;
    float floats[3];
    int64_t ints[3];
} types[] = {
    { PM_DTYPE_F32, 1, 4, 5, { 0x3f800000, 0xc0200000, 0 },
      "\0\0\x80\x3f\0\0\x20\xc0\0\0\0\0", 12, { 1, -2.5f, 0 }, { 1, -2, 0 } },
    { PM_DTYPE_U8, 2, 5, 0, { 1, 200, 255 }, "\1\xc8\xff", 3, { 1, 200, 255 }, { 1, 200, 255 } },
    { PM_DTYPE_I8, 3, 5, 0, { 1, (uint64_t)-56, UINT64_MAX }, "\1\xc8\xff", 3, { 1, -56, -1 },
      { 1, -56, -1 } },
    { PM_DTYPE_U16, 4, 5, 0, { 1, 513, 65535 }, "\1\0\1\2\xff\xff", 6, { 1, 513, 65535 },
      { 1, 513, 65535 } },
    { PM_DTYPE_I16, 5, 5, 0, { 1, 513, UINT64_MAX }, "\1\0\1\2\xff\xff", 6, { 1, 513, -1 },
      { 1, 513, -1 } },
    { PM_DTYPE_I32, 6, 5, 0, { 1, 65536, UINT64_MAX - 1 }, "\1\0\0\0\0\0\1\0\xfe\xff\xff\xff", 12,
      { 1, 65536, -2 }, { 1, 65536, -2 } },
    { PM_DTYPE_I64, 7, 7, 0, { 1, UINT64_C(1) << 62, UINT64_MAX },
      "\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x40\xff\xff\xff\xff\xff\xff\xff\xff", 24, { 1, 0x1p62f, -1 },
      { 1, INT64_C(1) << 62, -1 } },
    { PM_DTYPE_BOOL, 9, 5, 0, { 0, 1, 1 }, "\0\1\1", 3, { 0, 1, 1 }, { 0, 1, 1 } },
    { PM_DTYPE_F16, 10, 5, 0, { 0x3c00, 0xc100, 1 }, "\0\x3c\0\xc1\1\0", 6, { 1, -2.5f, 0x1p-24f },
      { 1, -2, 0 } },
    { PM_DTYPE_F64, 11, 10, 1, { UINT64_C(0x3ff0000000000000), UINT64_C(0x43f0000000000000),
                                 UINT64_C(0xc004000000000000) },
      "\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xf0\x43\0\0\0\0\0\0\4\xc0", 24, { 1, 0x1p64f, -2.5f },
      { 1, INT64_MAX, -2 } },
    { PM_DTYPE_U32, 12, 11, 0, { 1, 65536, 4294967295 }, "\1\0\0\0\0\0\1\0\xff\xff\xff\xff", 12,
      { 1, 65536, 4294967295.0f }, { 1, 65536, 4294967295 } },
    { PM_DTYPE_U64, 13, 11, 0, { 1, 65536, UINT64_MAX },
      "\1\0\0\0\0\0\0\0\0\0\1\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", 24,
      { 1, 65536, 0x1p64f }, { 1, 65536, INT64_MAX } },
    { PM_DTYPE_BF16, 16, 5, 0, { 0x3f80, 0xc020, 0 }, "\x80\x3f\x20\xc0\0\0", 6, { 1, -2.5f, 0 },
      { 1, -2, 0 } },
};

static void put_value(struct pm_str *s, unsigned in, uint64_t v)
{
    if (in == 0)
        put_number(s, v);
    else
        pm_str_bytes(s, &v, in == 5 ? 4 : 8);
}

/* way 0: raw; 1: packed list; 2: element by element; 3: packed list in two fields. */
static struct pm_str typed_tensor(size_t i, int way)
{
    struct pm_str t = tensor_of("t", types[i].number, 1, (const int64_t[]){ 3 });

    if (way == 0)
        put_bytes(&t, 9, types[i].raw, types[i].size);
    for (int k = 0; way == 2 && k < 3; k++) {
        put_number(&t, types[i].list << 3 | types[i].in);
        put_value(&t, types[i].in, types[i].listed[k]);
    }
    for (int half = 0; way % 2 == 1 && half < (way == 1 ? 1 : 2); half++) {
        struct pm_str list = { 0 };
        for (int k = half; k < (way == 1 || half == 1 ? 3 : 1); k++)
            put_value(&list, types[i].in, types[i].listed[k]);
        put_inner(&t, types[i].list, &list);
    }
    return t;
}

static void element_types(void **state)
{
    (void)state;
    for (size_t i = 0; i < PM_COUNT(types); i++)
        for (int way = 0; way < 4; way++) {
            struct pm_str t = typed_tensor(i, way), bytes = model_with(&t);
            struct pm_onnx_model *m;
            uint8_t *copy;
            float floats[3];
            int64_t ints[3];
            if (read_bytes(&bytes, &m, &copy) < 0)
                fail_msg("type %u way %d: %s", types[i].number, way, pm_error_text());
            assert_int_equal(m->tensors[0].type, types[i].type);
            assert_int_equal(m->tensors[0].bytes, types[i].size);
            assert_memory_equal(m->tensors[0].data, types[i].raw, types[i].size);
            assert_int_equal(pm_onnx_floats(m->tensors, 0, 3, floats), 0);
            assert_int_equal(pm_onnx_ints(m->tensors, 0, 3, ints), 0);
            for (int k = 0; k < 3; k++)
                assert_true(floats[k] == types[i].floats[k] && ints[k] == types[i].ints[k]);
            close_bytes(&m, copy);
            pm_str_free(&bytes);
        }
}

/* Strings, float8 and int4 keep their type names; their values are not read. */
static void types_without_numbers(void **state)
{
    struct pm_onnx_model *m;
    uint8_t *copy;
    float v;

    (void)state;
    for (unsigned number = 8; number < 40; number++) {
        if (number > 8 && number < 17 && number != 14 && number != 15)
            continue;
        struct pm_str t = tensor_of("odd", number, 1, (const int64_t[]){ 2 });
        if (number == 8)
            put_text(&t, 6, "a"), put_text(&t, 6, "b");
        else
            put_text(&t, 9, "xyz");
        struct pm_str bytes = model_with(&t);
        assert_int_equal(read_bytes(&bytes, &m, &copy), 0);
        assert_int_equal(m->tensors[0].type, PM_DTYPE_OTHER);
        assert_int_equal(m->tensors[0].bytes, number == 8 ? 0 : 3);
        assert_int_equal(pm_onnx_floats(m->tensors, 0, 1, &v), PM_EDATA);
        assert_contains(pm_error_text(), "'odd'");
        close_bytes(&m, copy);
        pm_str_free(&bytes);
    }
}

static void a_tensor_by_itself(void **state)
{
    char *folder = make_folder();
    struct pm_arena *a = pm_arena_create();
    const char *path = pm_arena_printf(a, "%s/t.pb", folder);
    struct pm_onnx_tensor t;
    float v[3];

    (void)state;
    for (int way = 0; way < 4; way++) {
        struct pm_str bytes = typed_tensor(0, way);
        assert_int_equal(pm_file_write(path, bytes.text, bytes.length), 0);
        assert_int_equal(pm_onnx_read_tensor(path, a, &t), 0);
        assert_string_equal(t.name, "t");
        assert_int_equal(pm_onnx_floats(&t, 0, 3, v), 0);
        assert_true(v[1] == -2.5f);
        for (size_t cut = 0; cut < bytes.length; cut++) {
            assert_int_equal(pm_file_write(path, bytes.text, cut), 0);
            assert_int_equal(pm_onnx_read_tensor(path, a, &t), PM_EDATA);
            assert_contains(pm_error_text(), path);
        }
        pm_str_free(&bytes);
    }
    pm_arena_destroy(&a);
    drop_folder(folder);
}

/* Tensors that are refused: dims, type (0: omitted), list values or raw bytes, and the expected
 * message. */
static const struct {
    int rank;
    int64_t dim[9];
    unsigned type;
    int floats, raw; /* -1: omitted */
    const char *says;
} refused[] = {
    { 1, { 2 }, 1, -1, -1, "fewer elements" },
    { 1, { 2 }, 1, 1, -1, "fewer elements" },
    { 1, { 2 }, 1, 3, -1, "more elements" },
    { 0, { 0 }, 1, -1, -1, "fewer elements" },
    { 1, { 2 }, 1, -1, 7, "7 bytes do not fit its shape and type (8)" },
    { 1, { 2 }, 1, -1, 9, "9 bytes do not fit" },
    { 1, { 2 }, 0, -1, 8, "no type" },
    { 1, { -1 }, 1, -1, 0, "below 0" },
    { 2, { INT64_C(1) << 32, INT64_C(1) << 32 }, 1, -1, 0, "larger than any file" },
    { 1, { INT64_C(1) << 62 }, 1, -1, 0, "larger than any file" },
    { 2, { INT64_C(1) << 30, 1 << 3 }, 7, 9, -1, "fewer elements" },
    { 9, { 1, 1, 1, 1, 1, 1, 1, 1, 1 }, 1, -1, 4, "more than 8 dimensions" },
};

static void refused_tensors(void **state)
{
    static const uint8_t zeros[16];
    struct pm_onnx_model *m;
    uint8_t *copy;

    (void)state;
    for (size_t i = 0; i < PM_COUNT(refused); i++) {
        struct pm_str t = { 0 };
        for (int k = 0; k < refused[i].rank; k++)
            put_int(&t, 1, (uint64_t)refused[i].dim[k]);
        if (refused[i].type)
            put_int(&t, 2, refused[i].type);
        put_text(&t, 8, "worn");
        for (int k = 0; k < refused[i].floats; k++)
            refused[i].type == 7 ? put_int(&t, 7, 1) : put_float(&t, 4, 1);
        if (refused[i].raw >= 0)
            put_bytes(&t, 9, zeros, (size_t)refused[i].raw);
        struct pm_str bytes = model_with(&t);
        assert_int_equal(read_bytes(&bytes, &m, &copy), PM_EDATA);
        assert_contains(pm_error_text(), refused[i].says);
        if (refused[i].rank != 9 && refused[i].dim[0] >= 0) /* those messages end before the
                                                             * tensor's name */
            assert_contains(pm_error_text(), "'worn'");
        close_bytes(&m, copy);
        pm_str_free(&bytes);
    }
}

/* ---- nodes ----------------------------------------------------------------------------- */

/* A model of one node with this attribute message. */
static struct pm_str model_of_attr(struct pm_str *attr)
{
    struct pm_str n = { 0 }, g = { 0 };

    put_text(&n, 4, "Op");
    put_inner(&n, 5, attr);
    put_inner(&g, 1, &n);
    return model_of(8, &g, 17);
}

/* type: the value in the file; -1: omitted. */
static enum pm_onnx_type type_read(unsigned field, int type)
{
    struct pm_str a = { 0 }, inner = { 0 };
    struct pm_onnx_model *m;
    uint8_t *copy;

    put_text(&a, 1, "a");
    if (field == 2)
        put_float(&a, 2, 1);
    else if (field == 3 || field == 8)
        put_int(&a, field, 1);
    else if (field == 7)
        put_float(&a, 7, 1);
    else if (field == 5 || field == 10) {
        inner = tensor_of("", 1, 1, (const int64_t[]){ 0 });
        put_inner(&a, field, &inner);
    } else if (field)
        put_text(&a, field, "");
    if (type >= 0)
        put_int(&a, 20, (uint64_t)type);
    struct pm_str bytes = model_of_attr(&a);
    if (read_bytes(&bytes, &m, &copy) < 0)
        fail_msg("field %u type %d: %s", field, type, pm_error_text());
    const enum pm_onnx_type found = m->nodes[0].attrs[0].type;
    close_bytes(&m, copy);
    pm_str_free(&bytes);
    return found;
}

static void attribute_kinds(void **state)
{
    (void)state;
    for (unsigned field = 2; field <= 9; field++) { /* fields 2..9 hold the types 1..8 */
        assert_int_equal(type_read(field, (int)field - 1), field - 1);
        assert_int_equal(type_read(field, -1), field - 1);
    }
    assert_int_equal(type_read(10, 9), PM_ONNX_OTHER);  /* tensors */
    assert_int_equal(type_read(11, 10), PM_ONNX_OTHER); /* graphs */
    assert_int_equal(type_read(21, -1), PM_ONNX_OTHER); /* refers to an attribute of the
                                                         * enclosing function */
    assert_int_equal(type_read(0, 1), PM_ONNX_FLOAT);   /* 0 may be omitted */
    assert_int_equal(type_read(0, 7), PM_ONNX_INTS);
    assert_int_equal(type_read(0, 99), PM_ONNX_OTHER);
}

static void packed_attributes(void **state)
{
    struct pm_str a = { 0 }, list = { 0 };
    struct pm_onnx_model *m;
    uint8_t *copy;

    (void)state;
    put_text(&a, 1, "axes");
    put_number(&list, 300);
    put_number(&list, UINT64_MAX);
    put_inner(&a, 8, &list);
    put_int(&a, 8, 7);
    put_int(&a, 20, 7);
    struct pm_str bytes = model_of_attr(&a);
    assert_int_equal(read_bytes(&bytes, &m, &copy), 0);
    const struct pm_onnx_attr *got = pm_onnx_attr(&m->nodes[0], "axes");
    assert_int_equal(got->count, 3);
    assert_true(got->ints[0] == 300 && got->ints[1] == -1 && got->ints[2] == 7);
    close_bytes(&m, copy);
    pm_str_free(&bytes);
}

/* ---- models ---------------------------------------------------------------------------- */

static struct pm_str input_of(const char *name)
{
    struct pm_str v = { 0 };

    put_text(&v, 1, name);
    return v;
}

static void old_and_odd_models(void **state)
{
    struct pm_str g = { 0 }, f = { 0 }, n = { 0 }, o = { 0 }, t, v;
    struct pm_onnx_model *m;
    uint8_t *copy;

    (void)state;
    v = input_of("w");
    put_inner(&g, 11, &v); /* precedes the initializer of that name */
    v = input_of("x");
    put_inner(&g, 11, &v);
    t = typed_tensor(0, 0);
    put_text(&t, 8, "w"); /* the last value counts */
    put_inner(&g, 5, &t);
    put_text(&n, 4, "Relu");
    put_text(&n, 7, "ai.onnx");
    put_text(&n, 99, "of a later version");
    put_inner(&g, 1, &n);
    struct pm_str bytes = model_of(3, &g, 9);
    put_text(&f, 1, "Gelu");
    put_text(&f, 10, "lib");
    put_inner(&bytes, 25, &f);
    put_text(&o, 1, "lib");
    put_int(&o, 2, 4);
    put_inner(&bytes, 8, &o);
    put_pair(&bytes, 14, "a", "b");
    assert_int_equal(read_bytes(&bytes, &m, &copy), 0);
    assert_int_equal(m->input_count, 1);
    assert_string_equal(m->inputs[0].name, "x");
    assert_int_equal(m->inputs[0].rank, -1);
    assert_int_equal(m->inputs[0].type, PM_DTYPE_OTHER);
    assert_string_equal(m->nodes[0].domain, "");
    assert_int_equal(m->opset, 9);
    assert_int_equal(m->function_count, 1);
    assert_string_equal(m->functions[0], "lib.Gelu");
    assert_int_equal(m->domain_count, 1);
    assert_string_equal(m->domains[0].name, "lib");
    assert_string_equal(pm_onnx_meta(m, "a"), "b");
    close_bytes(&m, copy);
    pm_str_free(&bytes);
}

static void check_refused(struct pm_str *bytes, const char *says)
{
    struct pm_onnx_model *m;
    uint8_t *copy;

    assert_int_equal(read_bytes(bytes, &m, &copy), PM_EDATA);
    assert_null(m);
    assert_contains(pm_error_text(), says);
    assert_contains(pm_error_text(), "bytes");
    close_bytes(&m, copy);
    pm_str_free(bytes);
    *bytes = (struct pm_str){ 0 };
}

/* A graph with one field, in a model. */
static struct pm_str model_of_field(unsigned field, struct pm_str *inner)
{
    struct pm_str g = { 0 };

    put_inner(&g, field, inner);
    return model_of(8, &g, 17);
}

static void refused_models(void **state)
{
    struct pm_str b = { 0 }, g = { 0 }, i = { 0 };

    (void)state;
    check_refused(&b, "it has no graph");
    put_int(&b, 1, 8);
    check_refused(&b, "it has no graph");
    put_inner(&b, 7, &g);
    check_refused(&b, "it has no IR version");
    put_int(&b, 1, 8);
    put_inner(&b, 7, &g);
    struct pm_str twice = { 0 };
    pm_str_bytes(&twice, b.text, b.length);
    check_refused(&b, "the model has no opset version");
    put_inner(&twice, 7, &g);
    check_refused(&twice, "a second graph at offset 4");
    put_text(&b, 7, "\x0f");
    check_refused(&b, "no field begins at offset 2");
    pm_str_bytes(&b, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", 12);
    check_refused(&b, "more than 10 bytes at offset 1");
    pm_str_bytes(&b, "\0\0", 2);
    check_refused(&b, "no field begins at offset 0");
    put_text(&b, 1, "x");
    check_refused(&b, "has another type than");
    put_int(&b, 7, 1);
    check_refused(&b, "has another type than");
    put_bytes(&b, 2, "a\0b", 3);
    check_refused(&b, "a zero byte");
    b = model_of_field(15, &i);
    check_refused(&b, "sparse initializer");
    b = model_of_field(1, &i);
    check_refused(&b, "without an operator");
    b = model_of_field(11, &i);
    check_refused(&b, "without a name");
    put_int(&i, 20, 1);
    b = model_of_attr(&i);
    check_refused(&b, "an attribute without a name");
    put_text(&i, 1, "value");
    put_int(&i, 20, 4);
    b = model_of_attr(&i);
    check_refused(&b, "without its tensor");
    i = tensor_of("", 1, 1, (const int64_t[]){ 0 });
    b = model_of_field(5, &i);
    check_refused(&b, "an initializer without a name");
    for (int k = 0; k < 2; k++) {
        i = tensor_of("same", 1, 1, (const int64_t[]){ 0 });
        put_inner(&g, 5, &i);
    }
    b = model_of(8, &g, 17);
    check_refused(&b, "two initializers are named 'same'");
    i = typed_tensor(0, 0);
    put_int(&i, 14, 2);
    b = model_of_field(5, &i);
    check_refused(&b, "neither DEFAULT nor EXTERNAL");
    i = typed_tensor(0, 0);
    put_text(&i, 3, "");
    b = model_of_field(5, &i);
    check_refused(&b, "segment");
}

/* ---- external data --------------------------------------------------------------------- */

/* location, offset and length (NULL: omitted) of a tensor of two floats, and the expected
 * message (NULL: it is read). w.bin holds the floats 0..3. */
static const struct {
    const char *location, *offset, *length, *says;
} places[] = {
    { "w.bin", "4", "8", NULL },
    { "w.bin", "4", NULL, NULL },
    { "./w.bin", "4", "8", NULL },
    { "sub/w.bin", "4", "8", NULL },
    { "inner", "4", "8", NULL }, /* a link inside the folder */
    { "w..bin", "4", "8", NULL },
    { "w.bin", "12", "8", "exceeds the 16 bytes" },
    { "w.bin", "17", NULL, "exceeds the 16 bytes" },
    { "w.bin", "9223372036854775807", "8", "exceeds the 16 bytes" },
    { "w.bin", "9223372036854775808", "8", "the offset" },
    { "w.bin", "-4", "8", "the offset" },
    { "w.bin", "4x", "8", "the offset" },
    { "w.bin", "", "8", "the offset" },
    { "w.bin", "4", "x", "the length" },
    { "w.bin", "4", "12", "12 bytes of external data do not fit its shape and type (8)" },
    { "w.bin", "4", "4", "4 bytes" },
    { NULL, "4", "8", "no location is given" },
    { "", "4", "8", "not inside" },
    { "none.bin", "4", "8", "No such file" },
    { "sub", "4", "8", "is a folder" },
    { "../w.bin", "4", "8", "not inside" },
    { "sub/../w.bin", "4", "8", "not inside" },
    { "sub/..", "4", "8", "not inside" },
    { "..", "4", "8", "not inside" },
    { "/etc/passwd", "4", "8", "not inside" },
    { "..\\w.bin", "4", "8", "not inside" },
    { "outer", "4", "8", "out of the model's folder" },
    { "way/w.bin", "4", "8", "out of the model's folder" },
};

static void make_places(struct pm_arena *a, const char *model, const char *folder)
{
    static const float floats[4] = { 0, 1, 2, 3 };
    const char *files[] = { "w.bin", "sub/w.bin", "w..bin", "../outside.bin", "../more/w.bin" };

    assert_int_equal(pm_make_folders(pm_arena_printf(a, "%s/sub", model)), 0);
    assert_int_equal(pm_make_folders(pm_arena_printf(a, "%s/more", folder)), 0);
    for (size_t i = 0; i < PM_COUNT(files); i++) {
        const char *path = pm_arena_printf(a, "%s/%s", model, files[i]);
        assert_int_equal(pm_file_write(path, floats, 16), 0);
    }
    assert_int_equal(symlink("sub/w.bin", pm_arena_printf(a, "%s/inner", model)), 0);
    assert_int_equal(symlink("../outside.bin", pm_arena_printf(a, "%s/outer", model)), 0);
    assert_int_equal(symlink("../more", pm_arena_printf(a, "%s/way", model)), 0);
}

static void external_data(void **state)
{
    char *folder = make_folder();
    struct pm_arena *a = pm_arena_create();
    const char *model = pm_arena_printf(a, "%s/model", folder);
    const char *path = pm_arena_printf(a, "%s/m.onnx", model);

    (void)state;
    make_places(a, model, folder);
    for (size_t i = 0; i < PM_COUNT(places); i++) {
        struct pm_str t = tensor_of("far", 1, 1, (const int64_t[]){ 2 });
        struct pm_onnx_model *m = NULL;
        float v[2];
        if (places[i].location)
            put_pair(&t, 13, "location", places[i].location);
        put_pair(&t, 13, "offset", places[i].offset);
        if (places[i].length)
            put_pair(&t, 13, "length", places[i].length);
        put_pair(&t, 13, "checksum", "0");
        put_int(&t, 14, 1);
        struct pm_str bytes = model_with(&t);
        assert_int_equal(pm_file_write(path, bytes.text, bytes.length), 0);
        pm_str_free(&bytes);
        const int err = pm_onnx_read(path, &m);
        if (places[i].says) {
            assert_int_equal(err, PM_EDATA);
            assert_contains(pm_error_text(), places[i].says);
            if (strcmp(places[i].says, "is a folder") != 0)
                assert_contains(pm_error_text(), "'far'");
            continue;
        }
        if (err < 0)
            fail_msg("%s: %s", places[i].location, pm_error_text());
        assert_int_equal(pm_onnx_floats(m->tensors, 0, 2, v), 0);
        assert_true(v[0] == 1 && v[1] == 2);
        pm_onnx_close(&m);
    }
    pm_arena_destroy(&a);
    drop_folder(folder);
}

static int open_files(void)
{
    int count = 0;
    DIR *d = opendir("/proc/self/fd");

    while (d && readdir(d))
        count++;
    if (d)
        closedir(d);
    return count;
}

/* Very many tensors, each in its own file beside the model: all are read, and only few files are
 * open at a time. */
static void many_files(void **state)
{
    enum { MANY = 100, LONG = PM_ONNX_SMALL / 4 + 1, MOST_OPEN = 64 };
    char *folder = make_folder();
    struct pm_arena *a = pm_arena_create();
    const char *path = pm_arena_printf(a, "%s/m.onnx", folder);
    const int before = open_files();
    struct pm_onnx_model *m = NULL;
    struct pm_str graph = { 0 };
    float v[LONG] = { 0 };

    (void)state;
    put_text(&graph, 2, "g");
    for (int i = 0; i < MANY; i++) {
        const char *name = pm_arena_printf(a, "w%03d", i);
        struct pm_str t = tensor_of(name, 1, 1, (const int64_t[]){ LONG });

        put_pair(&t, 13, "location", name);
        put_int(&t, 14, 1);
        put_inner(&graph, 5, &t);
        v[LONG - 1] = (float)i;
        assert_int_equal(pm_file_write(pm_arena_printf(a, "%s/%s", folder, name), v, sizeof v), 0);
    }
    struct pm_str bytes = model_of(8, &graph, 17);
    assert_int_equal(pm_file_write(path, bytes.text, bytes.length), 0);
    pm_str_free(&bytes);
    assert_int_equal(pm_onnx_read(path, &m), 0);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(pm_onnx_floats(&m->tensors[i], LONG - 1, 1, v), 0);
        assert_true(v[0] == (float)i);
    }
    assert_int_equal(open_files() - before, before ? 1 + MOST_OPEN : 0); /* the model's own, too */
    pm_onnx_close(&m);
    assert_int_equal(open_files(), before);
    pm_arena_destroy(&a);
    drop_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(element_types),    cmocka_unit_test(types_without_numbers),
        cmocka_unit_test(a_tensor_by_itself), cmocka_unit_test(refused_tensors),
        cmocka_unit_test(attribute_kinds),  cmocka_unit_test(packed_attributes),
        cmocka_unit_test(old_and_odd_models), cmocka_unit_test(refused_models),
        cmocka_unit_test(external_data),
        cmocka_unit_test(many_files),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
