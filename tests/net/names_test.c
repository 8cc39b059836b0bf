/* Names: PyTorch's names and layouts are mapped to Pumice's, and files of other models are
 * refused. The files have names and shapes only; the value of an element is its index.
 * torch_nets_test.c compares what whole nets compute. */
#include "../base/unit.h"

#include <pumice/names.h>

#include "formats/tensor_format.h"
#include "named_net.h"

/* ---- files ------------------------------------------------------------------------------- */

static int read_made(const struct pm_tensor_file *f, const struct pm_file_tensor *t, uint64_t begin,
                     size_t size, void *dst)
{
    uint8_t *out = dst;

    (void)f;
    for (size_t i = 0; i < size; i++) { /* floats: the index of the element */
        const float v = (float)((begin + i) / 4);
        uint8_t bytes[4];
        memcpy(bytes, &v, 4);
        out[i] = t->type == PM_DTYPE_F32 ? bytes[(begin + i) % 4] : (uint8_t)(begin + i);
    }
    return PM_OK;
}

static struct pm_tensor_file *file(void)
{
    static const struct pm_tensor_format format = { .name = "made" };
    struct pm_tensor_file *f = pm_tensor_file_make("made.pth", &format);

    f->read = read_made;
    return f;
}

static void put(struct pm_tensor_file *f, const char *name, int rank, int a, int b, int c, int d)
{
    struct pm_file_tensor *t = pm_tensor_file_add(f, name);

    t->type = PM_DTYPE_F32;
    t->rank = rank;
    const int64_t dim[4] = { a, b, c, d };
    memcpy(t->dim, dim, sizeof dim);
    assert_int_equal(pm_tensor_file_measure(f, t), PM_OK);
}

static void put_bn(struct pm_tensor_file *f, const char *module, int c)
{
    static const char *const ends[] = { "weight", "bias", "running_mean", "running_var" };
    char name[200];

    for (int i = 0; i < 4; i++) {
        snprintf(name, sizeof name, "%.150s.%s", module, ends[i]);
        put(f, name, 1, c, 0, 0, 0);
    }
    snprintf(name, sizeof name, "%.150s.num_batches_tracked", module);
    put(f, name, 0, 0, 0, 0, 0);
}

static void put_conv_bn(struct pm_tensor_file *f, const char *prefix, const char *conv,
                        const char *bn, int out, int in, int kernel)
{
    char name[200];

    snprintf(name, sizeof name, "%s%s.weight", prefix, conv);
    put(f, name, 4, out, in, kernel, kernel);
    snprintf(name, sizeof name, "%s%s", prefix, bn);
    put_bn(f, name, out);
}

/* The names of a torchvision resnet; groups and width for resnext and wide_resnet. */
struct resnet { int units[4], groups, width; };
static const struct resnet resnet50 = { { 3, 4, 6, 3 }, 1, 64 };

static struct pm_tensor_file *resnet_file(const struct resnet *r, const char *prefix)
{
    struct pm_tensor_file *f = file();
    char name[200];
    int in = 64;

    put_conv_bn(f, prefix, "conv1", "bn1", 64, 3, 7);
    for (int block = 0; block < 4; block++)
        for (int i = 0; i < r->units[block]; i++) {
            const int width = r->width << block, out = 256 << block;
            char scope[100];
            snprintf(scope, sizeof scope, "%slayer%d.%d.", prefix, block + 1, i);
            put_conv_bn(f, scope, "conv1", "bn1", width, in, 1);
            put_conv_bn(f, scope, "conv2", "bn2", width, width / r->groups, 3);
            put_conv_bn(f, scope, "conv3", "bn3", out, width, 1);
            if (i == 0)
                put_conv_bn(f, scope, "downsample.0", "downsample.1", out, in, 1);
            in = out;
        }
    snprintf(name, sizeof name, "%sfc.weight", prefix);
    put(f, name, 2, 1000, 2048, 0, 0);
    snprintf(name, sizeof name, "%sfc.bias", prefix);
    put(f, name, 1, 1000, 0, 0, 0);
    return f;
}

/* ---- nets -------------------------------------------------------------------------------- */

static struct pm_variables *variables(const char *name, int size, enum pm_conventions conventions)
{
    struct pm_heads heads = { 0 };
    struct pm_net *net = named_net(name, 1, size, size, 1000, NULL, &heads);
    struct pm_variables *v = NULL;

    assert_int_equal(net->error, PM_OK);
    assert_int_equal(pm_variables_create(NULL, net, false, NULL, &v), PM_OK);
    v->conventions = conventions;
    pm_net_destroy(&net);
    return v;
}

