/* What all convolution shaders share: the parameters, and the numbering of invocations.
 *
 * Items (one output, or a few, per invocation) are numbered over a grid of at most 65,535 groups in
 * x and as many rows of groups as it takes in y. The number of groups is not read, so a dispatch
 * may be cut into pieces that start at a base group. (A macro, because in a function that stands
 * above the shader's local_size_x_id glslang takes gl_WorkGroupSize for 1.) */
#ifndef PM_CONV_GLSL
#define PM_CONV_GLSL

#include "buffers.glsl"
#include "../conv2d.params.h"

#define conv_item()                                                                                \
    ((gl_WorkGroupID.y * 65535u + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x)

#endif
