/* One source for shaders that process one float per lane or, with -DVEC=4, four neighbouring
 * floats. With VEC=4, T, InT, OutT and InOutT are vec4 and the ...x4 blocks, and indices count
 * vectors. */
#ifndef PM_VECTOR_GLSL
#define PM_VECTOR_GLSL

#include "lib/buffers.glsl"

#ifndef VEC
#define VEC 1
#endif
#if VEC == 4
#define T vec4
#define InT InF32x4
#define OutT OutF32x4
#define InOutT InOutF32x4
#else
#define T float
#define InT InF32
#define OutT OutF32
#define InOutT InOutF32
#endif

#endif
