/* net_sizes: an experiment's nets and plans for evaluation or prediction. If each picture keeps its
 * own size (eval.resize false), there is one for each frame, made when it is needed. The plans
 * share the memory for activations (net/sizes.h); the last 8 are kept. */
#ifndef PM_NET_SIZES_H
#define PM_NET_SIZES_H

#include "experiment/experiment.h"

struct pm_net_sizes_options {
    struct pm_experiment *e;
    struct pm_device *device;
    struct pm_variables *variables; /* on the device */
    enum pm_use use;                /* EVAL or PREDICT */
    int batch, slots;               /* most pictures at once; batches under way */
    /* Frames of all pictures; NULL: only the size of evaluation, and plans for `batch` pictures.
     * With groups, a plan is for no more pictures than the group has. */
    const struct pm_frame_groups *groups;
    /* Writes the name of a picture of the groups' order, for messages. */
    void (*name)(void *ctx, uint64_t record, char *out, size_t size);
    void *ctx;
};
/* A net for one frame. The pointers are valid until the next pm_net_sizes_get. */
struct pm_net_of_size {
    struct pm_frame frame;
    int batch; /* pictures */
    struct pm_net *net;
    struct pm_plan *plan;
    struct pm_outputs outputs;
};
/* Not thread-safe. */
struct pm_net_sizes;
/* Plans the largest frame and the one with the most pixels in a batch first, so that a picture that
 * is too large is found before any work. With groups, logs the number of sizes, the largest one and
 * the memory. All pointers in the options are borrowed. Errors are those of pm_net_sizes_get. */
int pm_net_sizes_create(const struct pm_net_sizes_options *o, struct pm_net_sizes **out);
void pm_net_sizes_destroy(struct pm_net_sizes **s);
/* Returns the net of a frame of the groups, with a loaded plan. No run may be under way, unless the
 * frame is that of the last call. PM_ECONFIG if the net cannot be built for this size, PM_EMEMORY;
 * with groups, the message names a picture and the remedy. */
int pm_net_sizes_get(struct pm_net_sizes *s, struct pm_frame frame, struct pm_net_of_size *out);

#endif
