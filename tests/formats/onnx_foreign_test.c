/* ONNX models and tensors of other programs have the expected counts and sums. */
#include "base/shared_data.h"
#include "formats/onnx_bytes.h"

/* Nodes, attributes, initializers, inputs and the last operator; count and sum of magnitudes of
 * output_0.pb, and sum of magnitudes of the initializers, computed by the onnx package 1.23. */
static const struct {
    const char *name;
    size_t nodes;
    int attrs;
    size_t tensors, inputs;
    const char *last;
    uint64_t count;
    double sum, weights;
} foreign[] = {
    { "light/light_bvlc_alexnet", 40, 56, 17, 1, "Softmax", 1000, 1.00000005, 48502 },
    { "light/light_inception_v1", 237, 325, 118, 1, "Softmax", 1000, 1.00000005, 40921.5554 },
    { "light/light_resnet50", 415, 453, 269, 1, "Softmax", 1000, 1.00000005, 161705.041 },
    { "light/light_squeezenet", 105, 135, 52, 1, "Softmax", 1000, 1.00000005, 10652.0792 },
    { "light/light_vgg19", 82, 104, 39, 1, "Softmax", 1000, 1.00000005, 92769.2058 },
    { "pytorch-converted/test_AvgPool2d", 1, 3, 0, 1, "AveragePool", 54, 20.1142954, 0 },
    { "pytorch-converted/test_AvgPool2d_stride", 1, 3, 0, 1, "AveragePool", 54, 18.6686396, 0 },
    { "pytorch-converted/test_BatchNorm2d_eval",
      1, 3, 4, 1, "BatchNormalization", 216, 101.931612, 4.69157833 },
    { "pytorch-converted/test_BatchNorm2d_momentum_eval",
      1, 3, 4, 1, "BatchNormalization", 216, 116.212434, 5.04311991 },
    { "pytorch-converted/test_BatchNorm3d_momentum_eval",
      1, 3, 4, 1, "BatchNormalization", 384, 133.70275, 4.30142927 },
    { "pytorch-converted/test_ConstantPad2d", 1, 3, 0, 1, "Pad", 462, 803.839233, 0 },
    { "pytorch-converted/test_Conv2d_depthwise", 1, 5, 2, 1, "Conv", 128, 34.4544114, 3.60597452 },
    { "pytorch-converted/test_Conv2d_depthwise_padded",
      1, 5, 2, 1, "Conv", 288, 60.3181251, 3.03845277 },
    { "pytorch-converted/test_Conv2d_depthwise_with_multiplier",
      1, 5, 2, 1, "Conv", 256, 68.7494433, 7.05287239 },
    { "pytorch-converted/test_Conv2d_dilated", 1, 5, 2, 1, "Conv", 36, 13.2181293, 5.23341132 },
    { "pytorch-converted/test_Conv2d_groups_thnn",
      1, 5, 2, 1, "Conv", 192, 56.9281798, 7.05481073 },
    { "pytorch-converted/test_Conv2d_no_bias", 1, 5, 1, 1, "Conv", 128, 62.2026965, 7.50550647 },
    { "pytorch-converted/test_Conv2d_strided", 1, 5, 2, 1, "Conv", 32, 18.7894445, 10.8695898 },
    { "pytorch-converted/test_ConvTranspose2d",
      1, 6, 2, 1, "ConvTranspose", 960, 199.343028, 10.6642108 },
    { "pytorch-converted/test_ELU", 1, 1, 0, 1, "Elu", 30, 24.1772968, 0 },
    { "pytorch-converted/test_LeakyReLU", 1, 1, 0, 1, "LeakyRelu", 30, 13.6989978, 0 },
    { "pytorch-converted/test_Linear", 1, 4, 2, 1, "Gemm", 32, 18.0302152, 14.1580803 },
    { "pytorch-converted/test_Linear_no_bias", 2, 1, 1, 1, "MatMul", 32, 13.6753511, 13.4415774 },
    { "pytorch-converted/test_MaxPool2d", 1, 3, 0, 1, "MaxPool", 48, 70.8290671, 0 },
    { "pytorch-converted/test_PReLU_1d_multiparam", 1, 0, 1, 1, "PRelu", 24, 6.40682285, 0.75 },
    { "pytorch-converted/test_PReLU_2d", 1, 0, 1, 1, "PRelu", 120, 64.4983597, 0.25 },
    { "pytorch-converted/test_PixelShuffle", 5, 3, 0, 1, "Reshape", 144, 122.560939, 0 },
    { "pytorch-converted/test_ReLU", 1, 0, 0, 1, "Relu", 120, 51.6068934, 0 },
    { "pytorch-converted/test_Sigmoid", 1, 0, 0, 1, "Sigmoid", 120, 60.0809043, 0 },
    { "pytorch-converted/test_Softmax", 1, 1, 0, 1, "Softmax", 200, 10, 0 },
    { "pytorch-converted/test_ZeroPad2d", 1, 3, 0, 1, "Pad", 462, 79.0199928, 0 },
    { "pytorch-converted/test_log_softmax_dim3", 1, 1, 0, 1, "LogSoftmax", 120, 237.123975, 0 },
    { "pytorch-converted/test_softmax_functional_dim3", 1, 1, 0, 1, "Softmax", 120, 23.9999999, 0 },
    { "pytorch-converted/test_softmax_lastdim", 1, 1, 0, 1, "Softmax", 256, 1.99999997, 0 },
    { "pytorch-operator/test_operator_add_broadcast", 1, 2, 0, 2, "Add", 6, INFINITY, 0 },
    { "pytorch-operator/test_operator_addmm", 2, 5, 0, 3, "Gemm", 8, 9.91395414, 0 },
    { "pytorch-operator/test_operator_clip", 1, 2, 0, 1, "Clip", 12, 4.02424589, 0 },
    { "pytorch-operator/test_operator_concat2", 1, 1, 0, 2, "Concat", 12, 6.52320197, 0 },
    { "pytorch-operator/test_operator_convtranspose",
      1, 6, 1, 1, "ConvTranspose", 1080, 134.406229, 7.85443098 },
    { "pytorch-operator/test_operator_flatten", 1, 1, 0, 1, "Flatten", 24, 17.3046221, 0 },
    { "pytorch-operator/test_operator_mm", 2, 4, 0, 2, "Gemm", 8, 4.95697725, 0 },
    { "pytorch-operator/test_operator_pad", 1, 2, 0, 1, "Pad", 27, 55, 0 },
    { "pytorch-operator/test_operator_reduced_mean", 1, 2, 0, 1, "ReduceMean", 8, 3.10528207, 0 },
    { "pytorch-operator/test_operator_reduced_mean_keepdim",
      1, 2, 0, 1, "ReduceMean", 8, 3.10528207, 0 },
};

