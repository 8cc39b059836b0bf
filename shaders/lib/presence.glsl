/* Which of the row's buffers are present.
 *
 * The device makes a variant of the shader for every set of present buffers and sets this constant
 * (PM_PRESENCE in src/device/spirv.h), so pick() and the params need not say it. Every
 * access to a buffer that the row marks with "?" is inside a test of pm_has, or of a name for it:
 *     #define HAS_BETA pm_has(2)
 *     if (HAS_BETA)
 *         z += beta.v[k];
 * So the compiled shader has no code for an absent buffer. A test of a run-time value is not
 * enough, because some compilers move a load in front of a branch that all lanes take.
 * tests/device/presence_test.c checks each shader. Exception: the buffer `moments` of convolutions
 * is present if the params say so, because their variants with moments have code of their own. */
#ifndef PM_PRESENCE_GLSL
#define PM_PRESENCE_GLSL

layout(constant_id = 31) const uint PM_PRESENCE = 0xffffffffu;

/* Whether buffer i of the row, counted from 0, is present. */
#define pm_has(i) ((PM_PRESENCE & (1u << (i))) != 0u)

#endif