static void expect_refusals(const char *name, int size, enum pm_conventions conventions,
                            struct pm_tensor_file *f, const char *words)
{
    struct pm_variables *v = variables(name, size, conventions);
    struct pm_tensor_file *out = NULL;

    assert_int_equal(pm_tensor_file_finish(f), PM_OK);
    assert_int_equal(pm_names_torch(v, f, &out), PM_EDATA);
    assert_null(out);
    assert_contains(pm_error_text(), words);
    assert_contains(pm_error_text(), "made.pth");
    pm_tensor_file_close(&f);
    pm_variables_destroy(&v);
}

/* Opens f through the map of names. Takes ownership of f. */
static struct pm_tensor_file *mapped(const char *name, int size, struct pm_tensor_file *f)
{
    struct pm_variables *v = variables(name, size, PM_CONVENTIONS_TORCH);
    struct pm_tensor_file *out = NULL;

    assert_int_equal(pm_tensor_file_finish(f), PM_OK);
    assert_true(pm_names_are_torch(f));
    if (pm_names_torch(v, f, &out))
        fail_msg("%s", pm_error_text());
    pm_variables_destroy(&v);
    return out;
}

static const struct pm_file_tensor *find(const struct pm_tensor_file *f, const char *name, int rank,
                                         int a, int b, int c, int d)
{
    const struct pm_file_tensor *t = pm_tensor_file_find(f, name);
    const int64_t dim[4] = { a, b, c, d };

    if (!t)
        fail_msg("no %s", name);
    assert_int_equal(t->rank, rank);
    for (int i = 0; i < rank; i++)
        assert_int_equal(t->dim[i], dim[i]);
    return t;
}

/* ---- tests ------------------------------------------------------------------------------- */

static void every_variable_of_resnet(void **state)
{
    static const char *const prefixes[] = { "", "module.", "model.backbone." };
    (void)state;
    for (size_t k = 0; k < PM_COUNT(prefixes); k++) {
        struct pm_tensor_file *f = mapped("resnet_v1_50", 64, resnet_file(&resnet50, prefixes[k]));
        struct pm_variables *v = variables("resnet_v1_50", 64, PM_CONVENTIONS_TORCH);
        for (int i = 0; i < v->count; i++)
            if (!pm_tensor_file_find(f, v->list[i].name))
                fail_msg("no %s", v->list[i].name);
        assert_int_equal(pm_tensor_file_count(f), v->count);
        find(f, "resnet_v1_50/block3/unit_6/bottleneck_v1/conv2/weights", 4, 3, 3, 256, 256);
        find(f, "resnet_v1_50/block4/unit_1/bottleneck_v1/shortcut/weights", 4, 1, 1, 1024, 2048);
        find(f, "resnet_v1_50/logits/weights", 4, 1, 1, 2048, 1000);
        pm_tensor_file_close(&f);
        pm_variables_destroy(&v);
    }
}

/* A file may also hold averages under the same names with a prefix, as timm's checkpoints do.
 * The shortest prefix without a word for averages is used, in any order. */
static void averages_are_not_the_weights(void **state)
{
    static const char *const rows[][2] = { /* the prefix that is used, and the other one */
        { "state_dict.", "state_dict_ema." }, { "model.", "ema." },
        { "model.module.", "ema.module." },   { "model.", "model_ema." },
        { "net.schema.", "ema." },            { "a.", "a2." },
    };
    (void)state;

    for (size_t k = 0; k < PM_COUNT(rows); k++) {
        struct pm_tensor_file *f = resnet_file(&resnet50, rows[k][0]);
        char name[64];

        snprintf(name, sizeof name, "%slayer1.0.conv1.weight", rows[k][1]);
        put(f, name, 4, 64, 64, 1, 1);
        put(f, "epoch.weight", 1, 1, 0, 0, 0);
        f = mapped("resnet_v1_50", 64, f);
        assert_int_equal(pm_tensor_file_count(f), 267);
        pm_tensor_file_close(&f);
    }
    struct pm_tensor_file *f = mapped("resnet_v1_50", 64, resnet_file(&resnet50, "ema."));
    assert_int_equal(pm_tensor_file_count(f), 267);
    pm_tensor_file_close(&f);
}

