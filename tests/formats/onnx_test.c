/* ONNX models: written models read back equal, with weights inside the file and beside it. Equal
 * models give equal bytes. */
#include <formats/onnx_bytes.h>
#include <sys/stat.h>

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

static const char *in_folder(const char *name)
{
    static char path[4][512];
    static int next;
    char *p = path[next++ % 4];

    snprintf(p, 512, "%s/%s", folder, name);
    return p;
}

enum { LARGE = 5000 };

/* Element i of the tensor is i / 4. Fails from element fill_from on. */
static int fill_quarters(const struct pm_onnx_tensor *t, uint64_t begin, size_t size, void *dst)
{
    if (t->fill_from)
        return pm_fail(PM_EFAIL, "filling ends here");
    assert_int_equal(begin % 4, 0);
    for (size_t i = 0; i < size / 4; i++)
        ((float *)dst)[i] = (float)(begin / 4 + i) / 4;
    return PM_OK;
}

static const float weights[2] = { -0.0f, 1.5f };
static const int64_t shape[3] = { 0, -1, INT64_C(1) << 40 };

/* A model with one element of every kind. */
static struct pm_onnx_model *make_model(void)
{
    static const float floats[2] = { 0.5f, -3 };
    static const char *const strings[2] = { "a", "" };
    static const struct pm_onnx_tensor given = { .name = "given", .type = PM_DTYPE_F32, .rank = 1,
        .dim = { 2 }, .count = 2, .bytes = 8, .data = weights };
    struct pm_onnx_model *m = pm_onnx_make("net");
    struct pm_onnx_node *n;

    m->doc = "made by a test";
    m->opset = 18;
    m->domains = pm_calloc(1, sizeof *m->domains);
    m->domains[0] = (struct pm_onnx_domain){ "my.domain", 3 };
    m->domain_count = 1;
    n = pm_onnx_add(m, "Conv", "conv/1", (const char *[]){ "x", "w", "", NULL },
                    (const char *[]){ "y", NULL });
    pm_onnx_set_int(m, n, "group", -2);
    pm_onnx_set_float(m, n, "alpha", 0.1f);
    pm_onnx_set_text(m, n, "auto_pad", "SAME_UPPER");
    pm_onnx_set_ints(m, n, "pads", 3, shape);
    pm_onnx_set_ints(m, n, "none", 0, shape);
    pm_onnx_set_int(m, n, "floats", 0);
    n->attrs[5] = (struct pm_onnx_attr){ "floats", PM_ONNX_FLOATS, .count = 2, .floats = floats };
    pm_onnx_set_int(m, n, "strings", 0);
    n->attrs[6] =
        (struct pm_onnx_attr){ "strings", PM_ONNX_STRINGS, .count = 2, .strings = strings };
    pm_onnx_set_int(m, n, "value", 0);
    n->attrs[7] = (struct pm_onnx_attr){ "value", PM_ONNX_TENSOR, .t = &given };
    pm_onnx_set_int(m, n, "last", INT64_MIN);
    n = pm_onnx_add(m, "Mine", "", (const char *[]){ "y", NULL },
                    (const char *[]){ "z", "", NULL });
    n->domain = "my.domain";
    pm_onnx_add_tensor(m, "w", PM_DTYPE_F32, 4, (const int64_t[]){ 1, 2, 1, 1 }, weights);
    pm_onnx_add_tensor(m, "shape", PM_DTYPE_I64, 1, (const int64_t[]){ 3 }, shape);
    pm_onnx_add_tensor(m, "large", PM_DTYPE_F32, 2, (const int64_t[]){ LARGE, 1 }, NULL)->fill =
        fill_quarters;
    pm_onnx_add_tensor(m, "scalar", PM_DTYPE_F32, 0, NULL, weights + 1);
    pm_onnx_add_tensor(m, "empty", PM_DTYPE_F32, 2, (const int64_t[]){ 0, 4 }, weights);
    pm_onnx_add_tensor(m, "last", PM_DTYPE_F32, 1, (const int64_t[]){ LARGE }, NULL)->fill =
        fill_quarters;
    pm_onnx_add_input(m, "x", PM_DTYPE_F32, 4, (const int64_t[]){ -1, 3, 5, -1 })->dim_name[0] =
        "N";
    pm_onnx_add_output(m, "z", PM_DTYPE_I64, 0, NULL);
    pm_onnx_add_output(m, "u", PM_DTYPE_F16, 1, shape)->rank = -1;
    pm_onnx_add_meta(m, "key", "value");
    pm_onnx_add_meta(m, "text", "");
    return m;
}

