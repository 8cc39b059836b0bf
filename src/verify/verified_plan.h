/* verified_plan: plans whose kernels have been verified on their device. Every plan that trains,
 * evaluates or predicts is created here. Kernels without a verdict are first compared with the CPU
 * (verify.h). Wrong ones are reported and avoided, and the plan is created again. Verdicts are
 * stored on disk, so only the first start on a device, driver or build takes the time. */
#ifndef PM_VERIFIED_PLAN_H
#define PM_VERIFIED_PLAN_H

#include <pumice/plan.h>

struct pm_verification {
    bool on;          /* run.verify; devices without caps.needs_verification are never verified */
    /* Builds the plan's net for another batch size, for pictures of height x width. */
    int (*build)(void *ctx, int batch, int height, int width, struct pm_net **out);
    void *ctx;
    int batch, height, width; /* of the plan's net: examples, pixels */
};
/* Like pm_plan_create, with verified kernels. slots: names of the optimizer's slots in the plan, or
 * NULL. PM_EDEVICE: no variant of a kernel has right results. */
int pm_verified_plan_create(const struct pm_verification *t, struct pm_net *net,
                            struct pm_device *d, struct pm_variables *v,
                            const struct pm_plan_options *o, const char *const *slots,
                            struct pm_plan **out);

#endif
