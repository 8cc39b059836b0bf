/* Device memory by address, and the grid-stride loop.
 *
 * A push block has the addresses in row order, then the params struct:
 *     layout(push_constant, scalar) uniform Push { InF32 x; OutF32 y; leaky_relu_params p; };
 * In... is for r: buffers, Out... for w:, InOut... for u: and t:. A row that declares .inplace uses
 * InOut... for both names of the pair, because restrict promises that no other name refers to the
 * same memory. An absent buffer's address is 0; lib/presence.glsl tells which are present.
 *
 * A row whose addresses and params exceed 128 bytes gets its params by address. Its shaders declare
 *     layout(buffer_reference, scalar, buffer_reference_align = 4) readonly buffer WideParams {
 *         wide_params p;
 *     };
 *     layout(push_constant, scalar) uniform Push { InF32 x; OutF32 y; WideParams at; };
 *
 * A shader that does not read gl_NumWorkGroups (or call pm_stride) may be dispatched in parts.
 *
 * Index inside a block (x.v[i]). Never add to a reference (that requires 64-bit integers), and
 * never cast a reference to another type (SwiftShader): ...x4 forms are separate push members.
 * Offsets are 32-bit and count elements, not bytes. The ...x4 forms are aligned to 16 bytes. */
#ifndef PM_BUFFERS_GLSL
#define PM_BUFFERS_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_buffer_reference_uvec2 : require
#extension GL_EXT_scalar_block_layout : require
#extension GL_EXT_control_flow_attributes : enable

#define PM_BLOCKS(suffix, type, layout_name, alignment)                                            \
    layout(buffer_reference, layout_name, buffer_reference_align = alignment)                      \
        readonly restrict buffer In##suffix { type v[]; };                                         \
    layout(buffer_reference, layout_name, buffer_reference_align = alignment)                      \
        writeonly restrict buffer Out##suffix { type v[]; };                                       \
    layout(buffer_reference, layout_name, buffer_reference_align = alignment)                      \
        buffer InOut##suffix { type v[]; };

PM_BLOCKS(F32, float, scalar, 4)
PM_BLOCKS(F32x2, vec2, std430, 8)
PM_BLOCKS(F32x4, vec4, std430, 16)
PM_BLOCKS(U32, uint, scalar, 4)
PM_BLOCKS(U32x4, uvec4, std430, 16)
PM_BLOCKS(I32, int, scalar, 4)
PM_BLOCKS(I32x4, ivec4, std430, 16)

/* for (uint i = pm_first(); i < count; i += pm_stride()) visits every element once, for any number
 * of groups. Grids are one-dimensional. These are macros because, in a function above the shader's
 * local_size_x_id, glslang replaces gl_WorkGroupSize by 1. */
#define pm_first() (gl_GlobalInvocationID.x)
#define pm_stride() (gl_NumWorkGroups.x * gl_WorkGroupSize.x)

/* The next row of a workgroup that works on whole rows:
 *     uint row = gl_WorkGroupID.x;
 *     do {
 *         ...
 *     } while (pm_next_row(row) < rows);
 * There are at most as many groups as rows, so a group's first row exists. The test must be at the
 * end if all lanes load the same element of a row. lavapipe of Mesa 26 executes a load whose
 * address is the same for all lanes even if no lane is active, and it runs the body of a loop once
 * more, without active lanes, if the test is at the beginning. For the same reason an index that is
 * read from memory is limited to the buffer. */
#define pm_next_row(row) (row += gl_NumWorkGroups.x)

/* Returns byte i (0..3, lowest first) of a word. u8 tensors are InU32; byte n of such a tensor is
 * pm_byte(x.v[n / 4], n % 4). */
uint pm_byte(uint word, uint i)
{
    return (word >> (8u * i)) & 0xffu;
}

#endif
