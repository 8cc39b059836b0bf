/* The last step of a sum that a dispatch splits into parts: the workgroup that finishes last adds
 * the parts, in their order, so the bits do not depend on which one it is. No workgroup waits for
 * another.
 *
 * A shader declares its z: buffer as `uvec2 done` in the push block, then includes this file. Each
 * workgroup writes its part through a Coherent... block. Then all of its invocations call
 * pm_is_last. If that returns true, they read all parts through a Coherent... block. A counter is
 * zero before the first part of a sum is done and after the last one. */
#ifndef PM_LAST_GLSL
#define PM_LAST_GLSL

#include "buffers.glsl"

layout(buffer_reference, scalar, buffer_reference_align = 4)
    coherent buffer CoherentF32 { float v[]; };
layout(buffer_reference, std430, buffer_reference_align = 16)
    coherent buffer CoherentF32x4 { vec4 v[]; };
layout(buffer_reference, scalar, buffer_reference_align = 4)
    coherent buffer PmCounters { uint v[]; };

shared bool pm_last;

/* Counts a finished part of sum `index`. Returns, for the whole workgroup, whether it is the last
 * of `parts`. Call it in uniform control flow, at most once. */
bool pm_is_last(uint index, uint parts)
{
    memoryBarrierBuffer(); /* what this invocation wrote, other workgroups read */
    barrier();
    if (gl_LocalInvocationIndex == 0u) {
        PmCounters counters = PmCounters(done);

        memoryBarrierBuffer(); /* what the other invocations wrote, too */
        pm_last = atomicAdd(counters.v[index], 1u) == parts - 1u;
        memoryBarrierBuffer();
        if (pm_last)
            counters.v[index] = 0u;
    }
    barrier();
    memoryBarrierBuffer(); /* nothing is read before all parts were counted */
    return pm_last;
}

#endif
