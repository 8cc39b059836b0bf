/* add2: y = a + b, element by element. */
#include "layers/rows.h"

#include "base/vector.h"

PM_CLONES
static void add2_cpu(const struct pm_args *args, size_t begin, size_t end)
{
    const float *a = args->buf[0], *b = args->buf[1];
    float *y = args->buf[2];

    for (size_t i = begin; i < end; i++)
        y[i] = a[i] + b[i];
}

const struct pm_kernel pm_row_add2 = {
    .name = "add2", .bufs = "r:a r:b w:y", .inplace = "y=a",
    .params_size = sizeof(struct add2_params), .cpu = add2_cpu, .grain = 4096,
};
