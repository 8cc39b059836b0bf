/* add2: y = a + b, element by element. */
#include "net/add2.h"

#include "base/vector.h"
#include "device/pick.h"

PM_CLONES
static void add2_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const float *a = args->buf[0], *b = args->buf[1];
    float *y = args->buf[2];

    PM_SIMD
    for (size_t i = begin; i < end; i++)
        y[i] = a[i] + b[i];
}

static bool pick(const struct pm_caps *caps, const void *params, size_t count, int level,
                 struct pm_picks *out)
{
    (void)caps, (void)params;
    return pick_four("add2x4", "add2", count % 4 == 0, count, 0, level, out);
}

const struct pm_kernel pm_row_add2 = {
    .name = "add2", .bufs = "r:a r:b w:y", .inplace = "y=a,y=b",
    .params_size = sizeof(struct add2_params), .cpu = add2_cpu, .pick = pick,
};