static double magnitude(const struct pm_onnx_tensor *t)
{
    float *v = pm_malloc((size_t)t->count * 4);
    double sum = 0;

    assert_int_equal(pm_onnx_floats(t, 0, (size_t)t->count, v), 0);
    for (uint64_t i = 0; i < t->count; i++)
        sum += fabs((double)v[i]);
    pm_free(v);
    return sum;
}

static void assert_close(double a, double b)
{
    if (a != b && !(fabs(a - b) <= 1e-6 * fabs(b))) /* infinite values must be equal */
        fail_msg("%.9g is not %.9g", a, b);
}

static void foreign_models(void **state)
{
    const char *top = shared_data("onnx");
    struct pm_arena *a = pm_arena_create();

    (void)state;
    for (size_t i = 0; i < PM_COUNT(foreign); i++) {
        const char *at = pm_arena_printf(a, "%s/%s", top, foreign[i].name);
        const bool net = strncmp(foreign[i].name, "light", 5) == 0;
        struct pm_onnx_model *m = NULL;
        struct pm_onnx_tensor out;
        int attrs = 0;
        double sum = 0;
        if (pm_onnx_read(pm_arena_printf(a, net ? "%s.onnx" : "%s/model.onnx", at), &m) < 0)
            fail_msg("%s", pm_error_text());
        assert_int_equal(m->ir_version, 3);
        assert_int_equal(m->node_count, foreign[i].nodes);
        assert_int_equal(m->tensor_count, foreign[i].tensors);
        assert_int_equal(m->input_count, foreign[i].inputs); /* without the initializers */
        assert_string_equal(m->nodes[m->node_count - 1].op, foreign[i].last);
        for (size_t k = 0; k < m->node_count; k++)
            attrs += m->nodes[k].attr_count;
        assert_int_equal(attrs, foreign[i].attrs);
        for (size_t k = 0; k < m->tensor_count; k++)
            sum += magnitude(&m->tensors[k]);
        assert_close(sum, foreign[i].weights);
        const char *given = net ? "%s_output_0.pb" : "%s/test_data_set_0/output_0.pb";
        assert_int_equal(pm_onnx_read_tensor(pm_arena_printf(a, given, at), a, &out), 0);
        assert_int_equal(out.count, foreign[i].count);
        assert_close(magnitude(&out), foreign[i].sum);
        pm_onnx_close(&m);
    }
    struct pm_onnx_model *m = NULL;
    const char *dilated = "%s/pytorch-converted/test_Conv2d_dilated/model.onnx";
    assert_int_equal(pm_onnx_read(pm_arena_printf(a, dilated, top), &m), 0);
    const struct pm_onnx_attr *d = pm_onnx_attr(&m->nodes[0], "dilations");
    assert_int_equal(d->count, 2);
    assert_true(d->ints[0] == 2 && d->ints[1] == 2);
    assert_int_equal(pm_onnx_attr_int(&m->nodes[0], "group", 0), 1);
    assert_int_equal(m->inputs[0].dim[1], 3);
    pm_onnx_close(&m);
    pm_arena_destroy(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(foreign_models) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
