#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/activation.glsl"
#include "batch_norm.params.h"
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int ACT = 0;
layout(constant_id = 4) const int FLAGS = 0;
layout(push_constant, scalar) uniform Push {
    InOutT x;
    InT mean;
    InT rstd;
    InT gamma;
    InT beta;
    InOutT residual;
    InOutT y;
    batch_norm_params p;
};

void main()
{
    uint c = uint(p.c / VEC);

    for (uint i = pm_first(); i < uint(p.rows) * c; i += pm_stride()) {
        uint k = i % c;
        T z = (x.v[i] - mean.v[k]) * ((FLAGS & BN_GAMMA) != 0 ? rstd.v[k] * gamma.v[k] : rstd.v[k]);

        if ((FLAGS & BN_BETA) != 0)
            z += beta.v[k];
        if ((FLAGS & BN_RESIDUAL) != 0)
            z += residual.v[i];
        y.v[i] = pm_act(ACT, p.slope, z);
    }
}