static void check_node(const struct pm_onnx_node *n)
{
    const struct pm_onnx_attr *a;

    assert_string_equal(n->op, "Conv");
    assert_string_equal(n->name, "conv/1");
    assert_string_equal(n->domain, "");
    assert_int_equal(n->in_count, 3);
    assert_string_equal(n->in[1], "w");
    assert_string_equal(n->in[2], "");
    assert_int_equal(n->out_count, 1);
    assert_string_equal(n->out[0], "y");
    assert_int_equal(n->attr_count, 9);
    assert_int_equal(pm_onnx_attr_int(n, "group", 7), -2);
    assert_true(pm_onnx_attr_int(n, "last", 7) == INT64_MIN);
    assert_int_equal(pm_onnx_attr_int(n, "alpha", 7), 7);
    assert_int_equal(pm_onnx_attr_int(n, "absent", 7), 7);
    assert_true(pm_onnx_attr_float(n, "alpha", 0) == 0.1f);
    assert_true(pm_onnx_attr_float(n, "group", 0.25f) == 0.25f);
    assert_string_equal(pm_onnx_attr_text(n, "auto_pad", ""), "SAME_UPPER");
    assert_string_equal(pm_onnx_attr_text(n, "absent", "b"), "b");
    a = pm_onnx_attr(n, "pads");
    assert_int_equal(a->type, PM_ONNX_INTS);
    assert_int_equal(a->count, 3);
    assert_memory_equal(a->ints, shape, sizeof shape);
    a = pm_onnx_attr(n, "none");
    assert_int_equal(a->type, PM_ONNX_INTS);
    assert_int_equal(a->count, 0);
    a = pm_onnx_attr(n, "floats");
    assert_int_equal(a->count, 2);
    assert_true(a->floats[0] == 0.5f && a->floats[1] == -3);
    a = pm_onnx_attr(n, "strings");
    assert_int_equal(a->count, 2);
    assert_string_equal(a->strings[0], "a");
    assert_string_equal(a->strings[1], "");
    a = pm_onnx_attr(n, "value");
    assert_int_equal(a->type, PM_ONNX_TENSOR);
    assert_string_equal(a->t->name, "given");
    assert_int_equal(a->t->dim[0], 2);
    assert_memory_equal(a->t->data, weights, 8);
}

static void check_tensors(const struct pm_onnx_model *m)
{
    float got[LARGE];
    int64_t ints[3];
    const struct pm_onnx_tensor *t = pm_onnx_tensor_find(m, "w");

    assert_int_equal(m->tensor_count, 6);
    assert_int_equal(t->rank, 4);
    assert_int_equal(t->dim[1], 2);
    assert_int_equal(t->bytes, 8);
    assert_memory_equal(t->data, weights, 8);
    t = pm_onnx_tensor_find(m, "shape");
    assert_int_equal(pm_onnx_ints(t, 0, 3, ints), 0);
    assert_memory_equal(ints, shape, sizeof shape);
    assert_int_equal(pm_onnx_floats(t, 1, 2, got), 0);
    assert_true(got[0] == -1 && got[1] == 0x1p40f);
    for (int i = 0; i < 2; i++) {
        t = pm_onnx_tensor_find(m, i ? "last" : "large");
        assert_int_equal(t->rank, 2 - i);
        assert_int_equal(t->count, LARGE);
        assert_int_equal(pm_onnx_floats(t, 0, LARGE, got), 0);
        for (int k = 0; k < LARGE; k++)
            assert_true(got[k] == (float)k / 4);
        assert_int_equal(pm_onnx_ints(t, LARGE - 1, 1, ints), 0);
        assert_int_equal(ints[0], (LARGE - 1) / 4);
        assert_int_equal(pm_onnx_floats(t, LARGE - 1, 2, got), PM_EDATA);
        assert_int_equal(pm_onnx_bytes(t, t->bytes - 1, 2, got), PM_EDATA);
    }
    t = pm_onnx_tensor_find(m, "scalar");
    assert_int_equal(t->rank, 0);
    assert_int_equal(pm_onnx_floats(t, 0, 1, got), 0);
    assert_true(got[0] == 1.5f);
    t = pm_onnx_tensor_find(m, "empty");
    assert_int_equal(t->count, 0);
    assert_int_equal(t->dim[1], 4);
    assert_int_equal(pm_onnx_floats(t, 0, 0, got), 0);
    assert_null(pm_onnx_tensor_find(m, "W"));
}