static void convolutions_are_turned(void **state)
{
    enum { O = 64, I = 3, K = 7, COUNT = O * I * K * K };
    static float whole[COUNT], part[100];
    (void)state;
    struct pm_tensor_file *f = mapped("resnet_v1_50", 64, resnet_file(&resnet50, ""));
    const struct pm_file_tensor *t = find(f, "resnet_v1_50/conv1/weights", 4, K, K, I, O);

    assert_int_equal(pm_tensor_file_floats(f, t, 0, COUNT, whole), PM_OK);
    for (int h = 0; h < K; h++)
        for (int w = 0; w < K; w++)
            for (int i = 0; i < I; i++)
                for (int o = 0; o < O; o++)
                    assert_true(whole[((h * K + w) * I + i) * O + o] ==
                                (float)(((o * I + i) * K + h) * K + w));
    assert_int_equal(pm_tensor_file_floats(f, t, 777, PM_COUNT(part), part), PM_OK);
    assert_memory_equal(part, whole + 777, sizeof part);
    t = find(f, "resnet_v1_50/conv1/BatchNorm/gamma", 1, O, 0, 0, 0);
    assert_int_equal(pm_tensor_file_floats(f, t, 0, O, whole), PM_OK);
    assert_true(whole[63] == 63);
    pm_tensor_file_close(&f);
}

/* Elements of 16 bits; each byte encodes its place. */
static void small_elements_are_turned(void **state)
{
    (void)state;
    struct pm_tensor_file *f = resnet_file(&resnet50, "");
    uint8_t bytes[2];

    for (size_t i = 0; i < f->count; i++)
        if (strcmp(f->list[i].name, "fc.weight") == 0) {
            f->list[i].type = PM_DTYPE_F16;
            assert_int_equal(pm_tensor_file_measure(f, &f->list[i]), PM_OK);
        }
    f = mapped("resnet_v1_50", 64, f);
    const struct pm_file_tensor *t = find(f, "resnet_v1_50/logits/weights", 4, 1, 1, 2048, 1000);
    for (int i = 0; i < 2048; i += 511)
        for (int o = 0; o < 1000; o += 333) {
            assert_int_equal(pm_tensor_file_bytes(f, t, 2 * (uint64_t)(i * 1000 + o), 2, bytes),
                             PM_OK);
            assert_int_equal(bytes[0], (uint8_t)(2 * (o * 2048 + i)));
            assert_int_equal(bytes[1], (uint8_t)(2 * (o * 2048 + i) + 1));
        }
    pm_tensor_file_close(&f);
}

static void depthwise_weights_are_turned(void **state)
{
    float x[9 * 32];
    (void)state;
    struct pm_tensor_file *f = file();

    put_conv_bn(f, "", "features.0.0", "features.0.1", 32, 3, 3);
    put_conv_bn(f, "", "features.1.conv.0.0", "features.1.conv.0.1", 32, 1, 3);
    put_conv_bn(f, "", "features.7.conv.1.0", "features.7.conv.1.1", 192, 1, 3);
    f = mapped("mobilenet_v2", 64, f);
    const struct pm_file_tensor *t =
        find(f, "MobilenetV2/expanded_conv/depthwise/depthwise_weights", 4, 3, 3, 32, 1);
    assert_int_equal(pm_tensor_file_floats(f, t, 0, PM_COUNT(x), x), PM_OK);
    for (int k = 0; k < 9; k++)
        for (int c = 0; c < 32; c++)
            assert_true(x[k * 32 + c] == (float)(c * 9 + k));
    t = find(f, "MobilenetV2/expanded_conv_6/depthwise/depthwise_weights", 4, 3, 3, 192, 1);
    assert_string_equal(pm_names_origin(f, t), "features.7.conv.1.0.weight");
    find(f, "MobilenetV2/expanded_conv_6/depthwise/BatchNorm/moving_variance", 1, 192, 0, 0, 0);
    pm_tensor_file_close(&f);
}

/* Rows of a first fully connected layer: channels first in PyTorch, channels last in Pumice. */
static void flattened_maps_are_turned(void **state)
{
    enum { C = 512, O = 3 };
    static float x[49 * C * O];
    (void)state;
    struct pm_tensor_file *f = file();

    put(f, "features.0.weight", 4, 64, 3, 3, 3);
    put(f, "features.28.weight", 4, 512, 512, 3, 3);
    put(f, "classifier.0.weight", 2, O, C * 49, 0, 0);
    put(f, "classifier.3.bias", 1, 4096, 0, 0, 0);
    f = mapped("vgg_16", 224, f);
    const struct pm_file_tensor *t = find(f, "vgg_16/fc6/weights", 4, 7, 7, C, O);
    assert_int_equal(pm_tensor_file_floats(f, t, 0, PM_COUNT(x), x), PM_OK);
    for (int p = 0; p < 49; p++)
        for (int c = 0; c < C; c++)
            for (int o = 0; o < O; o++)
                assert_true(x[(p * C + c) * O + o] == (float)((o * C + c) * 49 + p));
    find(f, "vgg_16/conv5/conv5_3/weights", 4, 3, 3, 512, 512);
    find(f, "vgg_16/fc7/biases", 1, 4096, 0, 0, 0);
    pm_tensor_file_close(&f);
}

