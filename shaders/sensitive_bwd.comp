#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "crop.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InT dy; InF32 bins; OutT dx; crop_params p; };

void main()
{
    uint c = uint(p.c / VEC), each = uint(p.per_image), h = uint(p.h), w = uint(p.w);
    uint groups = uint(p.bins_h * p.bins_w), table = uint(p.bins_h) * h + uint(p.bins_w) * w;
    uint total = uint(p.boxes) / each * h * w * groups * c;

    for (uint i = pm_first(); i < total; i += pm_stride()) {
        uint group = i / c % groups, cell = i / c / groups;
        uint image = cell / w / h, first = image * each * table;
        uint down = group / uint(p.bins_w) * h + cell / w % h;
        uint across = uint(p.bins_h) * h + group % uint(p.bins_w) * w + cell % w;
        T sum = T(0);

        for (uint r = 0u; r < each; r++) {
            float share = bins.v[first + r * table + down];

            if (share != 0.0) {
                share *= bins.v[first + r * table + across];
                if (share != 0.0)
                    sum += share * dy.v[(image * each + r) * c + i % c];
            }
        }
        dx.v[i] = sum;
    }
}