static void check_model(const struct pm_onnx_model *m)
{
    assert_int_equal(m->ir_version, 8);
    assert_int_equal(m->opset, 18);
    assert_string_equal(m->producer, "pumice");
    assert_string_equal(m->doc, "made by a test");
    assert_string_equal(m->graph_name, "net");
    assert_int_equal(m->domain_count, 1);
    assert_string_equal(m->domains[0].name, "my.domain");
    assert_int_equal(m->domains[0].version, 3);
    assert_int_equal(m->node_count, 2);
    check_node(&m->nodes[0]);
    assert_string_equal(m->nodes[1].domain, "my.domain");
    assert_string_equal(m->nodes[1].name, "");
    assert_int_equal(m->nodes[1].out_count, 2);
    assert_int_equal(m->nodes[1].attr_count, 0);
    check_tensors(m);
    assert_int_equal(m->input_count, 1);
    assert_string_equal(m->inputs[0].name, "x");
    assert_int_equal(m->inputs[0].type, PM_DTYPE_F32);
    assert_int_equal(m->inputs[0].rank, 4);
    assert_int_equal(m->inputs[0].dim[0], -1);
    assert_string_equal(m->inputs[0].dim_name[0], "N");
    assert_int_equal(m->inputs[0].dim[1], 3);
    assert_null(m->inputs[0].dim_name[1]);
    assert_int_equal(m->inputs[0].dim[3], -1);
    assert_null(m->inputs[0].dim_name[3]);
    assert_int_equal(m->output_count, 2);
    assert_int_equal(m->outputs[0].type, PM_DTYPE_I64);
    assert_int_equal(m->outputs[0].rank, 0);
    assert_int_equal(m->outputs[1].type, PM_DTYPE_F16);
    assert_int_equal(m->outputs[1].rank, -1);
    assert_int_equal(m->meta_count, 2);
    assert_string_equal(pm_onnx_meta(m, "key"), "value");
    assert_string_equal(pm_onnx_meta(m, "text"), "");
    assert_null(pm_onnx_meta(m, "value"));
}

static void check_same_bytes(const char *a, const char *b)
{
    char *x, *y;
    size_t n, k;

    assert_int_equal(pm_file_read(a, &x, &n), 0);
    assert_int_equal(pm_file_read(b, &y, &k), 0);
    assert_int_equal(n, k);
    assert_memory_equal(x, y, n);
    pm_free(x);
    pm_free(y);
}

