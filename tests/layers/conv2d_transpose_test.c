/* conv2d_transpose by its definition: every input adds to a window of the output. */
#include "conv_ref.h"

static void conv2d_transpose(struct ref *r)
{
    const struct ref_array *x = &r->in[0], *w = &r->var[0];
    const int *in = x->shape.dim, filters = (int)ref_number(r, "filters", 32);
    int kernel[2], stride[2], dilation[2], out[2], before[2];
    double pad[4] = { 0 };

    for (int i = 0; i < 2; i++) {
        kernel[i] = ref_pair(r, "kernel", i, 3);
        stride[i] = ref_pair(r, "stride", i, 2);
        dilation[i] = ref_pair(r, "dilation", i, 1);
        const int reach = (kernel[i] - 1) * dilation[i] + 1;
        if (ref_says(r, "padding", "explicit", "same")) {
            ref_numbers(r, "pad", pad, 4);
            out[i] = (in[1 + i] - 1) * stride[i] + reach - (int)pad[2 * i] - (int)pad[2 * i + 1] +
                     ref_pair(r, "output_pad", i, 0);
            before[i] = (int)pad[2 * i];
        } else if (ref_says(r, "padding", "valid", "same")) {
            out[i] = in[1 + i] * stride[i] + (reach > stride[i] ? reach - stride[i] : 0);
            before[i] = 0;
        } else {
            out[i] = in[1 + i] * stride[i];
            before[i] = reach > stride[i] ? (reach - stride[i]) / 2 : 0;
        }
    }
    ref_output(r, PM_SHAPE4(in[0], out[0], out[1], filters));
    for (size_t i = 0; i < x->count; i++) {
        const int c = i % in[3], v = i / in[3] % in[2], h = i / in[3] / in[2] % in[1];
        const int n = i / in[3] / in[2] / in[1];

        for (int kh = 0; kh < kernel[0]; kh++)
            for (int kw = 0; kw < kernel[1]; kw++) {
                const int oh = h * stride[0] - before[0] + kh * dilation[0];
                const int ow = v * stride[1] - before[1] + kw * dilation[1];

                if (oh < 0 || oh >= out[0] || ow < 0 || ow >= out[1])
                    continue;
                for (int f = 0; f < filters; f++) {
                    const size_t at = ref_at(&r->y, n, oh, ow, f);
                    const double term = x->v[i] * w->v[ref_at(w, kh, kw, f, c)];

                    r->y.v[at] += term;
                    r->y.mag[at] += fabs(term);
                }
            }
    }
    ref_tail(r);
}

static const struct check_case cases[] = {
    { "conv2d_transpose filters=4", "2x4x5x3" },
    { "conv2d_transpose filters=3 kernel=4", "1x3x4x5" },
    { "conv2d_transpose filters=3 kernel=4 padding=valid", "1x3x4x5" },
    { "conv2d_transpose filters=2 kernel=2 padding=valid bias=false", "1x4x3x4" },
    { "conv2d_transpose filters=2 kernel=1 padding=valid", "1x4x3x4" }, /* rows of the bias alone */
    { "conv2d_transpose filters=3 kernel=[5,3] stride=[3,1]", "1x3x5x2" },
    { "conv2d_transpose filters=5 stride=1 activation=relu", "1x4x5x17" },
    { "conv2d_transpose filters=16 kernel=16 stride=8 bias=false", "1x2x3x3" },
    { "conv2d_transpose filters=4 activation=tanh", "1x3x3x3@-0.5..0.5" },
    { "conv2d_transpose filters=3 kernel=3 stride=[3,2] padding=explicit pad=[1,1,1,1] "
      "output_pad=[1,1]",
      "2x4x5x3" },
    { "conv2d_transpose filters=4 kernel=4 stride=2 padding=explicit pad=[1,1,1,1] bias=false",
      "1x3x4x4" },
    { "conv2d_transpose filters=3 kernel=[3,2] stride=2 dilation=[2,3] padding=explicit "
      "pad=[2,0,1,2]",
      "1x4x5x3" },
    { "conv2d_transpose filters=3 kernel=3 stride=1 dilation=2", "1x4x5x3" },
    { "conv2d_transpose filters=5 kernel=4", "1x3x4x6", .transposes = true },
    { "conv2d_transpose filters=64 kernel=4 bias=false", "1x28x28x128", .large = true },
    { 0 },
};
const struct pm_layer_test pm_test_conv2d_transpose = { cases, conv2d_transpose };
