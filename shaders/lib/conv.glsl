/* The parameters and the numbering of invocations, shared by all convolution shaders.
 *
 * Items (one output, or a few, per invocation) are numbered over a grid of at most 65,535 groups in
 * x and as many rows of groups in y as needed. The number of groups is not read, so a dispatch may
 * be split into pieces that start at a base group. (This is a macro because, in a function above
 * the shader's local_size_x_id, glslang replaces gl_WorkGroupSize by 1.) */
#ifndef PM_CONV_GLSL
#define PM_CONV_GLSL

#include "buffers.glsl"
#include "../conv2d.params.h"

#define conv_item()                                                                                \
    ((gl_WorkGroupID.y * 65535u + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x)

#endif
