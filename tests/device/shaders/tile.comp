#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require
/* Adds 2 * ROWS * x (or its negative) to y. It uses every kind of constant: plain, derived,
 * boolean, size of the workgroup. Workgroups are numbered over three axes without reading their
 * total number. */
layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer In { float v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4) buffer InOut { float v[]; };
struct tile_params { int count, groups_x, groups_y; };
layout(local_size_x_id = 0, local_size_y_id = 1, local_size_z_id = 2) in;
layout(constant_id = 3) const int ROWS = 1;
layout(constant_id = 4) const bool NEGATE = false;
layout(constant_id = 5) const uint SHIFT = 0u;
const int TWICE = ROWS * 2;
layout(push_constant, scalar) uniform Push { In x; InOut y; tile_params p; };
shared float tile[TWICE * gl_WorkGroupSize.x];

void main()
{
    uint group = (gl_WorkGroupID.z * uint(p.groups_y) + gl_WorkGroupID.y) * uint(p.groups_x) +
                 gl_WorkGroupID.x;
    uint i = (group * gl_WorkGroupSize.x + gl_LocalInvocationID.x) >> SHIFT;
    bool inside = i < uint(p.count);
    float sum = 0.0;

    for (int r = 0; r < TWICE; r++)
        tile[r * gl_WorkGroupSize.x + gl_LocalInvocationID.x] = inside ? x.v[i] : 0.0;
    barrier();
    for (int r = 0; r < TWICE; r++)
        sum += tile[r * gl_WorkGroupSize.x + gl_LocalInvocationID.x];
    if (inside)
        y.v[i] += NEGATE ? -sum : sum;
}
