/* loss_averages: the losses smoothed as the Inception trainer does: of each data loss and of the
 * total, a <- 0.9 a + 0.1 loss at every step, from zero and not corrected for it, so that the first
 * thirty steps or so rise. They are part of a checkpoint's .json: a resumed run continues with
 * them. */
#ifndef PM_LOSS_AVERAGES_H
#define PM_LOSS_AVERAGES_H

#include "clones/clones.h"

struct cJSON;

struct pm_loss_averages {
    struct pm_loss_average {
        char name[64]; /* "total_loss", or the loss layer's, cut off if need be */
        double value;
    } list[PM_MAX_LOSSES + 1];
    int count;
};
/* After a step with finite losses. */
void pm_loss_averages_add(struct pm_loss_averages *a, const struct pm_step_result *r);
/* {"total_loss": 1.25, ...}, to the last bit; and back, leaving out what is no number. */
void pm_loss_averages_print(const struct pm_loss_averages *a, struct pm_str *json);
void pm_loss_averages_read(struct pm_loss_averages *a, const struct cJSON *object);

#endif