static void round_trip(void **state)
{
    struct pm_onnx_model *m = make_model(), *back = NULL;
    char *bytes;
    size_t size;

    (void)state;
    check_model(m);
    assert_int_equal(pm_onnx_write(m, in_folder("a.onnx"), false, NULL), 0);
    assert_int_equal(pm_onnx_write(m, in_folder("b.onnx"), false, NULL), 0);
    check_same_bytes(in_folder("a.onnx"), in_folder("b.onnx"));
    assert_false(pm_file_exists(in_folder("a.onnx.data")));
    pm_onnx_close(&m);
    assert_int_equal(pm_onnx_read(in_folder("a.onnx"), &back), 0);
    check_model(back);
    assert_non_null(pm_onnx_tensor_find(back, "shape")->data); /* a small tensor is stored inside */
    assert_null(pm_onnx_tensor_find(back, "large")->data);
    assert_int_equal(pm_onnx_write(back, in_folder("b.onnx"), false, NULL), 0);
    check_same_bytes(in_folder("a.onnx"), in_folder("b.onnx"));
    pm_onnx_close(&back);
    assert_null(back);
    assert_int_equal(pm_file_read(in_folder("a.onnx"), &bytes, &size), 0);
    assert_int_equal(pm_onnx_read_memory("memory", bytes, size, &back), 0);
    check_model(back);
    const char *large = pm_onnx_tensor_find(back, "large")->data;
    assert_true(large > bytes && large + LARGE * 4 <= bytes + size); /* borrowed, not copied */
    pm_onnx_close(&back);
    pm_free(bytes);
}

/* Adds an input or an output to a graph: floats [size]. */
static void put_value(struct pm_str *graph, unsigned field, const char *name, unsigned size)
{
    struct pm_str value = { 0 }, type = { 0 }, tensor = { 0 }, sizes = { 0 }, dim = { 0 };

    put_int(&tensor, 1, 1);
    put_int(&dim, 1, size);
    put_inner(&sizes, 1, &dim);
    put_inner(&tensor, 2, &sizes);
    put_inner(&type, 1, &tensor);
    put_text(&value, 1, name);
    put_inner(&value, 2, &type);
    put_inner(graph, field, &value);
}

/* The body adds the initializer "one" to its input. */
static struct pm_str body_bytes(void)
{
    static const float one = 1;
    struct pm_str graph = { 0 }, node = { 0 }, tensor = tensor_of("one", 1, 0, NULL);

    put_text(&node, 1, "a");
    put_text(&node, 1, "one");
    put_text(&node, 2, "b");
    put_text(&node, 3, "sum");
    put_text(&node, 4, "Add");
    put_inner(&graph, 1, &node);
    put_text(&graph, 2, "each");
    put_bytes(&tensor, 9, &one, sizeof one);
    put_inner(&graph, 5, &tensor);
    put_value(&graph, 11, "a", 2);
    put_value(&graph, 12, "b", 2);
    return graph;
}

static struct pm_onnx_model *make_body(void)
{
    static const float one = 1;
    struct pm_onnx_model *body = pm_onnx_make("each");

    pm_onnx_add(body, "Add", "sum", (const char *[]){ "a", "one", NULL },
                (const char *[]){ "b", NULL });
    pm_onnx_add_tensor(body, "one", PM_DTYPE_F32, 0, NULL, &one);
    pm_onnx_add_input(body, "a", PM_DTYPE_F32, 1, (const int64_t[]){ 2 });
    pm_onnx_add_output(body, "b", PM_DTYPE_F32, 1, (const int64_t[]){ 2 });
    return body;
}

/* A body is in the file, field by field. A model that was read lacks it, so that it cannot be
 * written again. */
