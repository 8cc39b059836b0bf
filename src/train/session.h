/* session: a checkpoint's values on the config's first device, for eval and predict. */
#ifndef PM_SESSION_H
#define PM_SESSION_H

#include "train/experiment.h"

#include <pumice/checkpoint.h>

struct pm_session {
    struct pm_experiment *e;
    struct pm_device *device;
    struct pm_net *net;
    struct pm_variables *variables;
    struct pm_checkpoint *from;
    bool averages; /* the values are its moving averages (eval.averages) */
};
/* open: PM_OPEN_... of the experiment. On failure everything is closed. */
int pm_session_open(const struct pm_config *c, int open, struct pm_session *s);
void pm_session_close(struct pm_session *s);
/* Member step of a report: the checkpoint's; null where its file tells none. */
void pm_session_add_step(const struct pm_session *s, struct cJSON *report);

#endif
