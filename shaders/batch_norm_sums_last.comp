/* batch_norm_sums in one dispatch, for GPUs. A workgroup takes ACROSS neighbouring channels
 * (vectors of channels with VEC = 4) of one of PARTS runs of rows; its other lanes take the rows in
 * turn. The workgroup of a block of channels that finishes last adds the parts (lib/last.glsl).
 *
 * Grid: x = block of channels, y = part. */
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/activation.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in; /* 256 */
layout(constant_id = 4) const int ACROSS = 16; /* a power of two */
layout(constant_id = 5) const int PARTS = 1;
const uint DOWN = 256u / uint(ACROSS);
#define WANT_DBETA pm_has(10)
#define WANT_DGAMMA pm_has(11)
layout(push_constant, scalar) uniform Push {
    InT x;
    InT y;
    InT dy;
    InT residual;
    InT mean;
    InT rstd;
    InT gamma;
    InT beta;
    uvec2 part; /* [part][2][c]: sums of g and of g (x - mean) r */
    OutT sums;
    InOutT dbeta;
    InOutT dgamma;
    uvec2 done;
    batch_norm_sums_params p;
};
#include "lib/batch_norm_gradient.glsl"
#include "lib/last.glsl"
#if VEC == 4
#define CoherentT CoherentF32x4
#else
#define CoherentT CoherentF32
#endif

shared T left[256], right[256];

/* Sets left and right of the first ACROSS lanes to the sums over the lanes of the same channel. */
void add_lanes(uint lane, T sum, T product)
{
    left[lane] = sum;
    right[lane] = product;
    for (uint lanes = 128u; lanes >= uint(ACROSS); lanes /= 2u) {
        barrier();
        if (lane < lanes) {
            left[lane] += left[lane + lanes];
            right[lane] += right[lane + lanes];
        }
    }
    barrier();
}

void main()
{
    uint c = uint(p.c / VEC), lane = gl_LocalInvocationIndex;
    uint k = gl_WorkGroupID.x * uint(ACROSS) + lane % uint(ACROSS), down = lane / uint(ACROSS);
    uint length = (uint(p.rows) + uint(PARTS) - 1u) / uint(PARTS);
    uint first = gl_WorkGroupID.y * length, end = min(first + length, uint(p.rows));
    CoherentT parts = CoherentT(part);
    T sum = T(0), product = T(0);

    if (k < c) {
        T m = mean.v[k];

        for (uint row = first + down; row < end; row += DOWN) {
            T g = bn_gradient(row * c + k, k);

            sum += g;
            product += g * (x.v[row * c + k] - m);
        }
    }
    add_lanes(lane, sum, product);
    if (lane < uint(ACROSS) && k < c) {
        parts.v[gl_WorkGroupID.y * 2u * c + k] = left[lane];
        parts.v[(gl_WorkGroupID.y * 2u + 1u) * c + k] = right[lane] * rstd.v[k];
    }
    if (!pm_is_last(gl_WorkGroupID.x, uint(PARTS)))
        return;
    sum = T(0), product = T(0);
    if (k < c)
        for (uint i = down; i < uint(PARTS); i += DOWN) {
            sum += parts.v[i * 2u * c + k];
            product += parts.v[(i * 2u + 1u) * c + k];
        }
    add_lanes(lane, sum, product);
    if (lane < uint(ACROSS) && k < c) {
        sums.v[k] = left[lane];
        sums.v[c + k] = right[lane];
        if (WANT_DBETA)
            dbeta.v[k] = p.accumulate != 0 ? dbeta.v[k] + left[lane] : left[lane];
        if (WANT_DGAMMA)
            dgamma.v[k] = p.accumulate != 0 ? dgamma.v[k] + right[lane] : right[lane];
    }
}