static void body(void **state)
{
    struct pm_onnx_model *m = pm_onnx_make("net"), *back = NULL;
    struct pm_onnx_node *n = pm_onnx_add(m, "Scan", "scan", (const char *[]){ "x", NULL },
                                         (const char *[]){ "y", NULL });
    struct pm_str attr = { 0 }, graph = body_bytes();
    char *bytes;
    size_t size, at = 0;

    (void)state;
    pm_onnx_set_graph(m, n, "body", make_body());
    pm_onnx_add_input(m, "x", PM_DTYPE_F32, 2, (const int64_t[]){ 3, 2 });
    pm_onnx_add_output(m, "y", PM_DTYPE_F32, 2, (const int64_t[]){ 3, 2 });
    assert_int_equal(pm_onnx_write(m, in_folder("body.onnx"), false, NULL), 0);
    pm_onnx_close(&m);
    put_text(&attr, 1, "body");
    put_inner(&attr, 6, &graph);
    put_int(&attr, 20, 5);
    assert_int_equal(pm_file_read(in_folder("body.onnx"), &bytes, &size), 0);
    while (at + attr.length <= size && memcmp(bytes + at, attr.text, attr.length) != 0)
        at++;
    assert_true(at + attr.length <= size);
    pm_free(bytes);
    pm_str_free(&attr);
    assert_int_equal(pm_onnx_read(in_folder("body.onnx"), &back), 0);
    assert_int_equal(back->nodes[0].attrs[0].type, PM_ONNX_GRAPH);
    assert_int_equal(pm_onnx_write(back, in_folder("again.onnx"), false, NULL), PM_EDATA);
    assert_non_null(strstr(pm_error_text(), "node 'scan' (Scan): attribute 'body' has a kind that "
                                            "Pumice does not write"));
    pm_onnx_close(&back);
}

static void weights_beside(void **state)
{
    struct pm_onnx_model *m = make_model(), *back = NULL;
    char *bytes, *c = NULL, *d = NULL, *moved;
    float *data;
    size_t size, all;
    struct stat st;

    (void)state;
    assert_int_equal(mkdir(in_folder("beside"), 0777), 0);
    assert_int_equal(pm_onnx_write(m, in_folder("beside/c.onnx"), true, &c), 0);
    assert_int_equal(pm_onnx_write(m, in_folder("beside/d.onnx"), true, &d), 0);
    check_same_bytes(c, d);
    moved = pm_strdup(in_folder("moved/")); /* the file's name contains the digest */
    moved = pm_realloc(moved, strlen(moved) + strlen(c) + 1);
    strcat(moved, strrchr(c, '/') + 1);
    assert_non_null(strstr(moved, "/c.onnx-"));
    pm_onnx_close(&m);
    assert_int_equal(pm_file_read(in_folder("beside/c.onnx"), &bytes, &size), 0);
    assert_true(size < 1500);
    assert_int_equal(pm_onnx_read_memory("memory", bytes, size, &back), PM_EDATA);
    assert_contains(pm_error_text(), "memory");
    pm_free(bytes);
    /* The two large tensors; the second starts at the next multiple of 64. */
    assert_int_equal(pm_file_read(c, &bytes, &all), 0);
    assert_int_equal(all, (LARGE * 4 + 63) / 64 * 64 + LARGE * 4);
    data = (float *)(bytes + (LARGE * 4 + 63) / 64 * 64);
    assert_true(data[LARGE - 1] == (LARGE - 1) / 4.0f);
    pm_free(bytes);
    assert_int_equal(rename(in_folder("beside"), in_folder("moved")), 0);
    assert_int_equal(pm_onnx_read(in_folder("moved/c.onnx"), &back), 0);
    /* The data file stays open, so a later file of that name is not read. */
    assert_int_equal(rename(moved, in_folder("away")), 0);
    check_model(back);
    assert_int_equal(rename(in_folder("away"), moved), 0);
    assert_int_equal(truncate(moved, (off_t)all - 4), 0);
    data = pm_malloc(LARGE * 4);
    assert_int_equal(pm_onnx_floats(pm_onnx_tensor_find(back, "last"), 0, LARGE, data), PM_EDATA);
    pm_free(data);
    pm_onnx_close(&back);
    assert_int_equal(pm_onnx_read(in_folder("moved/c.onnx"), &back), PM_EDATA);
    assert_contains(pm_error_text(), strrchr(c, '/') + 1);
    assert_contains(pm_error_text(), "'last'");
    assert_int_equal(unlink(moved), 0);
    assert_int_equal(pm_onnx_read(in_folder("moved/c.onnx"), &back), PM_EDATA);
    assert_contains(pm_error_text(), "No such file");
    assert_int_equal(stat(in_folder("moved/c.onnx"), &st), 0);
    pm_free(c);
    pm_free(d);
    pm_free(moved);
}

