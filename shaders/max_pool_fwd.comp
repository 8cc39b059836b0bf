#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/vector.glsl"
#include "lib/presence.glsl"
#include "lib/pool.glsl"
#include "pool.params.h"
#if VEC == 4
#define OutIndex OutI32x4
#define Index ivec4
#define Select bvec4
#else
#define OutIndex OutI32
#define Index int
#define Select bool
#endif
layout(local_size_x_id = 0) in;
#define WANT_PLACES pm_has(2)
layout(push_constant, scalar) uniform Push { InT x; OutT y; OutIndex arg; pool_params p; };

/* NaN counts as the largest value, so that it propagates. */
#if VEC == 4
bvec4 better(vec4 a, vec4 b)
{
    bvec4 larger = greaterThan(a, b), nan = isnan(a);
    return bvec4(larger.x || nan.x, larger.y || nan.y, larger.z || nan.z, larger.w || nan.w);
}
#else
bool better(float a, float b)
{
    return a > b || isnan(a);
}
#endif

void main()
{
    uint c = uint(p.c / VEC), count = uint(p.n * p.oh * p.ow) * c;

    for (uint i = pm_first(); i < count; i += pm_stride()) {
        uint pixel = i / c;
        int ox = int(pixel % uint(p.ow)), row = int(pixel / uint(p.ow));
        int oy = row % p.oh, image = row / p.oh;
        int y0 = oy * p.stride_h - p.top, x0 = ox * p.stride_w - p.left;
        ivec2 ky = pm_taps(y0, p.kh, p.dilation_h, p.h);
        ivec2 kx = pm_taps(x0, p.kw, p.dilation_w, p.w);
        T best = T(0);
        Index at = Index(-1);

        for (int u = ky.x; u < ky.y; u++) {
            for (int v = kx.x; v < kx.y; v++) {
                int place = (y0 + u * p.dilation_h) * p.w + x0 + v * p.dilation_w;
                T value = x.v[uint(image * p.h * p.w + place) * c + i % c];
                Select take = better(value, best);

                if (u == ky.x && v == kx.x)
                    take = Select(true);
                best = mix(best, value, take);
                at = mix(at, Index(place), take);
            }
        }
        y.v[i] = best;
        if (WANT_PLACES)
            arg.v[i] = at;
    }
}
