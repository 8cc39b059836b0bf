/* What the builders of named nets share. */
#ifndef PM_NETS_H
#define PM_NETS_H

#include <pumice/net.h>

/* False, with the net's error set to a line that names both sizes, when images are smaller than
 * min x min. */
bool pm_nets_fits(struct pm_net *net, const char *row, const struct pm_node *images, int min);

#endif