#define LEFT "again/m.onnx.data.tmp-1999999999-abcdef" /* by an export with data beside that was
                                                        * killed */
/* Data files of an earlier export are removed when no model names them. Other programs' files
 * stay. */
static void former_data_go(void **state)
{
    static const float other[LARGE] = { 1 };
    struct pm_onnx_model *m = make_model(), *back = NULL;
    char *first = NULL, *second = NULL, *third = NULL;

    (void)state;
    m->producer = "pumice";
    assert_int_equal(mkdir(in_folder("again"), 0777), 0);
    assert_int_equal(pm_onnx_write(m, in_folder("again/m.onnx"), true, &first), 0);
    assert_int_equal(pm_file_write(in_folder("again/m.onnx.data"), "theirs", 6), 0);
    assert_int_equal(pm_onnx_write(m, in_folder("again/m.onnx"), true, &second), 0);
    assert_string_equal(first, second); /* the same bytes */
    assert_true(pm_file_exists(first));
    m->tensors[2].fill = NULL;
    m->tensors[2].data = other;
    assert_int_equal(pm_onnx_write(m, in_folder("again/m.onnx"), true, &third), 0);
    assert_string_not_equal(first, third);
    assert_false(pm_file_exists(first));
    assert_true(pm_file_exists(third));
    assert_true(pm_file_exists(in_folder("again/m.onnx.data")));
    /* A model that was moved away keeps its data file. */
    assert_int_equal(rename(in_folder("again/m.onnx"), in_folder("again/away.onnx")), 0);
    assert_int_equal(pm_onnx_write(m, in_folder("again/m.onnx"), false, NULL), 0);
    assert_true(pm_file_exists(third));
    assert_int_equal(rename(in_folder("again/away.onnx"), in_folder("again/m.onnx")), 0);
    assert_int_equal(pm_file_write(in_folder(LEFT), "cut", 3), 0);
    pm_temporaries_clean(in_folder("x")); /* after another folder this one is listed again */
    assert_int_equal(pm_onnx_write(m, in_folder("again/m.onnx"), false, NULL), 0);
    assert_false(pm_file_exists(third)); /* all weights are inside now */
    assert_false(pm_file_exists(in_folder(LEFT)));
    assert_int_equal(pm_onnx_read(in_folder("again/m.onnx"), &back), 0);
    pm_onnx_close(&back);
    /* A model of another program whose data file has such a name. */
    m->producer = "other";
    pm_free(second);
    assert_int_equal(pm_onnx_write(m, in_folder("again/m.onnx"), true, &second), 0);
    assert_int_equal(pm_onnx_write(m, in_folder("again/m.onnx"), false, NULL), 0);
    assert_true(pm_file_exists(second));
    pm_free(first);
    pm_free(second);
    pm_free(third);
    pm_onnx_close(&m);
}

static size_t count_files(const char *path)
{
    struct pm_arena *a = pm_arena_create();
    char **names;
    size_t count;

    assert_int_equal(pm_list_folder(a, path, &names, &count), 0);
    pm_arena_destroy(&a);
    return count;
}

static void failed_write_keeps_the_former(void **state)
{
    struct pm_onnx_model *m = make_model();

    (void)state;
    assert_int_equal(mkdir(in_folder("kept"), 0777), 0);
    for (int beside = 0; beside < 2; beside++) {
        assert_int_equal(pm_onnx_write(m, in_folder("kept/m.onnx"), beside, NULL), 0);
        const size_t files = count_files(in_folder("kept"));
        m->tensors[5].fill_from = weights;
        assert_int_equal(pm_onnx_write(m, in_folder("kept/m.onnx"), beside, NULL), PM_EFAIL);
        m->tensors[5].fill_from = NULL;
        assert_contains(pm_error_text(), "filling ends here");
        assert_int_equal(count_files(in_folder("kept")), files);
        struct pm_onnx_model *back = NULL;
        assert_int_equal(pm_onnx_read(in_folder("kept/m.onnx"), &back), 0);
        check_model(back);
        pm_onnx_close(&back);
    }
    assert_int_equal(pm_onnx_write(m, in_folder("no/such"), false, NULL), PM_EFAIL);
    assert_contains(pm_error_text(), "no/such");
    pm_onnx_close(&m);
}

