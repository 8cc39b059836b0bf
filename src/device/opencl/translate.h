/* translate: writes a compute shader (SPIR-V) as OpenCL C 1.2.
 *
 * OpenCL devices run the same shaders as Vulkan devices. Many OpenCL drivers do not read SPIR-V, so
 * each module is translated to text when it is needed. Control flow is rebuilt from the module's
 * merge instructions. The text is the same for the same module on every machine.
 *
 * Every program has one kernel, pm_kernel. Its arguments, in this order:
 *     __global uchar *aN, ulong oN    for each address N: a buffer and an offset in bytes; NULL and
 *                                     0 for an absent buffer
 *     struct p                        the params by value, if params_bytes > 0
 *     uint3 base                      number of the first workgroup
 * A dispatch may be split into several, each with its own base, unless the module reads the number
 * of workgroups (uses_group_count of spirv.h). */
#ifndef PM_TRANSLATE_H
#define PM_TRANSLATE_H

#include <pumice/base.h>

/* The arguments and the workgroup of a translated kernel. */
struct pm_cl_kernel {
    int addresses;         /* address arguments: the leading members of the push block that are
                            * buffer references or uvec2. If the params are passed by address, the
                            * last one is theirs */
    uint32_t params_bytes; /* size of the params by value; 0: no params, or by address */
    uint32_t local[3];     /* workgroup size */
};
/* Properties of the device that change the text. */
struct pm_cl_dialect {
    bool fma; /* the device has a fast fma (CL_FP_FMA); otherwise fma(a, b, c) becomes a * b + c */
};
/* Translates a module whose constants are frozen (pm_spirv_freeze). name: the shader's, for
 * messages. Appends the program to text, which the caller frees, and fills *out. An instruction
 * that the translator does not know and a damaged module are errors (PM_EDEVICE); then text and
 * *out are incomplete. Thread-safe. */
int pm_cl_translate(const char *name, const uint32_t *words, size_t count,
                    const struct pm_cl_dialect *dialect, struct pm_str *text,
                    struct pm_cl_kernel *out);

#endif
