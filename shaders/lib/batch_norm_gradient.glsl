/* The gradient at batch norm's sum, g = dy act'(z), shared by the backward calls. Their first
 * eight buffers are the same. y is present if the derivative is a function of y alone, or if that
 * is cheaper than z: src/layers/batch_norm_rows.h. Params that come by address need the macro
 * SLOPE. */
#ifndef SLOPE
#define SLOPE p.slope
#endif
#define HAS_Y pm_has(1)
#define HAS_RESIDUAL pm_has(3)
#define HAS_GAMMA pm_has(6)
#define HAS_BETA pm_has(7)
#include "lib/batch_norm.glsl"

T bn_gradient(uint i, uint c)
{
    T g = dy.v[i];

    if (ACT == PM_ACT_NONE)
        return g;
    if (HAS_Y)
        return g * pm_act_slope(ACT, SLOPE, y.v[i]);
    return g * pm_act_slope(ACT, SLOPE, bn_z(i, c));
}
