/* session: a checkpoint's values on the config's first device, for eval and predict. */
#ifndef PM_SESSION_H
#define PM_SESSION_H

#include "experiment/experiment.h"

#include <pumice/checkpoint.h>

struct pm_session {
    struct pm_experiment *e;
    struct pm_device *device;
    struct pm_net *net;
    struct pm_variables *variables;
    struct pm_checkpoint *from;
    bool averages; /* the values are the checkpoint's moving averages (eval.averages) */
};
/* Opens the checkpoint for eval, predict and export: eval.checkpoint, else the run's newest. For a
 * net of model.onnx it is that file in two cases: eval.checkpoint names it, or eval.checkpoint is
 * not set and run.folder has no checkpoint. *initial is then true: the values are the net's initial
 * values, and only the path and the notes of *out are used. PM_EDATA: there is no checkpoint, or it
 * cannot be read. */
int pm_session_checkpoint(const struct pm_config *c, struct pm_checkpoint **out, bool *initial);
/* Opens a session. pictures: opens the evaluation split; else the classes are looked up
 * (pm_experiment_open_classes). want: the net that will run; it defines the variables. On failure
 * everything is closed. */
int pm_session_open(const struct pm_config *c, bool pictures, struct pm_net_want want,
                    struct pm_session *s);
void pm_session_close(struct pm_session *s);
/* Adds the member step to a report: the checkpoint's step; null if its file has none. */
void pm_session_add_step(const struct pm_session *s, struct cJSON *report);

#endif
