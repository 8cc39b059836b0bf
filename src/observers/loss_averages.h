/* loss_averages: smoothed losses, as in the Inception trainer. For each data loss and for the
 * total, every step computes a <- 0.9 a + 0.1 loss. The average starts at zero without bias
 * correction, so it rises during the first thirty steps or so. The averages are part of a
 * checkpoint's .json, so a resumed run continues them. */
#ifndef PM_LOSS_AVERAGES_H
#define PM_LOSS_AVERAGES_H

#include "clones/clones.h"

struct cJSON;

/* Zeros are an empty list; free it with pm_loss_averages_free. */
struct pm_loss_averages {
    struct pm_loss_average {
        char name[64]; /* "total_loss", or the loss layer's name, truncated if necessary */
        double value;
    } *list;           /* owned */
    int count, capacity;
};
void pm_loss_averages_free(struct pm_loss_averages *a);
/* Makes `to` equal to `from`. */
void pm_loss_averages_copy(struct pm_loss_averages *to, const struct pm_loss_averages *from);
/* Call it after a step with finite losses. */
void pm_loss_averages_add(struct pm_loss_averages *a, const struct pm_step_result *r);
/* Prints {"total_loss": 1.25, ...} with full precision, and reads it back; values that are not
 * numbers are skipped. */
void pm_loss_averages_print(const struct pm_loss_averages *a, struct pm_str *json);
void pm_loss_averages_read(struct pm_loss_averages *a, const struct cJSON *object);

#endif
