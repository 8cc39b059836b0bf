/* Twin of struct pm_step (include/pumice/kernel.h), the values that change from step to step. A row
 * lists it as r:step, its push block has `InStep step` there, and code reads step.lr and so on. */
#ifndef PM_STEP_GLSL
#define PM_STEP_GLSL

#extension GL_EXT_buffer_reference : require
#extension GL_EXT_scalar_block_layout : require

layout(buffer_reference, scalar, buffer_reference_align = 4) readonly restrict buffer InStep {
    uint step;
    uint seed_low, seed_high;
    float lr;
    float loss_scale;
    float beta1_power, beta2_power;
    float ema_decay;
};

#endif
