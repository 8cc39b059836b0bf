/* geometry: computes output size and padding of one axis of a window, by TensorFlow's rule. */
#include <pumice/layer.h>

#include <limits.h>

struct pm_axis pm_axis_of(int in, int kernel, int stride, int dilation, enum pm_padding padding,
                          int before, int after)
{
    struct pm_axis a = { .in = in };
    int64_t reach = (int64_t)(kernel - 1) * dilation + 1;

    if (padding == PM_PAD_SAME) {
        int64_t out = ((int64_t)in + stride - 1) / stride;
        int64_t total = (out - 1) * stride + reach - in;

        total = total > 0 ? total : 0;
        a.out = (int)out;
        a.before = (int)(total / 2);
        a.after = (int)(total - total / 2);
        return a;
    }
    if (padding == PM_PAD_EXPLICIT)
        a.before = before, a.after = after;
    int64_t room = (int64_t)in + a.before + a.after - reach;
    int64_t out = room < 0 ? 0 : room / stride + 1;
    a.out = out > INT_MAX ? INT_MAX : (int)out;
    return a;
}
