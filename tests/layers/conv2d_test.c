/* conv2d and depthwise_conv2d by their definition: seven loops. */
#include "conv_ref.h"

struct conv {
    int kernel[2], stride[2], dilation[2], before[2], out[2];
};

static struct conv geometry(const struct ref *r)
{
    struct conv g;
    double pad[4] = { 0 };

    ref_numbers(r, "pad", pad, 4);
    for (int i = 0; i < 2; i++) {
        g.kernel[i] = ref_pair(r, "kernel", i, 3);
        g.stride[i] = ref_pair(r, "stride", i, 1);
        g.dilation[i] = ref_pair(r, "dilation", i, 1);
        g.out[i] = ref_window(r, "same", r->in[0].shape.dim[1 + i], g.kernel[i], g.stride[i],
                              g.dilation[i], (int)pad[2 * i], (int)pad[2 * i + 1], &g.before[i]);
    }
    return g;
}

/* Output channel k reads inputs first .. first + count - 1. weight(c - first) lies at ((kh * KW
 * + kw) * count + c - first) * filters + k, which is also the order of depthwise weights. */
static void sums(struct ref *r, int filters, int groups)
{
    const struct conv g = geometry(r);
    const struct ref_array *x = &r->in[0], *w = &r->var[0];
    const int *in = x->shape.dim, count = in[3] / groups;

    ref_output(r, PM_SHAPE4(in[0], g.out[0], g.out[1], filters));
    for (size_t i = 0; i < r->y.count; i++) {
        const int k = i % filters, ow = i / filters % g.out[1];
        const int oh = i / filters / g.out[1] % g.out[0];
        const int n = i / filters / g.out[1] / g.out[0];
        const int first = k / (filters / groups) * count;

        for (int kh = 0; kh < g.kernel[0]; kh++)
            for (int kw = 0; kw < g.kernel[1]; kw++) {
                const int h = oh * g.stride[0] - g.before[0] + kh * g.dilation[0];
                const int v = ow * g.stride[1] - g.before[1] + kw * g.dilation[1];

                if (h < 0 || h >= in[1] || v < 0 || v >= in[2])
                    continue;
                for (int c = 0; c < count; c++) {
                    const double term = x->v[ref_at(x, n, h, v, first + c)] *
                        w->v[((size_t)(kh * g.kernel[1] + kw) * count + c) * filters + k];
                    r->y.v[i] += term;
                    r->y.mag[i] += fabs(term);
                }
            }
    }
}

static void conv2d(struct ref *r)
{
    sums(r, (int)ref_number(r, "filters", 32), (int)ref_number(r, "groups", 1));
    ref_tail(r);
}

static void depthwise(struct ref *r)
{
    const int channels = r->in[0].shape.dim[3];

    sums(r, channels * (int)ref_number(r, "multiplier", 1), channels);
    ref_tail(r);
}

