/* Definitions shared by the tiled depthwise shaders.
 *
 * Lanes are neighbours in the channels of the written image. A lane makes TX neighbours of a line
 * from windows that it holds in registers. So each pixel is read once per line of the kernel
 * instead of once per tap. A workgroup has gl_WorkGroupSize.y strips. On CPU drivers it has one, so
 * that all except the channel is the same for all lanes.
 *
 * Grid: x = lanes of channels, y + 65535 * z = strips. */
#ifndef PM_DEPTHWISE_GLSL
#define PM_DEPTHWISE_GLSL

#include "conv.glsl"

/* Kernel width, stride and dilation along x, outputs per lane. They are built in for drivers that
 * do not unroll loops over specialization constants. */
#ifdef FIXED_TX
const int KW = FIXED_KW, SX = FIXED_SX, DX = FIXED_DX, TX = FIXED_TX;
#else
layout(constant_id = 3) const int KW = 3;
layout(constant_id = 4) const int SX = 1;
layout(constant_id = 5) const int DX = 1;
layout(constant_id = 6) const int TX = 4;
#endif

#define depthwise_strip()                                                                          \
    (int(gl_WorkGroupID.z * 65535u + gl_WorkGroupID.y) * int(gl_WorkGroupSize.y)                   \
     + int(gl_LocalInvocationID.y))

#endif
