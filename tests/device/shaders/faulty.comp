#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
/* y[i] (+)= sum over k < taps of x[i + k] * w[k];  z[i] = 3 * i. Each value of FAULT introduces
 * one error. */
struct faulty_params { int count, taps, accumulate; };
layout(local_size_x_id = 0) in;
layout(constant_id = 3) const int FAULT = 0;
layout(push_constant, scalar) uniform Push { InOutF32 x; InF32 w; InOutF32 y; InOutI32 z;
                                             faulty_params p; };

void main()
{
    bool add = FAULT == 5 ? false : FAULT == 6 ? true : p.accumulate != 0;
    uint last = uint(p.count) - 1u;

    for (uint i = pm_first(); i < uint(p.count); i += pm_stride()) {
        float sum = 0.0;

        for (int k = 0; k < (FAULT == 2 ? p.taps - 1 : p.taps); k++) {
            float term = x.v[i + uint(FAULT == 3 && k > 0 ? k - 1 : k)] * w.v[k];

            sum += FAULT == 4 && k == 1 ? -term : term;
        }
        if (FAULT == 1 && i == last / 2u)
            sum *= 1.0001;
        if (!(FAULT == 9 && i == last))
            y.v[i] = add ? y.v[i] + sum : sum;
        z.v[i] = 3 * int(i) + (FAULT == 10 && i == last ? 1 : 0);
        if (FAULT == 7 && i == last)
            y.v[i + 1u] = 0.0;
        if (FAULT == 8 && i == 0u)
            x.v[0] = 0.0;
    }
}
