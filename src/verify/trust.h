/* trust: plans whose kernels have been verified on their device. Every plan that trains, evaluates
 * or predicts is laid out here: what it would run and nothing is known of is first verified against
 * the CPU (verify.h), what is wrong is avoided, said, and the plan is laid out again. Verdicts are
 * remembered, so that only the first start on a device, driver or build takes the time. */
#ifndef PM_TRUST_H
#define PM_TRUST_H

#include <pumice/plan.h>

struct pm_trust {
    bool on;          /* run.verify; devices without caps.needs_verification are never verified */
    /* The plan's net for another number of examples. */
    int (*build)(void *ctx, int batch, struct pm_net **out);
    void *ctx;
    int batch;        /* examples of the plan's net */
    int integers;     /* labels are below it */
};
/* pm_plan_create. PM_EDEVICE when a kernel has no variant left whose results are right. slots: the
 * optimizer's in the plan, or NULL. */
int pm_trusted_plan(const struct pm_trust *t, struct pm_net *net, struct pm_device *d,
                    struct pm_variables *v, const struct pm_plan_options *o,
                    const char *const *slots, struct pm_plan **out);

#endif