static void what_is_not_written(void **state)
{
    struct pm_onnx_model *m = make_model();

    (void)state;
    assert_int_equal(mkdir(in_folder("none"), 0777), 0);
    m->nodes[0].attrs[0].type = PM_ONNX_GRAPH;
    assert_int_equal(pm_onnx_write(m, in_folder("none/m.onnx"), false, NULL), PM_EDATA);
    assert_contains(pm_error_text(), "'conv/1' (Conv): attribute 'group'");
    m->nodes[0].attrs[0].type = PM_ONNX_TENSOR;
    m->nodes[0].attrs[0].t = &(struct pm_onnx_tensor){ .name = "odd", .type = PM_DTYPE_OTHER };
    assert_int_equal(pm_onnx_write(m, in_folder("none/m.onnx"), false, NULL), PM_EDATA);
    assert_contains(pm_error_text(),
                    "the tensor of attribute 'group' has a type that Pumice does not");
    m->nodes[0].attrs[0].type = PM_ONNX_INT;
    pm_onnx_add_tensor(m, "huge", PM_DTYPE_F32, 2, (const int64_t[]){ 30000, 20000 }, NULL)->fill =
        fill_quarters;
    assert_int_equal(pm_onnx_write(m, in_folder("none/m.onnx"), false, NULL), PM_ECONFIG);
    assert_contains(pm_error_text(), "24000405");
    assert_contains(pm_error_text(), "beside");
    m->tensors[6].type = PM_DTYPE_OTHER;
    assert_int_equal(pm_onnx_write(m, in_folder("none/m.onnx"), true, NULL), PM_EDATA);
    assert_contains(pm_error_text(), "'huge'");
    assert_int_equal(count_files(in_folder("none")), 0);
    pm_onnx_close(&m);
}

static void as_a_file_of_tensors(void **state)
{
    struct pm_onnx_model *m = make_model();
    struct pm_tensor_file *f = NULL;
    float got[LARGE];

    (void)state;
    assert_int_equal(pm_onnx_write(m, in_folder("t.onnx"), false, NULL), 0);
    assert_int_equal(pm_onnx_write(m, in_folder("t.other"), false, NULL), 0);
    pm_onnx_close(&m);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pm_tensor_file_open(in_folder(i ? "t.other" : "t.onnx"), &f), 0);
        assert_string_equal(pm_tensor_file_format(f), "ONNX");
        assert_int_equal(pm_tensor_file_count(f), 6);
        const struct pm_file_tensor *t = pm_tensor_file_find(f, "large");
        assert_int_equal(t->rank, 2);
        assert_int_equal(t->dim[0], LARGE);
        assert_int_equal(pm_tensor_file_floats(f, t, 100, LARGE - 100, got), 0);
        assert_true(got[0] == 25);
        assert_true(pm_tensor_file_floats(f, t, 100, LARGE, got) < 0);
        assert_int_equal(pm_tensor_file_floats(f, pm_tensor_file_find(f, "scalar"), 0, 1, got), 0);
        assert_true(got[0] == 1.5f);
        assert_string_equal(pm_tensor_file_meta(f, "key"), "value");
        pm_tensor_file_close(&f);
    }
    assert_int_equal(pm_file_write(in_folder("bad.onnx"), "PK\3\4 no model", 13), 0);
    assert_int_equal(pm_tensor_file_open(in_folder("bad.onnx"), &f), PM_EDATA);
    assert_contains(pm_error_text(), "bad.onnx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(body),
        cmocka_unit_test(weights_beside),
        cmocka_unit_test(former_data_go),
        cmocka_unit_test(failed_write_keeps_the_former),
        cmocka_unit_test(what_is_not_written),
        cmocka_unit_test(as_a_file_of_tensors),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
