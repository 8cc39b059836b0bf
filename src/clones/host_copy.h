/* host_copy: the net's variables in host memory, with slots, gradients and averages, on a CPU
 * device that updates them. */
#ifndef PM_HOST_COPY_H
#define PM_HOST_COPY_H

#include "clones/clones.h"

struct pm_host_copy {
    struct pm_device *device; /* owned, as are all members */
    struct pm_net *net;
    struct pm_variables *variables;
};
/* o: options of the clones. lane: the device's name in traces. out must be zero before. After an
 * error, close must still be called. */
int pm_host_copy_open(const struct pm_clones_options *o, const char *lane,
                      struct pm_host_copy *out);
/* Makes and loads a plan of the update alone. append: pm_update_append, or a part of it; update:
 * for append; borrowed. */
int pm_host_copy_plan(const struct pm_host_copy *h, const struct pm_clones_options *o,
                      void (*append)(struct pm_calls *c, void *update),
                      const struct pm_update *update, struct pm_plan **out);
void pm_host_copy_close(struct pm_host_copy *h);

#endif