static const struct check_case conv2d_cases[] = {
    { "conv2d filters=4", "2x5x7x3" },
    { "conv2d filters=5 bias=false", "1x6x6x17" },
    { "conv2d filters=17 kernel=1 bias=false", "2x4x5x5" },
    { "conv2d filters=8 kernel=1 stride=2", "2x5x6x16" },
    { "conv2d filters=3 kernel=[3,5] padding=valid", "1x7x9x4" },
    { "conv2d filters=3 kernel=[2,4]", "1x5x5x3" },
    /* TensorFlow's SAME with stride 2 on even sizes pads only below. */
    { "conv2d filters=4 stride=2", "2x8x6x3" },
    { "conv2d filters=4 stride=2", "1x7x9x4" },
    { "conv2d filters=4 stride=3", "1x8x10x5" },
    { "conv2d filters=4 stride=[1,2] kernel=[5,3]", "1x7x8x3" },
    { "conv2d filters=8 kernel=7 stride=2", "1x16x16x3" },
    { "conv2d filters=8 kernel=7 stride=2 padding=explicit pad=[3,3,3,3]", "1x16x16x3" },
    { "conv2d filters=4 padding=explicit pad=[0,2,1,0]", "1x6x5x3" },
    { "conv2d filters=4 stride=2 padding=explicit pad=[3,0,0,4]", "1x7x6x3" },
    { "conv2d filters=3 dilation=2", "1x9x8x4" },
    { "conv2d filters=3 dilation=[3,2] padding=valid", "1x9x9x3" },
    { "conv2d filters=4 dilation=4", "1x6x6x3" },       /* taps that lie wholly in the padding */
    { "conv2d filters=3 kernel=5 padding=valid", "3x5x5x2" },
    { "conv2d filters=6 groups=2", "2x5x5x4" },
    { "conv2d filters=6 groups=3 kernel=1", "2x3x5x9" },
    { "conv2d filters=8 groups=4 stride=2", "1x6x6x8" },
    { "conv2d filters=80 groups=2 stride=2 bias=false", "1x5x4x80" }, /* a tile's sums are cut */
    { "conv2d filters=5 groups=5", "1x5x5x5" },
    { "conv2d filters=10 groups=5 stride=2", "1x6x5x5" },
    { "conv2d filters=33 kernel=3 bias=false", "1x4x4x33" },
    { "conv2d filters=64 kernel=3 bias=false", "1x4x6x64" },
    { "conv2d filters=16 kernel=3 bias=false", "2x9x9x32" },
    { "conv2d filters=128 kernel=1 bias=false", "1x5x7x48" },
    { "conv2d filters=512 kernel=1 bias=false", "1x2x2x512" }, /* large weights, few pixels */
    { "conv2d filters=4 activation=relu", "1x5x5x3" },
    { "conv2d filters=4 activation=relu6", "1x5x5x3@-4..4" },
    { "conv2d filters=4 activation=leaky_relu slope=0.1", "1x5x5x3" },
    { "conv2d filters=4 activation=sigmoid bias=false", "1x5x5x3@-1..1" },
    { "conv2d filters=3 activation=tanh", "1x5x5x3@-1..1" },
    { "conv2d filters=3 activation=hard_sigmoid", "1x5x5x3@-6..6" },
    { "conv2d filters=2 kernel=1", "1x1x1x1" },
    { "conv2d filters=3 kernel=3 stride=2", "1x1x2x3" },
    { "conv2d filters=5 kernel=3", "2x5x6x3", .transposes = true },
    { "conv2d filters=70 kernel=[2,3] stride=2 bias=false", "1x6x7x33", .transposes = true },
    { "conv2d filters=8 groups=4 dilation=2", "1x6x6x8", .transposes = true },
    { "conv2d filters=10 groups=5", "1x5x5x5", .transposes = true },
    { "conv2d filters=64 kernel=1 activation=relu", "1x5x7x48", .transposes = true },
    /* More than 65,535 workgroups with one output for each invocation. */
    { "conv2d filters=64 kernel=1", "1x260x257x3", .large = true },
    { "conv2d filters=64 kernel=7 stride=2 bias=false", "1x224x224x3", .large = true },
    { "conv2d filters=64 bias=false", "2x56x56x64", .large = true },
    { "conv2d filters=64 stride=2 bias=false", "2x56x56x64", .large = true },
    { "conv2d filters=64 kernel=1 bias=false", "2x56x56x256", .large = true },
    { "conv2d filters=256 bias=false", "2x14x14x256", .large = true },
    { "conv2d filters=256 bias=false", "2x14x14x256", .large = true, .transposes = true },
    { 0 },
};
const struct pm_layer_test pm_test_conv2d = { conv2d_cases, conv2d };

static const struct check_case depthwise_cases[] = {
    { "depthwise_conv2d", "2x5x7x3" },
    { "depthwise_conv2d stride=2 bias=false", "1x8x6x17" },
    { "depthwise_conv2d multiplier=2", "1x5x6x5" },
    { "depthwise_conv2d kernel=3 padding=valid multiplier=2", "2x3x3x1" },
    { "depthwise_conv2d kernel=3 padding=valid multiplier=9 bias=false", "2x3x3x1" },
    { "depthwise_conv2d multiplier=3 stride=2 kernel=5", "1x7x7x3" },
    { "depthwise_conv2d dilation=2 kernel=[3,5] padding=valid", "1x9x11x4" },
    { "depthwise_conv2d padding=explicit pad=[1,0,2,1] stride=[2,1]", "1x6x7x3" },
    { "depthwise_conv2d stride=3 activation=relu6", "2x7x8x8" },
    { "depthwise_conv2d", "1x3x4x64" },
    { "depthwise_conv2d bias=false", "1x4x3x130" },
    { "depthwise_conv2d kernel=1 multiplier=2", "1x3x3x1" },
    { "depthwise_conv2d stride=2 bias=false", "1x5x14x49" },
    { "depthwise_conv2d kernel=[2,4] stride=[1,3] bias=false", "1x4x17x34" },
    { "depthwise_conv2d kernel=5 dilation=2 bias=false", "1x3x13x16" },
    { "depthwise_conv2d kernel=9 bias=false", "1x9x12x17" }, /* more taps than one list takes */
    { "depthwise_conv2d bias=false", "2x56x56x128", .large = true },
    { "depthwise_conv2d stride=2 bias=false", "1x112x112x96", .large = true },
    { "depthwise_conv2d dilation=2 bias=false", "2x33x33x728", .large = true },
    { "depthwise_conv2d dilation=12 bias=false", "2x33x33x320", .large = true },
    { "depthwise_conv2d dilation=36 bias=false", "1x65x65x256", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_depthwise_conv2d = { depthwise_cases, depthwise };
