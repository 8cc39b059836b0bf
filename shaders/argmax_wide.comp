#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/buffers.glsl"
#include "argmax.params.h"
layout(local_size_x_id = 0) in;
layout(push_constant, scalar) uniform Push { InI32 x; OutI32 y; argmax_params p; };
#include "lib/argmax.glsl"
shared int best[64], place[64];

/* One workgroup of 64 lanes per row. */
void main()
{
    uint k = uint(p.k), lane = gl_LocalInvocationID.x;

    for (uint row = gl_WorkGroupID.x; row < uint(p.rows); row += gl_NumWorkGroups.x) {
        int largest = int(0x80000000u), at = int(lane < k ? lane : 0);

        for (uint i = lane; i < k; i += 64) {
            int key = key_of(x.v[row * k + i]);

            at = key > largest ? int(i) : at;
            largest = max(key, largest);
        }
        barrier(); /* all lanes have read the previous row */
        best[lane] = largest;
        place[lane] = at;
        barrier();
        for (uint half_size = 32; half_size > 0; half_size /= 2) {
            if (lane < half_size) {
                int key = best[lane + half_size], there = place[lane + half_size];

                if (key > best[lane] || (key == best[lane] && there < place[lane]))
                    best[lane] = key, place[lane] = there;
            }
            barrier();
        }
        if (lane == 0)
            y.v[row] = place[0];
    }
}