static void other_resnets_are_refused(void **state)
{
    static const struct { struct resnet r; const char *words; } rows[] = {
        { { { 3, 4, 23, 3 }, 1, 64 }, "layer3 has 23 units" },
        { { { 3, 4, 6, 3 }, 32, 128 }, "grouped convolution of 32 groups" },
        { { { 3, 4, 6, 3 }, 1, 128 }, "128 channels wide" },
    };
    struct pm_tensor_file *f;
    (void)state;

    for (size_t i = 0; i < PM_COUNT(rows); i++)
        expect_refusals("resnet_v1_50", 64, PM_CONVENTIONS_TORCH,
                        resnet_file(&rows[i].r, "module."), rows[i].words);
    f = resnet_file(&resnet50, "");
    put(f, "layer1.0.se.fc1.weight", 4, 16, 256, 1, 1);
    expect_refusals("resnet_v1_50", 64, PM_CONVENTIONS_TORCH, f, "squeeze-and-excitation");
    f = resnet_file(&resnet50, "");
    put(f, "layer2.0.downsample.2.weight", 1, 512, 0, 0, 0);
    expect_refusals("resnet_v1_50", 64, PM_CONVENTIONS_TORCH, f, "shortcuts that average");
    f = resnet_file(&resnet50, "");
    put(f, "layer1.0.attention.weight", 1, 512, 0, 0, 0);
    expect_refusals("resnet_v1_50", 64, PM_CONVENTIONS_TORCH, f,
                    "no variable for the tensor 'layer1.0.attention.weight'");
    f = file();
    put(f, "layer1.0.conv1.weight", 4, 64, 64, 3, 3);
    put(f, "layer1.0.conv2.weight", 4, 64, 64, 3, 3);
    expect_refusals("resnet_v1_50", 64, PM_CONVENTIONS_TORCH, f, "have two convolutions");
}

static void other_files_are_refused(void **state)
{
    struct pm_tensor_file *f;
    (void)state;

    expect_refusals("resnet_v1_50", 64, PM_CONVENTIONS_TENSORFLOW, resnet_file(&resnet50, ""),
                    "set model.conventions=torch");
    expect_refusals("vgg_16", 224, PM_CONVENTIONS_TORCH, resnet_file(&resnet50, ""),
                    "the names are those of resnet18, 34, 50, 101 or 152");
    expect_refusals("lenet", 28, PM_CONVENTIONS_OWN, resnet_file(&resnet50, ""),
                    "cannot translate for this net");
    f = file();
    put(f, "features.0.weight", 4, 64, 3, 3, 3);
    put_bn(f, "features.1", 64);
    expect_refusals("vgg_16", 224, PM_CONVENTIONS_TORCH, f, "batch norm after its convolutions");
    f = file();
    put(f, "features.0.weight", 4, 64, 3, 11, 11);
    expect_refusals("vgg_16", 224, PM_CONVENTIONS_TORCH, f, "so it is not a vgg");
    f = file();
    put(f, "features.0.weight", 4, 64, 3, 3, 3);
    put(f, "classifier.0.weight", 2, 4096, 9216 + 1, 0, 0);
    expect_refusals("vgg_16", 224, PM_CONVENTIONS_TORCH, f, "its inputs do not fit");
}

static void our_own_names_are_not_torch(void **state)
{
    struct pm_tensor_file *f = file();
    (void)state;

    put(f, "resnet_v1_50/conv1/weights", 4, 7, 7, 3, 64);
    assert_int_equal(pm_tensor_file_finish(f), PM_OK);
    assert_false(pm_names_are_torch(f));
    pm_tensor_file_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_variable_of_resnet),
        cmocka_unit_test(averages_are_not_the_weights),
        cmocka_unit_test(convolutions_are_turned),
        cmocka_unit_test(small_elements_are_turned),
        cmocka_unit_test(depthwise_weights_are_turned),
        cmocka_unit_test(flattened_maps_are_turned),
        cmocka_unit_test(other_resnets_are_refused),
        cmocka_unit_test(other_files_are_refused),
        cmocka_unit_test(our_own_names_are_not_torch),
    };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
